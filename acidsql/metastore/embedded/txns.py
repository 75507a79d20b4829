"""Transactions and write ids: ``TxnStore`` without its locks.

A committed transaction's row stays in state ``c`` (Hive 4) until the housekeeper deletes it. So a
session that lost the reply to COMMIT can repeat the COMMIT, or ask for the state. Numbers come from
NEXT_TXN_ID (Hive 3.1), so they have no gaps.

Source: Hive ``TxnHandler`` (3.1), ``CommitTxnFunction``, ``AbortTxnsFunction`` (4.0).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
    update,
)

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.errors import NoSuchTxnError, TxnAbortedError, TxnError
from acidsql.metastore.catalog_history import CatalogChange
from acidsql.metastore.embedded import partitions, tables
from acidsql.metastore.embedded.database.engine import Store, next_number
from acidsql.metastore.embedded.database.schema import (
    HIVE_LOCKS,
    MIN_HISTORY_LEVEL,
    NEXT_TXN_ID,
    TXNS,
)
from acidsql.metastore.embedded.records import (
    catalog_history,
    changes,
    cleanups,
    compaction_rows,
    conflicts,
    housekeeping,
    streams,
    versions,
    write_ids,
)
from acidsql.metastore.interface import (
    PLAIN_COMMIT,
    Commit,
    LockComponent,
    TxnInfo,
    TxnState,
    TxnType,
    WriteConflict,
)
from acidsql.metastore.streams import Batch

T = TXNS.c
_PERSON_LIMIT, _TEXT_LIMIT = 128, 1024  # widths of TXN_USER and TXN_AGENT_INFO


class EmbeddedTxns:
    """The part of ``TxnStore`` about transactions; the methods are described there."""

    _store: Store

    def open_txn(
        self,
        *,
        user: str,
        host: str,
        agent_info: str = "",
        txn_type: TxnType = TxnType.DEFAULT,
        timeout_ms: int | None = None,
        max_open_txns: int | None = None,
        batch: Batch | None = None,
    ) -> int:
        """Open a transaction, and return its number, one more than the last one's. Texts are cut to
        the columns' widths. Unless it is a SESSION, it holds back the housekeeping from now on.
        ``batch``: the transaction works for it, so ``end_other_runs`` may abort it. Raise TxnError
        TOO_MANY_OPEN_TXNS if ``max_open_txns`` are open already; None: no limit."""
        with self._store.write() as connection:
            lowest = _lowest_open(connection, max_open_txns)
            txn_id = next_number(connection, NEXT_TXN_ID)
            now_ms = self._store.now_ms(connection)
            connection.execute(
                insert(TXNS).values(
                    TXN_ID=txn_id,
                    TXN_STATE=TxnState.OPEN.value,
                    TXN_STARTED=now_ms,
                    TXN_LAST_HEARTBEAT=now_ms,
                    TXN_USER=user[:_PERSON_LIMIT],
                    TXN_HOST=host[:_PERSON_LIMIT],
                    TXN_AGENT_INFO=agent_info[:_TEXT_LIMIT],
                    TXN_META_INFO=None if batch is None else streams.worker_text(batch),
                    TXN_TYPE=txn_type.value,
                    TXN_TIMEOUT=timeout_ms,
                )
            )
            if txn_type is not TxnType.SESSION:
                connection.execute(
                    insert(MIN_HISTORY_LEVEL).values(
                        MHL_TXNID=txn_id, MHL_MIN_OPEN_TXNID=txn_id if lowest is None else lowest
                    )
                )
            return txn_id

    def renew(self, txn_id: int) -> int:
        """Return ``txn_id``, and do nothing: a transaction keeps its number."""
        return txn_id  # conflicts are told by snapshots

    def heartbeat(self, txn_id: int) -> None:
        """Note a heartbeat of an open transaction. Raise TxnAbortedError or NoSuchTxnError if it
        has ended."""
        with self._store.write() as connection:
            beat(connection, txn_id, self._store.now_ms(connection))

    def restore_components(self, txn_id: int, components: Sequence[LockComponent]) -> None:
        """Replace the changes that an open transaction has recorded by those of ``components``; its
        locks stay. Raise TxnAbortedError or NoSuchTxnError if it has ended."""
        with self._store.write() as connection:
            need_open(connection, txn_id)
            changes.replace_recorded(connection, txn_id, components)

    def record_partitions(self, txn_id: int, table: TableName, partitions: Collection[str]) -> None:
        """Do nothing: the cleaner looks for aborted data in all partitions."""

    def write_conflicts(
        self,
        txn_id: int,
        snapshot: ValidTxnList,
        components: Sequence[LockComponent] | None = None,
    ) -> list[WriteConflict]:
        """Return the conflicts of ``components`` (None: of all changes that the transaction has
        recorded) with others' commits that the snapshot does not see, in the order of the others'
        numbers."""
        with self._store.read() as connection:
            if components is None:
                changed = changes.recorded_changes(connection, txn_id)
            else:
                changed = changes.component_changes(connection, txn_id, components)
            return conflicts.find(connection, txn_id, snapshot, changed)

    def watch_catalog(self, txn_id: int) -> None:
        """Do nothing: each change of the catalog is noted."""

    def catalog_changes(
        self, txn_id: int, snapshot: ValidTxnList, table: TableName
    ) -> list[CatalogChange]:
        """Return the changes of the catalog that others made to a name, and that the snapshot of an
        open transaction does not see, oldest first. Raise TxnAbortedError or NoSuchTxnError if the
        transaction has ended."""
        with self._store.read() as connection:
            need_open(connection, txn_id)
            return catalog_history.find(connection, txn_id, snapshot, table)

    def allocate_write_id(self, txn_id: int, table: TableName) -> int:
        """Return the transaction's write id in a table; the first call uses up the table's next
        one. Raise TxnError READ_ONLY_TRANSACTION for a READ_ONLY or SESSION transaction, and
        TxnAbortedError or NoSuchTxnError if the transaction has ended."""
        with self._store.write() as connection:
            row = need_open(connection, txn_id)
            if row.TXN_TYPE in housekeeping.WRITE_NOTHING:
                raise TxnError(
                    f"Transaction {txn_id} is read-only: it cannot write to '{table}'.",
                    condition="READ_ONLY_TRANSACTION",
                    sqlstate="25006",
                    txnId=txn_id,
                )
            return write_ids.allocate(connection, txn_id, table)

    def valid_txns(self, txn_id: int = 0) -> ValidTxnList:
        """Return which transactions are committed now, up to the highest number. Open and aborted
        ones are exceptions, but not ``txn_id``, so that it sees its own writes, nor READ_ONLY and
        SESSION transactions, which write nothing."""
        with self._store.read() as connection:
            mark = int(connection.execute(select(NEXT_TXN_ID.c.NTXN_NEXT)).scalar_one()) - 1
            states = (TxnState.OPEN.value, TxnState.ABORTED.value)
            rows = connection.execute(
                select(T.TXN_ID, T.TXN_STATE)
                .where(T.TXN_STATE.in_(states), housekeeping.may_write())
                .order_by(T.TXN_ID)
            ).all()
        other_txns = [(number, state) for number, state in rows if number != txn_id]
        # Unlike in Hive's client, the list does not end at the transaction's own number. It is
        # taken after the locks, and so must show a younger transaction that committed while this
        # one waited.
        return ValidTxnList(
            mark,
            tuple(number for number, state in other_txns if state == TxnState.OPEN.value),
            tuple(number for number, state in other_txns if state == TxnState.ABORTED.value),
        )

    def valid_txns_under(self, lease: int) -> ValidTxnList | None:
        """Return which transactions are committed now (``valid_txns``); None if the transaction
        ``lease`` is not open."""
        return self.valid_txns() if self.txn_state(lease) is TxnState.OPEN else None

    def keep_files(self, txn_id: int, tables: Sequence[TableName]) -> None:
        """Do nothing: the cleaner waits for every open transaction."""

    def valid_write_ids(
        self, valid_txns: ValidTxnList, tables: Sequence[TableName]
    ) -> dict[TableName, ValidWriteIdList]:
        """Return the write ids of each of these tables that a snapshot with these transactions
        sees."""
        if not tables:
            return {}
        with self._store.read() as connection:
            return {
                name: write_ids.valid_write_ids(connection, valid_txns, name) for name in tables
            }

    def commit_txn(self, txn_id: int, commit: Commit = PLAIN_COMMIT) -> None:
        """Commit a transaction with all that ``commit`` names, and release its locks; for a
        committed one do nothing. Its recorded changes are compared with others' commits only if
        ``commit.snapshot`` is set. Raise TxnAbortedError or NoSuchTxnError if it has ended. After
        any other error, such as a WriteConflictError, nothing has changed, and it is still open."""
        with self._store.write() as connection:
            row = _row(connection, txn_id)
            if _state_of(row) is TxnState.COMMITTED:
                return  # the reply to the first COMMIT was lost
            txn, new_table = _refuse_ended(txn_id, row), commit.created_table
            now_ms = self._store.now_ms(connection)
            if commit.cleanup_id is not None:
                cleanups.remove(connection, commit.cleanup_id)
            if commit.compacted is not None:
                compaction_rows.mark_ready_for_cleaning(
                    connection, txn_id, commit.compacted, now_ms
                )
            if new_table is not None:
                if commit.is_replacement:
                    tables.drop_if_there(connection, new_table.name, txn_id, now_ms)
                tables.create(connection, new_table, commit.first_write_id, txn_id)
                catalog_history.note(connection, txn_id, new_table.name)
            for name, columns in commit.new_columns.items():
                tables.replace_columns(connection, name, columns)
                catalog_history.note(connection, txn_id, name)
            if commit.batch is not None:
                streams.record_batch(connection, txn, commit.batch, now_ms)
            partitions.drop(connection, txn_id, commit.dropped_partitions)
            versions.drop_partitions(connection, txn_id, commit.dropped_partitions)
            partitions.add(connection, commit.added_partitions)
            components = changes.recorded_changes(connection, txn_id)
            versions.record_versions(
                connection, txn, commit.table_changes, new_table, components, now_ms
            )
            if components:
                narrowed = changes.narrow_to_partitions(
                    connection, components, commit.added_partitions
                )
                if commit.snapshot is not None:
                    conflicts.refuse(
                        connection, txn_id, commit.snapshot, narrowed, commit.resolved_txns
                    )
                changes.complete(connection, txn_id, narrowed)
            end(connection, [txn_id], TxnState.COMMITTED)

    def abort_txn(self, txn_id: int, reason: str = "") -> None:
        """Abort a transaction, and release its locks; an aborted one stays so. Raise NoSuchTxnError
        if it is committed or unknown."""
        with self._store.write() as connection:
            state = _state_of(_row(connection, txn_id))
            if state is TxnState.ABORTED:
                return
            if state is not TxnState.OPEN:
                raise _no_such_txn_error(txn_id, state)
            end(connection, [txn_id], TxnState.ABORTED, reason)

    def txn_state(self, txn_id: int) -> TxnState | None:
        """Return the state of a transaction; None if it has no row (any more)."""
        with self._store.read() as connection:
            return _state_of(_row(connection, txn_id))

    def show_txns(self) -> list[TxnInfo]:
        """Return the open and aborted transactions, by number; committed ones are left out."""
        states = (TxnState.OPEN.value, TxnState.ABORTED.value)
        query = select(TXNS).where(T.TXN_STATE.in_(states)).order_by(T.TXN_ID)
        with self._store.read() as connection:
            return [
                TxnInfo(
                    txn_id=row.TXN_ID,
                    state=TxnState(row.TXN_STATE),
                    started_ms=row.TXN_STARTED,
                    last_heartbeat_ms=row.TXN_LAST_HEARTBEAT,
                    user=row.TXN_USER,
                    host=row.TXN_HOST,
                    agent_info=row.TXN_AGENT_INFO or "",
                    meta_info=row.TXN_META_INFO or "",
                    is_session=row.TXN_TYPE == TxnType.SESSION.value,
                )
                for row in connection.execute(query)
            ]

    def abort_timed_out(self, timeout_ms: int) -> list[int]:
        """Abort the open transactions whose last heartbeat is too old, by their own time-out or
        else ``timeout_ms``. Return their numbers."""
        with self._store.read() as connection:  # usually there are none: do not block writers
            if not _timed_out_txns(connection, self._store.now_ms(connection), timeout_ms):
                return []
        with self._store.write() as connection:
            return _abort_timed_out(connection, self._store.now_ms(connection), timeout_ms)

    def end_other_runs(self, batch: Batch) -> Sequence[int]:
        """Abort the open transactions that work for the batch's application, sink and query, but
        for another run, and return their numbers."""
        with self._store.write() as connection:
            other_runs = streams.other_runs(connection, batch)
            reason = f"the run {batch.run_id} of its stream has begun"
            end(connection, other_runs, TxnState.ABORTED, reason)
            return other_runs

    def house_keep(self, timeout_ms: int, interval_ms: int, retention_ms: int) -> bool:
        """Abort the transactions that have timed out, and delete rows that nobody can need. Return
        True; or False, without doing anything, if the last run of any session is less than
        ``interval_ms`` ago."""
        with self._store.read() as connection:  # every session asks: do not block writers
            if not housekeeping.is_due(connection, self._store.now_ms(connection), interval_ms):
                return False
        with self._store.write() as connection:
            now_ms = self._store.now_ms(connection)
            if not housekeeping.is_due(connection, now_ms, interval_ms):
                return False  # another session was faster
            housekeeping.note(connection, now_ms)
            _abort_timed_out(connection, now_ms, timeout_ms)
            housekeeping.forget(connection, now_ms, retention_ms)
            return True


def beat(connection: Connection, txn_id: int, now_ms: int) -> None:
    """Note a heartbeat of an open transaction. Raise TxnAbortedError or NoSuchTxnError if it has
    ended."""
    # The condition on the state: a late heartbeat must not revive a transaction that has ended.
    alive = connection.execute(
        update(TXNS)
        .where(T.TXN_ID == txn_id, T.TXN_STATE == TxnState.OPEN.value)
        .values(TXN_LAST_HEARTBEAT=now_ms)
    )
    if alive.rowcount == 0:
        need_open(connection, txn_id)


def need_open(connection: Connection, txn_id: int) -> Row[Any]:
    """Return the row of TXNS of an open transaction. Raise TxnAbortedError if it was aborted, or
    NoSuchTxnError if it is committed or unknown."""
    return _refuse_ended(txn_id, _row(connection, txn_id))


def note_statement(connection: Connection, row: Row[Any], agent_info: str) -> str:
    """Store the statement of an open transaction in its row, cut to 1024 characters, and return the
    cut text."""
    shown = agent_info[:_TEXT_LIMIT]
    if shown != row.TXN_AGENT_INFO:
        note = update(TXNS).where(T.TXN_ID == row.TXN_ID).values(TXN_AGENT_INFO=shown)
        connection.execute(note)
    return shown


def end(connection: Connection, txn_ids: Sequence[int], state: TxnState, reason: str = "") -> None:
    """Set the state of transactions, delete their locks, and let them hold back the housekeeping no
    more, in one store transaction (I12); which state they have now is not checked. ``reason``: why
    they were aborted, which is stored, cut to 1024 characters. Without transactions do nothing."""
    if not txn_ids:
        return
    this: BindParameter[int] = bindparam("ended")
    numbers = [{"ended": txn_id} for txn_id in txn_ids]
    ended = update(TXNS).where(T.TXN_ID == this)
    connection.execute(
        ended.values(TXN_STATE=state.value, TXN_META_INFO=reason[:_TEXT_LIMIT]), numbers
    )
    connection.execute(delete(HIVE_LOCKS).where(HIVE_LOCKS.c.HL_TXNID == this), numbers)
    level = MIN_HISTORY_LEVEL.c.MHL_TXNID
    connection.execute(delete(MIN_HISTORY_LEVEL).where(level == this), numbers)


def aborted_error(txn_id: int, reason: str) -> TxnAbortedError:
    """Make the error for the session of an aborted transaction, with the reason."""
    return TxnAbortedError(
        f"Transaction {txn_id} was aborted: {reason}.", txnId=txn_id, reason=reason
    )


def _lowest_open(connection: Connection, max_open_txns: int | None) -> int | None:
    """Return the lowest open transaction that may write; None if there is none. Raise TxnError
    TOO_MANY_OPEN_TXNS if ``max_open_txns`` are open, of any type; None: no limit."""
    # A transaction that writes nothing is no exception in snapshots.
    writer = case((housekeeping.may_write(), T.TXN_ID))
    query = select(func.count(), func.min(writer)).where(T.TXN_STATE == TxnState.OPEN.value)
    count, lowest = connection.execute(query).one()
    if max_open_txns is not None and count >= max_open_txns:
        raise TxnError(
            f"{count} transactions are open, and hive.max.open.txns allows no more than "
            f"{max_open_txns}. SHOW TRANSACTIONS lists them; try again when some have ended.",
            condition="TOO_MANY_OPEN_TXNS",
            sqlstate="53400",
            openTxns=count,
            maxOpenTxns=max_open_txns,
        )
    return None if lowest is None else int(lowest)


def _refuse_ended(txn_id: int, row: Row[Any] | None) -> Row[Any]:
    """Return ``row`` if it is that of an open transaction. Raise TxnAbortedError if the transaction
    was aborted, or NoSuchTxnError if it is committed or there is no row."""
    state = _state_of(row)
    if row is None or state is TxnState.COMMITTED:
        raise _no_such_txn_error(txn_id, state)
    if state is TxnState.ABORTED:
        raise aborted_error(txn_id, row.TXN_META_INFO or "no reason was given")
    return row


def _no_such_txn_error(txn_id: int, state: TxnState | None) -> NoSuchTxnError:
    """Make the error that says why there is no open transaction of this number."""
    why = (
        "it is committed"
        if state is TxnState.COMMITTED
        else "it was never opened, or ended longer ago than acidsql.txn.history.retention"
    )
    return NoSuchTxnError(f"There is no open transaction {txn_id}: {why}.", txnId=txn_id)


def _row(connection: Connection, txn_id: int) -> Row[Any] | None:
    """Read the row of TXNS of a transaction; None if there is none."""
    return connection.execute(select(TXNS).where(T.TXN_ID == txn_id)).first()


def _state_of(row: Row[Any] | None) -> TxnState | None:
    return None if row is None else TxnState(row.TXN_STATE)


def _abort_timed_out(connection: Connection, now_ms: int, timeout_ms: int) -> list[int]:
    """Abort the open transactions that have timed out, and return their numbers."""
    dead = _timed_out_txns(connection, now_ms, timeout_ms)
    end(connection, dead, TxnState.ABORTED, "no heartbeat within hive.txn.timeout")
    return list(dead)


def _timed_out_txns(connection: Connection, now_ms: int, timeout_ms: int) -> Sequence[int]:
    """Return the numbers of open transactions whose last heartbeat is older than their own
    time-out, or than ``timeout_ms`` if they have none."""
    # The time-out of the transaction's own session counts, not a shorter one of the caller.
    query = select(T.TXN_ID).where(
        T.TXN_STATE == TxnState.OPEN.value,
        T.TXN_LAST_HEARTBEAT < now_ms - func.coalesce(T.TXN_TIMEOUT, timeout_ms),
    )
    return connection.execute(query.order_by(T.TXN_ID)).scalars().all()
