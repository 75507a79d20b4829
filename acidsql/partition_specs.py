"""PARTITION clauses → the partition directories that they name."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from acidsql.acid.layout import parse_partition_name, partition_name
from acidsql.acid.table import Column, Table
from acidsql.errors import AnalysisError
from acidsql.plan import lower
from acidsql.plan.sqltext import Text
from acidsql.sql.statements import PartitionItem
from acidsql.storage.columns import shown_type

Specs = Sequence[Sequence[PartitionItem]]


def matching_partitions(
    spark: SparkSession,
    table: Table,
    known: Sequence[str],
    specs: Specs,
    text: str,
    *,
    may_be_missing: bool = False,
) -> list[str]:
    """The known directories that one of the clauses names, in the clauses' order.

    Args:
        spark: Evaluates the clauses' values.
        table: The table.
        known: Its partition directories, ``p1=a/p2=1``.
        specs: The clauses; one that names some columns means all partitions with those values.
        text: The user's statement.
        may_be_missing: A clause without a partition is no error.

    Raises:
        AnalysisError: A column is no partition column, or there is no such partition.
    """
    found: dict[str, None] = {}
    for spec in specs:
        wanted = _values(spark, table, spec, text)
        matching = [name for name in known if wanted <= set(parse_partition_name(name))]
        if not matching and spec and not may_be_missing:
            raise AnalysisError(
                f"{table.name} has no such partition.",
                text, spec[0].span.start, spec[-1].span.end,
                condition="PARTITIONS_NOT_FOUND", sqlstate="428FT",
            )  # fmt: skip
        found.update(dict.fromkeys(matching))
    return list(found)


def _values(
    spark: SparkSession, table: Table, spec: Sequence[PartitionItem], text: str
) -> set[tuple[str, str | None]]:
    """A clause's columns and values, as they stand in a partition's name."""
    columns = {column.name: column for column in table.partition_columns}
    values: set[tuple[str, str | None]] = set()
    for item in spec:
        column = columns.get(item.name.lower())
        if column is None:
            raise AnalysisError(
                f"'{item.name}' is not a partition column of {table.name}.",
                text, item.span.start, item.span.end,
                condition="PARTITION_COLUMN_NOT_FOUND", sqlstate="42703",
            )  # fmt: skip
        name = partition_name([column.name], [_value(spark, column, item, text)])
        values |= set(parse_partition_name(name))
    return values


def _value(spark: SparkSession, column: Column, item: PartitionItem, text: str) -> str | None:
    assert item.value is not None, "the parser demands a value here"
    query = Text(text).raw("SELECT CAST(CAST(").user(item.value)
    query.raw(f" AS {shown_type(column.type)}) AS STRING)")
    with lower.mapped_errors(query):
        value: str | None = lower.frame(spark, query, {}).collect()[0][0]
    # Padding is no part of a CHAR.
    return value.rstrip(" ") if value is not None and column.type.startswith("char") else value
