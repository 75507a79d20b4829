"""The life of a transaction: every change of phase in the table of ``acidsql.txn.txn``."""

import pytest

from acidsql.acid.table import Column, Partition, Table, TableName
from acidsql.errors import (
    CatalogError,
    CommitUnknownError,
    MetastoreError,
    TxnAbortedError,
    TxnError,
    WriteConflictError,
)
from acidsql.metastore.compaction_queue import (
    Compacted,
    CompactionRequest,
    CompactionState,
    CompactionType,
)
from acidsql.metastore.interface import Commit, LockComponent, LockType, Operation, TxnState
from acidsql.settings import Settings
from acidsql.txn import Phase, abort_quietly

T, U = TableName("default", "t"), TableName("default", "u")
READ = LockComponent(LockType.SHARED_READ, "default", "t", None, Operation.INSERT)
UPDATE = LockComponent(LockType.EXCL_WRITE, "default", "t", None, Operation.UPDATE)
OPTIMISTIC = LockComponent(LockType.SHARED_WRITE, "default", "t", None, Operation.UPDATE)


def reason(store):
    return [txn.meta_info for txn in store.show_txns()]


def test_a_statement_opens_locks_looks_writes_and_commits(manager, store):
    with manager.open(agent_info="INSERT INTO t VALUES (1)") as txn:
        assert store.show_txns()[0].agent_info == "INSERT INTO t VALUES (1)"
        assert not txn.lock([READ]).waited
        snapshot = txn.snapshot([T, U])
        assert not snapshot.write_ids[T].is_valid(1)
        assert (txn.write_id(T), txn.write_id(T), txn.write_id(U)) == (1, 1, 1)
        assert [txn.next_statement_id() for _ in range(3)] == [0, 1, 2]
        txn.commit()
    assert txn.phase is Phase.COMMITTED
    assert manager.snapshot([T]).write_ids[T].is_valid(1)


def test_a_commit_brings_its_partitions(manager, store):
    columns = (Column("a", "int"),)
    store.create_table(Table(T, "/wh/t", columns, partition_columns=(Column("p", "int"),)))
    one, two = Partition(("1",), "/wh/t/p=1"), Partition(("2",), "/wh/t/p=2")
    with manager.open() as txn:
        txn.commit(Commit(added_partitions={T: [one, two]}))
    with manager.open() as txn:
        txn.commit(Commit(dropped_partitions={T: [("1",)]}))
    assert store.partitions(T) == [two]


def test_a_commit_ends_its_compaction(manager, store):
    number = store.compact(CompactionRequest(T, None, CompactionType.MAJOR, "h1-manual")).id
    loser, txn = manager.open(), manager.open()
    store.take_next(txn.id, "h1-7")
    with pytest.raises(TxnError) as caught:
        loser.commit(Commit(compacted=Compacted(number, 5, "")))
    assert caught.value.getCondition() == "COMPACTION_LOST"
    assert loser.phase is Phase.OPEN
    loser.abort()
    store.lose_reply["commit_txn"] = 1
    txn.commit(Commit(compacted=Compacted(number, 5, "read 11 files")))
    (done,) = store.compactions()
    assert (done.state, done.highest_write_id) == (CompactionState.READY_FOR_CLEANING, 5)


def test_i6_the_snapshot_of_a_transaction_does_not_move(manager):
    reader = manager.open()
    assert not reader.snapshot([T]).write_ids[T].is_valid(1)
    with manager.open() as writer:
        writer.write_id(T)
        writer.commit()
    assert not reader.snapshot([T]).write_ids[T].is_valid(1)
    assert manager.snapshot([T]).write_ids[T].is_valid(1)


def test_a_transaction_sees_what_it_wrote_itself(manager):
    txn = manager.open()
    txn.snapshot([T])
    own = txn.write_id(T)
    assert txn.snapshot([T]).write_ids[T].is_valid(own)


def test_leaving_a_block_without_commit_aborts(manager, store):
    with manager.open() as txn:
        pass
    assert txn.phase is Phase.ABORTED
    assert store.txn_state(txn.id) is TxnState.ABORTED


def test_an_error_in_a_block_aborts_and_says_why(manager, store):
    with pytest.raises(ValueError), manager.open():
        raise ValueError("the reason")
    assert reason(store) == ["ValueError: the reason"]


def test_an_error_in_a_block_is_not_hidden_by_a_store_that_is_away(manager, store):
    with pytest.raises(ValueError), manager.open() as txn:
        store.lose_call["abort_txn"] = 1
        raise ValueError("the reason")
    assert txn.phase is Phase.ABORTED
    # It will time out, because there are no more heartbeats.
    assert store.txn_state(txn.id) is TxnState.OPEN
    assert manager.heartbeat.beat() and store.calls[-1] != "heartbeat"


def test_nothing_can_be_done_after_the_end(manager):
    ended = [manager.open(), manager.open()]
    ended[0].commit()
    ended[1].abort()
    for txn, error in zip(ended, (TxnError, TxnAbortedError), strict=True):
        for call in (
            lambda: txn.lock([READ]),
            lambda: txn.snapshot([T]),
            lambda: txn.write_id(T),
            lambda: txn.next_statement_id(),
            lambda: txn.commit(),
        ):
            with pytest.raises(error):
                call()
    with pytest.raises(TxnError):
        ended[0].abort()
    ended[1].abort()


def test_statements_are_numbered_up_to_what_the_format_can_hold(manager):
    txn = manager.open()
    assert [txn.next_statement_id() for _ in range(4096)][-1] == 4095
    with pytest.raises(TxnError, match="4096"):
        txn.next_statement_id()


# ── the store says no ────────────────────────────────────────────────────────────────────────


def test_an_abort_by_somebody_else_is_noticed_at_the_next_call(manager, store):
    txn = manager.open()
    store.abort_txn(txn.id, "ABORT TRANSACTIONS by bob")
    with pytest.raises(TxnAbortedError, match="by bob"):
        txn.commit()
    assert txn.phase is Phase.ABORTED


def test_a_commit_that_the_catalog_refuses_leaves_the_transaction_open(manager):
    txn = manager.open()
    with pytest.raises(CatalogError):
        txn.commit(Commit(added_partitions={T: [Partition(("1",), "/x")]}))
    assert txn.phase is Phase.OPEN
    txn.abort()


# ── the reply to COMMIT is lost ──────────────────────────────────────────────────────────────


def test_a_lost_reply_to_a_commit_that_happened_is_a_commit(manager, store):
    txn = manager.open()
    store.lose_reply["commit_txn"] = 1
    txn.commit()
    assert txn.phase is Phase.COMMITTED
    assert store.calls[-2:] == ["commit_txn", "txn_state"]


def test_a_commit_that_never_arrived_can_be_tried_again(manager, store):
    txn = manager.open()
    store.lose_call["commit_txn"] = 1
    with pytest.raises(MetastoreError):
        txn.commit()
    assert txn.phase is Phase.OPEN
    txn.commit()


def test_a_commit_that_came_too_late_is_an_abort(manager, store):
    txn = manager.open()
    store.abort_txn(txn.id)
    store.lose_call["commit_txn"] = 1
    with pytest.raises(TxnAbortedError):
        txn.commit()


def test_a_commit_whose_outcome_nobody_can_tell_is_an_error_of_its_own(manager, store):
    txn = manager.open()
    store.lose_reply["commit_txn"] = store.lose_call["txn_state"] = 1
    with pytest.raises(CommitUnknownError, match="Do not run the statement again"):
        txn.commit()
    assert txn.phase is Phase.UNKNOWN
    txn.abort()  # claims nothing
    assert store.txn_state(txn.id) is TxnState.COMMITTED


def test_a_transaction_that_the_store_has_forgotten_is_of_unknown_outcome(manager, store):
    txn = manager.open()
    store.lose_call["commit_txn"] = 1
    txn.id = 999
    with pytest.raises(CommitUnknownError):
        txn.commit()


# ── sessions ─────────────────────────────────────────────────────────────────────────────────


def test_closing_a_session_aborts_what_is_open_and_ends_its_thread(manager, store):
    txn = manager.open()
    manager.close()
    manager.close()
    assert txn.phase is Phase.ABORTED
    assert reason(store) == ["its session was closed"]
    assert not manager.heartbeat._thread.is_alive()


def test_closing_a_session_whose_store_is_away_says_nothing(manager, store):
    manager.open()
    store.lose_call["abort_txn"] = 1
    manager.close()


def update(manager, lock=UPDATE):
    """A transaction of one statement that updates the table."""
    with manager.open(agent_info="UPDATE t") as txn:
        txn.lock([lock])
        txn.snapshot([T])
        txn.write_id(T)
        txn.commit()
    return txn


def test_a_later_statement_fails_where_others_have_committed_since_its_snapshot(managers):
    txn = managers().open()
    txn.snapshot([T])
    winner = update(managers(user="bob"))
    with pytest.raises(WriteConflictError, match=f"{winner.id} of user bob") as caught:
        txn.lock([UPDATE], agent_info="UPDATE t SET a = 2")
    assert caught.value.getSqlState() == "40001"
    assert txn.phase is Phase.OPEN, "it may do something else, or be rolled back"


def test_a_transaction_that_has_not_looked_yet_looks_afterwards_and_succeeds(managers):
    txn = managers().open()
    update(managers())
    txn.lock([UPDATE])
    assert txn.snapshot([T]).write_ids[T].is_valid(1)
    txn.write_id(T)
    txn.commit()


def test_the_first_committer_wins_where_nobody_waits(managers):
    one, two = managers().open(), managers().open()
    for txn in (one, two):
        txn.lock([OPTIMISTIC])
        txn.snapshot([T])
        txn.write_id(T)
    two.commit()
    with pytest.raises(WriteConflictError) as caught:
        one.commit()
    assert [conflict.txn_id for conflict in caught.value.conflicts] == [two.id]
    one.commit(Commit(resolved_txns=[two.id]))


def test_what_is_undone_is_no_conflict_for_anybody(managers, store):
    txn = managers().open()
    txn.lock([READ])
    mark = txn.mark
    txn.lock([OPTIMISTIC])
    txn.snapshot([T])
    txn.write_id(T)
    other = managers().open()
    other.lock([OPTIMISTIC])
    other.snapshot([T])
    other.write_id(T)
    store.lose_reply["restore_components"] = 1
    with pytest.raises(MetastoreError):
        txn.undo(mark)
    txn.undo(mark)
    assert txn.mark == mark
    txn.commit()
    other.commit()


def test_a_statement_that_asks_for_a_lock_is_what_others_are_told(managers, store):
    holder = managers(user="bob").open(agent_info="BEGIN")
    holder.lock([UPDATE], agent_info="UPDATE t SET a = 1")
    assert store.show_locks()[0].agent_info == "UPDATE t SET a = 1"
    assert store.show_txns()[0].agent_info == "UPDATE t SET a = 1"


def test_a_snapshot_may_only_be_forgotten_before_anything_was_read(managers):
    txn = managers().open()
    txn.lock([READ])
    txn.snapshot([T])
    update(managers())
    txn.forget_snapshot()
    assert txn.snapshot([T]).write_ids[T].is_valid(1)


def test_housekeeping_is_done_with_the_heartbeat_and_when_a_session_closes(managers, store):
    manager = managers()
    manager.open()
    manager.heartbeat.change_interval(1)
    while "house_keep" not in store.calls:
        pass
    store.calls.clear()
    store.lose_call["house_keep"] = 1
    manager.close()
    assert "house_keep" in store.calls


def test_a_longer_time_out_does_not_leave_open_transactions_without_heartbeats(
    manager, monkeypatch
):
    """An open transaction keeps the time-out that it began with."""
    intervals = []
    monkeypatch.setattr(manager.heartbeat, "change_interval", intervals.append)
    for timeout in ("60s", "1h"):
        manager.settings = Settings.of({"hive.txn.timeout": timeout})
    assert intervals == [30_000, 30_000]


def test_a_commit_that_was_interrupted_but_happened_cannot_be_rolled_back(manager, store):
    txn = manager.open()
    # Our own transaction: the user has interrupted the call before it returned.
    store.commit_txn(txn.id)
    with pytest.raises(TxnError):
        txn.abort("ROLLBACK")
    assert txn.phase is Phase.COMMITTED


@pytest.mark.parametrize("what", ["commit", "lock", "write"])
def test_nor_can_it_do_anything_else_but_be_committed_again(manager, store, what):
    txn = manager.open()
    store.commit_txn(txn.id)
    if what == "commit":
        txn.commit()
    else:
        with pytest.raises(TxnError):
            txn.lock([READ]) if what == "lock" else txn.write_id(T)
    assert txn.phase is Phase.COMMITTED
    assert not abort_quietly(txn, "its files may not be deleted")
