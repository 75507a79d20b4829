"""The statistics in an ORC footer, compared with the values that were read.

ORC has no checksums. But a footer has the number of values of each column, the least and the
greatest integer or text, the sum of the integers, and the length of all texts together. So most
changed bits of integers, and some of texts, are noticed. This module runs in workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acidsql.acid.values.types import parse_type
from acidsql.errors import FormatError
from acidsql.storage.orc.encoding.footer import Footer
from acidsql.storage.orc.encoding.protobuf import as_bytes, decode_fields

_VALUES, _INTEGERS, _STRINGS = 1, 2, 4  # fields of ColumnStatistics
_GROUPS = {
    "tinyint": _INTEGERS, "smallint": _INTEGERS, "int": _INTEGERS, "bigint": _INTEGERS,
    "string": _STRINGS,
}  # fmt: skip
_MIN, _MAX, _SUM = 1, 2, 3  # fields of IntegerStatistics; of StringStatistics, SUM counts bytes
_LOW = (1 << 32) - 1


@dataclass(slots=True)
class _Column:
    """What the footer says about a column, and what its values have come to so far.

    Attributes:
        name: The column's name.
        promised: The result of ``_promised_statistics``.
        measured: The same facts of the values that have been added.
    """

    name: str
    promised: dict[str, Any]
    measured: dict[str, Any]

    def add(self, array: pa.Array) -> None:
        """Add the values of an array to what was measured so far: their number; of integers the
        bounds and the sum; of texts the bounds, compared as bytes, and the sum of their bytes.
        NULLs do not count.
        """
        self._plus("values", len(array) - array.null_count)
        if array.null_count == len(array):
            return
        if pa.types.is_integer(array.type):
            self._bounds(array)
            wide = array.cast(pa.int64())
            # In halves, because the sum may have more than 64 bits.
            high, low = pc.shift_right(wide, 32), pc.bit_wise_and(wide, _LOW)
            self._plus("sum", (pc.sum(high).as_py() << 32) + pc.sum(low).as_py())
        elif pa.types.is_string(array.type):
            self._bounds(array.cast(pa.binary()))  # ORC, too, compares bytes
            self._plus("sum", pc.sum(pc.binary_length(array)).as_py())

    def _bounds(self, array: pa.Array) -> None:
        """Widen the measured bounds to those of an array."""
        bounds = pc.min_max(array).as_py()
        self.measured["least"] = min(self.measured.get("least", bounds["min"]), bounds["min"])
        self.measured["greatest"] = max(self.measured.get("greatest", bounds["max"]), bounds["max"])

    def _plus(self, name: str, more: int) -> None:
        """Add to a measured number."""
        self.measured[name] = self.measured.get(name, 0) + more

    @property
    def is_wrong(self) -> bool:
        """Whether a measured fact is not as promised. A fact that was not measured, as there were
        no values, is not wrong.
        """
        # A promise about no values is none.
        return any(
            self.measured.get(name, number) != number for name, number in self.promised.items()
        )


class Totals:
    """Compares the values of a file's columns with the statistics in its footer: ``add`` all
    batches, then ask for ``wrong``.

    Args:
        footer: The file's footer.
        columns: The numbers of the columns in the footer, with their names and the types of the
            arrays that come. A column that has another type in the file is not compared.
    """

    def __init__(self, footer: Footer, columns: Sequence[tuple[int, str, str]]) -> None:
        """Note what the footer says about the columns. If its statistics are not about all rows, no
        column is compared.
        """
        comparable = columns if _are_complete(footer) else []
        self._columns = [
            _Column(name, _promised_statistics(footer, number, kind), {})
            for number, name, kind in comparable
        ]

    def add(self, arrays: Sequence[pa.Array]) -> None:
        """Add the values of a batch, the columns in the order of ``columns``."""
        for column, array in zip(self._columns, arrays, strict=False):
            if column.promised:
                column.add(array)

    @property
    def wrong(self) -> list[str]:
        """The names of the columns whose values are not as the footer says."""
        return [column.name for column in self._columns if column.is_wrong]


def _are_complete(footer: Footer) -> bool:
    """Whether the statistics are about all rows: the root's count of values is the footer's number
    of rows. False if the root's statistics are missing or damaged. Those of Hive's streaming are
    about the rows since the last commit.
    """
    try:
        root = dict(decode_fields(footer.statistics[0]))
    except (FormatError, IndexError):
        return False
    return root.get(_VALUES) == footer.rows


def _promised_statistics(footer: Footer, number: int, hive_type: str) -> dict[str, Any]:
    """Return what a footer says about a column: ``values`` (how many are not NULL), and for
    integers and texts ``least``, ``greatest`` and ``sum`` (of texts, the bytes). The bounds of
    texts are bytes. Empty if it says nothing, is damaged, or the column is a CHAR or has another
    type in the file.
    """
    kind = parse_type(hive_type).kind
    if number >= len(footer.statistics) or footer.types[number].kind != kind or kind == "char":
        return {}
    try:
        statistics = dict(decode_fields(footer.statistics[number]))
        promises: dict[str, Any] = {"values": statistics[_VALUES]} if _VALUES in statistics else {}
        if (group := _GROUPS.get(kind)) is not None and group in statistics:
            bounds = dict(decode_fields(as_bytes(statistics[group])))
            for name, tag in (("least", _MIN), ("greatest", _MAX), ("sum", _SUM)):
                if tag in bounds:
                    value = bounds[tag]
                    promises[name] = _zigzag_decoded(value) if isinstance(value, int) else value
    except FormatError:
        return {}  # statistics that cannot be read promise nothing
    return promises


def _zigzag_decoded(number: int) -> int:
    """Return the signed number that ORC's zigzag encoding stores as this number."""
    return (number >> 1) ^ -(number & 1)
