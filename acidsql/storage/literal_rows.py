"""A few rows of a query, brought to the driver: what they become is written without a Spark job.

They come as values of Python's, which are not all that Spark has. What would arrive as something
else, or would take much memory, is left to a job: a text that is no UTF-8 arrives mended, a map
with a key twice arrives with one of them, and 1,000 rows may be a gigabyte.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.table import Table
from acidsql.acid.types import HiveType, parse_type
from acidsql.storage.columns import quote
from acidsql.storage.event_records import KEY_SCHEMA, PREFIX, VALUE
from acidsql.storage.jvm import changed_conf
from acidsql.storage.row_schema import arrow_type

_TASKS_AT_ONCE = 8
_BYTES_MAX = 16 * 1024 * 1024  # of all that is looked for; each task finds at most so much
_FITS = f"{PREFIX}fits"


def collect_rows(rows: DataFrame, table: Table) -> pa.Table | None:
    """Collect the events of a query, whose number the caller has bounded.

    Literals cost no Spark job: the optimizer has made a local relation of them.

    Returns:
        The same columns. None where Python has no such values: a map with keys that cannot be
        hashed, a year that its dates do not know, a text that is no UTF-8.
    """
    types = _types(rows, table)
    if any(map(_has_odd_keys, types.values())):
        return None
    return _in_arrow(_marked(rows, types, None), types)


def plain_rows(values: Mapping[str, Sequence[Any]], table: Table) -> pa.Table:
    """The same of values that were never Spark's, by column; their types are plain, too."""
    types = {column.name: arrow_type(column.type) for column in table.columns}
    return pa.table({name: pa.array(column, types[name]) for name, column in values.items()})


def collect_few(rows: DataFrame, table: Table, limit: int) -> pa.Table | None:
    """Collect the events of a query if they are no more than ``limit``, and small; else None.

    None too where Python has no such values. Spark need not have made them, as it has literals:
    a map that was read from a file may have a key twice.
    """
    types = _types(rows, table)
    if any(_holds(kind, "map") for kind in types.values()):
        return None
    found = _marked(rows, types, _BYTES_MAX // limit).limit(limit + 1)
    with changed_conf(rows.sparkSession, _several_tasks_at_once(rows.sparkSession)):
        try:
            return _in_arrow(found, types, limit)
        except Exception as error:
            # Each task finds up to the limit, and there may be thousands of tasks.
            if "spark.driver.maxResultSize" in str(error):
                return None
            raise


def _types(rows: DataFrame, table: Table) -> dict[str, HiveType]:
    """Hive's types of the columns that are the user's."""
    columns = {column.name: column.type for column in table.columns}
    return {name: parse_type(columns[name]) for name in rows.columns if name in columns}


def _marked(rows: DataFrame, types: dict[str, HiveType], bytes_max: int | None) -> DataFrame:
    """The rows, and whether all of each can be had as Python's; of those that cannot, no text."""
    texts = {name: kind for name, kind in types.items() if _has_text(kind)}
    texts |= {name: HiveType("string") for name in rows.columns if _is_value(name)}
    checks = [_is_utf8(name, kind) for name, kind in texts.items() if kind.kind != "binary"]
    if bytes_max is not None:
        sizes = [F.coalesce(F.octet_length(_text(*it)), F.lit(0)) for it in texts.items()]
        checks.append(sum(sizes, F.lit(0).cast("bigint")) <= bytes_max)
    fits = functools.reduce(lambda one, other: one & other, checks, F.lit(True))
    return rows.select(
        *(
            F.when(fits, F.col(quote(name))).alias(name) if name in texts else F.col(quote(name))
            for name in rows.columns
        ),
        fits.alias(_FITS),
    )


def _text(name: str, kind: HiveType) -> Column:
    """A column as text, or bytes; of an array, a map or a struct all that is in it."""
    column = F.col(quote(name))
    return column.cast("string") if kind.children else column


def _is_utf8(name: str, kind: HiveType) -> Column:
    return F.coalesce(F.is_valid_utf8(_text(name, kind)), F.lit(True))


def _in_arrow(
    rows: DataFrame, types: dict[str, HiveType], limit: int | None = None
) -> pa.Table | None:
    try:
        collected = rows.collect()
    except (OverflowError, ValueError):  # from datetime: years below 1 and above 9999
        return None
    if limit is not None and len(collected) > limit:
        return None
    if not all(row[-1] for row in collected):
        return None
    columns: dict[str, pa.Array] = {}
    for i, name in enumerate(rows.columns[:-1]):
        if name in types:
            values = [_plain(row[i], types[name]) for row in collected]
            columns[name] = pa.array(values, arrow_type(types[name]))
        else:
            columns[name] = pa.array([row[i] for row in collected], _type_of(name))
    return pa.table(columns)


def _type_of(name: str) -> pa.DataType:
    """Of a column that is ours: a partition value's text, or a part of the row's id."""
    return pa.string() if _is_value(name) else KEY_SCHEMA.field(name).type


def _is_value(name: str) -> bool:
    return name.startswith(VALUE) and name not in KEY_SCHEMA.names


def _several_tasks_at_once(spark: SparkSession) -> dict[str, str]:
    """Spark looks for the rows of a LIMIT in one task first, and in others only if there are too
    few: right for many rows, and slow for few."""
    name = "spark.sql.limit.initialNumPartitions"
    return {name: str(max(_TASKS_AT_ONCE, int(spark.conf.get(name) or 1)))}


def _has_odd_keys(kind: HiveType) -> bool:
    odd = kind.kind == "map" and (kind.children[0].children or kind.children[0].kind == "binary")
    return bool(odd) or any(map(_has_odd_keys, kind.children))


def _holds(kind: HiveType, *kinds: str) -> bool:
    return kind.kind in kinds or any(_holds(child, *kinds) for child in kind.children)


def _has_text(kind: HiveType) -> bool:
    """It may be long, or no UTF-8."""
    return _holds(kind, "string", "char", "varchar", "binary", "array", "map")


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
