"""Rows that are given to a method: a DataFrame, or what ``spark.createDataFrame`` makes one of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Protocol, runtime_checkable

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as T  # noqa: N812 - PySpark's own convention

from acidsql.errors import ArgumentTypeError


@runtime_checkable
class ArrowRows(Protocol):
    """A table in memory: of pandas, of pyarrow, or of any library that hands out Arrow's arrays."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Hand the rows out, as Arrow's PyCapsule interface says."""


NamedValues = Annotated[
    Mapping[str, Any] | Row, "a dict or a Row, which have the names of the columns"
]
Rows = Annotated[
    DataFrame | ArrowRows | Sequence[NamedValues],
    "a DataFrame of Spark or pandas, an Arrow table, or a list of dicts or Rows",
]


def to_frame(spark: SparkSession, rows: Rows) -> DataFrame:
    """Return rows as a DataFrame; a DataFrame is returned as it is. Spark takes a table of pandas
    itself; one of another library becomes a table of pyarrow first.

    A column of a list's rows that has only NULLs gets the type VOID, which any column takes.

    Raises:
        ArgumentTypeError: An empty list: nothing says which columns it has. Or Arrow's arrays are
            those of one column, which has no name.
        pyspark.errors.PySparkException: Spark takes no such rows.
    """
    if isinstance(rows, DataFrame):
        return rows
    if isinstance(rows, Sequence):
        return _frame_of_list(spark, rows)
    is_of_pandas = any(base.__module__.startswith("pandas.") for base in type(rows).__mro__)
    local: Any = rows if is_of_pandas else _arrow_table(rows)
    return spark.createDataFrame(local)


def _arrow_table(rows: ArrowRows) -> pa.Table:
    """Return rows as a table of pyarrow. Raise ArgumentTypeError if they are one column only."""
    try:
        return pa.table(rows)
    except pa.ArrowInvalid as error:
        raise ArgumentTypeError(
            f"The rows are no table, but a {type(rows).__name__}, which has no names of columns: "
            f"{error}. Make a table of it, such as pyarrow.table({{'id': …}})."
        ) from error


def _frame_of_list(spark: SparkSession, rows: Sequence[NamedValues]) -> DataFrame:
    """Return what ``spark.createDataFrame`` makes of the rows, which itself refuses a column of
    NULLs only: such a column is VOID here, unless a row has no names for its values. A name that a
    row lacks is NULL in it. Raises ArgumentTypeError for an empty list.
    """
    if not rows:
        raise ArgumentTypeError(
            "The list of rows is empty, so nothing says which columns it has. Leave the call out, "
            "or pass a DataFrame that has the columns and no rows: "
            'spark.createDataFrame([], "id INT, name STRING").'
        )
    records = [_record(row) for row in rows]
    columns = list(dict.fromkeys(name for record in records for name in record))
    null_columns = {name for name in columns if all(record.get(name) is None for record in records)}
    if not null_columns or not all(records):
        return spark.createDataFrame(rows)
    value_columns = [name for name in columns if name not in null_columns]
    types = {}
    if value_columns:
        values = [{name: record.get(name) for name in value_columns} for record in records]
        types = {field.name: field.dataType for field in spark.createDataFrame(values).schema}
    schema = T.StructType([T.StructField(name, types.get(name, T.NullType())) for name in columns])
    return spark.createDataFrame(
        [tuple(record.get(name) for name in columns) for record in records], schema
    )


def _record(row: NamedValues) -> dict[str, Any]:
    """Return a row's values, name → value, in the order in which Spark takes the columns: those of
    a dict by the alphabet. {} for a Row that has no names, or a name twice: Spark takes its values
    by position."""
    if not isinstance(row, Row):
        return dict(sorted(row.items()))
    names = getattr(row, "__fields__", ())
    return dict(zip(names, row, strict=True)) if len(set(names)) == len(row) else {}
