"""Reads the names of tables and columns that a method's arguments give.

The rule is that of PySpark's ``F.col`` and ``DataFrame.mergeInto``, and of Delta Lake's
``DeltaTable``: a dot ends a part of a name, and a part in backticks may have any characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from acidsql.errors import AnalysisError, CatalogError

_QUOTED = r"`(?:[^`]|``)+`"
_COLUMN_PART = re.compile(rf"{_QUOTED}|[^`.]+")
_COLUMN = re.compile(rf"(?:{_COLUMN_PART.pattern})(?:\.(?:{_COLUMN_PART.pattern}))*", re.DOTALL)
_TABLE_PART = rf"(?:{_QUOTED}|[^`.\s]+)"
_TABLE = re.compile(
    rf"\s*(?P<table>{_TABLE_PART}(?:\.{_TABLE_PART})*)"
    rf"(?:\s+(?:AS\s+)?(?!AS\s*$)(?P<alias>{_TABLE_PART}))?\s*",
    re.IGNORECASE,
)


def table_parts(table: str) -> tuple[str, ...]:
    """Return the parts of a table's name, as ``table`` or ``database.table``, without backticks.
    The number of parts is not checked.

    Raises:
        CatalogError: The text is no name of a table, or has an alias.
    """
    parts, alias = parts_and_alias(table)
    if alias is not None:
        raise _table_name_error(table)
    return parts


def parts_and_alias(table: str) -> tuple[tuple[str, ...], str | None]:
    """Return the parts of a table's name, whose number is not checked, and the alias of ``table
    [AS] alias`` (None without an alias). Both are without backticks, with upper and lower case as
    given.

    Raises:
        CatalogError: The text is no name of a table.
    """
    match = _TABLE.fullmatch(table)
    if match is None:
        raise _table_name_error(table)
    alias = match["alias"]
    return _split_parts(match["table"]), None if alias is None else _without_backticks(alias)


def column_parts(column: str) -> tuple[str, ...]:
    """Return the parts of ``column``, ``table.column``, ``alias.column`` or ``column.field``,
    without backticks.

    Raises:
        AnalysisError: The text is no name of a column.
    """
    if _COLUMN.fullmatch(column) is None:
        raise AnalysisError(
            f"'{column}' is no name of a column. Backticks enclose a whole part of a name, as in "
            "t.`a.b`.",
            condition="INVALID_ATTRIBUTE_NAME_SYNTAX", sqlstate="42601", name=column,
        )  # fmt: skip
    return _split_parts(column)


def column_name(column: str, argument: str) -> str:
    """Return a column's name that stands in a method's argument, without backticks. ``argument``:
    the argument's name, for the error.

    Raises:
        AnalysisError: The text is no name of a column, or has several parts.
    """
    parts = column_parts(column)
    if len(parts) > 1:
        raise AnalysisError(
            f"{argument} takes columns of one table, without a qualifier and without fields of "
            f"structs, and '{column}' has {len(parts)} parts. A column with a dot in its name is "
            f"written in backticks: '`{column}`'.",
            condition="UNSUPPORTED_FEATURE.QUALIFIED_COLUMN", sqlstate="0A000", column=column,
        )  # fmt: skip
    return parts[0]


def column_names(columns: Sequence[str] | str, argument: str) -> list[str]:
    """Return the names of columns, given as a list or as one name, as a list without backticks.

    Raises:
        AnalysisError: A text is no name of a column, or has several parts.
    """
    listed = [columns] if isinstance(columns, str) else columns
    return [column_name(column, argument) for column in listed]


def _split_parts(name: str) -> tuple[str, ...]:
    """Return the parts between the dots of a valid name, each without backticks."""
    return tuple(_without_backticks(part) for part in _COLUMN_PART.findall(name))


def _without_backticks(part: str) -> str:
    """Return a part of a name without the backticks around it; doubled backticks inside become
    one."""
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def _table_name_error(text: str) -> CatalogError:
    """Return the error for a text that is no name of a table."""
    return CatalogError(
        f"'{text}' is no name of a table: write 'table' or 'database.table'.", table=text
    )
