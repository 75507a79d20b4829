"""``spark.catalog``: ACID tables and their databases beside Spark's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql.catalog import Column as CatalogColumn
from pyspark.sql.catalog import Database, Table

from acidsql.acid.table import Table as AcidTable
from acidsql.api.extension.extension import full_name
from acidsql.errors import UnsupportedError
from acidsql.metastore.interface import Database as AcidDatabase
from acidsql.storage.columns import quote, quoted_path
from acidsql.storage.spark.session.jvm import OWN_CATALOG
from acidsql.storage.spark.views import SETTLED

if TYPE_CHECKING:
    from pyspark.sql import Catalog, DataFrame
    from pyspark.sql.catalog import TablePartition

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
        return self._listed(super().listTables, dbName, pattern)

    def listViews(  # noqa: N802 - PySpark's name
        self,
        dbName: str | None = None,  # noqa: N803 - PySpark's name
        pattern: str | None = None,
    ) -> list[Table]:
        """Return the views of a database and the temporary views, as ``listTables`` does."""
        return self._listed(super().listViews, dbName, pattern, only_views=True)

    def listDatabases(self, pattern: str | None = None) -> list[Database]:  # noqa: N802
        """Return the databases of both catalogs, by name."""
        databases = super().listDatabases(pattern)
        missing_names = set(self._extension.database_names(pattern)) - {
            database.name for database in databases
        }
        own = (self._extension.database(quote(name)) for name in missing_names)
        databases += [_database_entry(database) for database in own if database is not None]
        return sorted(databases, key=lambda database: database.name)

    def dropDatabase(  # noqa: N802 - PySpark's name
        self,
        dbName: str,  # noqa: N803 - PySpark's name
        ifExists: bool = False,  # noqa: N803 - PySpark's name
        cascade: bool = False,
    ) -> None:
        """Drop a database of both catalogs; with ``cascade``, also its tables."""
        database = self._extension.database(dbName)
        if database is None:
            return super().dropDatabase(dbName, ifExists, cascade)
        behavior = "CASCADE" if cascade else "RESTRICT"
        self._extension.session.sql(f"DROP DATABASE {quote(database.name)} {behavior}")
        return None

    def createTable(self, tableName: str, *args: Any, **options: Any) -> DataFrame:  # noqa: N802, N803
        """Make a table of Spark's; ``createExternalTable`` calls this, too.

        Raises:
            CatalogError: An ACID table or view has the name.
            UnsupportedError: The table is to be an ACID table.
        """
        source = options.get("source", args[1] if len(args) > 1 else None)
        self._extension.require_free_name(tableName, "Drop it first.")
        if self._extension.makes_acid_table(tableName, source):
            raise UnsupportedError(
                "spark.catalog.createTable() makes no ACID table. Use acid.create_table(…), or "
                "spark.sql('CREATE TABLE … USING acidsql').",
                condition="UNSUPPORTED_FEATURE.CATALOG_OPERATION",
            )
        return super().createTable(tableName, *args, **options)

    def dropView(self, viewName: str, ifExists: bool = False) -> None:  # noqa: N802, N803
        """Drop a view that is kept in a catalog."""
        view = self._find(viewName)
        if view is None:
            return super().dropView(viewName, ifExists)
        self._extension.session.sql(f"DROP VIEW {full_name(view)}")
        return None

    def getTableProperties(self, tableName: str) -> dict[str, str]:  # noqa: N802, N803
        """Return the properties of a table or view, by name."""
        table = self._find(tableName)
        if table is None:
            return super().getTableProperties(tableName)
        rows = self._extension.shown_rows(f"SHOW TBLPROPERTIES {full_name(table)}")
        return {row.key: row.value for row in rows}

    def getCreateTableString(  # noqa: N802 - PySpark's name
        self,
        tableName: str,  # noqa: N803 - PySpark's name
        asSerde: bool = False,  # noqa: N803 - PySpark's name
    ) -> str:
        """Return the statement that makes a table or view."""
        table = self._find(tableName)
        if table is None:
            return super().getCreateTableString(tableName, asSerde)
        return str(self._extension.shown_rows(f"SHOW CREATE TABLE {full_name(table)}")[0][0])

    def analyzeTable(self, tableName: str, noScan: bool = False) -> None:  # noqa: N802, N803
        """Count the rows and bytes of a table; ``noScan``: only the bytes."""
        table = self._find(tableName)
        if table is None:
            return super().analyzeTable(tableName, noScan)
        scan = " NOSCAN" if noScan else ""
        self._extension.session.sql(f"ANALYZE TABLE {full_name(table)} COMPUTE STATISTICS{scan}")
        return None

    def listPartitions(self, tableName: str) -> list[TablePartition]:  # noqa: N802, N803
        """Return the partitions of a table, as SHOW PARTITIONS writes them."""
        table = self._find(tableName)
        if table is None:
            return super().listPartitions(tableName)
        from pyspark.sql.catalog import TablePartition

        rows = self._extension.shown_rows(f"SHOW PARTITIONS {full_name(table)}")
        return [TablePartition(row[0]) for row in rows]

    def refreshTable(self, tableName: str) -> None:  # noqa: N802, N803 - PySpark's names
        """Forget what Spark has kept of a table; of an ACID table it keeps nothing."""
        if self._find(tableName) is None:
            super().refreshTable(tableName)

    def dropTable(self, tableName: str, *args: Any, **options: Any) -> None:  # noqa: N802, N803
        """Drop a table."""
        table = self._find(tableName)
        if table is None:
            return super().dropTable(tableName, *args, **options)
        self._extension.session.sql(f"DROP TABLE {full_name(table)}")
        return None

    def truncateTable(self, tableName: str) -> None:  # noqa: N802, N803 - PySpark's names
        """Delete all rows of a table."""
        table = self._find(tableName)
        if table is None:
            return super().truncateTable(tableName)
        self._extension.session.sql(f"TRUNCATE TABLE {full_name(table)}")
        return None

    def databaseExists(self, dbName: str) -> bool:  # noqa: N802, N803 - PySpark's names
        """Whether acidsql or Spark has a database."""
        return self._extension.database(dbName) is not None or super().databaseExists(dbName)

    def setCurrentDatabase(self, dbName: str) -> None:  # noqa: N802, N803 - PySpark's names
        """Make a database the current one, also one that Spark does not have yet."""
        database = self._extension.database(dbName)
        if database is None or super().databaseExists(dbName):
            return super().setCurrentDatabase(dbName)
        self._extension.session.sql(f"USE {quote(database.name)}")
        return None

    def getDatabase(self, dbName: str) -> Database:  # noqa: N802, N803 - PySpark's names
        """Return what Spark knows of a database; what acidsql knows, if Spark does not have it."""
        database = self._extension.database(dbName)
        if database is None or super().databaseExists(dbName):
            return super().getDatabase(dbName)
        return _database_entry(database)

    def _find(self, name: str, database: str | None = None) -> AcidTable | None:
        """Return the ACID table or view of a name, perhaps in a database; None if the call is
        Spark's."""
        if database is not None and isinstance(name, str):
            name = quoted_path((database, name))
        return self._extension.find(name)

    def _listed(
        self,
        list_sparks: Callable[[str | None, str | None], list[Table]],
        given_database: str | None,
        pattern: str | None,
        *,
        only_views: bool = False,
    ) -> list[Table]:
        """Return what Spark lists, with the ACID tables and views of the database, by name."""
        database = self.currentDatabase() if given_database is None else given_database
        names = self._extension.acid_names(database, pattern)
        parts = ((self._extension.database_name(database) or database, name) for name in names)
        found_tables = (self._extension.find(quoted_path(name)) for name in parts)
        entries = [_entry(table) for table in found_tables if table is not None]
        if only_views:
            entries = [entry for entry in entries if entry.tableType == "VIEW"]
        if names and not super().databaseExists(database):
            return entries
        tables = [
            table
            for table in list_sparks(given_database, pattern)
            if not table.name.startswith(SETTLED)
        ]
        if not names:
            return tables
        # With Hive support, Spark's catalog has the ACID tables of a Hive Metastore, too.
        others = [table for table in tables if table.isTemporary or table.name not in names]
        return sorted([*others, *entries], key=lambda table: table.name)


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


def _database_entry(database: AcidDatabase) -> Database:
    """Return a database as Spark's catalog describes its own."""
    return Database(database.name, OWN_CATALOG, database.comment, database.location)
