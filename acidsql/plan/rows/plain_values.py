"""Converts plain literals to the values of columns without Spark, if the result is certain.

``plan/rows/insert.py`` is the reference: there Spark finds one type for all values of a VALUES
column, and store assignment converts this type to the table's. The functions here give exactly the
same values, or None. After None the statement takes the way of the reference. None is the result
for every error, for every value that is rounded, and for a table with partitions, checks or a sort
order, or with NOT NULL columns or a default that the statement needs.

The result is an event query with its rows in place of SQL. The converters of single types have the
same parameters, though most do not need the type of the column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from acidsql.acid.table import Column, Table
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.errors import SqlError
from acidsql.plan.rows.event_query import EventQuery
from acidsql.plan.values.sqltext import Text
from acidsql.sql.binder import bind_insert
from acidsql.sql.parsed.statements import Insert, Literals

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
# A decimal literal of at most so many digits gives the same float here and in Spark. Its digits and
# its power of ten are exact floats, so that only their quotient is rounded.
_DIGITS = {"float": 6, "double": 15}
_BIGINT_DIGITS = 20  # the most digits that Spark takes for a whole number beside decimals
_DECIMAL_DIGITS = 38
_CAST = re.compile(r"\w+\s*\(\s*(\S+)\s+\w+\s+\w+\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)\s*\)")
_TRUTH = {"true": True, "false": False}

_Values = list[Any] | None


def plan_plain(text: str, statement: Insert, table: Table) -> EventQuery | None:
    """Return the event query of an INSERT of plain literals, with its rows in ``plain_rows`` (a
    list by column, in the order of the table; NULLs in columns that the statement omits) and no
    SQL; None if Spark must evaluate the literals, or if anything is wrong with the statement.

    Args:
        text: The user's statement.
        statement: The parsed statement; its source is ``Literals``.
        table: The target.
    """
    assert isinstance(statement.source, Literals)
    if not _is_plain(table):
        return None
    try:
        bound = bind_insert(text, table, statement.columns, ())
    except SqlError:
        return None  # the reference raises this error, or one that it finds before
    literals_by_column = statement.source.columns
    if len(literals_by_column) != len(bound.from_source) or any(
        column.default for column in bound.omitted
    ):
        return None
    values_by_column: dict[str, list[Any]] = {
        column.name: [None] * len(literals_by_column[0]) for column in bound.omitted
    }
    for column, literals in zip(bound.from_source, literals_by_column, strict=True):
        values = plain_values(literals, parse_type(column.type))
        if values is None:
            return None
        values_by_column[column.name] = values
    in_table_order = {column.name: values_by_column[column.name] for column in table.columns}
    return EventQuery(table, Text(text), plain_rows=in_table_order)


def plain_values(literals: Sequence[str], kind: HiveType) -> _Values:
    """Return the values of one column's literals in a column of this type, with None for NULL.
    Return None, no list, if one may have another value in Spark, is a literal of another type, or
    the column's type has no converter (CHAR, VARCHAR, BINARY, nested types). Raise nothing."""
    convert = _CONVERTERS.get(kind.kind)
    try:
        return None if convert is None else convert(literals, kind)
    except (ValueError, KeyError):  # a literal of another type, a day that does not exist
        return None


def _is_plain(table: Table) -> bool:
    """Whether only the types of the columns decide the values and the place of a row: the table has
    no partition columns, checks or sort order, and each column is a plain one."""
    if table.partition_columns or table.checks or table.sort_columns:
        return False
    return all(map(_is_plain_column, table.columns))


def _is_plain_column(column: Column) -> bool:
    """Whether a column allows NULL, and its type has no parts."""
    return column.nullable and not parse_type(column.type).children


def _is_null(literal: str) -> bool:
    return literal[0] in "nN"


def _integers(literals: Sequence[str], column_type: HiveType) -> _Values:
    """Return the integers of literals, with None for NULL; None if one is out of the type's range.
    Raise ValueError if one is no integer."""
    limit = 1 << (_BITS[column_type.kind] - 1)
    values = [None if _is_null(x) else int(x) for x in literals]
    fits = all(-limit <= value < limit for value in values if value is not None)
    return values if fits else None


def _floats(literals: Sequence[str], column_type: HiveType) -> _Values:
    """Return the floats of literals, with None for NULL. For DOUBLE, all may end in D; then -0D
    stays -0.0. Else -0 becomes 0.0, and the result is None if a literal has more digits than a
    float here and in Spark surely agree on (6 for FLOAT, 15 for DOUBLE). Raise ValueError if one is
    no number."""
    numbers = [x for x in literals if not _is_null(x)]
    if column_type.kind == "double" and all(x[-1] in "dD" for x in numbers):
        return [None if _is_null(x) else float(x[:-1]) for x in literals]
    digits = max((len(x.lstrip("-").replace(".", "")) for x in numbers), default=0)
    if digits > _DIGITS[column_type.kind]:
        return None
    # Neither DECIMAL nor INT has a negative zero: -0.0 + 0.0 is 0.0.
    return [None if _is_null(x) else float(x) + 0.0 for x in literals]


def _decimals(literals: Sequence[str], column_type: HiveType) -> _Values:
    """Return the Decimals of literals, with None for NULL. Casts to DECIMAL count if all literals
    are casts to just the column's type. Return None if one has too many digits before or after the
    point for the type, as written, or if Spark's common type could lack digits. Raise ValueError if
    one is no number."""
    precision, scale = column_type.parameters
    casts = [_CAST.fullmatch(x) for x in literals if not _is_null(x)]
    if all(cast and (int(cast[2]), int(cast[3])) == (precision, scale) for cast in casts):
        # Each CAST already has the column's type. The check below is the same without the CAST.
        literals = [_CAST.sub(r"\1", x) for x in literals]
    integer_digits = precision - scale
    has_integer = False
    for literal in literals:
        if not _is_null(literal):
            integer_part, point, fraction = literal.lstrip("-").partition(".")
            if len(integer_part) > integer_digits or len(fraction) > scale:
                return None
            has_integer = has_integer or not point
    if has_integer and scale > _DECIMAL_DIGITS - _BIGINT_DIGITS:
        return None  # Spark's common type of whole numbers and decimals may lack fraction digits
    return [None if _is_null(x) else _decimal(x) for x in literals]


def _decimal(literal: str) -> Decimal:
    """Return a literal's Decimal; raise ValueError if it is no number."""
    try:
        return Decimal(literal)
    except ArithmeticError:  # the literal is not a number
        raise ValueError(literal) from None


def _texts(literals: Sequence[str], column_type: HiveType) -> _Values:
    """Return the texts between the quotes of string literals, as written, with None for NULL; None
    if one does not begin with a single quote. ``column_type`` is not used: it is there for the
    other readers of literals."""
    if not all(x[0] == "'" or _is_null(x) for x in literals):
        return None
    return [None if _is_null(x) else x[1:-1] for x in literals]


def _booleans(literals: Sequence[str], column_type: HiveType) -> _Values:
    """Return the bools of literals TRUE and FALSE, in any case, with None for NULL. Raise KeyError
    for others."""
    return [None if _is_null(x) else _TRUTH[x.lower()] for x in literals]


def _dates(literals: Sequence[str], column_type: HiveType) -> _Values:
    """Return the dates of literals DATE '…', with None for NULL; None if one is another literal.
    Raise ValueError for a day that does not exist."""
    if not all(x[0] in "dD" or _is_null(x) for x in literals):
        return None
    return [None if _is_null(x) else date.fromisoformat(x[-11:-1]) for x in literals]


def _timestamps(literals: Sequence[str], column_type: HiveType) -> _Values:
    """Return the datetimes of literals TIMESTAMP '…' and TIMESTAMP_NTZ '…', with None for NULL;
    None if one is of another form. Raise ValueError for a day that does not exist."""
    if not all(x[:2] in ("TI", "ti", "Ti", "tI") or _is_null(x) for x in literals):
        return None
    return [
        None if _is_null(x) else datetime.fromisoformat(x[x.index("'") + 1 : -1]) for x in literals
    ]


# Without CHAR and VARCHAR: the reference checks their lengths.
_CONVERTERS: dict[str, Callable[[Sequence[str], HiveType], _Values]] = {
    **dict.fromkeys(_BITS, _integers),
    **dict.fromkeys(_DIGITS, _floats),
    "decimal": _decimals,
    "string": _texts,
    "boolean": _booleans,
    "date": _dates,
    "timestamp": _timestamps,
}
