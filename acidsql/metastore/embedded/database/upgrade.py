"""Finds out which schema a database has, and creates or upgrades it.

A store that is up to date gets one query only, and Alembic is not imported.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect, select
from sqlalchemy.exc import DBAPIError

from acidsql.errors import MetastoreError
from acidsql.metastore.embedded.database.schema import (
    FIRST_SCHEMA_VERSION,
    SCHEMA_VERSION,
    VERSION,
    VERSION_COMMENT,
)

_ALEMBICS = "alembic_version"


def is_up_to_date(connection: Connection) -> bool:
    """Whether the database is a metastore of acidsql with exactly the present schema version; other
    tables are not looked at. False, too, if the table VERSION is missing or cannot be read."""
    question = select(VERSION.c.SCHEMA_VERSION, VERSION.c.VERSION_COMMENT)
    try:
        row = connection.execute(question).first()
    except DBAPIError:
        return False  # the table is missing, or it belongs to something else
    return row is not None and tuple(row) == (SCHEMA_VERSION, VERSION_COMMENT)


def create_or_upgrade(connection: Connection, warehouse: str) -> None:
    """Create the schema in an empty database, or upgrade an older schema; do nothing if it is up to
    date.

    The caller must begin the store transaction with ``Dialect.upgrade``, so that only one of two
    processes does it.

    Raises:
        MetastoreError: The database belongs to something else, or its schema is newer than this
            acidsql, or older than the first release.
    """
    version = _stored_version(connection)
    if 0 < version < FIRST_SCHEMA_VERSION:
        raise _unknown_version_error(
            version,
            "A development build made it, before the first release. Use that build, or give a new "
            "metastore and create the tables there again, each with LOCATION of its directory.",
        )
    if version > SCHEMA_VERSION:
        raise _unknown_version_error(version, "Use the acidsql that made it, or a newer one.")
    if version < SCHEMA_VERSION:
        # Imported only here, because the import is slow and a store needs it rarely.
        from acidsql.metastore.embedded.database.migrations import migrate

        migrate(connection, warehouse)


def _stored_version(connection: Connection) -> int:
    """Return the schema version of the store; 0: the database has no tables, or was left half-made.
    Raise MetastoreError NOT_A_METASTORE if it belongs to something else: it has tables but no
    VERSION, or VERSION lacks a column or a row, or its comment is not acidsql's."""
    names = set(inspect(connection).get_table_names())
    if not names or _is_barely_begun(connection, names):
        return 0
    if VERSION.name not in names:
        raise _not_ours_error("it has other tables")
    # A real Hive metastore has a table VERSION, too, with other columns.
    columns = {column["name"] for column in inspect(connection).get_columns(VERSION.name)}
    if not columns >= {"SCHEMA_VERSION", "VERSION_COMMENT"}:
        raise _not_ours_error("its VERSION table is another one")
    row = connection.execute(select(VERSION)).first()
    if row is None or row.VERSION_COMMENT != VERSION_COMMENT:
        raise _not_ours_error("it belongs to something else, such as a Hive metastore")
    return int(row.SCHEMA_VERSION)


def _is_barely_begun(connection: Connection, names: set[str]) -> bool:
    """Whether a process died before it wrote VERSION's row: on MySQL or MariaDB, where DDL commits
    by itself, there are no tables but VERSION and Alembic's own, and both are empty. Always False
    for other databases."""
    if connection.dialect.name not in ("mysql", "mariadb") or not names <= {_ALEMBICS, "VERSION"}:
        return False
    quote = connection.dialect.identifier_preparer.quote
    counts = (
        connection.exec_driver_sql(f"SELECT COUNT(*) FROM {quote(name)}").scalar() for name in names
    )
    return not any(counts)


def _unknown_version_error(version: int, advice: str) -> MetastoreError:
    """Make the error METASTORE_VERSION_MISMATCH, with advice."""
    return MetastoreError(
        f"The metastore has schema version {version}, and this acidsql knows {SCHEMA_VERSION}. "
        + advice,
        condition="METASTORE_VERSION_MISMATCH",
        schema_version=version,
        known_version=SCHEMA_VERSION,
    )


def _not_ours_error(why: str) -> MetastoreError:
    """Make the error NOT_A_METASTORE: the database belongs to something else."""
    return MetastoreError(
        f"The database is no metastore of acidsql: {why}. Give an empty or new one.",
        condition="NOT_A_METASTORE",
    )
