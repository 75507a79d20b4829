"""Creating the schema, and refusing a database that is not ours or is newer than we are."""

from __future__ import annotations

from sqlalchemy import Connection, insert, inspect, select

from acidsql.errors import MetastoreError
from acidsql.metastore.embedded.schema import (
    COUNTERS,
    DBS,
    SCHEMA_VERSION,
    VERSION,
    VERSION_COMMENT,
    metadata,
)


def create_or_check(connection: Connection, warehouse: str) -> None:
    """Create all tables in an empty database; check the version of one that has tables.

    Must run in a store transaction that writes, so that of two processes one creates.

    Raises:
        MetastoreError: The database belongs to something else, or to a newer acidsql.
    """
    names = set(inspect(connection).get_table_names())
    if not names:
        _create(connection, warehouse)
    elif VERSION.name not in names:
        raise _not_ours("it has other tables")
    else:
        _check(connection)


def _create(connection: Connection, warehouse: str) -> None:
    # checkfirst would ask again for each table; the database is empty and locked.
    metadata.create_all(connection, checkfirst=False)
    connection.execute(
        insert(VERSION).values(
            VER_ID=1, SCHEMA_VERSION=SCHEMA_VERSION, VERSION_COMMENT=VERSION_COMMENT
        )
    )
    for counter in COUNTERS:
        (column,) = counter.columns
        connection.execute(insert(counter).values({column: 1}))
    connection.execute(insert(DBS).values(NAME="default", DB_LOCATION_URI=warehouse))


def _check(connection: Connection) -> None:
    # A real Hive metastore has a table VERSION too, with other columns.
    columns = {column["name"] for column in inspect(connection).get_columns(VERSION.name)}
    if not columns >= {"SCHEMA_VERSION", "VERSION_COMMENT"}:
        raise _not_ours("its VERSION table is another one")
    row = connection.execute(select(VERSION)).first()
    if row is None or row.VERSION_COMMENT != VERSION_COMMENT:
        raise _not_ours("it belongs to something else, such as a Hive metastore")
    if row.SCHEMA_VERSION != SCHEMA_VERSION:
        raise MetastoreError(
            f"The metastore has schema version {row.SCHEMA_VERSION}, and this acidsql knows "
            f"{SCHEMA_VERSION}. Use the acidsql that made it, or a newer one.",
            condition="METASTORE_VERSION_MISMATCH",
            found=row.SCHEMA_VERSION,
            known=SCHEMA_VERSION,
        )


def _not_ours(why: str) -> MetastoreError:
    return MetastoreError(
        f"The database is no metastore of acidsql: {why}. Give an empty or new one.",
        condition="NOT_A_METASTORE",
    )
