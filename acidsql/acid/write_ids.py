"""Snapshots: which transactions, and which write ids of a table, are visible.

Source: Hive ``ValidReadTxnList``, ``ValidReaderWriteIdList`` (storage-api) and their text forms.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from acidsql.errors import FormatError

NONE_OPEN = 9223372036854775807  # Long.MAX_VALUE: what Hive writes as minOpen if nothing is open


class Range(Enum):
    """How many ids of a range are valid."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Ids up to ``high_water_mark`` are valid, but for ``open`` and ``aborted`` ones.

    Attributes:
        high_water_mark: The highest id that is known.
        open: Of those, the ones whose fate is open.
        aborted: And those that will never be valid.
        exceptions: Both, ascending. They are sorted once, for each directory asks.
    """

    high_water_mark: int
    open: tuple[int, ...] = ()
    aborted: tuple[int, ...] = ()
    exceptions: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "aborted", tuple(sorted(self.aborted)))
        object.__setattr__(self, "exceptions", tuple(sorted({*self.open, *self.aborted})))

    @property
    def min_open(self) -> int:
        """The lowest open id; NONE_OPEN if none is."""
        return min(self.open, default=NONE_OPEN)

    def is_valid(self, number: int) -> bool:
        """I1: what was written under this id is visible."""
        return number <= self.high_water_mark and not _count(self.exceptions, number, number)

    def is_aborted(self, number: int) -> bool:
        """What was written under this id will never be visible."""
        return self.is_any_aborted(number, number)

    def is_range_valid(self, first: int, last: int) -> Range:
        """How many ids of ``first..last`` (both included) are valid."""
        hidden = _count(self.exceptions, first, last)
        # Exceptions never lie above the mark, so that the two counts do not overlap.
        hidden += max(0, last - max(self.high_water_mark, first - 1))
        if hidden == 0:
            return Range.ALL
        return Range.NONE if hidden > last - first else Range.SOME

    def is_range_aborted(self, first: int, last: int) -> bool:
        """True if every id of ``first..last`` was aborted."""
        return _count(self.aborted, first, last) == last - first + 1

    def is_any_aborted(self, first: int, last: int) -> bool:
        """True if one of ``first..last`` was aborted."""
        return _count(self.aborted, first, last) > 0

    def _text(self) -> str:
        ids = (",".join(map(str, sorted(part))) for part in (self.open, self.aborted))
        return ":".join([str(self.high_water_mark), str(self.min_open), *ids])


@dataclass(frozen=True, slots=True)
class ValidTxnList(_Snapshot):
    """The committed transactions, ``hwm:minOpen:open,…:aborted,…``."""

    @classmethod
    def parse(cls, text: str) -> ValidTxnList:
        """Read Hive's text; runs like ``10-20`` are understood. Raises FormatError."""
        return cls(*_parse(text, text))

    def __str__(self) -> str:
        return self._text()


@dataclass(frozen=True, slots=True)
class ValidWriteIdList(_Snapshot):
    """A table's visible write ids, ``db.table:hwm:minOpen:open,…:aborted,…``."""

    table: str = ""

    @classmethod
    def parse(cls, text: str) -> ValidWriteIdList:
        """Read Hive's text. Raises FormatError."""
        table, colon, rest = text.partition(":")
        if not colon:
            raise FormatError(f"'{text}' is no list of valid write ids", text=text)
        return cls(*_parse(rest, text), table=table)

    def is_base_valid(self, write_id: int) -> bool:
        """A compacted base is usable only if nothing below it was open (``isValidBase``)."""
        return write_id < self.min_open and write_id <= self.high_water_mark

    def __str__(self) -> str:
        return f"{self.table}:{self._text()}"


class CompactorWriteIdList(ValidWriteIdList):
    """What a compaction takes: all that is decided, up to the lowest open write id.

    A directory is taken whole or not at all; events of aborted ones in it are left out one by one.
    Source: Hive ``ValidCompactorWriteIdList``.
    """

    __slots__ = ()

    @classmethod
    def of(cls, seen: ValidWriteIdList) -> CompactorWriteIdList:
        """The list of a compactor whose snapshot is this one."""
        mark = min(seen.high_water_mark, seen.min_open - 1)
        aborted = tuple(number for number in seen.aborted if number <= mark)
        return cls(mark, (), aborted, table=seen.table)

    def is_range_valid(self, first: int, last: int) -> Range:
        """All of a directory, or nothing."""
        return Range.ALL if last <= self.high_water_mark else Range.NONE


# Everything is visible: what ``acidsql.read`` takes where no snapshot is given.
ALL_TXNS = ValidTxnList(NONE_OPEN)


def _count(ids: Sequence[int], first: int, last: int) -> int:
    """How many of these ascending ids are in ``first..last``."""
    return bisect_right(ids, last) - bisect_left(ids, first)


def _parse(rest: str, text: str) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    parts = rest.split(":")
    try:
        if len(parts) != 4:
            raise ValueError(rest)
        return int(parts[0]), _ids(parts[2]), _ids(parts[3])
    except ValueError:
        # An empty text means "everything" to Hive's own parser; here it is an error (Hive's trap).
        raise FormatError(
            f"'{text}' is no snapshot: expected highWaterMark:minOpen:open,…:aborted,…", text=text
        ) from None


def _ids(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        found += range(int(first), int(last) + 1) if dash else [int(first)]
    return tuple(found)
