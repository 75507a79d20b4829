"""Collect a few rows of a query to the driver, which then writes them without Python workers.

The rows come by Arrow, exactly as a task would get them. If they would take much memory, a job
writes them instead: 1,000 rows may have a gigabyte.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DateType, NumericType, TimestampNTZType

from acidsql.acid.table import Table
from acidsql.storage.columns import quote
from acidsql.storage.event_records import are_keys_alone
from acidsql.storage.spark.literal_rows import FITS, mark_collectable, text_sql_by_column
from acidsql.storage.spark.session.jvm import (
    METHODS_THAT_JAVA_COMPILES,
    changed_conf,
    estimated_bytes,
)

_BYTES_MAX = 16 * 1024 * 1024  # bytes of all rows that may be collected
KEYS_FOR_A_ROW = 10  # a row id is 20 bytes
_SMALL_SOURCE = 1024 * 1024
_SHORT = (BooleanType, NumericType, DateType, TimestampNTZType)
_CONF = METHODS_THAT_JAVA_COMPILES | {"spark.sql.execution.arrow.useLargeVarTypes": "false"}


def collect_events_if_few(
    rows: DataFrame, table: Table, limit: int, *, if_small: bool = False
) -> pa.Table | None:
    """Collect the events of a query to the driver, with the query's columns. Return None if they
    are more than ``limit``, if one is longer than its share of 16 MiB (the ``limit``-th part), or
    if Arrow or ``spark.driver.maxResultSize`` refuses them. This runs a job.

    Args:
        rows: The events that a statement will write.
        table: The target.
        limit: The number of rows at most; ten times as many if events are row ids without rows.
        if_small: If Spark estimates more than 1 MiB, return None, and run no job.
    """
    if are_keys_alone(rows.columns):
        limit *= KEYS_FOR_A_ROW
    return _collect_bounded(
        _limit_rows(rows, text_sql_by_column(rows, table), limit), limit, if_small
    )


def collect_rows_if_few(rows: DataFrame, limit: int, *, if_small: bool = False) -> pa.Table | None:
    """Collect the rows of any query to the driver, with the query's columns. Return None if they
    are more than ``limit``, if one is longer than its share of 16 MiB (the ``limit``-th part), or
    if Arrow or ``spark.driver.maxResultSize`` refuses them. This runs a job.

    ``if_small``: if Spark estimates more than 1 MiB, return None, and run no job.
    """
    return _collect_bounded(_limit_rows(rows, _long_columns(rows), limit), limit, if_small)


def _collect_bounded(bounded_rows: DataFrame, limit: int, if_small: bool) -> pa.Table | None:
    """Collect the result of ``_limit_rows``, without ``FITS``. Return None if it has more rows than
    ``limit``, or a row with long values; if Arrow or the driver's limit refuses it; or, with
    ``if_small``, if Spark estimates more than 1 MiB: then no job runs.
    """
    if if_small and estimated_bytes(bounded_rows) > _SMALL_SOURCE:
        return None
    with changed_conf(bounded_rows.sparkSession, _CONF):
        try:
            collected = bounded_rows.toArrow()
        except pa.ArrowException:
            # PySpark builds some nested nulls in a way that Arrow refuses; tasks get them right.
            return None
        except Exception as error:
            if "spark.driver.maxResultSize" in str(error):
                return None
            raise
    if collected.num_rows > limit or not pc.all(collected[FITS], min_count=0).as_py():
        return None
    return collected.drop_columns([FITS])


def _limit_rows(rows: DataFrame, measured_columns: Mapping[str, str], limit: int) -> DataFrame:
    """Return ``limit`` + 1 of the rows at most, lazily, with a column ``FITS``: whether the row's
    measured values together have at most a ``limit``-th of 16 MiB. In a row that does not fit they
    are NULL.

    ``measured_columns``: the columns that may be long → SQL of the value as text or bytes.
    """
    sizes = (f"coalesce(octet_length({text}), 0)" for text in measured_columns.values())
    fits = f"{' + '.join(['0L', *sizes])} <= {_BYTES_MAX // limit}"
    return mark_collectable(rows, measured_columns, fits).limit(limit + 1)


def _long_columns(rows: DataFrame) -> dict[str, str]:
    """Return the columns whose values may be long (all but booleans, numbers, dates and
    TIMESTAMP_NTZ), name → SQL of the value as text.
    """
    return {
        field.name: f"CAST({quote(field.name)} AS STRING)"
        for field in rows.schema
        if not isinstance(field.dataType, _SHORT)
    }
