"""Make DataFrames of Arrow tables in the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from acidsql.storage.spark.session.jvm import changed_conf

PLANNED_MAX = 5000  # rows; see ``local_rows``
_BATCHES = "spark.sql.execution.arrow.maxRecordsPerBatch"
_LOCAL_BYTES = "spark.sql.execution.arrow.localRelationThreshold"


def local_numbers(spark: SparkSession, columns: Mapping[str, Sequence[int]]) -> DataFrame:
    """Return a DataFrame of these columns of numbers, name → values, as BIGINT."""
    rows = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    return local_rows(spark, rows, in_job=rows.num_rows > PLANNED_MAX)


def local_rows(
    spark: SparkSession,
    rows: pa.Table,
    schema: str | StructType | None = None,
    *,
    in_job: bool = False,
) -> DataFrame:
    """Return a DataFrame of these rows. It is the same whatever the session's settings are.

    Args:
        spark: The session.
        rows: The rows.
        schema: The columns' names and types, perhaps as DDL. Without it Spark derives the types
            from Arrow's; a timestamp then belongs to the session's time zone.
        in_job: A job evaluates queries over the rows. Otherwise Spark evaluates them row by row
            while it plans, which takes longer for thousands of rows.
    """
    # All rows go into one batch, because PySpark loses rows after an empty batch. The size of a
    # batch must be at least 1: elsewhere 0 or less means no limit, but here PySpark fails with it.
    table = rows.combine_chunks()
    if isinstance(schema, str):
        schema = cast(StructType, StructType.fromDDL(schema))
    if schema is None and not table.num_rows:  # Spark Connect derives no types from no rows
        schema = from_arrow_schema(table.schema)
    conf = {_BATCHES: str(max(1, table.num_rows)), **({_LOCAL_BYTES: "0"} if in_job else {})}
    with changed_conf(spark, conf):
        return spark.createDataFrame(table, schema)
