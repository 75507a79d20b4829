"""Deadlocks in the embedded store, compared with a graph in which every lock is compared with every
other.

A transaction is aborted only if it is in a circle with the transaction that checks its lock. A
transaction that has checked its lock and still waits is in no circle. When all have checked, all
that are left can end. No two transactions ever hold locks that exclude each other. Some of them
hold the locks of sessions, and others are the statements of these sessions.
"""

from contextlib import closing

import pytest
from contract_base import T, U, begin, on
from hypothesis import given, settings, strategies
from lock_graph import closure, in_circles, quarrels, waits

from acidsql.errors import TxnAbortedError
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import LockComponent, LockState, LockType, TxnState, TxnType

MOST_OPEN, STEPS = 5, 30
COMPONENTS = [
    *(on(kind, name) for kind in LockType for name in (T, U)),
    *(on(LockType.EXCL_WRITE, partition=partition) for partition in ("p=1", "p=2")),
    LockComponent(LockType.EXCLUSIVE, "default"),
    LockComponent(LockType.SHARED_READ, "default"),
]
ACTIONS = ["open", "open_session", *["lock"] * 3, "look", "look", "commit", "give_up", "unlock"]


class Locks:
    """A store in which transactions take locks. ``pick`` chooses from a list."""

    def __init__(self, path, pick):
        self.store = EmbeddedMetastore(sqlite_url(path / "s.db"), warehouse="/wh")
        self.pick = pick
        self.sessions, self.session_of = [], {}

    @property
    def open_txns(self):
        return [txn.txn_id for txn in self.store.show_txns() if txn.state is TxnState.OPEN]

    @property
    def waiting(self):
        """(transaction, lock) of each waiting lock."""
        return sorted(
            {
                (lock.txn_id, lock.lock_id)
                for lock in self.store.show_locks()
                if lock.state is LockState.WAITING
            }
        )

    @property
    def free(self):
        """Transactions that can go on: neither they nor statements of theirs wait."""
        waiting = {txn for txn, _ in self.waiting}
        return sorted(set(self.open_txns) - waiting - {*map(self.session_of.get, waiting)})

    def open(self):
        if len(self.open_txns) < MOST_OPEN:
            session = self.pick([None, *self.sessions])
            self.session_of[begin(self.store)] = session

    def open_session(self):
        if len(self.open_txns) < MOST_OPEN:
            kind = TxnType.SESSION
            self.sessions.append(self.store.open_txn(user="u", host="h", txn_type=kind))

    def unlock(self):
        held = sorted(
            (lock.txn_id, lock.lock_id)
            for lock in self.store.show_locks()
            if lock.txn_id in self.sessions and lock.state is LockState.ACQUIRED
        )
        if held:
            self.store.unlock(*self.pick(held))

    def lock(self):
        """Request a lock, mostly for a transaction that does not wait. A session with threads may
        request two."""
        if self.open_txns:
            txn = self.pick(self.free * 3 + self.open_txns)
            wanted = [self.pick(COMPONENTS) for _ in range(self.pick([1, 1, 2]))]
            self.store.lock(txn, wanted, session=self.session_of.get(txn))

    def commit(self):
        if self.free:
            self.store.commit_txn(self.pick(self.free))

    def give_up(self):
        if self.waiting:
            self.store.unlock(*self.pick(self.waiting))

    def look(self):
        if self.waiting:
            self.look_at(*self.pick(self.waiting))

    def look_at(self, txn, lock_id):
        before, waited = set(self.open_txns), closure(waits(self.store.show_locks()))
        try:
            state = self.store.check_lock(txn, lock_id).state
        except TxnAbortedError as error:
            state = None
            assert "deadlock" in error.message
        victims = before - set(self.open_txns)
        assert (state is None) is (txn in victims)
        for victim in victims:
            assert {(txn, victim), (victim, txn)} <= waited, "no circle leads through both"
        if state is LockState.WAITING:
            assert txn not in in_circles(waits(self.store.show_locks()))

    def check(self):
        assert not quarrels(self.store.show_locks())

    def finish(self):
        """All check their locks, and transactions that wait for nothing commit."""
        while self.open_txns:
            for txn, lock_id in self.waiting:
                if (txn, lock_id) in self.waiting:
                    self.look_at(txn, lock_id)
            assert not in_circles(waits(self.store.show_locks()))
            assert self.free, "nobody can go on"
            for txn in self.free:
                self.store.commit_txn(txn)
        assert self.store.show_locks() == []


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    history=strategies.lists(strategies.sampled_from(ACTIONS), min_size=STEPS, max_size=STEPS),
    data=strategies.data(),
)
def test_exactly_the_circles_are_broken_and_everybody_else_comes_to_an_end(
    tmp_path_factory, history, data
):
    path = tmp_path_factory.mktemp("store")
    world = Locks(path, lambda found: data.draw(strategies.sampled_from(found)))
    with closing(world.store):
        for name in ["open", "open", *history]:
            getattr(world, name)()
            world.check()
        world.finish()
