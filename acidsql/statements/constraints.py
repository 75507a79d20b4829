"""CHECK in CREATE TABLE → the constraints of a table: which conditions a table can have.

A condition decides about one row, in every session and at any time in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table
from acidsql.errors import AnalysisError, SqlError
from acidsql.plan import lower
from acidsql.plan.checks import INVALID, condition_over, quoted_in_backticks
from acidsql.plan.sqltext import Text
from acidsql.sql.conditions import has_subquery
from acidsql.sql.statements import Check
from acidsql.sql.tokens import Span
from acidsql.statements.said import has_double_quoted_names
from acidsql.storage.spark.repeatable import is_deterministic, is_of_session

_NAME_MAX = 128  # characters
_MANY_ROWS = ("INVALID_WHERE_CONDITION", "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE")


def bound_checks(
    spark: SparkSession, table: Table, given: Sequence[Check], text: str
) -> dict[str, str]:
    """The CHECK constraints of a new table, by name.

    Raises:
        AnalysisError: A name is there twice, or a condition cannot be that of a constraint.
    """
    double_quoted = has_double_quoted_names(spark, text)
    found: dict[str, str] = {}
    for check in given:
        name = _name(table, check, [*found, *(one.name for one in given if one.name)], text)
        if name in found:
            raise AnalysisError(
                f"{table.name} would have two constraints '{name}'.",
                text, check.condition.start, check.condition.end,
                condition="CONSTRAINT_ALREADY_EXISTS", sqlstate="42710",
            )  # fmt: skip
        stated = Text(text, quoted_in_backticks(text, check.condition, double_quoted=double_quoted))
        condition = stated.verbatim(check.condition)
        _need_condition(spark, table, condition, check.condition)
        found[name] = condition.sql
    return found


def _name(table: Table, check: Check, taken: Collection[str], text: str) -> str:
    if check.name is None:
        lower_case = {name.lower() for name in taken}
        names = (f"{table.name.name}_chk_{number}" for number in range(1, len(taken) + 2))
        return next(name for name in names if name not in lower_case)
    if len(check.name) > _NAME_MAX:
        raise AnalysisError(
            f"The name of a constraint has at most {_NAME_MAX} characters.",
            text, check.condition.start, check.condition.end,
            condition="INVALID_IDENTIFIER", sqlstate="42602",
        )  # fmt: skip
    return check.name.lower()


def _need_condition(spark: SparkSession, table: Table, condition: Text, place: Span) -> None:
    """Refuse a condition that is not about one row alone, or not the same for all sessions."""
    text = condition.source
    if has_subquery(text, place):
        raise _invalid("A CHECK cannot have a subquery: it decides about one row.", text, place)
    try:
        found = lower.condition(spark, condition_over(table, condition))
    except SqlError as error:
        if error.condition == "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN":
            raise _invalid("A CHECK is a condition: true or false.", text, place) from None
        if error.condition not in _MANY_ROWS and "GENERATOR" not in error.condition:
            raise
        raise _invalid(
            "A CHECK decides about one row, so it has no aggregate, window or generator function.",
            text, place,
        ) from None  # fmt: skip
    _need_fixed(found, text, place)


def _need_fixed(found: DataFrame, text: str, place: Span) -> None:
    ((_, kind),) = lower.fields_of(found)
    if kind.kind != "boolean":
        raise _invalid(f"A CHECK is a condition: true or false, no {kind}.", text, place)
    if not is_deterministic(found):
        raise AnalysisError(
            "A CHECK cannot have a function that gives another value each time.",
            text, place.start, place.end,
            condition="NON_DETERMINISTIC_CHECK_CONSTRAINT", sqlstate="42621",
        )  # fmt: skip
    if is_of_session(found):
        raise _invalid(
            "A CHECK cannot have a function or a variable of this session: others lack it.",
            text, place,
        )  # fmt: skip


def _invalid(message: str, text: str, place: Span) -> AnalysisError:
    return AnalysisError(message, text, place.start, place.end, condition=INVALID, sqlstate="42621")
