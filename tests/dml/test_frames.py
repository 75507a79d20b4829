"""DataFrames that a statement names: ``acid.sql("… {df} …", df=df)``."""

from __future__ import annotations

import pytest

from acidsql.errors import AnalysisError

pytestmark = pytest.mark.spark


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def table(acid):
    return rows(acid.sql("SELECT * FROM t"))


@pytest.fixture
def news(spark):
    return spark.createDataFrame([(1, "new"), (4, "new")], "id INT, v STRING")


@pytest.fixture
def old(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("INSERT INTO t VALUES (1, 'old'), (2, 'old'), (3, 'old')")
    return acid


def test_every_statement_that_reads_names_dataframes(old, news):
    old.sql("INSERT INTO t SELECT id + 10, v FROM {df}", df=news)
    assert table(old) == [(1, "old"), (2, "old"), (3, "old"), (11, "new"), (14, "new")]
    old.sql("DELETE FROM t WHERE id IN (SELECT id + ? FROM {df})", [10], df=news)
    old.sql(
        "UPDATE t SET v = (SELECT max(n.v) FROM {df} n WHERE n.id = t.id) WHERE id = 1", df=news
    )
    assert table(old) == [(1, "new"), (2, "old"), (3, "old")]
    old.sql(
        "MERGE INTO t USING {df} ON t.id = df.id WHEN MATCHED THEN UPDATE SET v = :v "
        "WHEN NOT MATCHED THEN INSERT *",
        {"v": "merged"},
        df=news,
    )
    assert table(old) == [(1, "merged"), (2, "old"), (3, "old"), (4, "new")]
    old.sql("FROM {df} INSERT INTO t SELECT df.id + 20, v", df=news)
    asked = old.sql("SELECT t.*, df.v AS n FROM t JOIN {df} ON t.id = df.id + 20", df=news)
    assert rows(asked) == [(21, "new", "new"), (24, "new", "new")]


def test_a_statement_of_sparks_names_dataframes(acid, news):
    found = acid.sql("WITH w AS (SELECT * FROM {a}) SELECT count(*) FROM w, {b}", a=news, b=news)
    assert rows(found) == [(4,)]
    # Braces in strings and quoted names are text.
    assert rows(acid.sql("SELECT '{a}' AS `{a}` FROM {a} LIMIT 1", a=news)) == [("{a}",)]
    assert rows(acid.sql("SELECT '{a}', ?", [1], a=news)) == [("{a}", 1)]


@pytest.mark.classic
def test_a_variable_may_name_a_dataframe(old, news, conf):
    conf("source", "{df}")
    assert rows(old.sql("SELECT count(*) FROM ${source}", df=news)) == [(2,)]


@pytest.mark.parametrize("start", ["CREATE TEMP VIEW w AS", "CACHE TABLE w AS"])
def test_a_temporary_view_of_a_dataframe_stays_when_the_statement_has_ended(
    acid, spark, news, start
):
    acid.sql(f"{start} SELECT * FROM {{df}} WHERE id > ?", [1], df=news)
    try:
        assert rows(acid.sql("SELECT * FROM w")) == [(4, "new")]
    finally:
        spark.catalog.uncacheTable("w")
        spark.catalog.dropTempView("w")


def test_a_new_table_gets_the_rows_of_a_dataframe(acid, news):
    acid.sql("CREATE TABLE t AS SELECT * FROM {df} WHERE id < ?", [9], df=news)
    assert table(acid) == [(1, "new"), (4, "new")]


@pytest.mark.classic
def test_a_lazy_result_keeps_its_dataframe(old, news):
    found = old.sql("SELECT t.id FROM t JOIN {df} ON t.id = df.id", df=news)
    assert rows(found) == [(1,)]
    assert not [view for view in old.spark.catalog.listTables() if view.isTemporary]


def test_changes_can_be_previewed_from_a_dataframe(old, news):
    found = old.preview("DELETE FROM t WHERE id IN (SELECT id FROM {df})", df=news)
    assert rows(found.select("id", "_change_type")) == [(1, "delete")]


def test_a_wrong_dataframe_is_named(old, news, spark):
    with pytest.raises(AnalysisError, match="There is no DataFrame 'nows'") as error:
        old.sql("SELECT * FROM t, {nows}", news=news)
    assert (error.value.start, error.value.end) == (17, 23)
    with pytest.raises(AnalysisError, match="can only be named where a query reads a table"):
        old.sql("UPDATE t SET v = {news}", news=news)
    with pytest.raises(AnalysisError, match="can only be named where a query reads a table"):
        old.sql("ALTER TABLE t ADD COLUMN {news} INT", news=news)
    with pytest.raises(AnalysisError, match="belongs to another Spark session"):
        old.sql("SELECT * FROM {news}", news=spark.newSession().range(1))
    with pytest.raises(AnalysisError, match="is a stream"):
        old.sql("SELECT * FROM {s}", s=spark.readStream.format("rate").load())
    with pytest.raises(TypeError, match="retires should be a DataFrame.* and is 3"):
        old.sql("SELECT 1", retires=3)
    assert table(old) == [(1, "old"), (2, "old"), (3, "old")]


def test_an_error_points_to_the_users_text(old, news):
    with pytest.raises(AnalysisError, match="UNRESOLVED_COLUMN") as error:
        old.sql("DELETE FROM t WHERE id IN (SELECT nothing FROM {news})", news=news)
    assert error.value.text[error.value.start : error.value.end] == "nothing"
