"""Temporary views for the time of an analysis, and, over Spark Connect, for its result.

A classic DataFrame is analysed when it is made. One of Spark Connect's is analysed whenever it is
used: under the settings of that moment, and by the views that there are then. So a DataFrame that
needs more than itself is *settled*: the server keeps its analysed plan as a view, as long as a plan
in this process names the view.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from uuid import uuid4
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from acidsql.storage.event_records import PREFIX
from acidsql.storage.spark.jvm import is_remote

SETTLED = f"{PREFIX}settled_"  # begins the names of views that hold a DataFrame's plan

_unneeded: WeakKeyDictionary[SparkSession, deque[str]] = WeakKeyDictionary()


@contextmanager
def temp_views(views: Mapping[str, DataFrame]) -> Iterator[None]:
    """Let Spark's SQL name these DataFrames in the block. What is analysed there keeps the plans.

    A view replaces another of its name, so the names must be the caller's own. What leaves the
    block must be ``settled``.
    """
    made = []
    try:
        for name, view in views.items():
            view.createOrReplaceTempView(name)
            made.append((view.sparkSession, name))
        yield
    finally:
        for session, name in made:
            session.catalog.dropTempView(name)


def settled(frame: DataFrame) -> DataFrame:
    """The same rows, lazily, as Spark analyses the DataFrame now. No job runs.

    The plan of a classic DataFrame is settled from the beginning.
    """
    spark = frame.sparkSession
    if not is_remote(spark):
        return frame
    drop_unneeded(spark)
    name = f"{SETTLED}{uuid4().hex}"
    frame.createOrReplaceTempView(name)
    rows = spark.table(name)
    # DataFrames that are made of this one hold its plan, too. A finalizer runs at any line of any
    # thread, maybe in the middle of a call to the server, so it only notes the name.
    noted = _unneeded.setdefault(spark, deque())
    weakref.finalize(rows._plan, noted.append, name).atexit = False
    return rows


def drop_unneeded(spark: SparkSession) -> None:
    """Drop the views of settled DataFrames that nothing names any more."""
    noted = _unneeded.get(spark)
    if not noted or spark.is_stopped:  # type: ignore[attr-defined]
        return
    with suppress(IndexError, PySparkException):  # another thread took the last; no server, no view
        while noted:
            spark.catalog.dropTempView(noted.popleft())
