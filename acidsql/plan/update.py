"""Rewrites UPDATE to a query with one row for each row to change.

The writer makes two events of each row of the query: a delete event with the row id of the old row,
and an insert event with the new values.
"""

from __future__ import annotations

from collections.abc import Mapping

from acidsql.plan.event_query import (
    EventQuery,
    Planned,
    key_columns,
    may_be_few,
    partition_text,
    refuse_window,
    single,
    touched_partitions,
    update_action,
    value_name,
)
from acidsql.plan.new_values import NewValue, column_values, set_values
from acidsql.plan.sqltext import Text
from acidsql.plan.text_predicates import condition_predicate
from acidsql.sql.binder import bind_assignments
from acidsql.sql.statements import Update
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote


def plan_update(statement: Update, planned: Planned) -> EventQuery:
    """Rewrite an UPDATE.

    Raises:
        AnalysisError: A name or a type does not fit.
    """
    alias = statement.qualifier
    bound = bind_assignments(planned.text, planned.table, alias, statement.assignments)
    new_values = {value_name(i): new for i, new in enumerate(set_values(planned, bound))}
    rows = _rows_to_change(statement, alias, new_values, planned)
    types = dict(planned.analyse(rows))
    values = column_values(planned, new_values, types, lambda column: quote(column.name))
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
        target_predicate=condition_predicate(planned.text, planned.table, alias, statement.where),
        maybe_few=may_be_few(planned.text, statement.where),
    )


def _rows_to_change(
    statement: Update, alias: str, values: Mapping[str, NewValue], planned: Planned
) -> Text:
    """The rows to change: their keys, their old values, and the values of SET."""
    rows = planned.new(statement.ctes)
    columns: list[Text | str] = [*key_columns(alias)]
    columns += [f"{quote(alias)}.{quote(c.name)}" for c in planned.table.all_columns]
    columns += [single(new.text(planned)).raw(f" AS {name}") for name, new in values.items()]
    rows.raw("SELECT\n").commas(columns).raw(f"\nFROM {planned.standin} AS {quote(alias)}")
    if statement.where is not None:
        refuse_window(planned, statement.where)
        rows.raw("\nWHERE ").user(statement.where)
    return rows
