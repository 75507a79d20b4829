"""Advice in the errors of composed statements: how to write a text or a date as SQL.

``{"city": "Rome"}`` is a frequent mistake: in SQL ``Rome`` is a column.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import Column

from acidsql.errors import AnalysisError, SqlError
from acidsql.storage.columns import literal

_DATE = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})\s*")
_NAME = re.compile(r"\w+")
_COMPARED = re.compile(r"(?:[=<>,]|\blike|\bin\s*\()\s*$", re.IGNORECASE)
_QUOTES_AND_BRACKETS = set("'\"`()[]")
_MISREAD = ("UNRESOLVED_COLUMN", "PARSE_SYNTAX_ERROR", "INVALID_IDENTIFIER")


@contextmanager
def advising_quotes(
    values: Iterable[str | Column], conditions: Iterable[str | Column | None] = ()
) -> Iterator[None]:
    """If an SqlError of the block may come from a text that lacks quotes, raise an error of the
    same class, with the same place and condition, whose message ends with advice. Other errors
    pass.

    Args:
        values: The values that the statement assigns. The advice shows how to pass the whole text.
        conditions: The statement's conditions. The advice is about an unknown name behind a
            comparison.
    """
    try:
        yield
    except SqlError as error:
        value_texts = [value for value in values if isinstance(value, str)]
        condition_texts = [text for text in conditions if isinstance(text, str)]
        advice = _value_advice(error, value_texts) or _condition_advice(error, condition_texts)
        if advice is None:
            raise
        raise type(error)(
            f"{error.words} {advice}", error.text, error.start, error.end,
            condition=error.condition, sqlstate=error.sqlstate, **error.parameters,
        ) from error.__cause__  # fmt: skip


def refuse_bare_date(value: str) -> None:
    """Raise AnalysisError if a value is a date without quotes, such as ``2024-01-31``: Spark would
    subtract the numbers, and a column of texts would get the difference. Numbers that are no day
    of a calendar, as in ``1000-20-40``, are a subtraction."""
    if (match := _DATE.fullmatch(value)) and _is_day(*map(int, match.groups())):
        date = value.strip()
        raise AnalysisError(
            f"A value is SQL, and this is a subtraction of numbers. The date is DATE'{date}', the "
            f"text is F.lit('{date}') or \"'{date}'\". For the number, write brackets: ({date}).",
            value, 0, len(value), condition="DATE_WITHOUT_QUOTES",
        )  # fmt: skip


def _is_day(year: int, month: int, day: int) -> bool:
    """Whether there is such a day."""
    with suppress(ValueError):
        return bool(datetime.date(year, month, day))
    return False


def _value_advice(error: SqlError, values: Iterable[str]) -> str | None:
    """Return the advice how to pass the first value that an error is about; None if there is
    none."""
    value = next((text for text in values if _is_misread_text(error, text)), None)
    if value is None:
        return None
    sql = literal(value)
    in_quotes = f", or {sql!r}" if sql == f"'{value}'" else ""
    return f"A value is SQL: the text is F.lit({value!r}){in_quotes}."


def _is_misread_text(error: SqlError, value: str) -> bool:
    """Whether an error is about a value that is perhaps no SQL, but a text: the value cannot be cut
    into tokens, has a name or a syntax that Spark does not know, or calls an unknown function with
    a blank before its bracket, as in ``Rome (IT)``."""
    if error.text == value:
        return error.condition.startswith("PARSE_SYNTAX_ERROR")
    if error.text is None or not _is_inside(error, error.text.find(f"({value})"), value):
        return False
    if error.condition.startswith("UNRESOLVED_ROUTINE"):
        return " (" in value
    return error.condition.startswith(_MISREAD) and not set(value) & _QUOTES_AND_BRACKETS


def _condition_advice(error: SqlError, conditions: Iterable[str]) -> str | None:
    """Return the advice for an unknown name behind a comparison in one of the conditions; None for
    any other error."""
    if error.text is None or not error.condition.startswith("UNRESOLVED_COLUMN"):
        return None
    name, before = error.text[error.start : error.end], error.text[: error.start]
    if not _NAME.fullmatch(name) or not _COMPARED.search(before):
        return None
    if any(_is_inside(error, error.text.find(f"({text})"), text) for text in conditions):
        return f"If {name} is a text, write '{name}'."
    return None


def _is_inside(error: SqlError, start: int, part: str) -> bool:
    """Whether an error's place is in a part of the statement that stands in brackets; ``start`` is
    the place of the bracket, -1 if there is no such part."""
    return 0 <= start <= error.start <= start + len(part) + 1
