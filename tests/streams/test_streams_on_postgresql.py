"""Streams whose ledger, locks and transactions are in a PostgreSQL, from start to end.

A query has two sinks: one appends what comes, one applies it as changes. Its run dies in the second
one, while the table is locked; another machine goes on, and is replaced in its turn.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import servers
from test_sink import Source, failure, forget_the_last_end, rows
from test_sink_faults import CALLS

import acidsql
from acidsql.errors import MetastoreError, StreamError

pytestmark = pytest.mark.spark
COLUMNS = "id INT, v STRING, ts INT, gone BOOLEAN"


class Machine:
    """A session, with the query's function for ``foreachBatch``."""

    def __init__(self, spark, url: str, place: Path) -> None:
        self._spark, self._place = spark, place
        self.acid = acidsql.connect(
            spark, metastore=url, warehouse=str(place / "warehouse"), compactor="background"
        )
        self.dies_in = -1

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_) -> None:
        self.acid.close()

    def run(self, source: Source):
        """Run all batches that wait, and return the query."""
        self.log = self.acid.sink("log")
        self.cdc = self.acid.auto_cdc(
            "t", keys="id", sequence_by="ts", apply_as_deletes="gone", column_list=["id", "v"]
        )
        records = source.read(self._spark, COLUMNS)
        query = (
            records.writeStream.foreachBatch(self._both).trigger(availableNow=True)
            .option("checkpointLocation", str(self._place / "checkpoint")).start()
        )  # fmt: skip
        query.awaitTermination()
        return query

    def _both(self, batch, number: int) -> None:
        self.log(batch, number)
        if number == self.dies_in:
            self._die_at_commit()
        self.cdc(batch, number)

    def _die_at_commit(self) -> None:
        """Let nothing reach the server from the next COMMIT on: the transaction stays open."""
        store = self.acid.metastore

        def lost(*_, **__):
            raise MetastoreError("killed")

        def commit(*_, **__):
            for name in CALLS:
                setattr(store, name, lost)
            lost()

        store.commit_txn = commit


def row(key, value, ts, gone=False):
    return {"id": key, "v": value, "ts": ts, "gone": gone}


@pytest.mark.classic
def test_each_batch_is_there_once_whoever_dies_or_takes_over(spark, tmp_path):
    if reason := servers.missing("postgresql"):
        pytest.skip(reason)
    url, source = servers.server("postgresql").url(tmp_path), Source(tmp_path / "source")
    batches = [
        [row(1, "a", 1), row(2, "b", 1)],
        [row(1, "a2", 3), row(2, None, 2, gone=True)],
        [row(1, "late", 2), row(2, "late", 1), row(3, "c", 1)],
    ]
    for batch in batches[:2]:
        source.add(*batch)
    with Machine(spark, url, tmp_path) as first, Machine(spark, url, tmp_path) as second:
        second.acid.sql(f"CREATE TABLE log ({COLUMNS})")
        second.acid.sql("CREATE TABLE t (id INT, v STRING)")
        first.dies_in = 1
        assert "killed" in failure(lambda: first.run(source))
        assert rows(second.acid) == [(1, "a"), (2, "b")]
        locked = {lock.table for lock in second.acid.sql("SHOW LOCKS").collect()}
        assert {"t", "t__acidsql_cdc"} <= locked
        second.acid.compact("t", kind="major", wait=True)

        source.add(*batches[2])
        query = second.run(source)  # from the batch on that only one of the sinks has
        log = [tuple(one) for one in second.acid.table("log").collect()]
        sent = [tuple(one.values()) for batch in batches for one in batch]
        assert sorted(log, key=str) == sorted(sent, key=str)
        assert rows(second.acid) == [(1, "a2"), (3, "c")]
        assert "2 stale" in str(second.cdc.last)
        ledger = second.acid.streams().collect()
        assert {(one.sink, one.txnVersion, one.runId) for one in ledger} == {
            ("default.log", 2, query.runId), ("default.t", 2, query.runId),
        }  # fmt: skip

        second.acid.compact("log", kind="minor", wait=True)
        forget_the_last_end(tmp_path / "checkpoint")
        with Machine(spark, url, tmp_path) as third:
            third.run(source)
            assert all("skipped: batch 2" in str(sink.last) for sink in (third.log, third.cdc))
            late = replace(third.acid.metastore.streams()[0].batch, version=3, run_id=query.runId)
        for sink, name in ((second.log, "default.log"), (second.cdc, "default.t")):
            sink._identity = lambda *_, name=name: replace(late, sink=name)
            with pytest.raises(StreamError) as caught:
                sink(spark.createDataFrame([(4, "d", 1, False)], COLUMNS), 3)
            assert caught.value.condition == "STREAM_TAKEN_OVER"
        assert second.acid.table("log").count() == len(sent)
        assert rows(second.acid) == [(1, "a2"), (3, "c")]
