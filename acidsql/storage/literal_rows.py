"""A few rows of a query, brought to the driver: what they become is written without a Spark job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from acidsql.acid.table import Table
from acidsql.acid.types import HiveType, parse_type
from acidsql.storage.event_records import KEY_SCHEMA, VALUE
from acidsql.storage.row_schema import arrow_type

_TASKS_AT_ONCE = 8


def collect_rows(rows: DataFrame, table: Table) -> pa.Table | None:
    """Collect the events of a query, whose number the caller has bounded.

    Literals cost no Spark job: the optimizer has made a local relation of them.

    Returns:
        The same columns. None where Python has no such values: a map with keys that cannot be
        hashed, or a year that its dates do not know.
    """
    return _in_arrow(rows, table, None)


def plain_rows(values: Mapping[str, Sequence[Any]], table: Table) -> pa.Table:
    """The same of values that were never Spark's, by column; their types are plain, too."""
    types = {column.name: arrow_type(column.type) for column in table.columns}
    return pa.table({name: pa.array(column, types[name]) for name, column in values.items()})


def collect_few(rows: DataFrame, table: Table, limit: int) -> pa.Table | None:
    """Collect the events of a query if they are no more than ``limit``; else None."""
    with _several_tasks_at_once(rows.sparkSession):
        return _in_arrow(rows.limit(limit + 1), table, limit)


def _in_arrow(rows: DataFrame, table: Table, limit: int | None) -> pa.Table | None:
    types = {column.name: parse_type(column.type) for column in table.columns}
    if any(map(_has_odd_keys, types.values())):
        return None
    try:
        collected = rows.collect()
    except (OverflowError, ValueError):  # from datetime: years below 1 and above 9999
        return None
    if limit is not None and len(collected) > limit:
        return None
    columns: dict[str, pa.Array] = {}
    for i, name in enumerate(rows.columns):
        if name in types:
            values = [_plain(row[i], types[name]) for row in collected]
            columns[name] = pa.array(values, arrow_type(types[name]))
        else:
            columns[name] = pa.array([row[i] for row in collected], _type_of(name))
    return pa.table(columns)


def _type_of(name: str) -> pa.DataType:
    """Of a column that is ours: a partition value's text, or a part of the row's id."""
    return pa.string() if name.startswith(VALUE) else KEY_SCHEMA.field(name).type


@contextmanager
def _several_tasks_at_once(spark: SparkSession) -> Iterator[None]:
    """Spark looks for the rows of a LIMIT in one task first, and in others only if there are too
    few: right for many rows, and slow for few."""
    name = "spark.sql.limit.initialNumPartitions"
    before = str(spark.conf.get(name))
    spark.conf.set(name, str(max(_TASKS_AT_ONCE, int(before))))
    try:
        yield
    finally:
        spark.conf.set(name, before)


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
