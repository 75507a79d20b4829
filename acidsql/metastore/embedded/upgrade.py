"""Which schema a database has, and what is to be done about it.

Of a store that is up to date one question is asked, and Alembic stays unimported.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect, select
from sqlalchemy.exc import DBAPIError

from acidsql.errors import MetastoreError
from acidsql.metastore.embedded.schema import SCHEMA_VERSION, VERSION, VERSION_COMMENT

_ALEMBICS = "alembic_version"


def is_up_to_date(connection: Connection) -> bool:
    """Whether it is a store of ours for which nothing has to be done."""
    question = select(VERSION.c.SCHEMA_VERSION, VERSION.c.VERSION_COMMENT)
    try:
        row = connection.execute(question).first()
    except DBAPIError:
        return False  # there is no such table, or it is another's
    return row is not None and tuple(row) == (SCHEMA_VERSION, VERSION_COMMENT)


def create_or_upgrade(connection: Connection, warehouse: str) -> None:
    """Create the schema in an empty database, or bring an older one to the present.

    Must run in a store transaction begun with ``Dialect.upgrade``, so that of two processes one
    does it.

    Raises:
        MetastoreError: The database belongs to something else, or to a newer acidsql.
    """
    version = _version(connection)
    if version > SCHEMA_VERSION:
        raise MetastoreError(
            f"The metastore has schema version {version}, and this acidsql knows "
            f"{SCHEMA_VERSION}. Use the acidsql that made it, or a newer one.",
            condition="METASTORE_VERSION_MISMATCH",
            found=version,
            known=SCHEMA_VERSION,
        )
    if version < SCHEMA_VERSION:
        # Imported here: it takes a while, and is needed once in a store's life.
        from acidsql.metastore.embedded.migrations import migrate

        migrate(connection, warehouse, version)


def _version(connection: Connection) -> int:
    """The version of a store of ours; 0: the database is empty, or was left half-made."""
    names = set(inspect(connection).get_table_names())
    if not names or _is_barely_begun(connection, names):
        return 0
    if VERSION.name not in names:
        raise _not_ours("it has other tables")
    # A real Hive metastore has a table VERSION too, with other columns.
    columns = {column["name"] for column in inspect(connection).get_columns(VERSION.name)}
    if not columns >= {"SCHEMA_VERSION", "VERSION_COMMENT"}:
        raise _not_ours("its VERSION table is another one")
    row = connection.execute(select(VERSION)).first()
    if row is None or row.VERSION_COMMENT != VERSION_COMMENT:
        raise _not_ours("it belongs to something else, such as a Hive metastore")
    return int(row.SCHEMA_VERSION)


def _is_barely_begun(connection: Connection, names: set[str]) -> bool:
    """Where DDL commits by itself: a process died before it could say that the store is ours."""
    if connection.dialect.name not in ("mysql", "mariadb") or not names <= {_ALEMBICS, "VERSION"}:
        return False
    quote = connection.dialect.identifier_preparer.quote
    counts = (
        connection.exec_driver_sql(f"SELECT COUNT(*) FROM {quote(name)}").scalar() for name in names
    )
    return not any(counts)


def _not_ours(why: str) -> MetastoreError:
    return MetastoreError(
        f"The database is no metastore of acidsql: {why}. Give an empty or new one.",
        condition="NOT_A_METASTORE",
    )
