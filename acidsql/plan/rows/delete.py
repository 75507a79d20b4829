"""Rewrites DELETE to a query whose rows are delete events.

A delete event has the key of the row that it removes: the row id and the partition.
"""

from __future__ import annotations

from acidsql.plan.rows.event_query import (
    EventQuery,
    RewriteContext,
    condition_hints,
    key_columns,
    partition_search,
    refuse_window,
)
from acidsql.sql.parsed.statements import Delete
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote


def plan_delete(statement: Delete, context: RewriteContext) -> EventQuery:
    """Rewrite a DELETE to a query (mode CHANGE) for the keys of the rows to delete, with the action
    DELETE. The result also has the `partition_search` and the `condition_hints` of WHERE. Spark
    analyses the query if there is a WHERE.

    Raises:
        AnalysisError: A name or a type in WHERE is wrong.
        UnsupportedError: WHERE has a window function.
    """
    alias = statement.qualifier
    query = context.new(statement.ctes)
    query.raw("SELECT\n").commas([*key_columns(alias), f"{ew.DELETE} AS {ew.ACTION}"])
    query.raw(f"\nFROM {context.standin} AS {quote(alias)}")
    if statement.where is not None:
        refuse_window(context, statement.where)
        query.raw("\nWHERE ").user(statement.where)
        context.analyse(query)
    return EventQuery(
        context.table,
        query,
        ew.WriteMode.CHANGE,
        partition_search(context, alias, statement.where),
        hints=condition_hints(context, alias, statement.where),
    )
