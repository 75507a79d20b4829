"""One time for a statement, and whether a plan depends on the time.

Spark puts the time into a plan when a query runs. A statement may run several queries: one for the
partitions of MERGE's source, one for each target of a multi-insert. So the statement's own time is
put into their analysed plans: also where a clock is in a view, or in a DataFrame of the user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame

from acidsql.storage.spark.session.java_classes import java_class, tree_patterns
from acidsql.storage.spark.session.jvm import changed_conf, is_remote, java_error

_CATALYST = "org.apache.spark.sql.catalyst"
_SUPPLIES_TIME = f"{_CATALYST}.optimizer.ComputeCurrentTime$"  # Spark's rule
_PRECISIONS = range(7)  # of a TIME: digits of the fraction of a second
# As a plan shows the time zones of clocks. A view has its own time zone.
_ZONES = re.compile(r"\b(?:current_date|localtimestamp|current_time)\((?:\d, )?Some\(([^()]+)\)\)")
# A cast of one of these words to a date depends on the current day. Spark's optimiser evaluates a
# function of Hive's over literals, whatever the function does.
_VARIES = re.compile(r"\b(?:now|today|yesterday|tomorrow)\b|\bHive\w+#", re.IGNORECASE)
_WHOLE_TEXT = {"spark.sql.debug.maxToStringFields": "1000000"}
_PLAIN_PLANS = _WHOLE_TEXT | {
    # With these, IN with many values stays a list, and a relation keeps all of its columns.
    "spark.sql.optimizer.inSetConversionThreshold": "1000",
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
}


class StatementTime:
    """The time of one statement: the moment when the first of its queries needs the time."""

    def __init__(self) -> None:
        self._instant: Any = None
        self._values: dict[frozenset[str], Any] = {}  # Scala's maps, by the zones of their clocks

    def replace_clocks(self, rows: DataFrame) -> DataFrame:
        """Return the same rows, lazily, with current_timestamp() and the other clocks in their plan
        replaced by the statement's time.

        The first query that has a clock fixes that time. Without a clock, and over Spark Connect,
        where the plan cannot be reached, it is ``rows`` itself.
        """
        spark = rows.sparkSession
        if is_remote(spark):
            return rows
        execution = rows._jdf.queryExecution()
        jvm: Any = spark._jvm
        if not execution.analyzed().containsPattern(tree_patterns(jvm).CURRENT_LIKE()):
            return rows
        # What the user has cached is found by its plan, so it is looked up before.
        plan = execution.withCachedData()
        with changed_conf(spark, _WHOLE_TEXT):
            zones = frozenset(_ZONES.findall(str(plan.toString())))
        timed = plan.transformAllExpressionsWithSubqueries(self._clocks(jvm, zones))
        timed.setAnalyzed()  # only literals have come into it
        make_dataset = java_class(jvm, "org.apache.spark.sql.classic.Dataset").ofRows
        return DataFrame(make_dataset(spark._jsparkSession, timed), spark)

    def _clocks(self, jvm: Any, zones: frozenset[str]) -> Any:
        """Return a map of Scala: each of Spark's expressions for the time → a literal of the
        statement's time. The first call fixes this time. Maps are kept.

        ``zones``: the time zones of the plan's clocks.
        """
        if self._instant is None:
            self._instant = java_class(jvm, "java.time.Instant").now()
        if zones not in self._values:
            values = java_class(jvm, "java.util.HashMap")()
            for clock, value in _zoneless_clocks(jvm, self._instant):
                values.put(clock, value)
            for zone in zones:
                for clock, value in _zoned_clocks(jvm, self._instant, zone):
                    values.put(clock, value)
            self._values[zones] = jvm.PythonUtils.toScalaMap(values)
        return self._values[zones]


def _zoneless_clocks(jvm: Any, instant: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the clocks that have no time zone, current_timestamp() and now(), each with its value
    at an instant, as expressions of Spark.
    """
    expression = _Expressions(jvm)
    value = expression.literal(instant, "TimestampType")
    yield expression.new("CurrentTimestamp"), value
    yield expression.new("Now"), value


def _zoned_clocks(jvm: Any, instant: Any, zone: str) -> Iterator[tuple[Any, Any]]:
    """Yield the clocks of a time zone, each with its value at an instant, as expressions of Spark:
    current_date(), localtimestamp() and, if this Spark has the type TIME, current_time() of each
    precision from 0 to 6, rounded down.
    """
    expression, zone_option = _Expressions(jvm), java_class(jvm, "scala.Option").apply(zone)
    place = java_class(jvm, "org.apache.spark.sql.catalyst.util.DateTimeUtils").getZoneId(zone)
    local = java_class(jvm, "java.time.LocalDateTime").ofInstant(instant, place)
    yield (
        expression.new("CurrentDate", zone_option),
        expression.literal(local.toLocalDate(), "DateType"),
    )
    yield (
        expression.new("LocalTimestamp", zone_option),
        expression.literal(local, "TimestampNTZType"),
    )
    # A clock without a value here is a clock in the plan still, so nothing relies on its value.
    with suppress(java_error(), TypeError):
        for digits in _PRECISIONS:
            time = local.toLocalTime()
            time = time.minusNanos(time.getNano() % 10 ** (9 - digits))
            clock = expression.new(
                "CurrentTime", expression.literal(digits, "IntegerType"), zone_option
            )
            kind = java_class(jvm, "org.apache.spark.sql.types.TimeType")(digits)
            yield clock, expression.new("Literal").create(time, kind)


class _Expressions:
    """Makes Spark's expressions."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm

    def new(self, name: str, *args: Any) -> Any:
        """Make an expression of the class with this name, with these arguments."""
        return java_class(self._jvm, f"{_CATALYST}.expressions.{name}")(*args)

    def literal(self, value: Any, kind: str) -> Any:
        """Make a literal of a value of Java. ``kind``: the name of a type of Spark's without
        parameters, as ``DateType``.
        """
        types = java_class(self._jvm, f"org.apache.spark.sql.types.{kind}$")
        literals = java_class(self._jvm, f"{_CATALYST}.expressions.Literal")
        return literals.create(value, _singleton(types))


def _singleton(java: Any) -> Any:
    """Return the only instance of a class of Scala's object."""
    return java.__getattr__("MODULE$")


def is_timeless(rows: DataFrame) -> bool:
    """Whether Spark's plan of a query is the same at any time: Spark's rule that puts in the time
    changes nothing. False, too, if the plan's text has the word now, today, yesterday or tomorrow,
    or a function of Hive's: the plan may differ. Needs a JVM; no job runs.
    """
    jvm: Any = rows.sparkSession._jvm
    analyzed = rows._jdf.queryExecution().analyzed()
    if analyzed.containsPattern(tree_patterns(jvm).CURRENT_LIKE()):  # maybe the user's name only
        rule = _singleton(java_class(jvm, _SUPPLIES_TIME))
        if not rule.apply(analyzed).fastEquals(analyzed):
            return False
    with changed_conf(rows.sparkSession, _WHOLE_TEXT):
        return not _VARIES.search(str(analyzed.toString()))


def lasting_plan(rows: DataFrame) -> str | None:
    """Return Spark's JSON of a DataFrame's optimised plan, if the plan is the same at any time.

    None if it may be another one (``is_timeless``): Spark puts the time into the plan, and would
    put another time when the query runs. None, too, without a JVM. No job runs.
    """
    if is_remote(rows.sparkSession) or not is_timeless(rows):
        return None
    with changed_conf(rows.sparkSession, _PLAIN_PLANS):
        return str(rows._jdf.queryExecution().optimizedPlan().toJSON())
