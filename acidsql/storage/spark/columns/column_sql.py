"""Chooses what writes the Columns of a session, a classic one or one of Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from acidsql.storage.spark.columns import nodes
from acidsql.storage.spark.columns.writer import ColumnSql
from acidsql.storage.spark.session.jvm import is_remote


@contextmanager
def column_sql(
    spark: SparkSession, source: tuple[DataFrame, str] | None = None
) -> Iterator[ColumnSql]:
    """Give the block a ``ColumnSql``, which writes Columns of this kind of session as SQL. When the
    block ends, the temporary functions that it has made of Python functions are dropped.

    Args:
        spark: The Spark session.
        source: A DataFrame whose own columns may be used (``df["id"]``), and its name in the
            statement.
    """
    writer: ColumnSql
    if is_remote(spark):
        from acidsql.storage.spark.columns.messages import ColumnMessages

        writer = ColumnMessages(spark, source)
    else:
        writer = nodes.ColumnNodes(spark, source)
    try:
        yield writer
    finally:
        writer.close()


def alias_of(frame: DataFrame) -> str | None:
    """Return the name that ``df.alias("s")`` gave; None if the DataFrame has none, or was changed
    since.
    """
    if not is_remote(frame.sparkSession):
        return nodes.alias_of(frame)
    from acidsql.storage.spark.columns import messages

    return messages.alias_of(frame)
