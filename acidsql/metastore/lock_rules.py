"""Which lock waits for which, and which transactions wait in a circle: pure functions.

A transaction waits until *all* earlier locks that block it are gone. A granted lock goes only when
its transaction ends. So transactions wait for ever exactly if they wait for each other in a circle,
whether the earlier lock is granted or waits itself.

A session may hold locks beyond its transactions: a SESSION transaction has them. The statements of
this session pass these locks as their own. While one of these statements waits, the session cannot
give up its locks; so whoever waits for the session waits for this statement, too.

No lock overtakes an earlier one, with one exception: a transaction that holds a lock at once gets a
further lock that is not stronger. Every lock that waits in between waits for this transaction.

Source: Hive 4.0 ``CheckLockFunction`` and ``LockTypeComparator``; hive-transactions.md §4.1, 4.2.
The deadlock detector is like the one in Hive's later master branch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from acidsql.metastore.interface import LockComponent, LockInfo, LockState, LockType

FiledValue = TypeVar("FiledValue")


class LockObject(Protocol):
    """A database (table None), a table (partition None), or a partition."""

    @property
    def database(self) -> str: ...

    @property
    def table(self) -> str | None: ...

    @property
    def partition(self) -> str | None: ...


class TypedLockObject(LockObject, Protocol):
    """A lock on an object, requested or existing."""

    @property
    def lock_type(self) -> LockType: ...


_STRENGTH = {
    LockType.SHARED_READ: 0,
    LockType.SHARED_WRITE: 1,
    LockType.EXCL_WRITE: 2,
    LockType.EXCLUSIVE: 3,
}

# requested type → types of the earlier locks, acquired or waiting, that it must wait for
_WAITS_FOR = {
    LockType.SHARED_READ: {LockType.EXCLUSIVE},
    LockType.SHARED_WRITE: {LockType.EXCL_WRITE, LockType.EXCLUSIVE},
    LockType.EXCL_WRITE: {LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE},
    LockType.EXCLUSIVE: set(LockType),
}


def strength(lock_type: LockType) -> int:
    """Return the rank of a lock type, from 0 to 3: SHARED_READ, SHARED_WRITE, EXCL_WRITE,
    EXCLUSIVE."""
    return _STRENGTH[lock_type]


# ── which waits for which ────────────────────────────────────────────────────────────────────


def overlaps(first: LockObject, second: LockObject) -> bool:
    """Whether two objects are the same, or one contains the other: a database its tables, a table
    its partitions."""
    if first.database != second.database:
        return False
    if first.table is None or second.table is None:
        return True
    if first.table != second.table:
        return False
    return (
        first.partition is None or second.partition is None or first.partition == second.partition
    )


def must_wait(requested: TypedLockObject, earlier: TypedLockObject) -> bool:
    """Whether ``requested`` cannot be granted while another transaction's ``earlier``, granted or
    waiting, exists: the two overlap, and their types exclude each other. EXCLUSIVE excludes all,
    EXCL_WRITE itself and SHARED_WRITE; SHARED types share with each other.

    SHARED_READ on a whole database (LOCK DATABASE takes it, and Hive's CREATE TABLE) only keeps the
    database from being dropped. It and an EXCLUSIVE lock on a table of that database do not wait
    for each other.
    """
    if not overlaps(requested, earlier):
        return False
    if earlier.lock_type not in _WAITS_FOR[requested.lock_type]:
        return False
    return not (
        _only_keeps_database(requested, earlier) or _only_keeps_database(earlier, requested)
    )


def _only_keeps_database(requested: TypedLockObject, held: TypedLockObject) -> bool:
    """Whether ``requested`` is SHARED_READ on a database, and ``held`` EXCLUSIVE on a table."""
    return (
        requested.lock_type is LockType.SHARED_READ
        and requested.table is None
        and held.lock_type is LockType.EXCLUSIVE
        and held.table is not None
    )


def merge_components(components: Iterable[LockComponent]) -> list[LockComponent]:
    """Return one component for each object (database, table and partition), in the order in which
    the objects first occur: the first one with the strongest type for this object
    (``LockRequestBuilder``)."""
    strongest: dict[tuple[str, str | None, str | None], LockComponent] = {}
    for component in components:
        place = (component.database, component.table, component.partition)
        strongest_so_far = strongest.get(place)
        if strongest_so_far is None or strength(component.lock_type) > strength(
            strongest_so_far.lock_type
        ):
            strongest[place] = component
    return list(strongest.values())


class LocksByObject(Generic[FiledValue]):
    """An index of values by object, which finds overlapping objects without comparing all.

    Args:
        filed: Pairs of an object and the value to file under the object.
    """

    def __init__(self, filed: Iterable[tuple[LockObject, FiledValue]]) -> None:
        self._databases: dict[str, dict[str | None, dict[str | None, list[FiledValue]]]] = {}
        for lock_object, value in filed:
            tables = self._databases.setdefault(lock_object.database, {})
            partitions = tables.setdefault(lock_object.table, {})
            partitions.setdefault(lock_object.partition, []).append(value)

    def overlapping(self, lock_object: LockObject) -> Iterator[FiledValue]:
        """Yield the values of all objects that are the same as an object, contain it, or lie in
        it."""
        tables = self._databases.get(lock_object.database, {})
        for partitions in _entries_and_whole(tables, lock_object.table):
            for values in _entries_and_whole(partitions, lock_object.partition):
                yield from values


def _entries_and_whole(
    inner: dict[str | None, FiledValue], name: str | None
) -> Collection[FiledValue]:
    """Return the entries of ``name`` and of None, the key of the whole; if ``name`` is None, all
    entries."""
    if name is None:
        return inner.values()
    return [inner[key] for key in (name, None) if key in inner]


# ── circles ──────────────────────────────────────────────────────────────────────────────────


def blockers(waiting: LockInfo, locks: LocksByObject[LockInfo]) -> list[LockInfo]:
    """Return the locks of others that a lock must wait for, granted ones first, then by number.

    They are earlier locks, and later locks that were granted because their session held as strong a
    lock. (The session may have released that lock since.)

    The list is empty if the transaction already holds a lock that covers this one. A lock that
    would block this one would block the held one, too; so it is waiting, for this transaction. If
    its session holds such a lock, only other statements of the session can be in the way: they have
    passed the session's lock, too.
    """
    near = list(locks.overlapping(waiting))
    own = {waiting.txn_id, waiting.session}
    covered_by = {
        near_lock.txn_id
        for near_lock in near
        if near_lock.txn_id in own and _covers(near_lock, waiting)
    }
    if waiting.txn_id in covered_by:
        return []
    blocking = [
        near_lock
        for near_lock in near
        if (near_lock.lock_id < waiting.lock_id or near_lock.state is LockState.ACQUIRED)
        and near_lock.txn_id not in own
        and (not covered_by or near_lock.session == waiting.session)
        and must_wait(waiting, near_lock)
    ]
    # Messages name the first. The holder of a granted lock can end the wait, a waiter cannot.
    return sorted(blocking, key=lambda lock: (lock.state.value, lock.lock_id, lock.internal_id))


def _covers(held: LockInfo, requested: LockInfo) -> bool:
    """Whether a transaction that has ``held`` does not need ``requested``; the two overlap.
    ``held`` is granted, as strong or stronger, and on the same object or one that contains it.
    SHARED_READ on a database does not cover its tables."""
    is_weaker = strength(held.lock_type) < strength(requested.lock_type)
    if is_weaker or held.state is LockState.WAITING:
        return False
    if held.table is None:
        # SHARED_READ on a database does not protect the database's tables.
        return requested.table is None or held.lock_type is not LockType.SHARED_READ
    return requested.table is not None and held.partition in (None, requested.partition)


def find_circle(txn_id: int, locks: Collection[LockInfo]) -> list[int]:
    """Return a shortest circle of transactions that wait for each other, beginning with ``txn_id``.

    A transaction that waits for a session waits for the session's waiting statements.

    Args:
        txn_id: A transaction that the circle must contain.
        locks: All locks that may be part of the circle.

    Returns:
        ``[3, 5, 4]``: 3 waits for 5, 5 for 4, and 4 for 3. Empty if there is no circle.
    """
    near = LocksByObject((lock, lock) for lock in locks)
    waiting: dict[int, list[LockInfo]] = {}
    statements: dict[int, set[int]] = {}  # of sessions: their transactions that wait
    for lock in locks:
        if lock.state is LockState.WAITING:
            waiting.setdefault(lock.txn_id, []).append(lock)
            if lock.session is not None:
                statements.setdefault(lock.session, set()).add(lock.txn_id)
    waiter_of: dict[int, int] = {}  # the transaction through which each one was reached first
    reached = deque([txn_id])
    while reached:
        waiter = reached.popleft()
        blocking_txns = {b.txn_id for lock in waiting.get(waiter, ()) for b in blockers(lock, near)}
        in_the_way = blocking_txns.union(
            *(statements.get(session, ()) for session in blocking_txns)
        )
        if txn_id in in_the_way:
            return _circle_path(waiter, txn_id, waiter_of)
        for blocked_by in sorted(in_the_way - waiter_of.keys()):
            waiter_of[blocked_by] = waiter
            reached.append(blocked_by)
    return []


def _circle_path(last: int, first: int, waiter_of: dict[int, int]) -> list[int]:
    """Return the transactions on the way from ``first`` to ``last``, both included. ``waiter_of``:
    a transaction → the one before it on the way."""
    path = [last]
    while path[-1] != first:
        path.append(waiter_of[path[-1]])
    return path[::-1]


def circle_in_words(circle: Sequence[int], victim: int) -> str:
    """Return a text for users why the victim, a transaction of the circle, was aborted: "deadlock:
    it waited for transaction 5, … and transaction 4 for it"."""
    start = circle.index(victim)
    waited_for = [f"transaction {txn_id}" for txn_id in (*circle[start + 1 :], *circle[:start])]
    waits = [
        f"{waiter} for {blocker}"
        for waiter, blocker in zip(waited_for, [*waited_for[1:], "it"], strict=True)
    ]
    *parts, last = [f"it waited for {waited_for[0]}", *waits]
    return f"deadlock: {', '.join(parts)} and {last}"
