"""The few things that only Spark's JVM can tell. Without it (Spark Connect) all works, slower."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession


def zone_offset_micros(spark: SparkSession) -> int | None:
    """What the JVM's default time zone is ahead of UTC, in microseconds.

    None if that depends on the date, or if there is no JVM to ask: then Spark's ORC reader cannot
    give every wall clock (two of them meet where a clock is put forward).
    """
    jvm = _jvm(spark)
    if jvm is None:
        return None
    rules = jvm.java.time.ZoneId.systemDefault().getRules()
    if not rules.isFixedOffset():
        return None
    now = jvm.java.time.Instant.now()
    return int(rules.getOffset(now).getTotalSeconds()) * 1_000_000


def _jvm(spark: SparkSession) -> Any | None:
    return getattr(spark, "_jvm", None)


def spark_context(spark: SparkSession) -> Any | None:
    """What Python workers are started by; Spark Connect has none here."""
    return getattr(spark, "_sc", None)


def substitute_variables(spark: SparkSession, text: str) -> str:
    """``${…}`` replaced as Spark does before it parses; without a JVM the text as it is.

    Spark does it again with what it is given; that changes nothing more, because one pass already
    follows variables in variables.
    """
    jvm = _jvm(spark)
    if jvm is None or "${" not in text:
        return text
    return str(jvm.org.apache.spark.sql.internal.VariableSubstitution().substitute(text))


def is_temp_view(spark: SparkSession, name: str) -> bool:
    """True if a temporary view of that name hides tables of the same name."""
    session = getattr(spark, "_jsparkSession", None)
    if session is None:
        return any(t.isTemporary and t.name == name for t in spark.catalog.listTables())
    jvm = _jvm(spark)
    assert jvm is not None
    identifier = _table_identifier(jvm)(name)
    return bool(session.sessionState().catalog().isTempView(identifier))


@lru_cache(maxsize=1)
def _table_identifier(jvm: Any) -> Any:
    """A class of the JVM's, which stays the same: to find it takes a message for each package."""
    return jvm.org.apache.spark.sql.catalyst.TableIdentifier


@dataclass(frozen=True, slots=True)
class Scans:
    """The files of a plan's scans, as paths without scheme and host.

    Attributes:
        opened: What the scans were given.
        selected: What is left of it when Spark has looked at conditions on paths.
        has_python: Python tasks read, too.
    """

    opened: frozenset[str]
    selected: frozenset[str]
    has_python: bool


def scans_of(frame: DataFrame) -> Scans | None:
    """What a DataFrame's plan reads; None if there is no JVM to ask. No job runs."""
    if _jvm(frame.sparkSession) is None:
        return None
    plan = frame._jdf.queryExecution().executedPlan()
    opened: set[str] = set()
    selected: set[str] = set()
    for scan in _file_scans(plan):
        opened |= set(_PATHS.findall(str(scan.relation().location().rootPaths().mkString("\n"))))
        for directory in scan.selectedPartitions().partitionDirectories():
            selected |= set(_STATUS.findall(str(directory.files().mkString("\n"))))
    return Scans(frozenset(opened), frozenset(selected), "InArrow" in str(plan.toString()))


def prunes_event_columns(frame: DataFrame, names: Sequence[str]) -> bool:
    """Whether a scan of a plan leaves out some of the columns of event files (I8). No job runs.

    Spark's rules do that only where they take a subquery that depends on its row for a join.
    ``names``: of those columns.
    """
    jvm = _jvm(frame.sparkSession)
    if jvm is None:
        return False
    execution = frame._jdf.queryExecution()
    pattern = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.OUTER_REFERENCE()
    if not execution.analyzed().containsPattern(pattern):
        return False
    known = {name.lower() for name in names}
    return any(
        {name.lower() for name in scan.relation().dataSchema().fieldNames()} == known
        and len(scan.requiredSchema().fieldNames()) < len(known)
        for scan in _file_scans(execution.executedPlan())
    )


# One path a line, and what a file's status says of it.
_PATHS = re.compile(r"^(?:[A-Za-z][\w+.-]*:(?://[^/\n]*)?)?(/.*)$", re.MULTILINE)
_STATUS = re.compile(r"path=(?:[A-Za-z][\w+.-]*:(?://[^/\n]*)?)?(/.*?); isDirectory=", re.MULTILINE)


def _file_scans(plan: Any) -> Iterator[Any]:
    """The scans of files in a physical plan, in its subqueries too."""
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.initialPlan()
    for found in (plan.collectLeaves(), plan.subqueriesAll()):
        for at in range(found.size()):
            node = found.apply(at)
            name = node.getClass().getSimpleName()
            if name == "FileSourceScanExec":
                yield node
            elif name == "AdaptiveSparkPlanExec" or name.endswith("SubqueryExec"):
                yield from _file_scans(node)


def load(reader: DataFrameReader, spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """``reader.load(paths)``, with all paths in one message: PySpark sends one for each."""
    jvm = _jvm(spark)
    if jvm is None:
        return reader.load(list(paths))
    return reader._df(reader._jreader.load(_strings(jvm, paths)))


def select(frame: DataFrame, *expressions: str) -> DataFrame:
    """``frame.selectExpr``, with all expressions in one message: PySpark sends some for each."""
    jvm = _jvm(frame.sparkSession)
    if jvm is None:
        return frame.selectExpr(*expressions)
    return DataFrame(frame._jdf.selectExpr(_strings(jvm, expressions)), frame.sparkSession)


def _strings(jvm: Any, texts: Sequence[str]) -> Any:
    """An array of the JVM's; no path and no SQL of ours has a NUL in it."""
    return jvm.java.util.regex.Pattern.compile("\0").split("\0".join(texts))


# Casts of these words give another day each day.
_SPECIAL_DAYS = re.compile(r"\b(now|today|yesterday|tomorrow)\b", re.IGNORECASE)
_PLAIN_PLANS = {
    "spark.sql.debug.maxToStringFields": "1000000",
    # IN with many values stays a list, and a relation keeps all of its columns.
    "spark.sql.optimizer.inSetConversionThreshold": "1000",
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
}


def lasting_plan(frame: DataFrame) -> str | None:
    """Spark's JSON of a DataFrame's optimised plan, if that is the same at any time. No job runs.

    Where a query depends on the time of day Spark puts that into the plan, and would put another
    when the query is run. None, too, if there is no JVM to ask.
    """
    jvm = _jvm(frame.sparkSession)
    if jvm is None:
        return None
    with changed_conf(frame.sparkSession, _PLAIN_PLANS):
        execution = frame._jdf.queryExecution()
        analyzed = execution.analyzed()
        patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        if analyzed.containsPattern(patterns.CURRENT_LIKE()):
            return None
        if _SPECIAL_DAYS.search(str(analyzed.toString())):
            return None
        return str(execution.optimizedPlan().toJSON())


@dataclass(slots=True)
class _Changed:
    """A setting of a session while statements run that want it otherwise.

    Attributes:
        users: What the user has set, if anything.
        wanted: What each of them wants, in the order in which they came.
    """

    users: str | None
    wanted: dict[object, str] = field(default_factory=dict)


_CHANGING = threading.Lock()
_CHANGED: dict[tuple[object, str], _Changed] = {}  # by session and setting


def session_key(spark: SparkSession) -> object:
    """What is equal for all Python objects of one session, and for no two sessions.

    ``SparkSession(context, java_session)`` makes another Python object for the same session.
    """
    java = getattr(spark, "_jsparkSession", None)  # py4j compares and hashes as the JVM does
    return getattr(spark, "session_id", id(spark)) if java is None else java


@contextmanager
def changed_conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Run with other values of runtime settings.

    A session's threads share them. Who leaves lets what the last of the others wants stand; the
    last to leave puts back what the user has set.
    """
    who, session = object(), session_key(spark)
    with _CHANGING:
        for name, value in settings.items():
            key = session, name
            if key not in _CHANGED:
                _CHANGED[key] = _Changed(spark.conf.get(name, None))
            _CHANGED[key].wanted[who] = value
            _set_conf(spark, name, value)
    try:
        yield
    finally:
        with _CHANGING:
            for name in settings:
                changed = _CHANGED[session, name]
                del changed.wanted[who]
                if not changed.wanted:
                    del _CHANGED[session, name]
                _set_conf(spark, name, next(reversed(changed.wanted.values()), changed.users))


def users_conf(spark: SparkSession, name: str) -> str | None:
    """What the user has set, if anything, whatever those that run now have put in its place."""
    with _CHANGING:
        changed = _CHANGED.get((session_key(spark), name))
        return spark.conf.get(name, None) if changed is None else changed.users


def _set_conf(spark: SparkSession, name: str, value: str | None) -> None:
    if value is None:
        spark.conf.unset(name)
    elif spark.conf.get(name, None) != value:
        spark.conf.set(name, str(value))


@contextmanager
def named_jobs(
    spark: SparkSession, description: str, tag: str, pool: str | None = None
) -> Iterator[None]:
    """Name this thread's jobs in Spark's UI, and tag them, to be cancelled by it."""
    context = spark_context(spark)
    if context is None:
        yield
        return
    names = ("spark.job.description", "spark.scheduler.pool")
    before = {name: context.getLocalProperty(name) for name in names}
    context.setLocalProperty(names[0], description)
    if pool is not None:
        context.setLocalProperty(names[1], pool)
    context.addJobTag(tag)
    try:
        yield
    finally:
        context.removeJobTag(tag)
        for name, value in before.items():
            context.setLocalProperty(name, value)


def session_beside(spark: SparkSession) -> SparkSession:
    """A session of the same application with settings of its own, where there can be one."""
    return spark if _jvm(spark) is None else spark.newSession()


def cancel_jobs(spark: SparkSession, tag: str) -> None:
    """Cancel the jobs that run under a tag."""
    context = spark_context(spark)
    if context is not None:
        context.cancelJobsWithTag(tag)


def task_slots(spark: SparkSession) -> int:
    """How many tasks run at once; 1 if nobody can tell."""
    context = spark_context(spark)
    return 1 if context is None else int(context.defaultParallelism)


def may_call_user_code(frame: DataFrame) -> bool:
    """Whether a query may have a function of the user's in it, in Python or Java."""
    jvm = _jvm(frame.sparkSession)
    if jvm is None:
        return True
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    analyzed = frame._jdf.queryExecution().analyzed()
    # A table function of the user's looks like any other.
    kinds = (patterns.PYTHON_UDF(), patterns.SCALA_UDF(), patterns.GENERATE())
    return any(analyzed.containsPattern(kind) for kind in kinds)


def has_fair_pools(spark: SparkSession) -> bool:
    """Whether the user has a FAIR scheduler."""
    context = spark_context(spark)
    return context is not None and context.getConf().get("spark.scheduler.mode", "FIFO") == "FAIR"


def estimated_bytes(frame: DataFrame) -> float:
    """Spark's estimate of what a query gives, or of what its LIMIT is of. No job runs.

    Infinite if there is no JVM to ask.
    """
    if _jvm(frame.sparkSession) is None:
        return math.inf
    plan = frame._jdf.queryExecution().optimizedPlan()
    while plan.nodeName() in ("GlobalLimit", "LocalLimit"):
        plan = plan.children().apply(0)
    return int(str(plan.stats().sizeInBytes()))


def heap_bytes(spark: SparkSession) -> int:
    """How large the driver's heap may become; 0 if there is no JVM to ask."""
    jvm = _jvm(spark)
    return 0 if jvm is None else int(jvm.java.lang.Runtime.getRuntime().maxMemory())


_NO_BROADCAST = re.compile(
    r"(Not enough memory to build and|Cannot) broadcast the table|Could not execute broadcast"
    r"|spark\.driver\.maxResultSize"
)


def is_too_large_to_send(error: BaseException) -> bool:
    """Whether a query with a small result failed because a table is too large for every task."""
    return bool(_NO_BROADCAST.search(str(error)))


def explain(frame: DataFrame, mode: str | None) -> str:
    """Spark's plan of a DataFrame, as EXPLAIN prints it."""
    jvm = _jvm(frame.sparkSession)
    if jvm is None:
        return ""
    known = {"EXTENDED", "FORMATTED", "CODEGEN", "COST"}
    wanted = (mode or "").upper()
    text = jvm.PythonSQLUtils.explainString(
        frame._jdf.queryExecution(), wanted.lower() if wanted in known else "simple"
    )
    return str(text)
