"""The partition columns, whose values are in directories' names and not in the files."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote as url_quote

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.layout import DEFAULT_PARTITION, parse_partition_name
from acidsql.acid.table import Column, Table
from acidsql.storage.columns import as_char, literal, quote, shown, shown_type
from acidsql.storage.event_records import PARTITION
from acidsql.storage.listing import Listing

PATH = "__acidsql_path"  # of a row's file, as Spark shows it: a URL
# A path part that Spark's _metadata.file_path shows as it is.
_SAFE = "=-._~!$&'()*+,;:@"


def partitions_frame(spark: SparkSession, table: Table, partitions: Sequence[str]) -> DataFrame:
    """The partition columns' values, as ``scan`` shows them, one row for each of these directories.

    Columns: ``__acidsql_partition`` (the directory's name), then the partition columns. No job
    runs for it.
    """
    rows = ", ".join(f"({literal(name)})" for name in partitions) or "(NULL)"
    names = spark.sql(
        f"SELECT * FROM VALUES {rows} AS t({PARTITION}) WHERE {PARTITION} IS NOT NULL"
    )
    values = partition_values(table, partitions, PARTITION) if partitions else []
    return as_char(names.selectExpr(PARTITION, *values), table)


def partition_values(table: Table, partitions: Sequence[str], directory: str) -> list[str]:
    """SQL of the partition columns' values.

    Args:
        table: The table.
        partitions: The directories that may occur.
        directory: SQL of a row's partition directory, or of its file's path.
    """
    depth = len(table.partition_columns)
    if directory != PARTITION and depth:
        directory = _from_path(partitions, depth, directory)
    return [
        f"{_partition_value(partitions, ordinal, column, directory)} AS {quote(column.name)}"
        for ordinal, column in enumerate(table.partition_columns)
    ]


def partition_sql(listings: Sequence[Listing], table: Table) -> str:
    """The partition directory of a row, from its file's path."""
    if not table.partition_columns:
        return "''"
    partitions = [listing.partition for listing in listings]
    return _from_path(partitions, len(table.partition_columns), PATH)


def needs_path(table: Table, partitions: Sequence[str]) -> bool:
    """Whether the partition can only be told from a row's file.

    Where it need not be, ``PATH`` is not asked for: Spark makes all of ``_metadata`` anew for each
    row, used or not.
    """
    return bool(table.partition_columns) and len(partitions) > 1


def _from_path(partitions: Sequence[str], depth: int, path: str) -> str:
    if len(partitions) == 1:
        return literal(partitions[0])
    # …/p1=a/p2=1/delta_…/bucket_…; files of an insert-only table may lie deeper.
    above = f"((?:[^/]+/){{{depth - 1}}}[^/]+)"
    sql = f"regexp_extract({path}, '^.*/{above}/(?:base|delta|delete_delta)_[^/]+/.+$', 1)"
    if all(url_quote(name, safe=f"/{_SAFE}") == name and "%" not in name for name in partitions):
        return sql
    # Spark shows paths with URL escapes; url_decode would also turn '+' into a blank.
    return f"url_decode(replace({sql}, '+', '%2B'))"


def _partition_value(
    partitions: Sequence[str], ordinal: int, column: Column, directory: str
) -> str:
    """One partition column's value, from the partition directory's name."""
    values = {parse_partition_name(name)[ordinal][1] for name in partitions}
    if len(values) == 1:
        value = values.pop()
        text = "CAST(NULL AS STRING)" if value is None else literal(value)
    else:
        text = f"regexp_extract({directory}, '^(?:[^/]*/){{{ordinal}}}[^/=]*=([^/]*)', 1)"
        if any("%" in name for name in partitions):
            text = f"url_decode(replace({text}, '+', '%2B'))"
    if column.type == "string" or column.type.startswith(("varchar", "char")):
        # Hive shows the default partition of a string column by its name.
        shown_text = f"coalesce({text}, '{DEFAULT_PARTITION}')"
        return shown(shown_text, column.type, zone_offset_micros=None)
    return f"try_cast(nullif({text}, '{DEFAULT_PARTITION}') AS {shown_type(column.type)})"
