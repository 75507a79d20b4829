"""Read Hive's plain and external tables: all files of their directories, without transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.layout import is_hidden, parse_directory, partition_name
from acidsql.acid.table import ORC, Partition, Table
from acidsql.errors import FormatError
from acidsql.storage.columns import literal, quote
from acidsql.storage.files.filesystem import Entry, FileSystem, filesystem_for
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.reading.insert_only import PlainFiles, read_inserts_only
from acidsql.storage.reading.pruning.partition_columns import shown_value_sql
from acidsql.storage.tables.orc_schema import columns_of, has_no_names


def read_plain(
    spark: SparkSession,
    table: Table,
    partitions: Sequence[Partition],
    text: tuple[str, str],
    virtual: Sequence[str] = (),
) -> DataFrame:
    """Return the rows of a plain table, lazily: the data columns, the partition columns, and those
    virtual columns that ``virtual`` names. Directories are listed now.

    Args:
        spark: The session.
        table: The table.
        partitions: Its partitions, which may lie anywhere.
        text: What ends a field of a text file, and what stands for NULL there.
        virtual: The virtual columns of the result.

    Raises:
        FormatError: A directory is missing, or has the directories of transactions; an ORC file
            has other columns than the table; or timestamps of a Parquet file are no wall clocks.
        UnsupportedError: The format is none of ORC, Parquet and text, or a column of a text file
            is an array, map, struct or binary.
    """
    if not table.partition_columns:
        files = _plain_files(table, {"": _hive_files(table.location)}, text)
        return read_inserts_only(spark, files, virtual)
    names = [column.name for column in table.partition_columns]
    usual: dict[str, Mapping[str, int]] = {}
    parts = []
    sizes_by_partition = run_in_threads(
        lambda partition: _hive_files(partition.location), partitions
    )
    for partition, sizes in zip(partitions, sizes_by_partition, strict=True):
        name = partition_name(names, partition.values)
        place = f"{table.location}/{name}"
        if place == partition.location and all(path.rpartition("/")[0] == place for path in sizes):
            usual[name] = sizes
        else:
            files = _plain_files(replace(table, partition_columns=()), {"": sizes}, text)
            rows = read_inserts_only(spark, files, virtual)
            parts.append(_add_partition_values(rows, table, partition, virtual))
    if usual or not parts:
        parts.insert(0, read_inserts_only(spark, _plain_files(table, usual, text), virtual))
    return reduce(DataFrame.unionAll, parts)


def _plain_files(
    table: Table, sizes_by_partition: Mapping[str, Mapping[str, int]], text: tuple[str, str]
) -> PlainFiles:
    """Return the files to read, sorted by path in each partition, from their sizes by partition
    directory and path. Raises FormatError if the columns of an ORC file are not the table's.
    """
    sizes = {path: size for group in sizes_by_partition.values() for path, size in group.items()}
    if table.file_format == ORC:
        _need_columns(table, list(sizes))
    paths = {name: sorted(group) for name, group in sizes_by_partition.items()}
    return PlainFiles(table, paths, table.file_format, sizes, any_writer=True, text=text)


def _add_partition_values(
    rows: DataFrame, table: Table, partition: Partition, virtual: Sequence[str]
) -> DataFrame:
    """Return the rows of a partition whose directory's name does not tell its values, with these
    values before the virtual columns."""
    values = (
        f"{shown_value_sql('NULL' if value is None else literal(value), column)} AS "
        f"{quote(column.name)}"
        for value, column in zip(partition.values, table.partition_columns, strict=True)
    )
    columns = (quote(column.name) for column in table.columns)
    return rows.selectExpr(*columns, *values, *virtual)


def _hive_files(location: str) -> dict[str, int]:
    """Return path → size in bytes of all files that Hive would read, at any depth, without empty
    and hidden ones.

    Raises FormatError if the directory is missing, or has directories of transactions.
    """
    files = filesystem_for(location)
    try:
        return dict(_walk_files(files, files.list(location)))
    except FileNotFoundError as error:
        raise FormatError(f"There is no directory '{location}'.", path=location) from error


def _walk_files(files: FileSystem, entries: Sequence[Entry]) -> list[tuple[str, int]]:
    """Return path and size of the files below these entries, without empty and hidden ones. Raises
    FormatError for a base, delta or delete delta.
    """
    files_found = []
    for entry in entries:
        if is_hidden(entry.name):
            continue
        if not entry.is_dir:
            files_found += [(entry.path, entry.size)] if entry.size else []
        elif parse_directory(entry.name) is not None:
            raise FormatError(
                f"'{entry.path}' is a directory of transactions, but the table is none of ACID.",
                path=entry.path,
            )
        else:
            files_found += _walk_files(files, files.list(entry.path))
    return files_found


def _need_columns(table: Table, paths: Sequence[str]) -> None:
    """Raise FormatError if the columns of an ORC file are not the table's, in the same order; one
    of both may have more columns. Files without names pass.

    Hive matches the columns of such files by name, Spark and acidsql by position.
    """
    table_columns = [column.name for column in table.columns]
    for path, columns in zip(paths, run_in_threads(columns_of, paths), strict=True):
        names = [name.lower() for name, _ in columns]
        shared_count = min(len(names), len(table_columns))
        if not has_no_names(names) and names[:shared_count] != table_columns[:shared_count]:
            raise FormatError(
                f"'{path}' has the columns {', '.join(names)}, but {table.name} has "
                f"{', '.join(table_columns)}.",
                path=path,
            )
