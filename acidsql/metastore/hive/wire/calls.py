"""What the parts of the store share: the client, the server's features, the own transactions."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from acidsql.acid.layout import DEFAULT_PARTITION
from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import CatalogError, UnsupportedError
from acidsql.metastore.hive.wire import hive3
from acidsql.metastore.hive.wire.address import DEFAULT_CATALOG
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.features import DEFAULT_PARTITION_NAME, Features
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.own_txns import OwnTxn

log = logging.getLogger(__package__)

# The names of what is in a directory; none if there is no such directory.
ListNames = Callable[[str], Sequence[str]]
_MOST_AT_ONCE = 500  # tables or partitions in one call: a call must end before the time-out

# Without it the server hides insert-only tables.
INSERT_ONLY = hive.ClientCapabilities(values=[hive.ClientCapability.INSERT_ONLY_TABLES])


class Calls:
    """One metastore, for one session. Several threads may use an instance.

    Args:
        client: Calls the server.
        features: What the server has said about itself.
        list_names: Lists a directory. The store itself must not know files.
    """

    def __init__(self, client: Client, features: Features, list_names: ListNames) -> None:
        self._client, self.features, self._list_names = client, features, list_names
        self._catalog = client.address.catalog
        self._user = client.user
        self._own: dict[int, OwnTxn] = {}
        self._taken_entries: dict[int, Any] = {}  # entries of the compaction queue, by number
        # At the last look at each table; for constraints, with what tells it from a later one.
        self._is_partitioned: dict[TableName, bool] = {}
        self._cached_constraints: dict[TableName, tuple[str, Any]] = {}

    def _own_txn(self, txn_id: int) -> OwnTxn:
        """The record of a transaction; a new record if another session has opened it."""
        own_txn = self._own.get(txn_id)
        return OwnTxn(txn_id, self._user, socket.gethostname()) if own_txn is None else own_txn

    def _call(self, name: str, *values: Any) -> Any:
        """Call a method of Hive 4 with its arguments, over Hive 3 in its words. Raise the project's
        errors."""
        if self.features.is_hive3:
            return hive3.call(self._client, name, *values)
        return self._client.call(name, *values)

    def _qualified_database(self, database: str) -> str:
        """A database of the session's catalog, for a call that has no argument for the catalog."""
        return database if self._catalog == DEFAULT_CATALOG else f"@{self._catalog}#{database}"

    def _database_names(self) -> list[str]:
        return sorted(self._call("get_databases", self._qualified_database("*")))

    def heartbeat(self, txn_id: int) -> None:
        """See ``TxnStore``."""
        self._call("heartbeat", hive.HeartbeatRequest(txnid=txn_id))

    def _raw(self, name: TableName) -> Any | None:
        """Fetch the server's struct of a table or view, of any kind; None if there is none. Whether
        the table is partitioned is remembered.

        No capabilities of a processor are sent: the server would hide what it thinks a processor
        without them cannot handle.
        """
        request = hive.GetTableRequest(
            dbName=name.database,
            tblName=name.name,
            catName=self._catalog,
            capabilities=INSERT_ONLY,
        )
        try:
            raw = self._call("get_table_req", request).table
        except CatalogError as error:
            if not is_missing(error):
                raise
            self._is_partitioned.pop(name, None)
            return None
        self._is_partitioned[name] = bool(raw.partitionKeys)
        return raw

    def _need_raw(self, name: TableName) -> Any:
        """Return the server's struct of a table or view. Raise CatalogError if there is none."""
        raw = self._raw(name)
        if raw is None:
            raise no_table(name)
        return raw

    def _need_usual_null(self, name: TableName) -> None:
        """Raise UnsupportedError if the server's word for NULL in names of partitions is not the
        usual one.

        acidsql would show this word where Hive means NULL, and Hive would show acidsql's.
        """
        word = self.features.default_partition
        if word != DEFAULT_PARTITION:
            raise UnsupportedError(
                f"The partitioned table {name} cannot be used, because the server says "
                f"{DEFAULT_PARTITION_NAME}={word}. acidsql knows {DEFAULT_PARTITION} only.",
                condition="UNSUPPORTED_FEATURE.DEFAULT_PARTITION_NAME",
            )

    def _alter(
        self, name: TableName, raw: Any, write_id: int | None = None, **context: str
    ) -> None:
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
            catName=self._catalog,
            dbName=name.database,
            tableName=name.name,
            table=raw,
            environmentContext=keeping_statistics(**context),
            writeId=raw.writeId,
            validWriteIdList=_write_ids_up_to(name, write_id),
        )
        self._call("alter_table_req", request)

    def _alter_partitions(self, name: TableName, raws: list[Any], write_id: int | None) -> None:
        """Replace the structs of some partitions of a table. Statistics are left as they are in the
        structs.

        ``write_id``: of the transaction that changes the statistics; None: nobody does.
        """
        for raw in raws:
            raw.writeId = write_id or -1
        request = hive.AlterPartitionsRequest(
            catName=self._catalog,
            dbName=name.database,
            tableName=name.name,
            partitions=raws,
            environmentContext=keeping_statistics(),
            writeId=write_id or -1,
            validWriteIdList=_write_ids_up_to(name, write_id),
        )
        self._call("alter_partitions_req", request)


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


def is_missing(error: CatalogError) -> bool:
    """Whether the server has said that there is no such thing."""
    return error.condition == "TABLE_OR_VIEW_NOT_FOUND"


def no_table(name: TableName) -> CatalogError:
    """The error about a table that is not there."""
    return CatalogError(f"There is no table {name}.", table=name)
