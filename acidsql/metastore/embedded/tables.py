"""Creates a table: checks that name and location are free, and writes the rows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from acidsql.acid.paths import overlap
from acidsql.acid.table import Column, Table, TableName
from acidsql.errors import CatalogError
from acidsql.metastore.embedded import cleanups, rows, versions, write_ids
from acidsql.metastore.embedded.schema import DBS, TBLS
from acidsql.metastore.owners import Owner


def database_id(connection: Connection, name: str) -> int | None:
    """The DB_ID of a database, or None."""
    return connection.execute(select(DBS.c.DB_ID).where(DBS.c.NAME == name)).scalar()


def need_database(connection: Connection, name: str) -> int:
    """The DB_ID of a database. Raises CatalogError SCHEMA_NOT_FOUND."""
    db_id = database_id(connection, name)
    if db_id is None:
        raise CatalogError(
            f"There is no database '{name}'.",
            condition="SCHEMA_NOT_FOUND",
            sqlstate="42704",
            schemaName=name,
        )
    return db_id


def create(
    connection: Connection, table: Table, first_write_id: int = 1, txn_id: int | None = None
) -> None:
    """Add a table, in which ``txn_id`` may have written already.

    Raises as ``Catalog.create_table``.
    """
    db_id = need_database(connection, table.name.database)
    need_no_table(connection, table.name)
    need_free_location(connection, table.location)
    write_ids.take(connection, table.name, table.location)
    first = write_ids.begin_table(connection, table.name, first_write_id, txn_id)
    rows.write_table(connection, db_id, table, first)
    versions.begin(connection, table.name)


def replace_columns(connection: Connection, name: TableName, columns: Sequence[Column]) -> None:
    """Give a table these data columns. Raises CatalogError if there is no such table."""
    rows.replace_columns(connection, rows.need_table(connection, name), columns)


def need_no_table(connection: Connection, name: TableName) -> None:
    """Raise CatalogError if a table of that name exists."""
    if rows.table_id(connection, name) is not None:
        raise CatalogError(
            f"The table '{name}' exists already.",
            condition="TABLE_OR_VIEW_ALREADY_EXISTS",
            sqlstate="42P07",
            relationName=name,
        )


def need_free_location(connection: Connection, location: str) -> None:
    """Raise CatalogError if the directory is, lies in, or contains another table's directory.

    Otherwise DROP would delete the other table's files, because it deletes the whole directory.
    """
    for owner in owners(connection):
        if overlap(owner.location, location):
            raise owner.refusal(location)


def owners(connection: Connection) -> list[Owner]:
    """See ``Catalog.owners``."""
    found = select(DBS.c.NAME, TBLS.c.TBL_NAME, TBLS.c.LOCATION).join_from(TBLS, DBS)
    tables = [
        Owner(TableName(database, name), location)
        for database, name, location in connection.execute(found)
    ]
    dropped = [
        Owner(gone.table, gone.location, is_dropped=True) for gone in cleanups.pending(connection)
    ]
    return tables + dropped
