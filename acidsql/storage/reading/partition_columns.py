"""SQL of the partition columns. Their values are in the names of directories, not in the files.

A scan of several partitions finds the partition of each row by the row's file. To parse the file's
path for each row costs as much as to read the row (a regular expression costs many times as much),
and to hash the path is not cheap either. But two files seldom have the same size, and a size is a
number. So the SQL looks up the partition by the file's size. It parses paths only for sizes that
files of several partitions have, or if the scan's files have more than 500 different sizes. Spark
prunes files by conditions on partition columns, because these expressions depend only on the file.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.layout import DEFAULT_PARTITION, parse_partition_name
from acidsql.acid.predicate import ANYTHING, All, Comparison, No, Predicate, Some, about
from acidsql.acid.table import Column, Table
from acidsql.acid.types import parse_type
from acidsql.storage.columns import literal, quote, shown, shown_type
from acidsql.storage.event_records import PARTITION
from acidsql.storage.reading.lookup import Lookup
from acidsql.storage.spark.char_columns import as_char
from acidsql.storage.spark.local_rows import local_rows

PATH = "__acidsql_path"  # the path of a row's file, as Spark shows it: a URL
SIZE = "__acidsql_size"  # the size of a row's file in bytes
# Paths that Spark's _metadata.file_path shows without escapes.
_PLAIN = re.compile(r"[\w/=.:-]*", re.ASCII)
_SIZES_MAX = 500  # sizes of files that the SQL of the plan may have
_CHANGED = "CAST(raise_error('A file of this table was changed while it was read.') AS BIGINT)"
# To search so many names for each row takes as long as to compute the checksum of one name.
_FEW_PARTITIONS = 500


def partitions_frame(spark: SparkSession, table: Table, partitions: Sequence[str]) -> DataFrame:
    """The partition columns' values, as ``scan`` shows them: one row for each of these directories.

    Columns: ``__acidsql_partition`` (the directory's name), then the partition columns. No job
    runs.
    """
    # Not as VALUES: for thousands of rows Spark's parser and analyser take seconds.
    names = local_rows(spark, pa.table({PARTITION: pa.array(partitions, pa.string())}))
    return as_char(
        names.selectExpr(PARTITION, *partition_values(table, partitions, PARTITION)), table
    )


def matching(
    spark: SparkSession, table: Table, partitions: Sequence[str], condition: Predicate
) -> list[str]:
    """The partitions that can have rows for which a condition holds."""
    columns = [c.name for c in table.partition_columns if not c.type.startswith("char")]
    partition_predicate = about(condition, columns)
    if partition_predicate == ANYTHING or not partitions:
        return list(partitions)
    frame = (
        partitions_frame(spark, table, partitions)
        .where(_sql(partition_predicate))
        .select(PARTITION)
    )
    matching_names = {row[0] for row in frame.collect()}
    return [name for name in partitions if name in matching_names]


def _sql(predicate: Predicate) -> str:
    match predicate:
        case All(terms):
            return "(" + " AND ".join(map(_sql, terms)) + ")"
        case Some(terms):
            return "(" + " OR ".join(map(_sql, terms)) + ")"
        case No(term):
            return f"NOT {_sql(term)}"
        case Comparison(column, operator, values):
            casts = ", ".join(f"CAST({literal(v.text)} AS {v.type})" for v in values)
            return f"({quote(column)} {operator} {f'({casts})' if operator == 'in' else casts})"


def partition_values(table: Table, partitions: Sequence[str], directory: str) -> list[str]:
    """SQL of the partition columns' values, as ``scan`` shows them.

    Args:
        table: The table.
        partitions: The directories that may occur.
        directory: SQL of a row's partition directory.
    """
    return [
        f"{_value(partitions, ordinal, column, directory)} AS {quote(column.name)}"
        for ordinal, column in enumerate(table.partition_columns)
    ]


class PathPartitions:
    """SQL that finds a row's partition, if necessary by its file's ``PATH`` and ``SIZE``.

    Args:
        table: The table.
        files: The scanned paths by partition directory ("" if unpartitioned).
        sizes: The listed sizes of the files; sizes may be missing.
    """

    def __init__(
        self, table: Table, files: Mapping[str, Sequence[str]], sizes: Mapping[str, int]
    ) -> None:
        self._table = table
        self._files = files
        self._sizes = sizes
        self._names = list(files)

    @property
    def needed(self) -> list[str]:
        """Which of ``PATH`` and ``SIZE`` the scan needs. Spark computes them for each row."""
        if len(self._names) == 1:
            return []
        if self._lookup is None:
            return [PATH]
        return [SIZE] if self._are_told_by_size else [PATH, SIZE]

    @property
    def directory(self) -> str:
        """SQL of the partition directory."""
        if len(self._names) == 1:
            return literal(self._names[0])
        return self._chosen_value({name: literal(name) for name in self._names}, self._from_path)

    @property
    def values(self) -> list[str]:
        """SQL of the partition columns' values, each under its name."""
        return [
            f"{self._value(ordinal, column)} AS {quote(column.name)}"
            for ordinal, column in enumerate(self._table.partition_columns)
        ]

    def number(self, numbers: Mapping[str, int]) -> str:
        """SQL of the number of a row's partition. ``numbers``: the numbers by directory."""
        of_each = {name: numbers[name] for name in self._names}
        if len(set(of_each.values())) == 1:
            return str(of_each[self._names[0]])
        otherwise = number_of(self._from_path, of_each)
        by_size = self._by_size(of_each)
        if by_size is None:
            return otherwise
        return by_size if self._are_told_by_size else f"coalesce({by_size}, {otherwise})"

    def _value(self, ordinal: int, column: Column) -> str:
        of_each = {name: _value([name], ordinal, column, "") for name in self._names}
        if len(set(of_each.values())) == 1:
            return of_each[self._names[0]]
        return self._chosen_value(of_each, _value(self._names, ordinal, column, self._from_path))

    def _chosen_value(self, of_each: Mapping[str, str], otherwise: str) -> str:
        """SQL that chooses the SQL in ``of_each`` by a row's partition, by size where possible."""
        names = list(dict.fromkeys(self._owners.values()))
        place = self._by_size({name: place for place, name in enumerate(names)})
        if place is None:
            return otherwise
        values = ", ".join(of_each[name] for name in names)
        chosen = f"get(array({values}), CAST({place} AS INT))"
        return chosen if self._are_told_by_size else f"coalesce({chosen}, {otherwise})"

    def _by_size(self, of_each: Mapping[str, int]) -> str | None:
        """SQL of the number of a row's partition; NULL if the size does not decide it."""
        if self._lookup is None:
            return None
        unknown = _CHANGED if self._are_told_by_size else "NULL"
        numbers = {size: of_each[name] for size, name in self._owners.items()}
        return self._lookup.number(numbers, SIZE, unknown)

    @cached_property
    def _lookup(self) -> Lookup | None:
        return Lookup.of(self._owners) if self._owners else None

    @cached_property
    def _are_told_by_size(self) -> bool:
        """Whether no path is needed. An unknown size is then an error."""
        return set(self._names_by_size) == set(self._owners)

    @cached_property
    def _owners(self) -> dict[int, str]:
        """The partitions by file size, for sizes that occur in one partition only.

        These are the largest sizes, up to a maximum number.
        """
        by_size = self._names_by_size
        alone = [size for size in sorted(by_size, reverse=True) if len(by_size[size]) == 1]
        return {size: next(iter(by_size[size])) for size in alone[:_SIZES_MAX] if size}

    @cached_property
    def _names_by_size(self) -> dict[int, set[str]]:
        names_by_size: dict[int, set[str]] = {}
        for name, paths in self._files.items():
            for path in paths:
                names_by_size.setdefault(self._sizes.get(path, 0), set()).add(name)
        return names_by_size

    @cached_property
    def _from_path(self) -> str:
        depth = len(self._table.partition_columns)
        levels = {
            path.rpartition(f"/{name}/")[2].count("/") + 1
            for name, paths in self._files.items()
            for path in paths
        }
        if len(levels) == 1:  # …/p1=a/p2=1/delta_…/bucket_…
            tail = f"substring_index({PATH}, '/', {-depth - levels.pop()})"
            sql = f"substring_index({tail}, '/', {depth})"
        else:  # files of an insert-only table may lie deeper
            above = f"((?:[^/]+/){{{depth - 1}}}[^/]+)"
            pattern = f"^.*/{above}/(?:base|delta|delete_delta)_[^/]+/.+$"
            sql = f"regexp_extract({PATH}, '{pattern}', 1)"
        if all(map(_PLAIN.fullmatch, self._names)):
            return sql
        # Spark shows paths with URL escapes; url_decode would also turn '+' into a blank.
        return f"url_decode(replace({sql}, '+', '%2B'))"


def partition_numbers(partitions: Sequence[str]) -> dict[str, int]:
    """A number for each partition directory.

    For many partitions the number is a checksum of the directory's name, if all checksums differ.
    Otherwise Spark would search the whole list of partitions for each row.
    """
    if len(partitions) > _FEW_PARTITIONS:
        checksums = {name: _checksum(name) for name in partitions}
        if len(set(checksums.values())) == len(checksums):
            return checksums
    return {name: number for number, name in enumerate(partitions)}


def number_of(directory: str, numbers: Mapping[str, int]) -> str:
    """SQL of the number that belongs to a partition directory."""
    if len(different := set(numbers.values())) == 1:
        return str(different.pop())
    if all(number == _checksum(name) for name, number in numbers.items()):
        return f"crc32({directory})"
    entries = ", ".join(f"{literal(name)}, {number}" for name, number in numbers.items())
    return f"try_element_at(map({entries}), {directory})"


def _checksum(name: str) -> int:
    """The checksum that Spark's ``crc32`` gives."""
    return zlib.crc32(name.encode())


def _value(partitions: Sequence[str], ordinal: int, column: Column, directory: str) -> str:
    """One partition column's value, from the partition directory's name.

    The value of the default partition is NULL in a column of any type, as in Spark, Trino and
    Impala. Hive shows the directory's name in a string column.
    """
    values = {parse_partition_name(name)[ordinal][1] for name in partitions}
    if len(values) == 1:
        value = values.pop()
        text = "CAST(NULL AS STRING)" if value is None else literal(value)
    else:
        pair = f"substring_index(substring_index({directory}, '/', {ordinal + 1}), '/', -1)"
        text = f"substring_index({pair}, '=', -1)"  # Hive escapes one that is in a value
        if any("%" in name for name in partitions):
            text = f"url_decode(replace({text}, '+', '%2B'))"
        text = f"nullif({text}, '{DEFAULT_PARTITION}')"
    if parse_type(column.type).kind in ("string", "varchar", "char"):
        return shown(text, column.type, zone_offset_micros=None)
    return f"try_cast({text} AS {shown_type(column.type)})"
