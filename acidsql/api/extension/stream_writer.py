"""``df.writeStream``: a stream into an ACID table is ``acid.write_stream``'s."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acidsql.api.extension.batches import refusing_acid_tables
from acidsql.errors import UnsupportedError
from acidsql.storage.spark.session.jvm import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from acidsql.api.extension.extension import Extension

    _Writer = DataStreamWriter
else:
    _Writer = object


class StreamWriterCalls(_Writer):
    """The calls of a ``DataStreamWriter`` that acidsql takes over."""

    _extension: Extension
    _source: str | None = None

    def format(self, source: str) -> Any:
        """Note the format, and set it for Spark."""
        self._source = source
        return super().format(source)

    def foreachBatch(self, func: Callable[[DataFrame, int], Any]) -> Any:  # noqa: N802
        """Set the function for batches. Over Spark Connect another process calls it, where Spark's
        calls know no ACID table."""
        if not is_remote(self._extension.spark):
            func = refusing_acid_tables(self._extension, func)
        return super().foreachBatch(func)

    def toTable(  # noqa: N802 - PySpark's name
        self,
        tableName: str,  # noqa: N803 - PySpark's name
        format: str | None = None,
        *args: Any,
        **options: Any,
    ) -> StreamingQuery:
        """Start a query into a table of Spark's. Raise UnsupportedError if an ACID table has the
        name, or is to get it: Spark would make another table, which nobody could read."""
        source = self._source if format is None else format
        if self._extension.find_lasting(tableName) or self._extension.makes_acid_table(
            tableName, source
        ):
            raise UnsupportedError(
                f"df.writeStream cannot write into the ACID table {tableName}. Use "
                f"acid.write_stream(df)….toTable('{tableName}'), which takes the same options.",
                condition="UNSUPPORTED_FEATURE.STREAM_WRITER",
            )
        return super().toTable(tableName, format, *args, **options)
