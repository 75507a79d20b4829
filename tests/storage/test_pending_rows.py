"""A writer, or a merge of files, holds a bounded number of bytes at once, not only of rows."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acidsql.storage.files.filesystem import LocalFileSystem
from acidsql.storage.folding import event_merge
from acidsql.storage.folding.event_merge import KEYS, LEAST, EventSource, merge_events
from acidsql.storage.orc import event_file as orc_file
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.pending_rows import PendingRows
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events import orc_reader
from acidsql.storage.tables import parquet as parquet_file
from acidsql.storage.tables.parquet import ParquetFileWriter, read_few_parquet_rows, read_parquet
from acidsql.storage.writing import plain_file
from acidsql.storage.writing.plain_file import PlainFileWriter

SCHEMA = RowSchema.from_fields([("i", "int"), ("s", "string")])


def batch(start, rows, weight):
    numbers = pa.array(range(start, start + rows), pa.int32())
    return pa.record_batch([numbers, pa.array(["x" * weight] * rows)], schema=SCHEMA.arrow)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 100)), max_size=30))
def test_what_waits_is_written_in_order_and_never_too_much_at_once(sizes):
    written, start = [], 0
    pending = PendingRows(written.append, 50, 1000)
    for rows, weight in sizes:
        given = batch(start, rows, weight)
        start += rows
        pending.add(given)
        assert pending.waiting < 1000
    pending.flush()
    assert [i for table in written for i in table.column("i").to_pylist()] == list(range(start))
    largest = max((batch(0, *size).nbytes for size in sizes), default=0)
    for table in written:
        assert table.num_rows < 50 + 30
        assert table.nbytes <= max(1000, largest)
        assert table.column("s").num_chunks == 1


@pytest.mark.parametrize("kind", ["events", "plain", "parquet"])
def test_a_writer_does_not_wait_for_many_rows_where_few_are_heavy(tmp_path, monkeypatch, kind):
    for module, name in (
        (orc_file, "BATCH_BYTES"), (plain_file, "BATCH_BYTES"), (parquet_file, "_ROW_GROUP_BYTES"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 100_000)
    waiting = []
    add = PendingRows.add
    monkeypatch.setattr(
        PendingRows, "add", lambda self, one: (add(self, one), waiting.append(self.waiting))
    )
    path = str(tmp_path / "file")
    file = LocalFileSystem().open_output(path)
    writer = {
        "events": lambda: EventFileWriter(file, SCHEMA),
        "plain": lambda: PlainFileWriter(file, SCHEMA),
        "parquet": lambda: ParquetFileWriter(file, SCHEMA, "snappy"),
    }[kind]()
    for start in range(0, 200, 4):
        writer.write_inserts(batch(start, 4, 10_000), 1, 536870912, start)
    assert writer.close().rows == 200
    assert 0 < max(waiting) < 100_000
    if kind == "parquet":
        found = list(read_parquet(path, SCHEMA))
    elif kind == "plain":
        found = [one for one, _ in orc_reader.read_batches(path)]
    else:
        found = [one.select(["i", "s"]) for one in orc_reader.read_events(path, SCHEMA)]
    assert [i for one in found for i in one.column(0).to_pylist()] == list(range(200))


FILES = st.lists(st.lists(st.lists(st.integers(0, 60), max_size=12), max_size=4), max_size=6)


@settings(deadline=None)
@given(FILES, st.sampled_from([0, 300, 10_000]))
def test_files_are_merged_in_order_whatever_is_copied_at_once(files, most):
    """Keys occur twice within a file, as Hive may write them, and in several files."""

    def source(groups):
        numbers, batches = sorted(number for group in groups for number in group), []
        for group in groups:
            own, numbers = numbers[: len(group)], numbers[len(group) :]
            keys = [pa.array([1] * len(own), pa.int64()), pa.array([0] * len(own), pa.int32())]
            texts = pa.array(["x" * 50] * len(own))
            arrays = [*keys, pa.array(own, pa.int64()), texts]
            batches.append(pa.record_batch(arrays, names=[*KEYS, "s"]))
        return EventSource(lambda: iter(batches), LEAST, "file")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_merge, "_MOST_BYTES", most)
        parts = list(merge_events([source(groups) for groups in files]))
    found = [number for part in parts for number in part.column(KEYS[2]).to_pylist()]
    assert found == sorted(number for groups in files for group in groups for number in group)


def test_few_rows_of_a_small_file_may_be_large(tmp_path):
    paths = [str(tmp_path / name) for name in ("one", "none")]
    struct = pa.array([{"m": [("k", 1)]}] * 100, pa.struct([("m", pa.map_("string", "int32"))]))
    found = pa.table({"s": ["x" * 50_000] * 100, "t": struct})
    for path, rows in zip(paths, (found, found[:0]), strict=True):
        pq.write_table(rows, path)
    assert sum(map(os.path.getsize, paths)) < 100_000 < found.nbytes // 50
    assert read_few_parquet_rows(paths, 100, found.nbytes * 2) == found
    assert read_few_parquet_rows(paths, 100, found.nbytes // 2) is None
    assert read_few_parquet_rows(paths, 99, found.nbytes * 2) is None
