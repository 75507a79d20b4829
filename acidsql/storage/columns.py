"""A stored column as Spark reads it, and as the user sees it: SQL text, no Spark.

Two of Hive's types need work. A TIMESTAMP is a wall clock, so it is shown as TIMESTAMP_NTZ, the
only type of Spark's that prints the same in every session's time zone, daylight-saving gaps
included. Spark's ORC reader knows the wall clock only as an instant of the JVM's time zone; from
there it is moved back by that zone's offset. A CHAR(n) is padded with blanks to n, as Spark does
with its own tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from acidsql.acid.table import Table
from acidsql.acid.types import HiveType, parse_type, spark_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"  # CharVarcharUtils


def quote(name: str) -> str:
    """A name as an identifier of Spark's, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text as a string literal of Spark's, whatever is in it.

    Written as hexadecimal where it is not plain, because the meaning of a backslash depends on
    the session (``spark.sql.parser.escapedStringLiterals``).
    """
    if text.isascii() and text.isprintable() and not set(text) & {"'", "\\", '"', "$", "{"}:
        return f"'{text}'"
    return f"decode(x'{text.encode().hex()}', 'UTF-8')"


def read_type(hive_type: str) -> str:
    """The DDL type that Spark's ORC reader is asked for."""
    # TIMESTAMP alone may mean either of Spark's two (spark.sql.timestampType).
    return spark_ddl(hive_type, timestamp="timestamp_ltz")


def shown_type(hive_type: str) -> str:
    """The DDL type that the user sees."""
    return spark_ddl(hive_type)


def has_timestamp(hive_types: Iterable[str]) -> bool:
    """True if one of the types is, or holds, a TIMESTAMP."""
    return any(parse_type(text).holds("timestamp") for text in hive_types)


def shown(expression: str, hive_type: str, *, zone_offset_micros: int | None) -> str:
    """SQL that turns a column as it was read into what the user sees.

    Args:
        expression: The column as read.
        hive_type: Its type in the table.
        zone_offset_micros: What the JVM's time zone is ahead of UTC, in microseconds; None if
            timestamps were read as wall clocks already.
    """
    return _shown(expression, parse_type(hive_type), zone_offset_micros, 0)


def _shown(sql: str, node: HiveType, offset: int | None, depth: int) -> str:
    if not (node.holds("char") or (offset is not None and node.holds("timestamp"))):
        return sql
    if node.kind == "char":
        return f"rpad({sql}, {node.parameters[0]}, ' ')"
    if node.kind == "timestamp":
        assert offset is not None
        return (
            f"timestampadd(MICROSECOND, unix_micros({sql}) + {offset}L, "
            "TIMESTAMP_NTZ '1970-01-01 00:00:00')"
        )

    def convert(inner: str, child: HiveType, deeper: int) -> str:
        return _shown(inner, child, offset, deeper)

    return nested(sql, node, convert, depth)


def nested(sql: str, node: HiveType, convert, depth: int) -> str:  # type: ignore[no-untyped-def]
    """Rebuild an array, map or struct with each part converted.

    Args:
        sql: The value.
        node: Its type.
        convert: ``(sql, type, depth) -> sql`` for a part; depth numbers lambda variables, which
            may not shadow each other.
        depth: How deep this value lies.
    """
    x = f"__acidsql_x{depth}"
    if node.kind == "array":
        return f"transform({sql}, {x} -> {convert(x, node.children[0], depth + 1)})"
    if node.kind == "map":
        k, v = f"__acidsql_k{depth}", f"__acidsql_v{depth}"
        keys = f"transform(map_keys({sql}), {k} -> {convert(k, node.children[0], depth + 1)})"
        values = f"transform(map_values({sql}), {v} -> {convert(v, node.children[1], depth + 1)})"
        return f"map_from_arrays({keys}, {values})"
    parts = ", ".join(
        f"{literal(name)}, {convert(f'{sql}.{quote(name)}', child, depth)}"
        for name, child in zip(node.names, node.children, strict=True)
    )
    return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({parts}) END"


def as_char(rows: DataFrame, table: Table) -> DataFrame:
    """Tell Spark which strings are CHAR: it then pads what they are compared with, as it does for
    its own tables."""
    for column in table.all_columns:
        if column.type.startswith("char") and column.name in rows.columns:
            rows = rows.withMetadata(column.name, {_CHAR_TYPE: column.type})
    return rows
