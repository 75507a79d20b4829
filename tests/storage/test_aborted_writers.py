"""A task that fails closes its files, because its Python worker lives on and gets other tasks."""

from __future__ import annotations

import errno
import gc
import os
import warnings

import pyarrow as pa
import pytest

from acidsql.acid import bucket_codec
from acidsql.storage import event_records as ew
from acidsql.storage.files.local import LocalFileSystem
from acidsql.storage.folding.fold import FoldSpec, write_sorted_rows
from acidsql.storage.orc.holding_sink import HoldingSink
from acidsql.storage.orc.options import DEFAULT
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.writing import delete_writer, event_writer

ROW = RowSchema.from_fields([("id", "int")])
TASK = ew.Task(0, 0)
BUCKET = bucket_codec.encode(0, 0)
KINDS = {"events": {}, "plain": {"insert_only": True}, "parquet": {"parquet": "snappy"}}


@pytest.fixture
def opened(monkeypatch):
    """The files and sinks that were opened."""
    found, make = [], HoldingSink.__init__
    open_output = LocalFileSystem.open_output

    def noted_output(self, path):
        found.append(open_output(self, path))
        return found[-1]

    def noted_sink(self, file):
        make(self, file)
        found.append(self.held)

    monkeypatch.setattr(LocalFileSystem, "open_output", noted_output)
    monkeypatch.setattr(HoldingSink, "__init__", noted_sink)
    return found


def inserts(*numbers):
    yield pa.record_batch([pa.array(numbers, pa.int32())], ["id"])
    raise ZeroDivisionError


def deletes(*row_ids):
    n = len(row_ids)
    values = ([""] * n, [0] * n, [1] * n, [BUCKET] * n, row_ids, [ew.DELETE] * n)
    yield pa.record_batch(
        [*(pa.array(v, f.type) for v, f in zip(values, ew.KEY_SCHEMA, strict=False)),
         *(pa.nulls(n, field.type) for field in list(ew.KEY_SCHEMA)[6:])],
        schema=ew.KEY_SCHEMA,
    )  # fmt: skip
    raise ZeroDivisionError


def placed(*row_ids):
    ids = pa.array(row_ids, pa.int64())
    write_ids, buckets = (
        pa.array([1] * len(ids)),
        pa.array([bucket_codec.encode(0)] * len(ids), pa.int32()),
    )
    yield pa.record_batch([write_ids, buckets, ids, ids.cast(pa.int32())], ["w", "b", "r", "id"])
    raise ZeroDivisionError


def spec(tmp_path, **more):
    return ew.WriteSpec(
        staging=str(tmp_path), write_id=1, insert_statement_id=0, delete_statement_id=0, row=ROW,
        **more,
    )  # fmt: skip


def fold_spec(tmp_path):
    return FoldSpec(str(tmp_path), ROW, DEFAULT)


WORK = {
    **{
        f"inserted {kind}": lambda path, more=more: event_writer.write_inserts(
            spec(path, **more), TASK, inserts(1, 2)
        )
        for kind, more in KINDS.items()
    },
    "deleted": lambda path: delete_writer.write_deletes(spec(path), TASK, deletes(1, 2)),
    "placed": lambda path: write_sorted_rows(placed(1, 2), fold_spec(path), "", TASK),
}


@pytest.mark.parametrize("work", WORK)
def test_a_task_that_fails_closes_what_it_writes(tmp_path, opened, work):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ZeroDivisionError):
            list(WORK[work](tmp_path))
        gc.collect()
    assert opened and all(file.closed for file in opened)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_leaves_no_file_open(tmp_path, opened, monkeypatch, kind):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    batch = next(inserts(1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OSError, match="No space"):
            list(event_writer.write_inserts(spec(tmp_path, **KINDS[kind]), TASK, [batch]))
        gc.collect()
    assert opened and all(file.closed for file in opened)
