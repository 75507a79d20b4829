"""What goes on in a warehouse now: transactions, locks and compactions, as tables of texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from acidsql.metastore.compaction_queue import CompactionInfo, CompactionState
from acidsql.metastore.conflict_rules import short_statement
from acidsql.metastore.interface import LockInfo, LockState, Metastore, TxnInfo, TxnState
from acidsql.txn.locks import lock_object_name

_QUEUE = (
    CompactionState.WORKING,
    CompactionState.INITIATED,
    CompactionState.READY_FOR_CLEANING,
)
_MOST_ENDED = 5  # compactions of the history


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
    """Look at a metastore once, and return three tables to show, in this order: transactions, locks
    and compactions. Times count from the metastore's clock. Nothing is changed, and no transaction
    is opened."""
    now_ms = store.now_ms()
    locks, txns = store.show_locks(), store.show_txns()
    return [
        _transaction_section(txns, locks, now_ms),
        _lock_section(locks, now_ms),
        _compaction_section(store.compactions(), txns, now_ms),
    ]


def _transaction_section(
    txns: Sequence[TxnInfo], locks: Sequence[LockInfo], now_ms: int
) -> Section:
    """Return the table of open transactions: first those that wait for a lock, then those that
    others wait for, and among equals the oldest first. The title also counts aborted ones."""
    waits: dict[int, set[int]] = defaultdict(set)
    holds_up: dict[int, set[int]] = defaultdict(set)
    waiting = {lock.txn_id for lock in locks if lock.state is LockState.WAITING}
    for lock, blocker in _blocked_locks(locks):
        waits[lock.txn_id].add(blocker.txn_id)
        holds_up[blocker.txn_id].add(lock.txn_id)
    open_txns = [txn for txn in txns if txn.state is TxnState.OPEN]
    open_txns.sort(
        key=lambda txn: (txn.txn_id not in waiting, txn.txn_id not in holds_up, txn.txn_id)
    )
    lines = [
        (
            Mark.WAITS if txn.txn_id in waiting else Mark.PLAIN,
            (
                str(txn.txn_id),
                _age_text(txn.started_ms, now_ms),
                _age_text(txn.last_heartbeat_ms, now_ms),
                _id_list_text(waits[txn.txn_id]) or ("a lock" if txn.txn_id in waiting else ""),
                _id_list_text(holds_up[txn.txn_id]),
                f"{txn.user}@{txn.host}",
                short_statement(txn.agent_info),
            ),
        )
        for txn in open_txns
    ]
    title = f"open transactions: {len(open_txns)} (aborted: {len(txns) - len(open_txns)})"
    heads = ("txn", "open for", "last sign", "waits for", "holds up", "user", "statement")
    return Section(title, heads, lines)


def _lock_section(locks: Sequence[LockInfo], now_ms: int) -> Section:
    """Return the table of all locks: first those that wait, each with the transaction for which it
    waits ("" if that is not known), then the others, in the order of ``locks``."""
    blockers = {
        (lock.lock_id, lock.internal_id): blocker.txn_id for lock, blocker in _blocked_locks(locks)
    }
    waiting = [lock for lock in locks if lock.state is LockState.WAITING]
    held = [lock for lock in locks if lock.state is not LockState.WAITING]
    lines = [
        (
            Mark.WAITS if lock.state is LockState.WAITING else Mark.PLAIN,
            (
                f"{lock.lock_id}.{lock.internal_id}",
                str(lock.txn_id),
                lock.state.name.lower(),
                lock.lock_type.name,
                lock_object_name(lock.database, lock.table, lock.partition),
                str(blockers.get((lock.lock_id, lock.internal_id), "")),
                _age_text(lock.acquired_at_ms, now_ms),
            ),
        )
        for lock in (*waiting, *held)
    ]
    title = f"locks: {len(locks)} (waiting: {len(waiting)})"
    heads = ("lock", "txn", "state", "type", "on", "waits for txn", "held for")
    return Section(title, heads, lines)


def _compaction_section(
    compactions: Sequence[CompactionInfo], txns: Iterable[TxnInfo], now_ms: int
) -> Section:
    """Return the table of compactions: those that run, then those that wait, then those whose old
    files are still to be deleted, then the first five others of ``compactions``, which are the
    history. The title counts all of them. "since" is the time since the last step of each.
    ``txns`` has the heartbeats of those that run."""
    signs = {txn.txn_id: txn.last_heartbeat_ms for txn in txns if txn.state is TxnState.OPEN}
    queue = [
        compaction for state in _QUEUE for compaction in compactions if compaction.state is state
    ]
    ended = [compaction for compaction in compactions if compaction.state not in _QUEUE][
        :_MOST_ENDED
    ]
    lines = [
        (
            _MARKS.get(compaction.state, Mark.PLAIN),
            (
                str(compaction.id),
                compaction.type.name.lower(),
                lock_object_name(
                    compaction.table.database, compaction.table.name, compaction.partition
                ),
                compaction.state.shown,
                compaction.progress or "",
                _age_text(
                    compaction.ended_ms
                    or compaction.committed_ms
                    or compaction.started_ms
                    or compaction.enqueued_ms,
                    now_ms,
                ),
                _last_sign_text(compaction, signs, now_ms),
                compaction.worker_id or "",
                short_statement(compaction.message or ""),
            ),
        )
        for compaction in (*queue, *ended)
    ]
    title = f"compactions: {len(queue)} (in the history: {len(compactions) - len(queue)})"
    heads = ("id", "type", "of", "state", "progress", "since", "last sign", "worker", "why")
    return Section(title, heads, lines)


def _blocked_locks(locks: Iterable[LockInfo]) -> Iterator[tuple[LockInfo, LockInfo]]:
    """Yield pairs: a lock that waits, and the lock for which it waits. A lock is left out if the
    metastore does not tell for which it waits, or that one is gone."""
    locks_by_key = {(lock.lock_id, lock.internal_id): lock for lock in locks}
    for lock in locks_by_key.values():
        if lock.state is LockState.WAITING and lock.blocked_by in locks_by_key:
            yield lock, locks_by_key[lock.blocked_by]


def _last_sign_text(compaction: CompactionInfo, signs: Mapping[int, int], now_ms: int) -> str:
    """Return how long ago the transaction of a running compaction had its last heartbeat; ``gone``
    if it is not open, "" if the compaction does not run or has no transaction. ``signs``: the last
    heartbeats of open transactions, by id."""
    if compaction.state is not CompactionState.WORKING or compaction.txn_id is None:
        return ""
    return _age_text(signs[compaction.txn_id], now_ms) if compaction.txn_id in signs else "gone"


def _id_list_text(numbers: Iterable[int]) -> str:
    """Return numbers as text, sorted, with commas between them."""
    return ", ".join(map(str, sorted(numbers)))


def _age_text(since_ms: int | None, now_ms: int) -> str:
    """Return a time ago as text, rounded to one unit: ``12 s``, ``3 min``, ``2 h``, ``5 d``; "" for
    None and 0, ``0 s`` for a time to come."""
    if not since_ms:
        return ""
    age = max(0, now_ms - since_ms) / 1000
    for unit, most in (("s", 60), ("min", 60), ("h", 24)):
        if age < most:
            return f"{age:.0f} {unit}"
        age /= most
    return f"{age:.0f} d"
