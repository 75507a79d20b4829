"""Resolves the columns of MERGE's clauses: which columns each clause sets, and to which value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.acid.table import Column, Table
from acidsql.errors import AnalysisError
from acidsql.plan.equated import Term, equated_in
from acidsql.plan.event_query import (
    Fields,
    Planned,
    default_fields,
    default_value,
    omitted_value,
    refuse_window,
    update_action,
)
from acidsql.plan.sqltext import Text
from acidsql.sql.binder import bind_assignments, bind_insert, is_default, value_span
from acidsql.sql.statements import (
    Action,
    InsertAction,
    Merge,
    MergeClause,
    UpdateAction,
    Value,
)
from acidsql.sql.tokens import Span
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote

PRESENT = f"{ew.PREFIX}present"  # true in each source row, NULL in a target row without a partner


@dataclass(frozen=True, slots=True)
class Bound:
    """A clause with its columns resolved.

    ``values`` maps a column's name to its new value, ``places`` to the value's place in the text.
    """

    table: Table
    clause: MergeClause
    values: dict[str, Text]
    places: dict[str, Span]

    @property
    def is_update(self) -> bool:
        """Whether the clause changes rows."""
        return self.clause.action is Action.UPDATE_ALL or isinstance(
            self.clause.action, UpdateAction
        )

    @property
    def action(self) -> int:
        """What the clause does, as an action of ``event_records``."""
        if self.is_update:
            return update_action(self.table, self.values)
        return ew.DELETE if self.clause.action is Action.DELETE else ew.INSERT


def bind(
    clause: MergeClause,
    statement: Merge,
    planned: Planned,
    source: Fields,
    terms: Sequence[Term],
) -> Bound:
    """Resolve the columns of one clause.

    Args:
        clause: The clause.
        statement: The statement.
        planned: The facts about the statement.
        source: The source's columns.
        terms: The terms of ON.

    Raises:
        AnalysisError: A name, a type or a number of values is wrong.
    """
    action = clause.action
    if isinstance(action, UpdateAction):
        return _bind_update(clause, action, statement, planned)
    if isinstance(action, InsertAction):
        return _bind_insert(clause, action, planned)
    if action is Action.DELETE:
        return Bound(planned.table, clause, {}, {})
    return _bind_star(clause, statement, planned, source, terms)


def _bind_update(
    clause: MergeClause, action: UpdateAction, statement: Merge, planned: Planned
) -> Bound:
    alias = statement.qualifier
    bound = bind_assignments(planned.text, planned.table, alias, action.assignments)
    values = {item.column.name: _value(item.value, item.column, planned) for item in bound}
    return Bound(planned.table, clause, values, {i.column.name: value_span(i.value) for i in bound})


def _bind_insert(clause: MergeClause, action: InsertAction, planned: Planned) -> Bound:
    # Without a list, the values are those of the columns that the user sees.
    table = planned.table if action.columns is not None else planned.before or planned.table
    bound = bind_insert(planned.text, table, action.columns, ())
    if len(bound.from_source) != len(action.values):
        raise AnalysisError(
            f"INSERT names {len(bound.from_source)} column(s) and gives {len(action.values)} "
            "value(s).",
            planned.text, clause.span.start, clause.span.end,
            condition="MERGE_INSERT_VALUE_COUNT_MISMATCH", sqlstate="21S01",
        )  # fmt: skip
    pairs = list(zip(bound.from_source, action.values, strict=True))
    values = {column.name: _value(value, column, planned) for column, value in pairs}
    places = {column.name: value_span(value) for column, value in pairs}
    omitted = [column for column in planned.table.all_columns if column.name not in values]
    return _with_omitted(clause, values, places, omitted, planned)


def _bind_star(
    clause: MergeClause,
    statement: Merge,
    planned: Planned,
    source: Fields,
    terms: Sequence[Term],
) -> Bound:
    """Resolve ``UPDATE SET *`` or ``INSERT *``, which take the source's columns by name."""
    given = {name.lower(): name for name, _ in source if name != PRESENT}
    is_update = clause.action is Action.UPDATE_ALL
    equated = {(one.column.name, one.name) for one in equated_in(terms)}
    values: dict[str, Text] = {}
    for column in planned.table.all_columns:
        if column.name not in given:
            if statement.evolves and is_update:
                continue  # the column keeps its value
            if is_update or column in planned.table.partition_columns:
                raise _star_error(planned, clause, column)
            continue
        is_placing = column in planned.table.partition_columns
        if is_update and is_placing and (column.name, column.name) in equated:
            continue  # the row is in the right partition
        name = quote(given[column.name])
        if statement.source_alias is not None:
            name = f"{quote(statement.source_alias)}.{name}"
        values[column.name] = planned.new().raw(name)
    places = dict.fromkeys(values, clause.span)
    omitted = [] if is_update else [c for c in planned.table.all_columns if c.name not in values]
    return _with_omitted(clause, values, places, omitted, planned)


def _with_omitted(
    clause: MergeClause,
    values: dict[str, Text],
    places: dict[str, Span],
    omitted: Sequence[Column],
    planned: Planned,
) -> Bound:
    types = default_fields(planned, omitted)
    for column in omitted:
        values[column.name] = planned.new().raw(omitted_value(planned, column, types))
        places[column.name] = clause.span
    return Bound(planned.table, clause, values, places)


def _value(value: Value, column: Column, planned: Planned) -> Text:
    if is_default(value):
        return planned.new().raw(default_value(planned, column))
    assert isinstance(value, Span)
    refuse_window(planned, value)
    return planned.new().user(value)


def _star_error(planned: Planned, clause: MergeClause, column: Column) -> AnalysisError:
    return AnalysisError(
        f"The source has no column '{column.name}', which * needs.",
        planned.text, clause.span.start, clause.span.end,
        condition="UNRESOLVED_COLUMN.WITH_SUGGESTION", sqlstate="42703",
    )  # fmt: skip
