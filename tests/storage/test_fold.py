"""Compaction changes no snapshot's rows: random histories, folded without Spark.

A model that knows nothing of directories says what a snapshot sees: a row is visible if the write
id that inserted it is valid, and no valid write id deleted it.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_on_disk import rows_on_disk

from acidsql.acid.bucket_codec import encode
from acidsql.acid.layout import (
    ACID_VERSION,
    ACID_VERSION_FILE,
    PAIRED_FILE,
    bucket_name,
    delete_delta_name,
    delta_name,
)
from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.write_ids import ALL_TXNS, CompactorWriteIdList, ValidWriteIdList
from acidsql.errors import FormatError, UnsupportedError
from acidsql.storage.event_records import Task
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.folding.compact import CompactionRun
from acidsql.storage.folding.fold import fold_bucket
from acidsql.storage.folding.plan import plan_compaction
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.row_schema import RowSchema

SCHEMA = RowSchema.from_fields([("v", "string")])
BUCKETS = 3


@dataclass
class History:
    """A table's events, as files and as a model."""

    root: str
    inserted: dict[tuple[int, int, int], str] = field(default_factory=dict)
    deleted: dict[tuple[int, int, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    last: int = 0

    @property
    def table(self) -> Table:
        return Table(TableName("d", "t"), self.root, (Column("v", "string"),), ())

    def insert(self, write_id: int, statement: int, buckets: list[int]) -> None:
        for bucket in sorted(set(buckets)):
            rows = buckets.count(bucket)
            batch = pa.record_batch([[f"{write_id}-{statement}-{bucket}"] * rows], ["v"])
            writer = self._writer(delta_name(write_id, statement), bucket)
            writer.write_inserts(batch, write_id, encode(bucket, statement), 0)
            writer.close()
            for row in range(rows):
                key = (write_id, encode(bucket, statement), row)
                self.inserted[key] = f"{write_id}-{statement}-{bucket}"

    def delete(self, write_id: int, statement: int, keys: list[tuple[int, int, int]]) -> None:
        by_bucket = defaultdict(list)
        for key in sorted(set(keys)):
            by_bucket[key[1] >> 16 & 4095].append(key)
            self.deleted[key].add(write_id)
        for bucket, own in by_bucket.items():
            writer = self._writer(delete_delta_name(write_id, statement), bucket)
            columns = np.array(own).T
            writer.write_deletes(*columns, write_id)
            writer.close()

    def _writer(self, directory: str, bucket: int) -> EventFileWriter:
        fs = filesystem_for(self.root)
        fs.create_directory(f"{self.root}/{directory}")
        fs.write_file(f"{self.root}/{directory}/{ACID_VERSION_FILE}", ACID_VERSION)
        return EventFileWriter(
            fs.open_output(f"{self.root}/{directory}/{bucket_name(bucket)}"), SCHEMA
        )

    def expected(self, seen: ValidWriteIdList) -> dict[tuple[int, int, int], str]:
        return {
            key: value
            for key, value in self.inserted.items()
            if seen.is_valid(key[0]) and not any(map(seen.is_valid, self.deleted[key]))
        }

    def read(self, seen: ValidWriteIdList) -> dict[tuple[int, int, int], str]:
        return rows_on_disk(self.root, SCHEMA, seen)

    def compact(self, seen: ValidWriteIdList, *, major: bool) -> list[str]:
        fs = filesystem_for(self.root)
        decided = CompactorWriteIdList.from_snapshot(seen)
        plan, _ = plan_compaction(fs, self.table, "", decided, ALL_TXNS, major=major)
        if plan is None:
            return []
        with CompactionRun(fs, plan, 1) as work:
            for number, one in enumerate(plan.folds):
                work.records += fold_bucket(one, work.spec, Task(number, number))
            return work.publish(lambda: None)


@pytest.fixture
def history(tmp_path):
    return History(str(tmp_path))


@st.composite
def steps(draw):
    """Transactions: each with statements that insert and delete, and an end; and compactions."""
    return draw(
        st.lists(
            st.one_of(
                st.tuples(
                    st.lists(
                        st.tuples(
                            st.lists(st.integers(0, BUCKETS - 1), max_size=4),
                            st.lists(st.integers(0, 200), max_size=3),
                        ),
                        min_size=1,
                        max_size=3,
                    ),
                    st.sampled_from(["commit", "commit", "commit", "abort", "open"]),
                ),
                st.sampled_from(["minor", "major"]),
            ),
            max_size=12,
        )
    )


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(steps())
def test_no_living_snapshot_sees_a_difference(todo):
    with tempfile.TemporaryDirectory() as root:
        history = History(root)
        aborted, still_open, snapshots = set(), set(), []
        for step in todo:
            now = ValidWriteIdList(history.last, tuple(still_open), tuple(aborted))
            if isinstance(step, str):
                history.compact(now, major=step == "major")
            else:
                _transaction(history, now, step, aborted, still_open)
            snapshots.append(ValidWriteIdList(history.last, tuple(still_open), tuple(aborted)))
            # The cleaner does not run here, so every snapshot stays readable.
            for seen in snapshots:
                assert history.read(seen) == history.expected(seen)


def _transaction(history, now, step, aborted, still_open):
    statements, end = step
    history.last += 1
    write_id = history.last
    own = ValidWriteIdList(write_id, now.open, now.aborted)
    for number, (buckets, victims) in enumerate(statements):
        visible = sorted(history.expected(own))
        taken = sorted({visible[victim % len(visible)] for victim in victims if visible})
        if taken:
            history.delete(write_id, 2 * number, taken)
        if buckets:
            history.insert(write_id, 2 * number + 1, buckets)
    if end == "abort":
        aborted.add(write_id)
    if end == "open":
        still_open.add(write_id)


def test_a_major_compaction_makes_a_base_without_deleted_rows(history):
    history.insert(1, 0, [0, 0, 1])
    history.delete(2, 0, [(1, encode(0, 0), 1)])
    before = history.read(ValidWriteIdList(2))
    made = history.compact(ValidWriteIdList(2), major=True)
    assert [path.rpartition("/")[2] for path in made] == ["base_0000002"]
    names = {entry.name for entry in filesystem_for(made[0]).list(made[0])}
    assert names == {"_orc_acid_version", "_metadata_acid", "bucket_00000", "bucket_00001"}
    assert history.read(ValidWriteIdList(2)) == before


def test_a_minor_compaction_makes_a_pair_and_keeps_both_kinds_of_events(history):
    history.insert(1, 0, [0, 0])
    history.insert(2, 0, [0])
    history.delete(3, 0, [(1, encode(0, 0), 1)])
    made = history.compact(ValidWriteIdList(3), major=False)
    names = [path.rpartition("/")[2] for path in made]
    assert names == ["delete_delta_0000001_0000003", "delta_0000001_0000003"]
    # A reader that does not see the delete still finds the row in the compacted files.
    older = ValidWriteIdList(2)
    assert history.read(older) == history.expected(older)


def test_half_of_a_pair_is_not_there(history):
    """The worker died between its two renames."""
    history.insert(1, 0, [0, 0])
    history.insert(2, 0, [0])
    history.delete(3, 0, [(1, encode(0, 0), 1)])
    seen = ValidWriteIdList(3)
    before = history.read(seen)
    first, second = history.compact(seen, major=False)
    fs = filesystem_for(first)
    assert fs.exists(f"{first}/{PAIRED_FILE}") and fs.exists(f"{second}/{PAIRED_FILE}")
    fs.rename(second, f"{history.root}/_away")
    assert history.read(seen) == before
    fs.rename(first, f"{history.root}/_away_too")
    fs.rename(f"{history.root}/_away", second)
    assert history.read(seen) == before
    # The next worker removes the half, and begins again.
    assert len(history.compact(seen, major=False)) == 2
    assert history.read(seen) == before


def test_what_a_transaction_inserted_and_deleted_itself_is_left_out(history):
    """Hive's vectorised reader would not apply a delete event to a row of the same write id."""
    history.insert(1, 0, [0, 0])
    history.delete(1, 1, [(1, encode(0, 0), 0)])
    history.insert(1, 2, [0])
    made = history.compact(ValidWriteIdList(1), major=False)
    assert [path.rpartition("/")[2] for path in made] == ["delta_0000001_0000001"]
    assert len(history.read(ValidWriteIdList(1))) == 2


def test_nothing_above_the_lowest_open_write_id_is_taken(history):
    for write_id in (1, 2, 3, 4):
        history.insert(write_id, 0, [0])
    made = history.compact(ValidWriteIdList(4, open=(3,)), major=True)
    assert [path.rpartition("/")[2] for path in made] == ["base_0000002"]


def test_a_minor_compaction_reads_no_base(history):
    history.insert(1, 0, [0])
    history.insert(2, 0, [0])
    history.compact(ValidWriteIdList(2), major=True)
    history.insert(3, 0, [0])
    history.insert(4, 0, [0])
    decided = CompactorWriteIdList.from_snapshot(ValidWriteIdList(4))
    fs = filesystem_for(history.root)
    plan, _ = plan_compaction(fs, history.table, "", decided, ALL_TXNS, major=False)
    paths = [read.path for one in plan.folds for read in (*one.inserts, *one.deletes)]
    assert len(paths) == 2 and not any("/base_" in path for path in paths)


def test_one_delta_and_its_deletes_are_not_enough(history):
    history.insert(1, 0, [0])
    assert history.compact(ValidWriteIdList(1), major=True) == []
    history.insert(2, 0, [0])
    history.compact(ValidWriteIdList(2), major=True)
    history.insert(3, 1, [0])
    history.delete(3, 0, [(1, encode(0, 0), 0)])
    assert history.compact(ValidWriteIdList(3), major=False) == []


def test_a_table_of_deleted_rows_becomes_a_base_with_an_empty_file(history):
    history.insert(1, 0, [0])
    history.delete(2, 0, [(1, encode(0, 0), 0)])
    (base,) = history.compact(ValidWriteIdList(2), major=True)
    assert history.read(ValidWriteIdList(2)) == {}
    assert filesystem_for(base).exists(f"{base}/bucket_00000")


def test_files_that_are_not_sorted_are_refused(history):
    batch = pa.record_batch([["a", "b"]], ["v"])
    writer = history._writer(delta_name(1, 0), 0)
    writer.rewrite_inserts(batch, [1, 1], [encode(0, 0)] * 2, [1, 0])
    writer.close()
    history.insert(2, 0, [0])
    with pytest.raises(FormatError, match="not sorted"):
        history.compact(ValidWriteIdList(2), major=True)


def test_rows_of_another_bucket_are_refused(history):
    history.insert(1, 0, [0])
    history.insert(2, 0, [0])
    fs = filesystem_for(history.root)
    where = f"{history.root}/{delta_name(2, 0)}"
    fs.rename(f"{where}/{bucket_name(0)}", f"{where}/{bucket_name(1)}")
    with pytest.raises(FormatError, match="holds rows of bucket 0"):
        history.compact(ValidWriteIdList(2), major=True)


def test_timestamps_that_would_be_cut_are_refused(tmp_path):
    import pyarrow.orc as orc

    for number in (1, 2):
        (tmp_path / "t" / delta_name(number, 0)).mkdir(parents=True)
        moment = pa.array([1_000_000_001], pa.timestamp("ns"))
        path = tmp_path / "t" / delta_name(number, 0) / "000000_0"
        orc.write_table(pa.table({"v": moment}), str(path))
    table = Table(TableName("d", "t"), str(tmp_path / "t"), (Column("v", "timestamp"),), ())
    fs = filesystem_for(table.location)
    decided = CompactorWriteIdList.from_snapshot(ValidWriteIdList(2))
    plan, _ = plan_compaction(fs, table, "", decided, ALL_TXNS, major=True)
    with CompactionRun(fs, plan, 1) as work, pytest.raises(UnsupportedError, match="microsecond"):
        fold_bucket(plan.folds[0], work.spec, Task(0, 0))
