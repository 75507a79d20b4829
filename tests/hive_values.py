"""Values of an Arrow table in the form of the golden tables and of the Hive kit."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from acidsql.acid.values.types import HiveType, parse_type

Row = tuple[tuple[int, int, int] | None, list[Any]]
_EPOCH = np.datetime64(0, "us")


def rows_of(table: pa.Table, types: list[str]) -> list[Row]:
    """The rows of a table, ordered by row id (or else by value): the row id, then the values.

    Args:
        table: ``row__id`` first if there is one, then a column for each type.
        types: Hive's type texts.
    """
    ids: list[Any] = [None] * table.num_rows
    names = table.column_names
    if "row__id" in names:
        ids = [tuple(row.values()) for row in table.column("row__id").to_pylist()]
        names = names[1:]
    nodes = [parse_type(text) for text in types]
    assert len(names) == len(nodes), f"columns {names} for the types {types}"
    columns = [
        [_value(one, node) for one in _plain(table.column(name).combine_chunks())]
        for name, node in zip(names, nodes, strict=True)
    ]
    rows = [(one, list(values)) for one, *values in zip(ids, *columns, strict=True)]
    return sorted(rows, key=repr)


def _plain(array: pa.Array) -> list[Any]:
    """Python values. Dates and timestamps are numbers, because Python's begin with the year 1 and
    end with the year 9999."""
    if pa.types.is_struct(array.type):
        names = [field.name for field in array.type]
        parts = zip(*(_plain(part) for part in array.flatten()), strict=True)
        rows = [dict(zip(names, values, strict=True)) for values in parts]
        return [row if valid else None for row, valid in zip(rows, _valid(array), strict=True)]
    if pa.types.is_map(array.type):
        pairs = list(zip(_plain(array.keys), _plain(array.items), strict=True))
        return _lists(array, pairs)
    if pa.types.is_list(array.type):
        return _lists(array, _plain(array.values))
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(array.type):
        assert array.type.tz is None, "a Hive TIMESTAMP is a wall clock, without a zone"
        return array.cast(pa.int64()).to_pylist()
    return array.to_pylist()


def _valid(array: pa.Array) -> list[bool]:
    return array.is_valid().to_pylist()


def _lists(array: pa.Array, items: list[Any]) -> list[Any]:
    ends = array.offsets.to_pylist()
    pieces = [items[a:b] for a, b in pairwise(ends)]
    return [piece if valid else None for piece, valid in zip(pieces, _valid(array), strict=True)]


def _value(value: Any, node: HiveType) -> Any:
    if value is None:
        return None
    if node.kind in ("float", "double"):
        if math.isnan(value) or math.isinf(value):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        return float(str(np.float32(value))) if node.kind == "float" else value
    if node.kind == "decimal":
        return _decimal(value)
    if node.kind == "binary":
        return "0x" + value.hex()
    if node.kind == "date":
        return str(np.datetime64(value, "D"))
    if node.kind == "timestamp":
        return _timestamp(value)
    return _json(value, node) if node.children else value


def _decimal(value: Decimal) -> str:
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _timestamp(micros: int) -> str:
    text = str(_EPOCH + np.timedelta64(micros, "us")).replace("T", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _json(value: Any, node: HiveType) -> str:
    """Hive's own JSON: numbers as keys of maps have no quotes."""
    if value is None:
        return "null"
    if node.kind == "array":
        return "[" + ",".join(_json(one, node.children[0]) for one in value) + "]"
    if node.kind == "map":
        key, item = node.children
        return "{" + ",".join(f"{_json(k, key)}:{_json(v, item)}" for k, v in value) + "}"
    if node.kind == "struct":
        fields = zip(node.names, node.children, strict=True)
        return "{" + ",".join(f'"{name}":{_json(value[name], n)}' for name, n in fields) + "}"
    shown = _value(value, node)
    if node.kind in ("string", "varchar", "char", "date", "timestamp", "binary"):
        return f'"{shown}"'
    return str(shown).lower() if node.kind == "boolean" else str(shown)
