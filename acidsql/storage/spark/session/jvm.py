"""The few things that need Spark's JVM. Without a JVM (Spark Connect) all works, but slower."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from acidsql.storage.spark.session.java_classes import java_class, java_strings, tree_patterns


def _jvm(spark: SparkSession) -> Any | None:
    """Return py4j's view of the JVM; None over Spark Connect."""
    return getattr(spark, "_jvm", None)


def is_remote(spark: SparkSession) -> bool:
    """Whether this is a session of Spark Connect: its JVM is a server's, and cannot be asked."""
    return _jvm(spark) is None


def java_error() -> type[Exception]:
    """Return the class of a failed call to the JVM. Where there is no JVM, py4j may be missing,
    too: then this raises ImportError.
    """
    from py4j.protocol import Py4JError

    error_class: type[Exception] = Py4JError
    return error_class


def spark_context(spark: SparkSession) -> Any | None:
    """Return Python's Spark context; None over Spark Connect."""
    return getattr(spark, "_sc", None)


def session_confs(spark: SparkSession) -> dict[str, str]:
    """Return the confs of a session that were set, by name, as texts; {} if Spark does not tell."""
    with suppress(Exception):  # Spark was stopped, or its server is gone
        return {name: str(value) for name, value in spark.conf.getAll.items()}
    return {}


def has_ended(spark: SparkSession) -> bool:
    """Whether a session was stopped."""
    context, remote = spark_context(spark), cast(Any, spark)
    return bool(remote.is_stopped if context is None else context._jsc is None)


def substitute_variables(spark: SparkSession, text: str) -> str:
    """Replace ``${…}`` as Spark does before it parses; without a JVM, return the text unchanged.

    Spark replaces variables again in the text that it gets. This changes nothing, because the first
    pass also replaces variables in the values of variables.
    """
    jvm = _jvm(spark)
    if jvm is None or "${" not in text:
        return text
    return str(
        java_class(jvm, "org.apache.spark.sql.internal.VariableSubstitution")().substitute(text)
    )


OWN_CATALOG = "spark_catalog"  # the name of Spark's own catalog


def is_own_catalog(spark: SparkSession) -> bool:
    """Whether the current catalog is Spark's own, where unqualified names may be ours."""
    return spark.catalog.currentCatalog() == OWN_CATALOG


def without_own_catalog(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts of a table's name without the name of Spark's own catalog before a database;
    any other name as it is. The case of a catalog's name matters, as in Spark."""
    return parts[1:] if len(parts) == 3 and parts[0] == OWN_CATALOG else parts


@dataclass(frozen=True, slots=True)
class ScannedFiles:
    """The files of a plan's scans, as paths without scheme and host.

    Attributes:
        opened: The paths that the scans were given to read.
        selected: The files that remain after Spark has applied conditions on paths.
        has_python: Whether the plan has a Python function over Arrow batches (``mapInArrow``), in
            which tasks may read files, too; these are in neither set.
    """

    opened: frozenset[str]
    selected: frozenset[str]
    has_python: bool


def scanned_files(frame: DataFrame) -> ScannedFiles | None:
    """Return the files that a DataFrame's plan reads; None without a JVM. No job runs."""
    if _jvm(frame.sparkSession) is None:
        return None
    plan = frame._jdf.queryExecution().executedPlan()
    opened: set[str] = set()
    selected: set[str] = set()
    for scan in _file_scans(plan):
        opened |= set(_PATHS.findall(str(scan.relation().location().rootPaths().mkString("\n"))))
        for directory in scan.selectedPartitions().partitionDirectories():
            selected |= set(_STATUS.findall(str(directory.files().mkString("\n"))))
    return ScannedFiles(frozenset(opened), frozenset(selected), "InArrow" in str(plan.toString()))


def prunes_event_columns(frame: DataFrame, names: Sequence[str]) -> bool:
    """Whether a scan of event files in a plan leaves out some of their columns. No job runs. True
    without a JVM.

    Spark's rules prune these columns only if they turn a correlated subquery into a join; without
    such a subquery it is False, and the plan is not looked at. ``names``: the columns of event
    files; a scan of other columns does not count.
    """
    jvm = _jvm(frame.sparkSession)
    if jvm is None:
        return True
    execution = frame._jdf.queryExecution()
    pattern = tree_patterns(jvm).OUTER_REFERENCE()
    if not execution.analyzed().containsPattern(pattern):
        return False
    event_columns = {name.lower() for name in names}
    return any(
        {name.lower() for name in scan.relation().dataSchema().fieldNames()} == event_columns
        and len(scan.requiredSchema().fieldNames()) < len(event_columns)
        for scan in _file_scans(execution.executedPlan())
    )


# A path on each line; a path in the text of a file's status.
_PATHS = re.compile(r"^(?:[A-Za-z][\w+.-]*:(?://[^/\n]*)?)?(/.*)$", re.MULTILINE)
_STATUS = re.compile(r"path=(?:[A-Za-z][\w+.-]*:(?://[^/\n]*)?)?(/.*?); isDirectory=", re.MULTILINE)


def _file_scans(plan: Any) -> Iterator[Any]:
    """Yield the scans of files (FileSourceScanExec) in a physical plan, including its subqueries.
    An adaptive plan counts as it was before it ran.
    """
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.initialPlan()
    for nodes in (plan.collectLeaves(), plan.subqueriesAll()):
        for index in range(nodes.size()):
            node = nodes.apply(index)
            name = node.getClass().getSimpleName()
            if name == "FileSourceScanExec":
                yield node
            # A ReusedSubqueryExec repeats another subquery of the plan, and is its own leaf.
            elif name in ("AdaptiveSparkPlanExec", "SubqueryExec"):
                yield from _file_scans(node)


def load(reader: DataFrameReader, spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return ``reader.load(paths)``. All paths go to the JVM in one message: PySpark sends one for
    each.
    """
    jvm = _jvm(spark)
    if jvm is None:
        return reader.load(list(paths))
    return reader._df(reader._jreader.load(java_strings(jvm, paths)))


def select(frame: DataFrame, *expressions: str) -> DataFrame:
    """Return ``frame.selectExpr(*expressions)``. All expressions go to the JVM in one message:
    PySpark sends some for each.
    """
    jvm = _jvm(frame.sparkSession)
    if jvm is None:
        return frame.selectExpr(*expressions)
    return DataFrame(frame._jdf.selectExpr(java_strings(jvm, expressions)), frame.sparkSession)


def drop(frame: DataFrame, *names: str) -> DataFrame:
    """Return ``frame.drop(*names)``. All names go to the JVM in one message."""
    jvm = _jvm(frame.sparkSession)
    if jvm is None:
        return frame.drop(*names)
    return DataFrame(frame._jdf.drop(java_strings(jvm, names)), frame.sparkSession)


def sql(spark: SparkSession, text: str) -> DataFrame:
    """Return ``spark.sql(text)``. The JVM gets one message: PySpark sends four more for the values
    of no parameters. As there, a command runs now.
    """
    session = getattr(spark, "_jsparkSession", None)
    return spark.sql(text) if session is None else DataFrame(session.sql(text), spark)


# Java never compiles a method with more bytes than this, but interprets it, which takes longer.
# Above the limit, Spark makes a method for each operator instead of one for all. Spark's default is
# the largest method that Java allows.
METHODS_THAT_JAVA_COMPILES = {"spark.sql.codegen.hugeMethodLimit": "8000"}


@dataclass(slots=True)
class _ChangedSetting:
    """A setting of a session that running statements have changed.

    Attributes:
        users_value: The value that the user has set; None if unset.
        requested_values: The value that each statement needs, in the order of the statements.
    """

    users_value: str | None
    requested_values: dict[object, str] = field(default_factory=dict)


_CHANGING = threading.Lock()
_CHANGED: dict[tuple[str, str], _ChangedSetting] = {}  # by session and setting
_KEYS: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()


def session_key(spark: SparkSession) -> str:
    """Return a key that is equal for all Python objects of one session, and differs between
    sessions.

    ``SparkSession(context, java_session)`` makes another Python object for the same session.
    """
    if spark not in _KEYS:
        java = getattr(spark, "_jsparkSession", None)
        _KEYS[spark] = str(spark.session_id if java is None else java.sessionUUID())  # type: ignore[attr-defined]
    return _KEYS[spark]


@contextmanager
def changed_conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Run a block with other values of runtime settings (name → value) in the session's conf.

    The threads of a session share its settings. When a block ends while other blocks run, the
    setting gets the value that the latest of them needs. When the last block ends, the setting gets
    the user's value back.
    """
    owner, session = object(), session_key(spark)
    with _CHANGING:
        current_values = _conf_values(spark, settings)
        for name, value in settings.items():
            _CHANGED.setdefault(
                (session, name), _ChangedSetting(current_values[name])
            ).requested_values[owner] = value
        _set_conf(
            spark,
            {name: value for name, value in settings.items() if current_values[name] != value},
        )
    try:
        yield
    finally:
        with _CHANGING:
            restored_values: dict[str, str | None] = {}
            for name, value in settings.items():
                changed = _CHANGED[session, name]
                del changed.requested_values[owner]
                if not changed.requested_values:
                    del _CHANGED[session, name]
                last = next(reversed(changed.requested_values.values()), changed.users_value)
                if last != value:
                    restored_values[name] = last
            _set_conf(spark, restored_values)


# What composed text needs. MERGE's has lateral column aliases, which a session can turn off; and a
# quoted name is a name, which a session can make a pattern of names.
_COMPOSED_TEXT = {
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "true",
    "spark.sql.parser.quotedRegexColumnNames": "false",
}


@contextmanager
def composed_text_conf(spark: SparkSession) -> Iterator[None]:
    """Run a block with the settings that SQL composed by this library needs, if the user has set
    them otherwise: an alias may be used in the same SELECT, and a quoted name is a name, not a
    pattern.
    """
    values = {name: users_conf(spark, name) for name in _COMPOSED_TEXT}
    differing = {
        name: value
        for name, value in _COMPOSED_TEXT.items()
        if values[name] is not None and str(values[name]).lower() != value
    }
    with changed_conf(spark, differing):
        yield


def _conf_values(spark: Any, names: Collection[str]) -> dict[str, str | None]:
    """Return the values of settings by name; None if unset. A server of Spark Connect tells all at
    once.
    """
    if names and is_remote(spark):
        values = spark.client.get_config_with_defaults(*((name, None) for name in names))
        return dict(zip(names, values, strict=True))
    return {name: spark.conf.get(name, None) for name in names}


def _set_conf(spark: Any, values: Mapping[str, str | None]) -> None:
    """Set runtime settings, name → value; None unsets the setting."""
    new = {name: value for name, value in values.items() if value is not None}
    if len(new) > 1 and is_remote(spark):
        spark.conf._set_all(new, silent=False)  # in one message
    else:
        for name, value in new.items():
            spark.conf.set(name, value)
    for name in values.keys() - new.keys():
        spark.conf.unset(name)


def is_on(spark: SparkSession, name: str) -> bool:
    """Whether a setting of Spark's own is true, in any case; without a value by Spark's own
    default."""
    return str(spark.conf.get(name)).lower() == "true"


def users_conf(spark: SparkSession, name: str) -> str | None:
    """Return the value that the user has set (None if unset), even while ``changed_conf`` replaces
    it.
    """
    with _CHANGING:
        changed = _CHANGED.get((session_key(spark), name))
        return spark.conf.get(name, None) if changed is None else changed.users_value


def may_call_user_code(frame: DataFrame) -> bool:
    """Whether a query may call a function of the user's, in Python or Java. True without a JVM, and
    for any generator (``explode`` or a table function).
    """
    jvm = _jvm(frame.sparkSession)
    if jvm is None:
        return True
    patterns = tree_patterns(jvm)
    analyzed = frame._jdf.queryExecution().analyzed()
    # A user's table function looks like any other table function.
    kinds = (patterns.PYTHON_UDF(), patterns.SCALA_UDF(), patterns.GENERATE())
    return any(analyzed.containsPattern(kind) for kind in kinds)


def calls_java(frame: DataFrame) -> bool:
    """Whether a query calls a function of the user's in Java or Scala. Needs a JVM."""
    pattern = tree_patterns(_jvm(frame.sparkSession)).SCALA_UDF()
    return bool(frame._jdf.queryExecution().analyzed().containsPattern(pattern))


def estimated_bytes(frame: DataFrame) -> float:
    """Return Spark's estimate of the bytes that a query gives, without its outermost LIMIT. No job
    runs.

    Infinite without a JVM.
    """
    if _jvm(frame.sparkSession) is None:
        return math.inf
    plan = frame._jdf.queryExecution().optimizedPlan()
    while plan.nodeName() in ("GlobalLimit", "LocalLimit"):
        plan = plan.children().apply(0)
    return int(str(plan.stats().sizeInBytes()))


def heap_bytes(spark: SparkSession) -> int:
    """Return the maximum size of the driver's heap in bytes; 0 without a JVM."""
    jvm = _jvm(spark)
    return 0 if jvm is None else int(java_class(jvm, "java.lang.Runtime").getRuntime().maxMemory())


_NO_BROADCAST = re.compile(
    r"(Not enough memory to build and|Cannot) broadcast the table|Could not execute broadcast"
    r"|spark\.driver\.maxResultSize"
)


# Settings with which Spark broadcasts no table.
SEND_NOTHING = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}


def is_too_large_to_send(error: BaseException) -> bool:
    """Whether a query failed because a table is too large to broadcast, by the words of the error.
    True, too, if the words name ``spark.driver.maxResultSize``: the caller knows that the query's
    own result is small.
    """
    return bool(_NO_BROADCAST.search(str(error)))


def explain(frame: DataFrame, mode: str | None) -> str:
    """Return the text of Spark's plan of a DataFrame, as EXPLAIN prints it. ``mode``: EXTENDED,
    FORMATTED, CODEGEN or COST, in any case; another one, or None, counts as simple.
    """
    modes = {"EXTENDED", "FORMATTED", "CODEGEN", "COST"}
    chosen_mode = mode.lower() if mode and mode.upper() in modes else "simple"
    jvm = _jvm(frame.sparkSession)
    if jvm is None:
        remote: Any = frame
        return str(remote._explain_string(mode=chosen_mode))
    return str(jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), chosen_mode))
