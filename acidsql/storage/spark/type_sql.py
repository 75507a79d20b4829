"""Spark's types as SQL."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, TimestampType

from acidsql.storage.columns import quote


def type_sql(kind: DataType, *, with_not_null: bool = False) -> str:
    """Return a type in SQL that means the same in every session, whatever the names of its fields:
    these are quoted, and TIMESTAMP is written TIMESTAMP_LTZ, nested ones too.

    Args:
        kind: The type.
        with_not_null: Write NOT NULL after the fields of a struct that are never NULL.
    """

    def child_sql(child: DataType) -> str:
        return type_sql(child, with_not_null=with_not_null)

    def field(struct_field: StructField) -> str:
        not_null = " NOT NULL" if with_not_null and not struct_field.nullable else ""
        return f"{quote(struct_field.name)}: {child_sql(struct_field.dataType)}{not_null}"

    if isinstance(kind, ArrayType):
        return f"ARRAY<{child_sql(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{child_sql(kind.keyType)}, {child_sql(kind.valueType)}>"
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(map(field, kind.fields))}>"
    # What the word TIMESTAMP means depends on the session (spark.sql.timestampType).
    return "TIMESTAMP_LTZ" if isinstance(kind, TimestampType) else kind.simpleString()
