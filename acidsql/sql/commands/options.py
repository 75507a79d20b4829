"""Parses SET and RESET of acidsql's own settings from the raw text, as Spark does for its confs.

The text after SET is not SQL (``SET x=it's``), so it is not cut into tokens. The caller knows the
names of the settings. SET of any other name is Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from acidsql.errors import SettingError, SqlSyntaxError, UnsupportedError
from acidsql.sql.parsed.statements import ResetOption, SetOption
from acidsql.sql.text.tokens import Span

# The setting that a name means; None: none of acidsql's. SettingError: a misspelt one.
SettingName = Callable[[str], str | None]

_NAME = re.compile(r"(SET|RESET)(?=[\s`])\s*(`(?:[^`]|``)+`|[\w.:-]+)\s*", re.IGNORECASE)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`(?:[^`]|``)*`")


def parse_set_or_reset(
    text: str, statement_span: Span, setting_name: SettingName
) -> SetOption | ResetOption | None:
    """Parse ``SET name [= value]`` or ``RESET name``; return None if the name is no setting of
    acidsql's, because Spark runs the statement then. Quotes around the whole name or the whole
    value are removed; the value is None without ``=``.

    Args:
        text: The user's text.
        statement_span: The statement's place in the text, without ``;``.
        setting_name: Returns the setting that a name means.

    Raises:
        SqlSyntaxError: The text after a setting's name is not ``= value``.
        SettingError: UNKNOWN_SETTING: The name is acidsql's, and there is no such setting.
        UnsupportedError: The statement is SET AUTOCOMMIT with anything behind it.
    """
    match = _NAME.match(text, statement_span.start, statement_span.end)
    if match is None:
        return None
    word, name, rest = match[1].upper(), match[2], text[match.end() : statement_span.end]
    # For Spark `SET autocommit = 0` would set a conf without any effect.
    if (word, name.upper()) == ("SET", "AUTOCOMMIT") and rest:
        raise UnsupportedError(
            "SET AUTOCOMMIT is not supported: every statement outside BEGIN … COMMIT commits by "
            "itself.",
            text, match.start(2), statement_span.end,
        )  # fmt: skip
    try:
        key = setting_name(_unquoted(name))
    except SettingError as error:
        raise error.at(text, match.start(2), match.end(2)) from None
    if key is None:
        return None
    if word == "RESET" and not rest:
        return ResetOption(key)
    if word == "SET" and (not rest or rest[0] == "="):
        value = _unquoted(rest[1:].strip()) if rest else None
        return SetOption(key, value, Span(match.start(2), statement_span.end))
    expected = "the end of the statement" if word == "RESET" else "'=' or the end of the statement"
    raise SqlSyntaxError(
        f"Expected {expected}, found '{rest}'.", text, match.end(), statement_span.end
    )


def _unquoted(text: str) -> str:
    """Return the text without the quotes around all of it (``'``, ``"`` or back-quotes); doubled
    quotes inside become one. Spark removes only back-quotes here."""
    if _QUOTED.fullmatch(text) is None:
        return text
    return text[1:-1].replace(text[0] * 2, text[0])
