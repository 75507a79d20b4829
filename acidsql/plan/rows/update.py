"""Rewrites UPDATE to a query with one row for each row to change.

The writer makes two events of each row of the query: a delete event with the row id of the old row,
and an insert event with the new values.
"""

from __future__ import annotations

from collections.abc import Mapping

from acidsql.plan.rows.event_query import (
    EventQuery,
    RewriteContext,
    condition_hints,
    key_columns,
    partition_search,
    partition_text,
    refuse_window,
    single_value,
    update_action,
    value_name,
)
from acidsql.plan.rows.new_values import NewValue, assigned_values, column_values
from acidsql.plan.values.sqltext import Text
from acidsql.sql.binder import bind_assignments
from acidsql.sql.parsed.statements import Update
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote


def plan_update(statement: Update, context: RewriteContext) -> EventQuery:
    """Rewrite an UPDATE to a query (mode CHANGE or MOVE) with one row for each row to change: its
    key, the action, and all its values, new and old ones. Spark analyses the rows to change. If SET
    names a partition column, rows may move, so no ``partitions`` are searched for.

    Raises:
        AnalysisError: A name or a type does not fit.
        UnsupportedError: WHERE or a value has a window function, or a field is assigned DEFAULT.
    """
    alias = statement.qualifier
    bound = bind_assignments(context.text, context.table, alias, statement.assignments)
    new_values = {value_name(i): new for i, new in enumerate(assigned_values(context, bound))}
    rows = _rows_to_change(statement, alias, new_values, context)
    types = dict(context.analyse(rows))
    values = column_values(context, new_values, types, lambda column: quote(column.name))
    table = context.table
    action = update_action(table, values)
    query = (
        context.new()
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
    moves = bool(action & ew.MOVED)
    return EventQuery(
        table,
        query,
        ew.WriteMode.MOVE if moves else ew.WriteMode.CHANGE,
        None if moves else partition_search(context, alias, statement.where),
        hints=condition_hints(context, alias, statement.where),
    )


def _rows_to_change(
    statement: Update, alias: str, values: Mapping[str, NewValue], context: RewriteContext
) -> Text:
    """Compose a query for the rows to change: their keys, all their old values, and the values of
    SET under the names of ``values``, not converted. Raise UnsupportedError for a window function
    in WHERE."""
    rows = context.new(statement.ctes)
    columns: list[Text | str] = [*key_columns(alias)]
    columns += [f"{quote(alias)}.{quote(c.name)}" for c in context.table.all_columns]
    columns += [single_value(new.text(context)).raw(f" AS {name}") for name, new in values.items()]
    rows.raw("SELECT\n").commas(columns).raw(f"\nFROM {context.standin} AS {quote(alias)}")
    if statement.where is not None:
        refuse_window(context, statement.where)
        rows.raw("\nWHERE ").user(statement.where)
    return rows
