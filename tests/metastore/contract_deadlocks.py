"""The contract of ``check_lock`` if transactions wait for each other in a circle."""

import pytest
from contract_base import T, U, begin, every_day, exclusive, on, shared_read
from over_hive import needs

from acidsql.acid.table import TableName
from acidsql.errors import TxnAbortedError
from acidsql.metastore.interface import LockState, LockType, TxnState

V, W = TableName("default", "v"), TableName("default", "w")
EXCL_WRITE = LockType.EXCL_WRITE


def ring(store, tables):
    """Transaction i holds table i and waits for table i + 1: (transactions, waiting locks)."""
    txns = [begin(store) for _ in tables]
    for txn, name in zip(txns, tables, strict=True):
        store.lock(txn, [exclusive(name)])
    wanted = [*tables[1:], tables[0]]
    locks = [
        store.lock(txn, [exclusive(name)]).lock_id for txn, name in zip(txns, wanted, strict=True)
    ]
    return txns, locks


def states(store, txns):
    return [store.txn_state(txn) for txn in txns]


def reason(store, txn):
    (shown,) = (info.meta_info for info in store.show_txns() if info.txn_id == txn)
    return shown


@every_day
class DeadlockContract:
    @needs("reasons of aborts")
    def test_the_youngest_of_a_circle_is_aborted_and_the_other_goes_on_at_once(self, store):
        (old, young), (lock, _) = ring(store, [T, U])
        assert store.check_lock(old, lock).state is LockState.ACQUIRED
        assert states(store, [old, young]) == [TxnState.OPEN, TxnState.ABORTED]
        assert reason(store, young) == (
            f"deadlock: it waited for transaction {old} and transaction {old} for it"
        )
        assert {held.txn_id for held in store.show_locks()} == {old}
        with pytest.raises(TxnAbortedError, match="deadlock"):
            store.commit_txn(young)

    def test_the_youngest_is_told_and_its_abort_is_kept(self, store, reopen):
        (old, young), (lock, own_lock) = ring(store, [T, U])
        with pytest.raises(TxnAbortedError, match=f"deadlock: it waited for transaction {old} "):
            store.check_lock(young, own_lock)
        assert reopen().txn_state(young) is TxnState.ABORTED
        assert store.check_lock(old, lock).state is LockState.ACQUIRED

    @needs("reasons of aborts")
    @pytest.mark.parametrize("looks", [0, 1, 2, 3])
    def test_a_circle_of_four_is_broken_by_whoever_looks(self, store, looks):
        txns, locks = ring(store, [T, U, V, W])
        if looks == 3:
            with pytest.raises(TxnAbortedError):
                store.check_lock(txns[looks], locks[looks])
        else:
            store.check_lock(txns[looks], locks[looks])
        assert states(store, txns) == [TxnState.OPEN] * 3 + [TxnState.ABORTED]
        assert reason(store, txns[3]) == (
            f"deadlock: it waited for transaction {txns[0]}, transaction {txns[0]} for "
            f"transaction {txns[1]}, transaction {txns[1]} for transaction {txns[2]} and "
            f"transaction {txns[2]} for it"
        )

    def test_two_readers_that_both_want_to_write_are_a_circle(self, store):
        one, two = begin(store), begin(store)
        for txn in (one, two):
            store.lock(txn, [shared_read()])
        lock = store.lock(one, [exclusive()]).lock_id
        store.lock(two, [exclusive()])
        assert store.check_lock(one, lock).state is LockState.ACQUIRED
        assert states(store, [one, two]) == [TxnState.OPEN, TxnState.ABORTED]

    def test_a_waiter_in_the_queue_may_close_the_circle(self, store):
        """No lock overtakes: a reader behind a waiting DROP waits for the DROP, not for the older
        reader."""
        reader, dropper = begin(store), begin(store)
        store.lock(reader, [shared_read()])
        drop = store.lock(dropper, [exclusive()]).lock_id
        again = store.lock(reader, [on(EXCL_WRITE)])
        assert again.blocked_by.txn_id == dropper
        with pytest.raises(TxnAbortedError):
            store.check_lock(dropper, drop)
        assert store.check_lock(reader, again.lock_id).state is LockState.ACQUIRED

    def test_all_circles_through_a_transaction_are_broken_in_one_look(self, store):
        old, one, two = begin(store), begin(store), begin(store)
        store.lock(old, [exclusive(T)])
        for txn, name in ((one, U), (two, V)):
            store.lock(txn, [exclusive(name)])
            store.lock(txn, [shared_read(T)])
        lock = store.lock(old, [exclusive(U), exclusive(V)]).lock_id
        assert store.check_lock(old, lock).state is LockState.ACQUIRED
        assert states(store, [old, one, two]) == [TxnState.OPEN] + [TxnState.ABORTED] * 2

    def test_whoever_only_waits_for_a_circle_is_no_part_of_it(self, store):
        txns, locks = ring(store, [T, U])
        bystander = begin(store)
        lock = store.lock(bystander, [exclusive(T)]).lock_id
        assert store.check_lock(bystander, lock).state is LockState.WAITING
        assert states(store, [*txns, bystander]) == [TxnState.OPEN] * 3
        store.check_lock(txns[0], locks[0])
        assert states(store, [*txns, bystander]) == [
            TxnState.OPEN, TxnState.ABORTED, TxnState.OPEN,
        ]  # fmt: skip

    def test_a_queue_without_a_circle_costs_nobody_his_transaction(self, store):
        txns = [begin(store) for _ in range(6)]
        store.lock(txns[0], [exclusive()])
        kinds = [shared_read(), exclusive(), on(EXCL_WRITE), shared_read(), exclusive()]
        locks = [store.lock(txn, [kind]).lock_id for txn, kind in zip(txns[1:], kinds, strict=True)]
        for _ in range(2):
            for txn, lock in zip(txns[1:], locks, strict=True):
                assert store.check_lock(txn, lock).state is LockState.WAITING
        assert states(store, txns) == [TxnState.OPEN] * 6

    def test_a_lock_that_is_no_longer_asked_for_closes_no_circle(self, store):
        (old, young), (lock, own_lock) = ring(store, [T, U])
        store.unlock(old, lock)
        assert store.check_lock(young, own_lock).state is LockState.WAITING
        store.commit_txn(old)
        assert store.check_lock(young, own_lock).state is LockState.ACQUIRED

    def test_other_partitions_are_no_circle(self, store):
        one, two = begin(store), begin(store)
        store.lock(one, [on(EXCL_WRITE, partition="p=1")])
        store.lock(two, [on(EXCL_WRITE, partition="p=2"), on(EXCL_WRITE, U)])
        lock = store.lock(one, [on(EXCL_WRITE, partition="p=1"), on(EXCL_WRITE, U)]).lock_id
        assert store.check_lock(one, lock).state is LockState.WAITING
        assert states(store, [one, two]) == [TxnState.OPEN] * 2
