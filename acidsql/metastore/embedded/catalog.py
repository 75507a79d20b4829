"""Databases and tables: ``Catalog`` over Hive's catalog tables.

Each method is one store transaction. ``partitions`` has the partitions, ``cleanups`` the
directories of dropped tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, delete, insert, update

from acidsql.acid import cdc
from acidsql.acid.constraints import Constraint
from acidsql.acid.table import Column, Partition, SortColumn, Table, TableName
from acidsql.errors import CatalogError
from acidsql.metastore.embedded import partitions, tables, views
from acidsql.metastore.embedded.database import rows
from acidsql.metastore.embedded.database.engine import Store
from acidsql.metastore.embedded.database.schema import (
    COMPLETED_TXN_COMPONENTS,
    DBS,
    MANAGED_TABLE,
    TBLS,
    TXN_COMPONENTS,
    VIRTUAL_VIEW,
    WRITE_SET,
)
from acidsql.metastore.embedded.records import (
    catalog_history,
    cleanups,
    compaction_rows,
    streams,
    write_ids,
)
from acidsql.metastore.embedded.txns import need_open
from acidsql.metastore.foreign import ForeignTable
from acidsql.metastore.interface import Database
from acidsql.metastore.owners import Owner, PendingCleanup

DEFAULT_DATABASE = "default"


_ONLY_ACID = "all tables of the embedded metastore are ACID tables"


class EmbeddedCatalog(views.EmbeddedViews):
    """The ``Catalog`` of the embedded metastore; the methods are described there."""

    _store: Store

    @contextmanager
    def _write(self, txn_id: int | None) -> Iterator[Connection]:
        """Begin a store transaction that writes. Raise TxnAbortedError or NoSuchTxnError if the
        transaction ``txn_id`` is not open, so that it has lost its locks; None: do not check."""
        with self._store.write() as connection:
            if txn_id is not None:
                need_open(connection, txn_id)
            yield connection

    # ── databases ────────────────────────────────────────────────────────────────────────────

    def databases(self) -> list[Database]:
        """Return all databases with their properties, sorted by name."""
        with self._store.read() as connection:
            return tables.databases(connection)

    def get_database(self, name: str) -> Database | None:
        """Return the database of this name, or None."""
        with self._store.read() as connection:
            databases = tables.databases(connection, DBS.c.NAME == name)
            return databases[0] if databases else None

    def create_database(self, database: Database) -> None:
        """Add a database with its properties. Raise CatalogError SCHEMA_ALREADY_EXISTS if there is
        one of this name. The directory is not made."""
        with self._store.write() as connection:
            if tables.database_id(connection, database.name) is not None:
                raise CatalogError(
                    f"The database '{database.name}' exists already.",
                    condition="SCHEMA_ALREADY_EXISTS",
                    sqlstate="42P06",
                    schemaName=database.name,
                )
            connection.execute(
                insert(DBS).values(
                    NAME=database.name, DB_LOCATION_URI=database.location, DESC=database.comment
                )
            )
            tables.alter_database(connection, database.name, database.properties)

    def alter_database(
        self,
        name: str,
        *,
        set_properties: Mapping[str, str] | None = None,
        unset_properties: Sequence[str] = (),
    ) -> None:
        """Set and remove DBPROPERTIES; the others stay. Raise CatalogError SCHEMA_NOT_FOUND if
        there is no such database."""
        with self._store.write() as connection:
            tables.alter_database(connection, name, set_properties or {}, unset_properties)

    def drop_database(
        self, name: str, *, cascade: bool = False, txn_id: int | None = None
    ) -> list[PendingCleanup]:
        """Remove a database, with ``cascade`` its tables and views, too, and return the queued
        directories of the tables. Raise CatalogError for the database ``default``, for a name that
        there is not, and without ``cascade`` for a database that is not empty: temporary tables of
        any session count."""
        if name == DEFAULT_DATABASE:
            raise CatalogError(
                "The database 'default' cannot be dropped.",
                condition="UNSUPPORTED_FEATURE.DROP_DATABASE",
                sqlstate="0A000",
            )
        with self._write(txn_id) as connection:
            db_id = tables.need_database(connection, name)
            table_names, view_names = (
                rows.table_names(connection, name, kind) for kind in (MANAGED_TABLE, VIRTUAL_VIEW)
            )
            if (table_names or view_names) and not cascade:
                label = (
                    f"the {_table_label(table_names[0])}"
                    if table_names
                    else f"the view '{view_names[0]}'"
                )
                raise CatalogError(
                    f"The database '{name}' is not empty: it has {label}.",
                    condition="SCHEMA_NOT_EMPTY",
                    sqlstate="2BP01",
                    schemaName=name,
                )
            dropped = [
                self._delete_later(
                    connection, table_name, tables.remove(connection, table_name, txn_id)
                )
                for table_name in (TableName(name, table) for table in table_names)
            ]
            for view in view_names:
                views.drop(connection, TableName(name, view), txn_id)
            connection.execute(delete(DBS).where(DBS.c.DB_ID == db_id))
            return dropped

    # ── tables ───────────────────────────────────────────────────────────────────────────────

    def tables(self, database: str) -> list[str]:
        """Return the names of a database's tables, sorted, without temporary ones and views."""
        with self._store.read() as connection:
            names = rows.table_names(connection, database, MANAGED_TABLE)
        return [name for name in names if TableName(database, name).session_txn_id is None]

    def temporary_tables(self) -> list[TableName]:
        """Return the temporary tables of all sessions, under the names that the metastore keeps."""
        with self._store.read() as connection:
            return rows.temporary_tables(connection)

    def find(self, name: TableName) -> Table | None:
        """Return the table or view of this name, or None."""
        with self._store.read() as connection:
            return rows.find(connection, name)

    glance = find

    def with_partitions(self, table: ForeignTable) -> ForeignTable:
        """Raise AssertionError: this metastore has no ForeignTable."""
        raise AssertionError(_ONLY_ACID)

    def make_transactional(
        self, name: TableName, rows: Mapping[str, int], *, txn_id: int | None = None
    ) -> None:
        """Raise AssertionError: all tables of this metastore are ACID tables."""
        raise AssertionError(_ONLY_ACID)

    def create_table(
        self, table: Table, *, first_write_id: int = 1, txn_id: int | None = None
    ) -> None:
        """Add a table, and note this for open snapshots. The directory is not made. Raise
        CatalogError if the name or the location is taken, or there is no such database."""
        with self._write(txn_id) as connection:
            tables.create(connection, table, first_write_id)
            catalog_history.note(connection, txn_id, table.name)

    def drop_table(
        self, name: TableName, *, txn_id: int | None = None, delete_data: bool = True
    ) -> PendingCleanup | None:
        """Remove a table and its tables of AUTO CDC, and queue their directories for deletion.
        Return the entry of the table's own directory; without ``delete_data`` that directory is not
        queued, and the answer is None. Raise CatalogError if there is no such table."""
        with self._write(txn_id) as connection:
            location = tables.drop(connection, name, txn_id, self._store.now_ms(connection))
            return self._delete_later(connection, name, location) if delete_data else None

    def _delete_later(
        self, connection: Connection, name: TableName, location: str
    ) -> PendingCleanup:
        """Queue a directory for deletion, which may happen at once, and return the entry."""
        return cleanups.enqueue(connection, name, location, self._store.now_ms(connection))

    def rename_table(
        self, name: TableName, new_name: TableName, *, txn_id: int | None = None
    ) -> None:
        """Rename a table and those of its tables of AUTO CDC that there are, with all rows about
        them, and note this for open snapshots. Directories stay. Raise CatalogError if there is no
        such table or database, or a new name is taken."""
        with self._write(txn_id) as connection:
            _rename_table(connection, name, new_name, txn_id)
            pairs = zip(cdc.cdc_table_names(name), cdc.cdc_table_names(new_name), strict=True)
            for cdc_table, new_cdc_table in pairs:
                if tables.is_cdc_table(connection, cdc_table):
                    _rename_table(connection, cdc_table, new_cdc_table, txn_id)

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
        """Replace or change the given parts of a table, and a table of AUTO CDC beside it
        (``cdc_table``); None keeps a part. Properties are unset before others are set. Raise
        CatalogError if there is no such table, or a column would be there twice, as data or
        partition column. If names, types or order of data columns change, note this for open
        snapshots."""
        with self._write(txn_id) as connection:
            table_id = rows.need_table(connection, name)
            table = rows.read_table(connection, name, table_id)
            kept_columns = table.columns if columns is None else ()
            column_names = {column.name for column in (*kept_columns, *table.partition_columns)}
            for column in (*(columns or ()), *add_columns):
                if column.name in column_names:
                    raise CatalogError(
                        f"The table '{name}' has a column '{column.name}' already.",
                        condition="COLUMN_ALREADY_EXISTS",
                        sqlstate="42711",
                        columnName=column.name,
                    )
                column_names.add(column.name)
            if columns is not None:
                rows.replace_columns(connection, table_id, columns)
            if bucket_columns is not None:
                rows.replace_bucket_columns(connection, table_id, bucket_columns)
            if sort_columns is not None:
                rows.replace_sort_columns(connection, table_id, sort_columns)
            if constraints is not None:
                rows.replace_constraints(connection, table_id, constraints)
            start = len(table.columns if columns is None else columns)
            rows.add_columns(connection, table_id, add_columns, start=start)
            rows.unset_properties(connection, table_id, unset_properties)
            rows.set_properties(connection, table_id, set_properties or {})
            after = rows.read_table(connection, name, table_id)
            if _names_and_types(after) != _names_and_types(table):
                catalog_history.note(connection, txn_id, name)
            if cdc_table is not None:
                _alter_cdc_table(connection, cdc_table, txn_id)

    def foreign_keys_to(self, name: TableName) -> list[tuple[TableName, Constraint]]:
        """Return the FOREIGN KEYs of other tables that refer to a table, as pairs of the other
        table's name and the key, sorted by that name."""
        with self._store.read() as connection:
            foreign_keys = rows.foreign_keys(connection)
        return [
            (child, key) for child, key in foreign_keys if key.parent == str(name) and child != name
        ]

    def statistics(self, name: TableName) -> dict[str, str]:
        """Return the entries (key → text) that ``keep_statistics`` has stored for a table; empty if
        there is no such table."""
        with self._store.read() as connection:
            table_id = rows.table_id(connection, name)
            return {} if table_id is None else rows.statistics(connection, table_id)

    def keep_statistics(
        self, name: TableName, entries: Mapping[str, str], *, txn_id: int | None = None
    ) -> None:
        """Store entries (key → text) of statistics about a table. Those with the same keys are
        replaced, others stay. Raise CatalogError if there is no such table."""
        with self._write(txn_id) as connection:
            rows.set_statistics(connection, rows.need_table(connection, name), entries)

    def partitions(self, name: TableName) -> list[Partition]:
        """Return a table's partitions, sorted by values; empty if there is no such table."""
        with self._store.read() as connection:
            table_id = rows.table_id(connection, name)
            return [] if table_id is None else partitions.read(connection, table_id)

    # ── directories of dropped tables ────────────────────────────────────────────────────────

    def owners(self) -> list[Owner]:
        """Return all tables with their directories, and the directories of dropped tables that are
        not deleted yet."""
        with self._store.read() as connection:
            return tables.owners(connection)

    def pending_cleanups(self) -> list[PendingCleanup]:
        """Return the queued directories, which are still to be deleted, oldest first."""
        with self._store.read() as connection:
            return cleanups.pending(connection)

    def queue_cleanup(
        self, name: TableName, location: str, *, txn_id: int | None = None
    ) -> PendingCleanup:
        """Queue the directory of a table that is going to be made for deletion, and return the
        entry. Let the name's write ids begin above those of earlier tables in that place. Raise
        CatalogError LOCATION_ALREADY_EXISTS if the directory overlaps another table's."""
        with self._write(txn_id) as connection:
            tables.need_free_location(connection, location)
            # CREATE TABLE … AS SELECT gets a write id before the table exists.
            write_ids.take_over_write_ids(connection, name, location)
            return self._delete_later(connection, name, location)

    def mark_cleaned(self, cleanup_id: int) -> None:
        """Take a directory that was deleted from the queue; one that is gone is no error."""
        with self._store.write() as connection:
            cleanups.remove(connection, cleanup_id)


def _rename_table(
    connection: Connection, name: TableName, new_name: TableName, txn_id: int | None
) -> None:
    """Change a table's name in all rows of the store, but not its directory, nor its tables of AUTO
    CDC, and note for open snapshots that both names have changed. Raise CatalogError if there is no
    such table or database, or the new name is taken, also by a view."""
    table_id = rows.need_table(connection, name)
    db_id = tables.need_database(connection, new_name.database)
    tables.need_no_table(connection, new_name)
    connection.execute(
        update(TBLS).where(TBLS.c.TBL_ID == table_id).values(DB_ID=db_id, TBL_NAME=new_name.name)
    )
    write_ids.rename(connection, name, new_name)
    compaction_rows.rename(connection, name, new_name)
    streams.rename(connection, name, new_name)
    for components, prefix in _COMPONENTS:
        connection.execute(
            update(components)
            .where(write_ids.is_of_table(components, prefix, name))
            .values(
                {
                    f"{prefix}_DATABASE": new_name.database,
                    f"{prefix}_TABLE": new_name.name,
                }
            )
        )
    for changed_name in (name, new_name):
        catalog_history.note(connection, txn_id, changed_name)


def _alter_cdc_table(connection: Connection, cdc_table: Table, txn_id: int | None) -> None:
    """Replace the columns and bucketing columns of a table of AUTO CDC, set the properties of
    ``cdc_table`` (others stay), and note the change for open snapshots. Raise CatalogError if there
    is no such table."""
    table_id = rows.need_table(connection, cdc_table.name)
    rows.replace_columns(connection, table_id, cdc_table.columns)
    rows.replace_bucket_columns(connection, table_id, cdc_table.bucket_columns)
    rows.set_properties(connection, table_id, cdc_table.properties)
    catalog_history.note(connection, txn_id, cdc_table.name)


def _table_label(table: str) -> str:
    """Return how messages name a table: ``table 't'``, and a temporary one, whose number is left
    out of its name, ``table 't', a temporary table of session 7``."""
    name = TableName("", table)
    of_session = (
        ""
        if name.session_txn_id is None
        else f", a temporary table of session {name.session_txn_id}"
    )
    return f"table '{name.shown}'{of_session}"


def _names_and_types(table: Table) -> list[tuple[str, str]]:
    """Return the name and type of each data column of a table, in order. Queries depend on
    these."""
    return [(column.name, column.type) for column in table.columns]


# Locks need no change: only the RENAME itself has a lock on the table.
_COMPONENTS = ((TXN_COMPONENTS, "TC"), (COMPLETED_TXN_COMPONENTS, "CTC"), (WRITE_SET, "WS"))
