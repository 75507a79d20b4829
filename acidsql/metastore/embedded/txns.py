"""Transactions and write ids: ``TxnStore`` without its locks.

A committed transaction's row stays, in state ``c`` (Hive 4): so a COMMIT whose reply was lost can
be repeated, or asked about. Numbers come from NEXT_TXN_ID (Hive 3.1): no gaps to reason about.

Source: Hive ``TxnHandler`` (3.1), ``CommitTxnFunction``, ``AbortTxnsFunction`` (4.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, exists, func, insert, literal, select, update

from acidsql.acid.table import Partition, Table, TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.errors import NoSuchTxnError, TxnAbortedError, TxnError
from acidsql.metastore.embedded import cleanups, partitions, tables, write_ids
from acidsql.metastore.embedded.engine import Store, next_number
from acidsql.metastore.embedded.schema import (
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    NEXT_TXN_ID,
    TXN_COMPONENTS,
    TXNS,
)
from acidsql.metastore.interface import Operation, TxnInfo, TxnState, TxnType

T, TC = TXNS.c, TXN_COMPONENTS.c
_CHANGES = (Operation.UPDATE.value, Operation.DELETE.value)
_PERSON_LIMIT, _TEXT_LIMIT = 128, 1024  # widths of TXN_USER and TXN_AGENT_INFO


class EmbeddedTxns:
    """The part of ``TxnStore`` about transactions; see there for each method's promise."""

    _store: Store

    def open_txn(
        self,
        *,
        user: str,
        host: str,
        agent_info: str = "",
        txn_type: TxnType = TxnType.DEFAULT,
        timeout_ms: int | None = None,
    ) -> int:
        """See ``TxnStore.open_txn``."""
        with self._store.write() as connection:
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
                    TXN_TYPE=txn_type.value,
                    TXN_TIMEOUT=timeout_ms,
                )
            )
            return txn_id

    def heartbeat(self, txn_id: int) -> None:
        """See ``TxnStore.heartbeat``."""
        with self._store.write() as connection:
            beat(connection, txn_id, self._store.now_ms(connection))

    def allocate_write_id(self, txn_id: int, table: TableName) -> int:
        """See ``TxnStore.allocate_write_id``."""
        with self._store.write() as connection:
            txn_type = need_open(connection, txn_id)
            if txn_type is TxnType.READ_ONLY:
                raise TxnError(
                    f"Transaction {txn_id} is read-only: it cannot write to '{table}'.",
                    condition="READ_ONLY_TRANSACTION",
                    sqlstate="25006",
                    txnId=txn_id,
                )
            return write_ids.allocate(connection, txn_id, table)

    def valid_txns(self, txn_id: int = 0) -> ValidTxnList:
        """See ``TxnStore.valid_txns``."""
        with self._store.read() as connection:
            mark = int(connection.execute(select(NEXT_TXN_ID.c.NTXN_NEXT)).scalar_one()) - 1
            states = (TxnState.OPEN.value, TxnState.ABORTED.value)
            rows = connection.execute(
                select(T.TXN_ID, T.TXN_STATE)
                .where(T.TXN_STATE.in_(states), T.TXN_TYPE != TxnType.READ_ONLY.value)
                .order_by(T.TXN_ID)
            ).all()
        others = [(number, state) for number, state in rows if number != txn_id]
        # Unlike Hive's client, the list is not cut at the transaction's own number: it is taken
        # after the locks, and a younger one that committed while we waited must be seen.
        return ValidTxnList(
            mark,
            tuple(number for number, state in others if state == TxnState.OPEN.value),
            tuple(number for number, state in others if state == TxnState.ABORTED.value),
        )

    def valid_write_ids(
        self, valid_txns: ValidTxnList, tables: Sequence[TableName]
    ) -> dict[TableName, ValidWriteIdList]:
        """See ``TxnStore.valid_write_ids``."""
        with self._store.read() as connection:
            return {name: write_ids.valid(connection, valid_txns, name) for name in tables}

    def commit_txn(
        self,
        txn_id: int,
        *,
        add_partitions: Mapping[TableName, Sequence[Partition]] | None = None,
        drop_partitions: Mapping[TableName, Sequence[tuple[str | None, ...]]] | None = None,
        create_table: Table | None = None,
        first_write_id: int = 1,
        cleaned: int | None = None,
    ) -> None:
        """See ``TxnStore.commit_txn``."""
        with self._store.write() as connection:
            if _state(connection, txn_id) is TxnState.COMMITTED:
                return  # the reply to the first COMMIT was lost
            need_open(connection, txn_id)
            if cleaned is not None:
                cleanups.remove(connection, cleaned)
            if create_table is not None:
                tables.create(connection, create_table, first_write_id, txn_id)
            partitions.drop(connection, drop_partitions or {})
            partitions.add(connection, add_partitions or {})
            _complete_components(connection, txn_id)
            _end(connection, [txn_id], TxnState.COMMITTED, "")

    def abort_txn(self, txn_id: int, reason: str = "") -> None:
        """See ``TxnStore.abort_txn``."""
        with self._store.write() as connection:
            state = _state(connection, txn_id)
            if state is TxnState.ABORTED:
                return
            if state is not TxnState.OPEN:
                raise _no_such_txn(txn_id, state)
            _end(connection, [txn_id], TxnState.ABORTED, reason)

    def txn_state(self, txn_id: int) -> TxnState | None:
        """See ``TxnStore.txn_state``."""
        with self._store.read() as connection:
            return _state(connection, txn_id)

    def show_txns(self) -> list[TxnInfo]:
        """See ``TxnStore.show_txns``."""
        states = (TxnState.OPEN.value, TxnState.ABORTED.value)
        found = select(TXNS).where(T.TXN_STATE.in_(states)).order_by(T.TXN_ID)
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
                )
                for row in connection.execute(found)
            ]

    def abort_timed_out(self, timeout_ms: int) -> list[int]:
        """See ``TxnStore.abort_timed_out``."""
        with self._store.read() as connection:  # usually there are none: no need to lock
            if not _timed_out(connection, self._store.now_ms(connection), timeout_ms):
                return []
        with self._store.write() as connection:
            dead = _timed_out(connection, self._store.now_ms(connection), timeout_ms)
            reason = "no heartbeat within hive.txn.timeout"
            _end(connection, dead, TxnState.ABORTED, reason)
            return list(dead)


def beat(connection: Connection, txn_id: int, now_ms: int) -> None:
    """Note a heartbeat of an open transaction. Raises TxnAbortedError, NoSuchTxnError."""
    # Only an open one: a dead transaction does not rise from a late heartbeat.
    alive = connection.execute(
        update(TXNS)
        .where(T.TXN_ID == txn_id, T.TXN_STATE == TxnState.OPEN.value)
        .values(TXN_LAST_HEARTBEAT=now_ms)
    )
    if alive.rowcount == 0:
        need_open(connection, txn_id)


def need_open(connection: Connection, txn_id: int) -> TxnType:
    """The type of an open transaction. Raises TxnAbortedError, NoSuchTxnError."""
    row = connection.execute(
        select(T.TXN_STATE, T.TXN_TYPE, T.TXN_META_INFO).where(T.TXN_ID == txn_id)
    ).first()
    state = None if row is None else TxnState(row.TXN_STATE)
    if row is None or state is TxnState.COMMITTED:
        raise _no_such_txn(txn_id, state)
    if state is TxnState.ABORTED:
        reason = row.TXN_META_INFO or "no reason was given"
        raise TxnAbortedError(
            f"Transaction {txn_id} was aborted: {reason}.", txnId=txn_id, reason=reason
        )
    return TxnType(row.TXN_TYPE)


def _no_such_txn(txn_id: int, state: TxnState | None) -> NoSuchTxnError:
    why = "it is committed" if state is TxnState.COMMITTED else "it was never opened"
    return NoSuchTxnError(f"There is no open transaction {txn_id}: {why}.", txnId=txn_id)


def _state(connection: Connection, txn_id: int) -> TxnState | None:
    letter = connection.execute(select(T.TXN_STATE).where(T.TXN_ID == txn_id)).scalar()
    return None if letter is None else TxnState(letter)


def _end(connection: Connection, txn_ids: Sequence[int], state: TxnState, reason: str) -> None:
    """I12: the state changes and the locks go, in one store transaction."""
    for txn_id in txn_ids:
        connection.execute(
            update(TXNS)
            .where(T.TXN_ID == txn_id)
            .values(TXN_STATE=state.value, TXN_META_INFO=reason[:_TEXT_LIMIT])
        )
        connection.execute(delete(HIVE_LOCKS).where(HIVE_LOCKS.c.HL_TXNID == txn_id))


def _timed_out(connection: Connection, now_ms: int, timeout_ms: int) -> Sequence[int]:
    # A transaction is measured by what its own session promised, not by a hastier one's setting.
    found = select(T.TXN_ID).where(
        T.TXN_STATE == TxnState.OPEN.value,
        T.TXN_LAST_HEARTBEAT < now_ms - func.coalesce(T.TXN_TIMEOUT, timeout_ms),
    )
    return connection.execute(found.order_by(T.TXN_ID)).scalars().all()


def _complete_components(connection: Connection, txn_id: int) -> None:
    """TXN_COMPONENTS → COMPLETED_TXN_COMPONENTS, which the compactor reads."""
    changes = exists().where(TC.TC_TXNID == txn_id, TC.TC_OPERATION_TYPE.in_(_CHANGES))
    changed = connection.execute(select(changes)).scalar_one()
    flag = "Y" if changed else "N"  # for the whole transaction, as in Hive
    source = select(
        TC.TC_TXNID,
        TC.TC_DATABASE,
        TC.TC_TABLE,
        TC.TC_PARTITION,
        TC.TC_WRITEID,
        literal(flag),
    ).where(TC.TC_TXNID == txn_id)
    target = ["CTC_TXNID", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", "CTC_WRITEID"]
    connection.execute(
        insert(COMPLETED_TXN_COMPONENTS).from_select(
            [*target, "CTC_UPDATE_DELETE"], source.distinct()
        )
    )
    connection.execute(delete(TXN_COMPONENTS).where(TC.TC_TXNID == txn_id))
