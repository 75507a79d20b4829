"""The contract of ``CompactionQueue``: when old files may go, and what is remembered."""

import dataclasses

import pytest
from compaction_steps import (
    FAILED,
    INITIATED,
    MAJOR,
    MINOR,
    READY,
    REBALANCE,
    SUCCEEDED,
    WORKING,
    aborted,
    done,
    failed,
    known,
    lease,
    not_begun,
    queue,
    ready,
    refused,
    shown,
    state,
    succeeded,
    take,
    worker,
)
from contract_base import T, U, begin, each_needs, table

from acidsql.metastore.compaction_queue import Compacted, HistoryRetention
from acidsql.metastore.interface import Commit


@each_needs("can_clean")
class CleaningContract:
    # ── who may still read ───────────────────────────────────────────────────────────────────

    @pytest.mark.parametrize("holder", [begin, lease, worker])
    def test_old_files_stay_until_all_have_ended_who_began_before_the_compaction_ended(
        self, store, holder
    ):
        old = holder(store)
        number = queue(store)
        txn, _ = take(store)
        meanwhile = holder(store)
        store.commit_txn(txn, Commit(compacted=Compacted(number, 1, "")))
        after = holder(store)
        assert ready(store) == []
        store.commit_txn(old)
        assert ready(store) == []
        store.abort_txn(meanwhile)
        assert ready(store) == [number]
        store.commit_txn(after)
        assert ready(store) == [number]

    def test_each_is_held_back_by_its_own_readers_only(self, store):
        first = done(store)
        reader = lease(store)
        second = done(store, U)
        assert ready(store) == [first]
        store.commit_txn(reader)
        assert ready(store) == [first, second]

    def test_old_files_stay_for_a_while_after_the_compaction(self, store, clock):
        number = done(store)
        clock.now += 99
        assert ready(store, 100) == []
        clock.now += 1
        assert ready(store, 100) == [number]

    def test_they_are_cleaned_by_name_and_older_compactions_first(self, store):
        late = done(store, U, highest=9)
        one, two = done(store, T, "p=2"), done(store, T, "p=1")
        early = done(store, U, highest=3)
        assert ready(store) == [two, one, early, late]

    # ── cleaned, or not ──────────────────────────────────────────────────────────────────────

    def test_a_cleaned_compaction_has_succeeded(self, store, clock):
        number = done(store, why="11 deltas", message="read 11 files", highest=5)
        before = shown(store, number)
        clock.now += 7
        for _ in range(2):
            store.mark_compaction_cleaned(number)
            assert shown(store, number) == dataclasses.replace(
                before, state=SUCCEEDED, ended_ms=clock.now
            )
        store.mark_compaction_cleaned(99)
        assert ready(store) == []

    def test_only_what_is_compacted_is_taken_for_cleaned(self, store):
        waiting, taken = queue(store), queue(store, U)
        take(store, only=taken)
        for number in (waiting, taken):
            store.mark_compaction_cleaned(number)
            store.retry_cleaning_later(number, 1, 0, "no")
        assert (state(store, waiting), state(store, taken)) == (INITIATED, WORKING)

    def test_cleaning_that_failed_is_tried_again_after_twice_as_long_each_time(self, store, clock):
        number = done(store, why="11 deltas")
        clock.now += 5000  # it had to wait for a reader: the pause begins now all the same
        for pause in (100, 200, 400, 800):
            store.retry_cleaning_later(number, 100, 4, "disk full")
            assert shown(store, number).retry_retention_ms == pause
            clock.now += pause - 1
            assert ready(store) == []
            clock.now += 1
            assert ready(store) == [number]
        assert shown(store, number).message == "11 deltas; disk full"
        store.retry_cleaning_later(number, 100, 4, "no hope")
        assert (state(store, number), shown(store, number).message) == (FAILED, "no hope")
        assert shown(store, number).ended_ms == clock.now
        assert ready(store) == []

    def test_old_files_stay_as_long_after_a_cleaning_that_failed(self, store, clock):
        number = done(store)
        clock.now += 100
        store.retry_cleaning_later(number, 50, 4, "disk full")
        clock.now += 50
        assert ready(store, 151) == []
        assert ready(store, 150) == [number]

    @pytest.mark.parametrize("pause", [0, 100])
    def test_cleaning_that_may_not_be_tried_again_has_failed(self, store, pause):
        number = done(store)
        store.retry_cleaning_later(number, pause, 0, "disk full")
        assert state(store, number) is FAILED

    def test_cleaning_is_given_up_even_where_there_is_no_pause(self, store):
        number = done(store)
        for _ in range(3):
            assert state(store, number) is READY
            store.retry_cleaning_later(number, 0, 2, "disk full")
        assert state(store, number) is FAILED

    # ── directories of dropped tables ────────────────────────────────────────────────────────

    def test_a_dropped_tables_directory_is_listed_and_is_nobodys_compaction(self, store, clock):
        store.create_table(table(location="/wh/größe 🐘: 1"))
        gone = store.drop_table(T)
        (found,) = store.compactions()
        assert (found.id, found.table, found.partition, found.state) == (gone.id, T, None, READY)
        assert found.properties == {"location": "/wh/größe 🐘: 1"}
        assert store.pending_cleanups() == [gone]
        assert store.ready_to_clean(0) == [] and not store.has_work()
        assert take(store)[1] is None and take(store, only=gone.id)[1] is None
        store.mark_compaction_cleaned(gone.id)
        store.retry_cleaning_later(gone.id, 1, 0, "no")
        assert store.pending_cleanups() == [gone]
        store.mark_cleaned(gone.id)
        assert store.compactions() == []

    def test_a_compaction_with_a_property_location_deletes_no_directory(self, store):
        number = done(store, properties={"location": "/"})
        assert store.pending_cleanups() == []
        store.mark_cleaned(number)
        assert ready(store) == [number]

    # ── the history ──────────────────────────────────────────────────────────────────────────

    def test_of_each_state_so_many_are_kept_of_a_table_or_partition(self, store):
        ends = [succeeded, failed, refused]
        kept = []
        for place in ((T,), (T, "p=1"), (U,)):
            for end, most in zip(ends, (1, 2, 3), strict=True):
                kept += [end(store, *place) for _ in range(4)][-most:]
        waiting = [done(store), queue(store)]
        for _ in range(2):
            store.purge_compaction_history(HistoryRetention(1, 2, 3, 2))
            assert known(store) == {*kept, *waiting}

    def test_what_was_aborted_counts_with_what_was_not_begun(self, store):
        numbers = [
            not_begun(store), aborted(store), not_begun(store), aborted(store), aborted(store),
        ]  # fmt: skip
        store.purge_compaction_history(HistoryRetention(did_not_initiate=2))
        assert known(store) == set(numbers[-2:])

    def test_none_is_kept_where_none_is_wanted(self, store):
        for end in (succeeded, failed, refused, aborted, not_begun):
            end(store)
        store.purge_compaction_history(HistoryRetention(0, 0, 0, 0))
        assert store.compactions() == []

    @pytest.mark.parametrize("end", [failed, refused, not_begun, aborted])
    @pytest.mark.parametrize(
        "kind, after, goes",
        [
            (MAJOR, MAJOR, True),
            (MAJOR, MINOR, False),
            (MINOR, MINOR, True),
            (MINOR, MAJOR, True),
            (REBALANCE, MINOR, False),
            (REBALANCE, REBALANCE, True),
        ],
    )
    def test_what_did_not_succeed_is_forgotten_once_something_as_thorough_has(
        self, store, clock, end, kind, after, goes
    ):
        keep = HistoryRetention(9, 9, 9, 9, timeout_ms=100)
        number = end(store, kind=kind)
        better = succeeded(store, kind=after)
        clock.now += 100
        store.purge_compaction_history(keep)
        assert known(store) == {number, better}
        clock.now += 1
        store.purge_compaction_history(keep)
        assert known(store) == ({better} if goes else {number, better})

    def test_a_success_from_before_or_elsewhere_does_not_make_up_for_a_failure(self, store, clock):
        numbers = {succeeded(store), failed(store), succeeded(store, U), succeeded(store, T, "p=1")}
        clock.now += 10**9
        store.purge_compaction_history(HistoryRetention(timeout_ms=100))
        assert known(store) == numbers

    def test_successes_are_not_forgotten_for_their_age(self, store, clock):
        numbers = {succeeded(store), succeeded(store)}
        clock.now += 10**9
        store.purge_compaction_history(HistoryRetention(timeout_ms=100))
        assert known(store) == numbers
