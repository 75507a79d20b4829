"""Transactions and locks over a real Hive Metastore 3.1.3: where Hive 3 errs, and acidsql must not.

Each test first shows what the server itself says, so that it fails if the trap is none.
"""

import itertools

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

from contract_base import INSERT, SELECT, UPDATE, exclusive, on, shared_read

from acidsql.acid.table import Column, Table, TableName
from acidsql.errors import (
    CatalogError,
    MetastoreError,
    NoSuchTxnError,
    TxnAbortedError,
    UnsupportedError,
    WriteConflictError,
)
from acidsql.metastore.compaction_queue import CompactionRequest, CompactionType
from acidsql.metastore.hive.store import HiveMetastore
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.interface import Commit, LockState, LockType, Operation, TxnState

_numbers = itertools.count(1)
WRITING = LockType.EXCL_WRITE


@pytest.fixture
def open_store(hive3_metastore):
    opened = []

    def again():
        opened.append(HiveMetastore(hive3_metastore.url, list_names=lambda _: []))
        return opened[-1]

    yield again
    for one in opened:
        one.close()
    hive3_metastore.query("UPDATE TXNS SET TXN_STATE = 'a'")
    for table in ("HIVE_LOCKS", "TXN_COMPONENTS", "COMPACTION_QUEUE", "TXNS"):
        hive3_metastore.query(f"DELETE FROM {table}")


@pytest.fixture
def store(open_store):
    return open_store()


@pytest.fixture
def name(store):
    found = TableName("default", f"h3_{next(_numbers)}")
    store.create_table(
        Table(found, f"{store.warehouse}/{found.name}", (Column("a", "int"),),
              properties={"transactional": "true"})
    )  # fmt: skip
    yield found
    store.drop_table(found)


def begin(store, statement=""):
    return store.open_txn(user="ann", host="h1", agent_info=statement)


def servers_word(store, txn_id, lock_id):
    """What the server itself says of a lock."""
    request = hive.CheckLockRequest(lockid=lock_id, txnid=txn_id)
    return store.parts.server.call("check_lock", request).state


def updated(store, name):
    """Another transaction updates the table and commits."""
    txn = begin(store)
    store.lock(txn, [on(WRITING, name, operation=UPDATE)])
    store.allocate_write_id(txn, name)
    store.record_partitions(txn, name, [""])
    store.commit_txn(txn)


def updating(store, name):
    """A transaction that was opened before ``updated`` and then has looked, in that order."""
    txn = begin(store)
    updated(store, name)
    assert store.lock(txn, [on(WRITING, name, operation=UPDATE)]).state is LockState.ACQUIRED
    return txn


def write(store, txn, name):
    snapshot = store.valid_txns(txn)
    store.allocate_write_id(txn, name)
    store.record_partitions(txn, name, [""])
    return snapshot


def rows(server, table, column):
    return {int(one) for (one,) in server.query(f"SELECT {column} FROM {table}")}


# ── numbers ──────────────────────────────────────────────────────────────────────────────────


def test_the_server_takes_a_change_that_was_seen_for_a_conflict(store, name):
    txn = updating(store, name)
    snapshot = write(store, txn, name)
    with pytest.raises(WriteConflictError) as caught:
        store.commit_txn(txn, Commit(snapshot=snapshot))
    assert caught.value.ended


def test_a_newer_number_has_no_such_conflict_and_nothing_is_left(store, name, hive3_metastore):
    first = updating(store, name)
    txn = store.renew(first)
    assert txn > first
    assert {one.txn_id for one in store.show_locks()} == {first}
    snapshot = write(store, txn, name)
    store.commit_txn(txn, Commit(snapshot=snapshot))
    for table, column in (
        ("TXNS", "TXN_ID"), ("HIVE_LOCKS", "HL_TXNID"), ("TXN_COMPONENTS", "TC_TXNID")
    ):  # fmt: skip
        assert rows(hive3_metastore, table, column).isdisjoint({first, txn})
    assert txn in rows(hive3_metastore, "COMPLETED_TXN_COMPONENTS", "CTC_TXNID")


def test_a_number_stays_if_nobody_has_committed(store, name):
    txn = begin(store)
    store.lock(txn, [on(WRITING, name, operation=UPDATE)])
    assert store.renew(txn) == txn
    store.abort_txn(txn)


def test_a_number_that_was_not_used_is_replaced_and_ended(store, name):
    first = updating(store, name)
    second = store.renew(first)
    updated(store, TableName("default", "other"))
    third = store.renew(second)
    assert third > second
    assert store.txn_state(second) in (TxnState.ABORTED, None)
    store.abort_txn(third)
    assert store.show_locks() == []


def test_another_change_after_the_newer_number_is_a_conflict(store, open_store, name):
    """The locks let nobody do that, but for those who do not ask for them."""
    txn = store.renew(updating(store, name))
    snapshot = write(store, txn, name)
    thief = open_store()
    other = begin(thief)
    thief.lock(other, [shared_read(name, SELECT)])
    thief.allocate_write_id(other, name)
    own = thief.parts.server.own_txn(other)
    own.requested_locks = [on(LockType.SHARED_READ, name, operation=UPDATE)]
    thief.record_partitions(other, name, [""])
    thief.commit_txn(other)
    with pytest.raises(WriteConflictError):
        store.commit_txn(txn, Commit(snapshot=snapshot))
    assert store.show_locks() == []


@pytest.mark.parametrize("ended", ["holder", "writer"])
@pytest.mark.parametrize("noticed", ["heartbeat", "lock", "publish", "commit"])
def test_if_one_number_is_aborted_the_other_one_ends_too(store, open_store, name, ended, noticed):
    first = updating(store, name)
    txn = store.renew(first)
    snapshot = write(store, txn, name)
    open_store().abort_txn(first if ended == "holder" else txn, "ABORT TRANSACTIONS")
    with pytest.raises(TxnAbortedError):
        if noticed == "heartbeat":
            store.heartbeat(txn)
        elif noticed == "lock":
            store.lock(txn, [exclusive(name)])
            store.heartbeat(txn)
        elif noticed == "publish":
            store.record_partitions(txn, name, [""])
        else:
            store.commit_txn(txn, Commit(snapshot=snapshot))
    with pytest.raises((TxnAbortedError, NoSuchTxnError)):
        store.parts.server.call("heartbeat", hive.HeartbeatRequest(txnid=txn))
    assert store.show_locks() == []


def test_a_heartbeat_keeps_both_numbers_alive(store, name, hive3_metastore):
    first = updating(store, name)
    txn = store.renew(first)
    hive3_metastore.query("UPDATE TXNS SET TXN_LAST_HEARTBEAT = 1")
    store.heartbeat(txn)
    beats = hive3_metastore.query("SELECT TXN_ID, TXN_LAST_HEARTBEAT FROM TXNS ORDER BY TXN_ID")
    assert [int(one) for one, beat in beats if int(beat) > 1] == [first, txn]
    store.abort_txn(txn)


@pytest.mark.parametrize("which", ["writer", "holder"])
def test_after_a_lost_reply_to_commit_the_transaction_is_committed(
    store, open_store, name, which, monkeypatch, hive3_metastore
):
    first = updating(store, name)
    txn = store.renew(first)
    snapshot = write(store, txn, name)
    real, lost = Client.call, []

    def call(self, method, *values, **options):
        answer = real(self, method, *values, **options)
        about = txn if which == "writer" else first
        if method == "commit_txn" and values[0].txnid == about and not lost:
            lost.append(method)
            raise MetastoreError("the reply is lost")
        return answer

    monkeypatch.setattr(Client, "call", call)
    store.commit_txn(txn, Commit(snapshot=snapshot))
    assert lost
    assert txn in rows(hive3_metastore, "COMPLETED_TXN_COMPONENTS", "CTC_TXNID")
    assert store.show_locks() == []


# ── locks ────────────────────────────────────────────────────────────────────────────────────


def test_an_exclusive_lock_waits_for_others_although_the_server_stops_at_ones_own(
    store, open_store, name
):
    other = open_store()
    reader = begin(other)
    other.lock(reader, [shared_read(name)])
    txn = begin(store)
    store.lock(txn, [shared_read(name, INSERT)])
    wanted = store.lock(txn, [exclusive(name)])
    assert servers_word(store, txn, wanted.lock_id) == hive.LockState.ACQUIRED  # the trap
    assert wanted.state is LockState.WAITING
    assert wanted.blocked_by.txn_id == reader
    other.commit_txn(reader)
    assert store.check_lock(txn, wanted.lock_id).state is LockState.ACQUIRED
    store.commit_txn(txn)


def test_a_lock_on_the_table_waits_for_a_writer_of_another_partition(store, open_store, name):
    other = open_store()
    writer = begin(other)
    other.lock(writer, [on(WRITING, name, "p=2", UPDATE)])
    txn = begin(store)
    store.lock(txn, [on(WRITING, name, "p=1", UPDATE)])
    wanted = store.lock(txn, [on(WRITING, name, operation=UPDATE)])
    assert servers_word(store, txn, wanted.lock_id) == hive.LockState.ACQUIRED  # the trap
    assert wanted.state is LockState.WAITING
    other.abort_txn(writer)
    assert store.check_lock(txn, wanted.lock_id).state is LockState.ACQUIRED
    store.abort_txn(txn)


def test_a_transaction_does_not_wait_for_its_own_newer_number(store, name):
    first = begin(store)
    updated(store, name)
    store.lock(first, [shared_read(name, INSERT)])
    txn = store.renew(first)
    assert txn > first
    write(store, txn, name)  # the server keeps the lock with which it was told
    wanted = store.lock(txn, [on(LockType.EXCLUSIVE, name, operation=Operation.OVERWRITE)])
    assert servers_word(store, txn, wanted.lock_id) == hive.LockState.WAITING  # the trap
    assert wanted.state is LockState.ACQUIRED
    store.commit_txn(txn)
    assert store.show_locks() == []


def test_writers_wait_for_each_other_whatever_they_ask_for(store, open_store, name):
    one, two = begin(store), begin(store)
    store.lock(one, [on(LockType.SHARED_WRITE, name, operation=UPDATE)])
    wanted = store.lock(two, [on(LockType.SHARED_WRITE, name, operation=UPDATE)])
    assert (wanted.state, wanted.blocked_by.txn_id) == (LockState.WAITING, one)
    assert {lock.lock_type for lock in store.show_locks()} == {WRITING}
    store.abort_txn(one)
    store.abort_txn(two)


def test_a_circle_of_transactions_with_newer_numbers_is_ended(store, open_store, name):
    other, second = open_store(), TableName("default", "second")
    one = begin(store)
    two = begin(other)
    updated(store, TableName("default", "third"))
    store.lock(one, [on(WRITING, name, operation=UPDATE)])
    other.lock(two, [on(WRITING, second, operation=UPDATE)])
    one, two = store.renew(one), other.renew(two)
    waits = store.lock(one, [on(WRITING, second, operation=UPDATE)])
    assert waits.state is LockState.WAITING
    last = other.lock(two, [on(WRITING, name, operation=UPDATE)])
    with pytest.raises(TxnAbortedError, match="deadlock"):
        other.check_lock(two, last.lock_id)
    assert store.check_lock(one, waits.lock_id).state is LockState.ACQUIRED
    assert other.txn_state(two) in (TxnState.ABORTED, None)
    store.abort_txn(one)


# ── texts ────────────────────────────────────────────────────────────────────────────────────


def test_quotes_in_a_statement_or_a_name_reach_no_sql_of_the_server(store, name):
    txn = store.open_txn(user="o'hara\\", host="h'1")
    store.lock(txn, [shared_read(name)], agent_info="SELECT 'it''s \\' FROM t")
    (lock,) = store.show_locks()
    assert (lock.user, lock.host) == ('o"hara/', 'h"1')
    assert lock.agent_info == 'SELECT "it""s /" FROM t'
    with pytest.raises(CatalogError, match="quote"):
        store.lock(txn, [shared_read(TableName("default", "a'b"))])
    store.commit_txn(txn)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"type": CompactionType.REBALANCE}, "REBALANCE"),
        ({"pool": "mine"}, "pool"),
    ],
)
def test_what_hive_3_cannot_be_asked_for_is_refused(store, name, options, word):
    wanted = {"type": CompactionType.MAJOR, **options}
    kind = wanted.pop("type")
    with pytest.raises(UnsupportedError, match=word):
        store.compact(CompactionRequest(name, None, kind, "ann", **wanted))
    assert store.compactions() == []
