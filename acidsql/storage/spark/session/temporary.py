"""What one Spark session alone has: temporary views, temporary functions, variables."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from acidsql.storage.columns import quote
from acidsql.storage.spark.session.java_classes import java_class, tree_patterns

# Names in Spark's TreePattern.
_FUNCTIONS, _VARIABLE = ("PYTHON_UDF", "SCALA_UDF"), "VARIABLE_REFERENCE"


def is_temp_view(spark: SparkSession, name: str) -> bool:
    """Whether a temporary view has this name and so hides tables of the same name."""
    session = getattr(spark, "_jsparkSession", None)
    if session is None:
        with suppress(AnalysisException):  # there is nothing of this name
            return spark.catalog.getTable(quote(name)).isTemporary
        return False
    identifier = _table_identifier(spark._jvm)(name)
    return bool(session.sessionState().catalog().isTempView(identifier))


@lru_cache(maxsize=1)
def _table_identifier(jvm: Any) -> Any:
    """Return Spark's Java class TableIdentifier. It is kept: each statement needs it."""
    return java_class(jvm, "org.apache.spark.sql.catalyst.TableIdentifier")


def is_temp_function(spark: SparkSession, name: str) -> bool:
    """Whether a temporary function of this session has this name. False over Spark Connect, which
    cannot say."""
    session = getattr(spark, "_jsparkSession", None)
    if session is None:
        return False
    identifier = session.sessionState().sqlParser().parseFunctionIdentifier(name)
    return bool(session.sessionState().catalog().isTemporaryFunction(identifier))


def reads_variables(frame: DataFrame) -> bool:
    """Whether a query reads variables of its session (DECLARE). False over Spark Connect, which
    cannot say."""
    return _has_expression(frame, _VARIABLE)


def depends_on_session(frame: DataFrame) -> bool:
    """Whether a query calls a function of the user's in Python or Java, or reads a variable of its
    session (DECLARE). False over Spark Connect, which cannot say."""
    return _has_expression(frame, *_FUNCTIONS, _VARIABLE)


def _has_expression(frame: DataFrame, *patterns: str) -> bool:
    """Whether the plan of a query, or one of its subqueries, has one of these expressions (names of
    Spark's TreePattern). False over Spark Connect, where the plan cannot be reached."""
    java = getattr(frame, "_jdf", None)
    if java is None:
        return False
    plan = java.queryExecution().analyzed()
    jvm = frame.sparkSession._jvm
    assert jvm is not None
    patterns_there = tree_patterns(jvm)
    return any(plan.containsPattern(getattr(patterns_there, name)()) for name in patterns)
