"""Derives a predicate about a table's rows from the text of a WHERE, or of MERGE's ON.

Only plain terms count: comparisons of a column with literals. Spark's optimised plan tells more
(``demands``), but it is not always available: a server of Spark Connect does not hand the plan out,
and a plan that contains the current time changes from run to run.
"""

from __future__ import annotations

import re

from acidsql.acid.table import Column, Table
from acidsql.acid.values.predicate import (
    ANYTHING,
    INTEGERS,
    Comparison,
    Predicate,
    TypedValue,
    conjunction,
)
from acidsql.plan.standins.standins import StandIn
from acidsql.sql.queries.conditions import plain_comparisons, where_at
from acidsql.sql.text.tokens import Span, words_before

_BITS = dict(zip(INTEGERS, (7, 15, 31, 63), strict=True))
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def condition_predicate(
    text: str, table: Table, alias: str, condition: Span | None, *, leading: bool = False
) -> Predicate:
    """Return a predicate that holds for each row of a table for which the condition is true, from
    the terms that compare a column with literals of its type. It is ANYTHING if there are none, no
    condition (None), or a variable ``${…}`` in the text.

    ``alias``: the only qualifier that the columns may have. ``leading``: only the terms before the
    first of another kind count, because the condition may end there.
    """
    if condition is None or "${" in text:  # a server replaces variables later
        return ANYTHING
    columns = {column.name.lower(): column for column in table.all_columns}
    terms, qualifiers = [], {alias.lower()}
    for name, operator, literals in plain_comparisons(text, condition, qualifiers, leading=leading):
        if (column := columns.get(name)) is None:
            continue
        values = [_value(column, literal) for literal in literals]
        known_values = tuple(value for value in values if value is not None)
        if len(known_values) == len(literals):
            terms.append(Comparison(name, operator, known_values))
    return conjunction(terms)


_WHERE = re.compile(r"\s+WHERE\b", re.IGNORECASE)


def where_predicate(standin: StandIn) -> Predicate:
    """Return a predicate that holds for each row that a query needs of the table in whose place a
    stand-in (a view) stands.

    It is derived from WHERE if the table's name stands alone between FROM and WHERE; otherwise, and
    behind TABLESAMPLE, it is ANYTHING.
    """
    if standin.text_and_reference is None:
        return ANYTHING
    text, reference = standin.text_and_reference
    if reference.sample is not None:  # the sample is taken before WHERE filters
        return ANYTHING
    places = (reference.span, reference.alias_span, reference.time_travel, reference.properties)
    end = max(place.end for place in places if place is not None)
    where = _WHERE.match(text, end)
    if where is None or words_before(text, reference.span.start, 1) != ["FROM"]:
        return ANYTHING
    alias = reference.alias or reference.parts[-1]
    return condition_predicate(
        text, standin.table, alias, where_at(text, where.end()), leading=True
    )


def _value(column: Column, literal_text: str) -> TypedValue | None:
    """Return a literal, as its SQL text, as a value of a column's type: an integer for an integer
    column, a text for STRING or VARCHAR, DATE '…' for DATE. None if Spark would compare values of
    another type (a number with a text, a number out of range, a DATE with a text)."""
    kind = "string" if column.type.startswith("varchar") else column.type
    word, quote, text = literal_text.partition("'")
    if not quote and kind in _BITS and -(1 << _BITS[kind]) <= int(literal_text) < 1 << _BITS[kind]:
        return TypedValue(kind, str(int(literal_text)))
    if quote and not word and kind == "string":
        return TypedValue(kind, text[:-1])
    if word and quote and kind == "date" and _DAY.fullmatch(text[:-1]):
        return TypedValue(kind, text[:-1])
    return None
