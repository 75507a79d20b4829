"""Read insert-only tables: plain files. Whether a file is visible depends on its directory."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.paths import directory_of
from acidsql.acid.table import ORC, PARQUET, Column, Table
from acidsql.acid.values.evolution import is_cast
from acidsql.acid.values.types import parse_type
from acidsql.acid.virtual_columns import TYPES
from acidsql.errors import FormatError, UnsupportedError
from acidsql.storage.columns import (
    has_timestamp,
    literal,
    quote,
    read_type,
    shown_sql,
    shown_type,
)
from acidsql.storage.event_records import PARTITION
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events.event_reader import plain_reads
from acidsql.storage.reading.orc_scan import open_files
from acidsql.storage.reading.pruning.partition_columns import (
    PathPartitions,
    partition_value_columns,
)
from acidsql.storage.reading.python_rows import python_rows
from acidsql.storage.reading.scan_columns import needed_file_columns, row_virtual_columns
from acidsql.storage.spark.char_columns import mark_char_columns
from acidsql.storage.spark.session import zones
from acidsql.storage.spark.session.jvm import is_on
from acidsql.storage.tables.orc_schema import any_misread, column_types, columns_of
from acidsql.storage.tables.parquet import columns_of_parquet, misread_by_spark, need_readable

_BY_CASE = "spark.sql.caseSensitive"  # if true, Spark's readers tell names apart by case, too

FORMATS = (ORC, PARQUET, "text")


@dataclass(frozen=True, slots=True)
class PlainFiles:
    """Plain files of one table, and how to read them.

    Attributes:
        table: The table. Its columns are matched with the files' columns by position, as in Hive 4;
            in Parquet files by name, as all engines do.
        by_partition: The visible files by partition directory.
        file_format: ``orc``, ``parquet``, or ``text`` in Hive's default form.
        sizes: The files' sizes in bytes. Without sizes no file is taken for a small one.
        any_writer: The files may be another writer's, so footers are looked into first. Python
            tasks read those that Spark's reader would misread.
        text: What ends a field of a text file, and what stands for NULL there.
    """

    table: Table
    by_partition: Mapping[str, Sequence[str]]
    file_format: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    any_writer: bool = False
    text: tuple[str, str] = ("\x01", "\\N")

    @property
    def paths(self) -> list[str]:
        """The paths of all files."""
        return [path for group in self.by_partition.values() for path in group]

    def matching(self, is_member: Callable[[str], bool]) -> PlainFiles:
        """Return those of the files for whose paths ``is_member`` holds; no empty partitions."""
        matching = {
            name: list(filter(is_member, group)) for name, group in self.by_partition.items()
        }
        by_partition = {name: group for name, group in matching.items() if group}
        return replace(self, by_partition=by_partition)


def read_inserts_only(
    spark: SparkSession, files: PlainFiles, virtual: Collection[str] = ()
) -> DataFrame:
    """Return the rows of plain files, lazily: the data columns, the partition columns, and
    those virtual columns that ``virtual`` names.

    Raises:
        UnsupportedError: The format is none of ``FORMATS``, or a column of a text file is an array,
            map, struct or binary.
        FormatError: A file's columns cannot be matched, or a Parquet file does not tell which wall
            clocks its timestamps are.
    """
    table, file_format = files.table, files.file_format
    if file_format not in FORMATS:
        raise UnsupportedError(
            f"Insert-only tables stored as {file_format} are not supported, only those stored "
            f"as {' or '.join(FORMATS)}.",
            condition="UNSUPPORTED_FEATURE.TABLE_OPERATION",
        )
    if not files.paths:
        return _empty_rows(spark, table, virtual)
    rows_of_format = {ORC: _orc_rows, PARQUET: _parquet_rows, "text": _text_rows}
    return mark_char_columns(rows_of_format[file_format](spark, files, virtual), table)


def _orc_rows(spark: SparkSession, files: PlainFiles, virtual: Collection[str]) -> DataFrame:
    """Return the rows of ORC files, lazily: the data columns, the partition columns, the virtual
    columns. Python tasks read the files that Spark's reader would misread, and on an object store
    small ones (``FileSystem.small_file``). If one large file would be misread, Python tasks read
    all.
    """
    sizes = files.sizes
    limit = filesystem_for(files.table.location).small_file

    def is_small(path: str) -> bool:
        return 0 < sizes.get(path, 0) <= limit

    small_files = files.matching(is_small)
    large_files = files.matching(lambda path: not is_small(path))
    if large_files.by_partition and _is_misread(spark, large_files):
        small_files, large_files = files, replace(files, by_partition={})
    if large_files.by_partition and is_on(spark, _BY_CASE):
        _need_same_case(files.table, large_files.paths, columns_of)
    return _rows_by_reader(spark, small_files, large_files, _read_orc_files, virtual)


def _parquet_rows(spark: SparkSession, files: PlainFiles, virtual: Collection[str]) -> DataFrame:
    """Return the rows of Parquet files, lazily: the data columns, the partition columns, the
    virtual columns. Python tasks read the files that Spark's reader would misread.

    Raises FormatError if a file does not tell which wall clocks its timestamps are, or names differ
    in case and the session tells cases apart; or if another writer's file cannot be read right.
    """
    columns, paths = files.table.columns, files.paths
    if files.any_writer:
        need_readable(paths, RowSchema.from_fields((c.name, c.type) for c in columns))
    misread = frozenset[str]()
    if any(parse_type(c.type).holds(kind) for c in columns for kind in ("timestamp", "date")):
        misread = misread_by_spark(paths)
    for_spark = files.matching(lambda path: path not in misread)
    if is_on(spark, _BY_CASE):
        _need_same_case(files.table, for_spark.paths, columns_of_parquet)
    misread_files = files.matching(misread.__contains__)
    return _rows_by_reader(spark, misread_files, for_spark, _read_parquet_files, virtual)


def _text_rows(spark: SparkSession, files: PlainFiles, virtual: Collection[str]) -> DataFrame:
    """Return the rows of text files, lazily: the data columns, the partition columns, the virtual
    columns. Raises as ``_read_text_files``.
    """
    return _rows_by_spark(spark, files, _read_text_files, virtual)


# Spark's reader of a format: the session, files, and columns about a row's file → the data columns
# as the user sees them, then those about the file.
_Reader = Callable[[SparkSession, PlainFiles, Sequence[str]], DataFrame]


def _rows_by_reader(
    spark: SparkSession,
    for_python: PlainFiles,
    for_spark: PlainFiles,
    read_files: _Reader,
    virtual: Collection[str],
) -> DataFrame:
    """Return the rows that Python tasks read, and those that Spark's reader reads: the data
    columns, the partition columns, the virtual columns. One of both may have no files.
    """
    parts = list[DataFrame]()
    if for_python.by_partition:
        parts.append(_rows_by_python(spark, for_python, virtual))
    if for_spark.by_partition:
        parts.append(_rows_by_spark(spark, for_spark, read_files, virtual))
    return reduce(DataFrame.unionAll, parts)


def _rows_by_python(spark: SparkSession, files: PlainFiles, virtual: Collection[str]) -> DataFrame:
    """Return the rows of files that Python tasks read, lazily: the data columns, the partition
    columns, the virtual columns.
    """
    table, are_parquet = files.table, files.file_format == PARQUET
    reads = plain_reads(files.by_partition, files.sizes, are_parquet=are_parquet)
    file_columns = needed_file_columns([], virtual)
    rows = python_rows(spark, table, reads, of_file=file_columns, may_change=files.any_writer)
    columns = [quote(column.name) for column in table.columns]
    values = partition_value_columns(table, list(files.by_partition), PARTITION)
    return rows.selectExpr(*columns, *values, *row_virtual_columns(virtual))


def _rows_by_spark(
    spark: SparkSession, files: PlainFiles, read_files: _Reader, virtual: Collection[str]
) -> DataFrame:
    """Return the rows of files that Spark's reader reads, lazily: the data columns, the partition
    columns, the virtual columns.
    """
    where = PathPartitions(files.table, files.by_partition)
    rows = read_files(spark, files, needed_file_columns(where.needed_columns, virtual))
    columns = [quote(column.name) for column in files.table.columns]
    return rows.selectExpr(*columns, *where.values, *row_virtual_columns(virtual))


def _empty_rows(spark: SparkSession, table: Table, virtual: Collection[str]) -> DataFrame:
    """Return no rows, with the table's columns and the virtual columns."""
    kinds = [(quote(c.name), shown_type(c.type)) for c in table.all_columns]
    kinds += [(name, TYPES[name]) for name in virtual]
    ddl = ", ".join(f"{name} {kind}" for name, kind in kinds)
    return mark_char_columns(spark.createDataFrame([], ddl), table)


def _is_misread(spark: SparkSession, files: PlainFiles) -> bool:
    """Whether Spark's ORC reader shows other values than Hive's for one of the files: timestamps,
    if the JVM's zone changes its offset; columns whose type was changed since; and some old days
    of other writers. Footers are read: with ``any_writer`` of every file, else of one in each
    directory.
    """
    columns = files.table.columns
    timestamps = has_timestamp(column.type for column in columns)
    if timestamps and zones.zone_offset_micros(spark) is None:
        return True
    types = [parse_type(column.type) for column in columns]
    if files.any_writer:
        return any_misread(files.paths, types)
    # All files of a directory have the same types, unless they are another writer's.
    looked = {directory_of(path): path for path in files.paths}.values()
    return any(
        any(map(is_cast, file_types, types)) for file_types in run_in_threads(column_types, looked)
    )


def _read_orc_files(spark: SparkSession, files: PlainFiles, file_facts: Sequence[str]) -> DataFrame:
    """Return the rows of ORC files, by Spark's reader: the table's data columns as the user sees
    them, then the columns in ``file_facts`` (only ``PATH``, the path of a row's file).
    """
    columns = files.table.columns
    ddl = ", ".join(f"{quote(c.name)} {read_type(c.type)}" for c in columns)
    offset = zones.zone_offset_micros(spark)
    values = (
        f"{shown_sql(quote(c.name), c.type, zone_offset_micros=offset)} AS {quote(c.name)}"
        for c in columns
    )
    return open_files(spark, files.paths, ddl, of_file=file_facts).selectExpr(*values, *file_facts)


def _need_same_case(
    table: Table, paths: Sequence[str], look: Callable[[str], list[tuple[str, str]]]
) -> None:
    """Check that files and table have the same case in the names of columns and struct fields.
    Called in a case-sensitive session. ``look``: a file's path → its columns, name and type.

    Raises:
        FormatError: A name in a file has another case: this session's reader would show NULL.
    """
    table_names = {
        name for column in table.columns for name in (column.name, *_fields(column.type))
    }
    lowered = {name.lower() for name in table_names}
    for path, columns in zip(paths, run_in_threads(look, paths), strict=True):
        file_names = [name for column, kind in columns for name in (column, *_fields(kind))]
        other_case = [
            name for name in file_names if name not in table_names and name.lower() in lowered
        ]
        if other_case:
            raise FormatError(
                f"'{path}' has the name '{other_case[0]}', which {table.name} has in another case. "
                "This session tells names apart by case: SET spark.sql.caseSensitive=false.",
                path=path,
            )


def _fields(hive_type: str) -> list[str]:
    """Return the names of all struct fields in a type."""
    nodes, names = [parse_type(hive_type)], list[str]()
    for node in nodes:
        names += node.names
        nodes += node.children
    return names


def _read_parquet_files(
    spark: SparkSession, files: PlainFiles, file_facts: Sequence[str]
) -> DataFrame:
    """Return the rows of Parquet files, by Spark's reader: the table's data columns as the user
    sees them, then the columns in ``file_facts`` (only ``PATH``, the path of a row's file).
    """
    columns = files.table.columns
    ddl = ", ".join(f"{quote(c.name)} {shown_type(c.type)}" for c in columns)
    values = (
        f"{shown_sql(quote(c.name), c.type, zone_offset_micros=None)} AS {quote(c.name)}"
        for c in columns
    )
    # For files that do not name Spark: Spark is to take their days as they are.
    options = {"datetimeRebaseMode": "CORRECTED", "mergeSchema": "false"}
    rows = open_files(spark, files.paths, ddl, PARQUET, of_file=file_facts, options=options)
    return rows.selectExpr(*values, *file_facts)


def _read_text_files(
    spark: SparkSession, files: PlainFiles, file_facts: Sequence[str]
) -> DataFrame:
    """Return the rows of text files of Hive's LazySimpleSerDe: the table's data columns, by
    position, then the columns in ``file_facts`` (only ``PATH``). A field is NULL if its text
    stands for NULL or is no such value, or if the line has no such field. Raises UnsupportedError
    for nested and binary columns.
    """
    field_separator, null_text = files.text
    end = literal(re.escape(field_separator))
    values = (
        f"{_value_sql(f'get(split(value, {end}), {i})', column, null_text)} AS {quote(column.name)}"
        for i, column in enumerate(files.table.columns)
    )
    lines = open_files(spark, files.paths, "value string", "text", of_file=file_facts)
    return lines.selectExpr(*values, *file_facts)


def _value_sql(field: str, column: Column, null_text: str) -> str:
    """Return SQL of a column's value, from SQL of its field's text; NULL if the text is
    ``null_text`` or no value of the column's type. Raises UnsupportedError for a nested or binary
    type.
    """
    if parse_type(column.type).kind in ("array", "map", "struct", "binary"):
        raise UnsupportedError(
            f"Column '{column.name}' of type {column.type} cannot be read from a text file.",
            condition="UNSUPPORTED_DATATYPE",
        )
    value = f"try_cast(nullif({field}, {literal(null_text)}) AS {shown_type(column.type)})"
    return shown_sql(value, column.type, zone_offset_micros=None)
