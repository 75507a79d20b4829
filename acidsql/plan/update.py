"""Rewrites UPDATE to a query with one row for each row to change.

The writer makes two events of each row of the query: a delete event with the row id of the old row,
and an insert event with the new values.
"""

from __future__ import annotations

from acidsql.plan.event_query import (
    EventQuery,
    Planned,
    assigned,
    default_value,
    key_columns,
    may_be_few,
    partition_text,
    refuse_window,
    single,
    touched_partitions,
    update_action,
    value_name,
)
from acidsql.plan.said_terms import said
from acidsql.plan.sqltext import Text
from acidsql.sql.binder import (
    BoundAssignment,
    bind_assignments,
    is_default,
    value_span,
)
from acidsql.sql.statements import Update
from acidsql.sql.tokens import Span
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote


def plan_update(statement: Update, planned: Planned) -> EventQuery:
    """Rewrite an UPDATE.

    Raises:
        AnalysisError: A name or a type does not fit.
    """
    alias = statement.qualifier
    bound = bind_assignments(planned.text, planned.table, alias, statement.assignments)
    rows = _new_values(statement, alias, bound, planned)
    kinds = dict(planned.analyse(rows))
    values = {
        item.column.name: assigned(
            planned, value_name(i), kinds[value_name(i)], item.column, value_span(item.value)
        )
        for i, item in enumerate(bound)
    }
    table = planned.table
    action = update_action(table, values)
    query = (
        planned.new()
        .raw("SELECT\n")
        .commas(
            [
                *ew.KEYS,
                f"{action} AS {ew.ACTION}",
                *(f"{values.get(c.name, quote(c.name))} AS {quote(c.name)}" for c in table.columns),
                *(
                    partition_text(values.get(column.name, quote(column.name)), column, ordinal)
                    for ordinal, column in enumerate(table.partition_columns)
                ),
            ]
        )
    )
    query.raw("\nFROM (").add(rows).raw("\n)")
    # Rows that move change partitions that WHERE does not tell.
    moves = action & ew.MOVED
    partitions = None if moves else touched_partitions(planned, alias, statement.where)
    return EventQuery(
        table,
        query,
        deletes=True,
        partitions=partitions,
        said=said(planned.text, planned.table, alias, statement.where),
        maybe_few=may_be_few(planned.text, statement.where),
    )


def _new_values(
    statement: Update, alias: str, bound: tuple[BoundAssignment, ...], planned: Planned
) -> Text:
    """The rows to change: their keys, their old values, and the values of SET."""
    rows = planned.new(statement.ctes)
    columns: list[Text | str] = [*key_columns(alias)]
    columns += [f"{quote(alias)}.{quote(c.name)}" for c in planned.table.all_columns]
    columns += [_value(item, planned).raw(f" AS {value_name(i)}") for i, item in enumerate(bound)]
    rows.raw("SELECT\n").commas(columns).raw(f"\nFROM {planned.standin} AS {quote(alias)}")
    if statement.where is not None:
        refuse_window(planned, statement.where)
        rows.raw("\nWHERE ").user(statement.where)
    return rows


def _value(item: BoundAssignment, planned: Planned) -> Text:
    if is_default(item.value):
        return planned.new().raw(default_value(planned, item.column))
    assert isinstance(item.value, Span)
    refuse_window(planned, item.value)
    return single(planned.new().user(item.value))
