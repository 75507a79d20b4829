"""Names: with a back-quote, used already, or misspelt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit import counts, fill, ordered, refused, rows, table
from over_hive import needs

import acidsql
from acidsql.errors import AcidSqlError, AnalysisError, CatalogError, SettingError
from acidsql.plan.analysis import missing_names

# ── back-quotes ──────────────────────────────────────────────────────────────────────────────

COLUMNS = "(`a``b` INT, ```y` STRING, s STRUCT<`f``g`: INT, h: ARRAY<STRUCT<`i```: INT>>>)"
ONE = "1, 'p', named_struct('f`g', 1, 'h', array(named_struct('i`', 5)))"
ROW = (1, "p", (1, [(5,)]))


def seen(found: Any) -> list[Any]:
    """Rows as tuples, at any depth, sorted."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(plain, value))
        return list(map(plain, value)) if isinstance(value, list) else value

    return ordered(plain(one) for one in found)


@needs("can_work")
@pytest.mark.parametrize("source", ["VALUES ({})", "SELECT {}", "SELECT {} FROM range(1)"])
def test_a_back_quote_may_stand_in_a_name(acid, source):
    acid.sql(f"CREATE TABLE t {COLUMNS}")
    acid.sql(f"INSERT INTO t {source.format(ONE)}")
    assert seen(table(acid)) == [ROW]
    assert seen(rows(acid, "SELECT ```y`, s.`f``g`, s.h.`i``` FROM t WHERE `a``b` = 1 "
                     "AND s.`f``g` = 1")) == [("p", 1, [5])]  # fmt: skip
    assert counts(acid, "UPDATE t SET `a``b` = `a``b` + 1 WHERE s.`f``g` = 1") == (0, 1, 0)
    acid.sql("INSERT INTO t (```y`, `a``b`) VALUES ('q', 7), ('gone', 8)")
    assert counts(acid, "DELETE FROM t WHERE `a``b` IN (8, 9)") == (0, 0, 1)
    merge = ("MERGE INTO t USING (SELECT * FROM VALUES (7, 'm'), (9, 'n') AS v(`a``b`, w)) u "
             "ON t.`a``b` = u.`a``b` WHEN MATCHED THEN UPDATE SET ```y` = w "
             "WHEN NOT MATCHED THEN INSERT (`a``b`, ```y`) VALUES (u.`a``b`, w)")  # fmt: skip
    assert counts(acid, merge) == (1, 1, 0)
    expected = seen([(2, *ROW[1:]), (7, "m", None), (9, "n", None)])
    assert seen(table(acid)) == expected
    assert seen(acidsql.read(acid.spark, f"{acid.warehouse}/t").drop("row__id").collect()) == (
        expected
    )
    for kind in ("minor", "major"):
        acid.sql(f"ALTER TABLE t COMPACT '{kind}' AND WAIT")
        assert seen(table(acid)) == expected
        assert rows(acid, "SELECT ```y` FROM t WHERE `a``b` > 2") == [("m",), ("n",)]


def test_what_java_reads_as_a_name_is_what_was_meant(spark, acid):
    """Java puts back-quotes around a name that it finds in a footer, and parses the result."""
    acid.sql(f"CREATE TABLE t {COLUMNS}")
    acid.sql(f"INSERT INTO t VALUES ({ONE})")
    (file,) = Path(acid.warehouse).glob("t/delta*/bucket*")
    assert spark.read.orc(str(file)).schema["row"].dataType.simpleString() == (
        "struct<a`b:int,`y:string,s:struct<f`g:int,h:array<struct<i`:int>>>>"
    )


def test_show_create_table_makes_such_a_table_again(acid):
    acid.sql(f"CREATE TABLE t {COLUMNS} PARTITIONED BY (`p``q` STRING) "
             "CLUSTERED BY (`a``b`) INTO 2 BUCKETS")  # fmt: skip
    shown = rows(acid, "SHOW CREATE TABLE t")[0][0]
    described = acid.sql("DESCRIBE t").collect()
    acid.sql("DROP TABLE t")
    acid.sql(shown)
    assert acid.sql("DESCRIBE t").collect() == described


def test_partitions_and_buckets_may_have_such_a_name(acid):
    fill(acid, "t (`k``k` INT, v STRING) PARTITIONED BY (`p``q` STRING) CLUSTERED BY (`k``k`) "
         "INTO 2 BUCKETS TBLPROPERTIES ('orc.bloom.filter.columns'='k`k')",
         "1, 'a', 'x'", "2, 'b', 'y`'")  # fmt: skip
    acid.sql("INSERT INTO t PARTITION (`p``q` = 'z') VALUES (3, 'c')")
    assert rows(acid, "SELECT v FROM t WHERE `p``q` = 'y`' AND `k``k` = 2") == [("b",)]
    assert rows(acid, "SHOW PARTITIONS t") == [("p`q=x",), ("p`q=y`",), ("p`q=z",)]
    merge = ("MERGE INTO t USING (SELECT 3 AS k, 'z' AS p) s ON t.`p``q` = s.p AND t.`k``k` = s.k "
             "WHEN MATCHED THEN UPDATE SET v = 'm'")  # fmt: skip
    assert counts(acid, merge) == (0, 1, 0)
    acid.sql("ALTER TABLE t DROP PARTITION (`p``q` = 'x')")
    assert table(acid) == [(2, "b", "y`"), (3, "m", "z")]


def test_a_partition_column_makes_no_hidden_directories(acid):
    for name in ("_a", ".a"):
        for columns in (
            f"(id INT) PARTITIONED BY (`{name}` INT)",
            f"(`{name}` INT, id INT) PARTITIONED BY (`{name}`)",
            f"PARTITIONED BY (`{name}`) AS SELECT 1 AS id, 2 AS `{name}`",
        ):
            refused(acid, f"CREATE TABLE t {columns}", "UNSUPPORTED_FEATURE.PARTITION_COLUMN_NAME")
    fill(acid, "t (`_a` INT, `.a` INT) PARTITIONED BY (`a_` INT)", "1, 2, 3")
    assert table(acid) == [(1, 2, 3)]


def test_columns_get_such_a_name_and_lose_it(acid):
    fill(acid, "t (id INT)", "1")
    acid.sql("ALTER TABLE t ADD COLUMNS (`n``n` INT)")
    acid.sql("UPDATE t SET `n``n` = 5")
    acid.sql("ALTER TABLE t RENAME COLUMN `n``n` TO m")
    acid.sql("ALTER TABLE t CHANGE COLUMN id `i``d` BIGINT COMMENT 'x'")
    assert rows(acid, "SELECT `i``d`, m FROM t WHERE m = 5 AND `i``d` = 1") == [(1, 5)]


@needs("can_work")
@pytest.mark.parametrize("file_format", ["ORC", "PARQUET"])
def test_insert_only_tables_may_have_such_a_name(acid, file_format):
    acid.sql(f"CREATE TABLE t {COLUMNS} STORED AS {file_format} "
             "TBLPROPERTIES ('transactional_properties'='insert_only')")  # fmt: skip
    acid.sql(f"INSERT INTO t VALUES ({ONE})")
    acid.sql(f"INSERT INTO t SELECT {ONE} FROM range(1)")
    for _ in range(2):
        assert seen(table(acid)) == [ROW, ROW]
        assert seen(rows(acid, "SELECT s.`f``g` FROM t WHERE `a``b` = 1")) == [(1,), (1,)]
        acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")


def test_a_file_whose_names_java_misreads_is_refused(acid, tmp_path):
    """Spark writes such files, and reads NULL from them."""
    place = tmp_path / "others"
    acid.spark.sql("SELECT 1 AS `a``b`").write.orc(str(place))
    acid.sql("CREATE TABLE t (`a``b` INT)")
    with pytest.raises(CatalogError, match="back-quote"):
        acid.sql(f"CREATE TABLE u (`a``b` INT) LOCATION '{place}'")
    with pytest.raises(AcidSqlError, match="back-quote"):
        acid.sql(f"LOAD DATA INPATH '{place}' INTO TABLE t")
    assert table(acid) == []


# ── names that are taken ─────────────────────────────────────────────────────────────────────


@pytest.fixture
def plain(spark: Any) -> Iterator[None]:
    spark.sql("CREATE TABLE plain USING parquet AS SELECT 1 AS id")
    spark.sql("SELECT 2 AS id").createOrReplaceTempView("viewed")
    yield
    spark.sql("DROP TABLE plain")
    spark.catalog.dropTempView("viewed")


@pytest.mark.parametrize("name", ["plain", "default.plain", "viewed"])
@pytest.mark.parametrize("columns", ["(id INT)", "AS SELECT 1 AS id", "LIKE ours"])
def test_create_if_not_exists_leaves_a_table_of_sparks_alone(acid, plain, name, columns):
    fill(acid, "ours (id INT)")
    before = rows(acid, f"SELECT * FROM {name}")
    acid.sql(f"CREATE TABLE IF NOT EXISTS {name} {columns}")
    assert rows(acid, f"SELECT * FROM {name}") == before
    assert acid.metastore.tables("default") == ["ours"]
    with pytest.raises(CatalogError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        acid.sql(f"CREATE TABLE {name} {columns}")


# ── names that are misspelt ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO nosuch USING t ON nosuch.id = t.id WHEN MATCHED THEN DELETE",
        "merge into nosuch x using (SELECT * FROM t) y ON x.id = y.id WHEN MATCHED THEN DELETE",
        "WITH s AS (SELECT * FROM t) MERGE INTO nosuch USING s ON s.id = 1 "
        "WHEN MATCHED THEN DELETE",
        "UPDATE nosuch SET id = (SELECT max(id) FROM t)",
        "DELETE FROM nosuch WHERE id IN (SELECT id FROM t)",
    ],
)
def test_a_misspelt_target_is_what_is_blamed(acid, statement):
    fill(acid, "t (id INT)")
    refused(acid, statement, "TABLE_OR_VIEW_NOT_FOUND", "nosuch")


def test_a_table_of_sparks_cannot_be_changed_by_an_acid_source(acid, plain):
    fill(acid, "t (id INT)")
    refused(acid, "MERGE INTO plain p USING t ON p.id = t.id WHEN MATCHED THEN DELETE",
            "UNSUPPORTED_FEATURE.TABLE_OPERATION", "plain")  # fmt: skip


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET v = rowid",
        "UPDATE t SET v = acidsql_writeid WHERE acidsql_partition = 1",
        "DELETE FROM t WHERE bucket = 1",
        "MERGE INTO t USING t u ON t.rowid = u.id WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING t u ON t.id = u.id WHEN NOT MATCHED THEN INSERT VALUES (1, present)",
        "MERGE INTO t USING t u ON t.id = u.id WHEN MATCHED AND u.clause = 1 THEN DELETE",
        "INSERT INTO t SELECT rowid, 1 FROM t",
        "FROM t INSERT INTO t SELECT id, acidsql",
        "SELECT row_id, row__id FROM t",
        "SELECT t.acidsql_1 FROM t JOIN t u USING (id)",
        "TABLE t |> WHERE acidsql > 1",
    ],
)
def test_no_suggestion_names_a_column_of_our_own(acid, statement):
    fill(acid, "t (id INT, v INT)")
    with pytest.raises(AnalysisError) as caught:
        acid.sql(statement)
    assert caught.value.condition.startswith("UNRESOLVED_COLUMN")
    assert "__acidsql" not in str(caught.value)
    assert "[]" not in str(caught.value)


@pytest.mark.parametrize(
    ("statement", "at", "similar"),
    [
        ("SELECT * FROM plane p", "plane", "`planes`"),
        ("SELECT 'plane' FROM default . `Plane`", "default . `Plane`", "`planes`"),
        ("UPDATE plane SET id = 1", "plane", "`planes`"),
        ("TRUNCATE TABLE plane", "plane", "`planes`"),
        ("DROP TABLE plane", "plane", "`planes`"),
        ("SELECT * FROM planes JOIN flihgts ON true", "flihgts", "`flights`"),
        (
            "MERGE INTO planes USING flihgts ON true WHEN MATCHED THEN DELETE",
            "flihgts",
            "`flights`",
        ),
        ("SELECT * FROM gats", "gats", "`gates`"),
        ("SELECT * FROM nowhere.planes", "nowhere.planes", None),
        ("SELECT * FROM xyz", "xyz", None),
    ],
)
def test_a_name_that_is_not_there_is_told_with_similar_names(acid, capfd, statement, at, similar):
    """ACID tables, views, and what Spark has, such as temporary views, alike."""
    fill(acid, "planes (id INT)")
    acid.sql("CREATE VIEW gates AS SELECT * FROM planes")
    acid.sql("CREATE OR REPLACE TEMPORARY VIEW flights AS SELECT 1 AS id")
    error = refused(acid, statement, "TABLE_OR_VIEW_NOT_FOUND", at)
    assert ("Did you mean" in str(error)) == (similar is not None)
    assert similar is None or f"Did you mean {similar}?" in str(error)
    assert "SQLQueryContextLogger" not in capfd.readouterr().err
    acid.sql("DROP VIEW flights")


def test_a_catalog_that_does_not_answer_hides_no_error_about_a_name(acid, monkeypatch):
    def broken(*_):
        raise RuntimeError("as Py4J's error of a catalog that does not answer")

    fill(acid, "some (id INT)")
    monkeypatch.setattr(missing_names, "table_names", broken)
    with pytest.raises(AnalysisError, match="TABLE_OR_VIEW_NOT_FOUND.*Did you mean `some`"):
        acid.sql("SELECT * FROM sone")


def test_a_method_tells_similar_names_of_a_table_that_is_not_there(acid):
    fill(acid, "planes (id INT)")
    acid.sql("CREATE VIEW gates AS SELECT * FROM planes")
    acid.sql("CREATE OR REPLACE TEMPORARY VIEW plains AS SELECT 1 AS id")
    for call in (
        lambda: acid.table("plannes"), lambda: acid.history("plannes"),
        lambda: acid.files("plannes"),
        lambda: acid.health("plannes"), lambda: acid.compact("default.plannes"),
        lambda: acid.check("plannes"), lambda: acid.changes("plannes", 1),
    ):  # fmt: skip
        with pytest.raises(CatalogError, match=r"'(default\.)?plannes'\. Did you mean `planes`\?"):
            call()
    with pytest.raises(CatalogError, match="Did you mean `gates`"):
        acid.table("gats")
    with pytest.raises(CatalogError) as caught:  # Spark's own views are no tables of this method
        acid.table("plainz")
    assert "`plains`" not in str(caught.value)


@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO plannes USING {df} ON true WHEN MATCHED THEN DELETE",
        "DELETE FROM plannes WHERE id IN (SELECT id FROM {df})",
        "UPDATE plannes SET id = (SELECT max(id) FROM {df})",
    ],
)
def test_a_misspelt_target_of_a_statement_with_a_dataframe_is_the_error(acid, spark, statement):
    fill(acid, "planes (id INT)")
    with pytest.raises(AnalysisError, match="Did you mean `planes`") as caught:
        acid.sql(statement, df=spark.range(1))
    assert caught.value.text[caught.value.start : caught.value.end] == "plannes"


WIDE = ", ".join(f"column_{number} INT" for number in range(29))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE wide SET tailnm = 'x'",
        "INSERT INTO wide (tailnm) VALUES ('x')",
        "MERGE INTO wide USING (SELECT 1) ON true WHEN MATCHED THEN UPDATE SET tailnm = 'x'",
        "INSERT INTO wide BY NAME SELECT 'x' AS tailnm",
        "ALTER TABLE wide RENAME COLUMN tailnm TO x",
        pytest.param(
            "ALTER TABLE wide ADD CONSTRAINT pk PRIMARY KEY (tailnm) DISABLE NOVALIDATE",
            marks=needs("keeps_keys"),
        ),
        "ANALYZE TABLE wide COMPUTE STATISTICS FOR COLUMNS tailnm",
        "DESCRIBE wide tailnm",
        "INSERT INTO wide REPLACE USING (tailnm) SELECT * FROM wide",
        "CREATE TABLE x CLUSTERED BY (tailnm) INTO 2 BUCKETS AS SELECT * FROM wide",
        "CREATE TABLE x PARTITIONED BY (tailnm) AS SELECT * FROM wide",
        "AUTO CDC INTO wide FROM (SELECT 'x' AS tailnum) s KEYS (tailnm) SEQUENCE BY 1",
    ],
)
def test_an_unknown_column_of_a_wide_table_is_told_with_the_nearest_three(acid, statement):
    acid.sql(f"CREATE TABLE wide (tailnum STRING, {WIDE})")
    with pytest.raises(AnalysisError) as caught:
        acid.sql(statement)
    message = str(caught.value)
    assert re.search(r"The nearest of (its|the table's) 30 columns are `tailnum`, ", message)
    assert message.count("column_") == 2


def test_an_unknown_database_or_constraint_is_told_with_those_that_there_are(acid):
    acid.sql("CREATE DATABASE flights")
    acid.sql("CREATE TABLE t (id INT CONSTRAINT low CHECK (id < 9))")
    try:
        for statement, message in (
            ("USE fligths", "Did you mean `flights`?"),
            ("SHOW TABLES IN fligths", "Did you mean `flights`?"),
            ("CREATE TABLE fligths.t (id INT)", "Did you mean `flights`?"),
            ("ALTER TABLE t DROP CONSTRAINT lo", "Its only constraint is `low`."),
        ):
            with pytest.raises(AcidSqlError) as caught:
                acid.sql(statement)
            assert message in str(caught.value), statement
    finally:
        acid.sql("DROP DATABASE flights")


def test_an_unknown_column_of_a_narrow_table_is_told_with_all_columns(acid):
    fill(acid, "t (id INT, s STRUCT<a: INT>) PARTITIONED BY (day STRING)")
    for statement, columns in (
        ("UPDATE t SET nothing = 1", "Its columns are `id`, `s`, `day`."),
        ("INSERT INTO t PARTITION (dya = 'x') SELECT 1", "Its only partition column is `day`."),
        ("ALTER TABLE t DROP PARTITION (dya = 'x')", "Its only partition column is `day`."),
        ("UPDATE t SET s.b = 1", "Its only field is `a`."),
        (
            "MERGE INTO t USING (SELECT 1 AS k) n ON t.id = n.k WHEN NOT MATCHED THEN INSERT *",
            "Its only column is `k`.",
        ),
    ):
        with pytest.raises(AnalysisError) as caught:
            acid.sql(statement)
        assert columns in str(caught.value)
    with pytest.raises(SettingError, match="The table's columns are `id`, `day`"):
        acid.create_table("x", "id INT, day DATE", partitioned_by="dya")
    with pytest.raises(CatalogError, match="Its columns are `id`, `s`, `day`"):
        acid.changes("t", 1, keys=["idd"])


def test_a_drop_of_what_is_not_there_is_an_error_unless_it_is_to_be_ignored(acid):
    for what in ("TABLE", "VIEW"):
        error = refused(acid, f"DROP {what} nothing", "TABLE_OR_VIEW_NOT_FOUND", "nothing")
        assert "hive.exec.drop.ignorenonexistent" in str(error)
    acid.sql("SET hive.exec.drop.ignorenonexistent = true")
    acid.sql("DROP TABLE nothing")
    acid.sql("DROP VIEW default.nothing")
    acid.sql("CREATE TEMPORARY VIEW something AS SELECT 1")
    acid.sql("DROP VIEW something")
    assert not acid.spark.catalog.tableExists("something")
