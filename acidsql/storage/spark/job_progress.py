"""How far the running jobs of a thread are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from acidsql.storage.spark.jvm import spark_context


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of running stages.

    Attributes:
        total: How many there are.
        done: How many have succeeded.
        running: How many run.
        rows: How many rows they have read so far.
        bytes: How many bytes they have read so far.
    """

    total: int = 0
    done: int = 0
    running: int = 0
    rows: int = 0
    bytes: int = 0

    def __add__(self, other: Tasks) -> Tasks:
        return Tasks(
            self.total + other.total, self.done + other.done, self.running + other.running,
            self.rows + other.rows, self.bytes + other.bytes,
        )  # fmt: skip


@contextmanager
def tagged_jobs(spark: SparkSession, tag: str) -> Iterator[None]:
    """Give the jobs of this thread a tag for ``running_tasks``; without a JVM, do nothing."""
    context = spark_context(spark)
    if context is not None:
        context.addJobTag(tag)
    try:
        yield
    finally:
        if context is not None:
            with suppress(Exception):  # Spark was stopped
                context.removeJobTag(tag)


def running_tasks(spark: SparkSession, tag: str) -> Tasks:
    """The tasks of the stages that run for the jobs with a tag. Any thread may ask."""
    context = spark_context(spark)
    if context is None:
        return Tasks()
    own, tracker = context._jsc.sc(), context.statusTracker()
    jobs = set(own.statusTracker().getJobIdsForTag(tag))
    found = Tasks()
    for job in jobs & set(tracker.getActiveJobsIds()):
        info = tracker.getJobInfo(job)
        for stage in () if info is None else info.stageIds:
            found += _of_stage(own, stage)
    return found


def _of_stage(context: Any, number: int) -> Tasks:
    try:
        stage = context.statusStore().lastStageAttempt(number)
    except Py4JError:  # Spark has forgotten the stage, or has skipped it
        return Tasks()
    if str(stage.status()) != "ACTIVE":
        return Tasks()
    return Tasks(
        stage.numTasks(), stage.numCompleteTasks(), stage.numActiveTasks(),
        stage.inputRecords(), stage.inputBytes(),
    )  # fmt: skip
