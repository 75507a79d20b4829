"""The driver finds and reads the rows for which a condition may hold.

Spark's ORC reader decodes all columns of a row before it evaluates the condition. Here pyarrow
decodes the columns of the condition first, and other columns only in stripes that have a candidate.
So a statement that changes a few rows of a table of moderate size needs no Spark job to find them.
The found rows are candidates. The statement's query runs over them and decides.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acidsql.acid import event
from acidsql.acid.table import Column, Table
from acidsql.acid.values.predicate import (
    ANYTHING,
    And,
    Comparison,
    Not,
    Or,
    Predicate,
    TypedValue,
    columns_of,
)
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.costs import recorded_in_threads
from acidsql.errors import FormatError
from acidsql.storage.columns import has_timestamp
from acidsql.storage.event_records import BUCKET_PROPERTY, PARTITION, PREFIX, ROW_ID, WRITE_ID
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.orc.row_schema import RowSchema, conform
from acidsql.storage.reading.events.deletion_vectors import DeletionVectors
from acidsql.storage.reading.events.event_reader import FileRead, are_visible, plan_reads
from acidsql.storage.reading.events.orc_reader import event_names, open_orc, time_zones
from acidsql.storage.reading.pruning.sargs import comparable_condition
from acidsql.storage.tables.file_info import FileInfo
from acidsql.storage.tables.listing import Listing

BYTES_MAX = 256 * 1024 * 1024  # of files; only a column or two of them are decoded
_FOUND_MAX = 16 * 1024 * 1024  # bytes of rows
_VALUES_MAX = 1 << 24  # values of a stripe that are decoded, perhaps for a single row
# Before 25, pyarrow gives a wrong value for a timestamp that it cannot hold, and no error.
_ARROW_SEES_OVERFLOW = int(pa.__version__.partition(".")[0]) >= 25
_SMALL = 64 * 1024  # bytes of a small file
_READERS = min(4, os.cpu_count() or 1)  # few, because each keeps a stripe's columns in memory

_Places = npt.NDArray[np.int64]
Decider = Callable[[Mapping[str, pa.Array]], pa.Array]  # of columns by name


@dataclass(frozen=True)
class Search:
    """The rows to search for.

    Attributes:
        table: The table.
        condition: The result of ``searchable_condition``, or ``ANYTHING`` for all rows.
        columns: Ordinals of the columns whose values matter.
        limit: The number of rows that may be found at most.
        deleted: The delete events.
    """

    table: Table
    condition: Predicate
    columns: Sequence[int]
    limit: int
    deleted: DeletionVectors

    @cached_property
    def decide(self) -> Decider:
        """The function that tells for each row whether the condition holds: true, false or null. It
        takes Arrow's columns by name.
        """
        return decider(self.condition)

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the found rows."""
        ids = [(WRITE_ID, pa.int64()), (BUCKET_PROPERTY, pa.int32()), (ROW_ID, pa.int64())]
        row = _row_schema(self.table, self.columns).struct
        return pa.schema([*ids, (PARTITION, pa.string()), *row])


def searchable_condition(
    table: Table, listings: Sequence[Listing], condition: Predicate
) -> Predicate:
    """Return the part of a condition by which the driver can search; ANYTHING if there is none, or
    if the driver should not search because there are originals or too many bytes.
    """
    kinds = {column.name: column.type for column in table.columns}
    if any(listing.originals for listing in listings):  # originals store no row ids
        return ANYTHING
    if sum(file.size for listing in listings for file in listing.data) > BYTES_MAX:
        return ANYTHING
    return comparable_condition(condition, kinds)


def numbered_reads(
    listings: Sequence[Listing], write_ids: ValidWriteIdList, partition_numbers: Mapping[str, int]
) -> list[tuple[int, FileRead]]:
    """Return the reads of all files of insert events, each after the number of its partition, by
    which its rows are compared with delete events; -1 if the partition has no delete events.

    ``partition_numbers``: ``Scan.numbers``, in which all partitions without delete events have the
    number 0, as one with them may.
    """
    changed = {listing.partition for listing in listings if listing.deletes}
    return [
        (partition_numbers[read.partition] if read.partition in changed else -1, read)
        for read in plan_reads(listings, write_ids)
    ]


def search(reads: Sequence[tuple[int, FileRead]], target: Search) -> pa.Table | None:
    """Return the live rows for which a condition may hold. All files are read before this returns,
    in threads.

    Args:
        reads: The result of ``numbered_reads``.
        target: The rows to search for.

    Returns:
        Row ids, partition directory, then columns of the table named by ``column_name``; None if
        there are too many rows, or if Arrow cannot read them: then Spark must search.

    Raises:
        SnapshotTooOldError: A file is gone.
        UnsupportedError: Values of a file cannot be read as the column's present type.
    """
    rows, size, gives_up = 0, 0, False

    def work(numbered_read: tuple[int, FileRead]) -> list[pa.Table] | None:
        """Return the live rows found in a file, and count them. None, from then on for every file,
        if Spark must search instead.
        """
        nonlocal rows, size, gives_up
        if gives_up:
            return None
        parts = search_file(*numbered_read, target)
        rows += sum(map(len, parts or ()))
        size += sum(part.nbytes for part in parts or ())
        gives_up |= parts is None or rows > target.limit or size > _FOUND_MAX
        return None if gives_up else parts

    small = [numbered_read for numbered_read in reads if 0 < numbered_read[1].size <= _SMALL]
    large = [numbered_read for numbered_read in reads if not 0 < numbered_read[1].size <= _SMALL]
    tables = [target.schema.empty_table()]
    with ThreadPoolExecutor(_READERS) as pool:
        try:
            # Arrow decodes large files in threads at once. Of a small file, most of the work is
            # Python's, so this thread reads those meanwhile.
            large_results = pool.map(recorded_in_threads(work), large)
            for parts in chain(run_in_threads(work, small), large_results):
                if parts is None:
                    return None
                tables += parts
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    result = pa.concat_tables(tables)  # threads may have counted too few
    return None if len(result) > target.limit or result.nbytes > _FOUND_MAX else result


def column_name(ordinal: int) -> str:
    """Return the name of a table's column in the result. No user column can have this name."""
    return f"{PREFIX}c{ordinal}"


def _row_schema(table: Table, ordinals: Iterable[int]) -> RowSchema:
    """Return the schema of these columns of a table, named by ``column_name``."""
    return RowSchema.from_fields((column_name(i), table.columns[i].type) for i in ordinals)


def search_file(number: int, read: FileRead, target: Search) -> list[pa.Table] | None:
    """Return the live rows found in a file, a table for each stripe; None if the file must be read
    in another way, also if it is damaged.

    Args:
        number: The number of the file's partition among the deleted row ids; -1: none is deleted.
        read: The file, which has events.
        target: The rows to search for.

    Raises:
        SnapshotTooOldError: The file is gone.
        UnsupportedError: Values of the file cannot be read as the column's present type.
    """
    path, tables = str(read.path), list[pa.Table]()
    try:
        with naming_missing(path), open_orc(path, read.length) as opened_file:
            if opened_file is None:
                return tables
            reader, info = opened_file
            file = _SearchedFile(reader, info, number, read, target)
            for stripe in range(reader.nstripes):
                part = file.search(stripe)
                if part is None:
                    return None
                tables.append(part)
    except FormatError:
        return None  # Spark may read a file that Arrow cannot; for a damaged file Spark raises
    return tables


class _SearchedFile:
    """A file of events, read stripe by stripe and column by column."""

    def __init__(
        self, reader: Any, info: FileInfo, number: int, read: FileRead, target: Search
    ) -> None:
        """Raise FormatError if the file has no events, or if Arrow might read a column wrongly: one
        with a name that ORC takes for a path, or timestamps, before Arrow 25 or of another zone
        than UTC.
        """
        self._reader, self._info = reader, info
        self._number, self._read, self._target = number, read, target
        self._events = event_names(reader, str(read.path))
        row = reader.schema.field(len(self._events) - 1).type
        self._fields = [row.field(i).name for i in range(row.num_fields)]
        if any(set(name) & {".", "`"} for name in self._fields):
            raise FormatError("ORC would take the name of a column for the path of another")
        has_moments = has_timestamp(column.type for column in self._columns)
        has_moments |= any(kind.kind == "timestamp" for kind in info.row_types)
        if has_moments and not _ARROW_SEES_OVERFLOW:
            raise FormatError("Arrow does not tell which timestamps it cannot hold")
        if has_moments and time_zones(str(read.path), read.length) - {"UTC", "GMT"}:
            raise FormatError("ORC's C++ reads some timestamps of other zones wrongly")

    def search(self, stripe: int) -> pa.Table | None:
        """Return the live rows found in a stripe (by its number), perhaps none. None if Spark must
        search instead: there are too many candidates, a stripe is large, or an event column has
        a NULL.
        """
        none = self._target.schema.empty_table()
        places = self._candidates(stripe)
        if not len(places):
            return none
        if len(places) > self._target.limit or self._is_large():
            return None
        operations, *ids, writers = events = self._read_events(stripe, places)
        if any(column.null_count for column in events):
            return None  # Hive writes no nulls here; the scan by Spark defines what they mean
        visible_inserts = pc.and_(
            pc.not_equal(operations, event.DELETE), are_visible(self._read, writers)
        )
        keys = [column.to_numpy().astype(np.int64) for column in ids]
        numbers = np.full(len(places), self._number, np.int64)
        deleted = self._target.deleted.are_deleted([numbers, *keys])
        is_live = visible_inserts.to_numpy(zero_copy_only=False) & ~deleted
        if not is_live.any():
            return none
        partitions = pa.repeat(pa.scalar(self._read.partition, pa.string()), len(places))
        rows = self._read_rows(stripe, self._target.columns, places).flatten()
        candidates = pa.table([*ids, partitions, *rows], schema=none.schema)
        return candidates.filter(pa.array(is_live))

    @property
    def _columns(self) -> Sequence[Column]:
        return self._target.table.columns

    def _candidates(self, stripe: int) -> _Places:
        """Return the places, in a stripe, of the events of any kind, deleted and invisible ones
        too, for whose rows the condition holds.
        """
        if self._target.condition == ANYTHING:
            return np.arange(self._reader.read_stripe(stripe, columns=self._events[:1]).num_rows)
        condition_columns = columns_of(self._target.condition)
        ordinals = [i for i, column in enumerate(self._columns) if column.name in condition_columns]
        names = [self._columns[i].name for i in ordinals]
        columns = self._read_rows(stripe, ordinals, None).flatten()
        holds = self._target.decide(dict(zip(names, columns, strict=True)))
        return np.flatnonzero(holds.fill_null(False).to_numpy(zero_copy_only=False))

    def _is_large(self) -> bool:
        """Whether the target's columns of a stripe would take much memory, by the average number of
        rows in the file's stripes.
        """
        rows = self._reader.nrows // self._reader.nstripes
        return bool(rows * len(self._target.columns) > _VALUES_MAX)

    def _read_events(self, stripe: int, places: _Places) -> list[pa.Array]:
        """Return the event columns except ``row``, of the events in these places of a stripe."""
        batch = self._reader.read_stripe(stripe, columns=self._events[:-1])
        return list(batch.take(pa.array(places)).columns)

    def _read_rows(
        self, stripe: int, ordinals: Sequence[int], places: _Places | None
    ) -> pa.StructArray:
        """Return columns of the table as one struct, of all rows of a stripe or of those in
        ``places``. They are matched by position; columns that the file lacks are NULL.
        """
        # Columns that were added to the table after this file was written are null, and come last.
        field_names = [self._fields[i] for i in ordinals if i < len(self._fields)]
        if not field_names:
            count = self._reader.read_stripe(stripe, columns=self._events[:1]).num_rows
            row = pa.StructArray.from_arrays([pa.nulls(count)], ["none"])
        else:
            columns = [f"{self._events[-1]}.{name}" for name in field_names]
            (row,) = self._reader.read_stripe(stripe, columns=columns).columns
        row = row if places is None else row.take(pa.array(places))
        file_types = [self._info.row_types[i] for i in ordinals if i < len(self._fields)]
        return conform(
            row, _row_schema(self._target.table, ordinals), self._info.calendar, file_types
        )


def decider(predicate: Predicate) -> Decider:
    """Return a function that tells for each row whether a predicate holds, by SQL's logic: true,
    false or null. It takes Arrow's columns by name.

    The literals become Arrow's here, once, because a list may have thousands of them, and there may
    be thousands of files.
    """
    match predicate:
        case And(terms):
            return _join_deciders(pc.and_kleene, terms)
        case Or(terms):
            return _join_deciders(pc.or_kleene, terms)
        case Not(term):
            denied = decider(term)
            return lambda columns: pc.invert(denied(columns))
        case Comparison(name, "is null"):
            return lambda columns: columns[name].is_null()
        case Comparison(name, "in", values):
            among = pa.array(map(_literal, values))
            return lambda columns: _is_in(columns[name], among)
        case Comparison(name, operator, (value,)):
            compare, scalar = _COMPARE[operator], pa.scalar(_literal(value))
            return lambda columns: compare(columns[name], scalar.cast(columns[name].type))
    raise AssertionError(predicate)


def _join_deciders(
    join: Callable[[pa.Array, pa.Array], pa.Array], terms: Sequence[Predicate]
) -> Decider:
    """Return a decider that joins, by ``join``, the results of the terms' deciders for the same
    columns.
    """
    deciders = [decider(term) for term in terms]
    return lambda columns: reduce(join, [decide(columns) for decide in deciders])


def _is_in(column: pa.Array, values: pa.Array) -> pa.Array:
    """Return for each value of a column whether it is one of ``values``; null for a null."""
    is_member = pc.is_in(column, value_set=values.cast(column.type))
    return pc.if_else(column.is_null(), pa.scalar(None, pa.bool_()), is_member)


def _literal(value: TypedValue) -> Any:
    """Return a literal as the Python value that Arrow takes: a bool, a date or ``value.python``."""
    if value.type == "boolean":
        return value.text == "true"
    return dt.date.fromisoformat(value.text) if value.type == "date" else value.python


_COMPARE = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
