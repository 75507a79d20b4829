"""Micro-batches reach a table exactly once, whatever happens between the batches."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from over_hive import beside
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import acidsql
from acidsql.errors import ArgumentTypeError, SettingError, StreamError, UnsupportedError

pytestmark = pytest.mark.spark


class Source:
    """A directory of numbered JSON files, one for each batch: a log that can be read again."""

    def __init__(self, place: Path) -> None:
        self.place, self.count = place, 0
        place.mkdir()

    def add(self, *rows: dict) -> None:
        path = self.place / f"{self.count:05d}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (self.count, self.count))  # Spark reads the oldest file first
        self.count += 1

    def read(self, spark, schema="id INT, v STRING"):
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.place))


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path / "source")


@pytest.fixture
def checkpoint(tmp_path):
    return tmp_path / "checkpoint"


@pytest.fixture
def run(acid, source, checkpoint):
    """Run all batches that wait, and return the query."""

    def start(sink, *, place=checkpoint, mode="append", frame=None):
        rows = source.read(acid.spark) if frame is None else frame
        writer = rows.writeStream.foreachBatch(sink).outputMode(mode)
        query = writer.option("checkpointLocation", str(place)).trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    return start


def rows(acid, query="SELECT * FROM t"):
    return sorted(tuple(row) for row in acid.sql(query).collect())


def forget_the_last_end(checkpoint: Path) -> None:
    """As after a crash between COMMIT and Spark's note that the batch is done."""
    ends = [path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()]
    newest = max(ends, key=lambda path: int(path.name))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


def failure(call) -> str:
    with pytest.raises(Exception) as caught:  # Spark's StreamingQueryException
        call()
    return str(caught.value)


@pytest.fixture
def t(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING)")


def test_each_batch_is_a_transaction_and_the_ledger_names_the_last(acid, t, source, run):
    source.add({"id": 1, "v": "a"}, {"id": 2, "v": "b"})
    source.add({"id": 3, "v": "c"})
    sink = acid.sink("t")
    query = run(sink)
    assert rows(acid) == [(1, "a"), (2, "b"), (3, "c")]
    (entry,) = acid.streams().collect()
    assert (entry.txnAppId, entry.sink, entry.txnVersion) == (query.id, "default.t", 1)
    assert (entry.numRows, entry.queryId, entry.runId) == (1, query.id, query.runId)
    assert entry.txnId == sink.last.txn_id
    source.add({"id": 4, "v": "d"})
    run(acid.sink("t"))
    assert rows(acid) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert acid.sql("SHOW STREAMS").collect()[0].txnVersion == 2


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_batch_that_runs_again_after_a_crash_is_skipped(acid, t, source, run, checkpoint, mode):
    keys = ["id"] if mode == "upsert" else None
    source.add({"id": 1, "v": "a"})
    run(acid.sink("t", mode=mode, keys=keys))
    acid.sql("UPDATE t SET v = 'changed since' WHERE id = 1")
    forget_the_last_end(checkpoint)
    source.add({"id": 2, "v": "b"})
    sink = acid.sink("t", mode=mode, keys=keys)
    run(sink)
    assert rows(acid) == [(1, "changed since"), (2, "b")]


def test_a_skipped_batch_says_so(acid, t, source, run, checkpoint):
    source.add({"id": 1, "v": "a"})
    first = acid.sink("t")
    run(first)
    forget_the_last_end(checkpoint)
    again = acid.sink("t")
    run(again)
    assert f"was committed as txn {first.last.txn_id}" in str(again.last)


@pytest.mark.classic
def test_a_batch_that_fails_leaves_nothing_and_comes_again(acid, source, run):
    acid.sql("CREATE TABLE t (id INT NOT NULL, v STRING)")
    source.add({"id": None, "v": "a"})
    told = failure(lambda: run(acid.sink("t")))
    assert "NOT_NULL" in told
    assert rows(acid) == [] and acid.streams().count() == 0
    path = source.place / "00000.json"
    path.write_text(json.dumps({"id": 1, "v": "a"}))
    os.utime(path, (0, 0))
    run(acid.sink("t"))
    assert rows(acid) == [(1, "a")]


def test_an_update_stream_replaces_rows_by_their_keys(acid, t, source, run):
    acid.sql("INSERT INTO t VALUES (1, 'old'), (9, 'stays')")
    source.add({"id": 1, "v": "new"}, {"id": 2, "v": "b"})
    source.add({"id": 2, "v": "c"})
    run(acid.sink("t", mode="upsert", keys="id"))
    assert rows(acid) == [(1, "new"), (2, "c"), (9, "stays")]


@pytest.mark.classic
@pytest.mark.parametrize(
    "bad", [[{"id": None, "v": "a"}], [{"id": 1, "v": "a"}, {"id": 1, "v": "b"}]], ids=["null", "2"]
)
def test_an_upsert_refuses_keys_that_name_no_single_row(acid, t, source, run, bad):
    source.add(*bad)
    assert "UPSERT_KEY_INVALID" in failure(lambda: run(acid.sink("t", mode="upsert", keys="id")))
    assert rows(acid) == []


@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (v STRING)"])
def test_complete_output_replaces_the_whole_table(acid, source, run, partitioned):
    columns = "n BIGINT" if partitioned else "v STRING, n BIGINT"
    acid.sql(f"CREATE TABLE t ({columns}) {partitioned}")
    acid.sql("INSERT INTO t (v, n) VALUES ('gone', 9)")
    source.add({"id": 1, "v": "a"}, {"id": 2, "v": "b"})
    source.add({"id": 3, "v": "a"})
    counts = source.read(acid.spark).groupBy("v").agg(F.count("*").alias("n"))
    run(acid.sink("t", mode="complete"), mode="complete", frame=counts)
    assert rows(acid, "SELECT v, n FROM t") == [("a", 2), ("b", 1)]


def test_a_batch_is_evaluated_once(acid, t, source, run):
    seen = acid.spark.sparkContext.accumulator(0)

    def count(value):
        seen.add(1)
        return value

    source.add(*({"id": i, "v": "a"} for i in range(7)))
    noted = F.udf(count, "string")
    for mode, keys in (("append", None), ("upsert", ["id"])):
        seen.value = 0
        frame = source.read(acid.spark).withColumn("v", noted("v"))
        place = source.place.with_name(f"checkpoint-{mode}")
        run(acid.sink("t", mode=mode, keys=keys), place=place, frame=frame)
        assert seen.value == 7, mode


def test_a_rewound_checkpoint_is_an_error(acid, t, source, run, checkpoint):
    for i in range(3):
        source.add({"id": i, "v": "a"})
    run(acid.sink("t"))
    for _ in range(2):
        forget_the_last_end(checkpoint)
    (checkpoint / "offsets" / "2").unlink()
    (checkpoint / "offsets" / ".2.crc").unlink(missing_ok=True)
    assert "STREAM_REWOUND" in failure(lambda: run(acid.sink("t")))
    assert len(rows(acid)) == 3


def test_a_new_checkpoint_under_an_old_name_is_an_error(acid, t, source, run, tmp_path):
    source.add({"id": 1, "v": "a"})
    run(acid.sink("t", txn_app_id="loader"))
    other = tmp_path / "other"
    told = failure(lambda: run(acid.sink("t", txn_app_id="loader"), place=other))
    assert "STREAM_RESTARTED" in told and "forget_stream" in told
    assert acid.forget_stream("loader") == 1
    run(acid.sink("t", txn_app_id="loader"), place=tmp_path / "third")
    assert rows(acid) == [(1, "a"), (1, "a")]


def test_two_queries_on_one_checkpoint_lose_and_double_nothing(acid, t, source, run, checkpoint):
    """The second run takes the stream over. So the first run's next batch fails."""
    source.add({"id": 1, "v": "a"})
    old = acid.sink("t")
    first = run(old)
    forget_the_last_end(checkpoint)
    run(acid.sink("t"))  # a replay, which writes nothing, but takes over
    source.add({"id": 2, "v": "b"})
    batch = acid.spark.createDataFrame([(2, "b")], "id INT, v STRING")
    late = replace(acid.metastore.streams()[0].batch, version=1, run_id=first.runId)
    old._identity = lambda *_: late
    with pytest.raises(StreamError) as caught:
        old(batch, 1)
    assert caught.value.condition == "STREAM_TAKEN_OVER"
    assert rows(acid) == [(1, "a")]


@pytest.mark.classic
def test_a_second_sink_of_one_query_into_one_table_loses_no_rows_unsaid(acid, t, source, run):
    source.add({"id": 1, "v": "a"})

    def both(first, second):
        def write(batch, number):
            first(batch, number)
            second(batch.selectExpr("id + 10 AS id", "v"), number)

        return write

    told = failure(lambda: run(both(acid.sink("t"), acid.sink("t"))))
    assert "STREAM_BATCH_REPEATED" in told and "txn_app_id" in told
    acid.sql("TRUNCATE TABLE t")
    place = source.place.with_name("named")
    run(both(acid.sink("t", txn_app_id="a"), acid.sink("t", txn_app_id="b")), place=place)
    assert rows(acid) == [(1, "a"), (11, "a")]


def test_a_job_group_of_the_users_is_not_taken_for_the_run(acid, t, source, run, checkpoint):
    source.add({"id": 1, "v": "a"})

    def grouped(sink):
        def write(batch, number):
            batch.sparkSession.sparkContext.setJobGroup("mine", "my jobs")
            sink(batch, number)

        return write

    query = run(grouped(acid.sink("t")))
    assert acid.streams().collect()[0].runId == query.runId
    forget_the_last_end(checkpoint)
    run(grouped(acid.sink("t")))
    assert rows(acid) == [(1, "a")]


def test_a_dropped_table_forgets_its_streams_and_a_renamed_one_keeps_them(acid, t, source, run):
    source.add({"id": 1, "v": "a"})
    run(acid.sink("t"))
    acid.sql("ALTER TABLE t RENAME TO u")
    assert acid.streams().collect()[0].sink == "default.u"
    acid.sql("DROP TABLE u")
    assert acid.streams().count() == 0


def test_the_users_transaction_is_not_concerned(acid, t, source, run):
    source.add({"id": 1, "v": "a"})
    acid.sql("CREATE TABLE other (n INT)")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO other VALUES (1)")
    run(acid.sink("t"))
    acid.sql("ROLLBACK")
    assert rows(acid) == [(1, "a")] and rows(acid, "SELECT * FROM other") == []


def test_write_stream_is_pysparks_writer_with_a_table(acid, t, source, checkpoint):
    source.add({"id": 1, "v": "a"})
    source.add({"id": 1, "v": "b"})
    writer = acid.write_stream(source.read(acid.spark), keys=["id"])
    query = (
        writer.queryName("q").outputMode("update").trigger(availableNow=True)
        .option("checkpointLocation", str(checkpoint)).toTable("t")
    )  # fmt: skip
    query.awaitTermination()
    assert query.name == "q" and rows(acid) == [(1, "b")]


def test_what_a_stream_cannot_do_is_refused_at_once(acid, t, source):
    frame = source.read(acid.spark)
    for refused in (
        lambda: acid.write_stream(frame).format("delta"),
        lambda: acid.write_stream(frame).partitionBy("v"),
        lambda: acid.write_stream(frame).trigger(continuous="1 second"),
        lambda: acid.write_stream(frame).start(),
        lambda: acid.write_stream(frame).foreachBatch(print),
        lambda: acid.write_stream(frame).clusterBy("id"),
    ):
        with pytest.raises(UnsupportedError):
            refused()
    for wrong in (
        {"retries": -1},
        {"txn_app_id": ""},
        {"mode": "update"},
        {"mode": "upsert"},
        {"keys": ["id"]},
    ):
        with pytest.raises(SettingError):
            acid.sink("t", **wrong)
    with pytest.raises(SettingError, match="No streaming query"):
        acid.sink("t")(acid.spark.createDataFrame([(1, "a")], "id INT, v STRING"), 0)


@pytest.mark.classic
@pytest.mark.parametrize(
    ("make", "condition"),
    [
        (lambda acid: acid.sink("nowhere"), "TABLE_OR_VIEW_NOT_FOUND"),
        (lambda acid: acid.sink("narrow"), "UNRESOLVED_COLUMN"),
        (lambda acid: acid.sink("t", mode="upsert", keys="k"), "UNRESOLVED_COLUMN"),
    ],
    ids=["no table", "no column", "no key"],
)
def test_the_querys_error_names_ours(acid, t, source, run, make, condition):
    acid.sql("CREATE TABLE narrow (id INT)")
    source.add({"id": 1, "v": "a"})
    assert condition in failure(lambda: run(make(acid)))


# ── transactions that a program numbers itself ───────────────────────────────────────────────


def test_a_numbered_transaction_runs_once(acid, t):
    acid.sql("CREATE TABLE u (n INT)")
    for attempt in range(2):
        with acid.transaction(txn_app_id="nightly", txn_version=7) as txn:
            acid.sql("INSERT INTO t VALUES (1, 'a')")
            acid.sql("INSERT INTO u SELECT id FROM t")
            assert txn.replayed == bool(attempt)
            assert rows(acid) == [(1, "a")]
    assert "skipped: version 7 of 'nightly'" in str(acid.last)
    assert rows(acid) == [(1, "a")] and rows(acid, "SELECT * FROM u") == [(1,)]
    with acid.transaction(txn_app_id="nightly", txn_version=8):
        acid.sql("DELETE FROM t")
    assert rows(acid) == []
    (entry,) = acid.streams().collect()
    assert (entry.txnAppId, entry.sink, entry.txnVersion, entry.numRows) == ("nightly", None, 8, 1)


def test_a_numbered_statement_runs_once(acid, t):
    for _ in range(2):
        acid.sql("INSERT INTO t VALUES (1, 'a')", txn_app_id="load", txn_version=1)
    acid.sql("INSERT INTO t VALUES (2, 'b')", txn_app_id="load", txn_version=2)
    assert rows(acid) == [(1, "a"), (2, "b")]


def test_a_rolled_back_version_may_run_again(acid, t):
    with pytest.raises(ZeroDivisionError), acid.transaction(txn_app_id="x", txn_version=1):
        acid.sql("INSERT INTO t VALUES (1, 'a')")
        raise ZeroDivisionError
    assert acid.streams().count() == 0
    with acid.transaction(txn_app_id="x", txn_version=1):
        acid.sql("INSERT INTO t VALUES (1, 'a')")
    assert rows(acid) == [(1, "a")]


def test_of_two_processes_with_one_version_only_one_commits(acid, t):
    with (
        beside(acid, compactor="off") as other,
        pytest.raises(StreamError) as caught,
        acid.transaction(txn_app_id="x", txn_version=1),
    ):
        acid.sql("INSERT INTO t VALUES (1, 'a')")
        with other.transaction(txn_app_id="x", txn_version=1):
            other.sql("INSERT INTO t VALUES (1, 'a')")
    assert caught.value.condition == "STREAM_TAKEN_OVER"
    assert rows(acid) == [(1, "a")]


@pytest.mark.parametrize(
    ("name", "version"),
    [("", 1), ("x" * 251, 1), ("a\0b", 1), ("\ud800", 1), ("x", -1), ("x", 1 << 63)],
    ids=["empty", "long", "nul", "surrogate", "negative", "huge"],
)
def test_what_the_ledger_cannot_keep_is_refused(acid, name, version):
    with pytest.raises(SettingError), acid.transaction(txn_app_id=name, txn_version=version):
        pass
    assert not acid.in_transaction


@pytest.mark.parametrize(
    ("name", "version"),
    [(5, 1), ("x", True), ("x", "1"), ("x", 1.5)],
    ids=["number", "bool", "text", "real"],
)
def test_a_name_is_a_text_and_a_version_a_whole_number(acid, name, version):
    with pytest.raises(ArgumentTypeError), acid.transaction(txn_app_id=name, txn_version=version):
        pass
    assert not acid.in_transaction


def test_use_does_not_change_the_table_of_a_sink(acid, t):
    acid.sql("CREATE DATABASE o")
    acid.sql("CREATE TABLE o.t (id INT, v STRING)")
    sink = acid.sink("t", txn_app_id="x")
    acid.sql("USE o")
    sink(acid.spark.createDataFrame([(1, "a")], "id INT, v STRING"), 0)
    acid.sql("USE default")
    assert rows(acid) == [(1, "a")] and rows(acid, "SELECT * FROM o.t") == []


def test_a_sink_of_a_closed_session_writes_nothing(acid, t):
    with acidsql.connect(acid.spark, warehouse=acid.warehouse, compactor="off") as other:
        sink = other.sink("t", txn_app_id="x")
    with pytest.raises(SettingError, match="closed"):
        sink(acid.spark.createDataFrame([(1, "a")], "id INT, v STRING"), 0)
    assert rows(acid) == []


def test_the_number_and_the_name_come_together(acid):
    for half in ({"txn_app_id": "x"}, {"txn_version": 1}):
        with pytest.raises(SettingError), acid.transaction(**half):
            pass
