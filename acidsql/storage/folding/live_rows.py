"""The live rows of a table in Python tasks, for a reader that has no session.

The driver lists the files of a snapshot, and divides them among tasks. A task gets files of insert
events, each with the files of delete events that may name its rows. Of a file of moderate size the
task decodes only the columns that are shown. All other files are read as those of a stream.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from acidsql.acid.table import ORC, PARQUET, Column, Table
from acidsql.acid.values.predicate import ANYTHING
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import UnsupportedError
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.folding.stream_reads import (
    FIRST_COLUMN,
    Shows,
    StreamRead,
    live_reads_of_listings,
    shown_batch,
    stream_events,
    unshown_type,
)
from acidsql.storage.reading.events.deletion_vectors import (
    DeletionVectors,
    deletion_vectors_of_files,
)
from acidsql.storage.reading.events.event_reader import (
    FileRead,
    flat_schema,
    plain_reads,
    read_for_query,
)
from acidsql.storage.reading.events.point_search import Search, column_name, search_file
from acidsql.storage.tables.listing import Listing, plain_files_by_partition

# A larger file is decoded in batches, with all of its columns: its chosen columns together might
# need too much memory.
_CHOSEN_COLUMNS_BYTES = 64 << 20
# A task gets a sixteenth of all bytes, within these bounds. To open a file counts as bytes, too.
_LEAST_TASK_BYTES, _MOST_TASK_BYTES, _OPENING_BYTES, _TASKS = 32 << 20, 64 << 20, 4 << 20, 16
_BATCH_ROWS = 64 * 1024


@dataclass(frozen=True, slots=True)
class LiveRows:
    """What to show of a table.

    Attributes:
        table: The table.
        columns: The shown columns, in their order; partition columns may be among them.
        other_call: The call that shows what Python tasks cannot show.
    """

    table: Table
    columns: tuple[Column, ...]
    other_call: str

    def __post_init__(self) -> None:
        """Raise UnsupportedError if Python tasks cannot show the table."""
        table, reason = self.table, unshown_type(self.columns, self.table)
        if table.is_insert_only and table.file_format not in (ORC, PARQUET):
            reason = f"its files are {table.file_format} files"
        if reason is not None:
            raise UnsupportedError(
                f"spark.read.format('acidsql') cannot read this table: {reason}. Use "
                f"{self.other_call}.",
                condition="UNSUPPORTED_FEATURE.BATCH_SOURCE",
            )

    @property
    def ordinals(self) -> list[int]:
        """The places, among the table's data columns, of those that are shown."""
        names = {column.name for column in self.columns}
        return [i for i, column in enumerate(self.table.columns) if column.name in names]


def plan_tasks(
    shown: LiveRows, listings: Sequence[Listing], write_ids: ValidWriteIdList
) -> list[list[StreamRead]]:
    """Divide listed files among tasks, and return the work of each. There is at least one task:
    Spark would give an empty plan a task that it makes itself.

    Raises:
        SnapshotTooOldError: A file is gone.
    """
    table = shown.table
    with naming_missing(table.location):
        if table.is_insert_only:
            files, sizes = plain_files_by_partition(listings)
            plain = plain_reads(files, sizes, are_parquet=table.file_format == PARQUET)
            reads = [StreamRead(read, (), Shows.LIVE, size=read.size) for read in plain]
        else:
            reads = live_reads_of_listings(table, listings, write_ids)
    total = sum(read.size + _OPENING_BYTES for read in reads)
    task_bytes = min(_MOST_TASK_BYTES, max(_LEAST_TASK_BYTES, total // _TASKS))
    tasks: list[list[StreamRead]] = [[]]
    bytes_left = task_bytes
    # Files with the same delete events stay together, so that a task reads these once.
    for read in sorted(reads, key=lambda read: [delete.file for delete in read.deletes]):
        read_bytes = read.size + _OPENING_BYTES
        if tasks[-1] and bytes_left < read_bytes:
            tasks.append([])
            bytes_left = task_bytes
        tasks[-1].append(read)
        bytes_left -= read_bytes
    return tasks


def live_rows(shown: LiveRows, reads: Sequence[StreamRead]) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of a task's files, with the shown columns. This runs in a task, without a
    session.

    Raises:
        SnapshotTooOldError: A file is gone.
        FormatError: A file is damaged.
    """
    if shown.table.is_insert_only:
        for read in reads:
            yield from _plain_rows(shown, read)
        return
    deletes: tuple[FileRead, ...] = ()
    vectors = deletion_vectors_of_files([])
    for read in reads:
        if read.deletes != deletes:
            deletes = read.deletes
            vectors = deletion_vectors_of_files([(0, delete) for delete in deletes])
        tables = None
        if vectors is not None and _can_choose_columns(read):
            tables = _search(shown, read, vectors)
        yield from _rows_of_stream(shown, read) if tables is None else tables


def _plain_rows(shown: LiveRows, read: StreamRead) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of an insert-only table, of which all columns are decoded. Those of
    a Parquet file are found by their names."""
    names = [column.name for column in shown.table.columns]
    for batch in read_for_query([read.read], flat_schema(shown.table), names):
        yield _shown_columns(shown, read, batch)


def _can_choose_columns(read: StreamRead) -> bool:
    """Whether a file has event columns, and is small enough to decode some columns at once."""
    return read.read.original is None and read.size <= _CHOSEN_COLUMNS_BYTES


def _search(
    shown: LiveRows, read: StreamRead, vectors: DeletionVectors
) -> Iterator[pa.RecordBatch] | None:
    """Return the live rows of a file, of which only the columns that matter are decoded; None if
    Arrow should not read the file so.
    """
    ordinals = shown.ordinals
    target = Search(shown.table, ANYTHING, ordinals, limit=sys.maxsize, deleted=vectors)
    tables = search_file(0, read.read, target)
    if tables is None:
        return None
    return (
        shown_batch(
            shown.table, shown.columns, {i: batch.column(column_name(i)) for i in ordinals},
            read.read.partition, batch.num_rows,
        )
        for stripe in tables
        for batch in stripe.to_batches(max_chunksize=_BATCH_ROWS)
        if batch.num_rows
    )  # fmt: skip


def _rows_of_stream(shown: LiveRows, read: StreamRead) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of a file, of which all columns are decoded."""
    for batch, _ in stream_events(read, shown.table):
        yield _shown_columns(shown, read, batch)


def _shown_columns(shown: LiveRows, read: StreamRead, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the shown columns of rows that ``read_for_query`` gives."""
    values = dict(enumerate(batch.columns[FIRST_COLUMN:]))
    return shown_batch(shown.table, shown.columns, values, read.read.partition, batch.num_rows)
