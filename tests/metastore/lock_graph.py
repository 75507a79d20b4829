"""Who waits for whom, said in the plainest way: every lock is compared with every other."""

import itertools

from acidsql.metastore.interface import LockState
from acidsql.metastore.lock_rules import must_wait


def waits(locks):
    """(transaction, transaction): the one waits for the other to end."""
    return {
        (lock.txn_id, other.txn_id)
        for lock, other in itertools.product(locks, locks)
        if lock.state is LockState.WAITING
        and other.lock_id < lock.lock_id
        and other.txn_id != lock.txn_id
        and must_wait(lock, other)
    }


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
