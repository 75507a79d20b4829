"""I10, I11: whatever is compacted and cleaned, every open snapshot sees the rows that it saw
before.

Random histories without Spark: writers (some abort, some stay open, some have several statements),
snapshots that open and end, compactions of all kinds, and the cleaner. At the end, when all have
ended, only visible files are left.
"""

from __future__ import annotations

import itertools
import tempfile

from hypothesis import example, given, settings
from hypothesis import strategies as st
from table_of_events import NAME

from acidsql.compaction.decision import SIZE_TIERED
from acidsql.metastore.compaction_queue import CompactionType
from acidsql.storage.folding import newest_run

BUCKETS = 2
statement = st.tuples(
    st.lists(st.integers(0, BUCKETS - 1), max_size=3), st.lists(st.integers(0, 99), max_size=2)
)
change = st.tuples(st.just("change"), st.lists(statement, min_size=1, max_size=2))
event = st.one_of(
    change,
    st.tuples(st.just("abort"), st.lists(statement, min_size=1, max_size=2)),
    st.tuples(st.just("leave_open"), st.lists(statement, min_size=1, max_size=1)),
    st.tuples(st.just("end_one"), st.booleans()),
    st.tuples(st.just("leave"), st.integers(0, 5)),
)
looks = st.lists(st.tuples(st.just("look"), st.none()), max_size=1)
compacts = st.tuples(
    st.sampled_from(["minor", "major", "newest", "newest", "newest"]), st.booleans()
)
cleans = st.lists(st.tuples(st.just("clean"), st.none()), max_size=1)
# A snapshot opens, others write, a compaction runs, and perhaps the cleaner: again and again.
rounds = st.tuples(change, looks, st.lists(event, min_size=1, max_size=3), compacts, cleans).map(
    lambda part: [part[0], *part[1], *part[2], part[3], *part[4]]
)

A_WRITE = [("change", [([0], [])])]
AN_UPDATE = [("change", [([0, 1], [3, 5])]), ("look", None)]
# Over a base, tiers are made, and made larger, while snapshots look on.
TIERS = [
    [*A_WRITE, *A_WRITE, ("major", False)],
    [*A_WRITE, *AN_UPDATE, *AN_UPDATE, ("newest", False)],
    [*AN_UPDATE, *AN_UPDATE, ("newest", False), ("clean", None)],
    [("abort", [([0], [1])]), *AN_UPDATE, ("leave", 0), ("newest", True), ("clean", None)],
    [("leave_open", [([1], [])]), *AN_UPDATE, *AN_UPDATE, ("newest", False)],
    [("end_one", True), *AN_UPDATE, ("newest", False), ("minor", False), ("clean", None)],
]


class Scene:
    def __init__(self, warehouse):
        self.warehouse, self.living, self.open = warehouse, [], []

    def change(self, statements, commit=True):
        txn = self._write(statements)
        txn.commit() if commit else txn.abort("a test")

    def abort(self, statements):
        self.change(statements, commit=False)

    def leave_open(self, statements):
        inserts = [(buckets, []) for buckets, _ in statements]
        self.open.append(self._write(inserts, deletes=False))

    def end_one(self, commit):
        if self.open:
            txn = self.open.pop(0)
            txn.commit() if commit else txn.abort("a test")

    def look(self, _):
        self.living.append(self.warehouse.lease())

    def leave(self, number):
        if self.living:
            self.living.pop(number % len(self.living))[0].end_quietly()

    def minor(self, visibly):
        self._compact(CompactionType.MINOR, visibly)

    def major(self, visibly):
        self._compact(CompactionType.MAJOR, visibly)

    def newest(self, visibly):
        """A size-tiered minor compaction that leaves all that it may."""
        self._compact(CompactionType.MINOR, visibly, SIZE_TIERED)

    def clean(self, _):
        self.warehouse.cleaner().run()

    def _compact(self, kind, visibly, properties=()):
        settings = {
            "acidsql.compactor.visibility.id": "true" if visibly else "false",
            "hive.compactor.delta.num.threshold": "3",
        }
        self.warehouse.compact(kind, properties=properties, **settings)
        assert self.warehouse.findings(self.warehouse.now()) == []

    def _write(self, statements, *, deletes=True):
        txn = self.warehouse.begin(deletes=deletes)
        for number, (buckets, victims) in enumerate(statements):
            self.warehouse.write(txn, buckets, victims, 2 * number)
        return txn

    def check(self):
        seen = [snapshot for _, snapshot in self.living] + [self.warehouse.now()]
        for snapshot in seen:
            assert self.warehouse.read(snapshot) == self.warehouse.expected(snapshot)


def test_every_living_snapshot_sees_the_rows_that_it_saw(new_warehouse, monkeypatch):
    # No two deltas are similar: as if each were much larger than all newer ones.
    monkeypatch.setattr(newest_run, "SIZE_RATIO", 0)

    @settings(max_examples=20, deadline=None)
    @given(st.lists(rounds, min_size=1, max_size=4))
    @example(TIERS)
    @example([[*A_WRITE, ("abort", [([], [])]), *A_WRITE, ("minor", False)]])
    def run(steps):
        with tempfile.TemporaryDirectory() as root:
            warehouse = new_warehouse(root)
            scene = Scene(warehouse)
            try:
                for name, what in itertools.chain(*steps):
                    getattr(scene, name)(what)
                    scene.check()
                _end(scene, warehouse)
            finally:
                warehouse.close()

    run()


def _end(scene, warehouse):
    """End everything, then run a last compaction and the cleaner."""
    while scene.open:
        scene.end_one(True)
    while scene.living:
        scene.leave(0)
    warehouse.compact()
    warehouse.cleaner().run()
    scene.check()
    assert warehouse.findings(warehouse.now()) == []
    assert len(warehouse.directories()) <= 1, warehouse.directories()
    assert warehouse.store.aborted_write_ids(NAME) == []
