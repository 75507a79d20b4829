"""Parses the columns of CREATE TABLE and ADD COLUMNS. Types stay spans, which Spark reads."""

from __future__ import annotations

from acidsql.sql.cursor import Cursor
from acidsql.sql.statements import Check, ColumnDef
from acidsql.sql.tokens import Kind, Span, words

_OPTIONS = words(
    "NOT NULL DEFAULT COMMENT CHECK GENERATED CONSTRAINT PRIMARY UNIQUE REFERENCES FOREIGN "
    "FIRST AFTER CASCADE RESTRICT ENABLE DISABLE"
)
_LAST_WORDS = ("CASCADE", "RESTRICT")  # of ADD and REPLACE COLUMNS
_KEYS = ("PRIMARY", "UNIQUE", "FOREIGN", "REFERENCES")


def table_elements(c: Cursor) -> tuple[tuple[ColumnDef, ...], tuple[Check, ...]]:
    """Parse ``(a INT NOT NULL, …, CONSTRAINT x CHECK (…))``."""
    columns: list[ColumnDef] = []
    checks: list[Check] = []
    c.expect("(")
    while True:
        check = _table_check(c)
        if check is not None:
            checks.append(check)
        else:
            columns.append(column_def(c, checks))
        if not c.inside():
            return tuple(columns), tuple(checks)


def columns_in_brackets(c: Cursor) -> tuple[ColumnDef, ...]:
    """Parse ``(a INT COMMENT '…', …)``."""
    c.expect("(")
    columns = [column_def(c)]
    while c.inside():
        columns.append(column_def(c))
    return tuple(columns)


def _table_check(c: Cursor) -> Check | None:
    """Parse a CHECK of the table; None if a column begins here, perhaps with the name CHECK."""
    if c.at_any(_KEYS) and (c.peek().upper in ("(", "KEY")):
        c.refuse(f"{c.token.upper} is not supported: Hive does not enforce it either")
    if c.at("CHECK", "("):
        return _check(c, None)
    if c.at("CONSTRAINT") and c.peek().is_name and c.peek(2).upper in ("CHECK", *_KEYS):
        c.take()
        name = c.name_part().value
        if c.at_any(_KEYS):
            c.refuse(f"{c.token.upper} is not supported: Hive does not enforce it either")
        return _check(c, name)
    return None


def _check(c: Cursor, name: str | None) -> Check:
    c.expect("CHECK")
    if not c.at("("):
        c.fail("Expected '('")
    if c.peek().text == ")":
        c.fail("Expected a condition", c.peek())
    first = c.index + 1
    c.skip_brackets()
    check = Check(name, Span(c.tokens[first].start, c.tokens[c.index - 2].end))
    c.accept("ENFORCED")
    if c.at("NOT", "ENFORCED"):
        c.refuse("NOT ENFORCED is not supported: a CHECK always holds", c.token.span)
    return check


def column_def(
    c: Cursor, checks: list[Check] | None = None, *, stops: tuple[str, ...] = _LAST_WORDS
) -> ColumnDef:
    """Parse ``a INT [NOT NULL] [DEFAULT …] [COMMENT '…'] [CHECK (…)]``, up to one of ``stops``."""
    start = c.index
    name = c.name_part("the name of a column").value
    if c.at("."):
        c.refuse("Adding a field of a struct is not supported")
    c.accept(":")
    type_ = column_type(c)
    nullable, default, comment = True, None, None
    seen: set[str] = set()
    while not c.done and not c.at_any((",", ")", *stops)):
        word = "NOT NULL" if c.at("NOT") else c.token.upper
        if word in seen and word != "CHECK":
            c.fail(f"Expected one {word} for '{name}'")
        seen.add(word)
        if c.accept("NOT"):
            c.expect("NULL")
            nullable = False
        elif c.accept("NULL"):
            pass
        elif c.accept("DEFAULT"):
            default = c.expression((",", ")", *AFTER_DEFAULT, *stops), what="a value")
        elif c.accept("COMMENT"):
            comment = c.string("the comment in quotes")
        else:
            _column_check(c, checks)
    return ColumnDef(name, type_, nullable, default, comment, c.span_from(start))


AFTER_DEFAULT = ("NOT NULL", "COMMENT", "CHECK", "CONSTRAINT", "GENERATED", "PRIMARY KEY")


def _column_check(c: Cursor, checks: list[Check] | None) -> None:
    name = None
    if c.accept("CONSTRAINT"):
        name = c.name_part("the name of a constraint").value
    if c.at("CHECK") and checks is not None:
        checks.append(_check(c, name))
    elif c.at_any(_OPTIONS):
        c.refuse(f"{c.token.upper} is not supported here")
    else:
        c.fail("Expected NOT NULL, DEFAULT, COMMENT, CHECK, ',' or ')'")


def column_type(c: Cursor) -> Span:
    """Take the tokens of a type: all up to the column's next option outside of ``<…>``."""
    start, angles = c.index, 0
    while not c.done:
        if angles == 0 and (c.at_any((",", ")")) or (c.index > start and c.at_any(_OPTIONS))):
            break
        if c.at("("):
            c.skip_brackets()
            continue
        if c.token.kind is Kind.STRING and angles == 0:
            break
        if c.at("<>"):  # STRUCT<> has no fields
            c.take()
            continue
        angles += {"<": 1, ">": -1}.get(c.token.text, 0)
        if angles < 0 or c.at(")"):
            c.fail("Expected '>'" if angles > 0 else "Expected a type")
        c.take()
    if c.index == start or angles:
        c.fail("Expected a type" if not angles else "Expected '>'")
    return c.span_from(start)
