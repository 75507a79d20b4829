"""Parts of statements, as SQL, from names, SQL text and Columns.

A parameter ``columns`` of the type ``ColumnSql`` is the function that writes a Column as SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column

from acidsql.api.dataframes.advice import refuse_bare_date
from acidsql.errors import SettingError, SqlSyntaxError
from acidsql.sql.text.given_names import column_names, column_parts, parts_and_alias, table_parts
from acidsql.sql.text.tokens import match_brackets, tokenize
from acidsql.storage.columns import quote, quoted_path
from acidsql.storage.spark.columns.writer import ColumnSql

SqlOrColumn = str | Column


def table_name(table: str) -> str:
    """Return SQL of a table's name, ``table`` or ``database.table``; its parts are quoted."""
    return quoted_path(table_parts(table))


def table_and_alias(table: str) -> str:
    """Return SQL of a table's name and, if there is one, its alias: ``database.table AS t``; all
    parts are quoted. The AS may be missing in ``table``. Raise CatalogError if it is no such name.
    """
    parts, alias = parts_and_alias(table)
    return quoted_path(parts) if alias is None else f"{quoted_path(parts)} AS {quote(alias)}"


def name_list(columns: Sequence[str] | str, argument: str) -> str:
    """Return SQL of columns' names, quoted, with commas between them. ``argument``: the argument's
    name, for errors."""
    return ", ".join(map(quote, column_names(columns, argument)))


def column_paths(values: Mapping[str, SqlOrColumn], call: str = "SET") -> list[str]:
    """Return SQL of the name of each column that gets a value, quoted, perhaps with a qualifier or
    a field's name. ``call``: the method or clause, for the message.

    Raises:
        SettingError: There is no column.
        AnalysisError: A key is no name of a column.
    """
    if not values:
        raise SettingError(f"{call} needs the new value of one column at least.", name="set")
    return [quoted_path(column_parts(name)) for name in values]


def assignments_sql(values: Mapping[str, SqlOrColumn], columns: ColumnSql) -> str:
    """Return SQL of the assignments behind SET: ``column = value, …``. Raise the errors of
    ``column_paths`` and ``value_sql``."""
    pairs = zip(column_paths(values), values.values(), strict=True)
    return ", ".join(f"{path} = {value_sql(value, columns)}" for path, value in pairs)


def where_clause(condition: SqlOrColumn | None, columns: ColumnSql) -> str:
    """Return `` WHERE `` and the SQL of the condition; "" for None."""
    return "" if condition is None else f" WHERE {expression_sql(condition, columns)}"


def value_sql(value: SqlOrColumn, columns: ColumnSql) -> str:
    """Return SQL of a value that a column gets: DEFAULT, or an expression (``expression_sql``).
    Raise AnalysisError for a date without quotes."""
    if isinstance(value, str):
        refuse_bare_date(value)
    is_default = isinstance(value, str) and value.strip().upper() == "DEFAULT"
    return "DEFAULT" if is_default else expression_sql(value, columns)


def expression_sql(value: SqlOrColumn, columns: ColumnSql) -> str:
    """Return the SQL of a value or condition. A text goes into brackets, so that it stays one
    expression; with ``--`` in it, the closing bracket stands on a line of its own. A Column gets no
    brackets here.

    Raises:
        SqlError: The text has no token (blanks, comments), cannot be cut into tokens, or its
            brackets do not match; or the Column cannot be written as SQL. Nothing else of a text is
            checked.
    """
    if isinstance(value, Column):
        return columns(value)
    tokens = tokenize(value)
    if not tokens:
        raise SqlSyntaxError("Expected an expression, found nothing.", value, 0, len(value))
    match_brackets(value, tokens)
    return f"({value}\n)" if "--" in value else f"({value})"
