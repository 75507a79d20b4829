"""I10, I11: whatever is compacted and cleaned, every open snapshot sees the rows that it saw
before.

Random histories without Spark: writers (some abort, some stay open, some have several statements),
snapshots that open and end, compactions of both kinds, and the cleaner. At the end, when all have
ended, only visible files are left.
"""

from __future__ import annotations

import itertools
import tempfile

from hypothesis import example, given, settings
from hypothesis import strategies as st
from table_of_events import NAME

from acidsql.metastore.compaction_queue import CompactionType

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
compacts = st.tuples(st.sampled_from(["minor", "major"]), st.booleans())
cleans = st.lists(st.tuples(st.just("clean"), st.none()), max_size=1)
# A snapshot opens, others write, a compaction runs, and perhaps the cleaner: again and again.
rounds = st.tuples(change, looks, st.lists(event, min_size=1, max_size=3), compacts, cleans).map(
    lambda part: [part[0], *part[1], *part[2], part[3], *part[4]]
)

A_WRITE = [("change", [([0], [])])]


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

    def clean(self, _):
        self.warehouse.cleaner().run()

    def _compact(self, kind, visibly):
        as_hive_4 = "true" if visibly else "false"
        self.warehouse.compact(kind, **{"acidsql.compactor.visibility.id": as_hive_4})

    def _write(self, statements, *, deletes=True):
        txn = self.warehouse.begin(deletes=deletes)
        for number, (buckets, victims) in enumerate(statements):
            self.warehouse.write(txn, buckets, victims, 2 * number)
        return txn

    def check(self):
        seen = [snapshot for _, snapshot in self.living] + [self.warehouse.now()]
        for snapshot in seen:
            assert self.warehouse.read(snapshot) == self.warehouse.expected(snapshot)


def test_every_living_snapshot_sees_the_rows_that_it_saw(new_warehouse):
    @settings(max_examples=20, deadline=None)
    @given(st.lists(rounds, min_size=1, max_size=4))
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
    assert len(warehouse.directories()) <= 1, warehouse.directories()
    assert warehouse.store.aborted_write_ids(NAME) == []
