"""Parses ``VERSION AS OF n`` and ``TIMESTAMP AS OF e`` after the name of a table.

The clause is Spark's: ``FOR`` may stand before it, and SYSTEM_VERSION and SYSTEM_TIME are the SQL
standard's words for the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.errors import SqlSyntaxError
from acidsql.sql.text.tokens import Span, TokenKind, tokenize


@dataclass(frozen=True, slots=True)
class AsOf:
    """The clause; one attribute is given.

    Attributes:
        version: The number after VERSION AS OF; None for TIMESTAMP AS OF.
        timestamp: The place of the expression after TIMESTAMP AS OF; None for VERSION AS OF.
    """

    version: int | None = None
    timestamp: Span | None = None


def parse_time_travel(text: str, span: Span) -> AsOf:
    """Parse ``[FOR] VERSION AS OF n`` or ``TIMESTAMP AS OF e`` at a place that a scan has found.
    The version may be in quotes; the timestamp stays a place in the text.

    Raises:
        SqlSyntaxError: The version is no whole number, or the value is missing.
    """
    tokens = tokenize(text, span)
    words = [token.upper for token in tokens]
    value_index = words.index("OF") + 1
    value_tokens = tokens[value_index:]
    if not value_tokens:
        raise SqlSyntaxError("Expected a value after AS OF.", text, span.start, span.end)
    inside = Span(value_tokens[0].start, value_tokens[-1].end)
    if not words[value_index - 3].endswith("VERSION"):
        return AsOf(timestamp=inside)
    (value, *more) = value_tokens
    number = value.value if value.kind in (TokenKind.NUMBER, TokenKind.STRING) else ""
    if more or not (number.isascii() and number.isdigit()):
        raise SqlSyntaxError(
            "Expected the number of a version: a write id of the table, as DESCRIBE HISTORY shows "
            "it.",
            text, inside.start, inside.end,
        )  # fmt: skip
    return AsOf(version=int(number))
