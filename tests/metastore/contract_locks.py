"""The contract of ``TxnStore``'s locks: Hive 4.0's matrix, order, all or nothing."""

import itertools

import pytest
from contract_base import INSERT, SELECT, UPDATE, T, U, begin, every_day, exclusive, on, shared_read
from over_hive import needs

from acidsql.errors import TxnError
from acidsql.metastore.interface import LockComponent, LockState, LockType

READ, WRITE = LockType.SHARED_READ, LockType.SHARED_WRITE
EXCL_WRITE, EXCLUSIVE = LockType.EXCL_WRITE, LockType.EXCLUSIVE

# hive-transactions.md §4.2, "4.0": requested, then whether it waits for r, w, x, e.
MATRIX = {
    READ: (False, False, False, True),
    WRITE: (False, False, True, True),
    EXCL_WRITE: (False, True, True, True),
    EXCLUSIVE: (True, True, True, True),
}
PAIRS = [
    pytest.param(
        requested, earlier, waits,
        marks=[needs("writers side by side")] if requested is earlier is WRITE else [],
    )
    for requested, row in MATRIX.items()
    for earlier, waits in zip((READ, WRITE, EXCL_WRITE, EXCLUSIVE), row, strict=True)
]  # fmt: skip

# (table, partition) of both, and whether they overlap
SCOPES = [
    (("t", None), ("t", None), True),
    (("t", "p=1"), ("t", None), True),
    (("t", None), ("t", "p=1"), True),
    (("t", "p=1"), ("t", "p=1"), True),
    (("t", "p=1"), ("t", "p=2"), False),
    (("t", None), ("u", None), False),
    ((None, None), ("t", None), True),
    (("t", "p=1"), (None, None), True),
    ((None, None), (None, None), True),
]


def waits(response):
    return response.state is LockState.WAITING


@every_day
class LockContract:
    @pytest.mark.parametrize("requested, earlier, expected", PAIRS)
    def test_a_lock_waits_as_in_hive_4(self, store, requested, earlier, expected):
        first, second = begin(store), begin(store)
        store.lock(first, [on(earlier)])
        response = store.lock(second, [on(requested)])
        assert waits(response) is expected
        if expected:
            assert response.blocked_by.txn_id == first
            store.commit_txn(first)
            assert not waits(store.check_lock(second, response.lock_id))

    @pytest.mark.parametrize("requested, earlier, expected", PAIRS)
    def test_a_waiting_lock_is_in_the_way_as_much_as_a_granted_one(
        self, store, requested, earlier, expected
    ):
        """No lock overtakes: otherwise a stream of readers would keep a DROP waiting for ever."""
        holder, second, third = begin(store), begin(store), begin(store)
        # ``earlier`` waits for this partition, and ``requested`` has nothing to do with it.
        store.lock(holder, [on(EXCLUSIVE, partition="p=1")])
        middle = store.lock(second, [on(EXCLUSIVE, partition="p=1"), on(earlier, U)])
        assert waits(middle)
        assert waits(store.lock(third, [on(requested, U)])) is expected

    @pytest.mark.parametrize("one, other, common", SCOPES)
    def test_locks_meet_only_on_a_common_thing(self, store, one, other, common):
        first, second = begin(store), begin(store)
        store.lock(first, [LockComponent(EXCL_WRITE, "default", *one)])
        assert waits(store.lock(second, [LockComponent(EXCL_WRITE, "default", *other)])) is common

    @pytest.mark.parametrize("inside", [("t", None), ("t", "p=1")])
    def test_using_a_database_and_dropping_a_table_in_it_do_not_meet(self, store, inside):
        """In Hive CREATE TABLE takes SHARED_READ on the database (Hive's footnotes)."""
        of_database = LockComponent(READ, "default")
        of_table = LockComponent(EXCLUSIVE, "default", *inside)
        for first, second in itertools.permutations([of_database, of_table]):
            one, two = begin(store), begin(store)
            store.lock(one, [first])
            assert not waits(store.lock(two, [second]))
            store.abort_txn(one)
            store.abort_txn(two)

    def test_dropping_a_database_waits_for_everything_in_it(self, store):
        one, two = begin(store), begin(store)
        store.lock(one, [shared_read()])
        assert waits(store.lock(two, [LockComponent(EXCLUSIVE, "default")]))

    def test_databases_do_not_meet(self, store):
        one, two = begin(store), begin(store)
        store.lock(one, [LockComponent(EXCLUSIVE, "a", "t")])
        assert not waits(store.lock(two, [LockComponent(EXCLUSIVE, "b", "t")]))

    def test_a_transaction_never_waits_for_itself(self, store):
        txn = begin(store)
        store.lock(txn, [shared_read()])
        assert not waits(store.lock(txn, [exclusive()]))

    @pytest.mark.parametrize("again", [READ, WRITE, EXCL_WRITE])
    @pytest.mark.parametrize("partition", [None, "p=1"])
    def test_who_holds_a_lock_gets_as_much_again_though_somebody_waits(
        self, store, again, partition
    ):
        """BEGIN; UPDATE t; UPDATE t: a lock that waits in between waits for this very
        transaction."""
        holder, waiter = begin(store), begin(store)
        store.lock(holder, [on(EXCL_WRITE)])
        waiting = store.lock(waiter, [exclusive()]).lock_id
        assert not waits(store.lock(holder, [on(again, partition=partition)]))
        assert waits(store.check_lock(waiter, waiting))

    @pytest.mark.parametrize(
        "held, wanted",
        [
            (on(EXCL_WRITE, partition="p=1"), on(EXCL_WRITE)),
            (on(EXCL_WRITE, partition="p=1"), on(EXCL_WRITE, partition="p=2")),
            (on(READ), on(EXCL_WRITE)),
            (LockComponent(READ, "default"), on(READ)),
        ],
    )
    def test_who_holds_less_waits_in_the_queue_like_everybody(self, store, held, wanted):
        holder, waiter = begin(store), begin(store)
        store.lock(holder, [held, on(READ, U)])
        store.lock(waiter, [exclusive(), exclusive(U)])
        assert waits(store.lock(holder, [wanted]))

    def test_all_components_are_granted_or_none(self, store):
        one, two, three = begin(store), begin(store), begin(store)
        store.lock(one, [exclusive(U)])
        response = store.lock(two, [exclusive(T), exclusive(U)])
        states = [lock.state for lock in store.show_locks() if lock.txn_id == two]
        assert states == [LockState.WAITING] * 2
        assert waits(store.lock(three, [shared_read(T)]))
        store.abort_txn(one)
        assert not waits(store.check_lock(two, response.lock_id))

    def test_a_later_lock_of_an_earlier_transaction_waits(self, store):
        """The order of the locks counts, not the order of the transactions."""
        early, late = begin(store), begin(store)
        store.lock(late, [exclusive()])
        assert waits(store.lock(early, [exclusive()]))

    def test_components_on_one_thing_are_merged_to_the_strongest(self, store):
        txn = begin(store)
        store.lock(txn, [on(READ), on(EXCL_WRITE), on(WRITE), on(READ, U)])
        shown = {(lock.table, lock.lock_type) for lock in store.show_locks()}
        assert shown == {("t", EXCL_WRITE), ("u", READ)}

    @needs("a clock for tests")
    def test_a_lock_is_shown_with_who_holds_it_and_who_blocks_it(self, store, clock):
        one, two = begin(store, "DELETE FROM t"), begin(store)
        clock.now += 7
        first = store.lock(one, [on(EXCL_WRITE, partition="p=1")])
        second = store.lock(two, [on(EXCL_WRITE)])
        holder, waiter = store.show_locks()
        assert (holder.lock_id, holder.internal_id, holder.txn_id) == (first.lock_id, 1, one)
        assert (holder.database, holder.table, holder.partition) == ("default", "t", "p=1")
        assert (holder.user, holder.host, holder.agent_info) == ("ann", "h1", "DELETE FROM t")
        assert (holder.acquired_at_ms, holder.blocked_by) == (1_000_007, None)
        assert (waiter.acquired_at_ms, waiter.blocked_by) == (None, (first.lock_id, 1))
        assert second.blocked_by == holder
        store.commit_txn(one)
        store.check_lock(two, second.lock_id)
        assert store.show_locks()[0].blocked_by is None

    @needs("the statement of a transaction")
    def test_a_lock_is_shown_with_the_statement_that_asked_for_it(self, store):
        txn = begin(store, "BEGIN")
        statements = ["INSERT INTO t " + "x" * 5000, "DELETE FROM u"]
        store.lock(txn, [shared_read()], agent_info=statements[0])
        store.lock(txn, [shared_read(U)], agent_info=statements[1])
        store.lock(txn, [shared_read(T)])
        shown = [(lock.table, lock.agent_info) for lock in store.show_locks()]
        assert [table for table, _ in shown] == ["t", "u", "t"]
        assert statements[0].startswith(shown[0][1]) and len(shown[0][1]) > 500
        assert [info for _, info in shown[1:]] == [statements[1]] * 2
        assert [info.agent_info for info in store.show_txns()] == [statements[1]]

    @pytest.mark.parametrize("end", ["commit_txn", "abort_txn"])
    def test_locks_go_with_their_transaction(self, store, end):
        txn = begin(store)
        store.lock(txn, [exclusive(), exclusive(U)])
        getattr(store, end)(txn)
        assert store.show_locks() == []

    def test_a_waiting_lock_can_be_given_up_and_a_granted_one_cannot(self, store):
        one, two = begin(store), begin(store)
        held = store.lock(one, [exclusive()]).lock_id
        waiting = store.lock(two, [exclusive()]).lock_id
        store.unlock(two, waiting)
        store.unlock(two, waiting)
        assert [lock.txn_id for lock in store.show_locks()] == [one]
        with pytest.raises(TxnError) as caught:
            store.unlock(one, held)
        assert caught.value.getCondition() == "TXN_OPEN"

    @needs("locks of their transaction alone")
    def test_a_lock_that_is_not_ours_is_no_lock(self, store):
        one, two = begin(store), begin(store)
        lock_id = store.lock(one, [shared_read()]).lock_id
        for txn, number in ((two, lock_id), (one, 99)):
            with pytest.raises(TxnError) as caught:
                store.check_lock(txn, number)
            assert caught.value.getCondition() == "NO_SUCH_LOCK"

    def test_asking_for_nothing_is_granted(self, store):
        assert not waits(store.lock(begin(store), []))

    def test_looking_again_at_a_granted_lock_says_so(self, store):
        txn = begin(store)
        lock_id = store.lock(txn, [on(READ, operation=SELECT)]).lock_id
        assert not waits(store.check_lock(txn, lock_id))

    def test_two_inserts_and_a_read_go_on_beside_an_update(self, store):
        for operation, lock_type in [(INSERT, READ), (INSERT, READ), (UPDATE, EXCL_WRITE)]:
            txn = begin(store)
            assert not waits(store.lock(txn, [on(lock_type, operation=operation)]))
        assert not waits(store.lock(begin(store), [shared_read()]))
