"""CHECK constraints: which text a condition has, and how the events of a statement are checked.

The events of a statement are the rows that it inserts, and the keys of those that it deletes. A row
breaks a constraint if the condition is false for the row; NULL is not false. The check is a part of
the one query that yields the events (I9). So it sees each row as readers will see it, with all
defaults and conversions, and a row that breaks a constraint fails the job before anything is
published.
"""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.acid.table import Column, Table
from acidsql.acid.values.types import parse_type
from acidsql.plan.values.assignment import raise_dynamic_sql, read_back_sql
from acidsql.plan.values.sqltext import Edit, Text
from acidsql.sql.queries.conditions import mentioned_columns
from acidsql.sql.text.tokens import Span, TokenKind, tokenize
from acidsql.storage import event_records as ew
from acidsql.storage.columns import literal, quote, shown_sql, shown_type

# A condition means the same in every session: the settings are Hive's, an instant is compared with
# a wall clock in UTC, and a wrong number is an error instead of a NULL, for which the condition
# would hold.
MEANING = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
}
INVALID = "INVALID_CHECK_CONSTRAINT"  # a condition that cannot be evaluated
_WRITTEN = f"{ew.PREFIX}w"  # + ordinal: a data column as it is written
_SHOWN_CHARACTERS = 100  # of a value in an error


def backtick_edits(text: str, condition: Span, *, double_quoted: bool) -> list[Edit]:
    """Return the edits that write each ``"…"`` in a condition which is a name as a name in
    backticks. In a constraint ``"…"`` is a string.

    ``double_quoted``: ``"…"`` is a name in this session; otherwise there are no edits.
    """
    tokens = tokenize(text, condition, double_quoted_identifiers=double_quoted)
    return [
        Edit(token.start, token.end, quote(token.value))
        for token in tokens
        if token.kind is TokenKind.QUOTED and token.text.startswith('"')
    ]


def condition_over(table: Table, condition: Text) -> Text:
    """Return a query that Spark analyses without an error only if ``condition`` is a BOOLEAN over
    the columns of a table."""
    query = condition.new().raw("SELECT (").add(condition)
    return query.raw(f"\n)\nFROM {_null_row_relation(table)}\nWHERE (").add(condition).raw("\n)")


def fixed_condition_over(table: Table, condition: Text) -> Text:
    """Return a query that Spark analyses without an error only if ``condition``, a BOOLEAN over the
    columns of a table, is deterministic. The error is INVALID_NON_DETERMINISTIC_EXPRESSIONS,
    because the condition is that of a join."""
    one_row = f"VALUES (1) AS {ew.PREFIX}one ({ew.PREFIX}n)"
    query = condition.new().raw(f"SELECT 1 FROM {_null_row_relation(table)}\nJOIN {one_row}\nON (")
    return query.add(condition).raw("\n)")


def _null_row_relation(table: Table) -> str:
    """Return SQL of a relation, with an alias, that has one row of NULLs, in the table's columns
    and types: Spark can analyse a condition over it without the table."""
    columns = (
        f"CAST(NULL AS {shown_type(column.type)}) AS {quote(column.name)}"
        for column in table.all_columns
    )
    # Without an alias, Spark reads WHERE (a) as an alias and the name of a column.
    return f"(SELECT {', '.join(columns)}) AS {ew.PREFIX}row"


def columns_of(condition: str, columns: Sequence[Column]) -> list[Column]:
    """Return those of ``columns`` that a condition names, in their order. A field of a struct with
    a column's name counts, too."""
    chains = mentioned_columns(condition, Span(0, len(condition))) if condition else ()
    names = {part for chain in chains for part in chain}
    return [column for column in columns if column.name in names]


def constraints_that_mention(table: Table, column_name: str) -> list[str]:
    """Return the names of a table's constraints that mention a column, whose name is as in the
    catalog. A FOREIGN KEY counts, too, if it refers to the column from within the same table. So
    does a CHECK with a struct's field of the same name."""
    return [
        constraint.name
        for constraint in table.constraints
        if column_name in constraint.columns
        or (constraint.parent == str(table.name) and column_name in constraint.parent_columns)
        or column_name
        in [
            checked_column.name
            for checked_column in columns_of(constraint.condition, table.all_columns)
        ]
    ]


def new_values(table: Table) -> list[str]:
    """Return SQL of the values of a new row, as readers will see them, over the columns of events,
    in the order of the table's columns."""
    data_values = [
        shown_sql(quote(column.name), column.type, zone_offset_micros=None)
        for column in table.columns
    ]
    return data_values + [
        partition_value(column, i) for i, column in enumerate(table.partition_columns)
    ]


def partition_value(column: Column, ordinal: int) -> str:
    """Return SQL of a new row's partition value, in the column's type, from the text that events
    have for it (as in a directory's name)."""
    value = f"CAST({ew.VALUE}{ordinal} AS {shown_type(column.type)})"
    return read_back_sql(value, column, is_partition=True)


def check_projections(table: Table, columns: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return two projections of events (lists of SQL expressions), to be applied one after the
    other; with them a row that breaks a CHECK constraint fails the job. The result has the columns
    of the events again.

    Args:
        table: The target.
        columns: The columns of the events.

    Returns:
        None if there is nothing to check: no constraint, or no new rows.
    """
    if not table.checks or ew.are_keys_alone(columns):
        return None
    reserved_names = [name for name in columns if name.startswith(ew.PREFIX)]
    written = [f"{quote(c.name)} AS {_WRITTEN}{i}" for i, c in enumerate(table.columns)]
    names = [quote(column.name) for column in table.all_columns]
    read_back = [f"{sql} AS {name}" for sql, name in zip(new_values(table), names, strict=True)]
    failing_case, _ = _failing_case(table, columns)
    # The first column is in every new row, so Spark never leaves the check out.
    other_values = (f"{_WRITTEN}{i}" for i in range(1, len(table.columns)))
    values = [f"{failing_case} ELSE {_WRITTEN}0 END", *other_values]
    checked_values = [f"{value} AS {name}" for value, name in zip(values, names, strict=False)]
    return [*reserved_names, *written, *read_back], [*reserved_names, *checked_values]


def _failing_case(table: Table, columns: Sequence[str]) -> tuple[str, dict[str, Span]]:
    """Return the beginning of a CASE, without ELSE and END, that fails the job for a new row for
    which a CHECK condition is false; and the place of each condition in it, by the constraint's
    name."""
    is_new = f"{ew.ACTION} & {ew.INSERT} <> 0 AND " if ew.ACTION in columns else ""
    text, places = "CASE", {}
    for name, condition in table.checks.items():
        text += f" WHEN {is_new}NOT ("
        places[name] = Span(len(text), len(text) + len(condition))
        text += f"{condition}\n) THEN {_violation_sql(table, name, condition)}"
    return text, places


def constraint_of_fragment(
    table: Table, columns: Sequence[str], fragment: str, start: int
) -> str | None:
    """Return the name of the constraint whose condition contains a fragment of the projections'
    SQL.

    Args:
        table: The target.
        columns: The columns of the events.
        fragment: The fragment that Spark's error shows.
        start: The fragment's place in the SQL expression, in code points.

    Returns:
        None if the fragment belongs to another expression.
    """
    text, places = _failing_case(table, columns)
    # Spark cuts the fragment at this place in UTF-16.
    fragment_and_rest = text.encode("utf-16-le")[2 * start :].decode("utf-16-le", "replace")
    if not fragment_and_rest.startswith(fragment):
        return None
    return next((name for name, at in places.items() if at.start <= start < at.end), None)


def _violation_sql(table: Table, constraint: str, condition: str) -> str:
    """Return SQL that fails the job with CHECK_CONSTRAINT_VIOLATION wherever it is evaluated. Its
    message names the constraint, and the row's values in the columns that ``condition`` names."""
    condition_columns = columns_of(condition, table.all_columns)
    violation = (
        f"A row breaks the CHECK constraint '{constraint}' of {table.name}: {condition} is false"
    )
    message_parts = (
        [literal(f"{violation} for "), values_text_sql(condition_columns)]
        if condition_columns
        else [literal(violation)]
    )
    message = f"concat({', '.join([*message_parts, literal('.')])})"
    return raise_dynamic_sql("CHECK_CONSTRAINT_VIOLATION", "23001", message)


def values_text_sql(columns: Sequence[Column]) -> str:
    """Return SQL of the values that a row has in these columns, as text for a message: ``a = 1, b =
    'x'``; "" for no columns."""
    words = ["''"]
    for number, column in enumerate(columns):
        words += [literal(f"{', ' if number else ''}{column.name} = "), _value_text_sql(column)]
    return f"concat({', '.join(words)})"


def _value_text_sql(column: Column) -> str:
    """Return SQL of a column's value as text for a message: strings in quotes, binaries as 0x…,
    NULL as NULL. The text, with its quotes, is cut after 100 characters (`_SHOWN_CHARACTERS`)."""
    name, kind = quote(column.name), parse_type(column.type)
    if kind.kind == "binary":
        text = f"concat('0x', hex({name}))"
    else:
        text = f"CAST({name} AS STRING)"
        text = f"concat('''', {text}, '''')" if kind.kind in ("string", "char", "varchar") else text
    return f"coalesce(left({text}, {_SHOWN_CHARACTERS}), 'NULL')"
