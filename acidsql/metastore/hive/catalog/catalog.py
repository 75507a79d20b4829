"""Databases and tables in a Hive Metastore: the ``Catalog``, without partitions.

The server checks no transaction when the catalog changes. So a method first sends a heartbeat for
the transaction that holds the lock. The lock, which is EXCLUSIVE, protects the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from acidsql.acid.paths import directory_name, is_same, overlap
from acidsql.acid.table import Table, TableName
from acidsql.errors import CatalogError, MetastoreError, UnsupportedError
from acidsql.metastore.catalog import Database
from acidsql.metastore.foreign import CatalogEntry
from acidsql.metastore.hive.catalog.constraints import HiveConstraints
from acidsql.metastore.hive.catalog.foreign import foreign_table
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.calls import (
    INSERT_ONLY,
    chunks,
    is_missing,
    keeping_statistics,
    no_table,
)
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.owners import Owner, PendingCleanup

_DEFAULT = "default"
NO_CACHED_CONSTRAINTS = ("", None)  # a table's identity, and its constraints
_MOST_USED_UP = 10_000  # write ids, each by a transaction of its own


class HiveCatalog(HiveConstraints):
    """The part of the store about databases and tables; ``Catalog`` describes the methods."""

    # ── databases ────────────────────────────────────────────────────────────────────────────

    def databases(self) -> list[Database]:
        databases = (self.get_database(name) for name in self._database_names())
        return [database for database in databases if database is not None]

    def get_database(self, name: str) -> Database | None:
        """Return a database with the directory of its ACID tables; None if there is none."""
        try:
            raw = self._raw_database(name)
        except CatalogError as error:
            if is_missing(error):
                return None
            raise
        comment = raw.description or None
        return Database(raw.name, self._managed(raw), comment, raw.parameters or {})

    def _raw_database(self, name: str) -> Any:
        # Without a catalog's name the server finds no database.
        request = hive.GetDatabaseRequest(name=name, catalogName=self._catalog)
        return self._call("get_database_req", request)

    def _managed(self, raw: Any) -> str:
        """Return the directory of a database's ACID tables: its ``managedLocationUri``, or if it
        has none, ``<name>.db`` in the server's warehouse (for ``default`` the warehouse itself).
        ``locationUri`` is for external tables."""
        if raw.managedLocationUri:
            return convert.from_server_location(raw.managedLocationUri)
        root = self.features.warehouse
        return root if raw.name == _DEFAULT else f"{root}/{raw.name}.db"

    def create_database(self, database: Database) -> None:
        """Add a database, which the user owns. Raise CatalogError SCHEMA_ALREADY_EXISTS if there is
        one of this name. The server makes the directory; its location is told only if it is not the
        one by default."""
        default = f"{self.features.warehouse}/{directory_name(database.name)}.db"
        is_default = is_same(database.location, default)
        request = hive.CreateDatabaseRequest(
            databaseName=database.name,
            description=database.comment,
            managedLocationUri=None
            if is_default
            else convert.to_server_location(database.location),
            parameters=dict(database.properties),
            catalogName=self._catalog,
            ownerName=self._user,
            ownerType=hive.PrincipalType.USER,
        )
        try:
            self._call("create_database_req", request)
        except CatalogError as error:
            if error.condition != "TABLE_OR_VIEW_ALREADY_EXISTS":
                raise
            raise CatalogError(
                f"There is a database '{database.name}' already.",
                condition="SCHEMA_ALREADY_EXISTS", sqlstate="42P06", database=database.name,
            ) from error  # fmt: skip

    def alter_database(
        self,
        name: str,
        *,
        set_properties: Mapping[str, str] | None = None,
        unset_properties: Sequence[str] = (),
    ) -> None:
        """Set and unset DBPROPERTIES; the others stay. Raise CatalogError SCHEMA_NOT_FOUND."""
        if self.get_database(name) is None:
            raise no_database(name)
        raw = self._raw_database(name)
        parameters = {k: v for k, v in (raw.parameters or {}).items() if k not in unset_properties}
        raw.parameters = {**parameters, **(set_properties or {})}
        self._call("alter_database", self._qualified_database(name), raw)

    def drop_database(
        self, name: str, *, cascade: bool = False, txn_id: int | None = None
    ) -> list[PendingCleanup]:
        """Remove a database, with ``cascade`` its tables and views, too, and let the server delete
        the files; so the list is empty. Raise CatalogError for ``default``, for a name that there
        is not, and without ``cascade`` for a database that is not empty."""
        self._need_open(txn_id)
        if name == _DEFAULT:
            raise CatalogError(
                "The database 'default' cannot be dropped.",
                condition="UNSUPPORTED_FEATURE.DROP_DATABASE", sqlstate="0A000",
            )  # fmt: skip
        if self.get_database(name) is None:
            raise no_database(name)
        try:
            self._call("drop_database", self._qualified_database(name), True, cascade)
        except CatalogError as error:
            if error.condition != "METASTORE_REFUSED" or "is not empty" not in error.message:
                raise
            raise CatalogError(
                f"The database '{name}' is not empty: DROP DATABASE … CASCADE drops its tables.",
                condition="SCHEMA_NOT_EMPTY", sqlstate="2BP01", database=name,
            ) from error  # fmt: skip
        return []

    # ── tables ───────────────────────────────────────────────────────────────────────────────

    def tables(self, database: str) -> list[str]:
        return sorted(raw.tableName for raw in self._raw_acid_tables(database))

    def temporary_tables(self) -> list[TableName]:
        return []

    def _raw_acid_tables(self, database: str) -> Iterator[Any]:
        """Fetch the ACID tables of a database, insert-only ones included, as the server's structs.
        No views."""
        names = self._call(
            "get_tables_by_type", self._qualified_database(database), "*", convert.MANAGED
        )
        return filter(convert.is_transactional, self._raw_tables(database, names))

    def _raw_tables(self, database: str, names: Sequence[str]) -> Iterator[Any]:
        """Yield the server's structs of those tables and views of a database that have one of these
        names; a name that does not exist is left out."""
        for named_chunk in chunks(names):
            request = hive.GetTablesRequest(
                dbName=database,
                tblNames=named_chunk,
                catName=self._catalog,
                capabilities=INSERT_ONLY,
            )
            yield from self._call("get_table_objects_by_name_req", request).tables

    def find(self, name: TableName) -> CatalogEntry:
        return self._catalog_entry(name, NO_CACHED_CONSTRAINTS)

    def glance(self, name: TableName) -> CatalogEntry:
        return self._catalog_entry(name, self._cached_constraints.get(name, NO_CACHED_CONSTRAINTS))

    def _catalog_entry(self, name: TableName, cached_constraints: tuple[str, Any]) -> CatalogEntry:
        """Return the entry of a name: an ACID table, a view, another table, or None.
        ``cached_constraints`` (identity, struct) are used if the identity is the table's; otherwise
        the server is asked."""
        raw = self._raw(name)
        if raw is None:
            return None
        if convert.is_view(raw):
            return convert.view_of(raw)
        is_acid = convert.is_transactional(raw)
        return (
            self._acid_table(name, raw, cached_constraints) if is_acid else foreign_table(name, raw)
        )

    def _acid_table(
        self, name: TableName, raw: Any, cached_constraints: tuple[str, Any]
    ) -> Table | None:
        """Return the ACID table in a struct of the server; None if it was dropped in the meantime.
        Over Hive 3 it has ZLIB unless it names another compression.

        Cached constraints are used if they have the identity of this table. A caller that holds a
        lock passes none: another thread may have cached an answer from before the lock.

        Raises:
            UnsupportedError: Its files are neither ORC nor Parquet.
        """
        cached_identity, constraints = cached_constraints
        if cached_identity != convert.identity(raw):
            try:
                constraints = self._raw_constraints(name)
            except CatalogError as error:
                if is_missing(error):
                    return None  # it was dropped between the two calls
                raise
            self._cached_constraints[name] = (convert.identity(raw), constraints)
        table = convert.table_of(raw, constraints)
        if not convert.is_known_format(table.file_format):
            raise UnsupportedError(
                f"The ACID table {name} has files of the format {table.file_format}, which "
                "acidsql can neither read nor write.",
                condition="UNSUPPORTED_FEATURE.FILE_FORMAT",
            )
        return table.with_zlib() if self.features.is_hive3 else table

    def create_table(
        self, table: Table, *, first_write_id: int = 1, txn_id: int | None = None
    ) -> None:
        self._create(table, first_write_id, txn_id, None)

    def _create(
        self, table: Table, first_write_id: int, txn_id: int | None, rows: int | None
    ) -> None:
        """Create a table on the server, whose write ids begin at ``first_write_id`` or above.
        ``rows``: the number of rows in the table; None: not known.

        Raises:
            CatalogError: The location overlaps another table's; there is no such database or a
                table of the name; or the server has made another table than requested, which is
                dropped again.
        """
        self._need_open(txn_id)
        for owner in self.owners():
            if overlap(owner.location, table.location):  # DROP deletes all that is inside
                raise owner.refusal(table.location)
        if first_write_id > 1:
            # Before the table exists: no writer may get a write id that existing files have.
            self._seed_write_ids(table.name, first_write_id - 1)
        request = hive.CreateTableRequest(
            table=convert.raw_table(table, self._user, self._catalog, rows),
            envContext=keeping_statistics(),
            notNullConstraints=[
                *convert.not_null_constraints(table.name, table.all_columns, self._catalog),
                *convert.unenforced_constraints(table.name, table.constraints, self._catalog),
            ],
            defaultConstraints=convert.default_constraints(
                table.name, table.all_columns, self._catalog
            ),
            checkConstraints=convert.check_constraints(
                table.name, table.constraints, self._catalog
            ),
            processorCapabilities=convert.CAPABILITIES,
            processorIdentifier=f"acidsql@{self._user}",
        )
        self._create_on_server(request, table.name.database)
        self._check_created(table)

    def _create_on_server(self, request: Any, database: str) -> None:
        """Send a request to create a table or view. Raise CatalogError if there is no such
        database, or the server refuses."""
        try:
            self._call("create_table_req", request)
        except CatalogError as error:
            if self.get_database(database) is None:
                raise no_database(database) from error
            raise

    def _seed_write_ids(self, name: TableName, last_write_id: int) -> None:
        """Let a new table's write ids begin above ``last_write_id``.

        A creation that failed may have left write ids. The server does not seed a second time, so
        transactions use up the write ids up to ``last_write_id``, at most 10,000. With more, the
        server's refusal is raised.
        """
        request = hive.SeedTableWriteIdsRequest(
            dbName=name.database, tableName=name.name, seedWriteId=last_write_id
        )
        try:
            self._call("seed_write_id", request)
        except (CatalogError, MetastoreError, UnsupportedError):  # Hive 3 does not know the call
            ids_request = hive.GetValidWriteIdsRequest(fullTableNames=[str(name)], validTxnList="")
            (valid_ids,) = self._call("get_valid_write_ids", ids_request).tblValidWriteIds
            missing = last_write_id - valid_ids.writeIdHighWaterMark
            if missing > _MOST_USED_UP:
                raise
            for _ in range(missing):
                self._use_up_a_write_id(name)

    def _use_up_a_write_id(self, name: TableName) -> None:
        """Allocate the next write id of a table, in a transaction that then commits without having
        written."""
        open_request = hive.OpenTxnRequest(
            num_txns=1, user=self._user, hostname="", agentInfo="acidsql",
            txn_type=hive.TxnType.DEFAULT,
        )  # fmt: skip
        (txn_id,) = self._call("open_txns", open_request).txn_ids
        ids_request = hive.AllocateTableWriteIdsRequest(
            dbName=name.database, tableName=name.name, txnIds=[txn_id]
        )
        self._call("allocate_table_write_ids", ids_request)
        self._call("commit_txn", hive.CommitTxnRequest(txnid=txn_id, exclWriteEnabled=True))

    def _check_created(self, table: Table) -> None:
        """Check that the server has made a new table as an ACID table in its directory. Otherwise
        drop it, with its files if they are in another directory, and raise CatalogError."""
        raw = self._need_raw(table.name)
        location = convert.from_server_location(raw.sd.location)
        if convert.is_transactional(raw) and is_same(location, table.location):
            return
        self._drop(table.name, delete_data=not is_same(location, table.location))
        raise CatalogError(
            f"The metastore made {table.name} in '{location}' instead of '{table.location}', or as "
            "another kind of table than an ACID table. It was dropped again.",
            condition="METASTORE_REFUSED", sqlstate="38000", table=table.name,
        )  # fmt: skip

    def drop_table(
        self, name: TableName, *, txn_id: int | None = None, delete_data: bool = True
    ) -> None:
        if convert.is_view(self._need_raw(name)):
            raise no_table(name)
        self._drop_existing(name, txn_id, delete_data)

    def _drop_existing(self, name: TableName, txn_id: int | None, delete_data: bool) -> None:
        """Drop a table that has been looked up already and is no view. Raise CatalogError if it is
        gone, and TxnAbortedError or NoSuchTxnError if the transaction, which holds its lock, has
        ended."""
        self._need_open(txn_id)
        try:
            self._drop(name, delete_data=delete_data)
        except CatalogError as error:
            if is_missing(error):
                raise no_table(name) from error
            raise

    def _drop(self, name: TableName, *, delete_data: bool) -> None:
        """Let the server drop a table or view, with its partitions; ``delete_data``: and its
        files."""
        request = hive.DropTableRequest(
            catalogName=self._catalog,
            dbName=name.database,
            tableName=name.name,
            deleteData=delete_data,
            dropPartitions=True,
        )
        self._call("drop_table_req", request)

    def rename_table(
        self, name: TableName, new_name: TableName, *, txn_id: int | None = None
    ) -> None:
        self._rename_existing(self._need_raw(name), new_name, txn_id)

    def _rename_existing(self, raw: Any, new_name: TableName, txn_id: int | None) -> None:
        """Rename a table that has been looked up already; ``raw`` is the server's struct, which is
        changed, too.

        The server moves the directory if the directory has the table's name.

        Raises:
            CatalogError: The new name is taken, or there is no such database.
        """
        self._need_open(txn_id)
        name = TableName(raw.dbName, raw.tableName)
        raw.dbName, raw.tableName = new_name.database, new_name.name
        try:
            self._alter(name, raw)
        except CatalogError as error:
            if self._raw(new_name) is not None:
                raise CatalogError(
                    f"There is a table {new_name} already.",
                    condition="TABLE_OR_VIEW_ALREADY_EXISTS", sqlstate="42P07", table=new_name,
                ) from error  # fmt: skip
            if self.get_database(new_name.database) is None:
                raise no_database(new_name.database) from error
            raise

    def owners(self) -> list[Owner]:
        """Return the ACID tables of all databases with their directories. Views and plain tables
        are left out."""
        return [
            Owner(
                TableName(raw.dbName, raw.tableName), convert.from_server_location(raw.sd.location)
            )
            for database in self._database_names()
            for raw in self._raw_acid_tables(database)
        ]

    # ── directories that are to be deleted: the server deletes them itself ───────────────────

    def pending_cleanups(self) -> list[PendingCleanup]:
        return []

    def queue_cleanup(self, name: TableName, location: str, *, txn_id: int | None = None) -> None:
        self._need_open(txn_id)

    def mark_cleaned(self, cleanup_id: int) -> None:
        """Do nothing: there are no clean-ups."""

    def _need_open(self, txn_id: int | None) -> None:
        if txn_id is not None:
            self.heartbeat(txn_id)


def no_database(name: str) -> CatalogError:
    """Make the error SCHEMA_NOT_FOUND."""
    return CatalogError(
        f"There is no database '{name}'.",
        condition="SCHEMA_NOT_FOUND", sqlstate="42704", database=name,
    )  # fmt: skip
