"""The names in Spark's own catalog."""

from __future__ import annotations

from enum import Enum

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from acidsql.storage.columns import quote, quoted_path


def database_names(spark: SparkSession) -> list[str]:
    """Return the names of the databases (namespaces) of the current catalog. No job runs."""
    return [row[0] for row in spark.sql("SHOW DATABASES").collect()]


def column_names(spark: SparkSession, parts: tuple[str, ...]) -> list[str]:
    """Return the names of the columns of a table or view that Spark has; [] if there is none of
    this name, or Spark cannot analyse it. No job runs."""
    try:
        return spark.table(quoted_path(parts)).columns
    except PySparkException:
        return []


def table_names(spark: SparkSession, database: str) -> list[str]:
    """Return the names of the tables and views in a database of the current catalog, and of the
    session's temporary views.

    ``Catalog.listTables`` would also ask for the kind of each of them.
    """
    return [row.tableName for row in spark.sql(f"SHOW TABLES IN {quote(database)}").collect()]


def table_provider(spark: SparkSession, parts: tuple[str, ...]) -> str | None:
    """Return the data source of a table of Spark's, such as ``parquet``; None if Spark does not
    tell it, for whatever reason: only the message of an error needs it."""
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {quoted_path(parts)}").collect()
    except Exception:
        return None
    return next((row.data_type for row in rows if row.col_name == "Provider"), None)


class SparkRelationKind(Enum):
    """The kinds of relations in Spark's own catalog."""

    TEMPORARY_VIEW = "a temporary view"
    VIEW = "a view of Spark's"
    TABLE = "a table of Spark's"


def relation_kind(spark: SparkSession, parts: tuple[str, ...]) -> SparkRelationKind | None:
    """Return the kind of the relation that Spark's catalog finds under a name (given by its parts):
    a temporary view goes before a view or table. None if Spark raises any error of its own, as for
    a name that it does not have.
    """
    try:
        table = spark.catalog.getTable(quoted_path(parts))
    except PySparkException:
        return None
    if table.isTemporary:
        return SparkRelationKind.TEMPORARY_VIEW
    return SparkRelationKind.VIEW if table.tableType == "VIEW" else SparkRelationKind.TABLE
