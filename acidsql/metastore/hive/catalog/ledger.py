"""The ledger of streams in a Hive Metastore (``metastore/streams.py``).

COMMIT can set one property of one table, in the server's own database transaction. So each entry is
a property of a view of its own, in the database ``acidsql_streams``. The properties of a target
would not do: whoever alters a table writes all of its properties back as they were, and Hive does
so after each INSERT.

The server sets the property whatever it was before. So a commit first locks the entry, compares the
entry with what the session has seen, and commits while it holds the lock.

An entry about tables has the numbers that the server gave them. So the entry follows the tables,
whoever renames them, and means nothing any more when one of them has gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import sha256
from typing import Any

from acidsql.acid.table import Column, Table, TableName, ViewText
from acidsql.errors import CatalogError, LockTimeoutError
from acidsql.metastore.catalog import Database
from acidsql.metastore.hive.catalog.databases import HiveDatabases
from acidsql.metastore.hive.catalog.views import HiveViews
from acidsql.metastore.hive.locking.locks import HiveLocks, raw_component
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.own_txns import OwnTxn
from acidsql.metastore.hive.wire.raw_tables import RawTables
from acidsql.metastore.hive.wire.server import Server, is_missing
from acidsql.metastore.interface import LockType, Operation
from acidsql.metastore.streams import (
    Batch,
    StreamEntry,
    joint_sink,
    sink_of_identities,
    sink_tables,
)

DATABASE = "acidsql_streams"
_ENTRY = "_meta.acidsql.batch"  # COMMIT may set properties that begin with _meta
_TABLE = "acidsql.table"  # of an entry about tables: what tells them from later ones of their names
_BETWEEN = ","
_PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.5, *[1] * 60)  # others hold the lock only while they commit
_NOTE = "This view is an entry of the ledger of streams of acidsql. The entry is in its properties."


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """Where an entry is, or will be.

    Attributes:
        view: The view.
        identity: What tells the entry's tables from later ones of their names; "" if it is not
            about tables that are there.
    """

    view: TableName
    identity: str


@dataclass(frozen=True, slots=True)
class NotedEntry:
    """A view with an entry.

    Attributes:
        view: The view.
        entry: The entry.
        owner: Who has made the view.
        is_valid: Its tables are there, and the entry has their present names.
    """

    view: TableName
    entry: StreamEntry
    owner: str
    is_valid: bool


class HiveLedger:
    """The entries: looked up, locked and made."""

    def __init__(
        self,
        server: Server,
        raw_tables: RawTables,
        locks: HiveLocks,
        databases: HiveDatabases,
        views: HiveViews,
    ) -> None:
        self._server, self._raw_tables, self._locks = server, raw_tables, locks
        self._databases, self._views = databases, views

    def stream(self, app_id: str, sink: str) -> StreamEntry | None:
        """See ``StreamLedger``."""
        return view_entry(self._raw_tables.find(self.entry_place(app_id, sink).view), sink)

    def sink(self, tables: Iterable[TableName]) -> str:
        """See ``StreamLedger``."""
        return joint_sink(tables, self._identity)

    def _identity(self, table: TableName) -> str:
        raw = self._raw_tables.find(table)
        return "" if raw is None else convert.identity(raw)

    def streams(self, app_id: str | None = None) -> list[StreamEntry]:
        """See ``StreamLedger``."""
        entries = (noted.entry for noted in self.entries(app_id) if noted.is_valid)
        return sorted(entries, key=lambda entry: (entry.batch.app_id, entry.batch.sink))

    def entry_place(self, app_id: str, sink: str) -> EntryPlace:
        """Return where an entry is or will be: in the view whose name is a hash of the application
        and the tables' identities. If the sink names no tables, or one of them is missing, the
        sink's text takes the place of the identities."""
        tables = sink_tables(sink)
        raws = map(self._raw_tables.find, tables)
        identity = joint_identity(None if raw is None else convert.identity(raw) for raw in raws)
        subject = identity or sink
        if identity and len(tables) > 1:  # the same whether the sink's name has their names or not
            subject = sink_of_identities(identity.split(_BETWEEN))
        key = "\n".join((app_id, subject))
        return EntryPlace(TableName(DATABASE, sha256(key.encode()).hexdigest()[:40]), identity)

    def lock_entry(
        self, own: OwnTxn, view: TableName, pauses_s: Sequence[float] | None = None
    ) -> None:
        """Lock an entry until the transaction ends. Raise LockTimeoutError after the pauses, by
        default a minute."""
        entry_lock = raw_component(
            LockType.EXCL_WRITE, view.database, view.name, None, Operation.SELECT
        )
        if not self._locks.lock_soon(own, [entry_lock], pauses_s or _PAUSES_S):
            raise LockTimeoutError(
                "Another session is noting a batch of the same stream. Run the statement again.",
                txnId=own.id,
            )

    def make_entry(self, place: EntryPlace) -> Any:
        """Create the view of an entry, with an empty property for COMMIT to set, and return the
        server's struct. The database is made, too, if necessary."""
        if self._databases.get_database(DATABASE) is None:
            self._make_database()
        query = ViewText(f"SELECT '{_NOTE}' AS note", f"SELECT '{_NOTE}' AS `note`")
        note = Column("note", "string")
        view = Table(place.view, "", (note,), is_transactional=False, view=query,
                     properties={_ENTRY: "", _TABLE: place.identity})  # fmt: skip
        self._views.create_view(view)
        return self._raw_tables.need(place.view)

    def _make_database(self) -> None:
        """Create the database of the ledger; one that exists is no error. Raise CatalogError if the
        user may not."""
        location = f"{self._server.features.warehouse}/{DATABASE}.db"
        try:
            self._databases.create_database(Database(DATABASE, location, "The ledger of streams"))
        except CatalogError as error:
            if self._databases.get_database(DATABASE) is not None:
                return  # another session has made it
            raise CatalogError(
                f"The database {DATABASE}, in which the batches of streams are noted, cannot be "
                "made. Nothing of the batch was written. Let somebody who may do so say CREATE "
                f"DATABASE {DATABASE}. {error.message}",
                condition=error.condition, sqlstate=error.sqlstate, database=DATABASE,
            ) from error  # fmt: skip

    def entries(self, app_id: str | None = None) -> list[NotedEntry]:
        """Return the entries, of one application or of all, with the present names of their sinks;
        entries whose tables have gone keep the old name, and are not valid. Views without an entry
        are left out. The list is empty if there is no database of the ledger."""
        try:
            raws = list(self._raw_tables.named_tables(DATABASE, self._views.views(DATABASE)))
        except CatalogError as error:
            if is_missing(error):
                return []
            raise
        raws_and_entries = [
            (raw, entry) for raw in raws if (entry := view_entry(raw, None)) is not None
        ]
        ours = [pair for pair in raws_and_entries if app_id in (None, pair[1].batch.app_id)]
        identities = self._identities_of(
            {name for _, entry in ours for name in sink_tables(entry.batch.sink)}
        )
        tables = cache(self._tables_by_identity)  # asked once, and only if a table has moved
        noted = []
        for raw, entry in ours:
            # No identity is the same as an empty one: a server on Oracle leaves out empty ones.
            identity = raw.parameters.get(_TABLE) or ""
            sink: str | None = entry.batch.sink
            if (
                identity
                and joint_identity(map(identities.get, sink_tables(entry.batch.sink))) != identity
            ):
                sink = _sink_now(identity, tables())
            now = entry if sink is None else replace(entry, batch=replace(entry.batch, sink=sink))
            noted.append(
                NotedEntry(TableName(DATABASE, raw.tableName), now, raw.owner, sink is not None)
            )
        return noted

    def _identities_of(self, names: Iterable[TableName]) -> dict[TableName, str]:
        """Return the identities of those of these tables and views that exist, in one call for each
        database: name → identity."""
        by_database: dict[str, list[str]] = {}
        for name in names:
            by_database.setdefault(name.database, []).append(name.name)
        databases = by_database.keys() & set(self._databases.names())
        return {
            TableName(database, raw.tableName): convert.identity(raw)
            for database in databases
            for raw in self._raw_tables.named_tables(database, by_database[database])
        }

    def _tables_by_identity(self) -> dict[str, TableName]:
        """Return all ACID tables of the server: identity, which tells it from a later table of its
        name → name."""
        return {
            convert.identity(raw): TableName(raw.dbName, raw.tableName)
            for database in self._databases.names()
            for raw in self._raw_tables.acid_tables(database)
        }


def joint_identity(identities: Iterable[str | None]) -> str:
    """Return the identities of some tables, which tell them from later ones of their names, as one
    text, sorted and with commas between; "" if there are none, or if one is None."""
    all_identities = list(identities)
    known_identities = [identity for identity in all_identities if identity is not None]
    return (
        _BETWEEN.join(sorted(known_identities))
        if len(known_identities) == len(all_identities)
        else ""
    )


def _sink_now(identity: str, tables: Mapping[str, TableName]) -> str | None:
    """Return the present name of a sink of these tables; None: one of them has gone. ``identity``:
    their joint identity; ``tables``: all tables by identity."""
    names_or_none = [tables.get(table_identity) for table_identity in identity.split(_BETWEEN)]
    names = [name for name in names_or_none if name is not None]
    if len(names) < len(names_or_none):
        return None
    identities = {name: table_identity for table_identity, name in tables.items()}
    return joint_sink(names, identities.__getitem__)


def entry_state(batch: Batch | None) -> tuple[int, str] | None:
    """The version and run of an entry, by which two states of the entry differ."""
    return None if batch is None else (batch.version, batch.run_id)


def commit_property(raw: Any, entry: StreamEntry) -> Any:
    """The property that COMMIT must set in a view, to record an entry."""
    return hive.CommitTxnKeyValue(tableId=raw.id, key=_ENTRY, value=json.dumps(asdict(entry)))


def view_entry(raw: Any, sink: str | None) -> StreamEntry | None:
    """Return the entry in the properties of a view's struct; None without a struct or an entry, or
    if the entry is still empty. ``sink``: the present name of its sink, which takes the place of
    the noted one; None: not known."""
    text = None if raw is None else (raw.parameters or {}).get(_ENTRY)
    if not text:
        return None
    values = json.loads(text)
    batch = values.pop("batch") | ({} if sink is None else {"sink": sink})
    return StreamEntry(Batch(**batch), **values)
