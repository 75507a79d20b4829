"""What goes on in a warehouse now: transactions, locks and compactions, as tables of texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from acidsql.metastore.compaction_queue import CompactionInfo, CompactionState
from acidsql.metastore.conflict_rules import brief
from acidsql.metastore.interface import LockInfo, LockState, Metastore, TxnInfo, TxnState
from acidsql.txn.locks import lock_object_name

_QUEUE = (
    CompactionState.WORKING,
    CompactionState.INITIATED,
    CompactionState.READY_FOR_CLEANING,
)
_ENDED = 5  # compactions of the history


class Mark(Enum):
    """How a line looks."""

    PLAIN = 0
    WAITS = 1
    WORKS = 2
    FAILED = 3


_MARKS = {
    CompactionState.WORKING: Mark.WORKS,
    CompactionState.FAILED: Mark.FAILED,
}


@dataclass(frozen=True, slots=True)
class Section:
    """A table.

    Attributes:
        title: What it shows, and how many.
        columns: The heads.
        lines: The cells of each line, and how it looks; the most interesting first.
    """

    title: str
    columns: tuple[str, ...]
    lines: Sequence[tuple[Mark, tuple[str, ...]]]


def sections(store: Metastore) -> list[Section]:
    """Look at a metastore once. Nothing is changed, and no transaction is opened."""
    now_ms = store.now_ms()
    locks, txns = store.show_locks(), store.show_txns()
    return [
        _transactions(txns, locks, now_ms),
        _locks(locks, now_ms),
        _compactions(store.compactions(), txns, now_ms),
    ]


def _transactions(txns: Sequence[TxnInfo], locks: Sequence[LockInfo], now_ms: int) -> Section:
    waits: dict[int, set[int]] = defaultdict(set)
    holds_up: dict[int, set[int]] = defaultdict(set)
    waiting = {one.txn_id for one in locks if one.state is LockState.WAITING}
    for lock, blocker in _blocked(locks):
        waits[lock.txn_id].add(blocker.txn_id)
        holds_up[blocker.txn_id].add(lock.txn_id)
    found = [one for one in txns if one.state is TxnState.OPEN]
    found.sort(key=lambda one: (one.txn_id not in waiting, one.txn_id not in holds_up, one.txn_id))
    lines = [
        (
            Mark.WAITS if one.txn_id in waiting else Mark.PLAIN,
            (
                str(one.txn_id),
                _age(one.started_ms, now_ms),
                _age(one.last_heartbeat_ms, now_ms),
                _listed(waits[one.txn_id]) or ("a lock" if one.txn_id in waiting else ""),
                _listed(holds_up[one.txn_id]),
                f"{one.user}@{one.host}",
                brief(one.agent_info),
            ),
        )
        for one in found
    ]
    title = f"open transactions: {len(found)} (aborted: {len(txns) - len(found)})"
    heads = ("txn", "open for", "last sign", "waits for", "holds up", "user", "statement")
    return Section(title, heads, lines)


def _locks(locks: Sequence[LockInfo], now_ms: int) -> Section:
    blockers = {(one.lock_id, one.internal_id): other.txn_id for one, other in _blocked(locks)}
    waiting = [one for one in locks if one.state is LockState.WAITING]
    held = [one for one in locks if one.state is not LockState.WAITING]
    lines = [
        (
            Mark.WAITS if one.state is LockState.WAITING else Mark.PLAIN,
            (
                f"{one.lock_id}.{one.internal_id}",
                str(one.txn_id),
                one.state.name.lower(),
                one.lock_type.name,
                lock_object_name(one.database, one.table, one.partition),
                str(blockers.get((one.lock_id, one.internal_id), "")),
                _age(one.acquired_at_ms, now_ms),
            ),
        )
        for one in (*waiting, *held)
    ]
    title = f"locks: {len(locks)} (waiting: {len(waiting)})"
    heads = ("lock", "txn", "state", "type", "on", "waits for txn", "held for")
    return Section(title, heads, lines)


def _compactions(found: Sequence[CompactionInfo], txns: Iterable[TxnInfo], now_ms: int) -> Section:
    signs = {one.txn_id: one.last_heartbeat_ms for one in txns if one.state is TxnState.OPEN}
    queue = [one for state in _QUEUE for one in found if one.state is state]
    ended = [one for one in found if one.state not in _QUEUE][:_ENDED]
    lines = [
        (
            _MARKS.get(one.state, Mark.PLAIN),
            (
                str(one.id),
                one.type.name.lower(),
                lock_object_name(one.table.database, one.table.name, one.partition),
                one.state.shown,
                one.progress or "",
                _age(one.ended_ms or one.committed_ms or one.started_ms or one.enqueued_ms, now_ms),
                _sign(one, signs, now_ms),
                one.worker_id or "",
                brief(one.message or ""),
            ),
        )
        for one in (*queue, *ended)
    ]
    title = f"compactions: {len(queue)} (in the history: {len(found) - len(queue)})"
    heads = ("id", "type", "of", "state", "progress", "since", "last sign", "worker", "why")
    return Section(title, heads, lines)


def _blocked(locks: Iterable[LockInfo]) -> Iterator[tuple[LockInfo, LockInfo]]:
    """Each waiting lock, and the lock that it waits for, if that is still there."""
    known = {(one.lock_id, one.internal_id): one for one in locks}
    for one in known.values():
        if one.state is LockState.WAITING and one.blocked_by in known:
            yield one, known[one.blocked_by]


def _sign(one: CompactionInfo, signs: Mapping[int, int], now_ms: int) -> str:
    """The last sign of life of a worker: its transaction's heartbeat."""
    if one.state is not CompactionState.WORKING or one.txn_id is None:
        return ""
    return _age(signs[one.txn_id], now_ms) if one.txn_id in signs else "gone"


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _age(since_ms: int | None, now_ms: int) -> str:
    """A time ago, to one unit: ``12 s``, ``3 min``, ``2 h``, ``5 d``."""
    if not since_ms:
        return ""
    left = max(0, now_ms - since_ms) / 1000
    for unit, most in (("s", 60), ("min", 60), ("h", 24)):
        if left < most:
            return f"{left:.0f} {unit}"
        left /= most
    return f"{left:.0f} d"
