"""The schema of what a Python data source shows, made in a process that has no JVM to parse DDL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import types as T  # noqa: N812 - PySpark's own convention

from acidsql.acid.table import Column
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.storage.spark.char_columns import char_metadata

_PLAIN_TYPES: dict[str, T.DataType] = {
    "boolean": T.BooleanType(), "tinyint": T.ByteType(), "smallint": T.ShortType(),
    "int": T.IntegerType(), "bigint": T.LongType(), "float": T.FloatType(),
    "double": T.DoubleType(), "string": T.StringType(), "varchar": T.StringType(),
    "char": T.StringType(), "binary": T.BinaryType(), "date": T.DateType(),
    "timestamp": T.TimestampNTZType(),
}  # fmt: skip


def shown_schema(columns: Iterable[Column]) -> T.StructType:
    """Return the schema of these columns as a scan shows them: a CHAR is a string whose metadata
    says that Spark is to compare it as a CHAR.
    """
    return T.StructType(
        [
            T.StructField(
                column.name, _shown_type(parse_type(column.type)), True, char_metadata(column.type)
            )
            for column in columns
        ]
    )


def _shown_type(node: HiveType) -> T.DataType:
    children: list[Any] = [_shown_type(child) for child in node.children]
    match node.kind:
        case "decimal":
            return T.DecimalType(*node.parameters)
        case "array":
            return T.ArrayType(*children)
        case "map":
            return T.MapType(*children)
        case "struct":
            pairs = zip(node.names, children, strict=True)
            return T.StructType([T.StructField(name, kind) for name, kind in pairs])
    return _PLAIN_TYPES[node.kind]


def schema_text(schema: T.StructType) -> str:
    """Return the columns of a schema for a message. Lengths of CHAR are among them."""
    return ", ".join(
        f"{field.name} {next(iter(field.metadata.values()), field.dataType.simpleString())}"
        for field in schema
    )
