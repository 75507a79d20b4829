"""Parses AUTO CDC, whose clauses are those of Spark's and Databricks' AUTO CDC flows."""

from __future__ import annotations

from acidsql.errors import SqlError
from acidsql.sql.cdc_statements import EVERY, Choice
from acidsql.sql.cursor import Cursor
from acidsql.sql.frames import frame_name
from acidsql.sql.insert import IsAcid, column_list
from acidsql.sql.modify import table_or_query
from acidsql.sql.statements import AutoCdc, Name
from acidsql.sql.tokens import tokenize

_STARTS = ("KEYS (", "IGNORE NULL", "APPLY AS", "SEQUENCE BY", "STORED AS", "TRACK HISTORY")
_CLAUSES = (*_STARTS, "COLUMNS")
# Without its bracket, each of these two words may be an alias.
_NO_ALIAS = (*_STARTS, "COLUMNS (", "COLUMNS *")


def auto_cdc(c: Cursor, is_acid: IsAcid) -> AutoCdc | None:
    """Parse ``AUTO CDC INTO t FROM s KEYS (…) …``; None if the first two words are others."""
    if not c.accept("AUTO", "CDC") and not c.accept("APPLY", "CHANGES"):
        return None
    c.expect("INTO")
    target = c.name("the name of a table")
    if not is_acid(target.parts):
        c.refuse(
            f"AUTO CDC INTO a table that is no ACID table ('{'.'.join(target.parts)}') is not "
            "supported",
            target.span,
        )
    c.expect("FROM")
    source, name = table_or_query(c, "AUTO CDC")
    alias = _alias(c, name)
    keys = _list(c, "'('") if c.accept("KEYS") else None
    ignore_nulls = None
    if c.accept("IGNORE", "NULL", "UPDATES"):
        ignore_nulls = _choice(c) if c.accept("ON") else EVERY
    delete_when = None
    if c.accept("APPLY", "AS", "DELETE", "WHEN"):
        delete_when = c.expression(_CLAUSES, what="a condition")
    truncate_when = None
    if c.accept("APPLY", "AS", "TRUNCATE", "WHEN"):
        truncate_when = c.expression(_CLAUSES, what="a condition")
    sequence_by = None
    if c.accept("SEQUENCE", "BY"):
        sequence_by = c.expression(_CLAUSES, what="an expression")
    columns = _choice(c) if c.accept("COLUMNS") else None
    scd_type, tracked = _stored(c)
    clauses = (keys, ignore_nulls, delete_when, truncate_when, sequence_by, columns)
    c.end(_expected(*clauses, scd_type, tracked))
    return AutoCdc(target, source, alias, name, *clauses, scd_type or 1, tracked)


def is_expression(text: str) -> bool:
    """Whether a text is one expression, in which no clause of AUTO CDC begins."""
    try:
        c = Cursor(text, tokenize(text))
        c.expression((*_CLAUSES, ";"))
    except SqlError:
        return False
    return c.done


def _alias(c: Cursor, name: Name | None) -> str | None:
    """Parse ``[AS] x``. Without AS, x is no alias if it begins a clause."""
    if c.accept("AS"):
        return c.name_part("an alias").value
    if c.token.is_name and not any(c.at(*clause.split()) for clause in _NO_ALIAS):
        if c.at("KEYS") and c.peek().upper not in ("", "KEYS"):
            c.take()
            c.fail("Expected '('")
        return c.take().value
    return None if name is None else frame_name(name.parts)


def _choice(c: Cursor) -> Choice:
    """Parse ``(a, …)`` or ``* EXCEPT (a, …)``."""
    if not c.accept("*"):
        return Choice(_list(c, "'(' or '*'"))
    c.expect("EXCEPT")
    return Choice(_list(c, "'('"), all_but=True)


def _list(c: Cursor, expected: str) -> tuple[Name, ...]:
    """Parse ``(a, b, …)``. The names have no qualifiers: a part of them would be ignored."""
    if not c.at("("):
        c.fail(f"Expected {expected}")
    names = column_list(c)
    for name in names:
        if len(name.parts) > 1:
            c.refuse("A column with a qualifier in a list of AUTO CDC is not supported", name.span)
    return names


def _stored(c: Cursor) -> tuple[int | None, Choice | None]:
    """Parse ``STORED AS SCD TYPE 2 TRACK HISTORY ON …``."""
    start = c.index
    kind = None
    if c.accept("STORED"):
        for word in ("AS", "SCD", "TYPE"):
            c.expect(word)
        kind = c.number()
        if kind not in (1, 2):
            c.refuse(f"AUTO CDC … STORED AS SCD TYPE {kind} is not supported", c.span_from(start))
    start = c.index
    if not c.accept("TRACK", "HISTORY", "ON"):
        return kind, None
    if kind != 2:
        c.refuse(
            "TRACK HISTORY ON without STORED AS SCD TYPE 2 is not supported", c.span_from(start)
        )
    return kind, _choice(c)


def _expected(*clauses: object) -> str:
    """The clauses that may follow, for an error about a clause at a wrong place."""
    names = (
        "KEYS", "IGNORE NULL UPDATES", "APPLY AS DELETE WHEN", "APPLY AS TRUNCATE WHEN",
        "SEQUENCE BY", "COLUMNS", "STORED AS", "TRACK HISTORY ON",
    )  # fmt: skip
    given = max((i for i, clause in enumerate(clauses, 1) if clause is not None), default=0)
    # TRACK HISTORY ON follows STORED AS SCD TYPE 2 only.
    last = len(names) if given == names.index("STORED AS") + 1 else len(names) - 1
    return f"{', '.join(names[given:last])} or the end of the statement".removeprefix(" or ")
