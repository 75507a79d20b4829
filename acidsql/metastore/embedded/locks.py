"""Locks in HIVE_LOCKS: granted all or none, in the order of their numbers.

Each call of ``lock`` gets one external id; its components have the internal ids 1, 2, …. A
component waits only for locks with a lower external id, acquired or waiting, so no lock overtakes
another. If a transaction checks its lock and must wait on, it also looks for a circle of waiting
transactions, and ends the circle. ``lock_rules`` has the rules.

Source: Hive 4.0 ``EnqueueLockFunction``, ``CheckLockFunction``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, insert, or_, select, update

from acidsql.errors import TxnAbortedError, TxnError
from acidsql.metastore.embedded.database.engine import Store, next_number
from acidsql.metastore.embedded.database.schema import HIVE_LOCKS, NEXT_LOCK_ID, TXNS
from acidsql.metastore.embedded.records import changes
from acidsql.metastore.embedded.txns import (
    aborted_error,
    beat,
    end,
    need_open,
    note_statement,
)
from acidsql.metastore.interface import (
    LockComponent,
    LockInfo,
    LockResponse,
    LockState,
    LockType,
    TxnState,
    TxnType,
)
from acidsql.metastore.lock_rules import (
    LocksByObject,
    blockers,
    circle_in_words,
    find_circle,
    merge_components,
)

HL = HIVE_LOCKS.c


class EmbeddedLocks:
    """The part of ``TxnStore`` about locks; the methods are described there."""

    _store: Store

    def lock(
        self,
        txn_id: int,
        components: Sequence[LockComponent],
        *,
        agent_info: str | None = None,
        session: int | None = None,
    ) -> LockResponse:
        """Enqueue all components as one lock, record what they change, and try once to acquire
        them, all or none. The answer is ACQUIRED, or WAITING with a lock that is in the way.
        Nothing is waited for. Unless ``agent_info`` is None, it becomes the transaction's
        statement. Raise TxnAbortedError or NoSuchTxnError if the transaction has ended."""
        with self._store.write() as connection:
            txn = need_open(connection, txn_id)
            statement = txn.TXN_AGENT_INFO
            if agent_info is not None:
                statement = note_statement(connection, txn, agent_info)
            lock_id = next_number(connection, NEXT_LOCK_ID)
            changes.record_changes(connection, txn_id, components)
            _enqueue(connection, txn, statement, session, lock_id, merge_components(components))
            now_ms = self._store.now_ms(connection)
            return _try_to_acquire(connection, lock_id, now_ms)

    def check_lock(self, txn_id: int, lock_id: int) -> LockResponse:
        """Note a heartbeat, and try once more to acquire a waiting lock; nothing is waited for, and
        a granted lock is only reported. In a circle of waiting transactions, abort the youngest; if
        that is this one, raise TxnAbortedError. Raise TxnError NO_SUCH_LOCK if the lock is gone."""
        with self._store.write() as connection:
            now_ms = self._store.now_ms(connection)
            beat(connection, txn_id, now_ms)
            state = _lock_state(connection, txn_id, lock_id)
            if state is None:
                raise TxnError(
                    f"Transaction {txn_id} has no lock {lock_id}.",
                    condition="NO_SUCH_LOCK",
                    txnId=txn_id,
                    lockId=lock_id,
                )
            if state is LockState.ACQUIRED:
                return LockResponse(lock_id, state)
            answer = _acquire_or_break(connection, txn_id, lock_id, now_ms)
        # Raise only after the store transaction: an error inside it would undo the abort.
        if isinstance(answer, TxnAbortedError):
            raise answer
        return answer

    def unlock(self, txn_id: int, lock_id: int) -> None:
        """Delete a waiting lock, or a granted lock of a SESSION transaction; one that is gone is no
        error. Raise TxnError TXN_OPEN for a granted lock of another transaction."""
        with self._store.write() as connection:
            is_held = _lock_state(connection, txn_id, lock_id) is LockState.ACQUIRED
            if is_held and not _is_session(connection, txn_id):
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
        """Return all locks, one LockInfo for each component: acquired ones first, then by
        number."""
        # 'a' (acquired) sorts before 'w' (waiting).
        order = (HL.HL_LOCK_STATE, HL.HL_LOCK_EXT_ID, HL.HL_LOCK_INT_ID)
        with self._store.read() as connection:
            return [
                _lock_info(row) for row in connection.execute(select(HIVE_LOCKS).order_by(*order))
            ]


def _lock_state(connection: Connection, txn_id: int, lock_id: int) -> LockState | None:
    """Return the state of a lock, which all of its components share; None if the transaction has no
    such lock."""
    query = select(HL.HL_LOCK_STATE).where(HL.HL_TXNID == txn_id, HL.HL_LOCK_EXT_ID == lock_id)
    letter = connection.execute(query.limit(1)).scalar()
    return None if letter is None else LockState(letter)


def _is_session(connection: Connection, txn_id: int) -> bool:
    query = select(TXNS.c.TXN_TYPE).where(TXNS.c.TXN_ID == txn_id)
    return connection.execute(query).scalar() == TxnType.SESSION.value


def _enqueue(
    connection: Connection,
    txn: Row[Any],
    statement: str | None,
    session: int | None,
    lock_id: int,
    components: Sequence[LockComponent],
) -> None:
    """Insert the components of a lock as waiting rows. ``statement``: what others see of it.
    ``session``: the SESSION transaction whose locks it passes, or None."""
    rows = [
        {
            "HL_LOCK_EXT_ID": lock_id,
            "HL_LOCK_INT_ID": number,
            "HL_TXNID": txn.TXN_ID,
            "HL_DB": component.database,
            "HL_TABLE": component.table,
            "HL_PARTITION": component.partition,
            "HL_LOCK_STATE": LockState.WAITING.value,
            "HL_LOCK_TYPE": component.lock_type.value,
            "HL_LAST_HEARTBEAT": 0,  # only the transaction has heartbeats
            "HL_USER": txn.TXN_USER,
            "HL_HOST": txn.TXN_HOST,
            "HL_AGENT_INFO": statement,
            "HL_SESSION": session,
        }
        for number, component in enumerate(components, 1)
    ]
    if rows:
        connection.execute(insert(HIVE_LOCKS), rows)


def _acquire_or_break(
    connection: Connection, txn_id: int, lock_id: int, now_ms: int
) -> LockResponse | TxnAbortedError:
    """Try to acquire a lock, and abort the youngest of each circle of waiting transactions with
    this one.

    Returns:
        The error if this transaction itself was aborted; otherwise whether the lock is granted, and
        what blocks it.
    """
    while True:
        response = _try_to_acquire(connection, lock_id, now_ms)
        if response.state is LockState.ACQUIRED:
            return response
        circle = find_circle(txn_id, _locks_near_waiting(connection, txn_id))
        if not circle:
            return response
        victim = max(circle)  # the youngest has probably done the least work
        reason = circle_in_words(circle, victim)
        end(connection, [victim], TxnState.ABORTED, reason)
        if victim == txn_id:
            return aborted_error(txn_id, reason)


def _try_to_acquire(connection: Connection, lock_id: int, now_ms: int) -> LockResponse:
    """Grant all components of a lock; or, if one must wait, leave all waiting, and note in the row
    of the first such component which lock blocks it. Return the lock's state, with that blocking
    lock."""
    is_own = HL.HL_LOCK_EXT_ID == lock_id
    own = _read_locks(connection, is_own)
    is_earlier = or_(HL.HL_LOCK_EXT_ID < lock_id, HL.HL_LOCK_STATE == LockState.ACQUIRED.value)
    first_blocked = _first_blocked(own, _read_locks(connection, is_earlier, _may_overlap(own)))
    if first_blocked is None:
        connection.execute(
            update(HIVE_LOCKS)
            .where(is_own)
            .values(
                HL_LOCK_STATE=LockState.ACQUIRED.value,
                HL_ACQUIRED_AT=now_ms,
                HL_BLOCKEDBY_EXT_ID=None,
                HL_BLOCKEDBY_INT_ID=None,
            )
        )
        return LockResponse(lock_id, LockState.ACQUIRED)
    blocked, blocker = first_blocked
    connection.execute(
        update(HIVE_LOCKS)
        .where(is_own, HL.HL_LOCK_INT_ID == blocked.internal_id)
        .values(HL_BLOCKEDBY_EXT_ID=blocker.lock_id, HL_BLOCKEDBY_INT_ID=blocker.internal_id)
    )
    return LockResponse(lock_id, LockState.WAITING, blocker)


def _first_blocked(
    own: Sequence[LockInfo], other_locks: Iterable[LockInfo]
) -> tuple[LockInfo, LockInfo] | None:
    """Return the first of our components that must wait, and the lock that blocks it; None if there
    is none."""
    near = LocksByObject((lock, lock) for lock in other_locks)
    for own_lock in own:
        for blocker in blockers(own_lock, near):
            return own_lock, blocker
    return None


def _locks_near_waiting(connection: Connection, txn_id: int) -> list[LockInfo]:
    """Return all locks, waiting and granted, that may overlap a waiting lock; none if no
    transaction but this one waits, as there can be no circle then."""
    waiting = _read_locks(connection, HL.HL_LOCK_STATE == LockState.WAITING.value)
    if all(lock.txn_id == txn_id for lock in waiting):
        return []  # a circle needs two waiting transactions
    return _read_locks(connection, _may_overlap(waiting))


def _may_overlap(locks: Iterable[LockInfo]) -> ColumnElement[bool]:
    """Make the condition for rows of locks that can overlap one of these: on the same tables or
    their whole database, or, for a whole database, on anything in it."""
    tables_locked = {(lock.database, lock.table) for lock in locks}
    whole_databases = {database for database, table in tables_locked if table is None}
    near: list[ColumnElement[bool]] = [HL.HL_DB.in_(whole_databases)]
    for database in sorted({database for database, _ in tables_locked} - whole_databases):
        tables = sorted(
            table
            for database_of_table, table in tables_locked
            if database_of_table == database and table
        )
        same_table = or_(HL.HL_TABLE.in_(tables), HL.HL_TABLE.is_(None))
        near.append(and_(HL.HL_DB == database, same_table))
    return or_(*near)


def _read_locks(connection: Connection, *conditions: ColumnElement[bool]) -> list[LockInfo]:
    """Read the locks for which all of the conditions on HIVE_LOCKS hold, by number."""
    query = select(HIVE_LOCKS).where(*conditions)
    ordered = query.order_by(HL.HL_LOCK_EXT_ID, HL.HL_LOCK_INT_ID)
    return [_lock_info(row) for row in connection.execute(ordered)]


def _lock_info(row: Row[Any]) -> LockInfo:
    """Make the LockInfo of a row of HIVE_LOCKS. A missing statement becomes ""; ``blocked_by`` is
    None if no lock is noted as the blocking one."""
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
        session=row.HL_SESSION,
    )
