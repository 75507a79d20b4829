"""Finds the values of partition directories. For names that are not canonical, it asks Spark."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.partition_names import (
    PartitionNames,
    PartitionValues,
    canonical,
    uncanonical_candidates,
)
from acidsql.acid.table import Table
from acidsql.storage.columns import quote
from acidsql.storage.event_records import PARTITION
from acidsql.storage.reading.pruning.partition_columns import partitions_frame


def partition_names(spark: SparkSession, table: Table, names: Sequence[str]) -> PartitionNames:
    """Return the names of a table's partition directories; ``names`` are all that exist. A job-less
    query asks Spark for the values of names that may not be canonical.
    """
    return PartitionNames.from_directories(
        table.partition_columns, names, _values_in_spark(spark, table, names)
    )


def canonical_partition_values(
    spark: SparkSession, table: Table, names: Sequence[str]
) -> dict[str, PartitionValues]:
    """Return directory name → the values of its partition, as their canonical texts (the one form
    in which acidsql writes a value); None is NULL. A job-less query asks Spark for doubtful names.
    """
    canonical_values = _values_in_spark(spark, table, names)
    return {
        name: canonical_values.get(name) or tuple(value for _, value in parse_partition_name(name))
        for name in names
    }


def _values_in_spark(
    spark: SparkSession, table: Table, names: Sequence[str]
) -> dict[str, PartitionValues]:
    """Return directory name → the canonical texts of its partition's values, as a query of Spark's
    shows them; only for directories whose names may not be canonical. No job runs for this.
    """
    columns = table.partition_columns
    doubtful = uncanonical_candidates(columns, names)
    if not doubtful:
        return {}
    texts = (f"CAST({quote(column.name)} AS STRING)" for column in columns)
    rows = partitions_frame(spark, table, doubtful).selectExpr(PARTITION, *texts).collect()
    return {
        name: tuple(map(canonical, values, (column.type for column in columns)))
        for name, *values in rows
    }
