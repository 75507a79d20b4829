"""Tables in a Hive Metastore, without partitions.

The server checks no transaction when the catalog changes. So a method first sends a heartbeat for
the transaction that holds the lock. The lock, which is EXCLUSIVE, protects the change.
"""

from __future__ import annotations

from typing import Any

from acidsql.acid.paths import is_same, overlap
from acidsql.acid.table import Table, TableName
from acidsql.errors import CatalogError, MetastoreError, UnsupportedError
from acidsql.metastore.foreign import CatalogEntry
from acidsql.metastore.hive.catalog.constraints import HiveConstraints
from acidsql.metastore.hive.catalog.databases import HiveDatabases, no_database
from acidsql.metastore.hive.catalog.foreign import foreign_table
from acidsql.metastore.hive.locking.numbers import HiveNumbers
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.raw_tables import RawTables, keeping_statistics, no_table
from acidsql.metastore.hive.wire.server import Server, is_missing
from acidsql.metastore.owners import Owner, PendingCleanup

_NO_CACHED_CONSTRAINTS = ("", None)  # a table's identity, and its constraints
_MOST_USED_UP = 10_000  # write ids, each by a transaction of its own


class HiveTables:
    """The part of the store about tables; ``Catalog`` describes the methods."""

    def __init__(
        self,
        server: Server,
        raw_tables: RawTables,
        numbers: HiveNumbers,
        databases: HiveDatabases,
        constraints: HiveConstraints,
    ) -> None:
        self._server, self._raw_tables, self._numbers = server, raw_tables, numbers
        self._databases, self._constraints = databases, constraints
        # At the last look at each table, with what tells the table from a later one of its name.
        self._cached_constraints: dict[TableName, tuple[str, Any]] = {}

    def tables(self, database: str) -> list[str]:
        return sorted(raw.tableName for raw in self._raw_tables.acid_tables(database))

    def temporary_tables(self) -> list[TableName]:
        return []

    def find(self, name: TableName) -> CatalogEntry:
        return self._catalog_entry(name, _NO_CACHED_CONSTRAINTS)

    def glance(self, name: TableName) -> CatalogEntry:
        return self._catalog_entry(name, self._cached_constraints.get(name, _NO_CACHED_CONSTRAINTS))

    def _catalog_entry(self, name: TableName, cached_constraints: tuple[str, Any]) -> CatalogEntry:
        """Return the entry of a name: an ACID table, a view, another table, or None.
        ``cached_constraints`` (identity, struct) are used if the identity is the table's; otherwise
        the server is asked."""
        raw = self._raw_tables.find(name)
        if raw is None:
            return None
        if convert.is_view(raw):
            return convert.view_of(raw)
        is_acid = convert.is_transactional(raw)
        return (
            self.acid_table(name, raw, cached_constraints) if is_acid else foreign_table(name, raw)
        )

    def acid_table(
        self,
        name: TableName,
        raw: Any,
        cached_constraints: tuple[str, Any] = _NO_CACHED_CONSTRAINTS,
    ) -> Table | None:
        """Return the ACID table in a struct of the server; None if it was dropped in the meantime.
        Over Hive 3 it has ZLIB unless it names another compression.

        Cached constraints are used if they have the identity of this table. Otherwise the server is
        asked, and its answer is cached. A caller that holds a lock passes none: another thread may
        have cached an answer from before the lock.

        Raises:
            UnsupportedError: Its files are neither ORC nor Parquet.
        """
        cached_identity, constraints = cached_constraints
        if cached_identity != convert.identity(raw):
            try:
                constraints = self._constraints.fetch(name)
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
        return table.with_zlib() if self._server.features.is_hive3 else table

    def create_table(
        self,
        table: Table,
        *,
        first_write_id: int = 1,
        txn_id: int | None = None,
        rows: int | None = None,
    ) -> None:
        """Create a table on the server, whose write ids begin at ``first_write_id`` or above.
        ``rows``: the number of rows in the table; None: not known.

        Raises:
            CatalogError: The location overlaps another table's; there is no such database or a
                table of the name; or the server has made another table than requested, which is
                dropped again.
        """
        self._numbers.need_open(txn_id)
        for owner in self.owners():
            if overlap(owner.location, table.location):  # DROP deletes all that is inside
                raise owner.refusal(table.location)
        if first_write_id > 1:
            # Before the table exists: no writer may get a write id that existing files have.
            self._seed_write_ids(table.name, first_write_id - 1)
        request = hive.CreateTableRequest(
            table=convert.raw_table(table, self._server.user, self._server.catalog, rows),
            envContext=keeping_statistics(),
            notNullConstraints=[
                *convert.not_null_constraints(table.name, table.all_columns, self._server.catalog),
                *convert.unenforced_constraints(
                    table.name, table.constraints, self._server.catalog
                ),
            ],
            defaultConstraints=convert.default_constraints(
                table.name, table.all_columns, self._server.catalog
            ),
            checkConstraints=convert.check_constraints(
                table.name, table.constraints, self._server.catalog
            ),
            processorCapabilities=convert.CAPABILITIES,
            processorIdentifier=f"acidsql@{self._server.user}",
        )
        self.create_on_server(request, table.name.database)
        self._check_created(table)

    def create_on_server(self, request: Any, database: str) -> None:
        """Send a request to create a table or view. Raise CatalogError if there is no such
        database, or the server refuses."""
        try:
            self._server.call("create_table_req", request)
        except CatalogError as error:
            if self._databases.get_database(database) is None:
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
            self._server.call("seed_write_id", request)
        except (CatalogError, MetastoreError, UnsupportedError):  # Hive 3 does not know the call
            ids_request = hive.GetValidWriteIdsRequest(fullTableNames=[str(name)], validTxnList="")
            (valid_ids,) = self._server.call("get_valid_write_ids", ids_request).tblValidWriteIds
            missing = last_write_id - valid_ids.writeIdHighWaterMark
            if missing > _MOST_USED_UP:
                raise
            for _ in range(missing):
                self._use_up_a_write_id(name)

    def _use_up_a_write_id(self, name: TableName) -> None:
        """Allocate the next write id of a table, in a transaction that then commits without having
        written."""
        open_request = hive.OpenTxnRequest(
            num_txns=1, user=self._server.user, hostname="", agentInfo="acidsql",
            txn_type=hive.TxnType.DEFAULT,
        )  # fmt: skip
        (txn_id,) = self._server.call("open_txns", open_request).txn_ids
        ids_request = hive.AllocateTableWriteIdsRequest(
            dbName=name.database, tableName=name.name, txnIds=[txn_id]
        )
        self._server.call("allocate_table_write_ids", ids_request)
        self._server.call("commit_txn", hive.CommitTxnRequest(txnid=txn_id, exclWriteEnabled=True))

    def _check_created(self, table: Table) -> None:
        """Check that the server has made a new table as an ACID table in its directory. Otherwise
        drop it, with its files if they are in another directory, and raise CatalogError."""
        raw = self._raw_tables.need(table.name)
        location = convert.from_server_location(raw.sd.location)
        if convert.is_transactional(raw) and is_same(location, table.location):
            return
        self.drop(table.name, delete_data=not is_same(location, table.location))
        raise CatalogError(
            f"The metastore made {table.name} in '{location}' instead of '{table.location}', or as "
            "another kind of table than an ACID table. It was dropped again.",
            condition="METASTORE_REFUSED", sqlstate="38000", table=table.name,
        )  # fmt: skip

    def drop_table(
        self, name: TableName, *, txn_id: int | None = None, delete_data: bool = True
    ) -> None:
        if convert.is_view(self._raw_tables.need(name)):
            raise no_table(name)
        self.drop_existing(name, txn_id, delete_data)

    def drop_existing(self, name: TableName, txn_id: int | None, delete_data: bool) -> None:
        """Drop a table that has been looked up already and is no view. Raise CatalogError if it is
        gone, and TxnAbortedError or NoSuchTxnError if the transaction, which holds its lock, has
        ended."""
        self._numbers.need_open(txn_id)
        try:
            self.drop(name, delete_data=delete_data)
        except CatalogError as error:
            if is_missing(error):
                raise no_table(name) from error
            raise

    def drop(self, name: TableName, *, delete_data: bool) -> None:
        """Let the server drop a table or view, with its partitions; ``delete_data``: and its
        files."""
        request = hive.DropTableRequest(
            catalogName=self._server.catalog,
            dbName=name.database,
            tableName=name.name,
            deleteData=delete_data,
            dropPartitions=True,
        )
        self._server.call("drop_table_req", request)

    def rename_table(
        self, name: TableName, new_name: TableName, *, txn_id: int | None = None
    ) -> None:
        self.rename_existing(self._raw_tables.need(name), new_name, txn_id)

    def rename_existing(self, raw: Any, new_name: TableName, txn_id: int | None) -> None:
        """Rename a table that has been looked up already; ``raw`` is the server's struct, which is
        changed, too.

        The server moves the directory if the directory has the table's name.

        Raises:
            CatalogError: The new name is taken, or there is no such database.
        """
        self._numbers.need_open(txn_id)
        name = TableName(raw.dbName, raw.tableName)
        raw.dbName, raw.tableName = new_name.database, new_name.name
        try:
            self._raw_tables.alter(name, raw)
        except CatalogError as error:
            if self._raw_tables.find(new_name) is not None:
                raise CatalogError(
                    f"There is a table {new_name} already.",
                    condition="TABLE_OR_VIEW_ALREADY_EXISTS", sqlstate="42P07", table=new_name,
                ) from error  # fmt: skip
            if self._databases.get_database(new_name.database) is None:
                raise no_database(new_name.database) from error
            raise

    def owners(self) -> list[Owner]:
        """Return the ACID tables of all databases with their directories. Views and plain tables
        are left out."""
        return [
            Owner(
                TableName(raw.dbName, raw.tableName), convert.from_server_location(raw.sd.location)
            )
            for database in self._databases.names()
            for raw in self._raw_tables.acid_tables(database)
        ]

    # ── directories that are to be deleted: the server deletes them itself ───────────────────

    def pending_cleanups(self) -> list[PendingCleanup]:
        return []

    def queue_cleanup(self, name: TableName, location: str, *, txn_id: int | None = None) -> None:
        self._numbers.need_open(txn_id)

    def mark_cleaned(self, cleanup_id: int) -> None:
        """Do nothing: there are no clean-ups."""
