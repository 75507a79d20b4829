"""Hive's virtual columns: a query can name them, and no ``*`` has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from acidsql.acid.table import Table

ROW__ID = "row__id"
ROW__ID_TYPE = "struct<writeid:bigint,bucketid:int,rowid:bigint>"
IS_DELETED = "row__is__deleted"
FILE_NAME = "input__file__name"  # the URL of the row's file, as Spark's input_file_name() shows it
TYPES: Mapping[str, str] = {
    ROW__ID: ROW__ID_TYPE,
    IS_DELETED: "boolean",
    FILE_NAME: "string",
}


def virtual_columns(table: Table, requested: Collection[str]) -> tuple[str, ...]:
    """Return the requested virtual columns that a table has, in the order of ``TYPES``: all for a
    full-ACID table, only the file's name for another table, none for a view.

    Names are in lower case. A column of the table with such a name hides the virtual column.
    """
    table_columns = {column.name for column in table.all_columns}
    return tuple(
        name
        for name in TYPES
        if name in requested and name not in table_columns and _has(table, name)
    )


def why_missing(name: str) -> str | None:
    """Why a virtual column of Hive's is missing; None for a name that is no virtual column."""
    return _WHY_MISSING.get(name.lower())


_WHY_MISSING = {
    ROW__ID: "It is a virtual column of full-ACID tables. Rows of insert-only tables and of plain "
    "tables have no row ids (Hive shows NULL), and a view has the columns of its query.",
    IS_DELETED: "It is a virtual column of full-ACID tables: t('acid.fetch.deleted.rows'='true') "
    "shows deleted rows, too.",
    FILE_NAME: "It is a virtual column of tables of the metastore. RETURNING, table_changes and "
    "views do not have it.",
    "block__offset__inside__file": "There is no such virtual column: a row has no offset in an "
    "ORC file. row__id.rowid numbers the rows of a full-ACID table.",
}


def _has(table: Table, name: str) -> bool:
    return table.has_row_ids or (table.view is None and name == FILE_NAME)
