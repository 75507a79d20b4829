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


def packed_row(rows: DataFrame) -> Column:
    """Return a column that has each row as a text of JSON, which keeps all values exactly.
    ``unpacked_rows`` reads it.

    Raises:
        UnsupportedError: A column holds a VARIANT.
    """
    packed_columns = [
        F.expr(_pack(quote(column.name), column.dataType)).alias(column.name)
        for column in rows.schema
    ]
    return F.to_json(F.struct(*packed_columns), _OPTIONS)


def unpacked_rows(rows: DataFrame, text: str, schema: StructType) -> DataFrame:
    """Return the rows whose JSON a column has, lazily; other columns are dropped. A row that cannot
    be read fails the query.

    Args:
        rows: Has the column.
        text: The column's name.
        schema: The columns of the rows.
    """
    json_type, root = _json_schema(schema), "__acidsql_packed"
    parsed = rows.select(F.from_json(F.col(text), json_type, _PARSING).alias(root))  # type: ignore[arg-type]
    return parsed.selectExpr(
        *(
            f"{_unpack(f'{root}.{quote(column.name)}', column.dataType)} AS {quote(column.name)}"
            for column in schema
        )
    )


def _json_schema(data_type: DataType) -> DataType:
    """Return the schema with which ``from_json`` reads a packed value of this type: each simple
    value is a STRING, and a map is an array of structs with the fields k and v."""
    if isinstance(data_type, ArrayType):
        return ArrayType(_json_schema(data_type.elementType))
    if isinstance(data_type, MapType):
        entry = {"k": data_type.keyType, "v": data_type.valueType}
        return ArrayType(
            StructType([StructField(name, _json_schema(kind)) for name, kind in entry.items()])
        )
    if isinstance(data_type, StructType):
        return StructType(
            [StructField(field.name, _json_schema(field.dataType)) for field in data_type]
        )
    return StringType()


def _pack(sql: str, data_type: DataType, depth: int = 0) -> str:
    """Return SQL of a value as ``to_json`` is to get it: simple values as texts, arrays and structs
    of these, and a map as an array of structs of k and v. Raise UnsupportedError for a VARIANT.

    A BINARY becomes its hexadecimal form, without the mark, and a TIMESTAMP its microseconds since
    1970 in UTC. A STRING stays, unless it is not valid UTF-8 or begins with the mark; then it
    becomes the mark and its hexadecimal form. Any other simple value is cast to STRING. ``depth``
    makes the names in lambda functions different.
    """
    element = f"__acidsql_x{depth}"
    match data_type:
        case ArrayType():
            return (
                f"transform({sql}, {element} -> {_pack(element, data_type.elementType, depth + 1)})"
            )
        case MapType():
            key = _pack(f"{element}.key", data_type.keyType, depth + 1)
            value = _pack(f"{element}.value", data_type.valueType, depth + 1)
            return (
                f"transform(map_entries({sql}), "
                f"{element} -> named_struct('k', {key}, 'v', {value}))"
            )
        case StructType():
            return _struct_sql(sql, data_type, _pack, depth)
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


def _unpack(sql: str, data_type: DataType, depth: int = 0) -> str:
    """Return SQL of a value of this type from the texts, arrays and structs that ``_pack`` made of
    it; of a NullType always NULL. ``sql``: the packed value."""
    element = f"__acidsql_x{depth}"
    match data_type:
        case ArrayType():
            return (
                f"transform({sql}, "
                f"{element} -> {_unpack(element, data_type.elementType, depth + 1)})"
            )
        case MapType():
            key = _unpack(f"{element}.k", data_type.keyType, depth + 1)
            value = _unpack(f"{element}.v", data_type.valueType, depth + 1)
            return f"map_from_entries(transform({sql}, {element} -> struct({key}, {value})))"
        case StructType():
            return _struct_sql(sql, data_type, _unpack, depth)
        case BinaryType():
            return f"unhex({sql})"
        case TimestampType():
            return f"timestamp_micros(CAST({sql} AS BIGINT))"
        case StringType():
            hex_text = f"CAST(unhex(substr({sql}, {len(_MARK) + 1})) AS STRING)"
            text = f"CASE WHEN startswith({sql}, '{_MARK}') THEN {hex_text} ELSE {sql} END"
            return f"CAST({text} AS {type_sql(data_type)})"
        case NullType():
            return "NULL"
    return f"CAST({sql} AS {type_sql(data_type)})"


def _struct_sql(sql: str, struct_type: StructType, convert: _Convert, depth: int) -> str:
    """Return SQL of a struct whose fields are converted by ``convert``; NULL stays NULL."""
    fields = ", ".join(
        f"{literal(field.name)}, {convert(f'{sql}.{quote(field.name)}', field.dataType, depth)}"
        for field in struct_type
    )
    return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({fields}) END"
