"""Streams into all kinds of tables, also into tables that change between two batches."""

from __future__ import annotations

import time

import pytest
from over_hive import needs
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.errors import AcidSqlError, AnalysisError, StreamError, UnsupportedError
from acidsql.metastore.interface import TxnState
from acidsql.streams import batches as module
from acidsql.streams.query import RunningQuery

pytestmark = pytest.mark.spark


@pytest.fixture
def write(acid, monkeypatch):
    """Write a batch as a running query would: ``write(sink, number, query, query_id)``."""

    def batch(sink, number, query, query_id="q"):
        running = RunningQuery(query_id, f"a run of {query_id}", None)
        monkeypatch.setattr(module, "running_query", lambda *_: running)
        sink(acid.spark.sql(query), number)

    return batch


@pytest.fixture
def conf(spark):
    """Set a conf of Spark's for the test."""
    changed = {}

    def change(name, value):
        changed.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield change
    for name, value in changed.items():
        spark.conf.set(name, value) if value is not None else spark.conf.unset(name)


def rows(acid, query="SELECT * FROM t"):
    return sorted((tuple(row) for row in acid.sql(query).collect()), key=repr)


def test_a_new_table_of_the_old_name_gets_the_next_batch(acid, write):
    acid.sql("CREATE TABLE t (id INT)")
    sink = acid.sink("t")
    write(sink, 0, "SELECT 1 AS id")
    acid.sql("DROP TABLE t")
    with pytest.raises(AnalysisError, match="no ACID table"):
        write(sink, 1, "SELECT 2 AS id")
    acid.sql("CREATE TABLE t (id INT, more STRING)")
    write(sink, 1, "SELECT 2 AS id")
    write(sink, 2, "SELECT 3 AS id, 'm' AS more")
    assert rows(acid) == [(2, None), (3, "m")]
    (entry,) = acid.streams().collect()
    assert entry.txnVersion == 2


def test_a_renamed_table_is_missed_until_it_has_its_name_again(acid, write):
    acid.sql("CREATE TABLE t (id INT)")
    sink = acid.sink("t")
    write(sink, 0, "SELECT 1 AS id")
    acid.sql("ALTER TABLE t RENAME TO away")
    with pytest.raises(AnalysisError, match="no ACID table"):
        write(sink, 1, "SELECT 2 AS id")
    acid.sql("ALTER TABLE away RENAME TO t")
    write(sink, 1, "SELECT 2 AS id")
    assert rows(acid) == [(1,), (2,)]


@pytest.mark.parametrize("mode", ["append", "upsert", "complete"])
def test_columns_that_were_added_between_two_batches_are_written(acid, write, mode):
    acid.sql("CREATE TABLE t (id INT)")
    sink = acid.sink("t", mode=mode, keys=["id"] if mode == "upsert" else None)
    write(sink, 0, "SELECT 1 AS id")
    with pytest.raises(AnalysisError, match="ADD COLUMNS"):
        write(sink, 1, "SELECT 2 AS id, 'v' AS v")
    acid.sql("ALTER TABLE t ADD COLUMNS (v STRING)")
    write(sink, 1, "SELECT 2 AS id, 'v' AS v")
    write(sink, 2, "SELECT 3 AS id")
    expected = [(1, None), (2, "v"), (3, None)]
    assert rows(acid) == (expected[2:] if mode == "complete" else expected)


def test_one_sink_may_serve_two_queries(acid, write):
    acid.sql("CREATE TABLE t (id INT)")
    sink = acid.sink("t")
    for number in range(2):
        write(sink, number, f"SELECT {number} AS id", "a")
        write(sink, number, f"SELECT {number + 10} AS id", "b")
    assert rows(acid) == [(0,), (1,), (10,), (11,)]
    named = acid.sink("t", txn_app_id="one name")
    write(named, 0, "SELECT 20 AS id", "a")
    with pytest.raises(StreamError, match="another query"):
        write(named, 0, "SELECT 21 AS id", "b")
    assert (21,) not in rows(acid)


def test_an_insert_only_table_takes_rows_and_no_upsert(acid, write):
    acid.sql("CREATE TABLE t (id INT) TBLPROPERTIES ('transactional_properties'='insert_only')")
    write(acid.sink("t"), 0, "SELECT 1 AS id", "a")
    write(acid.sink("t"), 1, "SELECT 2 AS id", "a")
    assert rows(acid) == [(1,), (2,)]
    with pytest.raises(UnsupportedError):
        write(acid.sink("t", mode="upsert", keys="id"), 0, "SELECT 3 AS id", "b")
    assert rows(acid) == [(1,), (2,)]
    write(acid.sink("t", mode="complete"), 0, "SELECT 4 AS id", "c")
    assert rows(acid) == [(4,)]


@pytest.mark.classic
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1L AS id, 'a' AS v",
        "SELECT 3000000000L AS id, 'a' AS v",
        "SELECT '1' AS id, 'a' AS v",
        "SELECT 1 AS id, 2 AS v",
    ],
)
def test_values_are_converted_as_by_insert(acid, write, conf, ansi, query):
    conf("spark.sql.ansi.enabled", ansi)
    for name in ("t", "u"):
        acid.sql(f"CREATE TABLE {name} (id INT, v STRING)")
    outcomes = []
    for name, run in (
        ("t", lambda: write(acid.sink("t"), 0, query)),
        ("u", lambda: acid.sql(f"INSERT INTO u BY NAME {query}")),
    ):
        try:
            run()
            outcomes.append(rows(acid, f"SELECT * FROM {name}"))
        except AcidSqlError as error:
            outcomes.append(error.condition)
            assert rows(acid, f"SELECT * FROM {name}") == []
    assert outcomes[0] == outcomes[1]


def test_names_in_any_case_are_the_tables_also_if_spark_tells_them_apart(acid, write, conf):
    conf("spark.sql.caseSensitive", "true")
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    sink = acid.sink("T", mode="upsert", keys=["ID"])
    write(sink, 0, "SELECT 1 AS Id, 'a' AS V")
    write(sink, 1, "SELECT 1 AS iD, 'b' AS v")
    assert rows(acid) == [(1, "b")]
    with pytest.raises(AnalysisError, match="two columns 'v'"):
        write(sink, 2, "SELECT 1 AS id, 'a' AS v, 'b' AS V")
    write(acid.sink("t"), 0, "SELECT 2 AS ID", "other")
    assert rows(acid) == [(1, "b"), (2, None)]


@pytest.mark.parametrize("mode", ["append", "upsert", "complete"])
def test_a_column_that_the_batch_lacks_gets_its_default(acid, write, mode):
    acid.sql("CREATE TABLE t (id INT, v STRING DEFAULT 'none', n INT NOT NULL)")
    sink = acid.sink("t", mode=mode, keys=["id"] if mode == "upsert" else None)
    write(sink, 0, "SELECT 1 AS id, 5 AS n")
    with pytest.raises(AcidSqlError, match="NULL"):
        write(sink, 1, "SELECT 2 AS id")
    assert rows(acid) == [(1, "none", 5)]


@needs("a metastore of its own")
def test_a_query_that_is_stopped_in_the_middle_leaves_nothing_open_and_goes_on(acid, tmp_path):
    acid.sql("CREATE TABLE t (id BIGINT)")
    begun, hurry = tmp_path / "begun", tmp_path / "hurry"

    def slowly(value):
        begun.touch()
        for _ in range(600):
            if not hurry.exists():
                time.sleep(0.1)
        return value

    def start(sink):
        source = acid.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
        ids = source.select(F.udf(slowly, "bigint")("value").alias("id"))
        writer = ids.writeStream.foreachBatch(sink)
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    query = start(acid.sink("t"))
    _until(begun.exists)
    query.stop()
    _until(lambda: all(txn.state is TxnState.ABORTED for txn in acid.metastore.show_txns()))
    assert acid.metastore.show_locks() == []
    assert rows(acid) == [] and acid.streams().collect() == []
    hurry.touch()
    query = start(acid.sink("t"))
    _until(lambda: len(rows(acid)) >= 10)
    query.stop()
    found = [id for (id,) in sorted(rows(acid))]
    assert sorted(found) == list(range(len(found)))


def _until(reached):
    for _ in range(600):
        if reached():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen within a minute")
