"""SQL of the partition columns. Their values are in the names of directories, not in the files.

A scan of several partitions finds the partition of each row by the row's file. The SQL cuts it out
of the file's path, which costs far less than a regular expression. Spark prunes files by conditions
on partition columns, because these expressions depend only on the file.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.layout import DEFAULT_PARTITION, parse_partition_name
from acidsql.acid.table import Column, Table
from acidsql.acid.values.predicate import (
    ANYTHING,
    And,
    Comparison,
    Not,
    Or,
    Predicate,
    restrict_to_columns,
)
from acidsql.acid.values.types import parse_type
from acidsql.storage.columns import literal, quote, shown_sql, shown_type
from acidsql.storage.event_records import PARTITION
from acidsql.storage.spark.char_columns import mark_char_columns
from acidsql.storage.spark.local_rows import local_rows

PATH = "__acidsql_path"  # the path of a row's file, as Spark shows it: a URL
# Paths that Spark's _metadata.file_path shows without escapes.
_PLAIN = re.compile(r"[\w/=.:-]*", re.ASCII)
# To search so many names for each row takes as long as to compute the checksum of one name.
_FEW_PARTITIONS = 500


def partitions_frame(spark: SparkSession, table: Table, partitions: Sequence[str]) -> DataFrame:
    """Return the partition columns' values, as ``scan`` shows them: one row for each of these
    directories.

    Columns: ``__acidsql_partition`` (the directory's name), then the partition columns. No job
    runs.
    """
    # Not as VALUES: for thousands of rows Spark's parser and analyser take seconds.
    names = local_rows(spark, pa.table({PARTITION: pa.array(partitions, pa.string())}))
    return mark_char_columns(
        names.selectExpr(PARTITION, *partition_value_columns(table, partitions, PARTITION)), table
    )


def matching_partitions(
    spark: SparkSession, table: Table, partitions: Sequence[str], condition: Predicate
) -> list[str]:
    """Return the partitions that can have rows for which a condition holds, in the given order; all
    if the condition does not limit them. A job-less query of Spark's compares their values.
    Conditions on CHAR columns do not count.
    """
    columns = [c.name for c in table.partition_columns if not c.type.startswith("char")]
    partition_predicate = restrict_to_columns(condition, columns)
    if partition_predicate == ANYTHING or not partitions:
        return list(partitions)
    frame = (
        partitions_frame(spark, table, partitions)
        .where(_predicate_sql(partition_predicate))
        .select(PARTITION)
    )
    matching_names = {row[0] for row in frame.collect()}
    return [name for name in partitions if name in matching_names]


def _predicate_sql(predicate: Predicate) -> str:
    """Return a predicate on partition columns as SQL."""
    match predicate:
        case And(terms):
            return "(" + " AND ".join(map(_predicate_sql, terms)) + ")"
        case Or(terms):
            return "(" + " OR ".join(map(_predicate_sql, terms)) + ")"
        case Not(term):
            return f"NOT {_predicate_sql(term)}"
        case Comparison(column, operator, values):
            casts = ", ".join(f"CAST({literal(v.text)} AS {v.type})" for v in values)
            return f"({quote(column)} {operator} {f'({casts})' if operator == 'in' else casts})"


def partition_value_columns(table: Table, partitions: Sequence[str], directory: str) -> list[str]:
    """Return SQL of the partition columns' values, as ``scan`` shows them, each under its name.

    Args:
        table: The table.
        partitions: The directories that may occur.
        directory: SQL of a row's partition directory.
    """
    return [
        f"{_partition_value_sql(partitions, ordinal, column, directory)} AS {quote(column.name)}"
        for ordinal, column in enumerate(table.partition_columns)
    ]


class PathPartitions:
    """SQL that finds a row's partition, if necessary by its file's ``PATH``.

    Args:
        table: The table.
        files: The scanned paths by partition directory ("" if unpartitioned).
    """

    def __init__(self, table: Table, files: Mapping[str, Sequence[str]]) -> None:
        self._table = table
        self._files = files
        self._names = list(files)

    @property
    def needed_columns(self) -> list[str]:
        """``PATH`` if the scan needs it. Spark computes it for each row."""
        return [] if len(self._names) == 1 else [PATH]

    @property
    def directory(self) -> str:
        """SQL of the partition directory."""
        return literal(self._names[0]) if len(self._names) == 1 else self._from_path

    @property
    def values(self) -> list[str]:
        """SQL of the partition columns' values, each under its name."""
        return partition_value_columns(self._table, self._names, self.directory)

    def number(self, numbers: Mapping[str, int]) -> str:
        """Return SQL of the number of a row's partition. ``numbers``: the numbers by directory."""
        return partition_number_sql(self.directory, {name: numbers[name] for name in self._names})

    @cached_property
    def _from_path(self) -> str:
        """SQL that cuts the partition directory out of ``PATH``, without URL escapes. If the files
        do not all lie equally deep, it is what stands before the directory of transactions in the
        path.
        """
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
    """Return a different number for each partition directory: from 0 on, in order.

    For more than 500 partitions it is a checksum of the directory's name instead, if all checksums
    differ: Spark computes it faster than it finds a name in a long list.
    """
    if len(partitions) > _FEW_PARTITIONS:
        checksums = {name: _checksum(name) for name in partitions}
        if len(set(checksums.values())) == len(checksums):
            return checksums
    return {name: number for number, name in enumerate(partitions)}


def partition_number_sql(directory: str, numbers: Mapping[str, int]) -> str:
    """Return SQL of the number that ``numbers`` has for a partition directory: a constant if all
    are the same, ``crc32`` if they are checksums, else a look-up in a map; for a directory that is
    not there the SQL may give anything. ``directory``: SQL of its name.
    """
    if len(different := set(numbers.values())) == 1:
        return str(different.pop())
    if all(number == _checksum(name) for name, number in numbers.items()):
        return f"crc32({directory})"
    entries = ", ".join(f"{literal(name)}, {number}" for name, number in numbers.items())
    return f"try_element_at(map({entries}), {directory})"


def _checksum(name: str) -> int:
    """The checksum that Spark's ``crc32`` gives."""
    return zlib.crc32(name.encode())


def _partition_value_sql(
    partitions: Sequence[str], ordinal: int, column: Column, directory: str
) -> str:
    """Return SQL of one partition column's value, from SQL of the partition directory's name.

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
    return shown_value_sql(text, column)


def shown_value_sql(text: str, column: Column) -> str:
    """Return SQL of a partition column's value, from SQL of its text; NULL for a text that is no
    value of the column's type.
    """
    if parse_type(column.type).kind in ("string", "varchar", "char"):
        return shown_sql(text, column.type, zone_offset_micros=None)
    return f"try_cast({text} AS {shown_type(column.type)})"
