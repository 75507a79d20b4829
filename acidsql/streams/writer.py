"""The ``DataStreamWriter`` of ``Session.write_stream``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from acidsql.arguments import checked
from acidsql.errors import UnsupportedError
from acidsql.streams.sink import Sink

_MODES = {"append": "append", "complete": "complete", "update": "upsert"}
FORMAT = "acidsql"
_ONE_SINK = (
    "acid.write_stream() writes a table. Use df.writeStream for foreach(), or "
    "df.writeStream.foreachBatch() with acid.sink()."
)


class AcidStreamWriter(DataStreamWriter):
    """A ``DataStreamWriter`` that writes into an ACID table.

    ``option``, ``options``, ``queryName``, ``trigger`` and ``outputMode`` are PySpark's.
    """

    def __init__(self, rows: DataFrame, make_sink: Callable[[str, str], Sink]) -> None:
        super().__init__(rows)
        self._make_sink, self._mode = make_sink, "append"

    @checked
    def outputMode(self, outputMode: str) -> AcidStreamWriter:  # noqa: N802, N803 - PySpark's names
        """Choose ``append``, ``complete``, or ``update``, which upserts and needs keys. Return this
        writer."""
        super().outputMode(outputMode)
        self._mode = _MODES[outputMode.lower()]
        return self

    @checked
    def format(self, source: str) -> AcidStreamWriter:
        """Return this writer. Raise UnsupportedError for any other format than ``acidsql``."""
        if source.lower() != FORMAT:
            raise UnsupportedError(
                f"acid.write_stream() writes ACID tables, not '{source}'. Use df.writeStream for "
                "other formats."
            )
        return self

    def partitionBy(self, *cols: Any) -> AcidStreamWriter:  # noqa: N802 - PySpark's name
        """Raise UnsupportedError: the table says how it is partitioned."""
        raise UnsupportedError(
            "partitionBy() has no meaning here: the table was created with its partitions. Leave "
            "the call out."
        )

    def clusterBy(self, *cols: Any) -> AcidStreamWriter:  # noqa: N802 - PySpark's name
        """Raise UnsupportedError: the table says how it is bucketed."""
        raise UnsupportedError("clusterBy() has no meaning here: the table has its buckets.")

    def foreach(self, f: Any) -> AcidStreamWriter:
        """Raise UnsupportedError: a query has one sink."""
        raise UnsupportedError(_ONE_SINK)

    def foreachBatch(self, func: Any) -> AcidStreamWriter:  # noqa: N802 - PySpark's name
        """Raise UnsupportedError: a query has one sink."""
        raise UnsupportedError(_ONE_SINK)

    @checked
    def trigger(self, **interval: Any) -> AcidStreamWriter:
        """Set the trigger as PySpark does. Raise UnsupportedError for ``continuous`` and
        ``realTime``."""
        for name in ("continuous", "realTime"):
            if interval.get(name) is not None:
                raise UnsupportedError(
                    f"trigger({name}=…) does not work with transactions: Spark gives the sink no "
                    "batches. Use processingTime or availableNow."
                )
        super().trigger(**interval)
        return self

    @checked
    def toTable(  # noqa: N802 - PySpark's name
        self,
        tableName: str,  # noqa: N803 - PySpark's name
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803 - PySpark's name
        partitionBy: Any = None,  # noqa: N803 - PySpark's name
        queryName: str | None = None,  # noqa: N803 - PySpark's name
        **options: Any,
    ) -> StreamingQuery:
        """Start the query, and return it. It writes each batch into this table in a transaction.

        Raises:
            UnsupportedError: ``format`` (unless it is ``acidsql``) or ``partitionBy`` is given, or
                the metastore keeps no streams.
            SettingError: The output mode is update, and there are no keys; or there are keys
                without it.
        """
        if format is not None:
            self.format(format)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if outputMode is not None:
            self.outputMode(outputMode)
        if queryName is not None:
            self.queryName(queryName)
        self.options(**options)
        super().foreachBatch(self._make_sink(tableName, self._mode))
        return super().start()

    @checked
    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803 - PySpark's name
        partitionBy: Any = None,  # noqa: N803 - PySpark's name
        queryName: str | None = None,  # noqa: N803 - PySpark's name
        **options: Any,
    ) -> StreamingQuery:
        """Start the query, and return it, as ``toTable`` does. ``path`` is the name of the table.
        Raise UnsupportedError without it."""
        if path is None:
            raise UnsupportedError("Name the table: acid.write_stream(df)….toTable('db.t').")
        return self.toTable(path, format, outputMode, partitionBy, queryName, **options)
