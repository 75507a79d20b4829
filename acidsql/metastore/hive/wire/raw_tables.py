"""The structs of tables and partitions on a Hive Metastore: fetched, and replaced as wholes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import CatalogError
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.server import Server, is_missing

_MOST_AT_ONCE = 500  # tables or partitions in one call: a call must end before the time-out
# Without it the server hides insert-only tables.
_INSERT_ONLY = hive.ClientCapabilities(values=[hive.ClientCapability.INSERT_ONLY_TABLES])


class RawTables:
    """The server's structs of tables and views, of any kind. Several threads may use an
    instance."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._is_partitioned: dict[TableName, bool] = {}  # at the last look

    def find(self, name: TableName) -> Any | None:
        """Fetch the struct of a table or view; None if there is none. Whether the table is
        partitioned is remembered.

        No capabilities of a processor are sent: the server would hide what it thinks a processor
        without them cannot handle.
        """
        request = hive.GetTableRequest(
            dbName=name.database,
            tblName=name.name,
            catName=self._server.catalog,
            capabilities=_INSERT_ONLY,
        )
        try:
            raw = self._server.call("get_table_req", request).table
        except CatalogError as error:
            if not is_missing(error):
                raise
            self._is_partitioned.pop(name, None)
            return None
        self._is_partitioned[name] = bool(raw.partitionKeys)
        return raw

    def need(self, name: TableName) -> Any:
        """Fetch the struct of a table or view. Raise CatalogError if there is none."""
        raw = self.find(name)
        if raw is None:
            raise no_table(name)
        return raw

    def is_partitioned(self, name: TableName) -> bool:
        """Whether a table was partitioned when it was last found; nothing is asked. False if it was
        not."""
        return self._is_partitioned.get(name, False)

    def named_tables(self, database: str, names: Sequence[str]) -> Iterator[Any]:
        """Yield the structs of those tables and views of a database that have one of these names; a
        name that does not exist is left out."""
        for named_chunk in chunks(names):
            request = hive.GetTablesRequest(
                dbName=database,
                tblNames=named_chunk,
                catName=self._server.catalog,
                capabilities=_INSERT_ONLY,
            )
            yield from self._server.call("get_table_objects_by_name_req", request).tables

    def acid_tables(self, database: str) -> Iterator[Any]:
        """Fetch the structs of the ACID tables of a database, insert-only ones included. No
        views."""
        names = self._server.call(
            "get_tables_by_type", self._server.qualified_database(database), "*", convert.MANAGED
        )
        return filter(convert.is_transactional, self.named_tables(database, names))

    def alter(self, name: TableName, raw: Any, write_id: int | None = None, **context: str) -> None:
        """Replace a table's struct on the server, which keeps the statistics as they are in the
        struct.

        Args:
            name: The table as it is called now; the struct may have a new name.
            raw: The struct. Its ``writeId`` is set.
            write_id: Of the transaction that changes the statistics; None: nobody does.
            context: More entries of the call's context.
        """
        raw.writeId = write_id or -1
        request = hive.AlterTableRequest(
            catName=self._server.catalog,
            dbName=name.database,
            tableName=name.name,
            table=raw,
            environmentContext=keeping_statistics(**context),
            writeId=raw.writeId,
            validWriteIdList=_write_ids_up_to(name, write_id),
        )
        self._server.call("alter_table_req", request)

    def alter_partitions(self, name: TableName, raws: list[Any], write_id: int | None) -> None:
        """Replace the structs of some partitions of a table. Statistics are left as they are in the
        structs.

        ``write_id``: of the transaction that changes the statistics; None: nobody does.
        """
        for raw in raws:
            raw.writeId = write_id or -1
        request = hive.AlterPartitionsRequest(
            catName=self._server.catalog,
            dbName=name.database,
            tableName=name.name,
            partitions=raws,
            environmentContext=keeping_statistics(),
            writeId=write_id or -1,
            validWriteIdList=_write_ids_up_to(name, write_id),
        )
        self._server.call("alter_partitions_req", request)


def _write_ids_up_to(name: TableName, write_id: int | None) -> str | None:
    """The list that must come with a write id. The server needs it only to compare statistics that
    are called right, which no change of ours does."""
    return None if write_id is None else str(ValidWriteIdList(write_id, (), (), table=str(name)))


def keeping_statistics(**context: str) -> Any:
    """The context of a change that leaves statistics as they are; ``context``: more entries."""
    return hive.EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true", **context})


def chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The items in parts that are small enough for one call."""
    for start in range(0, len(items), _MOST_AT_ONCE):
        yield items[start : start + _MOST_AT_ONCE]


def no_table(name: TableName) -> CatalogError:
    """The error about a table that is not there."""
    return CatalogError(f"There is no table {name}.", table=name)
