"""The rows of a stream's micro-batch: which files to read, and how a task reads one of them.

A task knows neither a session nor a metastore, only the file and the delete events beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import Table
from acidsql.acid.types import parse_type
from acidsql.acid.write_ids import NewWriteIds, ValidTxnList, ValidWriteIdList
from acidsql.errors import UnsupportedError
from acidsql.storage.columns import quote, shown_type
from acidsql.storage.event_records import WRITE_ID
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.files.listing import list_directory
from acidsql.storage.folding.event_merge import among, keys_of
from acidsql.storage.reading.changes import Changes, inserting
from acidsql.storage.reading.event_reader import (
    DELETING_WRITE_ID,
    FileRead,
    flat_schema,
    plan_deletes,
    plan_reads,
    read_deletes,
    read_for_query,
)

_FIRST_COLUMN = 4  # behind the row id and the partition
_PARTITION_TYPES = {
    "string": pa.string(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(),
    "bigint": pa.int64(), "date": pa.date32(),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StreamRead:
    """One task's work.

    Attributes:
        read: The file of insert events.
        deletes: The files of delete events beside it.
        new: The write ids of the rows; None: all.
        is_live: Leave out rows that any write id has deleted, not only their own.
    """

    read: FileRead
    deletes: tuple[FileRead, ...]
    new: NewWriteIds | None = None
    is_live: bool = False


def stream_ddl(table: Table) -> str:
    """The DDL of the rows.

    Raises:
        UnsupportedError: The table has no row ids, or a type that a stream cannot show.
    """

    def refuse(why: str) -> UnsupportedError:
        return UnsupportedError(
            f"{table.name} cannot be read as a stream: {why}.",
            condition="UNSUPPORTED_FEATURE.STREAM_SOURCE",
        )

    if not table.is_transactional or table.is_insert_only:
        raise refuse("only full ACID tables can")
    for column in table.columns:
        if column.type.startswith("char"):
            continue
        if parse_type(column.type).holds("char"):
            raise refuse(f"its column {column.name} has a CHAR inside")
    for column in table.partition_columns:
        if column.type not in _PARTITION_TYPES:
            raise refuse(f"its partition column {column.name} has the type {column.type}")
    return ", ".join(f"{quote(one.name)} {_shown(one.type)}" for one in table.all_columns)


def _shown(kind: str) -> str:
    return "string" if kind.startswith("char") else shown_type(kind)


def live_reads(
    table: Table, partitions: Sequence[str], seen: ValidWriteIdList, txns: ValidTxnList
) -> list[StreamRead]:
    """The reads of all rows of a snapshot."""
    fs = filesystem_for(table.location)
    reads = []
    for name in partitions:
        path = f"{table.location}/{name}".rstrip("/")
        with naming_missing(path):
            listing = list_directory(fs, path, name, seen, txns, history_is_kept=True)
        deletes = tuple(plan_deletes(listing, seen))
        reads += [StreamRead(read, deletes, is_live=True) for read in plan_reads([listing], seen)]
    return reads


def new_reads(what: Changes) -> list[StreamRead]:
    """The reads of the rows that some write ids have inserted."""
    reads = []
    for listing in inserting(what):
        deletes = tuple(plan_deletes(listing, what.new.after))
        files = plan_reads([listing], what.new.after)
        reads += [StreamRead(read, deletes, what.new) for read in files]
    return reads


def stream_rows(what: StreamRead, table: Table) -> Iterator[pa.RecordBatch]:
    """The rows of a read, with the columns of ``stream_ddl``."""
    schema = flat_schema(table)
    gone = _deleted(what)
    for batch in read_for_query(what.read, schema, schema.names):
        kept = batch
        if what.new is not None:
            ids = kept.column(WRITE_ID).to_pylist()
            is_new = {number: number in what.new for number in set(ids)}
            kept = kept.filter(pa.array([is_new[number] for number in ids], pa.bool_()))
        if kept.num_rows and gone is not None:
            kept = kept.filter(pa.array(~among(keys_of(kept), gone)))
        if kept.num_rows:
            yield _as_shown(kept, table, what.read.partition)


def _deleted(what: StreamRead) -> list[np.ndarray] | None:
    """The row ids that were deleted; if not ``is_live``, by their own write id."""
    found = []
    for read in what.deletes:
        for batch in read_deletes(read):
            if not what.is_live:
                own = pc.equal(batch.column(DELETING_WRITE_ID), batch.column(WRITE_ID))
                batch = batch.filter(own)
            if batch.num_rows:
                found.append(keys_of(batch))
    return [np.concatenate(parts) for parts in zip(*found, strict=True)] if found else None


def _as_shown(batch: pa.RecordBatch, table: Table, partition: str) -> pa.RecordBatch:
    arrays = []
    for column, values in zip(table.columns, batch.columns[_FIRST_COLUMN:], strict=True):
        if column.type.startswith("char"):
            width = int(parse_type(column.type).parameters[0])
            values = pc.utf8_rpad(values, width, " ")
        arrays.append(values)
    known = dict(parse_partition_name(partition)) if partition else {}
    for column in table.partition_columns:
        value = pa.scalar(known[column.name.lower()], pa.string())
        arrays.append(pa.repeat(value.cast(_PARTITION_TYPES[column.type]), batch.num_rows))
    return pa.RecordBatch.from_arrays(arrays, names=[one.name for one in table.all_columns])
