"""Rewrites DELETE to a query whose rows are delete events."""

from __future__ import annotations

from acidsql.plan.rows.event_query import (
    EventQuery,
    RewriteContext,
    key_columns,
    may_be_few,
    refuse_window,
    touched_partitions,
)
from acidsql.plan.standins.text_predicates import condition_predicate
from acidsql.sql.parsed.statements import Delete
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote


def plan_delete(statement: Delete, context: RewriteContext) -> EventQuery:
    """Rewrite a DELETE to a query for the keys of the rows to delete. Spark analyses it if there is
    a WHERE.

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
    partitions = touched_partitions(context, alias, statement.where)
    return EventQuery(
        context.table,
        query,
        deletes=True,
        partitions=partitions,
        target_predicate=condition_predicate(context.text, context.table, alias, statement.where),
        may_collect=may_be_few(context.text, statement.where),
    )
