"""Converts values of parameters, from the text that a person types and from Python values."""

from __future__ import annotations

import ast
import datetime
import decimal
from collections.abc import Mapping, Sequence
from typing import Any

from acidsql.arguments import is_numpy_scalar, python_scalar
from acidsql.errors import AnalysisError

_VALUES = (str, bytes, int, float, decimal.Decimal, datetime.date, datetime.timedelta, list, dict)
_BIGINT = range(-(2**63), 2**63)
_DECIMAL = range(1 - 10**38, 10**38)
_MISSING = ("NaTType", "NAType")  # pandas' own, which is not asked for


def python_value(text: str) -> Any:
    """Return the value of a Python literal, if a parameter can have a value of this type
    (`is_value`), and else the text itself. ``5`` is a number, ``'a'`` a string without its quotes,
    ``None`` is None; ``2013-01-01`` and the tuple ``(1, 2)`` stay texts."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text  # TypeError: a set or the key of a dict, as in {[]: 1}, cannot be one
    return value if is_value(value) else text


def is_value(value: Any) -> bool:
    """Whether a Python value can be a parameter's value, by its type alone: None, a str, bytes, a
    number, a date or datetime, a timedelta, a list, a dict, a scalar of numpy, or a missing value.
    A tuple and a set cannot. The items of lists and dicts are not checked."""
    is_plain = value is None or isinstance(value, _VALUES)
    return is_plain or is_numpy_scalar(value) or _is_missing(value)


def sql_values(args: Mapping[str, Any] | Sequence[Any] | None) -> Any:
    """Return a statement's arguments, named or by position, in the form that Spark takes, as a new
    dict or list: values of numpy and pandas become Python's, and integers beyond BIGINT become
    DECIMAL. None and an empty collection are returned as they are. Raise AnalysisError for a value
    that no SQL type has."""
    if not args:
        return args
    if isinstance(args, Mapping):
        return {name: sql_value(value) for name, value in args.items()}
    return [sql_value(value) for value in args]


def sql_value(value: Any) -> Any:
    """Return a value in the form that Spark takes; lists and dicts are copied, with their values in
    this form.

    A scalar of numpy's becomes a Python value, a missing value of pandas or numpy becomes None, and
    an integer beyond BIGINT becomes a DECIMAL. Any other value, a tuple too, is returned as it is.

    Raises:
        AnalysisError: INVALID_SQL_ARG: no SQL type has such a value: an integer of more than 38
            digits, or a decimal that is not finite.
    """
    if isinstance(value, list):
        return [sql_value(item) for item in value]
    if isinstance(value, dict):
        return {key: sql_value(item) for key, item in value.items()}
    if _is_missing(value):
        return None
    value = python_scalar(value) if is_numpy_scalar(value) else value
    if isinstance(value, int) and value not in _BIGINT:
        if value not in _DECIMAL:
            raise _invalid_argument_error(value)
        return decimal.Decimal(value)
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        raise _invalid_argument_error(value)
    return value


def _is_missing(value: Any) -> bool:
    """Whether a value is NaT or NA of pandas, or NaT of numpy. NaN is not missing."""
    return type(value).__name__ in _MISSING or (is_numpy_scalar(value) and str(value) == "NaT")


def _invalid_argument_error(value: Any) -> AnalysisError:
    """Return the AnalysisError INVALID_SQL_ARG for a parameter's value that no SQL type has."""
    return AnalysisError(
        f"No type of SQL's has the value {value}, which a parameter was given.",
        condition="INVALID_SQL_ARG",
        sqlstate="42K08",
    )
