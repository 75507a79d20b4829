"""The user's input: a statement's text and arguments, and the session confs that they depend on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from acidsql.plan.analysis import lower
from acidsql.plan.standins.query import argument_name
from acidsql.plan.values.assignment import Policy
from acidsql.plan.values.sqltext import Text
from acidsql.sql.parsed.statements import Merge, MultiInsert, SparkStatement, Statement
from acidsql.sql.text.frames import need_frames
from acidsql.sql.text.tokens import SqlText
from acidsql.storage.spark.clocks import StatementTime
from acidsql.storage.spark.session import jvm

Args = Mapping[str, Any] | Sequence[Any] | None


@dataclass(frozen=True, slots=True)
class StatementText:
    """A statement's text and arguments.

    Attributes:
        text: The text, with ``${…}`` variables substituted. It is a ``SqlText``, which is cut into
            tokens once, if ``new_statement_text`` has made this object.
        args: The arguments by name; those by position have the names that replace the ``?``. None:
            there are no arguments.
        double_quoted: A text in double quotes is a name in this session, not a string.
        time: The statement's one time; None: each query reads the clock when it runs.
    """

    text: str
    args: dict[str, Any] | None
    double_quoted: bool
    time: StatementTime | None = field(default_factory=StatementTime)

    @property
    def without_time(self) -> StatementText:
        """A copy whose ``time`` is None, for a statement whose result is a lazy query."""
        return replace(self, time=None)


def new_statement_text(spark: SparkSession, text: str, args: Args) -> StatementText:
    """Make the text and arguments of a new statement: ``${…}`` variables are substituted, and the
    arguments get names.

    Raises:
        AnalysisError: The text names a DataFrame that was not given.
    """
    text = SqlText(jvm.substitute_variables(spark, text))
    statement_text = StatementText(text, named_args(args), has_double_quoted_names(spark, text))
    need_frames(text, statement_text.args or {}, double_quoted=statement_text.double_quoted)
    return statement_text


def query_rows(
    spark: SparkSession, query: Text, views: lower.Views, statement_text: StatementText
) -> DataFrame:
    """Return the lazy rows of a query of a statement. ``views``: DataFrames by name; those that the
    query names serve as its tables.

    Raises:
        SqlError: Spark cannot analyse the query; the error points into the user's text.
    """
    views = lower.views_in_text(query, views)
    return lower.frame(spark, query, views, statement_text.args, statement_text.time)


def statement_name(statement: Statement) -> str:
    """Return the name of a statement, for messages and the history: the words of its class in upper
    case, such as TRUNCATE TABLE for a ``TruncateTable``. A multi-insert is an INSERT; a MERGE, and
    a statement of Spark's, tells its own name."""
    if isinstance(statement, SparkStatement):
        return statement.statement_name
    if isinstance(statement, MultiInsert):
        return "INSERT"
    if isinstance(statement, Merge):
        return statement.keyword
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(statement).__name__).upper()


def named_args(args: Args) -> dict[str, Any] | None:
    """Return the arguments as a new dict by name; None if there are none. Arguments by position
    (for ``?``) get the names that replace the ``?`` in the text."""
    if not args:
        return None
    if isinstance(args, Mapping):
        return dict(args)
    return {argument_name(number): value for number, value in enumerate(args)}


def has_double_quoted_names(spark: SparkSession, text: str) -> bool:
    """Whether the text has a double quote, and the session reads ``"…"`` as a name, because both
    confs for that are on: ANSI mode and ``doubleQuotedIdentifiers``."""
    names = ("spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.ansi.enabled")
    # A second argument of get() would hide Spark's own default, and hence Spark 4's ANSI mode.
    return '"' in text and all(jvm.is_on(spark, name) for name in names)


def is_utc(spark: SparkSession) -> bool:
    """Whether the session's time zone is ``UTC``, ``Etc/UTC`` or ``GMT``. Other names of UTC are
    not recognized."""
    return spark.conf.get("spark.sql.session.timeZone") in ("UTC", "Etc/UTC", "GMT")


def assignment_policy(spark: SparkSession) -> Policy:
    """Return the session's rules of store assignment (``spark.sql.storeAssignmentPolicy``)."""
    return Policy(str(spark.conf.get("spark.sql.storeAssignmentPolicy")).upper())


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether the session tells names apart by case."""
    return jvm.is_on(spark, "spark.sql.caseSensitive")
