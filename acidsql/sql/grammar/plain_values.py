"""Reads ``INSERT INTO t VALUES`` of plain literals by regular expressions, without tokens.

This is fast for long VALUES lists. Only literals that mean the same in every Spark session are
known. If the statement has any other value, a comment, an escape or another clause, the result is
None. Then the grammar reads the statement, and only the grammar reports errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from acidsql.sql.parsed.parts import Literals, Name
from acidsql.sql.parsed.statements import Insert
from acidsql.sql.text.tokens import Span, words

_WIDEST = 300  # columns; the pattern of a row has a group for each

_S = r"[ \t\r\n]*"
_GAP = r"[ \t\r\n]+"
# Possessive, so that `tVALUES` is never the name `t` and the word VALUES.
_NAME = r"(?:[A-Za-z_][A-Za-z0-9_]*+|`[^`]+`)"
_HEAD = re.compile(
    rf"{_S}INSERT{_GAP}INTO{_GAP}(?:TABLE{_GAP})?(?P<target>{_NAME}(?:\.{_NAME})?){_S}"
    rf"(?:\((?P<columns>{_S}{_NAME}{_S}(?:,{_S}{_NAME}{_S})*)\){_S})?VALUES{_S}(?=\()",
    re.IGNORECASE | re.ASCII,
)
_PART = re.compile(_NAME, re.ASCII)
# Words that may be keywords at the place of the target's name.
_NO_TARGETS = words(
    "TABLE VALUES SELECT WITH FROM MAP REDUCE PARTITION BY REPLACE IF IDENTIFIER DIRECTORY LOCAL "
    "INTO OVERWRITE OPTIONS USING AS"
)

# A string has no escapes, no quotes, no control characters and no surrogates. A number has no
# exponent, and no suffix except D.
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_NUMBER = r"-?[0-9]{1,38}(?:\.[0-9]{1,38})?"
_LITERAL = (
    r"('[^'\\\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]*'"
    rf"|{_NUMBER}[dD]?"
    rf"|(?i:CAST){_S}\({_S}{_NUMBER}{_GAP}(?i:AS){_GAP}"
    rf"(?i:DECIMAL){_S}\({_S}[0-9]{{1,2}}{_S},{_S}[0-9]{{1,2}}{_S}\){_S}\)"
    r"|(?i:NULL|TRUE|FALSE)"
    rf"|(?i:DATE){_S}'{_DAY}'"
    rf"|(?i:TIMESTAMP(?:_NTZ)?){_S}'{_DAY} {_TIME}')"
)
_FIRST_ROW = re.compile(rf"\({_S}{_LITERAL}(?:{_S},{_S}{_LITERAL})*{_S}\)", re.ASCII)
_VALUE = re.compile(_LITERAL, re.ASCII)
_ZONED = re.compile(rf"TIMESTAMP{_S}'", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class LiteralRules:
    """The facts about a session that are needed to read plain literals.

    Attributes:
        rows_max: The most rows that the driver writes without a job.
        is_utc: Whether the session's time zone is UTC. In other time zones TIMESTAMP'…' cannot
            name every wall clock. Called only if the statement has a TIMESTAMP'…'.
    """

    rows_max: int
    is_utc: Callable[[], bool]


def plain_insert(text: str, plain: LiteralRules) -> Insert | None:
    """Read ``INSERT INTO t [(columns)] VALUES (literal, …), …`` by regular expressions, without
    cutting it into tokens. The literals stay texts, one tuple for each column.

    Return None for any other statement: also for too many rows or columns, rows of different
    length, a variable ``${…}``, a reserved name (``__acidsql_``), a target with a keyword's name as
    TABLE, and for TIMESTAMP'…' unless the session's zone is UTC.
    """
    head = _HEAD.match(text)
    # Not if the text has a variable, which may still be substituted, or a reserved name, which is
    # refused after the grammar has read the statement.
    if head is None or "${" in text or "__acidsql_" in text.lower():
        return None
    target = _split_name(head["target"], head.start("target"))
    if any(part.upper() in _NO_TARGETS for part in target.parts):
        return None
    columns = None if head["columns"] is None else _columns(head["columns"], head.start("columns"))
    values = _literals_by_column(text, head.end(), plain.rows_max)
    if values is None or (_ZONED.search(text) and not plain.is_utc()):
        return None
    return Insert(target, Literals(Span(head.end(), len(text)), values), columns)


def _split_name(text: str, start: int) -> Name:
    """Return a name, with or without a database, unquoted. ``start``: its offset in the
    statement."""
    parts = tuple(part.strip("`") for part in _PART.findall(text))
    return Name(parts, Span(start, start + len(text)))


def _columns(text: str, start: int) -> tuple[Name, ...]:
    """Return the names in a column list, unquoted. ``start``: the list's offset in the
    statement."""
    return tuple(_split_name(match[0], start + match.start()) for match in _PART.finditer(text))


def _literals_by_column(text: str, at: int, rows_max: int) -> tuple[tuple[str, ...], ...] | None:
    """Return the literals from ``at`` to the end of the text, as they are, one tuple for each
    column; None if the text has other forms, rows of different length, more than ``rows_max`` rows,
    or more than 300 columns."""
    first = _FIRST_ROW.match(text, at)
    width = 0 if first is None else len(_VALUE.findall(first[0]))
    if not 0 < width <= _WIDEST:
        return None
    pattern = _row_pattern(width)
    rows: list[tuple[str, ...]] = []
    while len(rows) < rows_max:
        row = pattern.match(text, at)
        if row is None:
            return None
        rows.append(row.groups())
        if row[width + 1] != ",":
            return tuple(zip(*rows, strict=True))[:-1]
        at = row.end()
    return None


@lru_cache(maxsize=32)
def _row_pattern(width: int) -> re.Pattern[str]:
    """Return the pattern of a row in brackets of ``width`` literals, and of the text behind it. Its
    groups are the literals, then "," before another row, or the text up to the end: blanks and
    perhaps a ``;``."""
    values = f"{_S},{_S}".join([_LITERAL] * width)
    return re.compile(rf"\({_S}{values}{_S}\){_S}(,|;?{_S}\Z){_S}", re.ASCII)
