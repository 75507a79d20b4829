"""What Spark's JVM tells about a streaming query, from within ``foreachBatch``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from acidsql.storage.spark.session.jvm import spark_context


def local_property(spark: SparkSession, name: str) -> str | None:
    """Return a local property of the JVM's thread that runs the current batch; None if it is not
    set, and over Spark Connect.
    """
    context = spark_context(spark)
    value = None if context is None else context.getLocalProperty(name)
    return None if value is None else str(value)


def run_and_checkpoint(spark: SparkSession, query_id: str) -> tuple[str | None, str | None]:
    """Return the run's id and the checkpoint's path of a running query that this session started;
    both None if Spark does not tell them.
    """
    with suppress(Exception):  # another session started the query, or Spark Connect has no JVM here
        query: Any = spark.streams.get(query_id)
        return str(query.runId), str(query._jsq.streamingQuery().resolvedCheckpointRoot())
    return None, None
