"""The steps of revisions. Each step does only what is still to be done.

``schema`` defines tables in the same way for all databases. ``adapted_metadata`` adds what a
database needs to compare names as SQLite does: by code point, so that ``a``, ``A`` and ``a `` are
three names.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    Connection,
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

from acidsql.metastore.embedded.database.schema import VERSION, VERSION_COMMENT

MYSQLS = ("mysql", "mariadb")
# InnoDB allows 3072 bytes in a key: 4 for each character, and 8 for the BIGINT in the same key.
# Hive's 767 characters would be four bytes too many.
_IN_KEY = {767: 766}


def claim(connection: Connection) -> None:
    """Mark the database as acidsql's before it has other tables: create VERSION, with schema
    version 0, unless it is there.

    If this attempt dies half-way, the next attempt recognizes the database and goes on.
    """
    create(connection, [VERSION])
    seed(connection, VERSION, VER_ID=1, SCHEMA_VERSION=0, VERSION_COMMENT=VERSION_COMMENT)


def set_version(connection: Connection, version: int) -> None:
    """Store, in VERSION, which revision the schema has reached."""
    connection.execute(update(VERSION).values(SCHEMA_VERSION=version))


def create(connection: Connection, tables: Iterable[Table]) -> None:
    """Create those of the tables that do not exist, as this kind of database needs them. On MySQL,
    create the missing indexes of those that exist, too."""
    existing_tables = set(inspect(connection).get_table_names())
    adapted_tables = adapted_metadata(VERSION.metadata, connection.dialect).tables
    for table in (adapted_tables[table.name] for table in tables):
        if table.name not in existing_tables:
            table.create(connection, checkfirst=False)
        elif connection.dialect.name in MYSQLS:  # the last attempt may have died before an index
            existing_indexes = _indexes(connection, table)
            for index in table.indexes:
                if index.name not in existing_indexes:
                    index.create(connection, checkfirst=False)


def _indexes(connection: Connection, table: Table) -> set[str]:
    """Return the names of a table's indexes in MySQL."""
    # On MySQL, SQLAlchemy's inspector misses indexes with PARTITION in their definition.
    named = "SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS "
    where = "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = :table"
    return set(connection.execute(text(named + where), {"table": table.name}).scalars())


def seed(connection: Connection, table: Table, **values: object) -> None:
    """Insert a table's first row if the table is empty."""
    if connection.execute(select(table).limit(1)).first() is None:
        connection.execute(insert(table).values(values))


def adapted_metadata(metadata: MetaData, dialect: SqlDialect) -> MetaData:
    """Return the tables as this kind of database needs them; SQLite's are the given ones
    themselves."""
    if dialect.name == "sqlite":
        return metadata
    copy = MetaData()
    for table in metadata.sorted_tables:
        new = table.to_metadata(copy)
        if dialect.name in MYSQLS:
            _adapt_to_mysql(new, dialect)
        elif dialect.name == "postgresql":
            _adapt_to_postgresql(new)
    return copy


def _adapt_to_mysql(table: Table, dialect: SqlDialect) -> None:
    """Change the given table for MySQL or MariaDB: InnoDB, names compared by code point, MEDIUMTEXT
    for TEXT, and texts in keys short enough."""
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
        if isinstance(column.type, Text):  # TEXT has 64 KB; the text of a column type may be longer
            column.type = MEDIUMTEXT()
        elif column in exact and isinstance(column.type, String):
            length = column.type.length or 0
            column.type = String(_IN_KEY.get(length, length))


def _adapt_to_postgresql(table: Table) -> None:
    """Give the texts of the given table the collation C, so that they are compared by code
    point."""
    for column in table.columns:
        if isinstance(column.type, String):
            kind = Text if isinstance(column.type, Text) else String
            column.type = kind(column.type.length, collation="C")
