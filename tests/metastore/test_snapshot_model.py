"""Snapshots of the embedded store against a model in plain dictionaries.

The model knows what no store knows: which files lie in which directory, and who wrote them. A file
must be visible in the table that has its directory exactly when its transaction was committed at
the snapshot (I1), whatever was dropped, created anew, adopted, or renamed in between, and however
late a writer publishes that does not know that it was aborted.
"""

import itertools
import shutil
import tempfile
from pathlib import Path

from contract_base import begin, table
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from acidsql.acid.table import TableName
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url

NAMES = [TableName("default", name) for name in ("a", "b", "c")]
names = strategies.sampled_from(NAMES)


class Snapshots(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.path = Path(tempfile.mkdtemp())
        url = sqlite_url(self.path / "s.db")
        self.store = EmbeddedMetastore(url, warehouse="/wh", clock=lambda: 0)
        self.state = {}  # transaction → "o", "a", "c"
        self.location = {}  # table → directory
        self.files = {}  # directory → {(write id, transaction)}
        self.unpublished = {}  # transaction → [(directory, write id)], not yet in the directory
        self.old = []  # (snapshot, committed transactions then), while tables stay as they are
        self.foreign = itertools.count(1)

    def teardown(self):
        self.store.close()
        shutil.rmtree(self.path)

    def some(self, data, state):
        found = sorted(txn for txn, letter in self.state.items() if letter == state)
        return data.draw(strategies.sampled_from(found)) if found else None

    def committed(self):
        return {txn for txn, letter in self.state.items() if letter == "c"}

    # ── transactions ─────────────────────────────────────────────────────────────────────────

    @rule()
    def open(self):
        self.state[begin(self.store)] = "o"

    @precondition(lambda self: self.location and "o" in self.state.values())
    @rule(data=strategies.data())
    def write(self, data):
        txn = self.some(data, "o")
        name = data.draw(strategies.sampled_from(sorted(self.location, key=str)))
        write_id = self.store.allocate_write_id(txn, name)
        self.unpublished.setdefault(txn, []).append((self.location[name], write_id))

    @precondition(lambda self: "o" in self.state.values())
    @rule(data=strategies.data())
    def commit(self, data):
        txn = self.some(data, "o")
        self.publish(txn)
        self.store.commit_txn(txn)
        self.state[txn] = "c"

    @precondition(lambda self: "o" in self.state.values())
    @rule(data=strategies.data())
    def abort(self, data):
        txn = self.some(data, "o")
        self.store.abort_txn(txn)
        self.state[txn] = "a"

    @precondition(lambda self: "a" in self.state.values())
    @rule(data=strategies.data())
    def publish_late(self, data):
        self.publish(self.some(data, "a"))

    def publish(self, txn):
        for directory, write_id in self.unpublished.get(txn, []):
            if directory in self.files:
                self.files[directory].add((write_id, txn))

    # ── tables ───────────────────────────────────────────────────────────────────────────────

    @rule(name=names)
    def create(self, name):
        directory = f"/wh/{name.name}"
        if name not in self.location and directory not in self.location.values():
            self.store.create_table(table(name, directory))
            self.location[name], self.files[directory] = directory, set()
            self.old.clear()

    @rule(name=names, highest=strategies.integers(1, 4))
    def adopt(self, name, highest):
        if name not in self.location:
            directory = f"/foreign/{next(self.foreign)}"
            self.store.create_table(table(name, directory), first_write_id=highest + 1)
            self.location[name] = directory
            self.files[directory] = {(write_id, 0) for write_id in range(1, highest + 1)}
            self.old.clear()

    @rule(name=names)
    def drop(self, name):
        if name in self.location and not self.has_writers(name):
            pending = self.store.drop_table(name)
            self.store.mark_cleaned(pending.id)
            del self.files[self.location.pop(name)]
            self.old.clear()

    @rule(name=names, new_name=names)
    def rename(self, name, new_name):
        free = new_name not in self.location
        if name in self.location and free and not self.has_writers(name):
            self.store.rename_table(name, new_name)
            self.location[new_name] = self.location.pop(name)
            self.old.clear()

    def has_writers(self, name):
        """An open transaction that wrote to it holds a lock, and DDL waits."""
        return any(
            directory == self.location[name]
            for txn, writes in self.unpublished.items()
            if self.state[txn] == "o"
            for directory, _ in writes
        )

    # ── what must hold ───────────────────────────────────────────────────────────────────────

    @rule()
    def take_a_snapshot(self):
        self.old.append((self.store.valid_txns(), self.committed()))

    @invariant()
    def a_file_is_visible_exactly_if_its_transaction_is_committed(self):
        self.check(self.store.valid_txns(), self.committed())

    @invariant()
    def an_old_snapshot_shows_what_it_showed(self):
        for snapshot, committed in self.old[-3:]:
            self.check(snapshot, committed)

    def check(self, snapshot, committed):
        lists = self.store.valid_write_ids(snapshot, list(self.location))
        for name, valid in lists.items():
            for write_id, txn in self.files[self.location[name]]:
                expected = txn == 0 or txn in committed
                assert valid.is_valid(write_id) is expected, (name, write_id, txn, str(valid))


TestSnapshots = Snapshots.TestCase
TestSnapshots.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
