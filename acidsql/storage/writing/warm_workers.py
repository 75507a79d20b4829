"""Start Spark's Python workers before the first task needs one.

The first Python task of a Spark context waits until Spark has started a daemon and forked a worker,
and until the worker has imported PySpark, pyarrow and our writers. This takes two seconds of
processor time. A tiny job in a background thread does the same while Spark still plans the
statement's own job and reads its tables. Spark keeps the workers for later tasks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

import pyarrow as pa
from pyspark.sql import SparkSession

from acidsql.storage.spark.session import jobs, jvm
from acidsql.storage.spark.session.worker_process import spare_later_tasks
from acidsql.storage.writing import delete_writer, event_writer

# A worker imports this module for ``_import_only``, and with it what the writing tasks import.
IMPORTED = (event_writer, delete_writer)
NAME = "acidsql-warm-workers"

_log = logging.getLogger(__name__)
_LOCK = threading.Lock()
_WARMED: WeakSet[Any] = WeakSet()  # Spark contexts


def warm_workers(spark: SparkSession) -> threading.Thread | None:
    """Start Python workers by a small job in a background thread, once for each Spark context. This
    call does not wait for them, and remembers the context, whatever comes of it.

    Returns:
        The thread. None if there is nothing to do: an earlier call had this context, Spark does not
        keep workers for later tasks, or there is no Spark context (Spark Connect).
    """
    context = jvm.spark_context(spark)
    with _LOCK:
        if context is None or context in _WARMED:
            return None
        _WARMED.add(context)
    if not jobs.keeps_workers(context):
        return None
    thread = threading.Thread(target=_start_workers, args=(spark,), name=NAME, daemon=True)
    thread.start()
    return thread


def _start_workers(spark: SparkSession) -> None:
    """Run a small job that starts workers in half of the task slots, at least one, and wait for its
    end. An error is only logged.
    """
    try:
        # The statement's own tasks get the other half of the slots. The daemon is slow to start;
        # it forks further workers quickly.
        tasks = max(1, jobs.task_slots(spark) // 2)
        with jobs.named_jobs(spark, "acidsql: start Python workers", NAME):
            jobs.run_alone(spark.range(0, tasks, 1, tasks).mapInArrow(_import_only, "id bigint"))
    except Exception as error:  # The user may stop the Spark context meanwhile.
        _log.debug("Python workers were not started early: %s", error)


def _import_only(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the input of a Python task to its end, and yield nothing: the worker has imported this
    module, and so what writers need. The task also makes later tasks of its worker cheaper.
    """
    spare_later_tasks()
    for _ in batches:
        pass
    yield from ()
