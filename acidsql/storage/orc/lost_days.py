"""The days that Spark's ORC reader shows as other days, and the files that may hold such days.

The reader takes the days of a *proleptic* file through Java's hybrid calendar, which goes from
1582-10-04 to 1582-10-15 and has no years before 1. A file that declares the hybrid calendar, or
none, has days of that calendar already.

We never write such days (``calendar_gap``), so only proleptic files of other writers may hold them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from acidsql.errors import FormatError
from acidsql.storage.orc.encoding.footer import CALENDAR_PROLEPTIC, Footer
from acidsql.storage.orc.encoding.protobuf import as_bytes, as_int, decode_fields

_EPOCH = date(1970, 1, 1).toordinal()
FIRST_DAY = date(1, 1, 1).toordinal() - _EPOCH  # days since 1970-01-01, as Arrow has them
LOST_FROM = date(1582, 10, 5).toordinal() - _EPOCH
LOST_TO = date(1582, 10, 14).toordinal() - _EPOCH

_CPP = 1  # ORC's C++ writer: it declares no calendar. Our footers do (``complete_footer``).
_MILLIS_A_DAY = 86_400_000
_VALUES, _DATES, _TIMESTAMPS = 1, 7, 9  # fields of ColumnStatistics
_MIN, _MAX, _MIN_UTC, _MAX_UTC = 1, 2, 3, 4  # fields of DateStatistics, TimestampStatistics


def is_foreign_proleptic(footer: Footer) -> bool:
    """Whether a file declares the proleptic calendar, and another writer than ours (ORC's C++
    writer) has written it.
    """
    return footer.calendar == CALENDAR_PROLEPTIC and footer.writer != _CPP


def may_hold_lost_days(footer: Footer) -> bool:
    """Whether a file may hold a day that Spark's ORC reader shows as another, as far as the
    statistics of its columns tell. True if they cannot be read; False for a file of ours, or one
    that declares the hybrid calendar or none.
    """
    if not is_foreign_proleptic(footer):
        return False
    try:
        return any(_may_be_lost(*days) for days in _day_ranges(footer))
    except FormatError:
        return True  # statistics that cannot be read exclude nothing


def _may_be_lost(first: int, last: int) -> bool:
    """Whether the days from ``first`` to ``last`` (since 1970) include a day that Spark's reader
    shows as another.
    """
    return first < FIRST_DAY or (first <= LOST_TO and last >= LOST_FROM)


def _day_ranges(footer: Footer) -> Iterator[tuple[int, int]]:
    """Yield the first and the last day (since 1970) of each DATE or TIMESTAMP column, nested ones
    too, that has values; of a TIMESTAMP see ``_timestamp_day_bounds``. Raises FormatError if such a
    column has no statistics, or no bounds in them.
    """
    for number, node in enumerate(footer.types):
        if node.kind not in ("date", "timestamp"):
            continue
        if number >= len(footer.statistics):
            raise FormatError("the ORC footer has no statistics of a column")
        statistics = dict(decode_fields(footer.statistics[number]))
        if statistics.get(_VALUES) == 0:
            continue
        yield _date_bounds(statistics) if node.kind == "date" else _timestamp_day_bounds(statistics)


def _date_bounds(statistics: dict[int, int | bytes]) -> tuple[int, int]:
    """Return the first and last day of a DATE column. Raises FormatError without bounds."""
    days = dict(decode_fields(as_bytes(statistics.get(_DATES))))
    return _zigzag_decoded(days, _MIN), _zigzag_decoded(days, _MAX)


def _timestamp_day_bounds(statistics: dict[int, int | bytes]) -> tuple[int, int]:
    """Return the day before the first and the day after the last day of a TIMESTAMP column: old
    writers counted in their own time zone. Bounds in UTC are taken if there are any. Raises
    FormatError without bounds.
    """
    millis = dict(decode_fields(as_bytes(statistics.get(_TIMESTAMPS))))
    first, last = (_MIN_UTC, _MAX_UTC) if _MIN_UTC in millis else (_MIN, _MAX)
    days = [_zigzag_decoded(millis, number) // _MILLIS_A_DAY for number in (first, last)]
    return days[0] - 1, days[1] + 1


def _zigzag_decoded(fields: dict[int, int | bytes], number: int) -> int:
    """Return the field with a number, decoded from zigzag form. Raises FormatError if it is
    missing.
    """
    if number not in fields:
        raise FormatError("the ORC footer has no bounds of a column")
    value = as_int(fields[number])
    return (value >> 1) ^ -(value & 1)
