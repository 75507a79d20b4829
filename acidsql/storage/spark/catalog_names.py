"""The names in Spark's own catalog."""

from __future__ import annotations

from pyspark.sql import SparkSession

from acidsql.storage.columns import quote


def table_names(spark: SparkSession, database: str) -> list[str]:
    """The names of the tables and views in a database, and of the session's temporary views.

    ``Catalog.listTables`` would also ask what each of them is.
    """
    return [row.tableName for row in spark.sql(f"SHOW TABLES IN {quote(database)}").collect()]
