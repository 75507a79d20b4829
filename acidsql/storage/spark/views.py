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
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from acidsql.storage.event_records import PREFIX
from acidsql.storage.spark.session.jobs import call_briefly
from acidsql.storage.spark.session.jvm import has_ended, is_remote, sql

_MANY = 16  # unneeded views; each message to the server takes its time
SETTLED = f"{PREFIX}settled_"  # begins the names of views that hold a DataFrame's plan

_unneeded: WeakKeyDictionary[SparkSession, deque[str]] = WeakKeyDictionary()


@contextmanager
def temp_views(views: Mapping[str, DataFrame]) -> Iterator[None]:
    """Make temporary views of these DataFrames (name → DataFrame), and drop them when the block
    ends. A classic DataFrame that is made in the block can be used after it, too.

    A view replaces another view of its name, so the names must be the caller's own. A DataFrame of
    Spark Connect that leaves the block must be settled.
    """
    made_views = []
    try:
        for name, view in views.items():
            view.createOrReplaceTempView(name)
            made_views.append((view.sparkSession, name))
        yield
    finally:
        for session, name in made_views:
            drop_view(session, name)


def drop_view(session: SparkSession, name: str) -> None:
    """Drop a temporary view if it exists. What the user has cached of the same plan stays cached.

    ``catalog.dropTempView`` would drop that, too: then a statement would evaluate the user's
    DataFrame anew, and might find other rows in it.
    """
    if is_remote(session):
        session.sql(f"DROP VIEW IF EXISTS {name}")
    else:
        session._jsparkSession.sessionState().catalog().dropTempView(name)


@contextmanager
def query_over_views(
    spark: SparkSession,
    text: str,
    views: Mapping[str, DataFrame],
    args: Mapping[str, Any] | None = None,
    *,
    runs: bool = False,
) -> Iterator[DataFrame]:
    """Give the block a DataFrame of a query's rows. The query may name the DataFrames in ``views``
    (name → DataFrame).

    A classic session has the DataFrames as temporary views while the block runs. Over Spark Connect
    the rows can be used after the block only if ``settle`` was called there. ``args``: the values
    of the query's parameters. ``runs``: the text may also be a statement, which Spark runs now
    (a classic session does so anyway).
    """
    if is_remote(spark):
        yield _query_with_views(spark, text, views, args, runs=runs)
        return
    with temp_views(views):
        yield spark.sql(text, args=dict(args)) if args else sql(spark, text)


def _query_with_views(
    spark: Any, text: str, views: Mapping[str, Any], args: Mapping[str, Any] | None, *, runs: bool
) -> DataFrame:
    """Return a DataFrame of Spark Connect whose plan has the plans of its views in it: the server
    makes and drops the views around each analysis. So no message is needed for a view.

    ``spark.sql(text, args, **views)`` puts other names into the text, and so moves the places in
    Spark's errors. It also has each query analysed once more. ``runs``: run the text now.
    """
    from pyspark.sql.connect import plan
    from pyspark.sql.connect.dataframe import DataFrame as Remote
    from pyspark.sql.connect.functions import builtin

    literals = {name: builtin.lit(value) for name, value in (args or {}).items()}
    named_views = [plan.SubqueryAlias(view._plan, name) for name, view in views.items()]
    query = plan.SQL(text, [], literals, named_views)
    if not runs:
        return Remote(query, spark)
    _, properties, _ = spark.client.execute_command(query.command(spark.client))
    return Remote(plan.CachedRelation(properties["sql_command_result"]), spark)


def settle(frame: DataFrame) -> DataFrame:
    """Return a DataFrame as Spark analyses it now, whatever settings and views there are later. No
    job runs.

    Over Spark Connect, the server keeps the plan as a temporary view while a plan in this process
    names it. If 16 earlier views are no longer needed, they are dropped first. A classic DataFrame
    is returned as it is: it was analysed when it was made.
    """
    spark = frame.sparkSession
    if not is_remote(spark):
        return frame
    unneeded_views = _unneeded.setdefault(spark, deque())
    if len(unneeded_views) >= _MANY:
        drop_unneeded(spark)
    name = f"{SETTLED}{uuid4().hex}"
    frame.createOrReplaceTempView(name)
    rows = spark.table(name)
    # DataFrames that are made of this one hold its plan, too. A finalizer runs at any line of any
    # thread, maybe in the middle of a call to the server, so it only notes the name.
    weakref.finalize(rows._plan, unneeded_views.append, name).atexit = False
    return rows


def drop_unneeded(spark: SparkSession) -> None:
    """Drop a session's views of settled DataFrames that no plan in this process names any more.
    Errors of Spark are ignored, and the drop is not tried again later. Do nothing if there are no
    such views, or the session has ended.
    """
    unneeded_views = _unneeded.get(spark)
    if not unneeded_views or has_ended(spark):
        return
    drops = []
    with suppress(IndexError):  # another thread took the last
        while unneeded_views:
            drops.append(f"DROP VIEW IF EXISTS {unneeded_views.popleft()}")
    if not drops:
        return
    try:
        spark.sql(f"BEGIN {'; '.join(drops)}; END")  # one message
    except PySparkException:  # the server may forbid scripts
        with suppress(PySparkException):  # no server, no view
            for drop in drops:
                spark.sql(drop)


def drop_unneeded_briefly(spark: SparkSession) -> None:
    """Drop a session's views of settled DataFrames that no plan in this process names any more, and
    wait for it ten seconds at most. All errors are ignored. Do nothing if there are no such views.
    """
    if _unneeded.get(spark):
        call_briefly(lambda: drop_unneeded(spark))
