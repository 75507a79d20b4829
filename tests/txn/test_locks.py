"""Waiting for locks: growing pauses, dead holders, the longest wait, and the error message."""

import pytest

from acidsql.errors import LockTimeoutError, TxnAbortedError
from acidsql.metastore.interface import LockComponent, LockType, Operation

EXCLUSIVE = LockComponent(LockType.EXCLUSIVE, "default", "t")
UPDATE_PARTITION = LockComponent(LockType.EXCL_WRITE, "default", "t", "p=1", Operation.UPDATE)
SHORT = {"hive.lock.numretries": 3}  # 100 + 200 + 400 ms


class Sleeper:
    """Replaces ``sleep``: it notes the pauses, and calls a function after the n-th one."""

    def __init__(self, **after):
        self.slept, self.after = [], after

    def __call__(self, seconds):
        self.slept.append(round(seconds, 3))
        self.after.get(f"n{len(self.slept)}", lambda: None)()


def test_a_free_lock_is_granted_without_sleeping(managers):
    sleeper = Sleeper()
    acquired = managers(sleep=sleeper).open().lock([EXCLUSIVE])
    assert (acquired.waited, sleeper.slept) == (False, [])


def test_a_lock_that_becomes_free_is_granted_after_some_doubling_pauses(managers):
    holder = managers().open()
    holder.lock([EXCLUSIVE])
    sleeper = Sleeper(n7=holder.commit)
    acquired = managers(sleep=sleeper).open().lock([EXCLUSIVE])
    assert acquired.waited
    assert sleeper.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]  # acidsql.lock.poll.interval


def test_the_wait_ends_in_time_and_tells_who_is_in_the_way_and_what_to_do(managers):
    holder = managers(user="bob").open(agent_info="UPDATE t\n  SET a = 1")
    holder.lock([UPDATE_PARTITION])
    txn = managers(settings=SHORT).open()
    with pytest.raises(LockTimeoutError) as caught:
        txn.lock([EXCLUSIVE])
    for part in (
        "EXCLUSIVE on default.t in 0.7 s",
        f"Transaction {holder.id} of user bob on host h1",
        "holds EXCL_WRITE on default.t/p=1",
        "statement: UPDATE t SET a = 1",
        f"ABORT TRANSACTIONS {holder.id}",
        "hive.lock.numretries",
    ):
        assert part in str(caught.value)
    assert caught.value.getMessageParameters()["blockerUser"] == "bob"
    assert caught.value.getSqlState() == "40001"


def test_a_lock_that_was_given_up_is_in_nobodys_way_and_the_transaction_goes_on(managers, store):
    holder = managers().open()
    holder.lock([UPDATE_PARTITION])
    txn = managers(settings=SHORT).open()
    with pytest.raises(LockTimeoutError):
        txn.lock([EXCLUSIVE])
    assert [lock.txn_id for lock in store.show_locks()] == [holder.id]
    txn.commit()


def test_a_lock_whose_wait_is_interrupted_is_given_up(managers, store):
    def interrupt():
        raise KeyboardInterrupt

    holder = managers().open()
    holder.lock([EXCLUSIVE])
    txn = managers(sleep=Sleeper(n2=interrupt)).open()
    with pytest.raises(KeyboardInterrupt):
        txn.lock([EXCLUSIVE])
    assert len(store.show_locks()) == 1


def test_the_locks_of_a_dead_session_go_away_while_others_wait(managers, store, clock):
    dead = managers().open()
    dead.lock([EXCLUSIVE])

    def pass_time():
        clock.now += 301_000  # hive.txn.timeout, by the store's clock
        store.heartbeat(txn.id)

    txn = managers(sleep=Sleeper(n2=pass_time)).open()
    assert txn.lock([EXCLUSIVE]).waited
    with pytest.raises(TxnAbortedError):
        dead.commit()


def test_a_waiter_that_is_aborted_is_told(managers, store):
    holder = managers().open()
    holder.lock([EXCLUSIVE])
    sleeper = Sleeper(n2=lambda: store.abort_txn(txn.id, "by hand"))
    txn = managers(sleep=sleeper).open()
    with pytest.raises(TxnAbortedError, match="by hand"):
        txn.lock([EXCLUSIVE])


def test_a_long_statement_is_cut_in_a_message(managers):
    managers().open(agent_info="SELECT " + "x" * 5000).lock([EXCLUSIVE])
    with pytest.raises(LockTimeoutError) as caught:
        managers(settings=SHORT).open().lock([EXCLUSIVE])
    assert len(str(caught.value)) < 800 and "…" in str(caught.value)


def test_a_database_is_named_as_one(managers):
    managers().open().lock([LockComponent(LockType.EXCLUSIVE, "default")])
    with pytest.raises(LockTimeoutError, match="EXCLUSIVE on database default"):
        managers(settings=SHORT).open().lock([EXCLUSIVE])
