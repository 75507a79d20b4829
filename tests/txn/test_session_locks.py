"""The locks of a session beyond its transactions: who passes them, and how they end."""

from contextlib import closing

import pytest
from dict_store import DictStore, said
from hypothesis import given, settings, strategies

from acidsql.acid.table import TableName
from acidsql.errors import (
    AcidSqlError,
    LockTimeoutError,
    MetastoreError,
    TransientTxnError,
    TxnAbortedError,
    TxnError,
)
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import LockComponent, LockType, TxnState, TxnType
from acidsql.settings import Settings

T, U = (LockComponent(LockType.EXCLUSIVE, "default", name) for name in "tu")
NO_WAIT_SETTINGS = {"hive.lock.numretries": "1", "hive.lock.sleep.between.retries": "1ms"}


@pytest.fixture
def ours(managers):
    manager = managers(settings=NO_WAIT_SETTINGS)
    manager.session_locks.acquire([T], "LOCK TABLE t EXCLUSIVE")
    return manager


@pytest.fixture
def other(managers):
    return managers(user="bob", settings=NO_WAIT_SETTINGS)


def things(store):
    return [lock.table for lock in store.show_locks()]


def lost(action):
    """Run an action that notices that the locks are lost."""
    with pytest.raises(TxnError) as caught:
        action()
    assert caught.value.condition == "SESSION_LOCKS_LOST"
    assert not isinstance(caught.value, TransientTxnError), "a retry would go on without the locks"
    return caught.value.message


def test_statements_of_the_session_pass_and_others_are_told_who_holds_the_lock(ours, other):
    with ours.open() as txn:
        txn.lock([T])
        txn.commit()
    with other.open() as txn, pytest.raises(LockTimeoutError) as caught:
        txn.lock([T])
    for part in ("user ann", "holds EXCLUSIVE on default.t", "LOCK TABLE t EXCLUSIVE"):
        assert part in str(caught.value)


def test_locks_end_one_by_one_and_the_last_ends_their_transaction(ours, other, store):
    locks = ours.session_locks
    locks.acquire([U], "LOCK TABLE u EXCLUSIVE")
    txn_id = locks.txn_id
    assert locks.release([one for one in locks.held_locks() if one.table == "t"])
    assert things(store) == ["u"]
    assert not locks.release([one for one in locks.held_locks() if one.table == "t"])
    assert locks.release(locks.held_locks())
    assert (locks.txn_id, locks.held_locks(), things(store)) == (None, [], [])
    assert store.txn_state(txn_id) is TxnState.COMMITTED
    with other.open() as txn:
        txn.lock([T, U])


def test_a_lock_of_several_things_ends_as_it_began(managers, store):
    locks = managers().session_locks
    locks.acquire([T, U], "LOCK")
    one, _ = locks.held_locks()
    assert not locks.release([one])
    assert sorted(things(store)) == ["t", "u"]
    assert locks.release(locks.held_locks()) and things(store) == []


def test_a_lock_that_is_not_granted_in_time_leaves_the_earlier_ones(ours, other, store):
    with other.open() as txn:
        txn.lock([U])
        with pytest.raises(LockTimeoutError):
            ours.session_locks.acquire([U], "LOCK TABLE u EXCLUSIVE")
        assert sorted(lock.table for lock in store.show_locks()) == ["t", "u"]


def test_a_wait_obeys_the_settings_of_its_time(ours, other):
    """The transaction that holds the locks is older than the setting."""
    ours.settings = Settings.of(NO_WAIT_SETTINGS | {"hive.lock.sleep.between.retries": "20ms"})
    with other.open() as txn:
        txn.lock([U])
        with pytest.raises(LockTimeoutError, match=r"in 0\.1 s"):
            ours.session_locks.acquire([U], "LOCK TABLE u EXCLUSIVE")


@pytest.mark.parametrize("had_locks", [True, False])
def test_a_request_whose_reply_is_lost_is_withdrawn(managers, store, had_locks):
    locks = managers().session_locks
    if had_locks:
        locks.acquire([U], "LOCK TABLE u EXCLUSIVE")
    store.lose_reply["lock"] = 1
    with pytest.raises(MetastoreError):
        locks.acquire([T], "LOCK TABLE t EXCLUSIVE")
    assert things(store) == (["u"] if had_locks else [])


def test_a_request_that_cannot_be_withdrawn_is_withdrawn_by_the_next_statement(ours, other, store):
    store.lose_reply["lock"] = store.lose_call["show_locks"] = 1
    with pytest.raises(MetastoreError):
        ours.session_locks.acquire([U], "LOCK TABLE u EXCLUSIVE")
    assert things(store) == ["t", "u"]
    ours.snapshot([])
    assert things(store) == ["t"]


def test_an_unlock_whose_call_is_lost_can_be_repeated(ours, store):
    locks = ours.session_locks
    store.lose_reply["unlock"] = 1
    with pytest.raises(MetastoreError):
        locks.release(locks.held_locks())
    assert locks.release(locks.held_locks()) is False  # it was done, and only the reply was lost
    locks.acquire([T], "LOCK TABLE t EXCLUSIVE")
    assert locks.release(locks.held_locks()) and things(store) == []


@pytest.mark.parametrize("look", ["lock", "snapshot", "held", "acquire"])
def test_a_session_that_has_lost_its_locks_is_told_once_before_it_goes_on(ours, store, look):
    txn_id, txn = ours.session_locks.txn_id, ours.open()
    store.abort_txn(txn_id, "ABORT TRANSACTIONS")
    actions = {
        "lock": lambda: txn.lock([U]),
        "snapshot": lambda: ours.snapshot([TableName("default", "t")]),
        "held": ours.session_locks.held_locks,
        "acquire": lambda: ours.session_locks.acquire([U], "LOCK TABLE u EXCLUSIVE"),
    }
    assert "ABORT TRANSACTIONS" in lost(actions[look])
    actions[look]()
    assert ours.session_locks.txn_id != txn_id


def test_the_locks_of_a_session_that_shows_no_life_go_to_who_waits(ours, other, store, clock):
    ours.heartbeat.stop()
    clock.now += ours.settings.txn_timeout_ms + 1
    with other.open() as txn:
        assert txn.lock([T]).waited
        txn.commit()
    assert "hive.txn.timeout" in lost(lambda: ours.snapshot([]))


def test_who_is_the_victim_of_a_deadlock_loses_all_its_locks_and_is_told_so(managers, store):
    old, young = managers(), managers()
    old.session_locks.acquire([T], "LOCK TABLE t EXCLUSIVE")
    young.session_locks.acquire([U], "LOCK TABLE u EXCLUSIVE")
    store.lock(old.session_locks.txn_id, [U])
    assert "deadlock" in lost(lambda: young.session_locks.acquire([T], "LOCK TABLE t EXCLUSIVE"))
    assert things(store) == ["t", "u"] and young.session_locks.txn_id is None


def test_who_had_no_locks_yet_may_try_again(managers, other, store):
    with other.open() as txn:
        txn.lock([T])
        new = managers(sleep=lambda _: store.abort_txn(new.session_locks.txn_id, "by hand"))
        with pytest.raises(TxnAbortedError, match="by hand"):
            new.session_locks.acquire([T], "LOCK TABLE t EXCLUSIVE")
    new.session_locks.acquire([T], "LOCK TABLE t EXCLUSIVE")
    assert things(store) == ["t"]


def test_the_end_of_the_session_ends_its_locks(ours, store):
    ours.close()
    assert things(store) == []


# ── the store and its model ──────────────────────────────────────────────────────────────────

COMPONENTS = [
    *(LockComponent(kind, "default", name) for kind in LockType for name in "tu"),
    LockComponent(LockType.EXCL_WRITE, "default", "t", "p=1"),
    LockComponent(LockType.SHARED_READ, "default"),
]
numbers = strategies.integers(1, 5)
calls = strategies.one_of(
    *[strategies.tuples(strategies.just("lock"), numbers, strategies.sampled_from(COMPONENTS))] * 3,
    *[strategies.tuples(strategies.just("check_lock"), numbers, strategies.integers(1, 9))] * 2,
    strategies.tuples(strategies.just("unlock"), numbers, strategies.integers(1, 9)),
    strategies.tuples(strategies.sampled_from(["commit_txn", "abort_txn"]), numbers),
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    sessions=strategies.lists(strategies.sampled_from([None, 1, 2]), min_size=3, max_size=3),
    history=strategies.lists(calls, min_size=15, max_size=15),
)
def test_the_store_answers_as_its_model_does(tmp_path_factory, sessions, history):
    """The transactions 1 and 2 hold the locks of sessions, of which the others are statements."""
    path = tmp_path_factory.mktemp("store") / "s.db"
    model = DictStore()
    with closing(EmbeddedMetastore(sqlite_url(path), warehouse="/wh")) as real:
        for number in range(5):
            kind = TxnType.SESSION if number < 2 else TxnType.DEFAULT
            for store in (real, model):
                store.open_txn(user="u", host="h", txn_type=kind)
        for name, txn_id, *rest in history:
            if real.txn_state(txn_id) is not TxnState.OPEN:
                continue
            if name in ("check_lock", "unlock") and rest[0] not in own_locks(real, txn_id):
                continue
            args = ([rest[0]],) if name == "lock" else rest
            session = [None, None, *sessions][txn_id - 1]
            more = {"session": session} if name == "lock" else {}
            assert answer(real, name, txn_id, args, more) == answer(model, name, txn_id, args, more)
            assert held(real) == held(model)


def own_locks(store, txn_id):
    return {lock.lock_id for lock in store.show_locks() if lock.txn_id == txn_id}


def answer(store, name, txn_id, args, more):
    try:
        return said(getattr(store, name)(txn_id, *args, **more))
    except AcidSqlError as error:
        return said(error)


def held(store):
    return [(one.lock_id, one.txn_id, one.state, one.session) for one in store.show_locks()]
