"""A few rows of a query, evaluated in the driver: ``INSERT … VALUES`` without a Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row

from acidsql.acid.table import Table
from acidsql.acid.types import HiveType, parse_type
from acidsql.storage.event_records import VALUE
from acidsql.storage.row_schema import arrow_type


def collect_rows(rows: DataFrame, table: Table) -> pa.Table | None:
    """Collect new rows of a table, whose number the caller has bounded.

    Literals cost no Spark job: the optimizer has made a local relation of them.

    Returns:
        The table's columns, then the partition columns' values as text. None where Python has no
        such values: a map with keys that cannot be hashed, or a year that its dates do not know.
    """
    if any(_has_odd_keys(parse_type(column.type)) for column in table.columns):
        return None
    try:
        collected = rows.collect()
    except (OverflowError, ValueError):  # from datetime: years below 1 and above 9999
        return None
    columns: dict[str, pa.Array] = {}
    for i, column in enumerate(table.columns):
        kind = parse_type(column.type)
        values = [_plain(row[i], kind) for row in collected]
        columns[column.name] = pa.array(values, arrow_type(kind))
    for ordinal in range(len(table.partition_columns)):
        values = [row[len(table.columns) + ordinal] for row in collected]
        columns[f"{VALUE}{ordinal}"] = pa.array(values, pa.string())
    return pa.table(columns)


def _has_odd_keys(kind: HiveType) -> bool:
    odd = kind.kind == "map" and (kind.children[0].children or kind.children[0].kind == "binary")
    return bool(odd) or any(map(_has_odd_keys, kind.children))


def _plain(value: Any, kind: HiveType) -> Any:
    """A value of PySpark's as pyarrow takes it."""
    if value is None or not kind.children:
        return bytes(value) if isinstance(value, bytearray) else value
    if kind.kind == "array":
        return [_plain(item, kind.children[0]) for item in value]
    if kind.kind == "map":
        return [
            (_plain(key, kind.children[0]), _plain(item, kind.children[1]))
            for key, item in value.items()
        ]
    return _struct(value, kind)


def _struct(value: Row | Sequence[Any], kind: HiveType) -> dict[str, Any]:
    return {
        name: _plain(item, child)
        for name, item, child in zip(kind.names, value, kind.children, strict=True)
    }
