"""Collect rows of literals to the driver, which then writes them without a Spark job.

The rows come as Python values, and Python does not have all values of Spark. If a value would
change (a text that is not valid UTF-8 would be repaired), a job writes the rows instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row

from acidsql.acid.table import Table
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.storage.columns import quote
from acidsql.storage.event_records import KEY_SCHEMA, PREFIX, VALUE
from acidsql.storage.orc.row_schema import arrow_type
from acidsql.storage.spark.session import jvm

FITS = f"{PREFIX}fits"


def collect_rows(rows: DataFrame, table: Table) -> pa.Table | None:
    """Collect the events of a query to the driver. The caller has bounded their number.

    Literals need no Spark job, because Spark's optimiser makes a local relation of them.

    Returns:
        The query's columns: those of the table in its types, partition values as texts, parts of
        row ids as in ``KEY_SCHEMA``. None if Python may lack a value: a column has a map whose keys
        cannot be hashed, a year is none that Python's dates have, a text is not valid UTF-8.
    """
    types = _types(rows, table)
    if any(map(_has_odd_keys, types.values())):
        return None
    texts = text_sql_by_column(rows, table)
    checks = [_is_utf8(text) for name, text in texts.items() if not _is_binary(types, name)]
    return _arrow_table(mark_collectable(rows, texts, " AND ".join(["true", *checks])), types)


def plain_rows(values: Mapping[str, Sequence[Any]], table: Table) -> pa.Table:
    """Return Python values, column name → values, as an Arrow table in the types of the table's
    columns.

    The values did not come from Spark. Their types are plain: nothing is nested.
    """
    types = {column.name: arrow_type(column.type) for column in table.columns}
    return pa.table({name: pa.array(column, types[name]) for name, column in values.items()})


def _types(rows: DataFrame, table: Table) -> dict[str, HiveType]:
    """Return the query's columns that are the table's data columns, name → Hive's type."""
    columns = {column.name: column.type for column in table.columns}
    return {name: parse_type(columns[name]) for name in rows.columns if name in columns}


def text_sql_by_column(rows: DataFrame, table: Table) -> dict[str, str]:
    """Return SQL with which a caller measures or tests values before it collects rows: column name
    → SQL of the value as text. Of a text or binary it is the column, of other types a cast.

    The columns are those whose values may be long or invalid UTF-8: texts, binaries, arrays, maps,
    and structs that hold one of these. Partition values count as texts; other columns that are not
    the table's are left out.
    """
    kinds = _types(rows, table)
    kinds |= {name: HiveType("string") for name in rows.columns if _is_value(name)}
    texts = {}
    for name, kind in kinds.items():
        if kind.holds("string", "char", "varchar", "binary", "array", "map"):
            column = quote(name)
            texts[name] = f"CAST({column} AS STRING)" if kind.children else column
    return texts


def mark_collectable(rows: DataFrame, texts: Collection[str], fits: str) -> DataFrame:
    """Return the rows, lazily, with one more column ``FITS``: whether the row may be collected.

    In a row that may not be collected, the columns named in ``texts`` are NULL. ``fits``: the SQL
    of the column ``FITS``.
    """
    columns = {name: quote(name) for name in rows.columns}
    values = (
        f"CASE WHEN {fits} THEN {column} END AS {column}" if name in texts else column
        for name, column in columns.items()
    )
    return jvm.select(rows, *values, f"{fits} AS {FITS}")


def _is_binary(types: Mapping[str, HiveType], name: str) -> bool:
    return name in types and types[name].kind == "binary"


def _is_utf8(text: str) -> str:
    """Return SQL: whether a text (SQL, too) is valid UTF-8, or NULL."""
    return f"coalesce(is_valid_utf8({text}), true)"


def _arrow_table(rows: DataFrame, types: dict[str, HiveType]) -> pa.Table | None:
    """Collect rows whose last column is FITS, and return them as an Arrow table without FITS. None
    if any row does not fit, or has a year that Python's dates do not have.

    ``types``: the user's columns, name → type.
    """
    try:
        collected = rows.collect()
    except (OverflowError, ValueError):  # from datetime: years below 1 and above 9999
        return None
    if not all(row[-1] for row in collected):
        return None
    columns: dict[str, pa.Array] = {}
    for i, name in enumerate(rows.columns[:-1]):
        if name in types:
            values = [_arrow_value(row[i], types[name]) for row in collected]
            columns[name] = pa.array(values, arrow_type(types[name]))
        else:
            columns[name] = pa.array([row[i] for row in collected], _own_column_type(name))
    return pa.table(columns)


def _own_column_type(name: str) -> pa.DataType:
    """Return the type of a column of our own: the text of a partition value, or a part of the row
    id.
    """
    return pa.string() if _is_value(name) else KEY_SCHEMA.field(name).type


def _is_value(name: str) -> bool:
    """Whether a column of our own holds the text of a partition value."""
    return name.startswith(VALUE) and name not in KEY_SCHEMA.names


def _has_odd_keys(kind: HiveType) -> bool:
    """Whether a type has, at any depth, a map whose keys Python cannot hash: nested or binary."""
    odd = kind.kind == "map" and (kind.children[0].children or kind.children[0].kind == "binary")
    return bool(odd) or any(map(_has_odd_keys, kind.children))


def _arrow_value(value: Any, kind: HiveType) -> Any:
    """Return a value of PySpark in the form that pyarrow takes: a binary as bytes, an array as a
    list, a map as a list of pairs, a struct as a dict; others as they are.
    """
    if value is None or not kind.children:
        return bytes(value) if isinstance(value, bytearray) else value
    if kind.kind == "array":
        return [_arrow_value(item, kind.children[0]) for item in value]
    if kind.kind == "map":
        return [
            (_arrow_value(key, kind.children[0]), _arrow_value(item, kind.children[1]))
            for key, item in value.items()
        ]
    return _struct_dict(value, kind)


def _struct_dict(value: Row | Sequence[Any], kind: HiveType) -> dict[str, Any]:
    """Return a struct as a dict by the names of its fields."""
    return {
        name: _arrow_value(item, child)
        for name, item, child in zip(kind.names, value, kind.children, strict=True)
    }
