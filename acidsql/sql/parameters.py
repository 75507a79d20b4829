"""Values of parameters as a person types them, on a command line or in a notebook's cell."""

from __future__ import annotations

import ast
from typing import Any


def python_value(text: str) -> Any:
    """``5`` is a number, ``None`` is NULL, ``2013-01-01`` stays text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
