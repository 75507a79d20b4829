"""``spark.catalog``: ACID tables and their databases beside Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.catalog import Column as CatalogColumn
from pyspark.sql.catalog import Database, Table

from acidsql.acid.table import Table as AcidTable
from acidsql.storage.columns import quote, quoted_path
from acidsql.storage.spark.session.jvm import OWN_CATALOG
from acidsql.storage.spark.views import SETTLED

if TYPE_CHECKING:
    from pyspark.sql import Catalog

    from acidsql.api.extension.extension import Extension

    _Catalog = Catalog
else:
    _Catalog = object


class CatalogCalls(_Catalog):
    """The calls of a ``Catalog`` that acidsql takes over."""

    _extension: Extension

    def tableExists(self, tableName: str, dbName: str | None = None) -> bool:  # noqa: N802, N803
        """Whether there is an ACID table or view of this name, or anything of Spark's."""
        if self._find(tableName, dbName) is not None:
            return True
        return super().tableExists(tableName, dbName)

    def getTable(self, tableName: str) -> Table:  # noqa: N802, N803 - PySpark's names
        """Return what is known of a table or view."""
        table = self._find(tableName)
        return super().getTable(tableName) if table is None else _entry(table)

    def listColumns(  # noqa: N802 - PySpark's name
        self,
        tableName: str,  # noqa: N803 - PySpark's name
        dbName: str | None = None,  # noqa: N803 - PySpark's name
    ) -> list[CatalogColumn]:
        """Return the columns of a table or view, the partition columns last."""
        table = self._find(tableName, dbName)
        if table is None:
            return super().listColumns(tableName, dbName)
        partitions = set(table.partition_columns)
        return [
            CatalogColumn(
                name=column.name,
                description=column.comment,
                dataType=column.type,
                nullable=column.nullable,
                isPartition=column in partitions,
                isBucket=column.name in table.bucket_columns,
                isCluster=False,
            )
            for column in table.all_columns
        ]

    def listTables(  # noqa: N802 - PySpark's name
        self,
        dbName: str | None = None,  # noqa: N803 - PySpark's name
        pattern: str | None = None,
    ) -> list[Table]:
        """Return the tables and views of a database and the temporary views, by name; a pattern has
        ``*`` for any letters and ``|`` between choices."""
        database = self.currentDatabase() if dbName is None else dbName
        names = self._extension.acid_names(database, pattern)
        if names and not super().databaseExists(database):
            return [_entry(table) for table in self._tables(database, names)]
        tables = [
            table
            for table in super().listTables(dbName, pattern)
            if not table.name.startswith(SETTLED)
        ]
        if not names:
            return tables
        # With Hive support, Spark's catalog has the ACID tables of a Hive Metastore, too.
        others = [table for table in tables if table.isTemporary or table.name not in names]
        acid_tables = [_entry(table) for table in self._tables(database, names)]
        return sorted([*others, *acid_tables], key=lambda table: table.name)

    def refreshTable(self, tableName: str) -> None:  # noqa: N802, N803 - PySpark's names
        """Forget what Spark has kept of a table; of an ACID table it keeps nothing."""
        if self._find(tableName) is None:
            super().refreshTable(tableName)

    def dropTable(self, tableName: str, *args: Any, **options: Any) -> None:  # noqa: N802, N803
        """Drop a table."""
        if self._find(tableName) is None:
            return super().dropTable(tableName, *args, **options)
        self._extension.session.sql(f"DROP TABLE {self._extension.quoted(tableName)}")
        return None

    def truncateTable(self, tableName: str) -> None:  # noqa: N802, N803 - PySpark's names
        """Delete all rows of a table."""
        if self._find(tableName) is None:
            return super().truncateTable(tableName)
        self._extension.session.sql(f"TRUNCATE TABLE {self._extension.quoted(tableName)}")
        return None

    def databaseExists(self, dbName: str) -> bool:  # noqa: N802, N803 - PySpark's names
        """Whether acidsql or Spark has a database."""
        return self._extension.database(dbName) is not None or super().databaseExists(dbName)

    def setCurrentDatabase(self, dbName: str) -> None:  # noqa: N802, N803 - PySpark's names
        """Make a database the current one, also one that Spark does not have yet."""
        if self._extension.database(dbName) is None or super().databaseExists(dbName):
            return super().setCurrentDatabase(dbName)
        self._extension.session.sql(f"USE {quote(dbName)}")
        return None

    def getDatabase(self, dbName: str) -> Database:  # noqa: N802, N803 - PySpark's names
        """Return what Spark knows of a database; what acidsql knows, if Spark does not have it."""
        database = self._extension.database(dbName)
        if database is None or super().databaseExists(dbName):
            return super().getDatabase(dbName)
        return Database(database.name, OWN_CATALOG, database.comment, database.location)

    def _find(self, name: str, database: str | None = None) -> AcidTable | None:
        """Return the ACID table or view of a name, perhaps in a database; None if the call is
        Spark's."""
        if database is not None and isinstance(name, str):
            name = quoted_path((database, name))
        return self._extension.find(name)

    def _tables(self, database: str, names: list[str]) -> list[AcidTable]:
        """Return the tables and views of these names, without those dropped meanwhile."""
        tables = (self._extension.find(quoted_path((database, name))) for name in names)
        return [table for table in tables if table is not None]


def _entry(table: AcidTable) -> Table:
    """Return a table or view as Spark's catalog describes its own."""
    return Table(
        name=table.name.shown,
        catalog=OWN_CATALOG,
        namespace=[table.name.database],
        description=table.comment,
        tableType="MANAGED" if table.view is None else "VIEW",
        isTemporary=table.name.session_txn_id is not None,
    )
