"""Which transaction waits for which, in the simplest way: every lock is compared with every
other."""

import itertools

from acidsql.metastore.interface import LockState, LockType
from acidsql.metastore.lock_rules import must_wait, strength


def waits(locks):
    """Pairs (transaction, transaction): the first waits for the second to end.

    Who waits for a session waits for its statements that wait, too.
    """
    waiting = [lock for lock in locks if lock.state is LockState.WAITING]
    edges = {
        (lock.txn_id, other.txn_id)
        for lock, other in itertools.product(waiting, locks)
        if other.lock_id < lock.lock_id
        and not is_own(other, lock)
        and must_wait(lock, other)
        and not any(has_as_much(held, lock) for held in locks)
    }
    return edges | {
        (one, statement.txn_id)
        for (one, other), statement in itertools.product(edges, waiting)
        if statement.session == other
    }


def is_own(held, wanted):
    """Of the same transaction, or of the session that the transaction works for."""
    return held.txn_id == wanted.txn_id or held.txn_id == wanted.session


def has_as_much(held, wanted):
    """``held`` is granted to the same transaction or its session, is as strong, and covers the
    thing of ``wanted``."""
    return (
        is_own(held, wanted)
        and held.state is LockState.ACQUIRED
        and strength(held.lock_type) >= strength(wanted.lock_type)
        and held.database == wanted.database
        and held.table in (None, wanted.table)
        and held.partition in (None, wanted.partition)
        # The lock only keeps the database from being dropped, and covers nothing in it.
        and not (only_keeps_database(held) and wanted.table)
    )


def only_keeps_database(lock):
    return lock.table is None and lock.lock_type is LockType.SHARED_READ


def quarrels(locks):
    """Pairs of granted locks of which one should have waited for the other."""
    granted = [lock for lock in locks if lock.state is LockState.ACQUIRED]
    return [
        (one, other)
        for one, other in itertools.permutations(granted, 2)
        if not is_own(one, other) and not is_own(other, one) and must_wait(one, other)
    ]


def closure(edges):
    """Pairs (transaction, transaction): the first waits for the second, perhaps through others."""
    known = set(edges)
    while True:
        more = {(a, d) for (a, b), (c, d) in itertools.product(known, known) if b == c}
        if more <= known:
            return known
        known |= more


def in_circles(edges):
    """The transactions that wait for themselves."""
    return {one for one, other in closure(edges) if one == other}
