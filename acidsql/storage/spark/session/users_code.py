"""Calls functions of the user's from acidsql's own code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def call_users_function(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Return what a function of the user's returns.

    Calls of Spark's that this function makes are the user's, although code of acidsql's is below
    them on Python's stack: ``api/extension/doors.py`` looks for this call.
    """
    return function(*arguments)
