"""Reads, in Python tasks, the files that Spark's own readers would read wrongly.

These are files without event columns (``originals``), streamed files whose committed length is not
their size, files with timestamps if the JVM's time zone has daylight saving time, and Parquet files
with timestamps or days of Hive's or Trino's. This module runs in workers: it imports neither
pyspark nor modules of the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidsql.acid import event
from acidsql.acid.event import EVENT_COLUMNS
from acidsql.acid.layout import ORIGINALS_BASE, DirectoryKind
from acidsql.acid.paths import url_of
from acidsql.acid.table import Table
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.storage.event_records import (
    BUCKET_PROPERTY,
    PARTITION,
    ROW_ID,
    WRITE_ID,
)
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.files.object_store import NO_WAIT_SETTINGS
from acidsql.storage.files.parallel import map_ahead
from acidsql.storage.orc.damage import naming_damage
from acidsql.storage.orc.row_schema import RowSchema, conform
from acidsql.storage.reading.events.orc_reader import (
    chosen_rows,
    flat_names,
    need_events,
    read_batches,
    read_events,
    read_row_ids,
)
from acidsql.storage.reading.events.originals import (
    OriginalFile,
    original_files,
    original_row_ids,
    read_originals,
)
from acidsql.storage.tables.listing import EventFile, Listing


@dataclass(frozen=True, slots=True)
class FileRead:
    """One task's work: a file, and the write ids of its visible events.

    Attributes:
        partition: The directory below the table's.
        path: The path of an event file; None for an original.
        length: The file's committed bytes; None for the whole file.
        original: A file without event columns; None for an event file.
        high_water_mark: Events with a higher write id are invisible.
        hidden: Other write ids whose events are invisible.
        least_write_id: A lower bound of the write ids under which the file's rows were inserted.
        size: The file's bytes on disk; 0: unknown.
        is_parquet: The file is Parquet, without event columns; otherwise it is ORC.
    """

    partition: str
    path: str | None
    length: int | None
    original: OriginalFile | None
    high_water_mark: int
    hidden: tuple[int, ...]
    least_write_id: int = ORIGINALS_BASE
    size: int = 0
    is_parquet: bool = False

    @property
    def file(self) -> str:
        """The path of the file, of either kind."""
        path = self.path if self.original is None else self.original.path
        assert path is not None
        return path


# Of the first columns of ``read_originals``.
_ID_TYPES = (np.int64, np.int32, np.int64, np.int64)
# The columns of ``read_deletes``: the row id, and the write id of the delete event.
DELETING_WRITE_ID = "currentTransaction"
DELETE_COLUMNS = [WRITE_ID, BUCKET_PROPERTY, ROW_ID, DELETING_WRITE_ID]


def plan_reads(listings: Sequence[Listing], write_ids: ValidWriteIdList) -> list[FileRead]:
    """Return one read for each file of insert events or original; originals without rows are left
    out.

    The footers of all originals are read now, because a row id depends on the numbers of rows in
    the files before. Raises FormatError if one is damaged.
    """
    hwm, hidden = write_ids.high_water_mark, write_ids.exceptions
    reads = []
    for listing in listings:
        name = listing.partition
        reads += [
            FileRead(
                name, file.path, file.length, None, hwm, hidden, _least_write_id(file), file.size
            )
            for file in listing.data
        ]
        for group in listing.originals:
            sizes = dict(zip(group.paths, group.sizes, strict=False))
            files = original_files(group.paths, group.write_id, group.statement_id)
            reads += [
                FileRead(
                    name,
                    None,
                    None,
                    original,
                    hwm,
                    hidden,
                    original.write_id,
                    sizes.get(original.path, 0),
                )
                for original in files
            ]
    return reads


def _least_write_id(file: EventFile) -> int:
    """Return a lower bound of the write ids of the file's rows.

    A base has rows of all write ids up to its own, a delta only rows of its range.
    """
    is_base = file.directory.kind is DirectoryKind.BASE
    return ORIGINALS_BASE if is_base else file.directory.min_write_id


def plan_deletes(listing: Listing, write_ids: ValidWriteIdList) -> list[FileRead]:
    """Return one read for each file of delete events. Nothing is opened."""
    hwm, hidden = write_ids.high_water_mark, write_ids.exceptions
    return [
        FileRead(listing.partition, file.path, file.length, None, hwm, hidden, size=file.size)
        for file in listing.deletes
    ]


def plain_reads(
    files: Mapping[str, Sequence[str]],
    sizes: Mapping[str, int] = MappingProxyType({}),
    *,
    are_parquet: bool = False,
) -> list[FileRead]:
    """Return one read for each file of an insert-only table. The row ids have no meaning.

    ``files``: paths by partition directory. ``sizes``: the files' bytes on disk, as far as they are
    known. ``are_parquet``: the files are Parquet; otherwise they are ORC.
    """
    return [
        FileRead(
            partition, None, None, OriginalFile(path, 0, 0, 0, 0), 0, (),
            size=sizes.get(path, 0), is_parquet=are_parquet,
        )
        for partition, paths in files.items()
        for path in paths
    ]  # fmt: skip


def flat_schema(table: Table) -> RowSchema:
    """Return the table's data columns under the names ``c0``, ``c1`` …, which clash with no other
    name.

    The names in files do not matter: columns are matched by position.
    """
    return RowSchema.from_fields((f"c{i}", column.type) for i, column in enumerate(table.columns))


def read_file(
    read: FileRead, schema: RowSchema, names: Sequence[str], *, exact: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the insert events of a file whose transactions the read sees (``are_visible``): row id
    (three columns), partition directory, then the table's columns under ``names``. Delete events
    are not applied: deleted rows are among them. Batches without rows are left out.

    Columns are matched by position; those of a Parquet file by ``names``.

    ``exact``: refuse timestamps finer than a microsecond, because the rows will be written again.

    Raises:
        FileNotFoundError: The file is gone.
        FormatError: The file is damaged, or of another kind.
        UnsupportedError: With ``exact``: a timestamp is finer than a microsecond.
    """
    if read.is_parquet:
        batches = _read_parquet_rows(read.file, schema, names, exact=exact)
    elif read.original is not None:
        batches = read_originals(read.original, schema, exact=exact)
    else:
        assert read.path is not None
        batches = read_events(read.path, schema, read.length, exact=exact)
    for batch in batches:
        visible_rows = chosen_rows(batch, are_visible(read, batch.column("currentTransaction")))
        if visible_rows.num_rows:
            partition = pa.repeat(pa.scalar(read.partition, pa.string()), visible_rows.num_rows)
            yield pa.RecordBatch.from_arrays(
                [*visible_rows.columns[:3], partition, *visible_rows.columns[4:]],
                names=[WRITE_ID, BUCKET_PROPERTY, ROW_ID, PARTITION, *names],
            )


def _read_parquet_rows(
    path: str, schema: RowSchema, names: Sequence[str], *, exact: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file in the form of ``read_originals``; the row ids are 0.
    ``names``: the columns' names in the file. Raises as ``read_parquet``.
    """
    from acidsql.storage.tables.parquet import read_parquet  # few tasks read Parquet

    for batch in read_parquet(path, RowSchema(tuple(names), schema.types), exact=exact):
        zeros = [pa.array(np.zeros(batch.num_rows, kind)) for kind in _ID_TYPES]
        yield pa.RecordBatch.from_arrays([*zeros, *batch.columns], names=flat_names(schema))


def read_for_query(
    reads: Sequence[FileRead],
    schema: RowSchema,
    names: Sequence[str],
    *,
    with_path: bool = False,
    exact: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the insert events of all these files whose transactions the reads see: row id (three
    columns), partition directory, then the table's columns under ``names``. With ``with_path`` the
    URL of the file follows, as ``url``. Delete events are not applied. ``exact``: as of
    ``read_file``.

    The tiny files of an object store come last: threads read some ahead, as a task waits for
    answers longer than it decodes such a file.

    Raises:
        SnapshotTooOldError: A file is gone.
        FormatError: A file is damaged, or of another kind.
        UnsupportedError: With ``exact``: a timestamp is finer than a microsecond.
    """

    def rows_of(read: FileRead) -> Iterator[pa.RecordBatch]:
        """Yield the visible rows of a file, with its URL if that is wanted. Raises
        SnapshotTooOldError if the file is gone.
        """
        with naming_missing(read.file):
            for batch in read_file(read, schema, names, exact=exact):
                yield _add_path(batch, read) if with_path else batch

    tiny = [read for read in reads if _is_tiny(read)]
    for read in (read for read in reads if not _is_tiny(read)):
        yield from rows_of(read)
    for first_batch, later_batches in map_ahead(
        lambda read: _first_and_later_batches(rows_of(read)), tiny
    ):
        yield from first_batch
        yield from later_batches


def _first_and_later_batches(
    batches: Iterator[pa.RecordBatch],
) -> tuple[list[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    """Return the first batch (or none) in a list, and the iterator of the others, which are not
    decoded yet: a tiny file may have many, if its rows are alike.
    """
    return list(islice(batches, 1)), batches


def _is_tiny(read: FileRead) -> bool:
    """Whether a file is tiny, and on an object store."""
    return 0 < read.size <= NO_WAIT_SETTINGS and not filesystem_for(read.file).has_directories


def _add_path(batch: pa.RecordBatch, read: FileRead) -> pa.RecordBatch:
    """Return the batch with the file's URL as its last column, ``url``."""
    url = pa.repeat(pa.scalar(url_of(read.file), pa.string()), batch.num_rows)
    return pa.RecordBatch.from_arrays([*batch.columns, url], [*batch.schema.names, "url"])


def read_deletes(read: FileRead) -> Iterator[pa.RecordBatch]:
    """Yield the delete events of an event file whose own write ids the read sees: the row ids that
    they name, and these write ids, as DELETE_COLUMNS. Batches without such events are left out.
    Raises FormatError if the file is damaged or has no events, and FileNotFoundError if it is gone.
    """
    assert read.path is not None
    for batch in read_row_ids(read.path, read.length):
        deletes = chosen_rows(batch, pc.equal(batch.column("operation"), event.DELETE))
        visible_deletes = chosen_rows(deletes, are_visible(read, deletes.column(DELETING_WRITE_ID)))
        if visible_deletes.num_rows:
            yield pa.RecordBatch.from_arrays(visible_deletes.columns[1:], DELETE_COLUMNS)


def read_insert_ids(read: FileRead) -> Iterator[pa.RecordBatch]:
    """Yield the row ids of the insert events of a file whose transactions the read sees, without
    the rows, as three columns. Delete events are not applied. An original is not opened, and all
    its rows count as visible. Raises FormatError if the file is damaged or has no events, and
    FileNotFoundError if it is gone.
    """
    names = [WRITE_ID, BUCKET_PROPERTY, ROW_ID]
    if read.original is not None:
        yield from original_row_ids(read.original, names)
        return
    assert read.path is not None
    for batch in read_row_ids(read.path, read.length):
        inserts = chosen_rows(batch, pc.equal(batch.column("operation"), event.INSERT))
        visible_inserts = chosen_rows(inserts, are_visible(read, inserts.column(DELETING_WRITE_ID)))
        if visible_inserts.num_rows:
            yield pa.RecordBatch.from_arrays(visible_inserts.columns[1:4], names)


def dump_file(path: str, length: int | None, schema: RowSchema) -> Iterator[pa.RecordBatch]:
    """Yield all events of a file, as stored: the six event columns, then the path.

    ``schema``: the columns to which ``row`` is converted.

    Raises:
        FormatError: The file is not an event file, or damaged.
    """
    with naming_damage(path):
        for batch, info in read_batches(path, length):
            need_events(batch, path)
            row = cast(pa.StructArray, batch.column(5))
            row = conform(row, schema, info.calendar, info.row_types)
            paths = pa.repeat(pa.scalar(path, pa.string()), batch.num_rows)
            columns = [*batch.columns[:5], row, paths]
            yield pa.RecordBatch.from_arrays(columns, names=[*EVENT_COLUMNS, "path"])


def are_visible(read: FileRead, write_ids: pa.Array) -> pa.Array:
    """Return a boolean for each write id: whether the snapshot of ``read`` sees its events (I1:
    only valid write ids).
    """
    is_visible = pc.less_equal(write_ids, read.high_water_mark)
    if not read.hidden:
        return is_visible
    hidden = pc.is_in(write_ids, value_set=pa.array(read.hidden, write_ids.type))
    return pc.and_(is_visible, pc.invert(hidden))
