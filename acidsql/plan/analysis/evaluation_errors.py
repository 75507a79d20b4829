"""Turns Spark's errors about a row into errors that show the user's own text.

An expression of a statement may fail for a row, as a division by zero does. Spark's error then
shows the text that acidsql has composed. PySpark makes such errors in one function,
``convert_exception``, and in another one of this name those that a server of Spark Connect tells.
This module wraps both: the errors come from jobs that acidsql starts, and from DataFrames that the
user reads later.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.errors.exceptions import captured

from acidsql.errors import EvaluationError
from acidsql.plan.analysis.composed_texts import users_place
from acidsql.plan.analysis.lower import message_without_sql, needs_conversion, no_log

_OURS = "_acidsql_shows_users_text"
_note_makers: list[Callable[[Any], str | None]] = []


def add_note_maker(make_note: Callable[[Any], str | None]) -> None:
    """Let a function add a note to errors of Spark's, once ``show_users_text`` was called: it gets
    an error, and returns the note, or None. A second call with the same function does nothing."""
    if make_note not in _note_makers:
        _note_makers.append(make_note)


def show_users_text() -> None:
    """Make PySpark raise EvaluationError, from now on, if an expression of a statement of acidsql's
    fails for a row.

    This changes PySpark in this process: its own function and, if a session of Spark Connect has
    been made, that of Spark Connect. A function that was changed by an earlier call stays.
    """
    _wrap_convert_exception(captured)
    # PySpark imports this module together with the first session of Spark Connect.
    if client := sys.modules.get("pyspark.sql.connect.client.core"):
        _wrap_convert_exception(client)


def _wrap_convert_exception(pyspark_module: Any) -> None:
    """Replace a module's ``convert_exception`` by one that returns our error if there is one, and
    PySpark's otherwise. A module without this function, or with ours already, stays as it is."""
    convert: Callable[..., Any] | None = getattr(pyspark_module, "convert_exception", None)
    if convert is None or hasattr(convert, _OURS):
        return

    @wraps(convert)
    def convert_exception(*exception_args: Any, **exception_kwargs: Any) -> Any:
        with no_log():  # PySpark logs the composed text as soon as it makes the error
            error = convert(*exception_args, **exception_kwargs)
        if (evaluation_error := _evaluation_error(error)) is not None:
            return evaluation_error
        _add_notes(error)
        with suppress(Exception):
            error._log_exception()
        return error

    setattr(convert_exception, _OURS, True)
    pyspark_module.convert_exception = convert_exception


def _add_notes(error: Any) -> None:
    """Add the notes of all note makers to an error of Spark's. Their own errors are ignored: the
    error itself must come through."""
    for make_note in _note_makers:
        with suppress(Exception):
            if (note := make_note(error)) is not None:
                error.add_note(note)


def _evaluation_error(error: Any) -> EvaluationError | None:
    """Return the error that shows the user's text, with the condition and SQLSTATE of Spark's; None
    if Spark's error is none of a job, is of acidsql's own SQL or tasks, or has no place in a
    statement."""
    is_of_job = isinstance(error, PySparkException) and not isinstance(error, AnalysisException)
    # The error itself must come through, whatever it lacks.
    with suppress(Exception):
        if not is_of_job or needs_conversion(error):
            return None
        if (place := users_place(error)) is not None:
            return EvaluationError(
                message_without_sql(error),
                place.statement, place.span.start, place.span.end,
                condition=error.getCondition(), sqlstate=error.getSqlState(),
            )  # fmt: skip
    return None
