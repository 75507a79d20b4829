"""The names of a session's databases, tables and columns, for those who complete words."""

from __future__ import annotations

from acidsql.api.session import Session
from acidsql.storage.spark import catalog_names
from acidsql.storage.spark.views import SETTLED


class NameLists:
    """Lists the names that statements of one session may use: acidsql's, and Spark's.

    Any thread may ask. No transaction, lock or Spark job is needed, so a statement of another
    thread neither waits for an answer nor delays it. The methods raise the errors of the metastore
    and of Spark. The two are asked apart, so that either may fail without the other.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def acid_databases(self) -> list[str]:
        """Return the names of acidsql's databases."""
        return [database.name for database in self._session.metastore.databases()]

    def spark_databases(self) -> list[str]:
        """Return the names of Spark's databases, or of another catalog's if that is current."""
        return catalog_names.database_names(self._session.spark)

    def acid_tables(self, database: str | None = None) -> list[str]:
        """Return the names of acidsql's tables and views in a database, by default in the current
        one; [] if there is no such database."""
        return self._session._runner.acid_names(database)

    def spark_tables(self, database: str | None = None) -> list[str]:
        """Return the names of Spark's tables and views in a database, by default in the current
        one, and of the temporary views."""
        spark = self._session.spark
        names = catalog_names.table_names(spark, database or spark.catalog.currentDatabase())
        return [name for name in names if not name.startswith(SETTLED)]

    def columns(self, parts: tuple[str, ...]) -> list[str]:
        """Return the names of a table's or view's columns, in their order; [] if there is none of
        this name. ``parts``: the parts of its name."""
        columns = self._session._runner.acid_columns(parts)
        return columns or catalog_names.column_names(self._session.spark, parts)
