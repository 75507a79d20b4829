"""Rows of any columns as texts of JSON, and back, without a change of any value.

A value in the JSON is a text, NULL, or an array or object of these. Spark's own JSON would change
values: it rounds times to milliseconds, shifts wall clocks, reads no years above 9999, and repairs
texts that are not valid UTF-8. So such a text is the hexadecimal form of its bytes behind a mark.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
)

from acidsql.errors import UnsupportedError
from acidsql.storage.columns import literal, quote
from acidsql.storage.spark.type_sql import type_sql

_OPTIONS = {"ignoreNullFields": "false"}
_PARSING = {"mode": "FAILFAST", "maxStringLen": str(2**31 - 1)}  # Spark's default is 20,000,000
_MARK = "hex:"  # of bytes; a text that begins so is marked, too
_Convert = Callable[[str, DataType, int], str]


def packed(rows: DataFrame) -> Column:
    """The JSON of each row.

    Raises:
        UnsupportedError: A column holds a VARIANT.
    """
    parts = [F.expr(_pack(quote(one.name), one.dataType)).alias(one.name) for one in rows.schema]
    return F.to_json(F.struct(*parts), _OPTIONS)


def unpacked(rows: DataFrame, text: str, schema: StructType) -> DataFrame:
    """The rows whose JSON is in a column.

    Args:
        rows: Has the column.
        text: The column's name.
        schema: The columns of the rows.
    """
    kind, root = _kind(schema), "__acidsql_packed"
    parsed = rows.select(F.from_json(F.col(text), kind, _PARSING).alias(root))  # type: ignore[arg-type]
    return parsed.selectExpr(
        *(
            f"{_unpack(f'{root}.{quote(one.name)}', one.dataType)} AS {quote(one.name)}"
            for one in schema
        )
    )


def _kind(kind: DataType) -> DataType:
    """The type of a packed value."""
    if isinstance(kind, ArrayType):
        return ArrayType(_kind(kind.elementType))
    if isinstance(kind, MapType):
        entry = {"k": kind.keyType, "v": kind.valueType}
        return ArrayType(StructType([StructField(n, _kind(one)) for n, one in entry.items()]))
    if isinstance(kind, StructType):
        return StructType([StructField(one.name, _kind(one.dataType)) for one in kind])
    return StringType()


def _pack(sql: str, kind: DataType, depth: int = 0) -> str:
    x = f"__acidsql_x{depth}"
    match kind:
        case ArrayType():
            return f"transform({sql}, {x} -> {_pack(x, kind.elementType, depth + 1)})"
        case MapType():
            key = _pack(f"{x}.key", kind.keyType, depth + 1)
            value = _pack(f"{x}.value", kind.valueType, depth + 1)
            return f"transform(map_entries({sql}), {x} -> named_struct('k', {key}, 'v', {value}))"
        case StructType():
            return _fields(sql, kind, _pack, depth)
        case BinaryType():
            return f"hex({sql})"
        case StringType():
            text = f"CAST({sql} AS STRING)"
            is_plain = f"is_valid_utf8({text}) AND NOT startswith({text}, '{_MARK}')"
            return f"CASE WHEN NOT ({is_plain}) THEN concat('{_MARK}', hex({text})) ELSE {text} END"
        case TimestampType():  # as a text it would depend on the session's time zone
            return f"CAST(unix_micros({sql}) AS STRING)"
        case VariantType():
            raise UnsupportedError(
                "A record with a VARIANT cannot wait for the rest of its source transaction. Make "
                "it a STRING by to_json(…)."
            )
    return f"CAST({sql} AS STRING)"


def _unpack(sql: str, kind: DataType, depth: int = 0) -> str:
    x = f"__acidsql_x{depth}"
    match kind:
        case ArrayType():
            return f"transform({sql}, {x} -> {_unpack(x, kind.elementType, depth + 1)})"
        case MapType():
            key = _unpack(f"{x}.k", kind.keyType, depth + 1)
            value = _unpack(f"{x}.v", kind.valueType, depth + 1)
            return f"map_from_entries(transform({sql}, {x} -> struct({key}, {value})))"
        case StructType():
            return _fields(sql, kind, _unpack, depth)
        case BinaryType():
            return f"unhex({sql})"
        case TimestampType():
            return f"timestamp_micros(CAST({sql} AS BIGINT))"
        case StringType():
            given = f"CAST(unhex(substr({sql}, {len(_MARK) + 1})) AS STRING)"
            text = f"CASE WHEN startswith({sql}, '{_MARK}') THEN {given} ELSE {sql} END"
            return f"CAST({text} AS {type_sql(kind)})"
        case NullType():
            return "NULL"
    return f"CAST({sql} AS {type_sql(kind)})"


def _fields(sql: str, kind: StructType, convert: _Convert, depth: int) -> str:
    parts = ", ".join(
        f"{literal(one.name)}, {convert(f'{sql}.{quote(one.name)}', one.dataType, depth)}"
        for one in kind
    )
    return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({parts}) END"
