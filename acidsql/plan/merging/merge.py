"""Rewrites MERGE to a query whose rows are events and marks of matches.

::

    target  JOIN  source  ON …           inner, left, right or full outer, as the clauses need
      └─ clause     the number of the first WHEN clause that is true, and its values
          └─ events     the values in the types of their columns, and the clause's action

``pairs`` makes the joined rows, in which each clause sees only the side that has a row.

If the statement has a WHEN MATCHED clause, every matched pair yields a row. If no clause applies to
the pair, the row only marks the match. By these rows the delete stage of the write finds target
rows with two matches. They are an error, as in Hive and Spark, unless the only WHEN MATCHED clause
is a DELETE without a condition.

A stand-in is the temporary view in the place of a table: of the target, and of a source that is the
name of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from acidsql.acid.table import Column
from acidsql.acid.values.predicate import ANYTHING
from acidsql.acid.values.types import HiveType
from acidsql.plan.merging.pairs import CLAUSE, OLD, joined_rows
from acidsql.plan.merging.partners import joining_columns
from acidsql.plan.rows import evolution
from acidsql.plan.rows.equated import Term, equated_in, terms_of_on
from acidsql.plan.rows.event_query import (
    DerivedView,
    EventQuery,
    Fields,
    Hints,
    ReducedQuery,
    RewriteContext,
    partition_text,
    value_name,
)
from acidsql.plan.rows.merge_clauses import PRESENT, BoundClause, bind_clause, source_name
from acidsql.plan.rows.new_values import column_values
from acidsql.plan.standins.query import expressions, view_name
from acidsql.plan.standins.text_predicates import condition_predicate
from acidsql.plan.values.sqltext import Text
from acidsql.sql.parsed.statements import Action, Matched, Merge
from acidsql.sql.queries.conditions import has_subquery
from acidsql.sql.text.tokens import tokenize
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote

_SHORT = 10_000  # characters


def derived_source(statement: Merge, blank: Text, source_view: str | None) -> DerivedView | None:
    """Return the source of a MERGE as a view over a query, which all readings of the source read,
    so that they read the same files. The view has the source's columns and `PRESENT`; its
    ``fields`` are not known yet, and ``is_short`` is what `_is_short` tells.

    Return None if the statement has a WITH clause and a subquery in ON, in a condition or in a
    value, which may read the WITH's tables. Then the statement stays one query, in which the source
    occurs once.
    """
    parts = expressions(statement) if statement.ctes is not None else ()
    if any(has_subquery(blank.source, part) for part in parts):
        return None
    query = blank.new(statement.ctes).raw("SELECT * FROM ")
    query.add(_source_text(statement, blank, source_view))
    return DerivedView(view_name(), query, is_short=_is_short(statement, blank.source))


def _is_short(statement: Merge, text: str) -> bool:
    """Whether the source is a text of at most 10,000 characters (`_SHORT`) that reads no table,
    such as VALUES in brackets: it begins with ``(SELECT`` or ``(VALUES`` and has neither FROM nor
    TABLE in it. False for a name, and for a statement with a WITH clause."""
    length = statement.source.end - statement.source.start
    if statement.source_name is not None or statement.ctes is not None or length > _SHORT:
        return False
    words = [token.upper for token in tokenize(text, statement.source)]
    return words[:2] in (["(", "SELECT"], ["(", "VALUES"]) and not {"FROM", "TABLE"} & {*words}


def plan_merge(
    statement: Merge, context: RewriteContext, source_view: str | None, derived: DerivedView | None
) -> EventQuery:
    """Rewrite a MERGE to one query for its events (insert and delete events, and marks of matches).
    If possible, the result also has a query for the same events that drops target rows without a
    partner before the join (``hints.reduced``). With ``derived``, this view is the result's
    ``source``. Spark analyses the source and the joined rows.

    Args:
        statement: The statement.
        context: The context of the rewrite.
        source_view: The stand-in of a source that is the name of an ACID table, or None.
        derived: The result of ``derived_source``.

    Raises:
        AnalysisError: A name, a type or a number of values is wrong.
        UnsupportedError: A condition or value has a window function, or a new column's name is
            taken.
    """
    if derived is None:
        source = _source_text(statement, context.new(), source_view, is_sealed=True)
        source_query = context.new(statement.ctes).raw("SELECT * FROM ").add(source)
    else:
        source = context.new().raw(f"{derived.view} AS {quote(source_name(statement))}")
        statement, source_query = replace(statement, ctes=None), derived.query
    fields = context.analyse(source_query)
    alias, on = statement.qualifier, statement.on
    predicate = (
        ANYTHING
        if _has_not_matched_by_source(statement)
        else condition_predicate(context.text, context.table, alias, on)
    )
    context = evolution.evolve_for_merge(statement, context, fields)
    terms = terms_of_on(statement, context, fields)
    bound = [bind_clause(clause, statement, context, fields, terms) for clause in statement.clauses]
    target = context.new().raw(context.standin)
    pairs = joined_rows(statement, context, target, source, bound)
    events = _event_columns(context, bound, dict(context.analyse(pairs)))
    mode, query = _write_mode(statement), _acting_pairs(statement, context, events, pairs)
    if derived is None:
        return EventQuery(context.table, query, mode, hints=Hints(target_predicate=predicate))
    reduced = _reduced_query(statement, context, source, fields, terms, bound, events)
    hints = Hints(target_predicate=predicate, reduced=reduced)
    return EventQuery(
        context.table, query, mode, source=replace(derived, fields=fields), hints=hints
    )


def _acting_pairs(
    statement: Merge, context: RewriteContext, events: Sequence[Text | str], pairs: Text
) -> Text:
    """Compose a query for the events of all pairs to which a clause applies. With a WHEN MATCHED
    clause, pairs that match yield a row in any case, which only marks the match. Other pairs are
    dropped."""
    query = context.new().raw("SELECT\n").commas(events)
    query.raw("\nFROM (").add(pairs).raw(f"\n)\nWHERE {CLAUSE} > 0")
    if any(clause.matched is Matched.MATCHED for clause in statement.clauses):
        query.raw(f" OR ({ew.WRITE_ID} IS NOT NULL AND {PRESENT})")
    return query


def _reduced_query(
    statement: Merge,
    context: RewriteContext,
    source: Text,
    fields: Fields,
    terms: Sequence[Term],
    bound_clauses: Sequence[BoundClause],
    events: Sequence[Text | str],
) -> ReducedQuery | None:
    """Compose the query for the same events that drops target rows without a partner before the
    join; return None if rows without a partner matter (NOT MATCHED BY SOURCE), or if ON has a
    subquery or compares no columns of both sides.

    Most rows of the target usually have no partner, and the join would shuffle all of them. Spark
    broadcasts the source's columns that ON needs. This query reads the source twice, so it is only
    right if the source gives the same rows both times.
    """
    alias = quote(statement.qualifier)
    if _has_not_matched_by_source(statement) or has_subquery(context.text, statement.on):
        return None
    joining = joining_columns(statement, context, fields, terms)
    if not joining:
        return None
    target = context.new().raw(f"(SELECT {alias}.* FROM {context.standin} AS {alias}")
    target.raw(" LEFT SEMI JOIN ").add(_broadcast_source(statement, context, source))
    target.raw("\nON ").user(statement.on).raw(")")
    pairs = joined_rows(statement, context, target, source, bound_clauses)
    partitions = tuple(
        (pair.column, pair.source_column[0])
        for pair in equated_in(terms)
        if pair.column in context.table.partition_columns and pair.source_column is not None
    )
    return ReducedQuery(_acting_pairs(statement, context, events, pairs), joining, partitions)


def _has_not_matched_by_source(statement: Merge) -> bool:
    """Whether the statement has a WHEN NOT MATCHED BY SOURCE clause, so that target rows without a
    partner in the source matter, too."""
    return any(clause.matched is Matched.NOT_MATCHED_BY_SOURCE for clause in statement.clauses)


def _broadcast_source(statement: Merge, context: RewriteContext, source: Text) -> Text:
    """Return the source as a relation with its alias, and with a hint that makes Spark broadcast
    it."""
    name = quote(source_name(statement))
    text = context.new().raw(f"(SELECT /*+ BROADCAST({name}) */ * FROM ").add(source)
    return text.raw(f") AS {name}")


def _write_mode(statement: Merge) -> ew.WriteMode:
    """Return MERGE_WITH_REPEATS, which lets a target row match twice, if the only WHEN MATCHED
    clause is a DELETE without a condition; otherwise MERGE, in which a second match is an error."""
    matched = [c for c in statement.clauses if c.matched is Matched.MATCHED]
    if len(matched) == 1 and matched[0].action is Action.DELETE and not matched[0].condition:
        return ew.WriteMode.MERGE_WITH_REPEATS
    return ew.WriteMode.MERGE


def _source_text(
    statement: Merge, blank: Text, view: str | None, *, is_sealed: bool = False
) -> Text:
    """Compose the source as a relation with its alias, and a column `PRESENT` that is true.

    ``view``: the stand-in of a source that is a table's name; None: the user's text of the source.
    ``is_sealed``: Spark evaluates each source row once (``repeatable.prevent_reevaluation``).
    """
    columns = f"*, true AS {PRESENT}"
    columns = f"inline(array(struct({columns})))" if is_sealed else columns
    text = blank.new().raw(f"(SELECT {columns} FROM ")
    if view is not None:
        text.raw(view)
    else:
        text.verbatim(statement.source)
    alias = quote(source_name(statement))
    if statement.source_alias is not None:
        text.raw(f" AS {alias}")
        if statement.source_columns is not None:
            text.raw(f" ({', '.join(map(quote, statement.source_columns))})")
    return text.raw(f"\n) AS {alias}")


def _event_columns(
    context: RewriteContext, bound_clauses: Sequence[BoundClause], pair_types: dict[str, HiveType]
) -> list[Text | str]:
    """Return SQL of the columns of a MERGE's events, over the joined pairs: the target row's key,
    without the partition for an insert; the action, MATCHED where no clause applies; and, unless
    all clauses delete, the new values: data columns, then the partition values as text."""
    table = context.table
    clause_values = _fitted_values(context, bound_clauses, pair_types)
    inserts = [str(n) for n, item in enumerate(bound_clauses, 1) if item.action == ew.INSERT]
    action = "".join(f" WHEN {n} THEN {item.action}" for n, item in enumerate(bound_clauses, 1))
    keys = [
        # For an insert the partition comes from the new values: there is no target row.
        f"CASE WHEN {CLAUSE} IN ({', '.join(inserts)}) THEN NULL ELSE {name} END AS {name}"
        if inserts and name == ew.PARTITION
        else name
        for name in ew.KEYS
    ]
    keys.append(f"CASE {CLAUSE}{action} ELSE {ew.MATCHED} END AS {ew.ACTION}")
    if all(item.action == ew.DELETE for item in bound_clauses):
        return [*keys]
    columns = {
        column.name: _new_value_sql(i, column, bound_clauses, clause_values)
        for i, column in enumerate(table.all_columns)
    }
    return [
        *keys,
        *(f"{columns[c.name]} AS {quote(c.name)}" for c in table.columns),
        *(
            partition_text(columns[column.name], column, ordinal)
            for ordinal, column in enumerate(table.partition_columns)
        ),
    ]


def _fitted_values(
    context: RewriteContext, bound_clauses: Sequence[BoundClause], pair_types: dict[str, HiveType]
) -> dict[tuple[int, str], str]:
    """Return (clause number from 1, column name) → SQL of the clause's value, converted to the
    column's type. ``pair_types``: the types of the joined rows' columns. Raise AnalysisError if one
    does not fit."""
    ordinals = {column.name: i for i, column in enumerate(context.table.all_columns)}
    fitted: dict[tuple[int, str], str] = {}
    first = 0
    for number, item in enumerate(bound_clauses, 1):
        values = {value_name(i): new for i, new in enumerate(item.values, first)}
        first += len(values)
        columns = column_values(
            context, values, pair_types, lambda c: f"{OLD}{ordinals[c.name]}",
            # UPDATE SET * with schema evolution keeps fields, as columns, that the source lacks.
            keeps_missing_fields=item.clause.action is Action.UPDATE_ALL,
        )  # fmt: skip
        fitted.update(((number, name), sql) for name, sql in columns.items())
    return fitted


def _new_value_sql(
    ordinal: int,
    column: Column,
    bound_clauses: Sequence[BoundClause],
    clause_values: dict[tuple[int, str], str],
) -> str:
    """Return SQL of a column's value in the events of a MERGE, by the clause that applies to the
    pair: the value that the clause sets, or the old value if an UPDATE clause does not set the
    column. For a DELETE, and where no clause applies, nobody uses the value, which may be NULL.
    ``clause_values``: by clause number, from 1, and column name.

    If every UPDATE clause sets the column, the SQL does not mention the old value, and Spark need
    not read it.
    """
    branches = "".join(
        f" WHEN {number} THEN {clause_values[number, column.name]}"
        for number in range(1, len(bound_clauses) + 1)
        if (number, column.name) in clause_values
    )
    old = f"{OLD}{ordinal}"
    if not branches:
        return old
    is_kept = any(
        item.is_update and (number, column.name) not in clause_values
        for number, item in enumerate(bound_clauses, 1)
    )
    return f"CASE {CLAUSE}{branches}{f' ELSE {old}' if is_kept else ''} END"
