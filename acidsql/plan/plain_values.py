"""Plain literals → the values of columns, without Spark: only where nobody can doubt the outcome.

``plan/insert.py`` is the reference: Spark finds one type for all values of a column of VALUES, and
store assignment takes them to the table's. Here each pair of literals and column type either gives
exactly what comes out there, or None, and then the statement goes that way: so does all that is an
error, all that is rounded, and all that a constraint, a default or a partition has a say in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from acidsql.acid.table import Column, Table
from acidsql.acid.types import HiveType, parse_type
from acidsql.errors import SqlError
from acidsql.plan.event_query import EventQuery
from acidsql.plan.sqltext import Text
from acidsql.sql.binder import bind_insert
from acidsql.sql.statements import Insert, Literals

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
# So many digits are exact in both, whatever the way: the quotient is rounded once.
_DIGITS = {"float": 6, "double": 15}
_BIGINT_DIGITS = 20  # what Spark counts for a whole number beside decimals, at most
_DECIMAL_DIGITS = 38
_CAST = re.compile(r"\w+\s*\(\s*(\S+)\s+\w+\s+\w+\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)\s*\)")
_TRUTH = {"true": True, "false": False}

_Values = list[Any] | None


def plan_plain(text: str, statement: Insert, table: Table) -> EventQuery | None:
    """The INSERT of plain literals; None where another way must be gone.

    Args:
        text: The user's statement.
        statement: The same, parsed; its source is ``Literals``.
        table: Its target.
    """
    assert isinstance(statement.source, Literals)
    if not _is_plain(table):
        return None
    try:
        bound = bind_insert(text, table, statement.columns, ())
    except SqlError:
        return None  # the other way says so, after all that it has to say before
    given = statement.source.columns
    if len(given) != len(bound.from_source) or any(column.default for column in bound.omitted):
        return None
    found: dict[str, list[Any]] = {column.name: [None] * len(given[0]) for column in bound.omitted}
    for column, literals in zip(bound.from_source, given, strict=True):
        values = plain_values(literals, parse_type(column.type))
        if values is None:
            return None
        found[column.name] = values
    in_order = {column.name: found[column.name] for column in table.columns}
    return EventQuery(table, Text(text), plain_rows=in_order)


def plain_values(literals: Sequence[str], kind: HiveType) -> _Values:
    """What the literals of one column become in a column of that type; None if in doubt."""
    convert = _CONVERTERS.get(kind.kind)
    try:
        return None if convert is None else convert(literals, kind)
    except (ValueError, KeyError):  # a literal of another type, a day that does not exist
        return None


def _is_plain(table: Table) -> bool:
    """Nothing but the types of columns decides what a row becomes, and where it goes."""
    if table.partition_columns or table.checks or table.sort_columns:
        return False
    return all(map(_is_plain_column, table.columns))


def _is_plain_column(column: Column) -> bool:
    return column.nullable and not parse_type(column.type).children


def _is_null(literal: str) -> bool:
    return literal[0] in "nN"


def _integers(literals: Sequence[str], kind: HiveType) -> _Values:
    limit = 1 << (_BITS[kind.kind] - 1)
    values = [None if _is_null(x) else int(x) for x in literals]
    fits = all(-limit <= value < limit for value in values if value is not None)
    return values if fits else None


def _floats(literals: Sequence[str], kind: HiveType) -> _Values:
    numbers = [x for x in literals if not _is_null(x)]
    if kind.kind == "double" and all(x[-1] in "dD" for x in numbers):
        return [None if _is_null(x) else float(x[:-1]) for x in literals]
    digits = max((len(x.lstrip("-").replace(".", "")) for x in numbers), default=0)
    if digits > _DIGITS[kind.kind]:
        return None
    # A DECIMAL has no negative zero, nor has an INT.
    return [None if _is_null(x) else float(x) + 0.0 for x in literals]


def _decimals(literals: Sequence[str], kind: HiveType) -> _Values:
    precision, scale = kind.parameters
    casts = [_CAST.fullmatch(x) for x in literals if not _is_null(x)]
    if all(cast and (int(cast[2]), int(cast[3])) == (precision, scale) for cast in casts):
        # Each already has the column's type; that it fits is seen as if it had none.
        literals = [_CAST.sub(r"\1", x) for x in literals]
    whole_max = precision - scale
    has_whole = False
    for literal in literals:
        if not _is_null(literal):
            whole, point, fraction = literal.lstrip("-").partition(".")
            if len(whole) > whole_max or len(fraction) > scale:
                return None
            has_whole = has_whole or not point
    if has_whole and scale > _DECIMAL_DIGITS - _BIGINT_DIGITS:
        return None  # beside decimals Spark might have no digits left for the fraction
    return [None if _is_null(x) else _decimal(x) for x in literals]


def _decimal(literal: str) -> Decimal:
    try:
        return Decimal(literal)
    except ArithmeticError:  # no number at all
        raise ValueError(literal) from None


def _texts(literals: Sequence[str], kind: HiveType) -> _Values:
    if not all(x[0] == "'" or _is_null(x) for x in literals):
        return None
    return [None if _is_null(x) else x[1:-1] for x in literals]


def _booleans(literals: Sequence[str], kind: HiveType) -> _Values:
    return [None if _is_null(x) else _TRUTH[x.lower()] for x in literals]


def _dates(literals: Sequence[str], kind: HiveType) -> _Values:
    if not all(x[0] in "dD" or _is_null(x) for x in literals):
        return None
    return [None if _is_null(x) else date.fromisoformat(x[-11:-1]) for x in literals]


def _timestamps(literals: Sequence[str], kind: HiveType) -> _Values:
    if not all(x[:2] in ("TI", "ti", "Ti", "tI") or _is_null(x) for x in literals):
        return None
    return [
        None if _is_null(x) else datetime.fromisoformat(x[x.index("'") + 1 : -1]) for x in literals
    ]


# CHAR and VARCHAR are not among them: their lengths are looked at on the other way.
_CONVERTERS: dict[str, Callable[[Sequence[str], HiveType], _Values]] = {
    **dict.fromkeys(_BITS, _integers),
    **dict.fromkeys(_DIGITS, _floats),
    "decimal": _decimals,
    "string": _texts,
    "boolean": _booleans,
    "date": _dates,
    "timestamp": _timestamps,
}
