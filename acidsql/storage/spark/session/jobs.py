"""Spark's jobs: their names and tags, and how many tasks run at once.

Spark Connect has no Spark context. Its sessions tag and interrupt *operations*, which is as much.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from acidsql.storage.spark.session.jvm import has_ended, is_remote, spark_context
from acidsql.storage.spark.session.python_workers import isolates_artifacts, prepare_workers

_PATIENCE_S = 10
_MANY = 100_000  # Spark makes as many partitions of a range as tasks run at once
_slots: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()


def tag_functions(spark: SparkSession) -> tuple[Callable[[str], None], Callable[[str], None]]:
    """Return two functions that take a tag: the first lets the jobs that this thread starts have
    the tag, the second ends this.
    """
    context = spark_context(spark)
    if context is None:
        return spark.addTag, spark.removeTag
    return context.addJobTag, context.removeJobTag


@contextmanager
def named_jobs(
    spark: SparkSession, description: str, tag: str, pool: str | None = None
) -> Iterator[None]:
    """Name this thread's jobs in Spark's UI while the block runs, and give them a tag for
    ``cancel_jobs``.

    ``pool``: the scheduler's pool for them; None leaves the thread's pool. When the block ends, the
    thread gets its former name and pool back, and loses the tag. Over Spark Connect the jobs only
    get the tag.
    """
    context: Any = spark_context(spark)
    add, remove = tag_functions(spark)
    names = ("spark.job.description", "spark.scheduler.pool") if context is not None else ()
    old_properties = {name: context.getLocalProperty(name) for name in names}
    for name, value in zip(names, (description, pool), strict=False):
        if value is not None:
            context.setLocalProperty(name, value)
    add(tag)
    try:
        yield
    finally:
        remove(tag)
        for name, value in old_properties.items():
            context.setLocalProperty(name, value)


def sibling_session(spark: SparkSession) -> SparkSession:
    """Return a new session of the same application with its own settings. Its workers are prepared.

    Over Spark Connect return ``spark`` itself if PySpark makes no new session (before 4.3), or if
    the end of a new one would harm this one (``isolates_artifacts``). A new one there is closed
    when the process exits, if nobody has closed it.
    """
    make = getattr(spark, "newSession", None)
    if make is None or (is_remote(spark) and not isolates_artifacts(spark)):
        return spark
    new_session: SparkSession = make()
    prepare_workers(new_session)  # over Spark Connect, a session has its own artifacts
    if is_remote(new_session):
        atexit.register(_close_at_exit, new_session.client, os.getpid())
    return new_session


def _close_at_exit(client: Any, process: int) -> None:
    """Close a client that nobody has closed: PySpark would ask a server that has ended again and
    again. A fork of the process leaves the client alone."""
    if os.getpid() == process and not client.is_closed:
        client.close()


def end_sibling_session(own_session: SparkSession, spark: SparkSession) -> None:
    """End a session of ``sibling_session`` if a server keeps it: tell the server, and close the
    client, for ten seconds each at most. Do nothing for a classic session, if it is ``spark``
    itself, or if it has ended. Errors are ignored.

    ``stop`` would end a classic application, and the server of ``.remote("local[2]")``.
    """
    if not is_remote(own_session) or own_session is spark or has_ended(own_session):
        return
    own_session.client.set_retry_policies([])
    call_briefly(
        own_session.client.release_session
    )  # a server that has ended has ended the session, too
    call_briefly(own_session.client.close)


def is_forgotten(own_session: SparkSession) -> bool:
    """Whether a server of Spark Connect does not know a session of ``sibling_session`` any more: it
    forgets a session after an hour without a call. This function calls the server. False for a
    classic session, and if there is no server.
    """
    if not is_remote(own_session):
        return False
    client: Any = own_session.client
    policies = client.get_retry_policies()
    client.set_retry_policies([])  # a server that has ended has forgotten nothing
    try:
        _ = own_session.conf.get("spark.sql.ansi.enabled")
    except Exception as error:
        return "INVALID_HANDLE" in str(error)
    finally:
        client.set_retry_policies(policies)
    return False


def cancel_jobs(spark: SparkSession, tag: str) -> None:
    """Cancel the running jobs that have a tag."""
    context = spark_context(spark)
    if context is None:
        spark.interruptTag(tag)
    else:
        context.cancelJobsWithTag(tag)


def call_briefly(call: Callable[[], object]) -> None:
    """Run ``call`` in another thread, and wait for its end, but ten seconds at most: then it may go
    on. Its error is ignored. (If a server of Spark Connect is gone, PySpark asks again for ten
    minutes.)
    """

    def run() -> None:
        with suppress(Exception):
            call()

    thread = threading.Thread(target=run, name="acidsql last call", daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)


def task_slots(spark: SparkSession) -> int:
    """Return the number of tasks that Spark runs at once (``spark.default.parallelism`` or what
    Spark takes for it). Over Spark Connect, the first call for a session runs a small job to find
    out; the number is kept.
    """
    context = spark_context(spark)
    if context is not None:
        return int(context.defaultParallelism)
    if spark not in _slots:
        numbered = spark.range(_MANY).selectExpr("spark_partition_id() AS n")
        rows = numbered.selectExpr("max(n) + 1 AS n").collect()
        _slots[spark] = int(rows[0].n)
    return _slots[spark]


def keeps_workers(context: Any) -> bool:
    """Whether Spark keeps a Python worker for later tasks (``spark.python.worker.reuse``).
    ``context``: Python's Spark context.
    """
    return str(context.getConf().get("spark.python.worker.reuse", "true")).lower() == "true"


def run_alone(frame: DataFrame) -> None:
    """Run a query and throw its rows away: only its effects in the workers matter. Needs a JVM.

    Spark's query listeners do not hear of the query. A background thread may call this; PySpark's
    own actions would disturb other threads: their jobs would not get the name of their line.
    """
    frame._jdf.queryExecution().toRdd().count()


def has_fair_pools(spark: SparkSession) -> bool:
    """Whether Spark schedules jobs by fair pools (``spark.scheduler.mode``). False over Spark
    Connect.
    """
    context = spark_context(spark)
    return context is not None and context.getConf().get("spark.scheduler.mode", "FIFO") == "FAIR"
