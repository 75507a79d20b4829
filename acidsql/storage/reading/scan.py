"""Events → live rows: a lazy DataFrame over the files that a snapshot sees.

Spark's own ORC reader reads the files wherever it can. It has these requirements (all measured,
all tested):

* The query must reference every one of the six event columns, or the read fails (I8).
* Spark must not push down a filter: ORC would look for an event column among the *user's* columns,
  and would not find a user column as ``row.x``. ``coalesce`` prevents this (see ``sargs``).
* The schema of the scan has no partition columns. Their values come from the file's path.
* The scan names exact files, never a directory, and escapes glob characters (``open_files``).

Python tasks read all other files: small files on an object store, of which Spark asks ten times
(``FileSystem.small_file``), files without event columns, streamed files with a committed
length, tables with timestamps if the JVM's time zone has daylight saving time, files of other
writers that may hold days which Spark's reader shows as others (``lost_days``), and files from
before a change of a column's type that Spark's reader does not convert as Hive's does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from acidsql.acid import event
from acidsql.acid.table import Table
from acidsql.acid.values.evolution import is_cast
from acidsql.acid.values.predicate import ANYTHING, EVERYTHING, Demand, columns_of
from acidsql.acid.values.types import parse_type
from acidsql.acid.virtual_columns import FILE_NAME, IS_DELETED
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.costs import FastPath, note_fast_path
from acidsql.storage.columns import has_timestamp, quote, read_type, shown_sql, shown_type
from acidsql.storage.event_records import (
    BUCKET_PROPERTY,
    KEYS,
    PARTITION,
    PARTITION_NUMBER,
    ROW_ID,
    VERSION,
    WRITE_ID,
)
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.reading.events.deletes import key_columns, mark_deleted, remove_deleted
from acidsql.storage.reading.events.deletion_vectors import DeletionVectors, deletion_vectors
from acidsql.storage.reading.events.event_reader import plan_reads
from acidsql.storage.reading.events.point_search import (
    Search,
    column_name,
    numbered_reads,
    search,
    searchable_condition,
)
from acidsql.storage.reading.orc_scan import read_orc
from acidsql.storage.reading.pruning import sargs
from acidsql.storage.reading.pruning.partition_columns import (
    PathPartitions,
    partition_number_sql,
    partition_numbers,
    partition_value_columns,
)
from acidsql.storage.reading.python_rows import python_rows, python_rows_ddl, select_shown_columns
from acidsql.storage.reading.scan_columns import (
    empty_scan,
    needed_file_columns,
    row_virtual_columns,
    select_scan_columns,
)
from acidsql.storage.spark.few_rows import KEYS_FOR_A_ROW
from acidsql.storage.spark.local_rows import PLANNED_MAX, local_rows
from acidsql.storage.spark.session import jvm, zones
from acidsql.storage.tables.listing import EventFile, Listing
from acidsql.storage.tables.orc_schema import (
    FileColumnNames,
    files_with_lost_days,
    has_no_names,
    names_at_positions,
    names_by_directory,
)

_ROW = "row"
_NO_COLUMN = "__acidsql_none"  # a field of ``row`` that no file has


@dataclass(frozen=True, slots=True)
class Scan:
    """The files to read, and the snapshot to read them in.

    Attributes:
        table: The table: its columns, partition columns and location.
        listings: The files, by partition directory.
        write_ids: The valid write ids of the snapshot. Events of other write ids are dropped.
        demand: The rows and columns that matter. Other rows need not be read.
        is_fast: False: find deleted rows by a join, and partitions by the files' paths.
        virtual: The virtual columns that matter.
        with_deleted: Show deleted rows, too. The write id in the ``row__id`` of a deleted row is
            the one under which it was deleted, as in Hive.
        exact: The rows will be written again. Reading refuses timestamps finer than a microsecond,
            which a DataFrame would cut.
    """

    table: Table
    listings: Sequence[Listing]
    write_ids: ValidWriteIdList
    demand: Demand = EVERYTHING
    is_fast: bool = True
    virtual: Collection[str] = ()
    with_deleted: bool = False
    exact: bool = False

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each partition directory, by which rows are compared with delete events.

        Directories with delete events have different numbers. All others have the number 0, which
        one directory with delete events may have, too: no row of theirs is compared.
        """
        return {
            **{listing.partition: 0 for listing in self.listings},
            **partition_numbers(
                [listing.partition for listing in self.listings if listing.deletes]
            ),
        }


def scan(spark: SparkSession, request: Scan, few: int = 0) -> DataFrame:
    """Return the live rows of a snapshot, lazily; with ``with_deleted`` the deleted ones, too. With
    ``is_fast`` and without ``with_deleted``, the delete events are read now, if they are not too
    many.

    Args:
        spark: The session.
        request: The files and the snapshot.
        few: How many rows the driver may find itself; 0: it does not search. If the driver can
            evaluate a part of the demand's condition, and this part holds for at most so many rows,
            the result has these rows alone. If the query needs no columns but the condition's, ten
            times as many rows are allowed. Columns that the query does not need are NULL then.

    Returns:
        The live rows in no order: at least all rows that the demand needs. The columns are
        ``row__id`` (struct of writeid bigint, bucketid int, rowid bigint), ``KEYS``, the table's
        columns and its partition columns. ``KEYS`` are the fields of ``row__id`` again, and the
        row's partition directory ("" if unpartitioned). They spare Spark from making the struct for
        every row before it joins or filters rows. The other virtual columns come last. Timestamps
        are TIMESTAMP_NTZ, CHAR is padded.

    Raises:
        SnapshotTooOldError: A file is gone.
        FormatError: A file is damaged.
        UnsupportedError: With ``exact``, when the rows are read: a timestamp is finer than a
            microsecond.
    """
    zone_offset_micros = _zone_offset(spark, request)
    vectors = None
    if request.is_fast and not request.with_deleted:
        vectors = deletion_vectors(request.listings, request.write_ids, request.numbers)
    if few and vectors is not None and FILE_NAME not in request.virtual:
        candidates = _find_candidates(spark, request, vectors, few)
        if candidates is not None:
            return candidates
    with_deletes = [listing for listing in request.listings if listing.deletes]
    without_deletes = [listing for listing in request.listings if not listing.deletes]
    deleting = replace(request, listings=with_deletes)
    parts = _insert_events_by_reader(
        spark, replace(request, listings=without_deletes), zone_offset_micros
    )
    if inserts := _insert_events_by_reader(spark, deleting, zone_offset_micros):
        if vectors is not None and vectors.index is not None:
            note_fast_path(FastPath.DELETION_BITS)
            parts.append(vectors.remove_deleted(_union(inserts)))
        else:
            parts.append(_live_inserts(spark, deleting, _union(inserts)))
    if not parts:
        return empty_scan(spark, request.table, request.virtual)
    return select_scan_columns(_union(parts), request.table, request.virtual)


def _live_inserts(spark: SparkSession, request: Scan, inserts: DataFrame) -> DataFrame:
    """Return the insert events that no delete event of the request names, lazily. If the request
    shows deleted rows, all of them: then the write id of a deleted row is its delete event's, and
    IS_DELETED, if it is among the virtual columns, is true.
    """
    files = [file for listing in request.listings for file in listing.deletes]
    keys = delete_keys(spark, request, with_version=request.with_deleted)
    if not request.with_deleted:
        return remove_deleted(inserts, keys, files)
    replacements = {WRITE_ID: f"coalesce({VERSION}, {WRITE_ID})"}
    if IS_DELETED in request.virtual:
        replacements[IS_DELETED] = f"{VERSION} IS NOT NULL"
    columns = (
        f"{replacements.get(name, quote(name))} AS {quote(name)}" for name in inserts.columns
    )
    return jvm.select(mark_deleted(inserts, keys, files), *columns)


def _find_candidates(
    spark: SparkSession, request: Scan, deleted: DeletionVectors, limit: int
) -> DataFrame | None:
    """Let the driver find the rows now, and return the live rows for which the demand's condition
    may hold, with the columns of ``scan``. None if no part of the condition can be searched for
    (``searchable_condition``), Arrow cannot read a file, or there are more than ``limit`` (ten
    times as many if only row ids and the condition's columns are needed).
    """
    condition = searchable_condition(request.table, request.listings, request.demand.condition)
    if condition == ANYTHING:
        return None
    reads = numbered_reads(request.listings, request.write_ids, request.numbers)
    columns_by_ordinal = {
        i: c.name
        for i, c in enumerate(request.table.columns)
        if request.demand.needs_column(c.name)
    }
    if columns_of(condition).issuperset(columns_by_ordinal.values()):
        limit *= KEYS_FOR_A_ROW  # the result needs row ids only, which are small
    rows = search(reads, Search(request.table, condition, list(columns_by_ordinal), limit, deleted))
    if rows is None:
        return None
    note_fast_path(FastPath.POINT_SEARCH)
    return _found_rows(spark, request, rows, list(columns_by_ordinal))


def _found_rows(
    spark: SparkSession, request: Scan, found_rows: pa.Table, ordinals: Sequence[int]
) -> DataFrame:
    """Return the rows that the driver has found as a DataFrame with the columns of ``scan``.
    ``ordinals``: the table's columns that ``found_rows`` has; the others are NULL.
    """
    names_by_ordinal = {i: column_name(i) for i in ordinals}
    ddl = python_rows_ddl(
        (name, request.table.columns[i].type) for i, name in names_by_ordinal.items()
    )
    events = local_rows(spark, found_rows, ddl, in_job=found_rows.num_rows > PLANNED_MAX)
    values = [
        names_by_ordinal.get(i, f"CAST(NULL AS {shown_type(column.type)})")
        for i, column in enumerate(request.table.columns)
    ]
    columns = (quote(column.name) for column in request.table.columns)
    partitions = [listing.partition for listing in request.listings]
    more = [
        *partition_value_columns(request.table, partitions, PARTITION),
        *row_virtual_columns(request.virtual),
    ]
    rows = jvm.select(select_shown_columns(events, request.table, values), *KEYS, *columns, *more)
    return select_scan_columns(rows, request.table, request.virtual)


def insert_events(spark: SparkSession, request: Scan) -> DataFrame | None:
    """Return all visible insert events, deleted or not, lazily; None if there are no files.

    The columns are ``KEYS``, PARTITION_NUMBER, the table's columns, its partition columns and the
    virtual columns of the row's file.
    """
    parts = _insert_events_by_reader(spark, request, _zone_offset(spark, request))
    return _union(parts) if parts else None


def _zone_offset(spark: SparkSession, request: Scan) -> int | None:
    """Return the offset of the JVM's time zone in microseconds; None if it depends on the date, or
    if Spark's reader must not read timestamps, because it cuts them without a word. 0 for a table
    without timestamps, which needs none.
    """
    if not has_timestamp(column.type for column in request.table.columns):
        return 0
    return None if request.exact else zones.zone_offset_micros(spark)


def _insert_events_by_reader(
    spark: SparkSession, request: Scan, zone_offset_micros: int | None
) -> list[DataFrame]:
    """Return all visible insert events, deleted or not, lazily: one DataFrame, as of
    ``_events_of_group``, for each way to read files; an empty list if there are no files.
    """
    return [
        _events_of_group(spark, request, group, zone_offset_micros)
        for group in _groups_by_reader_and_names(request, zone_offset_micros)
    ]


def _union(parts: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionAll, parts)


@dataclass(frozen=True, slots=True)
class _FileGroup:
    """Files that are read the same way.

    Attributes:
        listings: Listings that name these files only.
        names: The names that the files have for the event columns and for the table's columns;
            None if Python tasks read the files.
    """

    listings: Sequence[Listing]
    names: FileColumnNames | None


def _groups_by_reader_and_names(request: Scan, zone_offset_micros: int | None) -> list[_FileGroup]:
    """Divide the scan's files by how they are read: a group for each set of names that files have
    for the columns, which Spark's ORC reader reads; and, last, one for the files that Python tasks
    read (see the module), if there are any. A partition with originals or a streamed file goes to
    Python tasks as a whole. Small files on an object store only go there with ``is_fast``, and are
    noted as a fast path.

    ``zone_offset_micros``: as of ``_zone_offset``; if it is None, Python tasks read every file.
    """
    python: list[Listing] = []
    native: list[Listing] = []
    small_size = filesystem_for(request.table.location).small_file if request.is_fast else 0
    for listing in request.listings:
        needs_python = listing.originals or any(file.length is not None for file in listing.data)
        limit = math.inf if needs_python or zone_offset_micros is None else small_size
        small_files = tuple(file for file in listing.data if file.size <= limit)
        if small_files and limit == small_size > 0:
            note_fast_path(FastPath.SMALL_FILES)
        if small_files or listing.originals:
            python.append(replace(listing, data=small_files))
        large_files = tuple(file for file in listing.data if file.size > limit)
        native.append(replace(listing, data=large_files, originals=()))
    groups = _group_by_names(request.table, native)
    python += groups.pop(None, [])
    reader_groups = [_FileGroup(group, names) for names, group in groups.items()]
    if any(listing.data or listing.originals for listing in python):
        reader_groups.append(_FileGroup(python, None))
    return reader_groups


def _group_by_names(
    table: Table, listings: Sequence[Listing]
) -> dict[FileColumnNames | None, list[Listing]]:
    """Group the files by the names that they have for the event columns and for the table's
    columns. Each group is a list of listings with its files only; under None are the files that
    Spark's ORC reader would misread, or whose columns it cannot find by name. Footers are read, one
    for each directory at least.

    Hive 4 matches columns by position, so a renamed column keeps its old data. ORC can do this too,
    but with Spark's column pruning it would count the remaining columns only. So the scan asks each
    file for the names that *the file* has at these positions.
    """
    column_names = [column.name for column in table.columns]
    types = [parse_type(column.type) for column in table.columns]
    files = [file for listing in listings for file in listing.data]
    names = names_by_directory(files)
    files_with_lost = files_with_lost_days(
        [file.path for file in files if names[file.place].is_foreign_proleptic]
    )
    listings_by_names: dict[FileColumnNames | None, list[Listing]] = {}
    for listing in listings:
        parts: dict[FileColumnNames | None, list[EventFile]] = {}
        for file in listing.data:
            file_names = names[file.place]
            is_misread = file.path in files_with_lost or any(map(is_cast, file_names.types, types))
            row = None if is_misread else names_at_positions(file_names.row, column_names)
            parts.setdefault(FileColumnNames(file_names.events, row) if row else None, []).append(
                file
            )
        for key, files in parts.items():
            listings_by_names.setdefault(key, []).append(replace(listing, data=tuple(files)))
    return listings_by_names


def _events_of_group(
    spark: SparkSession, request: Scan, group: _FileGroup, zone_offset_micros: int | None
) -> DataFrame:
    """Return the visible insert events of a group as flat rows, lazily: ``KEYS``, PARTITION_NUMBER,
    all columns as the user sees them, virtual columns of the file. ORC may skip rows that the
    demand does not need.
    """
    if group.names is None:
        return _python_events(spark, request, group.listings)
    columns_by_name = list(zip(group.names.row, request.table.columns, strict=True))
    fields = ", ".join(f"{quote(name)}: {read_type(c.type)}" for name, c in columns_by_name)
    columns = [(sargs.unpushable_sql(f"{_ROW}.{quote(name)}"), c) for name, c in columns_by_name]
    where = _path_partitions(
        request, {listing.partition: listing.data for listing in group.listings}
    )
    files = [path for listing in group.listings for path in _paths(listing.data)]
    row = f"struct<{fields}, {_NO_COLUMN}: int>"
    skipping = sargs.read_options(spark, request.table, group.names.row, request.demand.condition)
    file_columns = needed_file_columns(where.needed_columns, request.virtual)
    events = read_orc(spark, files, group.names.events, row, of_file=file_columns, options=skipping)
    live_events = events.where(_visible_events_sql(request, group.listings, event.INSERT))
    return jvm.select(
        live_events,
        *(f"{sql} AS {name}" for name, sql in _KEYS.items()),
        f"{where.number(request.numbers)} AS {PARTITION_NUMBER}",
        f"{where.directory} AS {PARTITION}",
        *(
            f"{shown_sql(field, c.type, zone_offset_micros=zone_offset_micros)} AS {quote(c.name)}"
            for field, c in columns
        ),
        *where.values,
        *row_virtual_columns(request.virtual),
    )


def delete_keys(spark: SparkSession, request: Scan, *, with_version: bool = False) -> DataFrame:
    """Return the row ids that the visible delete events name, lazily, with the columns of
    ``key_columns``.

    ``with_version`` adds VERSION: the write id under which the row was deleted. There must be a
    file of delete events.
    """
    files = [file for listing in request.listings for file in listing.deletes]
    names = names_by_directory(files)
    groups: dict[tuple[tuple[str, ...], str], list[EventFile]] = {}
    for file in files:
        file_names = names[file.place]
        # Without column names ORC matches by position: _NO_COLUMN is then the first column.
        kind = read_type(request.table.columns[0].type) if has_no_names(file_names.row) else "int"
        groups.setdefault((file_names.events, f"struct<{_NO_COLUMN}: {kind}>"), []).append(file)
    where = _path_partitions(
        request, {listing.partition: listing.deletes for listing in request.listings}
    )
    parts = [
        read_orc(spark, _paths(group), event_names, row, of_file=where.needed_columns)
        for (event_names, row), group in groups.items()
    ]
    delete_events = _union(parts).where(
        _visible_events_sql(request, request.listings, event.DELETE)
    )
    keys = {PARTITION_NUMBER: where.number(request.numbers), **_KEYS, VERSION: _CURRENT}
    key_names = key_columns(len(request.listings)) + ([VERSION] if with_version else [])
    return jvm.select(delete_events, *(f"{keys[name]} AS {name}" for name in key_names))


def _path_partitions(request: Scan, files: Mapping[str, Sequence[EventFile]]) -> PathPartitions:
    return PathPartitions(request.table, {name: _paths(group) for name, group in files.items()})


def _paths(files: Sequence[EventFile]) -> list[str]:
    return [file.path for file in files]


def _visible_events_sql(request: Scan, listings: Sequence[Listing], operation: int) -> str:
    """Return SQL of the filter that keeps the visible events of one kind: deletes for DELETE, all
    others for INSERT. An event whose operation is NULL is of either kind.

    The filter references all six event columns (I8) in a way that Spark cannot push down. If a
    listing has invisible events (``needs_filter``), it drops those of invisible write ids (I1). The
    usual case stands first, so that Spark hardly ever evaluates the other terms: they only
    reference columns. The reference to ``row`` is to a field that no file has, because Spark would
    read all fields for a reference to the whole of ``row``.
    """
    is_usual = f"coalesce(operation, -1) = {operation}"
    together = "originalTransaction | rowId | currentTransaction | CAST(bucket AS BIGINT)"
    is_other = (
        f"coalesce(operation, {operation}) {'=' if operation == event.DELETE else '<>'} "
        f"{event.DELETE} AND coalesce({together}, 0L) >= 0 "
        f"AND ({_ROW}.{_NO_COLUMN} IS NULL OR coalesce(operation, 0) >= 0)"
    )
    terms = [f"({is_usual} OR ({is_other}))"]
    if any(listing.needs_filter for listing in listings):
        terms.append(request.write_ids.sql("coalesce(currentTransaction, 0L)"))
    return " AND ".join(terms)


_KEYS = {
    WRITE_ID: sargs.unpushable_sql("originalTransaction"),
    BUCKET_PROPERTY: sargs.unpushable_sql("bucket"),
    ROW_ID: sargs.unpushable_sql("rowId"),
}
_CURRENT = sargs.unpushable_sql("currentTransaction")


def _python_events(spark: SparkSession, request: Scan, listings: Sequence[Listing]) -> DataFrame:
    """Return the visible insert events of these files, lazily, with the columns of
    ``_events_of_group``. Python tasks read them.
    """
    reads = plan_reads(listings, request.write_ids)
    rows = python_rows(
        spark,
        request.table,
        reads,
        of_file=needed_file_columns([], request.virtual),
        exact=request.exact,
    )
    names = [listing.partition for listing in listings]
    numbers = {name: request.numbers[name] for name in names}
    return jvm.select(
        rows,
        *_KEYS,
        f"{partition_number_sql(PARTITION, numbers)} AS {PARTITION_NUMBER}",
        PARTITION,
        *(quote(column.name) for column in request.table.columns),
        *partition_value_columns(request.table, names, PARTITION),
        *row_virtual_columns(request.virtual),
    )
