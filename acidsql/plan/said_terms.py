"""What the plain terms of a WHERE say about a table's rows, read off the text.

Spark's optimised plan tells more (``demands``), but it is not always to be had: a server of Spark
Connect keeps it, and a plan with the current time is another one later.
"""

from __future__ import annotations

import re

from acidsql.acid.predicate import (
    ANYTHING,
    INTEGERS,
    Comparison,
    Predicate,
    Value,
    all_of,
)
from acidsql.acid.table import Column
from acidsql.plan.event_query import Planned
from acidsql.sql.conditions import plain_comparisons
from acidsql.sql.tokens import Span

_BITS = dict(zip(INTEGERS, (7, 15, 31, 63), strict=True))
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def said(planned: Planned, alias: str, where: Span | None) -> Predicate:
    """A predicate that holds for each row of the target for which WHERE is true."""
    if where is None or "${" in planned.text:  # a server replaces variables later
        return ANYTHING
    columns = {column.name.lower(): column for column in planned.table.all_columns}
    terms = []
    for name, operator, literals in plain_comparisons(planned.text, where, {alias.lower()}):
        if (column := columns.get(name)) is None:
            continue
        values = [_value(column, literal) for literal in literals]
        known = tuple(value for value in values if value is not None)
        if len(known) == len(literals):
            terms.append(Comparison(name, operator, known))
    return all_of(terms)


def _value(column: Column, literal: str) -> Value | None:
    """The literal as a value of the column's type; None if Spark compares other types."""
    kind = "string" if column.type.startswith("varchar") else column.type
    word, quote, text = literal.partition("'")
    if not quote and kind in _BITS and -(1 << _BITS[kind]) <= int(literal) < 1 << _BITS[kind]:
        return Value(kind, str(int(literal)))
    if quote and not word and kind == "string":
        return Value(kind, text[:-1])
    if word and quote and kind == "date" and _DAY.fullmatch(text[:-1]):
        return Value(kind, text[:-1])
    return None
