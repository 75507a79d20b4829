"""Entries of the server's notification log → what they change in the catalog."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.transport.TTransport import TMemoryBuffer

from acidsql.acid.layout import partition_name
from acidsql.acid.table import TableName
from acidsql.metastore.hive.wire.idl import hive


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A change of the catalog.

    Attributes:
        database: The database. None: an entry cannot be read, so this may be any change.
        table: The table. None: all tables of the database are dropped.
        partition: The name of the partition that is gone. None: the table's name means something
            else now.
    """

    database: str | None = None
    table: str | None = None
    partition: str | None = None

    def concerns(self, name: TableName) -> bool:
        """Whether the change may alter the meaning of a name."""
        return self.database in (None, name.database) and self.table in (None, name.name)


@dataclass(slots=True)
class LogReader:
    """The part of the notification log that a transaction has read.

    Attributes:
        last: The number of the last entry that it knows.
        changes: The changes of the catalog after its snapshot.
    """

    last: int
    changes: list[LoggedChange] = field(default_factory=list)


def event_changes(event: Any, catalog: str) -> Iterator[LoggedChange]:
    """Yield the changes of the catalog in an entry of the notification log: a table that was
    created or dropped, or whose name, location, columns or view query changed; a dropped database;
    a dropped or renamed partition.

    All other events, such as a truncated table, a new partition or new statistics, give nothing,
    and so do those of another catalog. An entry that cannot be read gives one change without names,
    which concerns every table.
    """
    if event.catName is not None and event.catName.lower() != catalog.lower():
        return
    try:
        yield from _changes_of_event(event)
    except Exception:  # a message of another format
        yield LoggedChange()


def _changes_of_event(event: Any) -> Iterator[LoggedChange]:
    """Yield the changes of the catalog in an entry: a table that was created or dropped, or whose
    ``table_meaning`` changed (renamed: both names); a database that was dropped; partitions that
    were dropped, or renamed (only the old name). Other events give nothing. Any error may be raised
    if the message has another format."""
    match event.eventType:
        case "CREATE_TABLE" | "DROP_TABLE":
            yield _logged_change(event.dbName, event.tableName)
        case "DROP_DATABASE":
            yield _logged_change(event.dbName)
        case "ALTER_TABLE":
            message = _parse_message(event)
            old, new = (
                _read_struct(hive.Table, message[f"tableObj{when}Json"])
                for when in ("Before", "After")
            )
            if table_meaning(old) != table_meaning(new):
                yield _logged_change(old.dbName, old.tableName)
                if table_meaning(old)[:2] != table_meaning(new)[:2]:  # it has another name
                    yield _logged_change(new.dbName, new.tableName)
        case "DROP_PARTITION":
            message = _parse_message(event)
            keys = _read_struct(hive.Table, message["tableObjJson"]).partitionKeys
            for values in message["partitions"]:
                yield _dropped_partition(event, keys, [values[key.name] for key in keys])
        case "ALTER_PARTITION":
            message = _parse_message(event)
            keys = _read_struct(hive.Table, message["tableObjJson"]).partitionKeys
            old, new = (
                _read_struct(hive.Partition, message[f"partitionObj{when}Json"])
                for when in ("Before", "After")
            )
            if old.values != new.values:
                yield _dropped_partition(event, keys, old.values)


def _dropped_partition(event: Any, keys: Any, values: list[str]) -> LoggedChange:
    name = partition_name([key.name for key in keys], values)
    return _logged_change(event.dbName, event.tableName, name)


def _logged_change(
    database: str, table: str | None = None, partition: str | None = None
) -> LoggedChange:
    """A change. What a client has sent to the server may have names in capitals."""
    return LoggedChange(database.lower(), None if table is None else table.lower(), partition)


def table_meaning(raw: Any) -> tuple[Any, ...]:
    """Return what a table's name means: database, name, location, columns (name, type), and the
    query of a view."""
    columns = [(column.name.lower(), column.type.lower()) for column in raw.sd.cols]
    query = raw.viewExpandedText or raw.viewOriginalText or ""
    return raw.dbName.lower(), raw.tableName.lower(), raw.sd.location, columns, query


def _parse_message(event: Any) -> Any:
    """Return the JSON of an entry's message, which may be compressed."""
    text = event.message
    if event.messageFormat.startswith("gzip"):
        text = gzip.decompress(base64.b64decode(text))
    return json.loads(text)


def _read_struct(struct: Any, text: str) -> Any:
    """A struct in Thrift's JSON."""
    value = struct()
    value.read(TJSONProtocol(TMemoryBuffer(text.encode())))
    return value
