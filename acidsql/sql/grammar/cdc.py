"""Parses AUTO CDC, whose clauses are those of Spark's and Databricks' AUTO CDC flows."""

from __future__ import annotations

from acidsql.errors import SqlError
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import IsOurs, parse_column_list
from acidsql.sql.grammar.modify import parse_table_or_query
from acidsql.sql.parsed.cdc_statements import EVERY, Choice
from acidsql.sql.parsed.statements import AutoCdc, Name
from acidsql.sql.text.frames import frame_name
from acidsql.sql.text.tokens import tokenize

_STARTS = ("KEYS (", "IGNORE NULL", "APPLY AS", "SEQUENCE BY", "STORED AS", "TRACK HISTORY")
_CLAUSES = (*_STARTS, "COLUMNS")
# Without its bracket, each of these two words may be an alias.
_NO_ALIAS = (*_STARTS, "COLUMNS (", "COLUMNS *")


def parse_auto_cdc(c: Cursor, is_ours: IsOurs) -> AutoCdc | None:
    """Parse ``AUTO CDC INTO t FROM s KEYS (…) …`` (or APPLY CHANGES INTO …); return None if the
    first two words are others. A clause that is missing, also KEYS and SEQUENCE BY, is None and
    raises no error here; the SCD type is then 1.

    Raises:
        SqlSyntaxError: The text does not parse, or clauses are in the wrong order.
        UnsupportedError: The target is no ACID table, a column in a list has a qualifier, the SCD
            type is neither 1 nor 2, or TRACK HISTORY ON is without SCD type 2.
    """
    if not c.accept("AUTO", "CDC") and not c.accept("APPLY", "CHANGES"):
        return None
    c.expect("INTO")
    target = c.take_name("the name of a table")
    if not is_ours(target.parts):
        c.refuse(
            f"AUTO CDC INTO a table that is no ACID table ('{'.'.join(target.parts)}') is not "
            "supported",
            target.span,
        )
    c.expect("FROM")
    source, name = parse_table_or_query(c, "AUTO CDC")
    alias = _parse_alias(c, name)
    keys = _parse_names(c, "'('") if c.accept("KEYS") else None
    ignore_nulls = None
    if c.accept("IGNORE", "NULL", "UPDATES"):
        ignore_nulls = _parse_choice(c) if c.accept("ON") else EVERY
    delete_when = None
    if c.accept("APPLY", "AS", "DELETE", "WHEN"):
        delete_when = c.take_expression(_CLAUSES, noun="a condition")
    truncate_when = None
    if c.accept("APPLY", "AS", "TRUNCATE", "WHEN"):
        truncate_when = c.take_expression(_CLAUSES, noun="a condition")
    sequence_by = None
    if c.accept("SEQUENCE", "BY"):
        sequence_by = c.take_expression(_CLAUSES, noun="an expression")
    columns = _parse_choice(c) if c.accept("COLUMNS") else None
    scd_type, tracked = _parse_stored_as(c)
    clauses = (keys, ignore_nulls, delete_when, truncate_when, sequence_by, columns)
    c.expect_end(_possible_clauses(*clauses, scd_type, tracked))
    return AutoCdc(target, source, alias, name, *clauses, scd_type or 1, tracked)


def is_expression(text: str) -> bool:
    """Whether a text can stand in the place of an expression: it is not empty, can be cut into
    tokens with brackets that match, and no clause of AUTO CDC and no ``;`` stands outside brackets.
    Whether it is valid is not checked."""
    try:
        c = Cursor(text, tokenize(text))
        c.take_expression((*_CLAUSES, ";"))
    except SqlError:
        return False
    return c.is_at_end


def _parse_alias(c: Cursor, name: Name | None) -> str | None:
    """Parse ``[AS] x``. Without AS, x is no alias if it begins a clause. The word KEYS is an alias
    before KEYS, text in quotes or the end, and a syntax error before all else but ``(``. Without an
    alias, return the last part of ``name``, the source's, without a DataFrame's braces; None if
    ``name`` is None (a query)."""
    if c.accept("AS"):
        return c.take_name_part("an alias").value
    if c.token.is_name and not any(c.is_at(*clause.split()) for clause in _NO_ALIAS):
        if c.is_at("KEYS") and c.peek().upper not in ("", "KEYS"):
            c.take()
            c.fail("Expected '('")
        return c.take().value
    return None if name is None else frame_name(name.parts)


def _parse_choice(c: Cursor) -> Choice:
    """Parse a choice of columns: ``(a, …)``, or ``* EXCEPT (a, …)`` for all but these. A qualified
    name raises UnsupportedError."""
    if not c.accept("*"):
        return Choice(_parse_names(c, "'(' or '*'"))
    c.expect("EXCEPT")
    return Choice(_parse_names(c, "'('"), all_but=True)


def _parse_names(c: Cursor, expected: str) -> tuple[Name, ...]:
    """Parse ``(a, b, …)``. A name with a qualifier raises UnsupportedError, because a part of it
    would be ignored. ``expected``: what a missing bracket's error names."""
    if not c.is_at("("):
        c.fail(f"Expected {expected}")
    names = parse_column_list(c)
    for name in names:
        if len(name.parts) > 1:
            c.refuse("A column with a qualifier in a list of AUTO CDC is not supported", name.span)
    return names


def _parse_stored_as(c: Cursor) -> tuple[int | None, Choice | None]:
    """Parse ``[STORED AS SCD TYPE n] [TRACK HISTORY ON …]``: return n and the tracked columns, each
    None if missing. An n other than 1 and 2, and TRACK HISTORY ON without n = 2, raise
    UnsupportedError."""
    start = c.index
    kind = None
    if c.accept("STORED"):
        for word in ("AS", "SCD", "TYPE"):
            c.expect(word)
        kind = c.take_number()
        if kind not in (1, 2):
            c.refuse(f"AUTO CDC … STORED AS SCD TYPE {kind} is not supported", c.span_from(start))
    start = c.index
    if not c.accept("TRACK", "HISTORY", "ON"):
        return kind, None
    if kind != 2:
        c.refuse(
            "TRACK HISTORY ON without STORED AS SCD TYPE 2 is not supported", c.span_from(start)
        )
    return kind, _parse_choice(c)


def _possible_clauses(*clauses: object) -> str:
    """Return the names of the clauses that may still follow the last one, and "the end of the
    statement", as text for an error; TRACK HISTORY ON only directly behind STORED AS. ``clauses``:
    what was parsed of each, in the statement's order; None if it is not there."""
    names = (
        "KEYS", "IGNORE NULL UPDATES", "APPLY AS DELETE WHEN", "APPLY AS TRUNCATE WHEN",
        "SEQUENCE BY", "COLUMNS", "STORED AS", "TRACK HISTORY ON",
    )  # fmt: skip
    last_clause = max((i for i, clause in enumerate(clauses, 1) if clause is not None), default=0)
    # TRACK HISTORY ON follows STORED AS SCD TYPE 2 only.
    names_end = len(names) if last_clause == names.index("STORED AS") + 1 else len(names) - 1
    return f"{', '.join(names[last_clause:names_end])} or the end of the statement".removeprefix(
        " or "
    )
