"""SET and RESET of acidsql's own settings, read raw, as Spark reads its own.

What stands behind SET is no SQL (``SET x=it's``), so nothing is cut into tokens here. Who knows
the settings is told by the caller; every other name is Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from acidsql.errors import SqlSyntaxError, UnsupportedError
from acidsql.sql.statements import ResetOption, SetOption
from acidsql.sql.tokens import Span

IsSetting = Callable[[str], bool]

_NAME = re.compile(r"(SET|RESET)(?=[\s`])\s*(`(?:[^`]|``)+`|[\w.:-]+)\s*", re.IGNORECASE)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`(?:[^`]|``)*`")


def set_or_reset(text: str, whole: Span, is_setting: IsSetting) -> SetOption | ResetOption | None:
    """Reads ``SET name [= value]`` and ``RESET name``; None if it is Spark's.

    Args:
        text: The user's text.
        whole: The statement in it, without ``;``.
        is_setting: Whether a name is a setting of acidsql.
    """
    match = _NAME.match(text, whole.start, whole.end)
    if match is None:
        return None
    word, name, rest = match[1].upper(), match[2], text[match.end() : whole.end]
    # Spark would take `SET autocommit = 0` for a conf that nobody reads.
    if (word, name.upper()) == ("SET", "AUTOCOMMIT") and rest:
        raise UnsupportedError(
            "SET AUTOCOMMIT is not supported: every statement outside BEGIN … COMMIT commits by "
            "itself.",
            text, match.start(2), whole.end,
        )  # fmt: skip
    key = _unquoted(name)
    if not is_setting(key):
        return None
    if word == "RESET" and not rest:
        return ResetOption(key)
    if word == "SET" and (not rest or rest[0] == "="):
        value = _unquoted(rest[1:].strip()) if rest else None
        return SetOption(key, value, Span(match.start(2), whole.end))
    expected = "the end of the statement" if word == "RESET" else "'=' or the end of the statement"
    raise SqlSyntaxError(f"Expected {expected}, found '{rest}'.", text, match.end(), whole.end)


def _unquoted(text: str) -> str:
    """Without the quotes around all of it, if there are any; Spark drops back-quotes only."""
    if _QUOTED.fullmatch(text) is None:
        return text
    return text[1:-1].replace(text[0] * 2, text[0])
