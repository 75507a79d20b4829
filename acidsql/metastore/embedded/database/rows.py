"""Reads and writes a ``Table`` value as rows of several catalog tables."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, insert, select
from sqlalchemy import Table as SqlTable

from acidsql.acid.constraints import Constraint, ConstraintKind
from acidsql.acid.table import (
    ORC,
    PARQUET,
    STATISTICS,
    TEMPORARY,
    Column,
    SortColumn,
    Table,
    TableName,
    ViewText,
)
from acidsql.errors import CatalogError
from acidsql.metastore.embedded.database.schema import (
    ASCENDING,
    BUCKETING_COLS,
    COLUMNS_V2,
    DBS,
    DESCENDING,
    KEY_CONSTRAINTS,
    MANAGED_TABLE,
    PARTITION_KEYS,
    SORT_COLS,
    TABLE_PARAMS,
    TBLS,
    VIRTUAL_VIEW,
)

# Hive's numbers of the kinds of constraints, and its bits in ENABLE_VALIDATE_RELY.
_NUMBERS = {
    ConstraintKind.PRIMARY_KEY: 0,
    ConstraintKind.FOREIGN_KEY: 1,
    ConstraintKind.UNIQUE: 2,
    ConstraintKind.NOT_NULL: 3,
    ConstraintKind.CHECK: 5,
}
_KINDS = {number: kind for kind, number in _NUMBERS.items()}
_ENABLED, _RELIED = 4, 1
_TABLE_BY_NAME = (
    select(TBLS).join(DBS).where(DBS.c.NAME == bindparam("db"), TBLS.c.TBL_NAME == bindparam("tbl"))
)
# The class names of a Hive metastore.
_CLASSES = {
    ORC: {
        "INPUT_FORMAT": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        "OUTPUT_FORMAT": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        "SLIB": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    },
    PARQUET: {
        "INPUT_FORMAT": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "OUTPUT_FORMAT": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        "SLIB": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    },
}
_FORMAT_OF: dict[str | None, str] = {
    None: ORC,
    **{classes["INPUT_FORMAT"]: name for name, classes in _CLASSES.items()},
}


def table_id(
    connection: Connection, name: TableName, kind: str | None = MANAGED_TABLE
) -> int | None:
    """Return the TBL_ID of a table; None if there is none. ``kind``: its TBL_TYPE, a table by
    default, VIRTUAL_VIEW for a view; None: either."""
    query = select(TBLS.c.TBL_ID).join(DBS)
    query = query.where(DBS.c.NAME == name.database, TBLS.c.TBL_NAME == name.name)
    if kind is not None:
        query = query.where(TBLS.c.TBL_TYPE == kind)
    return connection.execute(query).scalar()


def table_names(connection: Connection, database: str, kind: str) -> list[str]:
    """Return the names of a database's tables or views, in order, temporary ones too. ``kind``:
    their TBL_TYPE."""
    query = select(TBLS.c.TBL_NAME).join(DBS)
    query = query.where(DBS.c.NAME == database, TBLS.c.TBL_TYPE == kind)
    return list(connection.execute(query.order_by(TBLS.c.TBL_NAME)).scalars())


def temporary_tables(connection: Connection) -> list[TableName]:
    """Return the temporary tables of all sessions, under the names that the metastore keeps, by
    database and name."""
    query = select(DBS.c.NAME, TBLS.c.TBL_NAME).join_from(TBLS, DBS)
    query = query.where(TBLS.c.TBL_NAME.contains(TEMPORARY, autoescape=True))
    names = (TableName(*row) for row in connection.execute(query.order_by(*query.selected_columns)))
    return [name for name in names if name.session_txn_id is not None]


def need_table(connection: Connection, name: TableName) -> int:
    """Return the table's TBL_ID. Raise CatalogError TABLE_OR_VIEW_NOT_FOUND if there is none, or
    the name is that of a view."""
    existing_id = table_id(connection, name)
    if existing_id is None:
        raise CatalogError(f"There is no table '{name}'.", relationName=name)
    return existing_id


def identity(connection: Connection, name: TableName) -> str:
    """Return a text that a table or view keeps when it is renamed, and that no later one of its
    name has; "" if there is none of this name."""
    # SQLite may give the number of a dropped table again. Write ids are never given again.
    row = connection.execute(_TABLE_BY_NAME, {"db": name.database, "tbl": name.name}).first()
    return "" if row is None else f"{row.TBL_ID}/{row.FIRST_WRITE_ID}"


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def find(connection: Connection, name: TableName) -> Table | None:
    """Read the table or view of this name; None if there is none."""
    row = connection.execute(_TABLE_BY_NAME, {"db": name.database, "tbl": name.name}).first()
    return None if row is None else _table_of_row(connection, name, row)


def read_table(connection: Connection, name: TableName, table_id: int) -> Table:
    """Read the table or view of that TBL_ID, which must exist, as a Table with this ``name``."""
    row = connection.execute(select(TBLS).where(TBLS.c.TBL_ID == table_id)).one()
    return _table_of_row(connection, name, row)


def _table_of_row(connection: Connection, name: TableName, row: Row[Any]) -> Table:
    """Make the Table, or view, of a row of TBLS; columns, constraints, properties and so on are
    read from the other tables of the catalog, sort columns only if the table is bucketed.
    Statistics are no properties. ``identity`` and ``bonds`` stay empty."""
    table_id = row.TBL_ID
    return Table(
        name=name,
        location=row.LOCATION,
        columns=_read_columns(connection, table_id),
        partition_columns=_read_partition_columns(connection, table_id),
        bucket_columns=tuple(
            bucket.BUCKET_COL_NAME
            for bucket in _read_rows(connection, BUCKETING_COLS, table_id, "INTEGER_IDX")
        ),
        num_buckets=row.NUM_BUCKETS,
        properties=_read_properties(connection, table_id, statistics=False),
        comment=row.COMMENT,
        constraints=_read_constraints(connection, table_id),
        sort_columns=_read_sort_columns(connection, table_id) if row.NUM_BUCKETS > 0 else (),
        file_format=_FORMAT_OF[row.INPUT_FORMAT],
        is_transactional=row.TBL_TYPE != VIRTUAL_VIEW,
        view=_view_text(row),
    )


def statistics(connection: Connection, table_id: int) -> dict[str, str]:
    """Return the entries (key → text) of ``Catalog.keep_statistics`` for a table, without the
    prefix under which they are kept among the properties."""
    properties = _read_properties(connection, table_id, statistics=True)
    return {key.removeprefix(STATISTICS): value for key, value in properties.items()}


def _read_properties(connection: Connection, table_id: int, *, statistics: bool) -> dict[str, str]:
    """Read a table's TBLPROPERTIES without its statistics; with ``statistics`` these alone, under
    their names as properties."""
    rows = connection.execute(_properties_query(statistics), {"id": table_id})
    return {row.PARAM_KEY: row.PARAM_VALUE for row in rows}


@functools.cache
def _properties_query(statistics: bool) -> Select[Any]:
    """Make the query of a table's properties, with the parameter ``id`` (TBL_ID), without its
    statistics. ``statistics``: the query of these instead; they are kept among the properties."""
    is_statistic = TABLE_PARAMS.c.PARAM_KEY.startswith(STATISTICS, autoescape=True)
    return _rows_query(TABLE_PARAMS, "PARAM_KEY").where(
        is_statistic if statistics else ~is_statistic
    )


def _view_text(row: Row[Any]) -> ViewText | None:
    """Return the query of a view's row of TBLS; None for a table's row."""
    if row.TBL_TYPE != VIRTUAL_VIEW:
        return None
    return ViewText(row.VIEW_ORIGINAL_TEXT, row.VIEW_EXPANDED_TEXT)


def _read_columns(connection: Connection, table_id: int) -> tuple[Column, ...]:
    """Read the data columns of a table, in order."""
    return tuple(
        Column(row.COLUMN_NAME, row.TYPE_NAME, row.IS_NULLABLE, row.DEFAULT_VALUE, row.COMMENT)
        for row in _read_rows(connection, COLUMNS_V2, table_id, "INTEGER_IDX")
    )


def _read_partition_columns(connection: Connection, table_id: int) -> tuple[Column, ...]:
    """Read the partition columns of a table, in order."""
    return tuple(
        Column(row.PKEY_NAME, row.PKEY_TYPE, row.IS_NULLABLE, row.DEFAULT_VALUE, row.PKEY_COMMENT)
        for row in _read_rows(connection, PARTITION_KEYS, table_id, "INTEGER_IDX")
    )


def _read_constraints(connection: Connection, table_id: int) -> tuple[Constraint, ...]:
    """Read the constraints of a table, in order."""
    return tuple(
        map(_constraint_of_row, _read_rows(connection, KEY_CONSTRAINTS, table_id, "POSITION"))
    )


def _constraint_of_row(row: Row[Any]) -> Constraint:
    """Make the constraint of a row of KEY_CONSTRAINTS. Without flags it is enforced, and not relied
    on."""
    bits = _ENABLED if row.ENABLE_VALIDATE_RELY is None else row.ENABLE_VALIDATE_RELY
    return Constraint.from_body(
        row.CONSTRAINT_NAME, _KINDS[row.CONSTRAINT_TYPE], row.DEFAULT_VALUE,
        enforced=bool(bits & _ENABLED), relied=bool(bits & _RELIED),
    )  # fmt: skip


def foreign_keys(connection: Connection) -> list[tuple[TableName, Constraint]]:
    """Return all FOREIGN KEYs of the store, each with its own table, by the names of the tables."""
    kind = _NUMBERS[ConstraintKind.FOREIGN_KEY]
    query = (
        select(DBS.c.NAME, TBLS.c.TBL_NAME, KEY_CONSTRAINTS)
        .join_from(KEY_CONSTRAINTS, TBLS, KEY_CONSTRAINTS.c.TBL_ID == TBLS.c.TBL_ID)
        .join(DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
        .where(KEY_CONSTRAINTS.c.CONSTRAINT_TYPE == kind)
        .order_by(DBS.c.NAME, TBLS.c.TBL_NAME, KEY_CONSTRAINTS.c.POSITION)
    )
    rows = connection.execute(query)
    return [(TableName(row.NAME, row.TBL_NAME), _constraint_of_row(row)) for row in rows]


def _read_sort_columns(connection: Connection, table_id: int) -> tuple[SortColumn, ...]:
    """Read the columns of SORTED BY, in order."""
    return tuple(
        SortColumn(row.COLUMN_NAME, row.ORDER == DESCENDING)
        for row in _read_rows(connection, SORT_COLS, table_id, "INTEGER_IDX")
    )


def _read_rows(connection: Connection, table: SqlTable, table_id: int, order: str) -> Sequence[Any]:
    """Read the rows of a table (TBL_ID) in one of the catalog's tables, by the column ``order``."""
    return connection.execute(_rows_query(table, order), {"id": table_id}).all()


@functools.cache
def _rows_query(table: SqlTable, order: str) -> Select[Any]:
    """Make the query of a table's rows in one of the catalog's tables, sorted by the column
    ``order``, with the parameter ``id`` (TBL_ID).

    Cached, because a statement needs up to six of these queries for each table that it reads.
    """
    return select(table).where(table.c.TBL_ID == bindparam("id")).order_by(table.c[order])


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def write_table(connection: Connection, db_id: int, table: Table, first_write_id: int) -> None:
    """Insert all rows of a new table or view into the catalog's tables. ``first_write_id``: its
    FIRST_WRITE_ID. Whether the name is free is not checked."""
    view = table.view
    new_id = insert_one(
        connection,
        TBLS,
        DB_ID=db_id,
        TBL_NAME=table.name.name,
        LOCATION=table.location,
        NUM_BUCKETS=table.num_buckets,
        COMMENT=table.comment,
        FIRST_WRITE_ID=first_write_id,
        TBL_TYPE=MANAGED_TABLE if view is None else VIRTUAL_VIEW,
        VIEW_ORIGINAL_TEXT=None if view is None else view.original,
        VIEW_EXPANDED_TEXT=None if view is None else view.expanded,
        **(_CLASSES[table.file_format] if view is None else {}),
    )
    add_columns(connection, new_id, table.columns, start=0)
    _insert_rows(
        connection, PARTITION_KEYS, _partition_column_rows(new_id, table.partition_columns)
    )
    _insert_rows(connection, BUCKETING_COLS, _bucket_rows(new_id, table.bucket_columns))
    _insert_rows(connection, SORT_COLS, _sort_rows(new_id, table.sort_columns))
    _insert_rows(connection, KEY_CONSTRAINTS, _constraint_rows(new_id, table.constraints))
    set_properties(connection, new_id, table.properties)


def add_columns(
    connection: Connection, table_id: int, columns: Sequence[Column], *, start: int
) -> None:
    """Append data columns to a table. ``start`` is the number of existing columns."""
    new = [
        {
            "TBL_ID": table_id,
            "COLUMN_NAME": column.name,
            "TYPE_NAME": column.type,
            "COMMENT": column.comment,
            "INTEGER_IDX": index,
            "IS_NULLABLE": column.nullable,
            "DEFAULT_VALUE": column.default,
        }
        for index, column in enumerate(columns, start)
    ]
    _insert_rows(connection, COLUMNS_V2, new)


def replace_columns(connection: Connection, table_id: int, columns: Sequence[Column]) -> None:
    """Replace all data columns of a table."""
    connection.execute(delete(COLUMNS_V2).where(COLUMNS_V2.c.TBL_ID == table_id))
    add_columns(connection, table_id, columns, start=0)


def replace_bucket_columns(connection: Connection, table_id: int, names: Sequence[str]) -> None:
    """Replace the columns of a table's CLUSTERED BY; the number of buckets stays."""
    connection.execute(delete(BUCKETING_COLS).where(BUCKETING_COLS.c.TBL_ID == table_id))
    _insert_rows(connection, BUCKETING_COLS, _bucket_rows(table_id, names))


def replace_sort_columns(
    connection: Connection, table_id: int, columns: Sequence[SortColumn]
) -> None:
    """Replace the columns of a table's SORTED BY."""
    connection.execute(delete(SORT_COLS).where(SORT_COLS.c.TBL_ID == table_id))
    _insert_rows(connection, SORT_COLS, _sort_rows(table_id, columns))


def replace_constraints(
    connection: Connection, table_id: int, constraints: Sequence[Constraint]
) -> None:
    """Replace all constraints of a table."""
    connection.execute(delete(KEY_CONSTRAINTS).where(KEY_CONSTRAINTS.c.TBL_ID == table_id))
    _insert_rows(connection, KEY_CONSTRAINTS, _constraint_rows(table_id, constraints))


def set_properties(connection: Connection, table_id: int, properties: Mapping[str, str]) -> None:
    """Set TBLPROPERTIES of a table; the others stay."""
    unset_properties(connection, table_id, list(properties))
    new = [
        {"TBL_ID": table_id, "PARAM_KEY": key, "PARAM_VALUE": value}
        for key, value in properties.items()
    ]
    _insert_rows(connection, TABLE_PARAMS, new)


def set_statistics(connection: Connection, table_id: int, entries: Mapping[str, str]) -> None:
    """Store entries (key → text) of ``Catalog.keep_statistics``; the others stay."""
    properties = {f"{STATISTICS}{key}": value for key, value in entries.items()}
    set_properties(connection, table_id, properties)


def unset_properties(connection: Connection, table_id: int, keys: Sequence[str]) -> None:
    """Remove TBLPROPERTIES; a property that does not exist is no error."""
    is_named = TABLE_PARAMS.c.PARAM_KEY.in_(keys)
    connection.execute(delete(TABLE_PARAMS).where(TABLE_PARAMS.c.TBL_ID == table_id, is_named))


def _partition_column_rows(table_id: int, columns: Sequence[Column]) -> list[dict[str, object]]:
    """Make the rows of PARTITION_KEYS of a table: column of the database → value."""
    return [
        {
            "TBL_ID": table_id,
            "PKEY_NAME": column.name,
            "PKEY_TYPE": column.type,
            "PKEY_COMMENT": column.comment,
            "INTEGER_IDX": index,
            "IS_NULLABLE": column.nullable,
            "DEFAULT_VALUE": column.default,
        }
        for index, column in enumerate(columns)
    ]


def _bucket_rows(table_id: int, names: Sequence[str]) -> list[dict[str, object]]:
    """Make the rows of BUCKETING_COLS of a table: column of the database → value."""
    return [
        {"TBL_ID": table_id, "INTEGER_IDX": index, "BUCKET_COL_NAME": name}
        for index, name in enumerate(names)
    ]


def _sort_rows(table_id: int, columns: Sequence[SortColumn]) -> list[dict[str, object]]:
    """Make the rows of SORT_COLS of a table: column of the database → value."""
    return [
        {
            "TBL_ID": table_id,
            "INTEGER_IDX": index,
            "COLUMN_NAME": column.name,
            "ORDER": DESCENDING if column.descending else ASCENDING,
        }
        for index, column in enumerate(columns)
    ]


def _constraint_rows(table_id: int, constraints: Sequence[Constraint]) -> list[dict[str, object]]:
    """Make the rows of KEY_CONSTRAINTS of a table: column of the database → value."""
    return [
        {
            "TBL_ID": table_id,
            "CONSTRAINT_NAME": constraint.name,
            "CONSTRAINT_TYPE": _NUMBERS[constraint.kind],
            "POSITION": position,
            "DEFAULT_VALUE": constraint.body,
            "ENABLE_VALIDATE_RELY": _ENABLED * constraint.is_enforced
            + _RELIED * constraint.is_relied,
        }
        for position, constraint in enumerate(constraints)
    ]


def insert_one(connection: Connection, table: SqlTable, **values: object) -> int:
    """Insert one row, and return the primary key that the database gave it."""
    key = connection.execute(insert(table).values(values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def _insert_rows(connection: Connection, table: SqlTable, new: list[dict[str, Any]]) -> None:
    """Insert rows (column → value); do nothing without rows."""
    if new:  # an empty list would insert one row of defaults
        connection.execute(insert(table), new)
