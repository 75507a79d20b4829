"""What the doors do for a session that acidsql extends.

Each function gets the extension, what Spark's own call does or has given, the session or DataFrame,
and the arguments of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from acidsql.api.extension.catalog import CatalogCalls
from acidsql.api.extension.extension import Extension, extended
from acidsql.api.extension.reader import ReaderCalls
from acidsql.api.extension.stream_writer import StreamWriterCalls
from acidsql.api.extension.writer import WriterCalls
from acidsql.api.extension.writer_v2 import WriterV2Calls
from acidsql.sql.text.tokens import SqlText

_Call = Callable[..., Any]


def run_sql(
    extension: Extension,
    call: _Call,
    spark: SparkSession,
    /,
    sqlQuery: Any,  # noqa: N803 - PySpark's name
    args: Any = None,
    **kwargs: Any,
) -> Any:
    """``spark.sql``: run a text that concerns acidsql as ``acid.sql`` does, any other as before."""
    rows = None
    if isinstance(sqlQuery, str):
        rows = extension.run(SqlText(sqlQuery), args, kwargs)
    return call(sqlQuery, args, **kwargs) if rows is None else rows


def read_table(extension: Extension, call: _Call, spark: SparkSession, tableName: Any) -> Any:  # noqa: N803
    """``spark.table``: the rows of an ACID table, or what Spark has."""
    return call(tableName) if extension.find(tableName) is None else extension.rows(tableName)


def give_reader(extension: Extension, reader: Any, spark: SparkSession) -> Any:
    """``spark.read``: a reader whose ``table`` knows ACID tables."""
    return extended(reader, ReaderCalls, extension)


def give_catalog(extension: Extension, catalog: Any, spark: SparkSession) -> Any:
    """``spark.catalog``: a catalog that knows ACID tables, always the same object. PySpark's own
    stays as it is."""
    if spark not in extension.catalogs:
        extension.catalogs[spark] = extended(copy(catalog), CatalogCalls, extension)
    return extension.catalogs[spark]


def give_writer(extension: Extension, writer: Any, frame: DataFrame) -> Any:
    """``df.write``: a writer that can write into ACID tables."""
    writer = extended(writer, WriterCalls, extension)
    writer._frame = frame
    return writer


def give_stream_writer(extension: Extension, writer: Any, frame: DataFrame) -> Any:
    """``df.writeStream``: a writer that does not hide an ACID table by a new one of Spark's."""
    return extended(writer, StreamWriterCalls, extension)


def give_writer_v2(extension: Extension, call: _Call, frame: DataFrame, table: str) -> Any:
    """``df.writeTo``: a writer that can write into ACID tables, and make some."""
    writer = extended(call(table), WriterV2Calls, extension)
    writer._frame, writer._table = frame, table
    return writer


def merge_into(
    extension: Extension, call: _Call, frame: DataFrame, table: str, condition: Column
) -> Any:
    """``df.mergeInto``: the builder of ``acid.merge_into`` if this is an ACID table."""
    if extension.find(table) is None:
        return call(table, condition)
    return extension.session.merge_into(frame, table, condition)
