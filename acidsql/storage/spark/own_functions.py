"""Whether a function is Spark's own: in Spark 4.1 a session may redefine it."""

from __future__ import annotations

from pyspark.sql import SparkSession

_HASHES = (1500234269240507101, 8420071140774656230)


def hashes_well(spark: SparkSession) -> bool:
    """Whether ``xxhash64`` is Spark's own. No job runs, because the arguments are literals."""
    found = spark.sql("SELECT xxhash64(1L, DATE'2024-01-01'), xxhash64(CAST(NULL AS INT), 2S)")
    return tuple(found.collect()[0]) == _HASHES
