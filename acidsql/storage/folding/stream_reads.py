"""The rows of a stream's micro-batch: which files to read, and how a task reads one of them.

A task knows neither a session nor a metastore, only the file and the delete events that may name
its rows (I5). So it finds the same events as ``reading.changes``, from the same listing, but
without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from acidsql.acid.bucket_codec import decode
from acidsql.acid.layout import bucket_id_of, parse_partition_name
from acidsql.acid.table import Column, Table
from acidsql.acid.values.partition_values import partition_value
from acidsql.acid.values.types import parse_type
from acidsql.acid.write_ids import NewWriteIds, ValidTxnList, ValidWriteIdList
from acidsql.errors import UnsupportedError
from acidsql.storage.event_records import WRITE_ID
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.folding.event_merge import Int64s, keys_of, places_in
from acidsql.storage.reading.changes import ChangesRequest, changed_files, may_delete_own
from acidsql.storage.reading.events.event_reader import (
    DELETING_WRITE_ID,
    FileRead,
    flat_schema,
    plan_deletes,
    plan_reads,
    read_deletes,
    read_for_query,
)
from acidsql.storage.spark.shown_schema import shown_schema
from acidsql.storage.tables.listing import Listing, list_table

FIRST_COLUMN = 4  # behind the row id and the partition
_PARTITION_TYPES = {
    "string": pa.string(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(),
    "bigint": pa.int64(), "date": pa.date32(),
}  # fmt: skip


class Shows(Enum):
    """Which rows of a file to show.

    LIVE: those that nothing has deleted. NEW: those that new write ids have inserted, and not
    deleted themselves. DELETED: those that new write ids of others have deleted.
    """

    LIVE = "live"
    NEW = "new"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class StreamRead:
    """One file to read.

    Attributes:
        read: The file of insert events.
        deletes: The files of delete events that may name rows of the file: those of its partition
            and, in a table with buckets, of its bucket.
        shows: Which rows.
        new: The new write ids; None: all.
        overwritten_by: The write id of the overwrite that has deleted the rows; None: none.
        size: Bytes on disk.
    """

    read: FileRead
    deletes: tuple[FileRead, ...]
    shows: Shows
    new: NewWriteIds | None = None
    overwritten_by: int | None = None
    size: int = 0

    @property
    def is_deletion(self) -> bool:
        """Whether the rows are deleted ones."""
        return self.shows is Shows.DELETED or self.overwritten_by is not None


@dataclass(frozen=True, slots=True)
class _DeletedRowIds:
    """Row ids, and the write id that deleted each of them."""

    keys: list[Int64s]
    versions: Int64s


def stream_schema(table: Table) -> StructType:
    """Return the schema of the rows that a stream gives: the table's columns.

    Raises:
        UnsupportedError: The table has no row ids, or a type that Python tasks cannot show.
    """
    if not table.is_transactional or table.is_insert_only:
        reason: str | None = "only full ACID tables can"
    else:
        reason = unshown_type(table.all_columns, table)
    if reason is not None:
        raise UnsupportedError(
            f"{table.name} cannot be read as a stream: {reason}.",
            condition="UNSUPPORTED_FEATURE.STREAM_SOURCE",
        )
    return shown_schema(table.all_columns)


def unshown_type(columns: Sequence[Column], table: Table) -> str | None:
    """Return why Python tasks cannot show one of these columns of a table: a column with a CHAR
    inside of another type, or a partition column that is no text, integer or day. None: they can
    show them all.
    """
    for column in columns:
        if column in table.partition_columns:
            if column.type not in _PARTITION_TYPES:
                return f"its partition column {column.name} has the type {column.type}"
        elif not column.type.startswith("char") and parse_type(column.type).holds("char"):
            return f"its column {column.name} has a CHAR inside"
    return None


# ── which files ──────────────────────────────────────────────────────────────────────────────


def live_reads(
    table: Table, partitions: Sequence[str], write_ids: ValidWriteIdList, txns: ValidTxnList
) -> list[StreamRead]:
    """List the files of a snapshot, and return one read for each, of its live rows.

    Raises:
        SnapshotTooOldError: A directory is gone.
    """
    fs = filesystem_for(table.location)
    with naming_missing(table.location):
        listings = list_table(fs, table.location, partitions, write_ids, txns, history_is_kept=True)
        return live_reads_of_listings(table, listings, write_ids)


def live_reads_of_listings(
    table: Table, listings: Sequence[Listing], write_ids: ValidWriteIdList
) -> list[StreamRead]:
    """Return one read for each listed file of a table, of its live rows. Footers of originals are
    read."""
    return [
        read
        for listing in listings
        for read in _stream_reads(table, listing, write_ids, Shows.LIVE)
    ]


def new_reads(changes: ChangesRequest, *, with_deletes: bool = False) -> list[StreamRead]:
    """List the files of changes, and return the reads of the rows that the new write ids have
    inserted, and ``with_deletes`` also of those that they deleted or overwrote. A row that a new
    write id inserted and deleted itself is in neither. With ``with_deletes``, delete events are
    read now, to choose the files.

    Raises:
        SnapshotTooOldError: A directory or file is gone, or a rebalance in between gave the rows
            new row ids.
    """
    with naming_missing(changes.table.location):
        files, after, table = changed_files(changes), changes.new.after, changes.table
        inserted = [
            listing if may_delete_own([listing]) else replace(listing, deletes=())
            for listing in files.new
        ]
        reads = [
            read
            for listing in inserted
            for read in _stream_reads(table, listing, after, Shows.NEW, changes.new)
        ]
        if not with_deletes:
            return reads
        for listing in files.listings_with_named_rows(after):
            reads += _stream_reads(table, listing, after, Shows.DELETED, changes.new)
        for write_id, write_ids, listings in files.overwritten:
            for listing in listings:
                reads += _stream_reads(
                    table, listing, write_ids, Shows.LIVE, overwritten_by=write_id
                )
    return reads


def _stream_reads(
    table: Table,
    listing: Listing,
    write_ids: ValidWriteIdList,
    shows: Shows,
    new: NewWriteIds | None = None,
    overwritten_by: int | None = None,
) -> list[StreamRead]:
    """Return one read for each file of insert events of a listing, with the files of delete events
    that may name its rows; originals without rows have none. The other parameters are fields of the
    reads.

    In a table with buckets these are the files of the same bucket (I5). In others Trino breaks this
    rule: it writes delete events of all buckets into one file. So there each read has all of them.
    """
    sizes = {file.path: file.size for file in listing.data}
    for group in listing.originals:
        sizes |= zip(group.paths, group.sizes, strict=True)
    all_deletes = tuple(plan_deletes(listing, write_ids))
    deletes_by_bucket: dict[int | None, list[FileRead]] = {}
    for delete_read in all_deletes:
        deletes_by_bucket.setdefault(_bucket_id_of_read(delete_read), []).append(delete_read)

    def deletes_of(read: FileRead) -> tuple[FileRead, ...]:
        if not table.bucket_columns:
            return all_deletes
        return tuple(deletes_by_bucket.get(_bucket_id_of_read(read), ()))

    return [
        StreamRead(read, deletes_of(read), shows, new, overwritten_by, sizes[read.file])
        for read in plan_reads([listing], write_ids)
    ]


def _bucket_id_of_read(read: FileRead) -> int | None:
    """Return the bucket id of a file; None if the name of an event file has none."""
    if read.original is not None:
        return decode(read.original.bucket_property).bucket_id
    assert read.path is not None
    return bucket_id_of(read.path.rpartition("/")[2])


# ── their rows ───────────────────────────────────────────────────────────────────────────────


def stream_rows(stream_read: StreamRead, table: Table) -> Iterator[pa.RecordBatch]:
    """Yield those rows of a file that its read is to show (see ``Shows``), with the columns of
    ``stream_schema``. This runs in a task.

    Raises:
        SnapshotTooOldError: A file is gone.
    """
    for batch, _ in stream_events(stream_read, table):
        yield to_shown_columns(batch, table, stream_read.read.partition)


def stream_events(stream_read: StreamRead, table: Table) -> Iterator[tuple[pa.RecordBatch, Int64s]]:
    """Yield those rows of a file that its read is to show (see ``Shows``), with their versions.
    This runs in a task, without Spark.

    Yields:
        Rows with the columns of ``read_for_query``, in batches, none of them empty; and an array of
        the rows' versions: the write id that inserted a row or, if the read is of deleted rows, the
        one that deleted or overwrote it.

    Raises:
        SnapshotTooOldError: A file is gone.
    """
    schema = flat_schema(table)
    deleted = _deleted_row_ids(stream_read)
    if stream_read.shows is Shows.DELETED and deleted is None:
        return
    for batch in read_for_query([stream_read.read], schema, schema.names):
        keys = keys_of(batch)
        versions = keys[0]
        at = np.full(batch.num_rows, -1) if deleted is None else places_in(keys, deleted.keys)
        if stream_read.shows is Shows.DELETED:
            assert deleted is not None
            is_shown, versions = at >= 0, deleted.versions[at]
        else:
            is_shown = at < 0
            if stream_read.new is not None:
                is_shown &= _among_new(versions, stream_read.new)
        if stream_read.overwritten_by is not None:
            versions = np.full(batch.num_rows, stream_read.overwritten_by)
        if is_shown.any():
            yield batch.filter(pa.array(is_shown)), versions[is_shown]


def _deleted_row_ids(stream_read: StreamRead) -> _DeletedRowIds | None:
    """Read the delete events, and return the row ids that decide which rows are shown. LIVE: all
    deleted ones; NEW: those deleted by their own write id; DELETED: those deleted by a new write id
    that is not their own. None if there are none.
    """
    key_batches: list[list[Int64s]] = []
    versions: list[Int64s] = []
    for batch in _delete_events(stream_read):
        deleting = batch.column(DELETING_WRITE_ID)
        is_own = pc.equal(deleting, batch.column(WRITE_ID))
        if stream_read.shows is Shows.NEW:
            batch = batch.filter(is_own)
        elif stream_read.shows is Shows.DELETED:
            assert stream_read.new is not None
            is_new = pa.array(_among_new(deleting.to_numpy(), stream_read.new))
            batch = batch.filter(pc.and_(is_new, pc.invert(is_own)))
        if batch.num_rows:
            key_batches.append(keys_of(batch))
            versions.append(batch.column(DELETING_WRITE_ID).to_numpy().astype(np.int64))
    if not key_batches:
        return None
    keys = [np.concatenate(parts) for parts in zip(*key_batches, strict=True)]
    return _DeletedRowIds(keys, np.concatenate(versions))


def _delete_events(stream_read: StreamRead) -> Iterator[pa.RecordBatch]:
    """Yield the visible delete events of the read's files of delete events. Raises
    SnapshotTooOldError if one is gone."""
    for read in stream_read.deletes:
        with naming_missing(str(read.path)):
            yield from read_deletes(read)


def _among_new(numbers: Int64s, new: NewWriteIds) -> npt.NDArray[np.bool_]:
    """Return for each number whether it is a new write id."""
    distinct, places = np.unique(numbers, return_inverse=True)
    return np.array([int(number) in new for number in distinct], dtype=bool)[places]


def to_shown_columns(batch: pa.RecordBatch, table: Table, partition: str) -> pa.RecordBatch:
    """Return the table's columns as ``shown_batch`` does, from rows that ``read_for_query`` gives;
    the row id and the directory before them are dropped. ``partition``: the rows' directory.
    """
    values = dict(enumerate(batch.columns[FIRST_COLUMN:]))
    return shown_batch(table, table.all_columns, values, partition, batch.num_rows)


def shown_batch(
    table: Table,
    columns: Sequence[Column],
    stored_values: Mapping[int, pa.Array],
    partition: str,
    row_count: int,
) -> pa.RecordBatch:
    """Return columns of a table, under their names, as Python tasks show them: the values of a CHAR
    are padded with blanks, and a partition column has the value that the directory's name has.

    Args:
        table: The table.
        columns: Those of its columns that are shown, in this order.
        stored_values: The values of data columns, by their places; it may have others, too.
        partition: The directory of the rows.
        row_count: How many rows there are.
    """
    places = {column.name: i for i, column in enumerate(table.columns)}
    pairs = parse_partition_name(partition) if partition else ()
    names = (column.name for column in table.partition_columns)
    texts = dict(zip(names, (text for _, text in pairs), strict=True))
    arrays = [
        _shown_values(column, stored_values[places[column.name]])
        if column.name in places
        else pa.repeat(_shown_partition_value(column, texts[column.name]), row_count)
        for column in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _shown_values(column: Column, values: pa.Array) -> pa.Array:
    if not column.type.startswith("char"):
        return values
    return pc.utf8_rpad(values, int(parse_type(column.type).parameters[0]), " ")


def _shown_partition_value(column: Column, text: str | None) -> pa.Scalar:
    """Return a partition column's value from the text in the directory's name; None is NULL."""
    shown_as = _PARTITION_TYPES[column.type]
    stored_as = pa.int32() if column.type == "date" else shown_as
    return pa.scalar(partition_value(text, column.type), stored_as).cast(shown_as)
