"""Snapshots: the lists of visible transactions, and of a table's visible write ids.

Source: Hive ``ValidReadTxnList``, ``ValidReaderWriteIdList`` (storage-api) and their text forms.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Self

from acidsql.errors import FormatError

NONE_OPEN = 9223372036854775807  # Long.MAX_VALUE: Hive's minOpen if nothing is open


class Range(Enum):
    """How many ids of a range are valid."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class _ValidIdList:
    """All ids up to ``high_water_mark`` are valid, except ``open`` and ``aborted`` ones.

    Attributes:
        high_water_mark: The highest id that the snapshot knows.
        open: The open ids. Each may become valid or aborted in a later snapshot.
        aborted: The ids that will never be valid.
        exceptions: Open and aborted ids, ascending. They are sorted only once, because each
            directory asks for them.
    """

    high_water_mark: int
    open: tuple[int, ...] = ()
    aborted: tuple[int, ...] = ()
    exceptions: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sort ``aborted``, and compute ``exceptions``."""
        object.__setattr__(self, "aborted", tuple(sorted(self.aborted)))
        object.__setattr__(self, "exceptions", tuple(sorted({*self.open, *self.aborted})))

    @property
    def min_open(self) -> int:
        """The lowest open id; NONE_OPEN if no id is open."""
        return min(self.open, default=NONE_OPEN)

    @property
    def is_any_valid(self) -> bool:
        """False if no id is valid: then the snapshot sees no event."""
        return len(self.exceptions) < self.high_water_mark

    def is_valid(self, number: int) -> bool:
        """I1: True if events of this id are visible."""
        return number <= self.high_water_mark and not _count_in_range(
            self.exceptions, number, number
        )

    def is_aborted(self, number: int) -> bool:
        """True if events of this id will never be visible."""
        return self.is_any_aborted(number, number)

    def range_validity(self, first: int, last: int) -> Range:
        """Return how many ids of ``first..last`` (both included) are valid: none, some or all."""
        hidden_count = _count_in_range(self.exceptions, first, last)
        # No exception lies above the mark, so the two counts do not overlap.
        hidden_count += max(0, last - max(self.high_water_mark, first - 1))
        if hidden_count == 0:
            return Range.ALL
        return Range.NONE if hidden_count > last - first else Range.SOME

    def is_range_aborted(self, first: int, last: int) -> bool:
        """True if every id of ``first..last`` was aborted."""
        return _count_in_range(self.aborted, first, last) == last - first + 1

    def is_any_aborted(self, first: int, last: int) -> bool:
        """True if one of ``first..last`` was aborted."""
        return _count_in_range(self.aborted, first, last) > 0

    def is_any_open(self, first: int, last: int) -> bool:
        """True if one of ``first..last`` is open, or begun after the snapshot."""
        return last > self.high_water_mark or any(first <= number <= last for number in self.open)

    def hide(self, numbers: Iterable[int]) -> Self:
        """Return a copy that takes these ids for open ones, too."""
        return replace(self, open=tuple(sorted({*self.open, *numbers})))

    def _text(self) -> str:
        """Return Hive's text ``hwm:minOpen:open,…:aborted,…``."""
        ids = (",".join(map(str, sorted(part))) for part in (self.open, self.aborted))
        return ":".join([str(self.high_water_mark), str(self.min_open), *ids])


@dataclass(frozen=True, slots=True)
class ValidTxnList(_ValidIdList):
    """The committed transactions, ``hwm:minOpen:open,…:aborted,…``."""

    @classmethod
    def parse(cls, text: str) -> ValidTxnList:
        """Parse Hive's text; it may have ranges like ``10-20``. Raises FormatError."""
        return cls(*_parse_fields(text, text))

    def __str__(self) -> str:
        return self._text()


@dataclass(frozen=True, slots=True)
class ValidWriteIdList(_ValidIdList):
    """A table's visible write ids, ``db.table:hwm:minOpen:open,…:aborted,…``."""

    table: str = ""

    @classmethod
    def parse(cls, text: str) -> ValidWriteIdList:
        """Parse Hive's text ``db.table:hwm:minOpen:open,…:aborted,…``. Raises FormatError."""
        table, colon, rest = text.partition(":")
        if not colon:
            raise FormatError(f"'{text}' is no list of valid write ids", text=text)
        return cls(*_parse_fields(rest, text), table=table)

    def is_base_valid(self, write_id: int) -> bool:
        """True if a compacted base of this id is usable: the snapshot knows the id, and no id up
        to it is open (``isValidBase``)."""
        return write_id < self.min_open and write_id <= self.high_water_mark

    @property
    def complete_up_to(self) -> int:
        """The highest id for which neither it nor a lower id is open. It and lower ids may be
        aborted."""
        return min(self.high_water_mark, self.min_open - 1)

    def up_to(self, write_id: int) -> ValidWriteIdList:
        """Return a copy whose high-water mark is at most ``write_id``, so that no id above is
        valid. The open and the aborted ids above the mark are left out."""
        mark = min(write_id, self.high_water_mark)
        parts = (self.open, self.aborted)
        open_ids, aborted = (tuple(number for number in part if number <= mark) for part in parts)
        return ValidWriteIdList(mark, open_ids, aborted, table=self.table)

    def without_ids(self, later_ids: Collection[int]) -> ValidWriteIdList:
        """Return a copy that hides some committed ids, as if they were still open. The high-water
        mark is lowered to the highest id that is visible then, or to 0; ids above are dropped."""
        mark = self.high_water_mark
        while mark in later_ids or (mark > 0 and not self.is_valid(mark)):
            mark -= 1
        return self.up_to(mark).hide(number for number in later_ids if number < mark)

    def sql(self, number_sql: str) -> str:
        """Return an SQL condition, without brackets around it, that a write id is visible.
        ``number_sql``: SQL of the write id."""
        visible = f"{number_sql} <= {self.high_water_mark}L"
        if self.exceptions:
            hidden_ids = ", ".join(f"{write_id}L" for write_id in self.exceptions)
            visible += f" AND {number_sql} NOT IN ({hidden_ids})"
        return visible

    def intersect(self, other_list: ValidWriteIdList) -> ValidWriteIdList:
        """Return the list of the ids that are visible in both lists, up to the lower of the two
        high-water marks. Ids that this list hides stay open or aborted; an id that only the other
        list hides is open in the result. The table is this list's."""
        common_range = self.up_to(other_list.high_water_mark)
        return common_range.hide(
            number for number in other_list.exceptions if common_range.is_valid(number)
        )

    def __str__(self) -> str:
        return f"{self.table}:{self._text()}"


@dataclass(frozen=True, slots=True)
class NewWriteIds:
    """The write ids that are visible after a change, and were not visible before.

    Attributes:
        before: What an older snapshot sees.
        after: What a newer snapshot sees, which sees all that the older one does.
    """

    before: ValidWriteIdList
    after: ValidWriteIdList

    def has_any(self, first: int, last: int) -> bool:
        """Whether the newer snapshot sees one of ``first..last`` (both included) that the older one
        does not see."""
        first_above = max(first, self.before.high_water_mark + 1)
        if first_above <= last and self.after.range_validity(first_above, last) is not Range.NONE:
            return True
        hidden_ids = self.before.exceptions
        hidden_in_range = hidden_ids[
            bisect_left(hidden_ids, first) : bisect_right(hidden_ids, last)
        ]
        return any(self.after.is_valid(number) for number in hidden_in_range)

    def __contains__(self, number: int) -> bool:
        return self.after.is_valid(number) and not self.before.is_valid(number)

    @property
    def numbers(self) -> list[int]:
        """The ids that the newer snapshot sees and the older one does not, ascending."""
        numbers_above = range(self.before.high_water_mark + 1, self.after.high_water_mark + 1)
        return [number for number in (*self.before.exceptions, *numbers_above) if number in self]

    def sql(self, number_sql: str) -> str:
        """Return an SQL condition, without brackets around it, that the newer snapshot sees a write
        id and the older one does not. ``number_sql``: SQL of the write id."""
        return f"{self.after.sql(number_sql)} AND NOT ({self.before.sql(number_sql)})"


class CompactorWriteIdList(ValidWriteIdList):
    """The write ids that a compaction takes: all below the lowest open write id.

    A compaction takes a directory as a whole or not at all. It leaves out single events of aborted
    write ids. Source: Hive ``ValidCompactorWriteIdList``.
    """

    __slots__ = ()

    @classmethod
    def from_snapshot(cls, write_ids: ValidWriteIdList) -> CompactorWriteIdList:
        """Return the write ids of a snapshot that a compaction can take: those below the lowest
        open one. None is open in the list; aborted ones stay aborted."""
        mark = min(write_ids.high_water_mark, write_ids.min_open - 1)
        aborted = tuple(number for number in write_ids.aborted if number <= mark)
        return cls(mark, (), aborted, table=write_ids.table)

    def range_validity(self, first: int, last: int) -> Range:
        """Return ALL if the compaction takes the directory of this range, otherwise NONE. Only
        ``last`` decides: it is at most the high-water mark. Aborted write ids do not matter."""
        return Range.ALL if last <= self.high_water_mark else Range.NONE


# Everything is visible; ``acidsql.read`` uses it if no snapshot is given.
ALL_TXNS = ValidTxnList(NONE_OPEN)


def _count_in_range(ids: Sequence[int], first: int, last: int) -> int:
    """How many of these ascending ids are in ``first..last``."""
    return bisect_right(ids, last) - bisect_left(ids, first)


def _parse_fields(fields: str, text: str) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Parse ``hwm:minOpen:open,…:aborted,…`` into the high-water mark, the open and the aborted
    ids. ``minOpen`` is not used. Raise FormatError, which shows ``text``, if the fields have
    another form."""
    parts = fields.split(":")
    try:
        if len(parts) != 4:
            raise ValueError(fields)
        return int(parts[0]), _parse_ids(parts[2]), _parse_ids(parts[3])
    except ValueError:
        # Hive's own parser takes an empty text for "everything is visible". Here it is an error.
        raise FormatError(
            f"'{text}' is no snapshot: expected highWaterMark:minOpen:open,…:aborted,…", text=text
        ) from None


def _parse_ids(text: str) -> tuple[int, ...]:
    """Parse ids and ranges, as ``1,3,10-12``, into all of their numbers, both ends included, in the
    order of the text. An empty text gives none. Raise ValueError if the text has another form."""
    ids: list[int] = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        ids += range(int(first), int(last) + 1) if dash else [int(first)]
    return tuple(ids)
