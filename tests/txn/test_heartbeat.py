"""Heartbeats keep open transactions alive, and never transactions that have ended."""

import gc
import threading
import time

import pytest

from acidsql.errors import MetastoreError, TxnAbortedError
from acidsql.txn.heartbeat import Heartbeat

FAST = {"hive.txn.timeout": "40ms"}  # a beat every 20 ms


def eventually(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def heartbeats(store):
    return [txn.last_heartbeat_ms for txn in store.show_txns()]


def test_open_transactions_are_kept_alive_from_a_thread(managers, store, clock):
    manager = managers(settings=FAST)
    txns = [manager.open(), manager.open()]
    clock.now += 1000
    eventually(lambda: heartbeats(store) == [clock.now, clock.now])
    for txn in txns:
        txn.commit()


def test_one_thread_serves_a_session_and_is_a_daemon(manager):
    before = threading.active_count()
    txns = [manager.open() for _ in range(3)]
    assert threading.active_count() == before + 1
    assert manager.heartbeat._thread.daemon
    del txns


def test_a_session_that_opens_nothing_has_no_thread(managers):
    assert managers().heartbeat._thread is None


def test_a_transaction_that_nobody_holds_any_more_is_left_to_time_out(manager, store):
    manager.open()  # forgotten at once
    gc.collect()
    store.calls.clear()
    manager.heartbeat.beat()
    assert "heartbeat" not in store.calls


def test_an_ended_transaction_gets_no_heartbeat(manager, store):
    txns = [manager.open(), manager.open()]
    txns[0].commit()
    txns[1].abort()
    store.calls.clear()
    manager.heartbeat.beat()
    assert store.calls == []


def test_a_beat_that_finds_a_transaction_dead_is_remembered_for_the_next_call(manager, store):
    txn = manager.open()
    store.abort_txn(txn.id, "timed out")
    manager.heartbeat.beat()
    store.calls.clear()
    manager.heartbeat.beat()
    assert store.calls == []  # no heartbeat for the ended transaction
    with pytest.raises(TxnAbortedError, match="timed out"):
        txn.next_statement_id()  # a call that would not ask the store
    with pytest.raises(TxnAbortedError):
        txn.commit()


def test_a_store_that_does_not_answer_is_asked_again_soon(manager, store, clock):
    txn = manager.open()
    store.lose_call["heartbeat"] = 1
    assert manager.heartbeat.beat() is False
    clock.now += 5
    assert manager.heartbeat.beat() is True
    assert heartbeats(store) == [clock.now]
    txn.commit()


def test_one_lost_beat_does_not_end_the_thread(managers, store, clock):
    store.lose_call["heartbeat"] = 2
    txn = managers(settings=FAST).open()
    clock.now += 1000
    eventually(lambda: heartbeats(store) == [clock.now])
    txn.commit()


def test_an_unforeseen_error_ends_the_heartbeat_and_nothing_else(caplog):
    """A session with an internal error must time out."""

    class Broken:
        def heartbeat(self, txn_id):
            raise SystemExit("the process is dying")

    class Txn:
        id = 1

    txn, heartbeat = Txn(), Heartbeat(Broken(), 5)
    heartbeat.watch(txn)
    eventually(lambda: not heartbeat._thread.is_alive())
    assert "will time out" in caplog.text


def test_stopping_is_quick_and_final(managers, store):
    manager = managers()  # the next heartbeat would be in 150 s
    txn = manager.open()
    start = time.monotonic()
    manager.heartbeat.stop()
    assert time.monotonic() - start < 5
    assert not manager.heartbeat._thread.is_alive()
    manager.heartbeat.watch(txn)
    assert not manager.heartbeat._thread.is_alive()
    assert manager.heartbeat.beat() and store.calls[-1] != "heartbeat"


def test_a_shorter_time_out_makes_the_heartbeat_faster_at_once(manager, store, clock):
    txn = manager.open()  # the next heartbeat would be in 150 s
    clock.now += 1000
    manager.settings = manager.settings.with_("hive.txn.timeout", "40ms")
    eventually(lambda: heartbeats(store) == [clock.now])
    clock.now += 1000
    eventually(lambda: heartbeats(store) == [clock.now])
    txn.commit()


def test_the_line_may_be_dead_when_a_transaction_is_opened(manager, store):
    store.lose_call["open_txn"] = 1
    with pytest.raises(MetastoreError):
        manager.open()
    assert manager.heartbeat._thread is None
