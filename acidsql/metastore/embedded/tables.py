"""Creates a table, after a check that name and location are free, and drops a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from acidsql.acid import cdc
from acidsql.acid.paths import overlap
from acidsql.acid.table import Column, Table, TableName
from acidsql.errors import CatalogError
from acidsql.metastore.embedded.database import rows
from acidsql.metastore.embedded.database.schema import (
    COMPLETED_TXN_COMPONENTS,
    DATABASE_PARAMS,
    DBS,
    MANAGED_TABLE,
    NEXT_TXN_ID,
    TBLS,
    TXN_COMPONENTS,
)
from acidsql.metastore.embedded.records import (
    catalog_history,
    cleanups,
    compaction_rows,
    streams,
    versions,
    write_ids,
)
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Database
from acidsql.metastore.owners import Owner


def database_id(connection: Connection, name: str) -> int | None:
    """Return the DB_ID of a database; None if there is none of this name."""
    return connection.execute(select(DBS.c.DB_ID).where(DBS.c.NAME == name)).scalar()


def need_database(connection: Connection, name: str) -> int:
    """Return the DB_ID of a database. Raise CatalogError SCHEMA_NOT_FOUND if there is none."""
    db_id = database_id(connection, name)
    if db_id is None:
        raise CatalogError(
            f"There is no database '{name}'.",
            condition="SCHEMA_NOT_FOUND",
            sqlstate="42704",
            schemaName=name,
        )
    return db_id


def databases(connection: Connection, *where: ColumnElement[bool]) -> list[Database]:
    """Return the databases for which these conditions hold, with their properties, by name."""
    own = DATABASE_PARAMS.c
    joined = select(DBS, own.PARAM_KEY, own.PARAM_VALUE).outerjoin_from(DBS, DATABASE_PARAMS)
    databases_by_name: dict[str, Database] = {}
    for row in connection.execute(joined.where(*where).order_by(DBS.c.NAME, own.PARAM_KEY)):
        database = databases_by_name.get(
            row.NAME, Database(row.NAME, row.DB_LOCATION_URI, row.DESC)
        )
        more = {} if row.PARAM_KEY is None else {row.PARAM_KEY: row.PARAM_VALUE}
        databases_by_name[row.NAME] = replace(database, properties={**database.properties, **more})
    return [*databases_by_name.values()]


def alter_database(
    connection: Connection,
    name: str,
    set_properties: Mapping[str, str],
    unset_properties: Sequence[str] = (),
) -> None:
    """Remove DBPROPERTIES, then set others; the rest stays. Raise CatalogError SCHEMA_NOT_FOUND if
    there is no such database."""
    db_id = need_database(connection, name)
    named = DATABASE_PARAMS.c.PARAM_KEY.in_([*set_properties, *unset_properties])
    connection.execute(delete(DATABASE_PARAMS).where(DATABASE_PARAMS.c.DB_ID == db_id, named))
    for key, value in set_properties.items():
        connection.execute(
            insert(DATABASE_PARAMS).values(DB_ID=db_id, PARAM_KEY=key, PARAM_VALUE=value)
        )


def create(
    connection: Connection, table: Table, first_write_id: int = 1, txn_id: int | None = None
) -> None:
    """Insert the rows of a new table, and prepare its write ids and versions. The directory is not
    made. ``first_write_id``: where the write ids begin, unless an earlier table of the name or in
    the place has used higher ones. ``txn_id``: a transaction that may have written the table's
    first rows already.

    Raises:
        CatalogError: There is no such database; there is a table or view of this name; or the
            location overlaps that of another table, or of a dropped one that is not deleted yet.
    """
    db_id = need_database(connection, table.name.database)
    need_no_table(connection, table.name)
    need_free_location(connection, table.location)
    write_ids.take_over_write_ids(connection, table.name, table.location)
    first = write_ids.begin_table(connection, table.name, first_write_id, txn_id)
    rows.write_table(connection, db_id, table, first)
    versions.begin_history(connection, table.name)


def drop_if_there(connection: Connection, name: TableName, txn_id: int | None, now_ms: int) -> None:
    """Drop a table and its tables of AUTO CDC, if the table exists, because another one of its name
    replaces it. A view of that name stays.

    The directories are queued; they may be deleted when all transactions up to now have ended.
    """
    if rows.table_id(connection, name) is not None:
        until = connection.execute(select(NEXT_TXN_ID.c.NTXN_NEXT)).scalar_one() - 1
        location = drop(connection, name, txn_id, now_ms, until)
        cleanups.enqueue(connection, name, location, now_ms, until)


def drop(
    connection: Connection, name: TableName, txn_id: int | None, now_ms: int, until: int = 0
) -> str:
    """Remove a table and its tables of AUTO CDC, and return its location. Only the directories of
    the tables of AUTO CDC are queued for deletion, when all transactions up to ``until`` have ended
    (0: now); the caller sees to the table's own.

    Raises:
        CatalogError: There is no such table.
    """
    location = remove(connection, name, txn_id)
    for cdc_table in cdc.cdc_table_names(name):
        if is_cdc_table(connection, cdc_table):
            place = remove(connection, cdc_table, txn_id)
            cleanups.enqueue(connection, cdc_table, place, now_ms, until)
    return location


def remove(connection: Connection, name: TableName, txn_id: int | None) -> str:
    """Remove a table, with the records of its changes, compactions and streams, and return its
    location. Its changes in WRITE_SET stay, so that conflicts are found. Its tables of AUTO CDC
    stay, and its directory is not queued for deletion. The next table at the location goes on with
    its write ids. The drop is noted for open snapshots. Raise CatalogError if there is no such
    table."""
    table_id = rows.need_table(connection, name)
    location: str = connection.execute(
        select(TBLS.c.LOCATION).where(TBLS.c.TBL_ID == table_id)
    ).scalar_one()
    # ON DELETE CASCADE deletes the table's columns, partitions and so on. WRITE_SET stays, so
    # conflicts with a dropped table's writers are still found.
    connection.execute(delete(TBLS).where(TBLS.c.TBL_ID == table_id))
    for components, prefix in ((TXN_COMPONENTS, "TC"), (COMPLETED_TXN_COMPONENTS, "CTC")):
        ours = write_ids.is_of_table(components, prefix, name)
        connection.execute(delete(components).where(ours))
    compaction_rows.forget_table(connection, name)
    streams.drop(connection, name)
    write_ids.leave_write_ids(connection, name, location)
    catalog_history.note(connection, txn_id, name)
    return location


def is_cdc_table(connection: Connection, name: TableName) -> bool:
    """Whether there is such a table, and AUTO CDC has made it."""
    table = acid_table(rows.find(connection, name))
    return table is not None and cdc.is_cdc_table(table)


def replace_columns(connection: Connection, name: TableName, columns: Sequence[Column]) -> None:
    """Replace all data columns of a table. Raise CatalogError if there is no such table."""
    rows.replace_columns(connection, rows.need_table(connection, name), columns)


def need_no_table(connection: Connection, name: TableName) -> None:
    """Raise CatalogError TABLE_OR_VIEW_ALREADY_EXISTS if a table or view of that name exists."""
    if rows.table_id(connection, name, None) is not None:
        raise CatalogError(
            f"The table or view '{name}' exists already.",
            condition="TABLE_OR_VIEW_ALREADY_EXISTS",
            sqlstate="42P07",
            relationName=name,
        )


def need_free_location(connection: Connection, location: str) -> None:
    """Raise CatalogError if the directory is, lies in, or contains another table's directory, or
    that of a dropped table that is not deleted yet.

    Otherwise DROP would delete the other table's files, because it deletes the whole directory.
    """
    for owner in owners(connection):
        if overlap(owner.location, location):
            raise owner.refusal(location)


def owners(connection: Connection) -> list[Owner]:
    """Return all tables with their directories, and the directories of dropped tables that are not
    deleted yet. Views have none, and are left out."""
    query = select(DBS.c.NAME, TBLS.c.TBL_NAME, TBLS.c.LOCATION).join_from(TBLS, DBS)
    query = query.where(TBLS.c.TBL_TYPE == MANAGED_TABLE)
    tables = [
        Owner(TableName(database, name), location)
        for database, name, location in connection.execute(query)
    ]
    dropped = [
        Owner(cleanup.table, cleanup.location, is_dropped=True, has_readers=cleanup.until > 0)
        for cleanup in cleanups.pending(connection)
    ]
    return tables + dropped
