"""The results of ``filler``: the views that a statement reads, and the events that it yields."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from acidsql.storage.spark.repeatable import Repeatable


class Views(dict[str, DataFrame]):
    """The DataFrames of a statement's views, by the names of the views.

    Attributes:
        is_pruned: Values of MERGE's source decided which partitions of the target were listed.
        target: The rows of the stand-in for the target of UPDATE, DELETE or MERGE.
    """

    is_pruned = False
    target: DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Events:
    """The lazy events of a statement.

    Attributes:
        rows: One row for each event.
        source: MERGE's source, if it is read several times: to find partners or partitions of the
            target, and for the events. Its files must be the same after the write as before.
        otherwise: Makes another query of the same events, if ``rows`` cannot be read because its
            plan broadcasts a table that is too large; None: there is no other query.
    """

    rows: DataFrame
    source: Repeatable | None = None
    otherwise: Callable[[], DataFrame] | None = None

    def require_unchanged_source(self, spark: SparkSession) -> AbstractContextManager[None]:
        """Return a context manager that raises TransientTxnError at the end of its block if a file
        of ``source`` has changed. Without a source it does nothing."""
        return nullcontext() if self.source is None else self.source.require_unchanged(spark)
