"""Rewrites INSERT … REPLACE to a query whose rows delete the replaced rows and insert the new ones.

::

    new rows                                        insert events
      UNION ALL
    target  WHERE condition                         delete events of REPLACE WHERE
    target  LEFT SEMI JOIN new rows  ON columns     delete events of REPLACE USING

A NULL equals nothing, so REPLACE USING does not replace rows with a NULL in a column. It reads the
new rows twice, so they are evaluated once, before.
"""

from __future__ import annotations

from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.plan.rows.event_query import (
    DerivedView,
    EventQuery,
    RewriteContext,
    key_columns,
    refuse_window,
)
from acidsql.plan.rows.insert import plan_insert
from acidsql.plan.rows.stars import first_star
from acidsql.plan.standins.query import view_name
from acidsql.plan.values.assignment import raise_sql
from acidsql.plan.values.checks import new_values
from acidsql.plan.values.sqltext import Text
from acidsql.sql.binder import require_column
from acidsql.sql.parsed.statements import Insert
from acidsql.sql.queries.conditions import has_subquery
from acidsql.sql.text.tokens import Span
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote

_NEW = f"{ew.PREFIX}new"


def plan_replace(
    statement: Insert, context: RewriteContext
) -> tuple[EventQuery, DerivedView | None]:
    """Rewrite an INSERT … REPLACE to a query (mode MERGE) that inserts the new rows and deletes the
    old ones. Spark analyses the source, and the condition of REPLACE WHERE.

    Args:
        statement: The statement.
        context: The context of the rewrite.

    Returns:
        The query, and the view over the new rows that it reads. For REPLACE WHERE the view is the
        query's ``source``, and the second member is None; for REPLACE USING it is the second
        member, because the query reads it twice.

    Raises:
        AnalysisError: A name, a type or a number of values is wrong.
        UnsupportedError: The condition has a subquery, a window function or a ``*``.
    """
    replacing = statement.replacing
    assert replacing is not None
    inserts, target = plan_insert(statement, context), statement.target.parts[-1]
    old = context.new().raw(f"{context.standin} AS {quote(target)}")
    new = DerivedView(view_name(), _new_rows(context, inserts.query), chars=context.table)
    if replacing.where is not None:
        condition = _checked_condition(context, replacing.where)
        _need_boolean(context, replacing.where, condition, old)
        old.raw("\nWHERE ").add(condition)
        rows, action = f"{new.view} AS {quote(target)}", _checked_action(condition)
    else:
        columns = [require_column(context.text, context.table, name) for name in replacing.using]
        equalities = (f"{quote(target)}.{quote(c.name)} = {_NEW}.{quote(c.name)}" for c in columns)
        old.raw(f" LEFT SEMI JOIN {new.view} AS {_NEW}\nON " + " AND ".join(equalities))
        rows, action = new.view, context.new().raw(str(ew.INSERT))
    query = _insert_events(context, rows, action)
    query.raw("\nUNION ALL\n").add(_delete_events(context, old, target))
    if replacing.where is not None:
        return EventQuery(context.table, query, ew.WriteMode.MERGE, source=new), None
    return EventQuery(context.table, query, ew.WriteMode.MERGE), new


def _checked_condition(context: RewriteContext, where: Span) -> Text:
    """Compose the condition of REPLACE WHERE. Raise UnsupportedError for a window function, a ``*``
    that stands for columns, or a subquery."""
    refuse_window(context, where)
    if (star := first_star(context.text, where, context.double_quoted)) is not None:
        raise UnsupportedError(
            "A * in REPLACE WHERE is not supported: name the columns.",
            context.text, star.start, star.end, condition="UNSUPPORTED_FEATURE.STAR",
        )  # fmt: skip
    if has_subquery(context.text, where):
        raise UnsupportedError(
            "REPLACE WHERE takes no subquery, because old and new rows must satisfy the same "
            "condition. Use REPLACE USING, or DELETE and INSERT in one transaction.",
            context.text, where.start, where.end,
            condition="UNSUPPORTED_FEATURE.REPLACE_WHERE_SUBQUERY",
        )  # fmt: skip
    return context.new().user(where)


def _need_boolean(
    context: RewriteContext, where: Span, condition: Text, target_relation: Text
) -> None:
    """Let Spark analyse the condition of REPLACE WHERE; raise AnalysisError if it is not one column
    that is a BOOLEAN or NULL. ``target_relation``: the target's rows."""
    condition_fields = context.analyse(
        context.new().raw("SELECT ").add(condition).raw(" FROM ").add(target_relation)
    )
    if len(condition_fields) != 1 or condition_fields[0][1].kind not in ("boolean", "void"):
        raise AnalysisError(
            "The condition of REPLACE WHERE is neither true nor false.",
            context.text, where.start, where.end,
            condition="DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", sqlstate="42K09",
        )  # fmt: skip


def _checked_action(condition: Text) -> Text:
    """Compose SQL of the action of a new row: INSERT; it fails the job if the condition of REPLACE
    WHERE is false or NULL for the row."""
    failure = raise_sql(
        "REPLACE_WHERE_MISMATCH",
        "44000",
        "A new row does not satisfy the condition of REPLACE WHERE, so it would not replace what "
        "it stands for. Leave such rows out of the query.",
    )
    action = condition.new().raw("CASE WHEN ").add(condition)
    return action.raw(f" THEN {ew.INSERT} ELSE {failure} END")


def _new_rows(context: RewriteContext, inserts: Text) -> Text:
    """Compose a query for the new rows of an INSERT, over the query of its events: the table's
    columns, partition columns too, as readers will see them, then the partition values as texts."""
    table = context.table
    pairs = zip(new_values(table), table.all_columns, strict=True)
    columns: list[Text | str] = [f"{value} AS {quote(column.name)}" for value, column in pairs]
    columns += [f"{ew.VALUE}{ordinal}" for ordinal in range(len(table.partition_columns))]
    return context.new().raw("SELECT ").commas(columns).raw("\nFROM (").add(inserts).raw("\n)")


def _insert_events(context: RewriteContext, new_relation: str, action: Text) -> Text:
    """Compose a query for the insert events of the rows of ``new_relation``: NULLs as the old row's
    key, then ``action``, and the values."""
    columns: list[Text | str] = [f"NULL AS {key}" for key in ew.KEYS]
    columns += [context.new().add(action).raw(f" AS {ew.ACTION}"), *_values(context)]
    return context.new().raw("SELECT ").commas(columns).raw(f"\nFROM {new_relation}")


def _delete_events(context: RewriteContext, old_relation: Text, target_alias: str) -> Text:
    """Compose a query for the delete events of the rows of ``old_relation``: their keys, the action
    DELETE, and NULLs as values. The columns have no names of their own."""
    columns = [*key_columns(target_alias), str(ew.DELETE), *(["NULL"] * len(_values(context)))]
    return context.new().raw("SELECT ").commas(list(columns)).raw("\nFROM ").add(old_relation)


def _values(context: RewriteContext) -> list[str]:
    """Return the names of the columns that hold a new row in an event query: data columns, then the
    partition values."""
    table = context.table
    names = [quote(column.name) for column in table.columns]
    return names + [f"{ew.VALUE}{ordinal}" for ordinal in range(len(table.partition_columns))]
