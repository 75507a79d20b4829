"""The time zones that files name, with Java's rules, because Java wrote most of these files.

Java has two sets of rules. Before 1900, ``TimeZone`` has one offset for a zone: that of the zone's
present standard time. ORC files follow these rules. ``java.time`` knows a zone's local mean time
before the zone's first standard time. Parquet files follow those. This module runs in workers.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from acidsql.errors import FormatError

Int64s = npt.NDArray[np.int64]

_DAY = 86_400  # seconds
_KNOWN_FROM = -2_208_988_800  # 1900-01-01, in seconds since 1970
_MEAN_TIME = -5_364_662_400  # 1800-01-01: no zone had a standard time
_LAST = 253_402_300_799 - 2 * _DAY  # almost the last instant that Python has
_BLOCK = 25  # bits of seconds: about a year; a table of offsets is made for a block when needed
_EPOCH = datetime(2015, 1, 1)
_FIXED = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d{1,2}):?(\d\d)?(?::?(\d\d))?")
_NONE = -(2**62)  # no block
_NO_OFFSET = {"", "UTC", "GMT", "Z", "Etc/UTC", "Etc/GMT", "UCT", "Zulu"}


class Zone:
    """A time zone.

    Attributes:
        base: The instant 2015-01-01 00:00 in this zone, in seconds since 1970. ORC counts the
            seconds of timestamps from there.
    """

    def __init__(self, rules: tzinfo) -> None:
        self._rules, self._is_fixed = rules, isinstance(rules, timezone)
        self._early = _standard_offset(rules)
        self.base = int(_EPOCH.replace(tzinfo=rules).timestamp())

    def offsets(self, seconds: Int64s, *, has_mean_time: bool = False) -> Int64s:
        """Return the zone's offset from UTC, in seconds, at each of these instants (seconds since
        1970). After the year 9999 it is that of the year's end. Before 1900 it is always that of
        the zone's present standard time, as in Java's ``TimeZone``.

        ``has_mean_time``: the zone has its own rules before 1900, too, as in ``java.time``: at
        first its local mean time.
        """
        first = _MEAN_TIME if has_mean_time else _KNOWN_FROM
        early = _offset(self._rules, first) if has_mean_time else self._early
        offsets_found = np.full(len(seconds), early, np.int64)
        if self._is_fixed:
            return offsets_found
        seconds = np.minimum(seconds, _LAST)
        blocks = np.where(seconds < first, _NONE, seconds >> _BLOCK)
        for block in np.unique(blocks).tolist():
            if block != _NONE:
                starts, offsets = _offset_changes(self._rules, block, first)
                in_block = blocks == block
                offsets_found[in_block] = offsets[
                    np.searchsorted(starts, seconds[in_block], side="right")
                ]
        return offsets_found


@lru_cache(maxsize=64)
def zone_of(name: str) -> Zone:
    """Return the zone with one of Java's names: ``US/Pacific``, ``GMT+02:00``, ``+2``; "" is UTC.

    Raises:
        FormatError: Python does not know the zone.
    """
    if name in _NO_OFFSET:
        return Zone(UTC)
    if fixed_offset := _FIXED.fullmatch(name):
        hours, minutes, seconds = (int(part or 0) for part in fixed_offset.groups()[1:])
        size = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return Zone(timezone(-size if fixed_offset[1] == "-" else size))
    try:
        return Zone(_rules(name))
    except (KeyError, ValueError, OSError) as error:
        raise FormatError(
            f"its timestamps were written in the time zone '{name}', which Python does not know "
            "here: tzdata may be missing or too old"
        ) from error


def _rules(name: str) -> ZoneInfo:
    """Return the zone's rules, from the package tzdata if possible: like Java, it has the rules
    that IANA publishes. Operating systems may change them. Raises KeyError or ValueError for an
    unknown name.
    """
    zone = ZoneInfo(name)  # raises if the name is not valid
    try:
        with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
            return ZoneInfo.from_file(file, key=name)
    except (ImportError, OSError):
        return zone


@lru_cache(maxsize=4096)
def _offset_changes(zone: tzinfo, block: int, first: int) -> tuple[Int64s, Int64s]:
    """Return the instants in a block of time at which the offset changes, and the offsets before,
    between and after them (one more), all in seconds. ``block``: the seconds since 1970 without
    their last 25 bits, about a year. ``first``: the part of the block before it is left out.
    """
    begin = max(block << _BLOCK, first)
    starts, offsets = list[int](), [_offset(zone, begin)]
    # No zone has changed its clocks twice in a day.
    for day in range(begin, (block + 1) << _BLOCK, _DAY):
        if _offset(zone, day + _DAY) != offsets[-1]:
            starts.append(_find_change(zone, day, day + _DAY))
            offsets.append(_offset(zone, starts[-1]))
    return np.array(starts, np.int64), np.array(offsets, np.int64)


def _find_change(zone: tzinfo, low: int, high: int) -> int:
    """Return the first second with the new offset, between ``low`` (old offset) and ``high`` (new
    one).
    """
    old = _offset(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(zone, middle) == old else (low, middle)
    return high


def _standard_offset(zone: tzinfo) -> int:
    """Return the offset, in seconds, of the present standard time: the least one of all weeks of
    2037.
    """
    year = int(datetime(2037, 1, 1, tzinfo=UTC).timestamp())
    return min(_offset(zone, year + week * 7 * _DAY) for week in range(53))


def _offset(zone: tzinfo, seconds: int) -> int:
    """Return the zone's offset from UTC, in seconds, at an instant (seconds since 1970)."""
    offset = datetime.fromtimestamp(min(seconds, _LAST), zone).utcoffset()
    return (offset or timedelta()) // timedelta(seconds=1)
