"""Turns composed text into lazy DataFrames, and Spark's errors into ours.

Stand-ins become temporary views, Spark analyses the text once, and the views are dropped. The
DataFrame keeps the plans of the views. An error of Spark's analysis becomes one of ours, with a
caret in the user's text. Only this module of ``plan/`` runs Spark's analysis.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from logging import LogRecord, getLogger
from typing import Any

from pyspark.errors import (
    AnalysisException,
    ParseException,
    PySparkException,
    QueryContextType,
)
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - PySpark's own convention

from acidsql.acid.event import EVENT_COLUMNS
from acidsql.acid.table import Table
from acidsql.acid.values.types import HiveType
from acidsql.acid.virtual_columns import why_missing
from acidsql.errors import AcidSqlError, AnalysisError, ConstraintError, SqlSyntaxError, WriteError
from acidsql.plan.analysis.composed_texts import remember_text
from acidsql.plan.rows.event_query import DerivedView, Fields
from acidsql.plan.standins.query import VIEW_PREFIX, StandIn
from acidsql.plan.values.assignment import BAR, RAISED
from acidsql.plan.values.checks import INVALID, MEANING, check_projections, constraint_of_fragment
from acidsql.plan.values.sqltext import Text
from acidsql.sql.queries.conditions import may_correlate
from acidsql.sql.text.tokens import Span, tokenize
from acidsql.storage.reading.orc_scan import block_pushdown
from acidsql.storage.spark.char_columns import mark_char_columns
from acidsql.storage.spark.clocks import StatementTime
from acidsql.storage.spark.repeatable import source_changed_error
from acidsql.storage.spark.session import jvm
from acidsql.storage.spark.session.jvm import changed_conf, select
from acidsql.storage.spark.views import query_over_views, settle

Args = Mapping[str, Any] | None
Views = Mapping[str, DataFrame]  # by name
_KINDS = {
    T.BooleanType: "boolean",
    T.ByteType: "tinyint",
    T.ShortType: "smallint",
    T.IntegerType: "int",
    T.LongType: "bigint",
    T.FloatType: "float",
    T.DoubleType: "double",
    T.StringType: "string",
    T.BinaryType: "binary",
    T.DateType: "date",
    T.TimestampNTZType: "timestamp",
    T.TimestampType: "timestamp_ltz",
    T.NullType: "void",
}
# The parts of Spark's messages that are removed: the SQLSTATE, the position, and the composed text,
# the plan or the server's stack below the message.
_NOISE = re.compile(
    r"\s*SQLSTATE: \w{5}|;? line \d+ pos \d+|\(line \d+, pos \d+\)"
    r"|(== SQL|;\n|JVM stacktrace:).*",
    re.DOTALL,
)
# An error of ours that a Python task raised, in the traceback that Spark passes on.
# A user's text may begin as ours does, as the pattern 'hive|acidsql|delta'.
_RAISED_BY_OUR_SQL = re.compile(rf"{re.escape(RAISED)}([A-Z][\w.]*)\|(\w{{5}})\|([^|]*)")
_FROM_TASK = re.compile(r"acidsql\.errors\.\w+: \[([\w.]+)\] (.*?) SQLSTATE: (\w{5})", re.S)
_OS_ERROR_IN_TASK = re.compile(r"^\w*(?:OS|NotFound|Exists|Permission)Error: (\[Errno .*)$", re.M)
# An exception of Java's that PySpark does not convert, as of a scalar subquery with two rows.
_JAVA_ERROR = re.compile(
    r"^(?:|Caused by): [\w.$]+: \[([A-Z][\w.]*)\] (.*?) SQLSTATE: (\w{5})", re.S | re.M
)
_NAME = r"`(?:[^`]|``)*`"
_NAMES = rf"{_NAME}(?:\.{_NAME})*"
_LIST = re.compile(rf"\[({_NAMES}(?:, {_NAMES})*)\]")
_OWN_VIEW = re.compile(rf"`{VIEW_PREFIX}\w+`\.")
_OWN_COLUMN = re.compile(rf"`{VIEW_PREFIX}\w+`, |, `{VIEW_PREFIX}\w+`")
_OWN_SQL = re.compile(rf'"[^"]*{VIEW_PREFIX}[^"]*"')  # an expression around the user's
_NO_SUGGESTION = re.compile(r" Did you mean one of the following\? \[\]\.?")
_ERRORS_OF_QUERIES, _PY4J = "SQLQueryContextLogger", "py4j.clientserver"  # loggers
_CTRL_C_LOGS = (
    "KeyboardInterrupt while sending command",
    "Exception occurred while shutting down connection",
)
_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")


def frame(
    spark: SparkSession, text: Text, views: Views, args: Args = None,
    time: StatementTime | None = None, *, runs: bool = False,
) -> DataFrame:  # fmt: skip
    """Let Spark analyse a composed query, and return its lazy DataFrame.

    A subquery that may be correlated could make Spark prune the event columns of a view. Then the
    query is analysed, again if need be, over views that Spark cannot look into; over Spark Connect
    always, as its plan is not shown.

    Args:
        spark: The Spark session.
        text: The query.
        views: The views of the query by name.
        args: The values of the query's parameters.
        time: The time that the query's clocks show; None: the time when it runs.
        runs: The text may also be a statement that runs at once.

    Raises:
        SqlSyntaxError, AnalysisError: Spark's error, with a caret in the user's text.
    """
    correlates = may_correlate(text.sql)
    # A server of Spark Connect does not show the plan, and a statement must not run twice.
    if not correlates or not jvm.is_remote(spark):
        rows = _analyse_rows(spark, text, views, args, time, runs=runs)
        with mapped_errors(text):
            if not correlates or not jvm.prunes_event_columns(rows, EVENT_COLUMNS):
                return rows
    isolated_views = {name: block_pushdown(view, f"{name}_rows") for name, view in views.items()}
    return _analyse_rows(spark, text, isolated_views, args, time, runs=runs)


def _analyse_rows(
    spark: SparkSession, text: Text, views: Views, args: Args, time: StatementTime | None = None,
    *, runs: bool = False,
) -> DataFrame:  # fmt: skip
    """Analyse a query, and return its lazy DataFrame, which can still be used when the temporary
    views are gone. ``time``: the time that its clocks show; None: the time when it runs."""
    with _query_rows(spark, text, views, args, runs=runs) as rows:
        return settle(rows if time is None else time.replace_clocks(rows))


@contextmanager
def _query_rows(
    spark: SparkSession, text: Text, views: Views, args: Args, *, runs: bool = False
) -> Iterator[DataFrame]:
    """Analyse a query and yield its DataFrame. The temporary views exist only inside of the
    ``with`` block, and Spark's errors there are raised as ours."""
    remember_text(text)
    with mapped_errors(text), query_over_views(spark, text.sql, views, args, runs=runs) as rows:
        yield rows


def fields(spark: SparkSession, text: Text, views: Views, args: Args = None) -> Fields:
    """Return the names and types of a query's columns as pairs, in their order. Spark only analyses
    the query; its error is raised as SqlSyntaxError or AnalysisError, with a caret in the user's
    text."""
    with _query_rows(spark, text, views, args) as rows:
        return fields_of(rows)


def fields_of(rows: DataFrame) -> list[tuple[str, HiveType]]:
    """Return the names and types of a DataFrame's columns."""
    return [(field.name, hive_type(field.dataType)) for field in rows.schema.fields]


class Analysis:
    """Asks Spark for the columns of a statement's queries. Each view and query is analysed once.

    Args:
        spark: The Spark session.
        args: The values of the statement's parameters.
        empty_views: Makes views without rows for stand-ins.
    """

    def __init__(
        self,
        spark: SparkSession,
        args: Args,
        empty_views: Callable[[Iterable[StandIn]], Mapping[str, DataFrame]],
    ) -> None:
        self._spark, self._args, self._empty_views = spark, args, empty_views
        self._views: dict[str, DataFrame] = {}
        self._fields: dict[str, Fields] = {}  # by the query's text

    def fields(
        self, query: Text, standins: Iterable[StandIn], derived: DerivedView | None
    ) -> Fields:
        """Return the names and types of a query's columns. Empty views stand for the stand-ins;
        ``derived`` is a view over another query, or None. Views and queries are analysed once and
        remembered. Raise Spark's error as ours, with a caret."""
        views = self._views
        views.update(
            self._empty_views(standin for standin in standins if standin.view not in views)
        )
        if derived is not None and derived.view not in views:
            query_views = views_in_text(derived.query, views)
            views[derived.view] = _analyse_rows(self._spark, derived.query, query_views, self._args)
        if derived is not None and query is derived.query:
            return fields_of(views[derived.view])
        if query.sql not in self._fields:
            query_fields = fields(self._spark, query, views_in_text(query, views), self._args)
            self._fields[query.sql] = query_fields
        return self._fields[query.sql]


def analyse_condition(spark: SparkSession, query: Text) -> DataFrame:
    """Let Spark analyse the query of ``checks.condition_over``, under the fixed settings of CHECK
    constraints, and return its lazy DataFrame. Raise Spark's error as SqlSyntaxError or
    AnalysisError."""
    with changed_conf(spark, MEANING):
        return _analyse_rows(spark, query, {}, None)


def rows_with_checks(rows: DataFrame, table: Table, time: StatementTime | None = None) -> DataFrame:
    """Return a table's events with CHECK constraints, as a lazy DataFrame of the same columns: the
    job fails at a row that breaks one. Without constraints, or if the events insert no rows, return
    the rows themselves. ``time``: the time that the conditions' clocks show; None: the time when
    the job runs.

    Raises:
        AnalysisError: INVALID_CHECK_CONSTRAINT: this session cannot evaluate a condition. It may
            call a function that only Hive has.
    """
    columns = check_projections(table, rows.columns) if table.checks else None
    if columns is None:
        return rows
    try:
        with changed_conf(rows.sparkSession, MEANING), no_log():
            checked_rows = settle(
                select(mark_char_columns(select(rows, *columns[0]), table), *columns[1])
            )
            return checked_rows if time is None else time.replace_clocks(checked_rows)
    except (AnalysisException, ParseException) as error:
        names = ", ".join(map(repr, table.checks))
        raise AnalysisError(
            f"The CHECK constraints of {table.name} ({names}) cannot be evaluated in this session: "
            f"{message_without_sql(error)}",
            condition=INVALID,
            sqlstate="42621",
        ) from None


@contextmanager
def naming_checks(rows: DataFrame, table: Table) -> Iterator[None]:
    """Raise ConstraintError, with the constraint's name, if Spark's error in the ``with`` block
    comes from a CHECK condition that fails, by a division by zero for example. The error has the
    condition and SQLSTATE of Spark's. Other errors pass.

    ``rows``: the events that were passed to ``rows_with_checks``.
    """
    try:
        yield
    except PySparkException as error:
        for context in error.getQueryContext() or ():
            if context.contextType() is not QueryContextType.SQL:
                continue
            fragment, start = context.fragment(), context.startIndex()
            name = constraint_of_fragment(table, rows.columns, fragment, start)
            if name is not None:
                raise ConstraintError(
                    f"The CHECK constraint '{name}' of {table.name}, {table.checks[name]}, fails "
                    f"for a row: {message_without_sql(error)}",
                    condition=error.getCondition(),
                    sqlstate=error.getSqlState(),
                ) from None
        raise


def violation_summary(rows: DataFrame, condition: str, example: str) -> DataFrame:
    """Return one row: ``n``, the number of rows for which a condition is false (not NULL), and
    ``example``, the least of their texts by the SQL ``example``; NULL if there are none.

    ``example``: SQL of a row as text.
    """
    examples = select_expressions(rows, f"CASE WHEN NOT ({condition}\n) THEN {example} END AS x")
    return select_expressions(examples, "count(x) AS n", "min(x) AS example")


def select_expressions(rows: DataFrame, *expressions: str) -> DataFrame:
    """Return a lazy DataFrame of SQL expressions over rows. They are analysed under fixed settings,
    so that they mean the same in every session. An error of Spark's analysis passes as it is, but
    PySpark does not log it."""
    with changed_conf(rows.sparkSession, MEANING), no_log():
        return settle(select(rows, *expressions))


def derived_rows(
    spark: SparkSession, source: DerivedView, views: Views, args: Args, time: StatementTime | None
) -> DataFrame:
    """Return the rows of a statement's source as a lazy DataFrame, analysed once; its CHAR columns
    compare as CHAR. All readers of this DataFrame read the same files.

    Raises:
        TransientTxnError: The source's columns, by name and type, are not ``source.fields``: they
            changed after the statement was prepared. Fields that are None are not compared.
    """
    rows = mark_chars(
        frame(spark, source.query, views_in_text(source.query, views), args, time), source
    )
    if source.fields is not None and list(source.fields) != fields_of(rows):
        raise source_changed_error()
    return rows


def mark_chars(rows: DataFrame, derived: DerivedView) -> DataFrame:
    """Return the rows of a view with its CHAR columns marked, so that Spark compares them as CHAR;
    the same rows if the view has none."""
    return rows if derived.chars is None else mark_char_columns(rows, derived.chars)


def views_in_text(text: Text, views: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Return those of the views, by name, whose names are in a text."""
    return {name: view for name, view in views.items() if name in text.sql}


def hive_type(kind: T.DataType) -> HiveType:
    """Return the Hive type of a Spark type. ``timestamp`` is Spark's TIMESTAMP_NTZ (a wall clock);
    ``timestamp_ltz`` is Spark's TIMESTAMP. A STRING keeps its collation, and types that Hive lacks
    keep Spark's name."""
    if isinstance(kind, T.DecimalType):
        return HiveType("decimal", (kind.precision, kind.scale))
    if isinstance(kind, T.StringType) and kind.collation != "UTF8_BINARY":
        return HiveType("string", collation=kind.collation)
    if isinstance(kind, T.ArrayType):
        return HiveType("array", children=(hive_type(kind.elementType),))
    if isinstance(kind, T.MapType):
        return HiveType("map", children=(hive_type(kind.keyType), hive_type(kind.valueType)))
    if isinstance(kind, T.StructType):
        children = tuple(hive_type(field.dataType) for field in kind.fields)
        return HiveType("struct", children=children, names=tuple(kind.names))
    return HiveType(_KINDS.get(type(kind), kind.simpleString()))


@contextmanager
def mapped_errors(text: Text) -> Iterator[None]:
    """Raise Spark's errors of parsing and of analysis in the ``with`` block as SqlSyntaxError and
    AnalysisError, with a caret in the user's text. PySpark does not log them.

    If a job fails, the error of our SQL or our task is raised, as by ``job_errors``. Other errors
    pass.
    """
    with job_errors():
        try:
            with no_log():
                yield
        except ParseException as error:
            raise _converted_error(SqlSyntaxError, error, text) from None
        except AnalysisException as error:
            raise _converted_error(AnalysisError, error, text) from None


@contextmanager
def job_errors() -> Iterator[None]:
    """If a job fails in the ``with`` block, raise the error that SQL of acidsql's (ConstraintError)
    or its Python task (WriteError) raised; else Spark's error.

    A task's error with a file becomes a WriteError. So does an exception of Java's, with a
    condition, that PySpark has not converted. Errors that are not Spark's pass. PySpark logs none.
    """
    try:
        with no_log():
            yield
    except PySparkException as error:
        raise _job_error(error) from error
    except Exception as error:
        if (converted := _java_error(error)) is None:
            raise
        raise converted from error


@contextmanager
def no_log() -> Iterator[None]:
    """Keep PySpark from logging this thread's errors in the ``with`` block, and py4j from logging a
    Ctrl-C.

    The errors show the composed text, or the caller shows them anyway. Other threads still log
    their errors.
    """
    thread = threading.get_ident()

    def is_logged(record: LogRecord) -> bool:
        """Whether a record is of another thread, or is no error of a query and no Ctrl-C."""
        is_suppressed = record.name == _ERRORS_OF_QUERIES or str(record.msg).startswith(
            _CTRL_C_LOGS
        )
        return threading.get_ident() != thread or not is_suppressed

    loggers = PySparkLogger.getLogger(_ERRORS_OF_QUERIES), getLogger(), getLogger(_PY4J)
    for logger in loggers:
        logger.addFilter(is_logged)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_logged)


def _converted_error(
    error_class: type[AnalysisError | SqlSyntaxError], spark_error: Any, text: Text
) -> AcidSqlError:
    """Return an ``error_class`` for an error of Spark's about the composed SQL, with its condition
    and SQLSTATE. The message is without our SQL and names, with a hint if there is one. The caret
    is at the place in the user's text, or at all of it if the place is not known."""
    place = _place_in_text(spark_error, text)
    if place is None and (offset := error_offset(spark_error, text.sql)) is not None:
        return _error_near(text, text.offset_near(offset))
    place = place or Span(0, len(text.source))
    return error_class(
        message_without_sql(spark_error) + _name_hint(spark_error),
        text.source,
        place.start,
        place.end,
        condition=spark_error.getCondition(),
        sqlstate=spark_error.getSqlState(),
    )


def message_without_sql(error: Any) -> str:
    """Return Spark's message without its condition, its SQLSTATE, and the parts that are about the
    composed text: positions, the SQL, the plan, and names of our own."""
    message = _NOISE.sub("", str(error)).strip()
    return _without_own_names(re.sub(r"^\[[\w.]+\]\s*", "", message))


def _name_hint(error: Any) -> str:
    """Return a hint, with a blank before it, for an unresolved column (a pattern, DEFAULT, a name
    that Spark proposes in small letters, or a name that Hive has), and for an ambiguous name that
    two relations of one name have; "" for any other error."""
    condition, parameters = error.getCondition() or "", error.getMessageParameters() or {}
    if condition == "AMBIGUOUS_REFERENCE":
        candidates = re.findall(_NAMES, parameters.get("referenceNames", ""))
        qualifiers = {name.rpartition(".")[0] for name in candidates}
        if len(candidates) < 2 or len(qualifiers) > 1 or "" in qualifiers:
            return ""
        name = qualifiers.pop()
        return f" If two relations are called {name} here, give one an alias: … AS source."
    if not condition.startswith("UNRESOLVED_COLUMN"):
        return ""
    name = parameters.get("objectName", "").rpartition(".")[2].strip("`")
    if any(sign in name for sign in "?*+|"):
        return (
            " If this is a pattern of names (spark.sql.parser.quotedRegexColumnNames): here, a "
            "quoted name is a name. SELECT * EXCEPT (a, b) leaves columns out."
        )
    if name.upper() == "DEFAULT":
        return " The word DEFAULT stands for a whole value, and not within an expression."
    if name != name.lower() and f"`{name.lower()}`" in parameters.get("proposal", ""):
        return " This session tells names apart by case: spark.sql.caseSensitive is true."
    hint = why_missing(name)
    return "" if hint is None else f" {hint}"


def _without_own_names(message: str) -> str:
    """Return a message of Spark's without our own columns and views. An expression of our own SQL
    becomes ``"…"``, and suggestions that are empty then are dropped."""

    def users_names(match: re.Match[str]) -> str:
        """Return a list of names in a message, in its brackets, without the names of our own
        views."""
        names = re.findall(_NAMES, match[1])
        return f"[{', '.join(name for name in names if f'`{VIEW_PREFIX}' not in name)}]"

    shortened = _LIST.sub(users_names, _OWN_VIEW.sub("", message))
    return _OWN_SQL.sub('"…"', _NO_SUGGESTION.sub("", _OWN_COLUMN.sub("", shortened)))


def _place_in_text(error: Any, text: Text) -> Span | None:
    """Return the place in the user's text that an error of Spark's is about; None if Spark gives
    none, or it is in SQL that acidsql added."""
    for context in error.getQueryContext() or ():
        # The context of a DataFrame call has no position in a text.
        if context.contextType() is QueryContextType.SQL and context.startIndex() >= 0:
            place = text.place(context.startIndex(), max(context.stopIndex(), 0))
            if place is not None:
                return place
    offset = error_offset(error, text.sql)
    return None if offset is None else text.place(offset, offset)


def error_offset(error: Exception, sql: str) -> int | None:
    """Return the offset in a statement at which Spark's parser cannot go on; None if the error
    does not tell one."""
    match = _POSITION.search(str(error))
    if match is None:
        return None
    lines = sql.split("\n")
    return sum(len(line) + 1 for line in lines[: int(match[1]) - 1]) + int(match[2])


def _error_near(text: Text, offset: int) -> SqlSyntaxError:
    """Return the syntax error for an offset in the user's text behind which Spark's parser has
    stopped, in SQL of our own: its message would name a word that the user has not written."""
    token = next((token for token in tokenize(text.source) if offset < token.end), None)
    name = "the end of the statement" if token is None else f"'{token.text}'"
    span = Span(len(text.source), len(text.source)) if token is None else token.span
    return SqlSyntaxError(f"Syntax error at or near {name}.", text.source, span.start, span.end)


def _java_error(error: Exception) -> WriteError | None:
    """Return a WriteError with the condition and message of an exception of Java's that PySpark has
    not converted; None for any other exception."""
    if type(error).__name__ != "Py4JJavaError" or not (match := _JAVA_ERROR.search(str(error))):
        return None
    return WriteError(_without_own_names(match[2]), condition=match[1], sqlstate=match[3])


def needs_conversion(error: PySparkException) -> bool:
    """Whether SQL of acidsql's or its Python task has raised this error of Spark's: then
    ``job_errors`` raises the original."""
    return _job_error(error) is not error


def _job_error(error: PySparkException) -> AcidSqlError | PySparkException:
    """Return the error that our SQL (ConstraintError) or our task (WriteError) raised, found in the
    message of Spark's error; a WriteError if a task failed at a file; Spark's error itself if it is
    another."""
    message = str(error)
    if match := _RAISED_BY_OUR_SQL.search(message):
        return ConstraintError(match[3].replace(BAR, "|"), condition=match[1], sqlstate=match[2])
    if match := _FROM_TASK.search(message):
        return WriteError(match[2], condition=match[1], sqlstate=match[3])
    if match := _OS_ERROR_IN_TASK.search(message):
        return WriteError(f"A task could not read or write a file: {match[1]}.")
    return error
