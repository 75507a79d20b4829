"""Locks: HIVE_LOCKS, granted all or none, in the order of their numbers.

One call to ``lock`` is one external id; its components have internal ids 1, 2, …. A component
waits for locks with a lower external id only, waiting ones included: nobody overtakes. The rules
themselves are in ``lock_rules``.

Source: Hive 4.0 ``EnqueueLockFunction``, ``CheckLockFunction``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, insert, or_, select, update

from acidsql.acid.table import TableName
from acidsql.errors import TxnError
from acidsql.metastore.embedded import write_ids
from acidsql.metastore.embedded.engine import Store, next_number
from acidsql.metastore.embedded.schema import (
    HIVE_LOCKS,
    NEXT_LOCK_ID,
    TXN_COMPONENTS,
    TXNS,
)
from acidsql.metastore.embedded.txns import beat, need_open
from acidsql.metastore.interface import (
    LockComponent,
    LockInfo,
    LockResponse,
    LockState,
    LockType,
    Operation,
)
from acidsql.metastore.lock_rules import merge, must_wait

HL, TC = HIVE_LOCKS.c, TXN_COMPONENTS.c
_RECORDED = (Operation.INSERT, Operation.UPDATE, Operation.DELETE)
_Thing = tuple[str, str | None]


class EmbeddedLocks:
    """The part of ``TxnStore`` about locks; see there for each method's promise."""

    _store: Store

    def lock(self, txn_id: int, components: Sequence[LockComponent]) -> LockResponse:
        """See ``TxnStore.lock``."""
        with self._store.write() as connection:
            need_open(connection, txn_id)
            lock_id = next_number(connection, NEXT_LOCK_ID)
            _record(connection, txn_id, components)
            _enqueue(connection, txn_id, lock_id, merge(components))
            now_ms = self._store.now_ms(connection)
            return _try_to_acquire(connection, txn_id, lock_id, now_ms)

    def check_lock(self, txn_id: int, lock_id: int) -> LockResponse:
        """See ``TxnStore.check_lock``."""
        with self._store.write() as connection:
            now_ms = self._store.now_ms(connection)
            beat(connection, txn_id, now_ms)
            state = _state(connection, txn_id, lock_id)
            if state is None:
                raise TxnError(
                    f"Transaction {txn_id} has no lock {lock_id}.",
                    condition="NO_SUCH_LOCK",
                    txnId=txn_id,
                    lockId=lock_id,
                )
            if state is LockState.ACQUIRED:
                return LockResponse(lock_id, state)
            return _try_to_acquire(connection, txn_id, lock_id, now_ms)

    def unlock(self, txn_id: int, lock_id: int) -> None:
        """See ``TxnStore.unlock``."""
        with self._store.write() as connection:
            if _state(connection, txn_id, lock_id) is LockState.ACQUIRED:
                raise TxnError(
                    f"Lock {lock_id} is held to the end of transaction {txn_id}.",
                    condition="TXN_OPEN",
                    txnId=txn_id,
                    lockId=lock_id,
                )
            connection.execute(
                delete(HIVE_LOCKS).where(HL.HL_TXNID == txn_id, HL.HL_LOCK_EXT_ID == lock_id)
            )

    def show_locks(self) -> list[LockInfo]:
        """See ``TxnStore.show_locks``."""
        # 'a' before 'w': acquired before waiting.
        order = (HL.HL_LOCK_STATE, HL.HL_LOCK_EXT_ID, HL.HL_LOCK_INT_ID)
        with self._store.read() as connection:
            return [_info(row) for row in connection.execute(select(HIVE_LOCKS).order_by(*order))]


def _state(connection: Connection, txn_id: int, lock_id: int) -> LockState | None:
    """All components of a lock are in one state."""
    found = select(HL.HL_LOCK_STATE).where(HL.HL_TXNID == txn_id, HL.HL_LOCK_EXT_ID == lock_id)
    letter = connection.execute(found.limit(1)).scalar()
    return None if letter is None else LockState(letter)


def _record(connection: Connection, txn_id: int, components: Sequence[LockComponent]) -> None:
    """Note in TXN_COMPONENTS what will be written where, each thing once."""
    known = {
        tuple(row)
        for row in connection.execute(
            select(TC.TC_DATABASE, TC.TC_TABLE, TC.TC_PARTITION, TC.TC_OPERATION_TYPE).where(
                TC.TC_TXNID == txn_id
            )
        )
    }
    for one in components:
        row = (one.database, one.table, one.partition, one.operation.value)
        if one.operation not in _RECORDED or row in known:
            continue
        known.add(row)
        name = TableName(one.database, one.table or "")
        connection.execute(
            insert(TXN_COMPONENTS).values(
                TC_TXNID=txn_id,
                TC_DATABASE=one.database,
                TC_TABLE=one.table,
                TC_PARTITION=one.partition,
                TC_OPERATION_TYPE=one.operation.value,
                TC_WRITEID=write_ids.find(connection, txn_id, name),
            )
        )


def _enqueue(
    connection: Connection, txn_id: int, lock_id: int, components: Sequence[LockComponent]
) -> None:
    if not components:
        return
    txn = connection.execute(select(TXNS).where(TXNS.c.TXN_ID == txn_id)).one()
    rows = [
        {
            "HL_LOCK_EXT_ID": lock_id,
            "HL_LOCK_INT_ID": number,
            "HL_TXNID": txn_id,
            "HL_DB": one.database,
            "HL_TABLE": one.table,
            "HL_PARTITION": one.partition,
            "HL_LOCK_STATE": LockState.WAITING.value,
            "HL_LOCK_TYPE": one.lock_type.value,
            "HL_LAST_HEARTBEAT": 0,  # it lives as long as its transaction
            "HL_USER": txn.TXN_USER,
            "HL_HOST": txn.TXN_HOST,
            "HL_AGENT_INFO": txn.TXN_AGENT_INFO,
        }
        for number, one in enumerate(components, 1)
    ]
    connection.execute(insert(HIVE_LOCKS), rows)


def _try_to_acquire(connection: Connection, txn_id: int, lock_id: int, now_ms: int) -> LockResponse:
    """Grant all components, or leave all waiting and note who is in the way of which."""
    own = connection.execute(
        select(HIVE_LOCKS).where(HL.HL_LOCK_EXT_ID == lock_id).order_by(HL.HL_LOCK_INT_ID)
    ).all()
    found = _blocker(own, _earlier_locks(connection, txn_id, lock_id, own))
    mine = HL.HL_LOCK_EXT_ID == lock_id
    if found is None:
        connection.execute(
            update(HIVE_LOCKS)
            .where(mine)
            .values(
                HL_LOCK_STATE=LockState.ACQUIRED.value,
                HL_ACQUIRED_AT=now_ms,
                HL_BLOCKEDBY_EXT_ID=None,
                HL_BLOCKEDBY_INT_ID=None,
            )
        )
        return LockResponse(lock_id, LockState.ACQUIRED)
    blocked, blocker = found
    connection.execute(
        update(HIVE_LOCKS)
        .where(mine, HL.HL_LOCK_INT_ID == blocked.HL_LOCK_INT_ID)
        .values(
            HL_BLOCKEDBY_EXT_ID=blocker.HL_LOCK_EXT_ID,
            HL_BLOCKEDBY_INT_ID=blocker.HL_LOCK_INT_ID,
        )
    )
    return LockResponse(lock_id, LockState.WAITING, _info(blocker))


def _earlier_locks(
    connection: Connection, txn_id: int, lock_id: int, own: Sequence[Row[Any]]
) -> Sequence[Row[Any]]:
    """Earlier locks of others on the same tables, or on the whole of the same databases."""
    things: set[_Thing] = {(row.HL_DB, row.HL_TABLE) for row in own}
    whole = {database for database, table in things if table is None}
    near: list[ColumnElement[bool]] = [HL.HL_DB.in_(whole)]
    for database, table in things:
        if database not in whole:
            same_table = or_(HL.HL_TABLE == table, HL.HL_TABLE.is_(None))
            near.append(and_(HL.HL_DB == database, same_table))
    return connection.execute(
        select(HIVE_LOCKS)
        .where(HL.HL_LOCK_EXT_ID < lock_id, HL.HL_TXNID != txn_id, or_(*near))
        .order_by(HL.HL_LOCK_EXT_ID, HL.HL_LOCK_INT_ID)
    ).all()


def _blocker(
    own: Sequence[Row[Any]], earlier: Sequence[Row[Any]]
) -> tuple[Row[Any], Row[Any]] | None:
    """The first of our components that must wait, and for what; the holder's before a waiter's."""
    # Whoever holds a lock can do something about it, so that one is named if there is one.
    acquired_first = sorted(earlier, key=lambda row: str(row.HL_LOCK_STATE))
    by_table: dict[_Thing, list[tuple[Row[Any], LockComponent]]] = {}
    for row in acquired_first:
        by_table.setdefault((row.HL_DB, row.HL_TABLE), []).append((row, _component(row)))
    for mine in own:
        requested = _component(mine)
        if requested.table is None:
            rivals = [pair for pairs in by_table.values() for pair in pairs]
        else:
            rivals = by_table.get((mine.HL_DB, mine.HL_TABLE), []) + by_table.get(
                (mine.HL_DB, None), []
            )
        for row, other in rivals:
            if must_wait(requested, other):
                return mine, row
    return None


def _component(row: Row[Any]) -> LockComponent:
    return LockComponent(LockType(row.HL_LOCK_TYPE), row.HL_DB, row.HL_TABLE, row.HL_PARTITION)


def _info(row: Row[Any]) -> LockInfo:
    blocked_by = (
        (row.HL_BLOCKEDBY_EXT_ID, row.HL_BLOCKEDBY_INT_ID)
        if row.HL_BLOCKEDBY_EXT_ID is not None
        else None
    )
    return LockInfo(
        lock_id=row.HL_LOCK_EXT_ID,
        internal_id=row.HL_LOCK_INT_ID,
        txn_id=row.HL_TXNID,
        database=row.HL_DB,
        table=row.HL_TABLE,
        partition=row.HL_PARTITION,
        state=LockState(row.HL_LOCK_STATE),
        lock_type=LockType(row.HL_LOCK_TYPE),
        acquired_at_ms=row.HL_ACQUIRED_AT,
        user=row.HL_USER,
        host=row.HL_HOST,
        agent_info=row.HL_AGENT_INFO or "",
        blocked_by=blocked_by,
    )
