"""How far the running jobs of a thread are."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from acidsql.storage.spark.session.jobs import cancel_jobs, tag_functions
from acidsql.storage.spark.session.jvm import is_remote, java_error, spark_context

_TRIES = 3


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of running stages.

    Attributes:
        total: How many there are.
        finished: How many have succeeded.
        running: How many run.
        rows: How many rows they have read so far.
        bytes: How many bytes they have read so far.
    """

    total: int = 0
    finished: int = 0
    running: int = 0
    rows: int = 0
    bytes: int = 0

    def __add__(self, other_tasks: Tasks) -> Tasks:
        """Return the sum of each of the five numbers."""
        return Tasks(
            self.total + other_tasks.total, self.finished + other_tasks.finished,
            self.running + other_tasks.running,
            self.rows + other_tasks.rows, self.bytes + other_tasks.bytes,
        )  # fmt: skip


@contextmanager
def tagged_jobs(spark: SparkSession) -> Iterator[str]:
    """Give the jobs of this thread a new tag while the block runs; the block gets the tag, for
    ``running_tasks``.

    If Ctrl-C ends the block, or an error that comes from it, the jobs are cancelled, and
    KeyboardInterrupt is raised. Errors of giving, taking back or cancelling are ignored.
    """
    (add, remove), tag, outer = tag_functions(spark), f"acidsql-{uuid4()}", sys.exception()
    with suppress(Exception):  # Spark was stopped, which the block will find out
        add(tag)
    try:
        yield tag
    except BaseException as error:
        if not _is_of_ctrl_c(error, outer):
            raise
        for _ in range(_TRIES):
            with suppress(Exception):
                cancel_jobs(spark, tag)
                break
        raise KeyboardInterrupt from error
    finally:
        with suppress(Exception):  # Spark was stopped
            remove(tag)


def _is_of_ctrl_c(error: BaseException | None, outer: BaseException | None) -> bool:
    """Whether an error is a KeyboardInterrupt, or came from one or while one was handled: after
    Ctrl-C py4j gives up the connection, and the next one sometimes breaks, too.

    ``outer``: the error that was being handled before the block; it and its causes do not count.
    """
    error_ids = {id(outer)}  # errors of Spark Connect may be causes of each other
    while error is not None and id(error) not in error_ids:
        if isinstance(error, KeyboardInterrupt):
            return True
        error_ids.add(id(error))
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def cancelled_by_ctrl_c(spark: SparkSession) -> Iterator[None]:
    """Run a block, and cancel its jobs (``tagged_jobs``) if Ctrl-C ends it. If Ctrl-C has another
    handler than Python's own, the block runs without this.

    Spark's own handler of Ctrl-C cancels all jobs. A notebook puts Python's in its place while a
    cell runs, and the jobs would run on.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    with tagged_jobs(spark):
        yield


@contextmanager
def watched_tasks(
    spark: SparkSession,
    tag: str,
    look: Callable[[Tasks], None],
    *,
    first_s: float,
    next_s: float,
    end: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Call ``look`` with the running tasks again and again while the block runs. The block's end
    waits for a call that is under way.

    Args:
        spark: The session.
        tag: The tag of the jobs.
        look: Called by another thread. Its errors are ignored.
        first_s: The seconds until the first call, if the block still runs then.
        next_s: The seconds between two calls.
        end: Called by the same thread when the block has ended, if the time of the first call had
            come. Its errors are ignored.
    """
    ended = threading.Event()

    def watch() -> None:
        """Wait, call ``look`` until the block has ended, then ``end``; neither if it ends before
        ``first_s``.
        """
        if ended.wait(first_s):
            return
        while not ended.is_set():
            # The work must not fail because its progress cannot be told.
            with suppress(Exception):
                look(count())
            ended.wait(next_s)
        with suppress(Exception):
            end()

    thread = threading.Thread(target=watch, name="acidsql progress", daemon=True)
    with _task_counter(spark, tag) as count:
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@contextmanager
def _task_counter(spark: SparkSession, tag: str) -> Iterator[Callable[[], Tasks]]:
    """Give the block a function that counts the running tasks of the jobs with a tag. Any thread
    may call it. Over Spark Connect it counts what the server has told since the block began.
    """
    if not is_remote(spark):
        yield partial(running_tasks, spark, tag)
        return
    progress = _ReportedTasks(spark, tag)
    hear: Any = progress.hear
    spark.registerProgressHandler(hear)
    try:
        yield progress.count
    finally:
        with suppress(ValueError):  # the user has cleared the handlers
            spark.removeProgressHandler(hear)


class _ReportedTasks:
    """Running tasks that a server of Spark Connect tells, every two seconds.

    PySpark calls ``hear`` for each operation of the session, in the thread that waits for it.
    """

    def __init__(self, spark: SparkSession, tag: str) -> None:
        self._spark, self._tag = spark, tag
        self._running: dict[str | None, Tasks] = {}  # of operations

    def hear(
        self,
        stages: Iterable[Any] | None,
        inflight_tasks: int,
        operation_id: str | None,
        done: bool,
    ) -> None:
        """Store the tasks of an operation's stages that run, or forget an operation that is done.
        The rows read are not told, and stay 0. Operations of threads without the tag do not count.
        The arguments are those of PySpark's ``ProgressHandler``.
        """
        if self._tag not in self._spark.getTags():
            return
        if done:
            self._running.pop(operation_id, None)
            return
        self._running[operation_id] = sum(
            (
                Tasks(stage.num_tasks, stage.num_completed_tasks, bytes=stage.num_bytes_read)
                for stage in stages or ()
                if not stage.done
            ),
            Tasks(running=inflight_tasks),
        )

    def count(self) -> Tasks:
        """Return the running tasks of all operations together."""
        return sum(list(self._running.values()), Tasks())


def running_tasks(spark: SparkSession, tag: str) -> Tasks:
    """Return the tasks, added up, of the stages that run for the jobs with a tag; all 0 without a
    Spark context. Any thread may call this.
    """
    context = spark_context(spark)
    if context is None:
        return Tasks()
    java_context, tracker = context._jsc.sc(), context.statusTracker()
    jobs = set(java_context.statusTracker().getJobIdsForTag(tag))
    tasks = Tasks()
    for job in jobs & set(tracker.getActiveJobsIds()):
        info = tracker.getJobInfo(job)
        for stage in () if info is None else info.stageIds:
            tasks += _stage_tasks(java_context, stage)
    return tasks


def _stage_tasks(context: Any, number: int) -> Tasks:
    """Return the tasks of a stage by its number; all 0 if it does not run now. ``context``: Java's
    Spark context.
    """
    try:
        stage = context.statusStore().lastStageAttempt(number)
    except java_error():  # Spark has forgotten the stage, or has skipped it
        return Tasks()
    if str(stage.status()) != "ACTIVE":
        return Tasks()
    return Tasks(
        stage.numTasks(), stage.numCompleteTasks(), stage.numActiveTasks(),
        stage.inputRecords(), stage.inputBytes(),
    )  # fmt: skip
