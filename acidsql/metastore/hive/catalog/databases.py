"""Databases in a Hive Metastore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acidsql.acid.paths import directory_name, is_same
from acidsql.errors import CatalogError
from acidsql.metastore.catalog import Database
from acidsql.metastore.hive.locking.numbers import HiveNumbers
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.server import Server, is_missing
from acidsql.metastore.owners import PendingCleanup

_DEFAULT = "default"


class HiveDatabases:
    """The part of the store about databases; ``Catalog`` describes the methods."""

    def __init__(self, server: Server, numbers: HiveNumbers) -> None:
        self._server, self._numbers = server, numbers

    def names(self) -> list[str]:
        """Return the names of the catalog's databases, ascending."""
        return sorted(self._server.call("get_databases", self._server.qualified_database("*")))

    def databases(self) -> list[Database]:
        databases = (self.get_database(name) for name in self.names())
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
        request = hive.GetDatabaseRequest(name=name, catalogName=self._server.catalog)
        return self._server.call("get_database_req", request)

    def _managed(self, raw: Any) -> str:
        """Return the directory of a database's ACID tables: its ``managedLocationUri``, or if it
        has none, ``<name>.db`` in the server's warehouse (for ``default`` the warehouse itself).
        ``locationUri`` is for external tables."""
        if raw.managedLocationUri:
            return convert.from_server_location(raw.managedLocationUri)
        root = self._server.features.warehouse
        return root if raw.name == _DEFAULT else f"{root}/{raw.name}.db"

    def create_database(self, database: Database) -> None:
        """Add a database, which the user owns. Raise CatalogError SCHEMA_ALREADY_EXISTS if there is
        one of this name. The server makes the directory; its location is told only if it is not the
        one by default."""
        default = f"{self._server.features.warehouse}/{directory_name(database.name)}.db"
        is_default = is_same(database.location, default)
        request = hive.CreateDatabaseRequest(
            databaseName=database.name,
            description=database.comment,
            managedLocationUri=None
            if is_default
            else convert.to_server_location(database.location),
            parameters=dict(database.properties),
            catalogName=self._server.catalog,
            ownerName=self._server.user,
            ownerType=hive.PrincipalType.USER,
        )
        try:
            self._server.call("create_database_req", request)
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
        """Unset, then set DBPROPERTIES; the others stay. Raise CatalogError SCHEMA_NOT_FOUND."""
        if self.get_database(name) is None:
            raise no_database(name)
        raw = self._raw_database(name)
        parameters = {k: v for k, v in (raw.parameters or {}).items() if k not in unset_properties}
        raw.parameters = {**parameters, **(set_properties or {})}
        self._server.call("alter_database", self._server.qualified_database(name), raw)

    def drop_database(
        self, name: str, *, cascade: bool = False, txn_id: int | None = None
    ) -> list[PendingCleanup]:
        """Remove a database, with ``cascade`` its tables and views, too, and let the server delete
        the files; so the list is empty. Raise CatalogError for ``default``, for a name that there
        is not, and without ``cascade`` for a database that is not empty."""
        self._numbers.need_open(txn_id)
        if name == _DEFAULT:
            raise CatalogError(
                "The database 'default' cannot be dropped.",
                condition="UNSUPPORTED_FEATURE.DROP_DATABASE",
                sqlstate="0A000",
            )
        if self.get_database(name) is None:
            raise no_database(name)
        try:
            self._server.call("drop_database", self._server.qualified_database(name), True, cascade)
        except CatalogError as error:
            if error.condition != "METASTORE_REFUSED" or "is not empty" not in error.message:
                raise
            raise CatalogError(
                f"The database '{name}' is not empty: DROP DATABASE … CASCADE drops its tables.",
                condition="SCHEMA_NOT_EMPTY", sqlstate="2BP01", database=name,
            ) from error  # fmt: skip
        return []


def no_database(name: str) -> CatalogError:
    """Make the error SCHEMA_NOT_FOUND."""
    return CatalogError(
        f"There is no database '{name}'.",
        condition="SCHEMA_NOT_FOUND", sqlstate="42704", database=name,
    )  # fmt: skip
