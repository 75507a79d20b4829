"""A version that comes again runs nothing, and looks as when it ran."""

from __future__ import annotations

import pytest
from over_hive import needs

from acidsql.errors import SqlSyntaxError

pytestmark = pytest.mark.spark


@pytest.fixture
def replay(acid):
    """Run statements as a version that was committed before."""
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("CREATE TABLE u (id INT)")
    with acid.transaction(txn_app_id="job", txn_version=1):
        acid.sql("INSERT INTO t VALUES (1, 'a')")

    def run(text):
        return acid.sql(text, txn_app_id="job", txn_version=1)

    return run


TWO = "FROM (SELECT 7 AS id) s INSERT INTO t (id) SELECT id INSERT INTO u SELECT id"


def test_a_multi_insert_has_a_row_of_counts_for_each_branch(acid, replay):
    (first, second) = replay(TWO).collect()
    assert first == second and first.num_affected_rows == 0
    assert [counts.table for counts in acid.last.counts] == ["default.t", "default.u"]
    assert "skipped: version 1 of 'job'" in str(acid.last)
    assert acid.sql("SELECT id FROM t UNION ALL SELECT id FROM u").collect() == [(1,)]
    assert replay("DELETE FROM t").columns == acid.sql("DELETE FROM t WHERE id = 0").columns


of_cdc = needs("keeps_state_tables")


@of_cdc
def test_auto_cdc_has_the_columns_that_it_had(acid, replay):
    text = "AUTO CDC INTO u FROM (SELECT 7 AS id, 1 AS n) KEYS (id) SEQUENCE BY n COLUMNS (id)"
    found = replay(text)
    assert set(found.first()) <= {0, None, found.first().txn_id}
    assert acid.sql("SELECT * FROM u").collect() == []
    assert found.columns == acid.sql(text).columns
    assert acid.sql("SELECT * FROM u").collect() == [(7,)]


@pytest.mark.parametrize(
    "text", ["TRUNCATE TABLE t", "LOAD DATA LOCAL INPATH '/nowhere' INTO TABLE u"]
)
def test_a_statement_without_counts_has_none(acid, replay, text):
    found = replay(text)
    assert (found.columns, found.collect()) == ([], [])
    assert "skipped" in str(acid.last)
    assert acid.sql("SELECT id FROM t").collect() == [(1,)]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t SELECT 1 +, 'a'",
        "UPDATE t SET v = v || WHERE id = 1",
        "DELETE FROM t WHERE id = = 1",
        "INSERT INTO t VALUES (1, 'a'",
        pytest.param(
            "AUTO CDC INTO u FROM (SELECT 7 AS id) KEYS (id) SEQUENCE BY id + COLUMNS (id)",
            marks=of_cdc,
        ),
        pytest.param(
            "AUTO CDC INTO u FROM (SELECT 7 +, 1 AS id) KEYS (id) SEQUENCE BY id COLUMNS (id)",
            marks=of_cdc,
        ),
    ],
)
def test_a_text_that_does_not_parse_is_an_error(replay, text):
    with pytest.raises(SqlSyntaxError):
        replay(text)


def test_what_the_statement_needs_may_be_gone(acid, replay):
    acid.sql("DROP TABLE u")
    (counts,) = replay("INSERT INTO t SELECT id, 'x' FROM u").collect()
    assert counts.num_inserted_rows == 0
    replay("UPDATE t SET nothing = 1")


def test_nothing_is_locked(acid, replay):
    with acid.transaction(txn_app_id="job", txn_version=1):
        acid.sql("LOCK TABLE t EXCLUSIVE")
        assert acid.sql("SHOW LOCKS").where("table = 't'").collect() == []
        acid.sql("SAVEPOINT s")
        acid.sql("DELETE FROM t")
        acid.sql("ROLLBACK TO s")
    assert acid.sql("SELECT id FROM t").collect() == [(1,)]


@pytest.mark.classic
@pytest.mark.parametrize("step", ["writeStream", "write", "read"])
def test_format_acidsql_shows_the_right_call(acid, tmp_path, step):
    stream = acid.spark.readStream.format("rate").load()
    calls = {
        "writeStream": lambda: (
            stream.writeStream.format("acidsql").option("checkpointLocation", str(tmp_path / "c"))
            .start().processAllAvailable()
        ),
        "write": lambda: acid.spark.range(1).write.format("acidsql").mode("append").save(),
        "read": lambda: acid.spark.read.format("acidsql").load("t"),
    }  # fmt: skip
    right = {"writeStream": "acid.sink(", "write": "acid.insert_into(", "read": "acidsql.read("}
    with pytest.raises(Exception, match="acidsql") as caught:
        calls[step]()
    assert right[step] in str(caught.value)
