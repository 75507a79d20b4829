"""Resolves the columns of MERGE's clauses: which columns each clause sets, and to which value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.acid.table import Column, Table
from acidsql.errors import AnalysisError
from acidsql.plan.rows.equated import Term, equated_in
from acidsql.plan.rows.event_query import (
    Fields,
    RewriteContext,
    default_fields,
    omitted_value,
    update_action,
)
from acidsql.plan.rows.new_values import NewValue, assigned_values, stated_value
from acidsql.sql.binder import bind_assignments, bind_insert
from acidsql.sql.parsed.statements import (
    Action,
    InsertAction,
    Merge,
    MergeClause,
    UpdateAction,
)
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote
from acidsql.suggestions import names_sentence

_SOURCE = f"{ew.PREFIX}source"
PRESENT = f"{ew.PREFIX}present"  # true in each source row, NULL in a target row without a partner


@dataclass(frozen=True, slots=True)
class BoundClause:
    """A clause with its columns resolved, and the new values that it gives to them, in order.
    ``table``: the target."""

    table: Table
    clause: MergeClause
    values: tuple[NewValue, ...] = ()

    @property
    def is_update(self) -> bool:
        """Whether the clause changes rows."""
        return self.clause.action is Action.UPDATE_ALL or isinstance(
            self.clause.action, UpdateAction
        )

    @property
    def action(self) -> int:
        """What the clause does, as an action of ``event_records``: INSERT, DELETE, or that of an
        update."""
        if self.is_update:
            return update_action(self.table, {new.column.name for new in self.values})
        return ew.DELETE if self.clause.action is Action.DELETE else ew.INSERT


def bind_clause(
    clause: MergeClause,
    statement: Merge,
    context: RewriteContext,
    source: Fields,
    terms: Sequence[Term],
) -> BoundClause:
    """Return one clause of a MERGE with its columns resolved, and with the new values.

    Args:
        clause: The clause.
        statement: The statement.
        context: The context of the rewrite.
        source: The source's columns.
        terms: The terms of ON.

    Raises:
        AnalysisError: A name, a type or a number of values is wrong.
        UnsupportedError: A value has a window function, or a field is assigned DEFAULT.
    """
    action = clause.action
    if isinstance(action, UpdateAction):
        return _bind_update(clause, action, statement, context)
    if isinstance(action, InsertAction):
        return _bind_insert(clause, action, statement, context)
    if action is Action.DELETE:
        return BoundClause(context.table, clause)
    return _bind_star(clause, statement, context, source, terms)


def _bind_update(
    clause: MergeClause, action: UpdateAction, statement: Merge, context: RewriteContext
) -> BoundClause:
    """Resolve ``UPDATE SET a = value, …``; only these columns are among the values. Raise
    AnalysisError for a wrong name, and UnsupportedError for a window function or DEFAULT of a
    field."""
    bound = bind_assignments(context.text, context.table, statement.qualifier, action.assignments)
    return BoundClause(context.table, clause, assigned_values(context, bound))


def _bind_insert(
    clause: MergeClause, action: InsertAction, statement: Merge, context: RewriteContext
) -> BoundClause:
    """Resolve ``INSERT [(columns)] VALUES (…)``; other columns get their DEFAULT. Without a list
    the values are those of the table's columns, in order, without columns that the statement itself
    adds. Raise AnalysisError if the numbers of columns and values differ."""
    # Without a list, the values are those of the columns that the user sees.
    table = context.table if action.columns is not None else context.table_before or context.table
    bound = bind_insert(context.text, table, action.columns, (), alias=statement.qualifier)
    if len(bound.from_source) != len(action.values):
        raise AnalysisError(
            f"INSERT names {len(bound.from_source)} column(s) and gives {len(action.values)} "
            "value(s).",
            context.text, clause.span.start, clause.span.end,
            condition="MERGE_INSERT_VALUE_COUNT_MISMATCH", sqlstate="21S01",
        )  # fmt: skip
    pairs = zip(bound.from_source, action.values, strict=True)
    return _insert_clause(clause, context, [stated_value(context, *pair) for pair in pairs])


def _bind_star(
    clause: MergeClause,
    statement: Merge,
    context: RewriteContext,
    source: Fields,
    terms: Sequence[Term],
) -> BoundClause:
    """Resolve ``UPDATE SET *`` or ``INSERT *``, which take the source's columns by name, in the
    order of the target. An UPDATE leaves out partition columns that ON equates with just these, if
    equal means the same value. Columns that the source may lack keep their values, or get their
    DEFAULTs in a new row. Raise AnalysisError if the source lacks a needed column."""
    is_update = clause.action is Action.UPDATE_ALL
    # The pairs have the source's spelling of the name, because in a case-sensitive session the
    # source may have p and P.
    equated_names = {
        (pair.column.name, pair.source_column[0])
        for pair in equated_in(terms)
        if pair.source_column is not None and pair.is_same
    }
    values: list[NewValue] = []
    for column in context.table.all_columns:
        name = _source_column_for(column, source, context, clause)
        if name is None:
            _refuse_missing_column(column, source, statement, context, clause)
            continue
        is_placing = column in context.table.partition_columns
        if is_update and is_placing and (column.name, name) in equated_names:
            continue  # the row is in the right partition
        sql = f"{quote(source_name(statement))}.{quote(name)}"
        values.append(NewValue(column, sql, clause.span))
    if is_update:
        return BoundClause(context.table, clause, tuple(values))
    return _insert_clause(clause, context, values)


def source_name(statement: Merge) -> str:
    """Return the name of the source in composed text: its alias, or a reserved name if it has
    none."""
    return statement.source_alias or _SOURCE


def _source_column_for(
    column: Column, source: Fields, context: RewriteContext, clause: MergeClause
) -> str | None:
    """Return the name, as the source spells it, of the source's column that a target column gets by
    ``*``, whatever its case; None if there is none.

    In a case-sensitive session the source may have several columns of the name. As in Spark, the
    one in lower case counts, like the target's.

    Raises:
        AnalysisError: Several columns have the name in other letters, and none in lower case.
    """
    names = [name for name, _ in source if name.lower() == column.name]
    if column.name in names or len(names) < 2:
        return column.name if column.name in names else next(iter(names), None)
    raise AnalysisError(
        f"The source has {len(names)} columns for '{column.name}' ({', '.join(names)}), of which * "
        "would have to choose one.",
        context.text, clause.span.start, clause.span.end,
        condition="AMBIGUOUS_COLUMN_REFERENCE", sqlstate="42702",
    )  # fmt: skip


def _refuse_missing_column(
    column: Column,
    source: Fields,
    statement: Merge,
    context: RewriteContext,
    clause: MergeClause,
) -> None:
    """Raise AnalysisError if a clause with ``*`` cannot do without ``column``, which the source
    does not have.

    ``UPDATE SET *`` can only WITH SCHEMA EVOLUTION: a changed row keeps its value. ``INSERT *`` can
    if the column has a DEFAULT, or WITH SCHEMA EVOLUTION if it is no partition column: a new row
    gets NULL.
    """
    if clause.action is Action.UPDATE_ALL:
        may_lack = statement.evolves
    else:
        is_placing = column in context.table.partition_columns
        may_lack = column.default is not None or (statement.evolves and not is_placing)
    if not may_lack:
        source_names = [name for name, _ in source if name != PRESENT]
        columns = names_sentence(column.name, source_names)
        raise AnalysisError(
            f"The source has no column '{column.name}', which * needs. {columns}",
            context.text, clause.span.start, clause.span.end,
            condition="UNRESOLVED_COLUMN.WITH_SUGGESTION", sqlstate="42703",
        )  # fmt: skip


def _insert_clause(
    clause: MergeClause, context: RewriteContext, values: Sequence[NewValue]
) -> BoundClause:
    """Return a clause that inserts these values, and into all other columns their DEFAULTs (NULL if
    there is none)."""
    columns = {new.column.name for new in values}
    omitted = [column for column in context.table.all_columns if column.name not in columns]
    types = default_fields(context, omitted)
    defaults = [
        NewValue(column, omitted_value(context, column, types), clause.span) for column in omitted
    ]
    return BoundClause(context.table, clause, (*values, *defaults))
