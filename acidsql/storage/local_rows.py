"""Arrow tables of the driver's as DataFrames."""

from __future__ import annotations

from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from acidsql.storage.jvm import changed_conf

_BATCHES = "spark.sql.execution.arrow.maxRecordsPerBatch"
_LOCAL_BYTES = "spark.sql.execution.arrow.localRelationThreshold"


def local_rows(
    spark: SparkSession, rows: pa.Table, ddl: str | None = None, *, in_job: bool = False
) -> DataFrame:
    """A DataFrame of these rows, whatever the session's settings are.

    Args:
        spark: The session.
        rows: The rows.
        ddl: Their types; without it those that Spark has for Arrow's, where a timestamp is one of
            the session's time zone.
        in_job: A job evaluates what is asked of them. Else Spark does while it plans, row by row,
            and of thousands of rows that takes longer.
    """
    # PySpark loses rows that come after an empty batch, and cannot cut batches of no rows (0, or
    # less, is how others say that there is no limit).
    whole = rows.combine_chunks()
    schema = None if ddl is None else cast(StructType, StructType.fromDDL(ddl))
    conf = {_BATCHES: str(max(1, whole.num_rows)), **({_LOCAL_BYTES: "0"} if in_job else {})}
    with changed_conf(spark, conf):
        return spark.createDataFrame(whole, schema)
