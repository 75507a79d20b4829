"""The contract of the locks of a session: a SESSION transaction holds them, and the session's own
statements pass them."""

import pytest
from compaction_steps import done, ready
from contract_base import INSERT, T, U, begin, each_needs, exclusive, on, shared_read, write

from acidsql.errors import TxnAbortedError, TxnError
from acidsql.metastore.interface import LockState, LockType, TxnState, TxnType

WRITE = LockType.EXCL_WRITE


def session(store, *locks, timeout_ms=None):
    txn = store.open_txn(user="ann", host="h1", txn_type=TxnType.SESSION, timeout_ms=timeout_ms)
    for lock in locks:
        store.lock(txn, [lock], agent_info="LOCK TABLE")
    return txn


def waits(response):
    return response.state is LockState.WAITING


@each_needs("keeps_session_locks")
class SessionLockContract:
    def test_a_session_does_not_wait_for_its_own_locks_and_all_others_do(self, store):
        ours = session(store, exclusive())
        own, other, stranger = begin(store), begin(store), session(store, exclusive(U))
        assert not waits(store.lock(own, [on(WRITE)], session=ours))
        for wanted in (shared_read(), exclusive()):
            for theirs in (None, stranger):
                assert waits(store.lock(other, [wanted], session=theirs))
        shown = {(one.txn_id, one.session) for one in store.show_locks()}
        assert {(ours, None), (own, ours), (other, stranger)} <= shown

    def test_a_session_gets_what_it_has_though_others_wait_and_no_more(self, store):
        ours = session(store, on(WRITE))
        own, waiter = begin(store), begin(store)
        store.lock(waiter, [exclusive()])
        assert not waits(store.lock(own, [on(WRITE, partition="p=1")], session=ours))
        assert waits(store.lock(own, [exclusive()], session=ours))

    def test_two_transactions_of_a_session_exclude_each_other(self, store):
        """Only the locks of the session itself are everybody's in it."""
        ours = session(store, exclusive(U))
        one, two = begin(store), begin(store)
        store.lock(one, [on(WRITE)], session=ours)
        assert waits(store.lock(two, [on(WRITE)], session=ours))

    def test_a_session_waits_for_what_its_statements_still_hold(self, store):
        ours, own = session(store), begin(store)
        store.lock(own, [on(WRITE)], session=ours)
        response = store.lock(ours, [exclusive()])
        assert waits(response)
        store.commit_txn(own)
        assert not waits(store.check_lock(ours, response.lock_id))

    def test_a_session_gives_up_one_lock_and_keeps_the_other(self, store):
        ours = session(store, exclusive(T), exclusive(U))
        lock_id = next(one.lock_id for one in store.show_locks() if one.table == "t")
        other = begin(store)
        waiting = store.lock(other, [shared_read()]).lock_id
        store.unlock(ours, lock_id)
        store.unlock(ours, lock_id)
        assert not waits(store.check_lock(other, waiting))
        assert waits(store.lock(begin(store), [shared_read(U)]))

    @pytest.mark.parametrize("end", ["commit_txn", "abort_txn"])
    def test_the_end_of_a_statement_does_not_end_the_locks_of_its_session(self, store, end):
        ours, own = session(store, exclusive()), begin(store)
        store.lock(own, [shared_read(T, INSERT)], session=ours)
        getattr(store, end)(own)
        assert [one.txn_id for one in store.show_locks()] == [ours]
        getattr(store, end)(ours)
        assert store.show_locks() == []

    @pytest.mark.needs("its own time-out")
    def test_the_locks_of_a_dead_session_time_out(self, store, clock):
        dead, alive = session(store, exclusive(T)), session(store, exclusive(U), timeout_ms=10**9)
        clock.now += 101
        assert store.abort_timed_out(100) == [dead]
        assert [one.txn_id for one in store.show_locks()] == [alive]

    # ── deadlocks ────────────────────────────────────────────────────────────────────────────

    @pytest.mark.parametrize("is_younger", [True, False])
    def test_who_waits_for_a_session_waits_for_its_statement(self, store, is_younger):
        """The statement waits for the other, who waits for the session: a circle, without a lock of
        the statement in it. The session keeps its locks."""
        ours = session(store, exclusive(T))
        own, other = sorted([begin(store), begin(store)], reverse=is_younger)
        store.lock(other, [exclusive(U)])
        theirs = store.lock(other, [exclusive(T)]).lock_id
        lock_id = store.lock(own, [exclusive(U)], session=ours).lock_id
        if is_younger:
            with pytest.raises(TxnAbortedError, match=f"it waited for transaction {other} "):
                store.check_lock(own, lock_id)
            assert waits(store.check_lock(other, theirs))
        else:
            assert not waits(store.check_lock(own, lock_id))
            assert store.txn_state(other) is TxnState.ABORTED
        assert store.txn_state(ours) is TxnState.OPEN

    def test_the_other_finds_the_circle_too(self, store):
        ours = session(store, exclusive(T))
        other, own = begin(store), begin(store)
        store.lock(other, [exclusive(U)])
        store.lock(own, [exclusive(U)], session=ours)
        lock_id = store.lock(other, [exclusive(T)]).lock_id
        assert waits(store.check_lock(other, lock_id))
        assert store.txn_state(own) is TxnState.ABORTED

    def test_a_session_whose_statements_do_not_wait_is_in_no_circle(self, store):
        ours = session(store, exclusive(T))
        other, own = begin(store), begin(store)
        store.lock(other, [exclusive(U)])
        store.lock(own, [shared_read(T)], session=ours)
        lock_id = store.lock(other, [exclusive(T)]).lock_id
        assert waits(store.check_lock(other, lock_id))
        assert store.txn_state(own) is TxnState.OPEN

    def test_of_two_sessions_that_lock_crosswise_the_younger_loses_its_locks(self, store):
        old, young = session(store, exclusive(T)), session(store, exclusive(U))
        lock_id = store.lock(old, [exclusive(U)]).lock_id
        store.lock(young, [exclusive(T)])
        assert not waits(store.check_lock(old, lock_id))
        assert store.txn_state(young) is TxnState.ABORTED

    # ── what it does not hold back ───────────────────────────────────────────────────────────

    def test_a_session_is_in_no_snapshot_and_writes_nothing(self, store):
        ours = session(store, exclusive())
        assert store.valid_txns().exceptions == ()
        with pytest.raises(TxnError) as caught:
            store.allocate_write_id(ours, T)
        assert caught.value.getCondition() == "READ_ONLY_TRANSACTION"
        store.abort_txn(ours)
        assert store.valid_txns().exceptions == ()

    def test_a_session_holds_back_no_cleaner_and_no_history(self, store, clock):
        before = begin(store)
        ours = session(store, exclusive())
        store.commit_txn(before)
        write(store, U)
        number = done(store)
        assert ready(store) == [number]
        assert [one.txn_id for one in store.show_txns() if one.is_session] == [ours]
        clock.now += 1
        store.house_keep(10**9, 0, 0)
        assert [store.txn_state(txn) for txn in (before, ours)] == [None, TxnState.OPEN]
        store.commit_txn(ours)
        clock.now += 1
        store.house_keep(10**9, 0, 0)
        assert store.txn_state(ours) is None
