"""Who waits for whom, said in the plainest way: every lock is compared with every other."""

import itertools

from acidsql.metastore.interface import LockState, LockType
from acidsql.metastore.lock_rules import must_wait, strength


def waits(locks):
    """(transaction, transaction): the one waits for the other to end."""
    return {
        (lock.txn_id, other.txn_id)
        for lock, other in itertools.product(locks, locks)
        if lock.state is LockState.WAITING
        and other.lock_id < lock.lock_id
        and other.txn_id != lock.txn_id
        and must_wait(lock, other)
        and not any(has_as_much(held, lock) for held in locks)
    }


def has_as_much(held, wanted):
    """The one is granted to the same transaction, as strong, and for all that the other is for."""
    return (
        held.txn_id == wanted.txn_id
        and held.state is LockState.ACQUIRED
        and strength(held.lock_type) >= strength(wanted.lock_type)
        and held.database == wanted.database
        and held.table in (None, wanted.table)
        and held.partition in (None, wanted.partition)
        # It says that the database must stay, nothing of what is in it.
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
        if one.txn_id != other.txn_id and must_wait(one, other)
    ]


def closure(edges):
    """(transaction, transaction): the one waits, through others perhaps, for the other."""
    known = set(edges)
    while True:
        more = {(a, d) for (a, b), (c, d) in itertools.product(known, known) if b == c}
        if more <= known:
            return known
        known |= more


def in_circles(edges):
    """The transactions that wait for themselves."""
    return {one for one, other in closure(edges) if one == other}
