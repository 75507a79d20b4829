"""The values of partitions without Spark, as a query shows them.

They are what Spark's ``try_cast`` gives for the text in a directory's name. acidsql's own texts are
canonical (``partition_names``), those of other programs need not be.
"""

from __future__ import annotations

import datetime as dt
import re

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_BLANKS = "".join(map(chr, [*range(33), 127]))  # what Spark's casts take off a text
_NUMBER = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
_DATE = re.compile(
    r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL
)
_EPOCH = dt.date(1970, 1, 1)
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097  # the calendar repeats itself


def partition_value(text: str | None, kind: str) -> str | int | None:
    """Return a partition's value; None (NULL) if the text is no value of the type, or out of its
    range. White space around numbers and dates is ignored.

    Args:
        text: The text in the directory's name; None for the default partition.
        kind: ``string``, ``date`` or an integer type; no other type is allowed.

    Returns:
        A string as it is, an integer as int. A date as the number of its days since 1970, because
        Python's dates end in the year 9999.
    """
    if text is None or kind == "string":
        return text
    text = text.strip(_BLANKS)
    return _days_since_1970(text) if kind == "date" else _number(text, _BITS[kind])


def _number(text: str, bits: int) -> int | None:
    match = _NUMBER.fullmatch(text)
    return None if match is None else _in_range(int("".join(match.groups())), bits)


def _days_since_1970(text: str) -> int | None:
    """Return the days from 1970-01-01 to a date, as Spark's cast reads it (2024, 2024-1,
    2024-01-31T…); None if the text is no date or the number does not fit 32 bits."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    sign, year, month, day = match.groups()
    cycles, year_of_cycle = divmod(int(f"{sign}{year}"), _CYCLE_YEARS)
    try:
        # The same day of the cycle from the year 2000 on, which Python knows.
        date = dt.date(2000 + year_of_cycle, int(month or 1), int(day or 1))
    except ValueError:
        return None
    return _in_range((date - _EPOCH).days + (cycles - 5) * _CYCLE_DAYS, _BITS["int"])


def _in_range(number: int, bits: int) -> int | None:
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None
