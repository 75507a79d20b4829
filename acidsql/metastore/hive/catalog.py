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
from acidsql.metastore.foreign import Found
from acidsql.metastore.hive import convert
from acidsql.metastore.hive.calls import (
    INSERT_ONLY,
    chunks,
    is_missing,
    keeping_statistics,
    no_table,
)
from acidsql.metastore.hive.constraints import HiveConstraints
from acidsql.metastore.hive.foreign import described
from acidsql.metastore.hive.idl import hive
from acidsql.metastore.owners import Owner, PendingCleanup

_DEFAULT = "default"
NOTHING_KNOWN = ("", None)  # of a table's constraints
_MOST_USED_UP = 10_000  # write ids, each by a transaction of its own


class HiveCatalog(HiveConstraints):
    """The part of the store about databases and tables; ``Catalog`` describes the methods."""

    # ── databases ────────────────────────────────────────────────────────────────────────────

    def databases(self) -> list[Database]:
        found = (self.get_database(name) for name in self._database_names())
        return [database for database in found if database is not None]

    def get_database(self, name: str) -> Database | None:
        try:
            raw = self._raw_database(name)
        except CatalogError as error:
            if is_missing(error):
                return None
            raise
        described = raw.description or None
        return Database(raw.name, self._managed(raw), described, raw.parameters or {})

    def _raw_database(self, name: str) -> Any:
        # Without a catalog's name the server finds no database.
        request = hive.GetDatabaseRequest(name=name, catalogName=self._catalog)
        return self._call("get_database_req", request)

    def _managed(self, raw: Any) -> str:
        """The directory of a database's ACID tables. ``locationUri`` is that of external ones."""
        if raw.managedLocationUri:
            return convert.ours(raw.managedLocationUri)
        root = self.features.warehouse
        return root if raw.name == _DEFAULT else f"{root}/{raw.name}.db"

    def create_database(self, database: Database) -> None:
        default = f"{self.features.warehouse}/{directory_name(database.name)}.db"
        is_default = is_same(database.location, default)
        request = hive.CreateDatabaseRequest(
            databaseName=database.name,
            description=database.comment,
            managedLocationUri=None if is_default else convert.theirs(database.location),
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
        if self.get_database(name) is None:
            raise no_database(name)
        raw = self._raw_database(name)
        kept = {k: v for k, v in (raw.parameters or {}).items() if k not in unset_properties}
        raw.parameters = {**kept, **(set_properties or {})}
        self._call("alter_database", self._qualified_database(name), raw)

    def drop_database(
        self, name: str, *, cascade: bool = False, txn_id: int | None = None
    ) -> list[PendingCleanup]:
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
        return sorted(raw.tableName for raw in self._raws(database))

    def temporary_tables(self) -> list[TableName]:
        return []

    def _raws(self, database: str) -> Iterator[Any]:
        """The ACID tables of a database."""
        names = self._call(
            "get_tables_by_type", self._qualified_database(database), "*", convert.MANAGED
        )
        return filter(convert.is_transactional, self._raws_of(database, names))

    def _raws_of(self, database: str, names: Sequence[str]) -> Iterator[Any]:
        """The tables and views of a database that have these names."""
        for some in chunks(names):
            request = hive.GetTablesRequest(
                dbName=database, tblNames=some, catName=self._catalog, capabilities=INSERT_ONLY
            )
            yield from self._call("get_table_objects_by_name_req", request).tables

    def find(self, name: TableName) -> Found:
        return self._look(name, NOTHING_KNOWN)

    def glance(self, name: TableName) -> Found:
        return self._look(name, self._constraints_seen.get(name, NOTHING_KNOWN))

    def _look(self, name: TableName, known: tuple[str, Any]) -> Found:
        raw = self._raw(name)
        if raw is None:
            return None
        if convert.is_view(raw):
            return convert.view_of(raw)
        is_acid = convert.is_transactional(raw)
        return self._acid_table(name, raw, known) if is_acid else described(name, raw)

    def _acid_table(self, name: TableName, raw: Any, known: tuple[str, Any]) -> Table | None:
        """The table; with constraints that are known, if they are this table's.

        Under a lock nothing is known: another thread may have noted what it asked before.
        """
        which, constraints = known
        if which != convert.identity(raw):
            try:
                constraints = self._constraints(name)
            except CatalogError as error:
                if is_missing(error):
                    return None  # it was dropped between the two calls
                raise
            self._constraints_seen[name] = (convert.identity(raw), constraints)
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
        """``create_table``; ``rows``: how many rows are in it, if known."""
        self._need_open(txn_id)
        for owner in self.owners():
            if overlap(owner.location, table.location):  # DROP deletes all that is inside
                raise owner.refusal(table.location)
        if first_write_id > 1:
            # First: a writer that finds the table must not get a write id of files that are there.
            self._seed(table.name, first_write_id - 1)
        request = hive.CreateTableRequest(
            table=convert.raw_table(table, self._user, self._catalog, rows),
            envContext=keeping_statistics(),
            notNullConstraints=[
                *convert.not_null(table.name, table.all_columns, self._catalog),
                *convert.not_enforced(table.name, table.constraints, self._catalog),
            ],
            defaultConstraints=convert.defaults(table.name, table.all_columns, self._catalog),
            checkConstraints=convert.checks(table.name, table.constraints, self._catalog),
            processorCapabilities=convert.CAPABILITIES,
            processorIdentifier=f"acidsql@{self._user}",
        )
        self._make(request, table.name.database)
        self._check_made(table)

    def _make(self, request: Any, database: str) -> None:
        """Let the server make a table or view. Raises CatalogError if it has no such database."""
        try:
            self._call("create_table_req", request)
        except CatalogError as error:
            if self.get_database(database) is None:
                raise no_database(database) from error
            raise

    def _seed(self, name: TableName, last: int) -> None:
        """Let a new table's write ids begin above ``last``.

        A creation that failed may have left write ids. The server does not seed a second time, so
        transactions use up those that are missing.
        """
        request = hive.SeedTableWriteIdsRequest(
            dbName=name.database, tableName=name.name, seedWriteId=last
        )
        try:
            self._call("seed_write_id", request)
        except (CatalogError, MetastoreError, UnsupportedError):  # Hive 3 does not know the call
            asked = hive.GetValidWriteIdsRequest(fullTableNames=[str(name)], validTxnList="")
            (found,) = self._call("get_valid_write_ids", asked).tblValidWriteIds
            left = last - found.writeIdHighWaterMark
            if left > _MOST_USED_UP:
                raise
            for _ in range(left):
                self._use_up_a_write_id(name)

    def _use_up_a_write_id(self, name: TableName) -> None:
        opened = hive.OpenTxnRequest(
            num_txns=1, user=self._user, hostname="", agentInfo="acidsql",
            txn_type=hive.TxnType.DEFAULT,
        )  # fmt: skip
        (txn_id,) = self._call("open_txns", opened).txn_ids
        asked = hive.AllocateTableWriteIdsRequest(
            dbName=name.database, tableName=name.name, txnIds=[txn_id]
        )
        self._call("allocate_table_write_ids", asked)
        self._call("commit_txn", hive.CommitTxnRequest(txnid=txn_id, exclWriteEnabled=True))

    def _check_made(self, table: Table) -> None:
        """Some servers put tables elsewhere, or make another kind of table than they were told."""
        made = self._need_raw(table.name)
        place = convert.ours(made.sd.location)
        if convert.is_transactional(made) and is_same(place, table.location):
            return
        self._drop(table.name, delete_data=not is_same(place, table.location))
        raise CatalogError(
            f"The metastore made {table.name} in '{place}' instead of '{table.location}', or as "
            "another kind of table than an ACID table. It was dropped again.",
            condition="METASTORE_REFUSED", sqlstate="38000", table=table.name,
        )  # fmt: skip

    def drop_table(
        self, name: TableName, *, txn_id: int | None = None, delete_data: bool = True
    ) -> None:
        if convert.is_view(self._need_raw(name)):
            raise no_table(name)
        self._drop_found(name, txn_id, delete_data)

    def _drop_found(self, name: TableName, txn_id: int | None, delete_data: bool) -> None:
        """``drop_table`` of what has just been seen, which is no view."""
        self._need_open(txn_id)
        try:
            self._drop(name, delete_data=delete_data)
        except CatalogError as error:
            if is_missing(error):
                raise no_table(name) from error
            raise

    def _drop(self, name: TableName, *, delete_data: bool) -> None:
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
        self._rename_found(self._need_raw(name), new_name, txn_id)

    def _rename_found(self, raw: Any, new_name: TableName, txn_id: int | None) -> None:
        """``rename_table`` of what has just been seen: ``raw``, the server's struct. The server
        moves the directory, unless it is not the one of the table's name."""
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
        return [
            Owner(TableName(raw.dbName, raw.tableName), convert.ours(raw.sd.location))
            for database in self._database_names()
            for raw in self._raws(database)
        ]

    # ── directories that are to be deleted: the server deletes them itself ───────────────────

    def pending_cleanups(self) -> list[PendingCleanup]:
        return []

    def queue_cleanup(self, name: TableName, location: str, *, txn_id: int | None = None) -> None:
        self._need_open(txn_id)

    def mark_cleaned(self, cleanup_id: int) -> None:
        """Nothing: there are no clean-ups."""

    def _need_open(self, txn_id: int | None) -> None:
        if txn_id is not None:
            self.heartbeat(txn_id)


def no_database(name: str) -> CatalogError:
    """The error about a database that is not there."""
    return CatalogError(
        f"There is no database '{name}'.",
        condition="SCHEMA_NOT_FOUND", sqlstate="42704", database=name,
    )  # fmt: skip
