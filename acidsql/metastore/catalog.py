"""The Protocol of the catalog: databases, tables, partitions. Import it from ``interface``.

``interface`` explains the words with which each method says how it may be retried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from acidsql.acid.constraints import Constraint
from acidsql.acid.table import Column, Partition, SortColumn, Table, TableName
from acidsql.metastore.foreign import CatalogEntry, ForeignTable
from acidsql.metastore.owners import Owner, PendingCleanup
from acidsql.suggestions import names_question


@dataclass(frozen=True, slots=True)
class Database:
    """A database and its directory, in which its tables lie by default."""

    name: str
    location: str
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


class Catalog(Protocol):
    """Databases, tables, partitions.

    ``txn_id`` is the transaction that holds the lock of the table to change. In the same step as
    the change, the method makes sure that this transaction is still open (TxnAbortedError,
    NoSuchTxnError). So a session that slept until others took its lock changes nothing. None: no
    other session uses the store, and the method checks no transaction.
    """

    @property
    def url(self) -> str:
        """Where the metastore is, without a password."""

    def databases(self) -> list[Database]:
        """Return all databases, sorted by name. *Read-only.*"""

    def get_database(self, name: str) -> Database | None:
        """Return the database of this name, or None. *Read-only.*"""

    def create_database(self, database: Database) -> None:
        """Add a database. *Cannot-retry.* Raises CatalogError SCHEMA_ALREADY_EXISTS (42P06)."""

    def alter_database(
        self,
        name: str,
        *,
        set_properties: Mapping[str, str] | None = None,
        unset_properties: Sequence[str] = (),
    ) -> None:
        """Change DBPROPERTIES; the others stay. *Cannot-retry.* Raises CatalogError
        SCHEMA_NOT_FOUND (42704)."""

    def drop_database(
        self, name: str, *, cascade: bool = False, txn_id: int | None = None
    ) -> list[PendingCleanup]:
        """Remove an empty database, or with ``cascade`` its tables and views too, in one step.
        *Cannot-retry.* Returns the directories of the tables, which are queued for deletion; none
        if the metastore deletes them itself. Raises CatalogError SCHEMA_NOT_FOUND (42704) or
        SCHEMA_NOT_EMPTY (2BP01)."""

    def tables(self, database: str) -> list[str]:
        """Return the names of a database's ACID tables, in alphabetical order, without temporary
        ones and views. *Read-only.*"""

    def temporary_tables(self) -> list[TableName]:
        """Return the temporary tables of all sessions, under the names that the metastore keeps
        (``TableName.session_txn_id``). *Read-only.*"""

    def find(self, name: TableName) -> CatalogEntry:
        """Return the entry of a name: an ACID table or a view (both as a ``Table``), another table
        (``ForeignTable``), or None if there is no such name. *Read-only.* A metastore that has only
        ACID tables and views returns no ``ForeignTable``."""

    def with_partitions(self, table: ForeignTable) -> ForeignTable:
        """Return a copy of a table from ``find``, with all of its partitions. If acidsql cannot
        read one of them, the copy's ``refusal`` says so. *Read-only.*"""

    def make_transactional(
        self, name: TableName, rows: Mapping[str, int], *, txn_id: int | None = None
    ) -> None:
        """Turn the ``ForeignTable`` of this name into a full-ACID table. *Idempotent.* The caller
        has checked the files: they are the table's rows, with write id 0. ``rows``: directory (of a
        partition, or of the unpartitioned table) → number of rows."""

    def glance(self, name: TableName) -> CatalogEntry:
        """Return the entry of a name as ``find`` does, but NOT NULL, DEFAULT and CHECK may be those
        of an earlier answer, and out of date. *Read-only.*

        A Hive Metastore needs a call of its own for these constraints, and reads do not need them.
        A writer compares the table with ``find`` under a lock.
        """

    def create_table(
        self, table: Table, *, first_write_id: int = 1, txn_id: int | None = None
    ) -> None:
        """Add a table. *Cannot-retry.*

        Write ids begin at ``first_write_id``, or above those of a dropped table of the same name.
        Raises CatalogError TABLE_OR_VIEW_ALREADY_EXISTS (42P07), SCHEMA_NOT_FOUND (42704), or
        LOCATION_ALREADY_EXISTS (42710) if the location is, lies in, or contains the directory of
        another table, or of a dropped table whose directory is not deleted yet.
        """

    def drop_table(
        self, name: TableName, *, txn_id: int | None = None, delete_data: bool = True
    ) -> PendingCleanup | None:
        """Remove a table and its partitions, and queue its directory for deletion, in one step.
        *Cannot-retry.* The write ids of a later table of that name begin above those of this one.
        None: the metastore has deleted the directory itself, and forgotten the write ids; or
        ``delete_data`` is false: the directory stays, because it belongs to another metastore now.
        Raises CatalogError TABLE_OR_VIEW_NOT_FOUND (42P01)."""

    def rename_table(
        self, name: TableName, new_name: TableName, *, txn_id: int | None = None
    ) -> None:
        """Change a table's name everywhere, also in the rows of transactions. The directory stays,
        unless the metastore moves it. *Cannot-retry.* Raises as ``drop_table`` and
        ``create_table``."""

    def alter_table(
        self,
        name: TableName,
        *,
        columns: Sequence[Column] | None = None,
        bucket_columns: Sequence[str] | None = None,
        sort_columns: Sequence[SortColumn] | None = None,
        add_columns: Sequence[Column] = (),
        set_properties: Mapping[str, str] | None = None,
        unset_properties: Sequence[str] = (),
        constraints: Sequence[Constraint] | None = None,
        cdc_table: Table | None = None,
        txn_id: int | None = None,
    ) -> None:
        """Change a table in one step. *Cannot-retry.* ``columns`` replace the data columns,
        ``bucket_columns`` and ``sort_columns`` those of CLUSTERED BY and SORTED BY, and
        ``constraints`` all constraints; None keeps them. ``add_columns`` are appended.
        ``cdc_table``: a table of AUTO CDC beside the table (``acid.cdc``), with its new columns,
        bucketing columns and properties. A metastore that changes one table in a call changes the
        ``cdc_table`` first. Raises CatalogError if the table is missing, or would have a column
        twice (COLUMN_ALREADY_EXISTS, 42711)."""

    def statistics(self, name: TableName) -> Mapping[str, str]:
        """Return the entries (key → text) that ``keep_statistics`` has noted for a table; empty if
        there is no such table. *Read-only.*"""

    def keep_statistics(
        self, name: TableName, entries: Mapping[str, str], *, txn_id: int | None = None
    ) -> None:
        """Store entries (key → text) of statistics about a table, beside its properties.
        *Idempotent.* Entries with the same keys are replaced, others stay. The transaction has a
        lock that keeps others from dropping the table. Raises CatalogError TABLE_OR_VIEW_NOT_FOUND
        (42P01)."""

    def foreign_keys_to(self, name: TableName) -> list[tuple[TableName, Constraint]]:
        """Return the FOREIGN KEYs of other tables that refer to a table, as pairs of the other
        table's name and the key, sorted by that name. *Read-only.*"""

    def views(self, database: str) -> list[str]:
        """Return the names of a database's views, in alphabetical order. *Read-only.*"""

    def create_view(self, view: Table, *, replace: bool = False, txn_id: int | None = None) -> None:
        """Add a view. With ``replace``, it takes the place of a view of its name, in one step.
        *Cannot-retry.* Raises CatalogError TABLE_OR_VIEW_ALREADY_EXISTS (42P07), or
        SCHEMA_NOT_FOUND (42704)."""

    def drop_view(self, name: TableName, *, txn_id: int | None = None) -> None:
        """Remove a view. *Cannot-retry.* Raises CatalogError TABLE_OR_VIEW_NOT_FOUND (42P01)."""

    def rename_view(
        self, name: TableName, new_name: TableName, *, txn_id: int | None = None
    ) -> None:
        """Change a view's name. *Cannot-retry.* Raises CatalogError TABLE_OR_VIEW_NOT_FOUND
        (42P01), TABLE_OR_VIEW_ALREADY_EXISTS (42P07), or SCHEMA_NOT_FOUND (42704)."""

    def partitions(self, name: TableName) -> list[Partition]:
        """Return all partitions of a table, sorted by values. *Read-only.*"""

    def owners(self) -> list[Owner]:
        """Return all tables with their directories, and the directories of dropped tables that are
        not deleted yet. *Read-only.*"""

    def pending_cleanups(self) -> list[PendingCleanup]:
        """Return the queued directories, which are still to be deleted. *Read-only.*"""

    def queue_cleanup(
        self, name: TableName, location: str, *, txn_id: int | None = None
    ) -> PendingCleanup | None:
        """Queue the directory of a table before the table is made, so that the directory is
        deleted if the table never comes (``Commit.cleanup_id`` takes it from the queue).
        *Cannot-retry.* None: the metastore has no such queue. Raises CatalogError
        LOCATION_ALREADY_EXISTS, as ``create_table``."""

    def mark_cleaned(self, cleanup_id: int) -> None:
        """Take a directory that was deleted from the queue. *Idempotent.*"""


def missing_database_text(catalog: Catalog, name: str) -> str:
    """Return the sentence that there is no database with a name, and the similar names that there
    are, for the message of an error."""
    names = [database.name for database in catalog.databases()]
    return f"There is no database '{name}'.{names_question(name, names)}"


def all_tables(catalog: Catalog) -> list[TableName]:
    """Return the ACID tables of all databases, by database and name, without temporary ones and
    views."""
    return [
        TableName(database.name, table)
        for database in catalog.databases()
        for table in catalog.tables(database.name)
    ]
