"""Which rows the new rows of a statement replace.

An UPDATE writes a delete event and an insert event, and nothing in Hive's format connects them. For
RETURNING with old and new values, a hidden file beside each bucket file names, for each new version
of a row, the row id of the old one. Other readers ignore hidden files. Compaction leaves them out.
This module runs in workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from acidsql.storage.event_records import BUCKET_PROPERTY, PARTITION, PREFIX, ROW_ID, WRITE_ID
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.tables.parquet import ParquetFileWriter, read_parquet

OLD = f"{PREFIX}old_"
_OLD_ID = (
    (WRITE_ID, "bigint"),
    (BUCKET_PROPERTY, "int"),
    (ROW_ID, "bigint"),
    (PARTITION, "string"),
)
_SCHEMA = RowSchema.from_fields(
    [(ROW_ID, "bigint"), *((f"{OLD}{name}", kind) for name, kind in _OLD_ID)]
)
# A row's new version has the write id of the statement.
DDL = f"{PARTITION} string, {BUCKET_PROPERTY} int, {ROW_ID} bigint, " + ", ".join(
    f"{OLD}{name} {kind}" for name, kind in _OLD_ID
)


@dataclass(frozen=True, slots=True)
class ReplacementFile:
    """One file that says which rows the rows of a bucket file replace.

    Attributes:
        path: The file.
        partition: The partition directory of its rows.
        bucket_property: The bucket property of the new rows.
    """

    path: str
    partition: str
    bucket_property: int


def replaced_writer(file: BinaryIO) -> ParquetFileWriter:
    """Return a writer of batches of ``replaced_rows``; the writer closes ``file``."""
    return ParquetFileWriter(file, _SCHEMA, "zstd")


def replaced_rows(rows: pa.RecordBatch, row_ids: pa.Array) -> pa.RecordBatch:
    """Return the batch for ``replaced_writer``. Its columns are the new version's row number, then
    the write id, bucket property, row number and partition of the old one.

    Args:
        rows: New versions of rows, with the partitions and row ids of the old ones.
        row_ids: The row numbers of the new versions.
    """
    old = [rows.column(name) for name, _ in _OLD_ID]
    return pa.RecordBatch.from_arrays([row_ids, *old], schema=_SCHEMA.arrow)


def read_replaced(replaced_file: ReplacementFile) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a replacement file, with the columns of ``DDL``: partition, bucket property
    and row id of a new row, then write id, bucket property, row id and partition of the old row
    that it replaces. Raises SnapshotTooOldError if the file is gone, and FormatError if it is
    damaged.
    """
    with naming_missing(replaced_file.path):
        for batch in read_parquet(replaced_file.path, _SCHEMA):
            count = batch.num_rows
            partition = pa.repeat(pa.scalar(replaced_file.partition), count)
            bucket = pa.repeat(pa.scalar(replaced_file.bucket_property, pa.int32()), count)
            names = [PARTITION, BUCKET_PROPERTY, *_SCHEMA.names]
            yield pa.RecordBatch.from_arrays([partition, bucket, *batch.columns], names)
