"""Parts of statements, from names, SQL text and Columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pyspark.sql import Column

from acidsql.errors import SqlSyntaxError
from acidsql.sql.parts import parts_of
from acidsql.sql.tokens import match_brackets, tokenize
from acidsql.storage.columns import quote, quoted_path
from acidsql.storage.spark.columns.writer import ColumnSql

Expression = str | Column
_PART = re.compile(r"`(?:[^`]|``)+`|[^`.]+")
_PATH = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")


def table_name(table: str) -> str:
    """``database.table`` in a statement."""
    return quoted_path(parts_of(table))


def name_list(columns: Iterable[str]) -> str:
    """Columns in a statement, with commas between them."""
    return ", ".join(map(quote, columns))


def assignments_of(values: Mapping[str, Expression], columns: ColumnSql) -> str:
    """What follows SET."""
    return ", ".join(
        f"{column_path(name)} = {value_sql(value, columns)}" for name, value in values.items()
    )


def column_path(name: str) -> str:
    """A column, or a field of a struct, in a statement. As in PySpark, a dot ends a part of the
    name, and a part in backticks may have any characters."""
    if _PATH.fullmatch(name) is None:
        return quote(name)
    return ".".join(part if part[0] == "`" else quote(part) for part in _PART.findall(name))


def where_clause(condition: Expression | None, columns: ColumnSql) -> str:
    """WHERE and its condition; empty without a condition."""
    return "" if condition is None else f" WHERE {expression_sql(condition, columns)}"


def value_sql(value: Expression, columns: ColumnSql) -> str:
    """The SQL of a new value, which may be DEFAULT."""
    is_default = isinstance(value, str) and value.strip().upper() == "DEFAULT"
    return "DEFAULT" if is_default else expression_sql(value, columns)


def expression_sql(value: Expression, columns: ColumnSql) -> str:
    """The SQL of a value or condition. Text goes into brackets, so that it stays one expression.

    Raises:
        TypeError: It is neither text nor a Column.
        SqlError: The text is no expression, or the Column cannot be written as SQL.
    """
    if isinstance(value, Column):
        return columns(value)
    if not isinstance(value, str):
        raise TypeError(
            f"{value!r} is neither SQL text nor a Column. For a value, pass F.lit({value!r})."
        )
    tokens = tokenize(value)
    if not tokens:
        raise SqlSyntaxError("Expected an expression, found nothing.", value, 0, len(value))
    match_brackets(value, tokens)
    return f"({value}\n)" if "--" in value else f"({value})"
