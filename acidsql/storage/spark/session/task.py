"""Tells which Spark task is running. The code of a job asks this in a worker."""

from __future__ import annotations

from pyspark import TaskContext

from acidsql.storage.event_records import Task


def current_task() -> Task:
    """Return the task that calls this function."""
    context = TaskContext.get()
    assert context is not None, "runs in a Spark task"
    return Task(context.partitionId(), context.taskAttemptId())
