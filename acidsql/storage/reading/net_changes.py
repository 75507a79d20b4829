"""Net changes: without the rows that are the same in the end.

A row that was changed and changed back has another row id than before, so its deletion and its
insertion are told apart from a real change by all of its values alone.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import ROW__ID
from acidsql.storage.columns import quote
from acidsql.storage.reading.change_columns import CHANGE_TYPE, COMMIT_VERSION, DELETE, INSERT
from acidsql.storage.spark.session import jvm

_NUMBER, _DELETED, _INSERTED = "__acidsql_number", "__acidsql_deleted", "__acidsql_inserted"


def drop_equal_pairs(rows: DataFrame, table: Table) -> DataFrame:
    """Return net changes without the pairs of a deletion and an insertion of equal rows, lazily.

    Values are equal as in a GROUP BY of Spark's: NULL is equal to NULL, NaN to NaN, -0.0 to 0.0. If
    there are more equal insertions than deletions, or more deletions, the last ones stay.

    Args:
        rows: Net changes, as ``changes`` gives them.
        table: Their table.
    """
    types = {field.name.lower(): field.dataType for field in rows.schema.fields}
    names = [column.name for column in table.all_columns]
    values = ", ".join(comparable_sql(quote(name), types[name.lower()]) for name in names)
    counted_rows = jvm.select(
        rows,
        "*",
        f"row_number() OVER (PARTITION BY {values}, {CHANGE_TYPE} "
        f"ORDER BY {COMMIT_VERSION}, {ROW__ID}) AS {_NUMBER}",
        *(
            f"count_if({CHANGE_TYPE} = '{kind}') OVER (PARTITION BY {values}) AS {name}"
            for kind, name in ((DELETE, _DELETED), (INSERT, _INSERTED))
        ),
    )
    differing = counted_rows.where(f"{_NUMBER} > least({_DELETED}, {_INSERTED})")
    return jvm.select(differing, *map(quote, rows.columns))


def comparable_sql(value: str, kind: DataType, depth: int = 0) -> str:
    """Return SQL of a value in a form that Spark can compare: each map in it, nested too, becomes
    an array of its entries, ordered by key. A value without maps stays as it is.

    Args:
        value: SQL of the value.
        kind: Its type.
        depth: How many lambda functions are around it.
    """
    if not _has_map(kind):
        return value
    variable = f"x{depth}"
    match kind:
        case ArrayType():
            element = comparable_sql(variable, kind.elementType, depth + 1)
            return f"transform({value}, {variable} -> {element})"
        case StructType():
            fields = ", ".join(
                comparable_sql(f"{value}.{quote(field.name)}", field.dataType, depth)
                for field in kind.fields
            )
            return f"CASE WHEN {value} IS NOT NULL THEN struct({fields}) END"
        case MapType():
            entry = comparable_sql(f"{variable}.value", kind.valueType, depth + 1)
            entries = (
                f"transform(map_entries({value}), "
                f"{variable} -> named_struct('key', {variable}.key, 'value', {entry}))"
            )
            return (
                f"array_sort({entries}, (l, r) -> "
                "CASE WHEN l.key < r.key THEN -1 WHEN l.key > r.key THEN 1 ELSE 0 END)"
            )
    raise AssertionError(kind)


def _has_map(kind: DataType) -> bool:
    """Whether a type is or contains a MAP."""
    match kind:
        case MapType():
            return True
        case ArrayType():
            return _has_map(kind.elementType)
        case StructType():
            return any(_has_map(field.dataType) for field in kind.fields)
    return False
