"""Whether an expression has one value for one row: always, and in every session."""

from __future__ import annotations

from pyspark.sql import DataFrame

_OF_SESSIONS = ("PYTHON_UDF", "SCALA_UDF", "VARIABLE_REFERENCE")  # in Spark's TreePattern


def is_deterministic(frame: DataFrame) -> bool:
    """Whether Spark calls all expressions of a query deterministic; True without a JVM."""
    execution = getattr(frame, "_jdf", None)
    return execution is None or bool(execution.queryExecution().analyzed().deterministic())


def is_of_session(frame: DataFrame) -> bool:
    """Whether a query has a function or a variable that only this session has.

    False without a JVM.
    """
    execution, jvm = getattr(frame, "_jdf", None), getattr(frame.sparkSession, "_jvm", None)
    if execution is None or jvm is None:
        return False
    plan = execution.queryExecution().analyzed()
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    return any(plan.containsPattern(getattr(patterns, name)()) for name in _OF_SESSIONS)
