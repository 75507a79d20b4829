"""SQL that turns a column as Spark reads it into the column that the user sees.

Two of Hive's types need work. A TIMESTAMP is a wall clock, so the user sees a TIMESTAMP_NTZ: the
only type of Spark's that prints the same in every time zone, also in the gaps of daylight saving
time. Spark's ORC reader gives the wall clock as an instant in the JVM's time zone, so the SQL moves
it back by that zone's offset. A CHAR(n) is padded with blanks to n, as Spark does for its own
tables.
"""

from __future__ import annotations

from collections.abc import Iterable

from acidsql.acid.values.types import HiveType, parse_type, spark_ddl


def string_literal(value: object) -> str:
    """Return a value's text as a string literal of acidsql's own SQL, or of Spark's DDL: in single
    quotes, with escapes by backslashes. ``literal`` is for expressions that Spark evaluates."""
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quote(name: str) -> str:
    """Return a name as an identifier in Spark's SQL. The name may have any characters."""
    return "`" + name.replace("`", "``") + "`"


def quoted_path(parts: Iterable[str]) -> str:
    """Return the parts of a name as identifiers with dots between them."""
    return ".".join(map(quote, parts))


def literal(text: str) -> str:
    """Return a text as a string literal in Spark's SQL. The text may have any characters.

    Printable ASCII without quotes, backslashes, ``$`` and ``{`` is put between single quotes. Any
    other text becomes ``CAST(x'…' AS STRING)`` with its bytes in hexadecimal, because the meaning
    of a backslash depends on the session (``spark.sql.parser.escapedStringLiterals``).
    """
    if text.isascii() and text.isprintable() and not set(text) & {"'", "\\", '"', "$", "{"}:
        return f"'{text}'"
    return f"CAST(x'{text.encode().hex()}' AS STRING)"  # the names of a struct are constants


def read_type(hive_type: str) -> str:
    """Return the DDL type with which Spark's ORC reader reads a column of Hive's type; a TIMESTAMP
    as ``timestamp_ltz``.
    """
    # The word TIMESTAMP may mean either of Spark's timestamp types (spark.sql.timestampType).
    return spark_ddl(hive_type, timestamp="timestamp_ltz")


def shown_type(hive_type: str) -> str:
    """Return the DDL type of Spark that the user sees for a column of Hive's type."""
    return spark_ddl(hive_type)


def has_timestamp(hive_types: Iterable[str]) -> bool:
    """Whether one of the types is or contains a TIMESTAMP."""
    return any(parse_type(text).holds("timestamp") for text in hive_types)


def shown_sql(expression: str, hive_type: str, *, zone_offset_micros: int | None) -> str:
    """Return SQL that turns a column as Spark reads it into the column that the user sees.

    It is ``expression`` itself if the type has no CHAR, and no TIMESTAMP to be moved.

    Args:
        expression: SQL of the column as read.
        hive_type: The column's type in the table.
        zone_offset_micros: The offset of the JVM's time zone from UTC, in microseconds; None if
            timestamps are already read as wall clocks.
    """
    return _shown_node_sql(expression, parse_type(hive_type), zone_offset_micros, 0)


def _shown_node_sql(sql: str, node: HiveType, zone_offset_micros: int | None, depth: int) -> str:
    """Return SQL that turns a value as read, nested too, into the value that the user sees: CHAR is
    padded, or cut, to its length; a TIMESTAMP is moved by the zone's offset in microseconds and
    becomes a TIMESTAMP_NTZ (an offset of None: it stays). A value of another type stays: ``sql``.
    ``depth`` numbers the variables of lambdas.
    """
    if not (node.holds("char") or (zone_offset_micros is not None and node.holds("timestamp"))):
        return sql
    if node.kind == "char":
        return f"rpad({sql}, {node.parameters[0]}, ' ')"
    if node.kind == "timestamp":
        assert zone_offset_micros is not None
        return (
            f"timestampadd(MICROSECOND, unix_micros({sql}) + {zone_offset_micros}L, "
            "TIMESTAMP_NTZ '1970-01-01 00:00:00')"
        )

    def convert(inner: str, child: HiveType, deeper: int) -> str:
        return _shown_node_sql(inner, child, zone_offset_micros, deeper)

    return nested_sql(sql, node, convert, depth)


def nested_sql(sql: str, node: HiveType, convert, depth: int) -> str:  # type: ignore[no-untyped-def]
    """Return SQL that rebuilds an array (``transform``), map (``map_from_arrays``) or struct
    (``named_struct``) with each element, key, value or field converted. NULL stays NULL.

    Args:
        sql: SQL of the value.
        node: The value's type, which is nested.
        convert: ``(sql, type, depth) -> sql`` for one part. The depth numbers the variables of
            lambdas, because a variable must not hide another. Below an array or map it is greater
            by one, in a struct's field the same.
        depth: The depth of this value.
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
