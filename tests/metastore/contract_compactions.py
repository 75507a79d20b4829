"""The contract of ``CompactionQueue``: asking for a compaction, taking it, ending it."""

import dataclasses

import pytest
from compaction_steps import (
    ABORTED,
    DID_NOT_INITIATE,
    FAILED,
    INITIATED,
    LONG,
    MAJOR,
    READY,
    REBALANCE,
    REFUSED,
    SUCCEEDED,
    WORKING,
    V,
    aborted,
    done,
    failed,
    known,
    not_begun,
    queue,
    refused,
    request,
    shown,
    state,
    succeeded,
    take,
    worker,
)
from contract_base import T, U, begin, shared_read
from over_hive import needs

from acidsql.errors import NoSuchTxnError, TxnAbortedError, TxnError
from acidsql.metastore.compaction_queue import REQUESTABLE_TYPES, Compacted, CompactionRequest
from acidsql.metastore.interface import Commit, TxnState


class CompactionContract:
    # ── queueing ─────────────────────────────────────────────────────────────────────────────

    @needs("a clock for tests")
    def test_what_is_queued_is_shown_as_it_was_asked_for(self, store, reopen, clock):
        asked = CompactionRequest(
            T, "p=1/q=ä", REBALANCE, "h1-3", {"compactor.x": "a:1", "größe 🐘": "", "": "3:x"},
            "Night", 8, "a DESC, b", "11 deltas",
        )  # fmt: skip
        enqueued = store.compact(asked)
        assert (enqueued.state, enqueued.accepted) == (INITIATED, True)
        (found,) = reopen().compactions()
        assert (found.id, found.table, found.partition) == (enqueued.id, T, "p=1/q=ä")
        assert (found.type, found.state, found.enqueued_ms) == (REBALANCE, INITIATED, clock.now)
        assert (found.initiator_id, found.message) == ("h1-3", "11 deltas")
        assert (found.buckets, found.order_by) == (8, "a DESC, b")
        assert found.properties == asked.properties
        # As in Hive; the pools of workers are compared in this way, too.
        assert found.pool == "night"
        for unknown in ("started_ms", "ended_ms", "worker_id", "txn_id", "committed_ms"):
            assert getattr(found, unknown) is None

    def test_little_is_asked_for_and_nothing_made_up(self, store):
        number = queue(store)
        found = shown(store, number)
        assert (found.partition, found.pool, found.buckets, found.order_by) == (None,) * 4
        assert (found.properties, found.message, found.retry_retention_ms) == ({}, None, 0)

    @needs("can_work")
    @pytest.mark.parametrize("kind", REQUESTABLE_TYPES)
    def test_what_is_queued_or_in_work_is_not_queued_again_whatever_its_type(self, store, kind):
        number = queue(store)
        for expected in (INITIATED, WORKING):
            again = store.compact(request(kind=kind, pool="other"))
            assert (again.id, again.state, again.accepted) == (number, expected, False)
            if expected is INITIATED:
                take(store)
        assert known(store) == {number}

    @needs("numbers from one")
    def test_other_tables_and_partitions_are_queued_beside_it(self, store):
        numbers = [queue(store, *place) for place in ((T,), (U,), (T, "p=1"), (T, "p=2"))]
        assert numbers == [1, 2, 3, 4]
        assert not store.compact(request(T, "p=2")).accepted

    @needs("can_work")
    @pytest.mark.parametrize(
        "end",
        [
            done, failed, refused, aborted,
            pytest.param(succeeded, marks=needs("can_clean")),
            pytest.param(not_begun, marks=needs("can_initiate")),
        ],
    )  # fmt: skip
    def test_what_has_ended_or_waits_for_the_cleaner_can_be_queued_again(self, store, end):
        number = end(store)
        assert queue(store) != number

    @needs("any text")
    def test_texts_of_any_length_can_be_kept(self, store):
        number = queue(
            store, pool="p" * 500, why="w" * 100_000, order_by="a, " * 50_000 + "b",
            properties={"k" * 5000: "v" * 100_000},
        )  # fmt: skip
        store.did_not_initiate(dataclasses.replace(request(U), initiator_id="h" * 500), "m" * 10**5)
        store.did_not_initiate(dataclasses.replace(request(U), initiator_id="h" * 500), "m" * 10**5)
        assert len(known(store)) == 2
        txn = worker(store)
        taken = store.take_next(txn, "w" * 500, pool="P" * 500)
        assert taken.order_by == "a, " * 50_000 + "b", "half of it would sort otherwise"
        assert taken.properties == {"k" * 5000: "v" * 100_000}
        assert taken.worker_id == "w" * 128
        store.commit_txn(txn, Commit(compacted=Compacted(number, 1, "m" * 100_000)))
        store.retry_cleaning_later(number, 1, 5, "x" * 100_000)
        failed(store, U, why="y" * 100_000)

    # ── taking ───────────────────────────────────────────────────────────────────────────────

    @needs("can_work")
    def test_the_oldest_is_taken_with_who_takes_it(self, store):
        first, second = queue(store), queue(store, U, "p=1")
        txn, taken = take(store)
        assert (taken.id, taken.table, taken.partition) == (first, T, None)
        assert (taken.type, taken.state) == (MAJOR, WORKING)
        assert (taken.txn_id, taken.worker_id) == (txn, "h1-7")
        store.begin_compaction(first, txn, 1)
        found = shown(store, first)
        assert (found.state, found.txn_id, found.worker_id) == (WORKING, txn, "h1-7")
        _, taken = take(store)
        assert (taken.id, taken.table, taken.partition) == (second, U, "p=1")
        assert take(store)[1] is None

    @needs("a clock for tests")
    def test_who_takes_an_entry_and_when_is_shown(self, store, clock):
        first, second = queue(store), queue(store, U)
        clock.now += 5
        txn, taken = take(store)
        assert (taken.id, taken.state, taken.worker_id) == (first, WORKING, "h1-7")
        assert (taken.txn_id, taken.started_ms) == (txn, clock.now)
        assert shown(store, first) == taken
        assert take(store)[1].id == second
        assert take(store)[1] is None

    @needs("can_work")
    def test_there_is_work_exactly_when_somebody_would_get_it(self, store):
        assert not store.has_work()
        queue(store)
        assert store.has_work() and not store.has_work(pool="night")
        take(store)
        assert not store.has_work()

    @needs("can_work")
    def test_only_the_entry_that_is_wanted_is_taken(self, store):
        first, second = queue(store), queue(store, U, pool="night")
        assert take(store, only=second)[1].id == second
        assert take(store, only=second)[1] is None
        assert take(store, only=99)[1] is None
        assert state(store, first) is INITIATED

    @needs("entries for open transactions alone")
    def test_who_has_no_open_transaction_gets_nothing(self, store):
        queue(store)
        dead = worker(store)
        store.abort_txn(dead)
        with pytest.raises(TxnAbortedError):
            store.take_next(dead, "h1-7")
        with pytest.raises(NoSuchTxnError):
            store.take_next(99, "h1-7")
        assert store.has_work()

    # ── pools ────────────────────────────────────────────────────────────────────────────────

    @needs("can_work")
    def test_a_pools_workers_take_what_was_queued_there_and_nothing_else(self, store):
        queue(store)
        theirs = queue(store, U, pool="night")
        assert take(store, pool="day")[1] is None
        assert store.has_work(pool="night") and not store.has_work(pool="day")
        assert take(store, pool="night")[1].id == theirs
        assert take(store, pool="night")[1] is None

    @needs("pools in letters of any case")
    def test_the_names_of_pools_are_the_same_in_letters_of_any_case(self, store):
        theirs = queue(store, U, pool="Night")
        assert store.has_work(pool="NIGHT")
        assert take(store, pool="night")[1].id == theirs

    @needs("a clock for tests")
    def test_workers_of_no_pool_take_what_no_pools_workers_took_for_long(self, store, clock):
        own = [queue(store, U, pool="night")]
        clock.now += 60
        queue(store, U, "p=1", pool="night")
        clock.now += 40
        assert take(store)[1] is None and not store.has_work()
        assert take(store, pool_timeout_ms=100)[1] is None
        clock.now += 1
        assert store.has_work(pool_timeout_ms=100)
        assert take(store, pool_timeout_ms=100)[1].id == own[0]
        assert not store.has_work(pool_timeout_ms=100)
        assert take(store, pool_timeout_ms=100)[1] is None
        assert take(store, pool="day", pool_timeout_ms=0)[1] is None

    # ── ending it ────────────────────────────────────────────────────────────────────────────

    @needs("can_work")
    def test_a_compaction_is_ready_for_cleaning_once_it_is_committed(self, store):
        number = queue(store)
        txn, _ = take(store)
        store.begin_compaction(number, txn, 17)
        assert state(store, number) is WORKING
        later = begin(store)
        store.commit_txn(txn, Commit(compacted=Compacted(number, 17, "read 11 files")))
        found = shown(store, number)
        assert (found.state, found.highest_write_id) == (READY, 17)
        assert found.txn_id == txn
        assert found.next_txn_id in (later, later + 1)  # Hive says the first, the embedded one more
        assert txn not in store.valid_txns().open

    @needs("a clock for tests")
    def test_what_a_worker_said_is_shown_with_the_time_of_its_commit(self, store, clock):
        number = queue(store, why="11 deltas")
        txn, _ = take(store)
        later = begin(store)
        clock.now += 9
        store.commit_txn(txn, Commit(compacted=Compacted(number, 17, "read 11 files")))
        found = shown(store, number)
        assert (found.state, found.highest_write_id) == (READY, 17)
        assert (found.committed_ms, found.next_txn_id) == (clock.now, later + 1)
        assert (found.txn_id, found.worker_id) == (txn, "h1-7")
        assert found.message == "11 deltas; read 11 files"
        assert store.txn_state(txn) is TxnState.COMMITTED

    @needs("commits in one step")
    def test_a_commit_whose_reply_was_lost_can_be_repeated(self, store):
        number = queue(store)
        txn, _ = take(store)
        compacted = Compacted(number, 1, "read")
        for _ in range(2):
            store.commit_txn(txn, Commit(compacted=compacted))
        assert shown(store, number).message == "read"
        store.mark_compaction_cleaned(number)
        store.commit_txn(txn, Commit(compacted=compacted))
        assert state(store, number) is SUCCEEDED

    @needs("can_work")
    def test_who_lost_a_compaction_commits_nothing(self, store):
        number = queue(store)
        txn, _ = take(store)
        store.begin_compaction(number, txn, 1)
        store.lock(txn, [shared_read()])
        store.queue_again(number, txn)
        other, taken = take(store)
        store.begin_compaction(taken.id, other, 1)
        for lost in (number, 99):
            with pytest.raises(TxnError) as caught:
                store.commit_txn(txn, Commit(compacted=Compacted(lost, 1, "")))
            assert caught.value.getCondition() == "COMPACTION_LOST"
            assert caught.value.getSqlState() == "40001"
        assert store.txn_state(txn) is TxnState.OPEN
        assert [lock.txn_id for lock in store.show_locks()] == [txn]
        assert (shown(store, taken.id).txn_id, state(store, taken.id)) == (other, WORKING)

    @needs("can_work")
    @pytest.mark.parametrize("end, expected", [("mark_failed", FAILED), ("mark_refused", REFUSED)])
    def test_a_compaction_that_was_not_done_becomes_history_with_the_reason(
        self, store, end, expected
    ):
        number = queue(store)
        txn, _ = take(store)
        store.begin_compaction(number, txn, 1)
        for _ in range(2):
            getattr(store, end)(number, txn, "because")
            found = shown(store, number)
            assert (found.state, found.message) == (expected, "because")
            assert (found.txn_id, found.worker_id) == (txn, "h1-7")
        assert not store.has_work()
        store.commit_txn(txn)

    @needs("a clock for tests")
    @pytest.mark.parametrize("end, expected", [("mark_failed", FAILED), ("mark_refused", REFUSED)])
    def test_of_a_compaction_that_was_not_done_all_is_kept_with_the_time_of_its_end(
        self, store, clock, end, expected
    ):
        number = queue(store, why="11 deltas")
        txn, taken = take(store)
        clock.now += 3
        for _ in range(2):
            getattr(store, end)(number, txn, "because")
            found = shown(store, number)
            assert found == dataclasses.replace(
                taken, state=expected, ended_ms=clock.now, message="because"
            )
        store.commit_txn(txn)

    @needs("can_work")
    def test_a_worker_cannot_end_what_is_somebody_elses_by_now(self, store, reopen):
        number = queue(store)
        txn, _ = take(store)
        store.begin_compaction(number, txn, 1)
        store.abort_txn(txn)
        another = reopen()
        assert another.revoke(LONG) == [number]
        other, taken = take(another)
        another.begin_compaction(taken.id, other, 1)
        for end in (store.mark_failed, store.mark_refused):
            end(number, txn, "late")
        store.queue_again(number, txn)
        assert (shown(store, taken.id).txn_id, state(store, taken.id)) == (other, WORKING)
        assert not store.has_work()
        another.commit_txn(other, Commit(compacted=Compacted(taken.id, 1, "")))
        assert state(store, taken.id) is READY

    @needs("entries that are queued again as they were")
    def test_an_end_that_is_told_late_changes_nothing(self, store):
        number = queue(store)
        txn, _ = take(store)
        store.abort_txn(txn)
        assert store.revoke(LONG) == [number]
        other, taken = take(store)
        for end in (store.mark_failed, store.mark_refused):
            end(number, txn, "late")
            end(99, txn, "nothing")
        store.queue_again(number, txn)
        assert shown(store, number) == taken
        store.commit_txn(other, Commit(compacted=Compacted(number, 1, "")))
        for end in (store.mark_failed, store.mark_refused):
            end(number, other, "late")
        store.queue_again(number, other)
        assert state(store, number) is READY

    @needs("can_work")
    def test_what_is_given_back_is_taken_by_the_next(self, store):
        number = queue(store, pool="night", buckets=3, properties={"compactor.x": "1"})
        txn, before = take(store, pool="night")
        store.begin_compaction(number, txn, 1)
        for _ in range(2):
            store.queue_again(number, txn)
        store.abort_txn(txn)
        _, taken = take(store, pool="night")
        for what in ("table", "partition", "type", "pool", "buckets", "properties", "order_by"):
            assert getattr(taken, what) == getattr(before, what)
        assert take(store, pool="night")[1] is None

    @needs("entries that are queued again as they were")
    def test_what_is_given_back_is_as_it_was_before(self, store):
        number = queue(store, why="11 deltas", pool="night")
        before = shown(store, number)
        txn, _ = take(store, pool="night")
        for _ in range(2):
            store.queue_again(number, txn)
            assert shown(store, number) == before

    @needs("can_work")
    def test_what_a_worker_does_is_told_until_its_work_has_ended(self, store):
        first = queue(store)
        txn, _ = take(store)
        store.begin_compaction(first, txn, 1)
        other = worker(store)
        for told in ("merge 1/2, 1 run, 3.1 MB", "publish 5.0 MB"):
            store.note_progress(first, txn, told)
            store.note_progress(first, other, "not its own")
            store.note_progress(99, txn, "of nothing")
            assert shown(store, first).progress == told
        store.queue_again(first, txn)
        txn, again = take(store)
        assert shown(store, again.id).progress is again.progress is None
        store.begin_compaction(again.id, txn, 1)
        store.note_progress(again.id, txn, "merge 1/2")
        store.commit_txn(txn, Commit(compacted=Compacted(again.id, 1, "")))
        store.note_progress(again.id, txn, "late")
        assert (state(store, again.id), shown(store, again.id).progress) == (READY, None)
        second = queue(store)
        txn, _ = take(store)
        store.begin_compaction(second, txn, 1)
        store.note_progress(second, txn, "spread 1/2")
        store.mark_failed(second, txn, "broken")
        assert (state(store, second), shown(store, second).progress) == (FAILED, None)

    # ── workers that are lost ────────────────────────────────────────────────────────────────

    @needs("can_work")
    @pytest.mark.parametrize("end", ["abort_txn", "commit_txn"])
    def test_what_a_transaction_had_that_has_ended_is_queued_again(self, store, reopen, end):
        number, others = queue(store), reopen()
        txn, before = take(store)
        store.begin_compaction(number, txn, 1)
        assert others.revoke(LONG) == []
        getattr(store, end)(txn)
        assert others.revoke(LONG) == [number]
        assert others.revoke(LONG) == []
        _, taken = take(others)
        assert (taken.table, taken.type) == (before.table, before.type)
        assert take(others)[1] is None

    @needs("entries that are queued again as they were")
    @pytest.mark.parametrize("end", ["abort_txn", "commit_txn"])
    def test_what_is_queued_again_is_as_it_was(self, store, end):
        number = queue(store, why="11 deltas")
        before = shown(store, number)
        txn, _ = take(store)
        assert store.revoke(LONG) == []
        getattr(store, end)(txn)
        assert store.revoke(LONG) == [number]
        assert store.revoke(LONG) == []
        assert shown(store, number) == before

    @needs("a clock for tests")
    def test_what_a_worker_had_whose_heartbeat_stopped_is_queued_again(self, store, clock):
        queue(store)
        take(store)
        clock.now += 101
        store.abort_timed_out(100)
        store.revoke(LONG)
        assert take(store)[1] is not None

    @needs("house keeping by sessions")
    def test_what_a_transaction_had_that_is_forgotten_is_queued_again(self, store, clock):
        number = queue(store)
        txn, _ = take(store)
        store.commit_txn(txn)
        clock.now += 1
        store.house_keep(LONG, 0, 0)
        assert store.txn_state(txn) is None
        assert store.revoke(LONG) == [number]

    @needs("a clock for tests")
    def test_what_takes_too_long_is_queued_again_and_its_transaction_aborted(self, store, clock):
        slow = queue(store)
        txn, _ = take(store)
        clock.now += 60
        quick = queue(store, U)
        other, _ = take(store)
        clock.now += 40
        assert store.revoke(100) == []
        clock.now += 1
        assert store.revoke(100) == [slow]
        assert store.txn_state(txn) is TxnState.ABORTED
        assert store.txn_state(other) is TxnState.OPEN
        assert (state(store, slow), state(store, quick)) == (INITIATED, WORKING)
        with pytest.raises(TxnAbortedError, match=r"hive\.compactor\.worker\.timeout"):
            store.commit_txn(txn, Commit(compacted=Compacted(slow, 1, "")))

    def test_an_aborted_compaction_is_never_forgotten_since_its_number_hides_what_it_wrote(
        self, store, clock
    ):
        """``base_5_v17`` has a valid write id, so only the number of its transaction hides it."""
        txn = worker(store)
        store.abort_txn(txn)
        clock.now += LONG
        store.house_keep(LONG, 0, 0)
        assert store.valid_txns().is_aborted(txn)

    # ── what is not begun, or not wanted any more ────────────────────────────────────────────

    @needs("can_initiate")
    def test_why_something_was_not_queued_is_noted_once(self, store, clock):
        first = not_begun(store, message="too many failures")
        found = shown(store, first)
        assert (found.state, found.message) == (DID_NOT_INITIATE, "too many failures")
        assert (found.enqueued_ms, found.ended_ms) == (clock.now, clock.now)
        store.did_not_initiate(request(), "too many failures")
        assert known(store) == {first}
        other = not_begun(store, message="no_auto_compaction")
        again = not_begun(store, message="too many failures")
        not_begun(store, T, "p=1", message="too many failures")
        assert first < other < again
        failed(store)
        assert not_begun(store, message="it broke") > again

    @needs("can_work")
    def test_what_nobody_works_on_is_taken_out_of_the_queue_and_nothing_else(self, store):
        ended, old, taken = done(store, T, "p=1"), failed(store, T, "p=2"), queue(store, U)
        take(store, only=taken)
        waiting = queue(store)
        answer = {waiting: INITIATED, taken: WORKING, ended: READY, old: FAILED, 99_999: None}
        assert store.abort_compactions(list(answer)) == answer
        found = {one.id: one.state for one in store.compactions()}
        assert found == {waiting: ABORTED, taken: WORKING, ended: READY, old: FAILED}
        assert not store.has_work()
        assert store.abort_compactions([]) == {}

    @needs("queues_cleanups")
    def test_only_what_nobody_works_on_is_taken_out_of_the_queue(self, store, clock):
        waiting, taken = queue(store, why="11 deltas"), queue(store, U)
        take(store, only=taken)
        waits, old = done(store, T, "p=1"), failed(store, T, "p=2")
        directory = store.queue_cleanup(V, "/wh/v").id
        asked = [waiting, taken, waits, old, directory, 99, waiting]
        answer = {
            waiting: INITIATED, taken: WORKING, waits: READY, old: FAILED, directory: READY,
            99: None,
        }  # fmt: skip
        assert store.abort_compactions(asked) == answer
        found = shown(store, waiting)
        assert (found.state, found.message, found.ended_ms) == (ABORTED, "11 deltas", clock.now)
        assert store.abort_compactions(asked) == {**answer, waiting: ABORTED}
        assert take(store)[1] is None
        assert store.abort_compactions([]) == {}

    @needs("a clock for tests")
    def test_what_happened_last_is_shown_first(self, store, clock):
        oldest = queue(store)
        clock.now += 1
        waiting = queue(store, T, "p=1")
        directory = store.queue_cleanup(V, "/wh/v").id
        clock.now += 1
        ended = failed(store, U)
        clock.now += 1
        begun = queue(store, U, "p=1")
        take(store, only=begun)
        clock.now += 1
        committed = done(store, U, "p=2")
        found = [one.id for one in store.compactions()]
        assert found == [committed, begun, ended, oldest, waiting, directory]

    def test_states_have_hives_names(self):
        assert READY.shown == "ready for cleaning" and DID_NOT_INITIATE.shown == "did not initiate"
