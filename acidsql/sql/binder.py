"""Binds a statement to its table: resolves column names, and finds each column's value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.acid.table import Column, Table
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.sql.statements import Assignment, Default, Name, PartitionItem, Value
from acidsql.sql.tokens import Span


@dataclass(frozen=True, slots=True)
class BoundAssignment:
    """A column and its new value."""

    column: Column
    value: Value


@dataclass(frozen=True, slots=True)
class InsertColumns:
    """The columns that an INSERT's values go to.

    Attributes:
        from_source: The table's columns that get the source's columns, in the source's order.
        static: The partition columns with a value in PARTITION (…), and the value's place.
        omitted: The columns that get their default, or NULL.
    """

    from_source: tuple[Column, ...]
    static: tuple[tuple[Column, Span], ...]
    omitted: tuple[Column, ...]


def bind_insert(
    text: str,
    table: Table,
    columns: Sequence[Name] | None,
    partition: Sequence[PartitionItem],
) -> InsertColumns:
    """Resolve an INSERT's column list and PARTITION clause.

    Raises:
        AnalysisError: A column does not exist or is named twice, or PARTITION (…) names only some
            of the partition columns.
    """
    static = bind_partition(text, table, partition)
    taken = {column.name for column, _ in static}
    if columns is None:
        wanted = [column for column in table.all_columns if column.name not in taken]
        return InsertColumns(tuple(wanted), static, ())
    named: list[Column] = []
    for name in columns:
        column = need_column(text, table, name)
        if column.name in taken:
            raise _error(
                text, name.span, "DUPLICATE_ASSIGNMENTS", "42701",
                f"Column '{column.name}' is given twice.",
            )  # fmt: skip
        taken.add(column.name)
        named.append(column)
    omitted = tuple(column for column in table.all_columns if column.name not in taken)
    return InsertColumns(tuple(named), static, omitted)


def bind_assignments(
    text: str, table: Table, alias: str, assignments: Sequence[Assignment]
) -> tuple[BoundAssignment, ...]:
    """Resolve the columns of SET.

    Raises:
        AnalysisError: A column does not exist or is assigned twice.
        UnsupportedError: SET assigns a field of a struct.
    """
    bound: list[BoundAssignment] = []
    for assignment in assignments:
        column = _assigned_column(text, table, alias, assignment.target)
        if any(column is other.column for other in bound):
            raise _error(
                text, assignment.target.span, "DUPLICATE_ASSIGNMENTS", "42701",
                f"Column '{column.name}' is assigned twice.",
            )  # fmt: skip
        bound.append(BoundAssignment(column, assignment.value))
    return tuple(bound)


def default_sql(column: Column) -> str:
    """The SQL of DEFAULT for a column: the column's default, or NULL."""
    return f"({column.default}\n)" if column.default else "NULL"


def is_default(value: Value) -> bool:
    """Whether a value is the word DEFAULT."""
    return isinstance(value, Default)


def value_span(value: Value) -> Span:
    """The place of a value in the user's text."""
    return value.span if isinstance(value, Default) else value


def bind_partition(
    text: str, table: Table, partition: Sequence[PartitionItem], *, is_whole: bool = True
) -> tuple[tuple[Column, Span], ...]:
    """Resolve a PARTITION clause: the columns that it names a value for, and the values.

    ``is_whole``: it must name all partition columns, if any.

    Raises:
        AnalysisError: A column is no partition column, is named twice, or is missing.
    """
    names = {column.name: column for column in table.partition_columns}
    static: list[tuple[Column, Span]] = []
    seen: set[str] = set()
    for item in partition:
        column = names.get(item.name.lower())
        if column is None:
            raise _error(
                text, item.span, "PARTITION_COLUMN_NOT_FOUND", "42703",
                f"'{item.name}' is not a partition column of {table.name}"
                + (f" ({', '.join(names)})." if names else ", which is not partitioned."),
            )  # fmt: skip
        if column.name in seen:
            raise _error(
                text, item.span, "DUPLICATE_KEY", "23505",
                f"Partition column '{column.name}' is named twice.",
            )  # fmt: skip
        seen.add(column.name)
        if item.value is not None:
            static.append((column, item.value))
    if partition and is_whole and (missing := [name for name in names if name not in seen]):
        raise _error(
            text, partition[0].span, "NEED_PARTITION", "42000",
            f"PARTITION (…) must name every partition column; '{missing[0]}' is missing.",
        )  # fmt: skip
    return tuple(static)


def _assigned_column(text: str, table: Table, alias: str, target: Name) -> Column:
    parts = list(target.parts)
    names = {column.name for column in table.all_columns}
    if len(parts) > 1 and parts[0].lower() == alias.lower():
        parts = parts[1:]
    elif len(parts) > 2 and f"{parts[0]}.{parts[1]}".lower() == str(table.name):
        parts = parts[2:]
    if len(parts) > 1 and parts[0].lower() in names:
        raise UnsupportedError(
            f"SET assigns whole columns; assign '{parts[0]}' as a struct (named_struct(…)).",
            text, target.span.start, target.span.end,
            condition="UNSUPPORTED_FEATURE.NESTED_ASSIGNMENT",
        )  # fmt: skip
    return need_column(text, table, Name((".".join(parts),), target.span))


def need_column(text: str, table: Table, name: Name) -> Column:
    """The column of that name. Raises AnalysisError if the table has none."""
    for column in table.all_columns:
        if column.name == name.parts[-1].lower():
            return column
    known = ", ".join(f"`{column.name.replace('`', '``')}`" for column in table.all_columns)
    raise _error(
        text, name.span, "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703",
        f"{table.name} has no column '{name.parts[-1]}'. Its columns are {known}.",
    )  # fmt: skip


def column_of(text: str, table: Table, name: Name) -> Column:
    """The column that a statement of DDL names. Raises AnalysisError COLUMN_NOT_FOUND."""
    stated = ".".join(name.parts)
    for column in table.all_columns:
        if column.name == stated.lower():
            return column
    message = f"There is no column '{stated}' in {table.name}."
    raise _error(text, name.span, "COLUMN_NOT_FOUND", "42703", message)


def _error(text: str, span: Span, condition: str, sqlstate: str, message: str) -> AnalysisError:
    return AnalysisError(
        message, text, span.start, span.end, condition=condition, sqlstate=sqlstate
    )
