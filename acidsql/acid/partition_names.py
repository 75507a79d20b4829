"""The names of partition directories: one canonical name for each value.

acidsql gives directories canonical names only. A canonical name has the text to which Spark casts
the value, a DECIMAL with all digits of its scale, a CHAR without padding. Other programs may have
made directories with other names for a value (``p=01``, ``p=1.5`` where the scale is 2, ``P=1``).
Such a directory is found by its value.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal

from acidsql.acid.layout import DEFAULT_PARTITION, parse_partition_name, partition_name
from acidsql.acid.table import Column
from acidsql.acid.values.types import HiveType, parse_type

PartitionValues = tuple[str | None, ...]

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


@dataclass(frozen=True, slots=True)
class PartitionNames:
    """The names of a table's partition directories.

    Attributes:
        columns: The partition columns; none if the table is not partitioned.
        existing: For each value that has a directory whose name may not be canonical: the canonical
            name → all directories of the value. New rows go into the first of these.
    """

    columns: tuple[Column, ...] = ()
    existing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_directories(
        cls,
        columns: tuple[Column, ...],
        existing: Collection[str],
        doubtful: Mapping[str, PartitionValues],
    ) -> PartitionNames:
        """Make the names for a table that has these directories. ``existing`` of the result has an
        entry for each value of a directory in ``doubtful``, even if the name turns out to be
        canonical. Each entry begins with the canonical name, unless this directory is missing and
        queries read the value in another one.

        Args:
            columns: The partition columns.
            existing: All partition directories of the table.
            doubtful: The directories that ``uncanonical_candidates`` returns, each with its values
                as Spark casts them to STRING.
        """
        names, names_by_value = cls(columns), dict[str, list[str]]()
        for name, values in doubtful.items():
            names_by_value.setdefault(names.canonical(values), []).append(name)
        existing_names = set(existing) if names_by_value else set()
        return cls(
            columns,
            {
                canonical_name: _canonical_first(canonical_name, names, existing_names)
                for canonical_name, names in names_by_value.items()
            },
        )

    def canonical(self, texts: Sequence[str | None]) -> str:
        """Return the canonical directory name, ``p1=a/p2=1``, of the values of one partition, which
        Spark has cast to STRING."""
        pairs = zip(texts, self.columns, strict=True)
        values = [canonical(text, column.type) for text, column in pairs]
        return partition_name([column.name for column in self.columns], values)

    def directories(self, texts: Sequence[str | None]) -> tuple[str, ...]:
        """Return the names of all directories of these values, which Spark has cast to STRING. New
        rows go into the first, which may not exist yet. If no directory of the values has another
        name, this is the canonical name alone."""
        name = self.canonical(texts)
        return self.existing.get(name, (name,))

    def same_values(self, names: AbstractSet[str]) -> AbstractSet[str]:
        """Return these directory names, and those of all other directories with the same values."""
        groups = (group for group in self.existing.values() if not names.isdisjoint(group))
        return frozenset(names).union(*groups)


def canonical(text: str | None, hive_type: str) -> str | None:
    """Return the canonical text of a value, for a directory's name, without escapes; ``text`` is
    Spark's cast to STRING. Only DECIMAL (no exponent), CHAR (no blanks at the end) and -0.0 change.

    None means the default partition, which holds NULL, the empty text, a CHAR of blanks, and a text
    that is the default partition's own name.
    """
    if text is None or text in ("", DEFAULT_PARTITION):
        return None
    kind = hive_type.partition("(")[0]
    if kind == "decimal":
        return f"{Decimal(text):f}"  # without ANSI mode, Spark casts to texts such as 0E-7
    if kind == "char":
        return text.rstrip(" ") or None
    if kind in ("float", "double") and text == "-0.0":
        return "0.0"  # -0.0 and 0.0 are equal
    return text


def uncanonical_candidates(columns: Sequence[Column], existing: Collection[str]) -> list[str]:
    """Return the names of the directories (out of ``existing``, in its order) that may not be
    canonical: only Spark can tell their values. All others certainly are canonical. A name that
    differs in its columns' names or escapes is returned, too.

    Raises:
        FormatError: A name is not of the form ``p1=a/p2=1``.
        ValueError: A name has another number of parts than there are columns.
    """
    checks = [_canonical_test(parse_type(column.type)) for column in columns]
    names = [column.name for column in columns]
    doubtful = []
    for name in existing:
        values = [value for _, value in parse_partition_name(name)]
        plain = (value is None or check(value) for value, check in zip(values, checks, strict=True))
        if not all(plain) or partition_name(names, values) != name:
            doubtful.append(name)
    return doubtful


def _canonical_first(
    canonical_name: str, names: Sequence[str], existing: Collection[str]
) -> tuple[str, ...]:
    """Return all directories of one value, the one for new rows first: the canonical one, even if
    it is missing. Only if it is missing, and others exist in which queries read the value, is the
    canonical one left out. Directories whose text is no value of the column's type, so that queries
    show NULL, come last. Each of these two groups is sorted by name.

    Args:
        canonical_name: The canonical name of the value.
        names: The directories of the value whose names may not be canonical.
        existing: All directories of the table.
    """
    nulls = _null_flags(canonical_name)
    # If the text in a name is no value of the column's type, queries show NULL. But new rows with
    # NULL do not belong into such a directory.
    readable = sorted(
        name for name in names if name != canonical_name and _null_flags(name) == nulls
    )
    unreadable = sorted(
        name for name in names if name != canonical_name and _null_flags(name) != nulls
    )
    first = [canonical_name] if canonical_name in existing or not readable else []
    return (*first, *readable, *unreadable)


def _null_flags(name: str) -> list[bool]:
    """Return for each value in a partition's name, in order, whether it is NULL: the default
    partition."""
    return [value is None for _, value in parse_partition_name(name)]


def _canonical_test(kind: HiveType) -> Callable[[str], object]:
    """Return a function whose result is truthy if a text certainly is canonical for this type. A
    falsy result proves nothing.

    Every text is canonical for STRING and VARCHAR, ``true`` and ``false`` are for BOOLEAN. An
    integer has no needless zeros, and fewer digits than the greatest value of its type. A CHAR is
    not too long, and does not end with a blank. DECIMAL, DATE and TIMESTAMP have the tests below.
    For FLOAT, DOUBLE and all other types the result is always False.
    """
    if kind.kind in _DIGITS:
        # One digit less than the longest number: a number of full length could be out of range.
        return re.compile(rf"0|-?[1-9]\d{{0,{_DIGITS[kind.kind] - 2}}}", re.ASCII).fullmatch
    if kind.kind == "decimal":
        return _canonical_decimal(*kind.parameters).fullmatch
    if kind.kind == "char":
        return re.compile(rf".{{0,{kind.parameters[0] - 1}}}[^ ]", re.DOTALL).fullmatch
    return _CHECKS.get(kind.kind, lambda _: False)


def _canonical_decimal(precision: int, scale: int) -> re.Pattern[str]:
    """Return the pattern of canonical texts of DECIMAL(precision, scale), which the whole text has
    to match: all digits of the scale, no needless zeros in front, no -0, and not more digits before
    the point than the type has."""
    digits = precision - scale
    integer_part = rf"(?:0|[1-9]\d{{0,{digits - 1}}})" if digits else "0"
    fraction = rf"\.\d{{{scale}}}" if scale else ""
    return re.compile(rf"(?!-[0.]+$)-?{integer_part}{fraction}", re.ASCII)


def _is_date(text: str) -> bool:
    """Whether a text is a date in the form 2024-01-31."""
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_timestamp(text: str) -> bool:
    """Whether a text is a time without a zone as Spark writes it: 2024-01-31 10:00:00 or 2024-01-31
    10:00:00.5, with at most six digits and no zeros at the end of the fraction."""
    try:
        stamp = dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    stamp_text = stamp.isoformat(" ")
    return stamp.tzinfo is None and text == (
        stamp_text.rstrip("0") if "." in stamp_text else stamp_text
    )


_CHECKS: dict[str, Callable[[str], object]] = {
    "string": lambda _: True,
    "varchar": lambda _: True,
    "boolean": {"true", "false"}.__contains__,
    "date": _is_date,
    "timestamp": _is_timestamp,
}
