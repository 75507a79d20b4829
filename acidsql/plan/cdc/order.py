"""Order values: SQL that gives the order value of a record in a form that compares and is stored.

The form is plain: whole numbers are BIGINT, an instant is its microseconds, a struct has the fields
``f1``, ``f2`` …. So the values of sources with slightly different types compare.
"""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.acid.table import Column
from acidsql.acid.values.types import HiveType, parse_type, spark_ddl
from acidsql.errors import FormatError
from acidsql.storage.columns import nested_sql, quote

_BIGINT = HiveType("bigint")
_SMALL_INTEGERS = ("tinyint", "smallint", "int")
_WIDER = (("float", "double"), ("date", "timestamp"))


def plain_order(sql: str, kind: HiveType) -> tuple[str, HiveType] | None:
    """Return SQL of an order value in its plain form, and the form's type: BIGINT for small
    integers; BIGINT microseconds for an instant (TIMESTAMP, not TIMESTAMP_NTZ); DOUBLE for FLOAT;
    for a struct, one of its fields in this form, ``f1``, ``f2`` …. Other plain values stay as they
    are. Return None for an array, a map, a struct without fields, a text with a collation, and a
    type that no table can have, also in a struct.

    Args:
        sql: The value, a column or a field.
        kind: The value's type.
    """
    if kind.collation:
        return None  # columns of tables compare byte by byte
    if kind.kind in _SMALL_INTEGERS:
        return f"CAST({sql} AS BIGINT)", _BIGINT
    if kind.kind == "float":
        return f"CAST({sql} AS DOUBLE)", HiveType("double")
    if kind.kind == "timestamp_ltz":
        return f"unix_micros({sql})", _BIGINT
    if kind.kind == "struct":
        parts = [
            plain_order(f"{sql}.{quote(name)}", child)
            for name, child in zip(kind.names, kind.children, strict=True)
        ]
        plain_parts = [part for part in parts if part is not None]
        return None if len(plain_parts) < len(parts) or not parts else as_struct(plain_parts)
    try:
        is_plain = not kind.children and parse_type(str(kind)) == kind
    except FormatError:
        is_plain = False
    return (sql, kind) if is_plain else None


def keeps_order(value_type: HiveType, column: Column) -> bool:
    """Whether a column tells apart all values of a type, and keeps their order: it has the same
    type, or at least as many digits after the point (integers have none), or is DOUBLE for FLOAT or
    TIMESTAMP for DATE. NULL fits any. False for nested types and collations.

    A DATE does not tell the times of a day apart, nor does a wall clock tell the two hours apart
    between which the clocks go back. As texts, numbers have another order. A number that is out of
    the column's range is an error later.
    """
    column_type = parse_type(column.type)
    if value_type.children or column_type.children or value_type.collation:
        return False
    digits, column_digits = _scale(value_type), _scale(column_type)
    if digits is not None and column_digits is not None:
        return digits <= column_digits
    return (
        value_type == column_type
        or value_type.kind == "void"
        or (value_type.kind, column_type.kind) in _WIDER
    )


def _scale(order_type: HiveType) -> int | None:
    """Return the number of digits after the decimal point, 0 for integers; None for other types."""
    if order_type.kind == "decimal":
        return order_type.parameters[1]
    return 0 if order_type.kind in (*_SMALL_INTEGERS, "bigint") else None


def as_struct(parts: Sequence[tuple[str, HiveType]]) -> tuple[str, HiveType]:
    """Combine several values, each with its type, to one order value, a struct with fields f1, f2
    …; return its SQL and type."""
    names = tuple(f"f{number}" for number in range(1, len(parts) + 1))
    kinds = tuple(kind for _, kind in parts)
    struct_type = HiveType("struct", children=kinds, names=names)
    return struct_sql([sql for sql, _ in parts]), struct_type


def struct_sql(values: Sequence[str]) -> str:
    """Return SQL of an order value with several parts, a struct with the fields f1, f2 …."""
    fields = ", ".join(f"'f{number}', {sql}" for number, sql in enumerate(values, 1))
    return f"named_struct({fields})"


def stored_type(hive_type: str) -> HiveType:
    """Return the type of an order value that a column holds: a CHAR or VARCHAR is a text."""
    return parse_type(spark_ddl(hive_type, timestamp="timestamp"))


def has_null(sql: str, kind: HiveType) -> str:
    """Return SQL that tells whether an order value, or a part of it, is NULL: terms joined by OR,
    without brackets around them."""
    if kind.kind != "struct":
        return f"{sql} IS NULL"
    parts = zip(kind.names, kind.children, strict=True)
    return " OR ".join(has_null(f"{sql}.{quote(name)}", child) for name, child in parts)


def comparable(sql: str, node: HiveType, depth: int = 0) -> str:
    """Return SQL of a value that Spark compares: each map in it, at any depth, becomes a sorted
    array of its entries. A value without a map stays as it is. ``depth``: how many lambdas are
    around it."""
    if not node.holds("map"):
        return sql
    if node.kind != "map":
        return str(nested_sql(sql, node, comparable, depth))
    e = f"__acidsql_e{depth}"
    value = comparable(f"{e}.value", node.children[1], depth + 1)
    pairs = f"transform(map_entries({sql}), {e} -> named_struct('k', {e}.key, 'v', {value}))"
    return f"array_sort({pairs})"
