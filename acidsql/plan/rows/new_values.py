"""The new values that SET, or a clause of MERGE, gives to columns and to fields of structs.

An inner query evaluates the user's values over the old row. An outer query converts them to the
types of their columns. Where fields are assigned, it makes a new struct from them and from the
other fields of the old one, as Spark does: a struct that was NULL becomes a struct whose other
fields are NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from acidsql.acid.table import Column
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.plan.rows.event_query import RewriteContext, assigned_sql, default_value, refuse_window
from acidsql.plan.values.sqltext import Text
from acidsql.sql.binder import BoundAssignment, is_default, value_span
from acidsql.sql.parsed.statements import Value
from acidsql.sql.text.tokens import Span
from acidsql.storage.columns import literal, quote

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewValue:
    """A new value.

    Attributes:
        column: The column that gets the value, or that has the field.
        value: The value's place in the user's text, or SQL of ours.
        place: The place in the user's text that an error about the value names.
        fields: The names of the fields that lead to the assigned one; () for the whole column.
    """

    column: Column
    value: Span | str
    place: Span
    fields: _Path = ()

    def text(self, context: RewriteContext) -> Text:
        """Return the value's SQL."""
        if isinstance(self.value, str):
            return context.new().raw(self.value)
        return context.new().user(self.value)


def stated_value(
    context: RewriteContext, column: Column, value: Value, fields: _Path = ()
) -> NewValue:
    """Return the new value that a statement gives: its place in the text, or for DEFAULT SQL of the
    column's default in the column's type. ``fields``: the names that lead to a field of the column;
    (): the whole column.

    Raises:
        UnsupportedError: The value has a window function.
    """
    place = value_span(value)
    if is_default(value):
        return NewValue(column, default_value(context, column), place, fields)
    refuse_window(context, place)
    return NewValue(column, place, place, fields)


def assigned_values(
    context: RewriteContext, bound: Iterable[BoundAssignment]
) -> tuple[NewValue, ...]:
    """Return the new values of SET, in its order. Raise UnsupportedError for a window function."""
    return tuple(
        stated_value(context, assignment.column, assignment.value, assignment.fields)
        for assignment in bound
    )


def column_values(
    context: RewriteContext,
    values: Mapping[str, NewValue],
    types: Mapping[str, HiveType],
    old: Callable[[Column], str],
    *,
    keeps_missing_fields: bool = False,
) -> dict[str, str]:
    """Return column name → SQL of the new value, in the column's type, of each column that gets
    one, or of which a field gets one: then the whole struct, in which other fields keep their old
    values.

    Args:
        context: The context of the rewrite.
        values: The new values, by the names under which the inner query passes them on.
        types: The types of the inner query's columns, by name.
        old: Gives SQL of a column's old value.
        keeps_missing_fields: Fields of structs that a value lacks keep their old values.

    Raises:
        AnalysisError: INCOMPATIBLE_DATA_FOR_TABLE: a column or field takes no values of this type.
    """
    columns: dict[str, Column] = {}
    fitted: dict[str, dict[_Path, str]] = {}
    for name, new in values.items():
        columns[new.column.name] = new.column
        at_path = fitted.setdefault(new.column.name, {})
        at_path[new.fields] = assigned_sql(
            context, name, types[name], _assignable_column(new), new.place,
            old=old(new.column) if keeps_missing_fields else None,
        )  # fmt: skip
    return {
        name: new[()]
        if () in new
        else _struct_with_fields(old(columns[name]), _type(columns[name]), new)
        for name, new in fitted.items()
    }


def _assignable_column(new_value: NewValue) -> Column:
    """Return the column that a new value is for; for a field, a column with the field's path as
    name, and the field's type."""
    if not new_value.fields:
        return new_value.column
    node = _type(new_value.column)
    for field in new_value.fields:
        node = node.children[node.names.index(field)]
    path = ".".join((new_value.column.name, *new_value.fields))
    return replace(new_value.column, name=path, type=str(node))


def _struct_with_fields(old_sql: str, struct_type: HiveType, new_sql: Mapping[_Path, str]) -> str:
    """Return SQL of a struct with new values of some fields, at any depth. ``new_sql``: SQL by the
    names that lead to the field. A NULL struct becomes one with NULLs in its other fields."""
    parts: list[str] = []
    for name, child in zip(struct_type.names, struct_type.children, strict=True):
        new_parts = {path[1:]: sql for path, sql in new_sql.items() if path[0] == name}
        old_value = f"{old_sql}.{quote(name)}"
        if () in new_parts:
            value = new_parts[()]
        else:
            value = _struct_with_fields(old_value, child, new_parts) if new_parts else old_value
        parts.append(f"{literal(name)}, {value}")
    return f"named_struct({', '.join(parts)})"


def _type(column: Column) -> HiveType:
    return parse_type(column.type)
