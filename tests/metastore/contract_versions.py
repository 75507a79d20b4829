"""The contract of the versions of tables: COMMIT notes them, and nothing that was deleted is lost
sight of."""

import pytest
from contract_base import INSERT, T, U, begin, each_needs, exclusive, on, shared_read, table

from acidsql.acid.table import Partition
from acidsql.errors import CatalogError
from acidsql.metastore.interface import Commit, LockType, Operation
from acidsql.metastore.versions import Change

ADDED = Change(T, "INSERT", "INSERT INTO t VALUES (1)", inserted=1, files=1, bytes=9, partitions=1)
GONE = Change(T, "DELETE", "DELETE FROM t", deleted=1)


def write(store, *changes, name=T, commit=True):
    """A transaction that changes a table. Returns its number and its write id."""
    txn = begin(store, "its statement")
    store.lock(txn, [shared_read(name, INSERT)])
    write_id = store.allocate_write_id(txn, name)
    if commit:
        store.commit_txn(txn, Commit(table_changes=changes))
    else:
        store.abort_txn(txn)
    return txn, write_id


@each_needs("keeps_versions")
class VersionContract:
    def test_a_commit_notes_what_it_changed_and_who_committed_it(self, store, reopen, clock):
        store.create_table(table())
        clock.now += 5
        txn, write_id = write(store, ADDED, GONE)
        second, first = reopen().versions(T)
        assert (first.change, second.change) == (ADDED, GONE)
        for one in (first, second):
            assert (one.txn_id, one.write_id, one.committed_ms) == (txn, write_id, clock.now)
            assert (one.user, one.host) == ("ann", "h1")
        assert first.commit < second.commit

    def test_a_revert_is_noted_as_a_number_beside_its_text_which_is_cut(self, store, reopen):
        store.create_table(table())
        text = f"/* {'x' * 2000} */ REVERT TRANSACTION 7"
        write(store, Change(T, "REVERT TRANSACTION", text, deleted=1, reverted=7))
        (version,) = reopen().versions(T)
        assert version.change.reverted == 7
        assert version.change.statement == text[:1024]

    def test_a_rolled_back_transaction_is_no_version(self, store):
        store.create_table(table())
        write(store, ADDED, commit=False)
        assert store.versions(T) == []

    def test_a_repeated_commit_notes_nothing_twice(self, store):
        store.create_table(table())
        txn, _ = write(store, ADDED)
        store.commit_txn(txn, Commit(table_changes=[ADDED]))  # the first reply was lost
        assert len(store.versions(T)) == 1

    def test_a_commit_that_fails_notes_nothing(self, store):
        store.create_table(table())
        early, late = begin(store), begin(store)
        update = on(LockType.SHARED_WRITE, operation=Operation.UPDATE)
        for txn in (early, late):
            store.lock(txn, [update])
            store.allocate_write_id(txn, T)
        seen = store.valid_txns(late)
        store.commit_txn(early, Commit(table_changes=[ADDED]))
        with pytest.raises(Exception, match="WRITE_CONFLICT"):
            store.commit_txn(late, Commit(snapshot=seen, table_changes=[GONE]))
        assert [one.change for one in store.versions(T)] == [ADDED]

    def test_versions_are_in_the_order_of_the_commits(self, store):
        """Not in the order of the write ids: the first transaction commits last."""
        store.create_table(table())
        first, second = begin(store), begin(store)
        for txn in (first, second):
            store.lock(txn, [shared_read(T, INSERT)])
            store.allocate_write_id(txn, T)
        store.commit_txn(second, Commit(table_changes=[ADDED]))
        store.commit_txn(first, Commit(table_changes=[ADDED]))
        assert [one.write_id for one in store.versions(T)] == [1, 2]

    def test_a_new_table_has_one_version_which_is_empty(self, store):
        txn = begin(store, "CREATE TABLE t …")
        store.commit_txn(txn, Commit(created_table=table()))
        (only,) = store.versions(T)
        assert (only.write_id, only.txn_id) == (0, txn)
        assert only.change == Change(T, "CREATE TABLE", "CREATE TABLE t …")
        assert (store.oldest_version(T), store.first_version(T)) == (0, 0)

    def test_a_table_that_is_made_with_rows_begins_with_them(self, store):
        txn = begin(store)
        store.lock(txn, [exclusive()])
        write_id = store.allocate_write_id(txn, T)
        made = Change(T, "CREATE TABLE AS SELECT", "…", inserted=3)
        store.commit_txn(txn, Commit(created_table=table(), table_changes=[made]))
        (only,) = store.versions(T)
        assert (only.write_id, only.change) == (write_id, made)
        assert store.oldest_version(T) == store.first_version(T) == write_id
        store.forget_versions(T, 9)
        assert store.first_version(T) == write_id

    def test_the_history_of_an_adopted_directory_begins_at_its_last_write_id(self, store):
        store.commit_txn(begin(store), Commit(created_table=table(), first_write_id=8))
        assert [one.write_id for one in store.versions(T)] == [7]
        assert store.oldest_version(T) == store.first_version(T) == 7

    def test_a_new_table_of_an_old_name_begins_anew(self, store):
        store.create_table(table())
        write(store, ADDED)
        identity = store.identity(T)
        store.drop_table(T)
        store.commit_txn(begin(store), Commit(created_table=table(location="/wh/other")))
        assert [one.change.operation for one in store.versions(T)] == ["CREATE TABLE"]
        assert store.oldest_version(T) == 1
        assert store.identity(T) != identity
        _, write_id = write(store, ADDED)
        assert write_id == 2

    def test_versions_follow_a_renamed_table(self, store):
        store.create_table(table())
        _, write_id = write(store, ADDED)
        store.forget_versions(T, 1)
        identity = store.identity(T)
        store.rename_table(T, U)
        assert store.identity(U) == identity
        (only,) = store.versions(U)
        assert (only.write_id, only.change.inserted) == (write_id, 1)
        assert (store.oldest_version(U), list(store.versions(T))) == (1, [])
        with pytest.raises(CatalogError):
            store.oldest_version(T)
        with pytest.raises(CatalogError):
            store.identity(T)

    def test_the_oldest_version_only_grows(self, store, reopen):
        store.create_table(table())
        for oldest, then in ((0, 0), (4, 4), (2, 4), (4, 4), (9, 9)):
            store.forget_versions(T, oldest)
            assert reopen().oldest_version(T) == then
        store.forget_versions(U, 3)  # the table was dropped meanwhile

    def test_no_version_before_a_dropped_partition_can_be_read(self, store):
        store.create_table(table(partitioned=True))
        txn = begin(store)
        store.lock(txn, [shared_read(T, INSERT)])
        store.allocate_write_id(txn, T)
        store.commit_txn(txn, Commit(added_partitions={T: [Partition(("1",), "/wh/t/p=1")]}))
        drops = begin(store)
        store.lock(drops, [on(LockType.EXCLUSIVE, operation=Operation.OVERWRITE)])
        write_id = store.allocate_write_id(drops, T)
        store.commit_txn(drops, Commit(dropped_partitions={T: [("1",)]}))
        assert store.oldest_version(T) == write_id == 2

    def test_a_commit_can_be_found_by_its_time_and_by_its_transaction(self, store, clock):
        store.create_table(table())
        txns, times = [], []
        for _ in range(3):
            clock.now += 10
            times.append(clock.now)
            txns.append(write(store, ADDED)[0])
        numbers = [one.commit for one in reversed(store.versions(T))]
        assert [store.last_commit(until_ms=at) for at in times] == numbers
        assert [store.last_commit(until_ms=at - 1) for at in times] == [None, *numbers[:2]]
        assert [store.last_commit(txn_id=txn) for txn in txns] == numbers
        assert store.last_commit(txn_id=10**6) is None
        assert [store.changed_by(txn) for txn in txns] == [{T: 1}, {T: 2}, {T: 3}]
        assert store.changed_by(10**6) == {}
        assert store.now_ms() == clock.now

    def test_a_clock_that_was_set_back_leaves_no_gap_in_what_is_remembered(self, store, clock):
        store.create_table(table())
        for now in (100, 50, 120):
            clock.now = now
            write(store, ADDED)
        assert store.house_keep(10**9, 0, 60)
        assert [one.write_id for one in store.versions(T)] == [3, 2, 1]

    def test_old_changes_are_forgotten_except_the_newest_of_each_table(self, store, clock):
        for one in (table(), table(U)):
            store.create_table(one)
        write(store, ADDED)
        write(store, Change(U, "INSERT", "…"), name=U)
        clock.now += 100
        write(store, ADDED)
        clock.now += 10
        assert store.house_keep(10**9, 0, 50)
        assert [one.write_id for one in store.versions(T)] == [2]
        assert [one.write_id for one in store.versions(U)] == [1]
        clock.now += 1000
        assert store.house_keep(10**9, 0, 50)
        assert [one.write_id for one in store.versions(T)] == [2]
        assert store.oldest_version(T) == 0  # the files are still there
