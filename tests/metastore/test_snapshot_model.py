"""Snapshots of the embedded store compared with a model in plain dictionaries.

The model knows what no store knows: the files in each directory, and the transaction that wrote
each file. A file must be visible in the table that has its directory exactly if its transaction was
committed at the time of the snapshot (I1). This must hold whatever was dropped, created again,
adopted or renamed in between, however late an aborted writer publishes, and whatever the
housekeeper has forgotten. An open transaction holds an old snapshot: the one that took it, or a
session's lease.
"""

import itertools
from contextlib import closing

import pytest
from contract_base import Clock, begin, on, table
from hypothesis import given, settings, strategies
from kinds import KINDS, open_recycled

from acidsql.acid.table import TableName
from acidsql.metastore.conflict_rules import RECORDED
from acidsql.metastore.interface import LockType, TxnType

NAMES = [TableName("default", name) for name in ("a", "b", "c")]
STEPS = 50
MOST_OPEN = 3  # so the oldest transaction ends now and then, and something can be forgotten


class Snapshots:
    """A store, the model, and the actions. ``pick`` chooses from a list."""

    def __init__(self, kind, path, pick):
        self.clock, self.pick = Clock(), pick
        self.store = open_recycled(kind, path, clock=self.clock)
        self.state = {}  # transaction → "o", "a", "c"
        self.location = {}  # table → directory
        self.files = {}  # directory → {(write id, transaction)}
        self.unpublished = {}  # transaction → [(directory, write id)], not yet in the directory
        self.old = []  # (holder, snapshot, the committed transactions at that time)
        self.leases = []
        self.foreign = itertools.count(1)

    def some(self, state):
        return sorted(txn for txn, letter in self.state.items() if letter == state)

    def committed(self):
        return frozenset(self.some("c"))

    # ── transactions ─────────────────────────────────────────────────────────────────────────

    def open(self):
        if len(self.some("o")) < MOST_OPEN:
            self.state[begin(self.store)] = "o"

    def write(self):
        if self.location and self.some("o"):
            txn, name = self.pick(self.some("o")), self.pick(sorted(self.location, key=str))
            kind = on(LockType.SHARED_WRITE, name, operation=self.pick(RECORDED))
            self.store.lock(txn, [kind])
            write_id = self.store.allocate_write_id(txn, name)
            self.unpublished.setdefault(txn, []).append((self.location[name], write_id))

    def commit(self):
        if self.some("o"):
            txn = self.pick(self.some("o"))
            self.publish(txn)
            self.store.commit_txn(txn)
            self.end(txn, "c")

    def abort(self):
        if self.some("o"):
            txn = self.pick(self.some("o"))
            self.store.abort_txn(txn)
            self.end(txn, "a")

    def end(self, txn, letter):
        self.state[txn] = letter
        self.let_go(txn)

    def publish_late(self):
        if self.some("a"):
            self.publish(self.pick(self.some("a")))

    def publish(self, txn):
        for directory, write_id in self.unpublished.get(txn, []):
            if directory in self.files:
                self.files[directory].add((write_id, txn))

    # ── tables ───────────────────────────────────────────────────────────────────────────────

    def create(self):
        name = self.pick(NAMES)
        directory = f"/wh/{name.name}"
        if name not in self.location and directory not in self.location.values():
            self.store.create_table(table(name, directory))
            self.location[name], self.files[directory] = directory, set()

    def adopt(self):
        name, highest = self.pick(NAMES), self.pick([1, 2, 4])
        if name not in self.location:
            directory = f"/foreign/{next(self.foreign)}"
            self.store.create_table(table(name, directory), first_write_id=highest + 1)
            self.location[name] = directory
            self.files[directory] = {(write_id, 0) for write_id in range(1, highest + 1)}

    def drop(self):
        name = self.pick(NAMES)
        if name in self.location and not self.has_writers(name):
            pending = self.store.drop_table(name)
            self.store.mark_cleaned(pending.id)
            del self.files[self.location.pop(name)]

    def rename(self):
        name, new_name = self.pick(NAMES), self.pick(NAMES)
        free = new_name not in self.location
        if name in self.location and free and not self.has_writers(name):
            self.store.rename_table(name, new_name)
            self.location[new_name] = self.location.pop(name)

    def has_writers(self, name):
        """Whether an open transaction wrote to the table: it holds a lock, and DDL waits."""
        return any(
            directory == self.location[name]
            for txn, writes in self.unpublished.items()
            if self.state[txn] == "o"
            for directory, _ in writes
        )

    # ── snapshots and what is forgotten ──────────────────────────────────────────────────────

    def lease(self):
        """Open a lease, as a session does for its DataFrames: it writes nothing."""
        self.leases.append(self.store.open_txn(user="u", host="h", txn_type=TxnType.READ_ONLY))

    def end_lease(self):
        if self.leases:
            lease = self.pick(self.leases)
            self.store.commit_txn(lease)
            self.leases.remove(lease)
            self.let_go(lease)

    def take_a_snapshot(self):
        """Take a snapshot, at once or long after its holder began. A lease holds many snapshots."""
        holders = self.leases + self.some("o")
        if holders:
            self.old.append((self.pick(holders), self.store.valid_txns(), self.committed()))

    def let_go(self, holder):
        self.old = [held for held in self.old if held[0] != holder]

    def house_keep(self):
        """Housekeeping changes no answer that a session can still ask for, not even one letter."""
        self.clock.now += 1
        snapshots = [self.store.valid_txns(), *(snapshot for _, snapshot, _ in self.old)]
        before = self.conflicts(), [self.store.valid_write_ids(one, NAMES) for one in snapshots]
        assert self.store.house_keep(10**6, 0, self.pick([0, 1, 3]))
        after = self.conflicts(), [self.store.valid_write_ids(one, NAMES) for one in snapshots]
        assert after == before
        for txn, letter in self.state.items():
            known = self.store.txn_state(txn)
            assert known is None or known.value == letter
            assert letter != "o" or known is not None

    def conflicts(self):
        return [self.store.write_conflicts(holder, snapshot) for holder, snapshot, _ in self.old]

    # ── what must hold ───────────────────────────────────────────────────────────────────────

    def check(self):
        """A file is visible exactly if its transaction was committed at the snapshot."""
        now = (0, self.store.valid_txns(), self.committed())
        for _, snapshot, committed in [now, *self.old[-3:]]:
            lists = self.store.valid_write_ids(snapshot, list(self.location))
            for name, valid in lists.items():
                for write_id, txn in self.files[self.location[name]]:
                    expected = txn == 0 or txn in committed
                    assert valid.is_valid(write_id) is expected, (name, write_id, txn, str(valid))


# How often each action happens, so that mostly there is something to see and to forget.
ACTIONS = [
    *["open", "commit", "take_a_snapshot"] * 3,
    *["write"] * 5,
    *["create", "house_keep", "abort", "publish_late"] * 2,
    *["adopt", "drop", "rename", "lease", "end_lease"],
]
HISTORIES = strategies.lists(strategies.sampled_from(ACTIONS), min_size=STEPS, max_size=STEPS)


def live(kind, path, history, data):
    """Run this history, and check everything after each step."""
    world = Snapshots(kind, path, lambda found: data.draw(strategies.sampled_from(found)))
    with closing(world.store):
        for name in ["create", *history]:
            getattr(world, name)()
            world.check()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(history=HISTORIES, data=strategies.data())
def test_a_snapshot_shows_exactly_what_was_committed_when_it_was_taken(
    tmp_path_factory, history, data
):
    live("sqlite", tmp_path_factory.mktemp("store"), history, data)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "sqlite"])
@settings(max_examples=10, deadline=None)  # the same SQL, which may mean something else now
@given(history=HISTORIES, data=strategies.data())
def test_so_it_does_on_a_server(tmp_path_factory, kind, history, data):
    live(kind, tmp_path_factory.mktemp("store"), history, data)
