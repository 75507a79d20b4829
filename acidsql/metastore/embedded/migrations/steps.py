"""What revisions are made of; each step does only what is still to be done.

Tables are written down in one way for all databases. ``dressed`` gives them what a database needs
to treat names as SQLite does: by code point, so that ``a``, ``A`` and ``a `` are three.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.dialects.mysql import MEDIUMTEXT
from sqlalchemy.engine import Dialect as SqlDialect
from sqlalchemy.schema import CreateColumn

from acidsql.metastore.embedded.schema import VERSION_COMMENT

MYSQLS = ("mysql", "mariadb")
# InnoDB: 3072 bytes for a key, 4 for a character, 8 for the BIGINT beside it. Hive's 767 would be
# four bytes too many.
_IN_KEY = {767: 766}

# SQLite numbers rows itself only in a column whose type is exactly INTEGER.
ID = BigInteger().with_variant(Integer, "sqlite")
# It says whose the database is, so it never changes.
VERSION = Table(
    "VERSION",
    MetaData(),
    Column("VER_ID", ID, primary_key=True),
    Column("SCHEMA_VERSION", Integer, nullable=False),
    Column("VERSION_COMMENT", String(256), nullable=False),
)


def claim(connection: Connection) -> None:
    """Make the database ours, before there is anything in it: the rest may have to wait for the
    next attempt."""
    create(connection, VERSION.metadata)
    seed(connection, VERSION, VER_ID=1, SCHEMA_VERSION=0, VERSION_COMMENT=VERSION_COMMENT)


def set_version(connection: Connection, version: int) -> None:
    """Note which revision the schema has reached."""
    connection.execute(update(VERSION).values(SCHEMA_VERSION=version))


def create(connection: Connection, metadata: MetaData) -> None:
    """Create those of the tables, and of their indexes, that are not there."""
    there = set(inspect(connection).get_table_names())
    for table in dressed(metadata, connection.dialect).sorted_tables:
        if table.name not in there:
            table.create(connection, checkfirst=False)
        elif connection.dialect.name in MYSQLS:  # the last attempt may have died in between
            known = _indexes(connection, table)
            for index in table.indexes:
                if index.name not in known:
                    index.create(connection, checkfirst=False)


def add_columns(connection: Connection, metadata: MetaData) -> None:
    """Give tables that are there those of the columns that they do not have yet."""
    quote = connection.dialect.identifier_preparer.quote
    for table in dressed(metadata, connection.dialect).sorted_tables:
        known = {found["name"] for found in inspect(connection).get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                new = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {quote(table.name)} ADD COLUMN {new}")


def _indexes(connection: Connection, table: Table) -> set[str]:
    # SQLAlchemy's inspector overlooks those with PARTITION in their definition on MySQL.
    named = "SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS "
    where = "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = :table"
    return set(connection.execute(text(named + where), {"table": table.name}).scalars())


def seed(connection: Connection, table: Table, **values: object) -> None:
    """Insert the row that a table begins with, where the table is empty."""
    if connection.execute(select(table).limit(1)).first() is None:
        connection.execute(insert(table).values(values))


def dressed(metadata: MetaData, dialect: SqlDialect) -> MetaData:
    """The tables as they are in this kind of database."""
    if dialect.name == "sqlite":
        return metadata
    copy = MetaData()
    for table in metadata.sorted_tables:
        new = table.to_metadata(copy)
        if dialect.name in MYSQLS:
            _for_mysql(new, dialect)
        elif dialect.name == "postgresql":
            _for_postgresql(new)
    return copy


def _for_mysql(table: Table, dialect: SqlDialect) -> None:
    binary = "utf8mb4_nopad_bin" if getattr(dialect, "is_mariadb", False) else "utf8mb4_0900_bin"
    options = {"engine": "InnoDB", "charset": "utf8mb4", "collate": binary}
    table.dialect_options[dialect.name].update(options)
    exact = {
        column
        for constraint in table.constraints
        if isinstance(constraint, UniqueConstraint) or constraint is table.primary_key
        for column in constraint.columns
    }
    for column in table.columns:
        if isinstance(column.type, Text):  # TEXT ends at 64 KB; a column's type may be longer
            column.type = MEDIUMTEXT()
        elif column in exact and isinstance(column.type, String):
            length = column.type.length or 0
            column.type = String(_IN_KEY.get(length, length))


def _for_postgresql(table: Table) -> None:
    for column in table.columns:
        if isinstance(column.type, String):
            kind = Text if isinstance(column.type, Text) else String
            column.type = kind(column.type.length, collation="C")
