"""Converts values of parameters that a person typed on a command line or in a notebook cell."""

from __future__ import annotations

import ast
from typing import Any


def python_value(text: str) -> Any:
    """The value of a Python literal, else the text: ``5`` is a number, ``2013-01-01`` a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
