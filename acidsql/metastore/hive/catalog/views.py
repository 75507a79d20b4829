"""Views in a Hive Metastore, as Hive keeps its own. ``Catalog`` describes the methods."""

from __future__ import annotations

from acidsql.acid.table import Table, TableName
from acidsql.errors import CatalogError
from acidsql.metastore.hive.catalog.cdc_tables import HiveCdcTables
from acidsql.metastore.hive.catalog.tables import HiveTables
from acidsql.metastore.hive.locking.numbers import HiveNumbers
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.raw_tables import RawTables
from acidsql.metastore.hive.wire.server import Server


class HiveViews:
    """The part of the store about views."""

    def __init__(
        self,
        server: Server,
        raw_tables: RawTables,
        numbers: HiveNumbers,
        tables: HiveTables,
        cdc_tables: HiveCdcTables,
    ) -> None:
        self._server, self._raw_tables, self._numbers = server, raw_tables, numbers
        self._tables, self._cdc_tables = tables, cdc_tables

    def views(self, database: str) -> list[str]:
        """Return the names of a database's views, ascending; materialized views are left out."""
        database_name = self._server.qualified_database(database)
        return sorted(
            self._server.call("get_tables_by_type", database_name, "*", convert.VIRTUAL_VIEW)
        )

    def create_view(self, view: Table, *, replace: bool = False, txn_id: int | None = None) -> None:
        """Add a view. With ``replace`` it takes the place of a view of its name. Raise CatalogError
        if the name is that of a table, or without ``replace`` of a view, or there is no such
        database."""
        self._numbers.need_open(txn_id)
        new = convert.raw_view(view, self._server.user, self._server.catalog)
        old = self._raw_tables.find(view.name) if replace else None
        if old is not None and convert.is_view(old):
            old.sd.cols, old.parameters = new.sd.cols, new.parameters
            old.partitionKeys = []
            old.viewOriginalText, old.viewExpandedText = new.viewOriginalText, new.viewExpandedText
            self._raw_tables.alter(view.name, old)
            return
        request = hive.CreateTableRequest(
            table=new,
            processorCapabilities=convert.CAPABILITIES,
            processorIdentifier=f"acidsql@{self._server.user}",
        )
        self._tables.create_on_server(request, view.name.database)

    def drop_view(self, name: TableName, *, txn_id: int | None = None) -> None:
        """Remove a view. Raise CatalogError if there is none, or the name is that of a table."""
        self._numbers.need_open(txn_id)
        self._need_view(name)
        request = hive.DropTableRequest(
            catalogName=self._server.catalog,
            dbName=name.database,
            tableName=name.name,
            deleteData=False,
        )
        self._server.call("drop_table_req", request)

    def rename_view(
        self, name: TableName, new_name: TableName, *, txn_id: int | None = None
    ) -> None:
        self._need_view(name)
        self._cdc_tables.rename_table(name, new_name, txn_id=txn_id)

    def _need_view(self, name: TableName) -> None:
        raw = self._raw_tables.find(name)
        if raw is None or not convert.is_view(raw):
            raise CatalogError(f"There is no view {name}.", table=name)
