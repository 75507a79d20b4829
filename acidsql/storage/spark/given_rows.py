"""Rows that are given to a method: a DataFrame, or what ``spark.createDataFrame`` makes one of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession


@runtime_checkable
class ArrowRows(Protocol):
    """A table in memory: of pandas, of pyarrow, or of any library that hands out Arrow's arrays."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Hand the rows out, as Arrow's PyCapsule interface says."""


Rows = DataFrame | ArrowRows | Sequence[Mapping[str, Any] | Row]


def as_frame(spark: SparkSession, rows: Rows) -> DataFrame:
    """The rows as a DataFrame.

    Raises:
        pyspark.errors.PySparkException: Spark takes no such rows, or there is none to take the
            columns from.
    """
    if isinstance(rows, DataFrame):
        return rows
    is_known = isinstance(rows, Sequence) or type(rows).__module__.startswith("pandas.")
    local: Any = rows if is_known else pa.table(rows)
    return spark.createDataFrame(local)
