"""A batch is written once, whichever call of the store fails, before or after its effect."""

from __future__ import annotations

import itertools
import os
import random

import pytest
from over_hive import needs

from acidsql.errors import AcidSqlError, MetastoreError
from acidsql.metastore.interface import LockComponent, LockType, TxnState
from acidsql.metastore.streams import Batch
from acidsql.streams import batches as module
from acidsql.streams.query import RunningQuery

pytestmark = pytest.mark.spark
CALLS = (
    "stream", "open_txn", "lock", "check_lock", "valid_txns", "valid_write_ids", "find",
    "allocate_write_id", "record_partitions", "write_conflicts", "commit_txn", "txn_state",
    "abort_txn", "take_over_stream", "end_other_runs",
)  # fmt: skip


KINDS = ("minor", "major", "rebalance")
SEEDS = int(os.environ.get("ACIDSQL_STREAM_SEEDS", "1"))


class Fault:
    """Fails one call of the store; with ``outage`` also all later ones."""

    def __init__(self, patch, store):
        self.at, self.after, self.outage, self.count = 0, False, False, 0
        for name in CALLS:
            patch.setattr(store, name, self._failing(getattr(store, name)))

    def arm(self, at, *, after=False, outage=False):
        self.at, self.after, self.outage, self.count = at, after, outage, 0

    def _failing(self, method):
        def call(*args, **keywords):
            self.count += 1
            hit = self.at and (self.count == self.at or (self.outage and self.count > self.at))
            if hit and not self.after:
                raise MetastoreError("the request was lost")
            answer = method(*args, **keywords)
            if hit:
                raise MetastoreError("the reply was lost")
            return answer

        return call


@pytest.fixture
def fault(acid, monkeypatch):
    return Fault(monkeypatch, acid.metastore)


@pytest.fixture
def run(acid, monkeypatch):
    """Write a batch as the run ``name`` of one streaming query would."""
    sinks = {}

    def write(name, number, rows, **options):
        query = RunningQuery("the query", name, None)
        monkeypatch.setattr(module, "running_query", lambda *_: query)
        sink = sinks.setdefault(name, acid.sink("t", **options))
        sink(acid.spark.createDataFrame(rows, "id INT, v STRING"), number)

    return write


def rows(acid):
    return sorted(tuple(row) for row in acid.sql("SELECT * FROM t").collect())


def open_txns(acid):
    return [txn for txn in acid.metastore.show_txns() if txn.state is TxnState.OPEN]


@pytest.mark.parametrize("outage", [False, True], ids=["one call", "an outage"])
@pytest.mark.parametrize("after", [False, True], ids=["request", "reply"])
def test_a_batch_is_there_once_whichever_call_is_lost(acid, run, fault, after, outage):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    names, expected = map(str, itertools.count()), []
    number, before = 0, len(open_txns(acid))
    for at in itertools.count(1):
        name, batch = next(names), [(number, "a")]
        fault.arm(at, after=after, outage=outage)
        try:
            run(name, number, batch, retries=0)
        except AcidSqlError:
            fault.arm(0)
            assert rows(acid) in (expected, [*expected, *batch])
            run(next(names), number, batch, retries=0)  # Spark restarts, and has not noted the end
        reached = fault.count >= at
        fault.arm(0)
        expected += batch
        assert rows(acid) == expected, f"call {at}"
        number += 1
        if not reached:
            break
    assert number > 8
    # Nobody knows the number of a transaction if the reply to open_txn was lost: it times out.
    assert len(open_txns(acid)) - before <= 3 + 2 * number * outage


def test_a_batch_that_has_timed_out_leaves_nothing_and_a_replay_may_have_other_rows(
    acid, run, monkeypatch
):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    store, commit = acid.metastore, acid.metastore.commit_txn

    def late(txn_id, *more):
        store.abort_txn(txn_id)  # as others do when its heartbeat has stopped
        commit(txn_id, *more)

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit_txn", late)
        with pytest.raises(AcidSqlError):
            run("old", 0, [(1, "a")])
    assert rows(acid) == [] and acid.streams().collect() == []
    run("new", 0, [(1, "a")])
    # Spark evaluates a batch anew. The one that was committed counts.
    for name, others in (("fewer", []), ("other", [(1, "b")]), ("more", [(1, "a"), (2, "b")])):
        run(name, 0, others)
    run("with other keys", 0, [(2, "b")], mode="upsert", keys=["v"])
    assert rows(acid) == [(1, "a")]


def test_a_new_run_does_not_wait_for_the_locks_of_a_dead_one(acid, run):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    run("dead", 0, [(1, "a")])
    begun = Batch("the query", 1, "default.t", "the query", "dead")
    left = acid.metastore.open_txn(user="u", host="h", batch=begun)
    locked = LockComponent(LockType.EXCLUSIVE, "default", "t")
    acid.metastore.lock(left, [locked])
    acid.sql("SET hive.lock.numretries = 1")
    run("new", 1, [(2, "b")], mode="upsert", keys=["id"])
    assert rows(acid) == [(1, "a"), (2, "b")]
    assert acid.metastore.txn_state(left) is TxnState.ABORTED


def test_only_the_first_batch_of_a_run_ends_other_runs(acid, run):
    """An old driver that lives must not end the new one."""
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    run("old", 0, [(1, "a")])
    begun = Batch("the query", 1, "default.t", "the query", "new")
    new = acid.metastore.open_txn(user="u", host="h", batch=begun)
    run("old", 1, [(2, "b")])
    assert acid.metastore.txn_state(new) is TxnState.OPEN


@needs("its own time-out")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_batches_crashes_and_compactions_leave_what_plain_python_says(
    acid, run, fault, seed
):
    draw, model = random.Random(seed), {}
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    # A transaction whose number nobody knows, because the reply was lost, may hold a lock.
    acid.sql("SET hive.txn.timeout = 4s")
    name = 0
    for number in range(10):
        keys = draw.sample(range(8), draw.randint(1, 4))
        batch = [(key, f"{number}") for key in keys]
        model.update(batch)
        while True:
            fault.arm(
                draw.choice([0, draw.randint(1, 20)]),
                after=draw.random() < 0.5,
                outage=draw.random() < 0.3,
            )
            try:
                run(str(name), number, batch, mode="upsert", keys=["id"])
                is_noted = draw.random() < 0.7
            except AcidSqlError:
                is_noted = False
            fault.arm(0)
            if draw.random() < 0.2:
                acid.sql(f"ALTER TABLE t COMPACT '{draw.choice(KINDS)}' AND WAIT")
                acid.clean()
            if is_noted:
                break
            name += 1  # a crash before Spark has noted the end: a new run begins with this batch
        assert rows(acid) == sorted(model.items())
