"""Which lock waits for which: Hive 4.0's rules, as pure functions.

Source: Hive 4.0 ``CheckLockFunction`` and ``LockTypeComparator``; hive-transactions.md §4.1, 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable

from acidsql.metastore.interface import LockComponent, LockType

_STRENGTH = {
    LockType.SHARED_READ: 0,
    LockType.SHARED_WRITE: 1,
    LockType.EXCL_WRITE: 2,
    LockType.EXCLUSIVE: 3,
}

# requested → the earlier locks, acquired or waiting, that it must wait for
_WAITS_FOR = {
    LockType.SHARED_READ: {LockType.EXCLUSIVE},
    LockType.SHARED_WRITE: {LockType.EXCL_WRITE, LockType.EXCLUSIVE},
    LockType.EXCL_WRITE: {LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE},
    LockType.EXCLUSIVE: set(LockType),
}


def strength(lock_type: LockType) -> int:
    """Order of lock types: SHARED_READ < SHARED_WRITE < EXCL_WRITE < EXCLUSIVE."""
    return _STRENGTH[lock_type]


def overlaps(one: LockComponent, other: LockComponent) -> bool:
    """True if both are about a common thing; a database contains its tables and so on."""
    if one.database != other.database:
        return False
    if one.table is None or other.table is None:
        return True
    if one.table != other.table:
        return False
    return one.partition is None or other.partition is None or one.partition == other.partition


def must_wait(requested: LockComponent, earlier: LockComponent) -> bool:
    """True if ``requested`` cannot be granted while another transaction's ``earlier`` exists.

    A SHARED_READ of a whole database (CREATE TABLE takes it) says only that the database must
    not go away: it and an EXCLUSIVE lock on a table inside do not hinder each other.
    """
    if not overlaps(requested, earlier):
        return False
    if earlier.lock_type not in _WAITS_FOR[requested.lock_type]:
        return False
    return not (
        _only_keeps_database(requested, earlier) or _only_keeps_database(earlier, requested)
    )


def _only_keeps_database(one: LockComponent, other: LockComponent) -> bool:
    return (
        one.lock_type is LockType.SHARED_READ
        and one.table is None
        and other.lock_type is LockType.EXCLUSIVE
        and other.table is not None
    )


def merge(components: Iterable[LockComponent]) -> list[LockComponent]:
    """One component for each thing, with the strongest type (``LockRequestBuilder``)."""
    strongest: dict[tuple[str, str | None, str | None], LockComponent] = {}
    for component in components:
        thing = (component.database, component.table, component.partition)
        known = strongest.get(thing)
        if known is None or strength(component.lock_type) > strength(known.lock_type):
            strongest[thing] = component
    return list(strongest.values())
