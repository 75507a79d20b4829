"""The contract of ``CompactionQueue``: what might need a compaction, and under which name."""

from dataclasses import replace

import pytest
from compaction_steps import (
    LONG,
    change,
    done,
    failed,
    known,
    places,
    queue,
    request,
    shown,
    succeeded,
    take,
)
from contract_base import (
    INSERT,
    UPDATE,
    T,
    U,
    begin,
    each_needs,
    on,
    seen,
    shared_read,
    table,
    write,
)

from acidsql.acid.table import Partition, TableName
from acidsql.errors import TxnError
from acidsql.metastore.compaction_queue import Candidate, Compacted
from acidsql.metastore.interface import Commit, Database, LockType


@each_needs("can_initiate")
class CandidateContract:
    # ── what might need one ──────────────────────────────────────────────────────────────────

    def test_what_was_changed_since_it_was_compacted_is_a_candidate(self, store):
        store.create_table(table(U, partitioned=True))
        assert store.candidates() == []
        write(store)
        for partition in ("p=2", "p=1", "p=2"):
            change(store, U, partition)
        assert places(store) == [(T, None), (U, "p=1"), (U, "p=2")]
        # A change is timed by the database's own clock.
        assert all(0 <= one.quiet_ms < 600_000 for one in store.candidates())

    def test_what_was_compacted_and_cleaned_is_no_candidate_until_it_changes(self, store):
        highest = [change(store, U, "p=1"), change(store, U, "p=1")][1]
        change(store, U, "p=2")
        change(store, U)
        change(store, T, "p=1")
        number = done(store, U, "p=1", highest=highest)
        assert (U, "p=1") in places(store)
        store.mark_compaction_cleaned(number)
        assert places(store) == [(T, "p=1"), (U, None), (U, "p=2")]
        succeeded(store, U, highest=100)
        assert places(store) == [(T, "p=1"), (U, "p=2")]
        change(store, U, "p=1")
        assert (U, "p=1") in places(store)

    def test_what_was_changed_above_the_highest_write_id_stays_a_candidate(self, store):
        first = write(store)
        write(store)
        succeeded(store, highest=first)
        assert places(store) == [(T, None)]

    def test_a_statement_that_found_no_rows_to_change_is_forgotten_with_the_rest(self, store):
        txn = begin(store)
        store.lock(txn, [shared_read(operation=INSERT)])
        store.commit_txn(txn)
        succeeded(store)
        assert store.candidates() == []

    # ── aborted data ─────────────────────────────────────────────────────────────────────────

    def test_aborted_transactions_make_a_candidate_and_are_counted(self, store, clock):
        change(store, commit=False)
        clock.now += 70
        txn = begin(store)
        store.lock(txn, [shared_read(operation=kind) for kind in (INSERT, UPDATE)])
        store.lock(txn, [on(LockType.SHARED_READ, U, "p=1", INSERT)])
        for name in (T, U):
            store.allocate_write_id(txn, name)
        change(store)
        store.abort_txn(txn)
        clock.now += 30
        found = [replace(one, quiet_ms=None) for one in store.candidates()]
        assert found == [Candidate(T, None, 2, 100), Candidate(U, "p=1", 1, 30)]

    def test_an_open_transaction_or_one_that_wrote_nothing_makes_no_candidate(self, store):
        waiter, writer = begin(store), begin(store)
        for txn in (waiter, writer):
            store.lock(txn, [shared_read(operation=INSERT)])
        store.allocate_write_id(writer, T)
        store.abort_txn(waiter)
        assert store.candidates() == [] and store.aborted_write_ids(T) == []

    def test_aborted_write_ids_are_those_that_may_have_data_left(self, store):
        numbers = [change(store, T, place, commit=False) for place in ("p=1", None, "p=1")]
        change(store, T, "p=1")
        change(store, U, commit=False)
        assert store.aborted_write_ids(T) == numbers
        assert store.aborted_write_ids(TableName("default", "none")) == []
        for _ in range(2):
            store.forget_aborted(T, numbers[:2])
            assert store.aborted_write_ids(T) == numbers[2:]
        store.forget_aborted(T, [])
        store.forget_aborted(T, range(5000))
        assert store.aborted_write_ids(T) == []
        assert places(store) == [(T, "p=1"), (U, None)]
        assert store.aborted_write_ids(U) == [1]

    def test_what_was_aborted_stays_invisible_when_its_data_is_gone(self, store, clock):
        """A writer that does not know of it may publish after the cleaner has looked."""
        store.create_table(table())
        hidden = write(store, commit=False)
        store.forget_aborted(T, [hidden])
        clock.now += LONG
        store.house_keep(LONG, 0, 0)
        assert not seen(store).is_valid(hidden)

    def test_an_open_transactions_changes_are_not_forgotten(self, store):
        txn = begin(store)
        store.lock(txn, [shared_read(operation=INSERT)])
        write_id = store.allocate_write_id(txn, T)
        store.forget_aborted(T, [write_id])
        store.abort_txn(txn)
        assert store.aborted_write_ids(T) == [write_id]

    # ── tables and partitions that come and go ───────────────────────────────────────────────

    def test_all_that_is_known_follows_a_renamed_table(self, store):
        store.create_database(Database("sales", "/wh/sales.db"))
        moved = TableName("sales", "v")
        store.create_table(table())
        write(store)
        hidden = write(store, commit=False)
        numbers = [failed(store), done(store), queue(store, T, "p=1"), queue(store)]
        txn, _ = take(store)
        other = failed(store, U)
        store.rename_table(T, moved)
        assert {shown(store, number).table for number in numbers} == {moved}
        assert shown(store, other).table == U
        assert places(store) == [(moved, None)]
        assert store.aborted_write_ids(moved) == [hidden]
        assert store.compact(request(moved)).id == numbers[3]
        store.commit_txn(txn, Commit(compacted=Compacted(numbers[2], 1, "")))

    def test_the_directory_of_a_dropped_namesake_stays_when_a_table_is_renamed_or_dropped(
        self, store
    ):
        store.create_table(table())
        first = store.drop_table(T)
        store.create_table(table(location="/wh/other"))
        store.rename_table(T, U)
        assert store.pending_cleanups() == [first]
        store.rename_table(U, T)
        second = store.drop_table(T)
        assert store.pending_cleanups() == [first, second]

    def test_nothing_is_left_of_a_dropped_table_but_its_directory(self, store):
        """A namesake must not be held back by failures that are not its own."""
        store.create_table(table())
        write(store)
        write(store, commit=False)
        gone = [failed(store), done(store), succeeded(store, T, "p=1"), queue(store, T, "p=2")]
        taken = queue(store)
        txn, _ = take(store, only=taken)
        other = queue(store, U)
        pending = store.drop_table(T)
        assert known(store) == {other, pending.id} and pending.id not in gone
        assert store.candidates() == [] and store.aborted_write_ids(T) == []
        store.mark_failed(taken, txn, "its table is gone")
        with pytest.raises(TxnError, match="its table was dropped"):
            store.commit_txn(txn, Commit(compacted=Compacted(taken, 1, "")))

    def test_nothing_is_left_of_a_dropped_partition(self, store):
        store.create_table(table(partitioned=True))
        one, two = Partition(("1",), "/wh/t/p=1"), Partition(("2",), "/wh/t/p=2")
        for partition in (one, two):
            txn = begin(store)
            store.lock(txn, [shared_read(operation=INSERT)])
            store.allocate_write_id(txn, T)
            store.commit_txn(txn, Commit(added_partitions={T: [partition]}))
        for partition in ("p=1", "p=2"):
            failed(store, T, partition)
            done(store, T, partition)
            queue(store, T, partition)
        store.commit_txn(begin(store), Commit(dropped_partitions={T: [("1",)]}))
        assert {one.partition for one in store.compactions()} == {"p=2"}
        assert len(known(store)) == 3
        assert places(store) == [(T, "p=2")]
