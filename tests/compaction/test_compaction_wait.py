"""Waiting for a compaction: who runs it, how often the store is asked, and what is reported."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from acidsql.acid.table import TableName
from acidsql.errors import TxnError, WriteError
from acidsql.metastore.abilities import Abilities
from acidsql.metastore.compaction_queue import CompactionInfo, CompactionState, CompactionType
from acidsql.settings import Settings
from acidsql.statements.maintenance.compaction_wait import CompactionWaiter

OF_HIVE = Abilities(shared_with_hive=True, can_rebalance=False)
OF_HIVE_3 = Abilities(shared_with_hive=True, can_rebalance=False, can_work=False)
ENTRY = CompactionInfo(
    7, TableName("default", "t"), "p=1", CompactionType.REBALANCE, CompactionState.INITIATED
)


class Queue:
    """A queue of one entry, a worker that may take it, and a clock that goes on by each pause.

    ``states``: from which second on the entry has which state.
    """

    def __init__(self, entry=ENTRY, abilities=OF_HIVE, takes=True, **states) -> None:
        self.entry, self.abilities, self.takes = entry, abilities, takes
        self.states = {int(state[1:]): new for state, new in states.items()}
        self.now_s, self.pauses, self.runs = 0.0, [], 0
        self.failures = 0

    def compactions(self):
        due = [second for second in self.states if second <= self.now_s]
        entry = replace(self.entry, **self.states[max(due)]) if due else self.entry
        return [] if entry.state is None else [entry]

    def abort_timed_out(self, timeout_ms):
        pass

    def revoke(self, timeout_ms):
        pass

    def run_next(self, *, only):
        self.runs += 1
        if self.failures >= self.runs:
            raise TxnError("There are too many open transactions.")
        if not self.takes:
            return None
        self.entry = replace(self.entry, state=CompactionState.READY_FOR_CLEANING)
        return only

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now_s += seconds

    def wait(self):
        settings = Settings()
        CompactionWaiter(
            self, self.run_next, lambda: settings, self.sleep, lambda: self.now_s
        ).wait(self.entry.id)


DONE = {"state": CompactionState.SUCCEEDED}


def test_a_compaction_that_this_session_runs_needs_no_pause(caplog):
    queue = Queue(replace(ENTRY, type=CompactionType.MAJOR))
    queue.wait()
    assert (queue.runs, queue.pauses, caplog.messages) == (1, [], [])


def test_a_compaction_that_cannot_begin_is_tried_again_after_pauses(caplog):
    queue = Queue(replace(ENTRY, type=CompactionType.MAJOR))
    queue.failures = 3
    queue.wait()
    assert (queue.runs, queue.pauses) == (4, [0.1, 0.2, 0.4])
    assert len(caplog.messages) == 3 and "Compaction 7 waits" in caplog.messages[0]


def test_a_rebalance_that_hive_alone_may_run_is_waited_for_with_growing_pauses(caplog):
    queue = Queue(s1000=DONE)
    queue.wait()
    assert queue.runs == 0  # each try would open a transaction
    assert len(queue.pauses) < 40
    assert len(caplog.messages) == 3 + 16  # after 2, 10 and 30 seconds, then each minute
    for part in (
        "has waited for 2 s for compaction 7 (rebalance of default.t/p=1)",
        "No worker has taken it yet. A worker of Hive must take it",
        "metastore.compactor.worker.threads",
        "ABORT COMPACTIONS 7",
    ):
        assert part in caplog.messages[0]
    assert "has waited for 10 s" in caplog.messages[1]


@pytest.mark.parametrize("abilities", [Abilities(), OF_HIVE])
def test_an_entry_that_the_store_does_not_hand_out_is_tried_again_ever_more_rarely(
    caplog, abilities
):
    queue = Queue(replace(ENTRY, type=CompactionType.MINOR), abilities, takes=False, s1000=DONE)
    queue.wait()
    assert 1 < queue.runs < 40
    assert ("oldest entry" in caplog.messages[0]) == abilities.shared_with_hive


def test_a_metastore_whose_tables_hive_alone_compacts_is_only_waited_for(caplog):
    queue = Queue(replace(ENTRY, type=CompactionType.MAJOR), OF_HIVE_3, s5=DONE)
    queue.wait()
    assert queue.runs == 0 and "A worker of Hive must take it" in caplog.messages[0]


def test_the_worker_that_has_the_compaction_is_named(caplog):
    working = SimpleNamespace(
        state=CompactionState.WORKING, worker_id="h2-9", started_ms=1_000_000, progress="merge 1/2"
    )
    Queue(s0=vars(working), s3=DONE).wait()
    expected = "Worker h2-9 has it since 1970-01-01 00:16:40 UTC (merge 1/2)."
    assert expected in caplog.messages[0]


def test_a_wait_for_a_forgotten_compaction_ends_and_one_that_failed_is_an_error():
    Queue(s1={"state": None}).wait()
    with pytest.raises(WriteError, match="no space"):
        Queue(s1={"state": CompactionState.FAILED, "message": "no space"}).wait()
