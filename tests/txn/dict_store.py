"""A transaction store in dictionaries, with those methods of ``TxnStore`` that a transaction needs.

The store can be copied and compared in microseconds, so that every interleaving of two transactions
can be tried. It uses acidsql's own pure rules (``lock_rules``, ``conflict_rules``), but keeps its
data in its own way. ``test_interleavings`` also runs it beside the real store and compares every
answer.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.errors import AcidSqlError, TxnAbortedError, TxnError, WriteConflictError
from acidsql.metastore import conflict_rules
from acidsql.metastore.abilities import Abilities
from acidsql.metastore.conflict_rules import RECORDED, RecordedChange, Rival
from acidsql.metastore.interface import (
    PLAIN_COMMIT,
    Commit,
    LockComponent,
    LockInfo,
    LockResponse,
    LockState,
    TxnState,
    TxnType,
    WriteConflict,
)
from acidsql.metastore.lock_rules import LocksByObject, blockers, find_circle, merge_components


class DictStore:
    """The transactions of one table. Every value is immutable, so a copy only copies references.

    Attributes:
        states: Each transaction's state.
        changes: The changes that each transaction has recorded; after its commit, those that are
            kept.
        locks: The locks in the order of the requests.
        write_ids: Each transaction's write id.
        sessions: The transactions that hold the locks of sessions.
    """

    def __init__(self) -> None:
        self.states: dict[int, TxnState] = {}
        self.changes: dict[int, tuple[RecordedChange, ...]] = {}
        self.locks: tuple[LockInfo, ...] = ()
        self.write_ids: dict[int, int] = {}
        self.sessions: frozenset[int] = frozenset()
        self._next_lock_id = 1

    def copy(self) -> DictStore:
        """A second store in the same state."""
        other = copy.copy(self)
        other.states, other.changes = self.states.copy(), self.changes.copy()
        other.write_ids = self.write_ids.copy()
        return other

    def key(self) -> object:
        """A key that is equal for two stores if they will answer all questions in the same way."""
        return (
            tuple(self.states.items()),
            tuple(sorted(self.changes.items())),
            tuple((lock.lock_id, lock.txn_id, lock.state, lock.session) for lock in self.locks),
            tuple(self.write_ids.items()),
        )

    # ── transactions ─────────────────────────────────────────────────────────────────────────

    abilities = Abilities()

    def record_partitions(self, *_: Any) -> None:
        """The components of the locks say it."""

    def open_txn(self, *, txn_type: TxnType = TxnType.DEFAULT, **_: Any) -> int:
        txn_id = len(self.states) + 1
        if txn_type is TxnType.SESSION:
            self.sessions |= {txn_id}
        self.states[txn_id], self.changes[txn_id] = TxnState.OPEN, ()
        return txn_id

    def commit_txn(self, txn_id: int, commit: Commit = PLAIN_COMMIT) -> None:
        self._need_open(txn_id)
        written = [p.values for found in commit.added_partitions.values() for p in found]
        narrowed = self._narrowed(self.changes[txn_id], [f"p={value}" for (value,) in written])
        if commit.snapshot is not None:
            found = self._conflicts(txn_id, commit.snapshot, narrowed)
            if left := [one for one in found if one.txn_id not in commit.resolved_txns]:
                raise conflict_rules.conflict_error(txn_id, left)
        self.changes[txn_id] = narrowed
        self._end(txn_id, TxnState.COMMITTED)

    def abort_txn(self, txn_id: int, reason: str = "") -> None:
        if self.states[txn_id] is TxnState.OPEN:
            self._end(txn_id, TxnState.ABORTED)

    def abort_timed_out(self, timeout_ms: int) -> list[int]:
        return []

    def txn_state(self, txn_id: int) -> TxnState | None:
        return self.states.get(txn_id)

    # ── snapshots ────────────────────────────────────────────────────────────────────────────

    def valid_txns(self, txn_id: int = 0) -> ValidTxnList:
        unseen = {txn_id, *self.sessions}
        others = [(number, state) for number, state in self.states.items() if number not in unseen]
        return ValidTxnList(
            len(self.states),
            tuple(number for number, state in others if state is TxnState.OPEN),
            tuple(number for number, state in others if state is TxnState.ABORTED),
        )

    def valid_txns_under(self, lease: int) -> ValidTxnList | None:
        return self.valid_txns() if self.states.get(lease) is TxnState.OPEN else None

    def keep_files(self, txn_id: int, tables: Sequence[TableName]) -> None:
        pass  # nobody cleans

    def valid_write_ids(
        self, valid_txns: ValidTxnList, tables: Sequence[TableName]
    ) -> dict[TableName, ValidWriteIdList]:
        hidden = [own for txn_id, own in self.write_ids.items() if not valid_txns.is_valid(txn_id)]
        mark = len(self.write_ids)
        return {name: ValidWriteIdList(mark, tuple(hidden), table=str(name)) for name in tables}

    def allocate_write_id(self, txn_id: int, table: TableName) -> int:
        self._need_open(txn_id)
        own = self.write_ids.setdefault(txn_id, len(self.write_ids) + 1)
        self.changes[txn_id] = tuple(
            RecordedChange(one.database, one.table, one.partition, one.operation, own)
            for one in self.changes[txn_id]
        )
        return own

    # ── locks ────────────────────────────────────────────────────────────────────────────────

    def lock(
        self,
        txn_id: int,
        components: Sequence[LockComponent],
        *,
        agent_info: str | None = None,
        session: int | None = None,
    ) -> LockResponse:
        self._need_open(txn_id)
        lock_id, self._next_lock_id = self._next_lock_id, self._next_lock_id + 1
        recorded = [*self.changes[txn_id], *self._recorded(txn_id, components)]
        self.changes[txn_id] = tuple(dict.fromkeys(recorded))
        self.locks += tuple(
            LockInfo(
                lock_id, number, txn_id, one.database, one.table, one.partition,
                LockState.WAITING, one.lock_type, None, "", "", "", session=session,
            )
            for number, one in enumerate(merge_components(components), 1)
        )  # fmt: skip
        return self._try(lock_id)

    def check_lock(self, txn_id: int, lock_id: int) -> LockResponse:
        self._need_open(txn_id)
        response = self._try(lock_id)
        while response.state is LockState.WAITING and (circle := find_circle(txn_id, self.locks)):
            self._end(max(circle), TxnState.ABORTED)
            self._need_open(txn_id)
            response = self._try(lock_id)
        return response

    def show_locks(self) -> list[LockInfo]:
        return sorted(self.locks, key=lambda lock: (lock.state.value, lock.lock_id))

    def unlock(self, txn_id: int, lock_id: int) -> None:
        held = (lock.lock_id == lock_id and lock.state is LockState.ACQUIRED for lock in self.locks)
        if any(held) and txn_id not in self.sessions:
            raise TxnError("A transaction holds its locks.", condition="TXN_OPEN")
        self.locks = tuple(lock for lock in self.locks if lock.lock_id != lock_id)

    def restore_components(self, txn_id: int, components: Sequence[LockComponent]) -> None:
        self._need_open(txn_id)
        self.changes[txn_id] = self._recorded(txn_id, components)

    def write_conflicts(
        self,
        txn_id: int,
        snapshot: ValidTxnList,
        components: Sequence[LockComponent] | None = None,
    ) -> list[WriteConflict]:
        ours = self.changes[txn_id] if components is None else self._recorded(txn_id, components)
        return self._conflicts(txn_id, snapshot, ours)

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _need_open(self, txn_id: int) -> None:
        if self.states[txn_id] is not TxnState.OPEN:
            raise TxnAbortedError(f"Transaction {txn_id} was aborted.", txnId=txn_id)

    def _end(self, txn_id: int, state: TxnState) -> None:
        self.states[txn_id] = state
        self.locks = tuple(lock for lock in self.locks if lock.txn_id != txn_id)

    def _try(self, lock_id: int) -> LockResponse:
        near = LocksByObject((lock, lock) for lock in self.locks)
        for mine in self.locks:
            if mine.lock_id == lock_id and (found := blockers(mine, near)):
                return LockResponse(lock_id, LockState.WAITING, found[0])
        self.locks = tuple(
            _granted(lock) if lock.lock_id == lock_id else lock for lock in self.locks
        )
        return LockResponse(lock_id, LockState.ACQUIRED)

    def _recorded(
        self, txn_id: int, components: Sequence[LockComponent]
    ) -> tuple[RecordedChange, ...]:
        own = self.write_ids.get(txn_id)
        return tuple(
            dict.fromkeys(
                RecordedChange(one.database, str(one.table), one.partition, one.operation, own)
                for one in components
                if one.operation in RECORDED
            )
        )

    @staticmethod
    def _narrowed(
        changes: tuple[RecordedChange, ...], written: list[str]
    ) -> tuple[RecordedChange, ...]:
        return tuple(
            dict.fromkeys(
                RecordedChange(one.database, one.table, partition, one.operation, one.write_id)
                for one in changes
                for partition in ([one.partition] if one.partition else written)
            )
        )

    def _conflicts(
        self, txn_id: int, snapshot: ValidTxnList, ours: Sequence[RecordedChange]
    ) -> list[WriteConflict]:
        rivals = [
            Rival(other, "", "", "", self.changes[other])
            for other, state in self.states.items()
            if state is TxnState.COMMITTED and not snapshot.is_valid(other)
        ]
        return conflict_rules.find_conflicts(ours, rivals)


def _granted(lock: LockInfo) -> LockInfo:
    return replace(lock, state=LockState.ACQUIRED)


def said(answer: object) -> object:
    """The part of an answer that a store must not get wrong: without the user, the host and the
    time."""
    match answer:
        case LockResponse():
            return answer.lock_id, answer.state, answer.blocked_by and answer.blocked_by.txn_id
        case ValidTxnList():
            return str(answer)
        case dict():
            (valid,) = answer.values()
            return tuple(own for own in range(1, valid.high_water_mark + 9) if valid.is_valid(own))
        case list():
            return _compared(answer)
        case WriteConflictError():
            return type(answer), _compared(answer.conflicts)
        case AcidSqlError():
            return type(answer), answer.condition
    return answer


def _compared(conflicts: Sequence[WriteConflict]) -> object:
    return tuple((one.txn_id, one.partition, one.write_id, one.by_row) for one in conflicts)
