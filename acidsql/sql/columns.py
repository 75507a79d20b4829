"""Parses the columns of CREATE TABLE and ADD COLUMNS. Types stay spans, which Spark reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from acidsql.acid.constraints import Kind
from acidsql.sql.constraints import (
    TRAIT_STARTS,
    at_table_constraint,
    column_constraint,
    constraint_name,
    table_constraint,
    traits,
)
from acidsql.sql.cursor import Cursor
from acidsql.sql.statements import ColumnDef, ConstraintDef, Name
from acidsql.sql.tokens import Kind as TokenKind
from acidsql.sql.tokens import Span, words

_OPTIONS = words(
    "NOT NULL DEFAULT COMMENT CHECK GENERATED CONSTRAINT PRIMARY UNIQUE REFERENCES FOREIGN "
    "FIRST AFTER CASCADE RESTRICT ENABLE DISABLE"
)
_LAST_WORDS = ("CASCADE", "RESTRICT")  # of ADD and REPLACE COLUMNS


def table_elements(c: Cursor) -> tuple[tuple[ColumnDef, ...], list[ConstraintDef]]:
    """Parse ``(a INT NOT NULL, …, CONSTRAINT x CHECK (…))``."""
    columns: list[ColumnDef] = []
    constraints: list[ConstraintDef] = []
    c.expect("(")
    while True:
        if at_table_constraint(c):
            constraints.append(table_constraint(c))
        else:
            columns.append(column_def(c, constraints))
        if not c.inside():
            return tuple(columns), constraints


def columns_in_brackets(
    c: Cursor, constraints: list[ConstraintDef] | None = None
) -> tuple[ColumnDef, ...]:
    """Parse ``(a INT COMMENT '…', …)``; see ``column_def``."""
    c.expect("(")
    columns = [column_def(c, constraints)]
    while c.inside():
        columns.append(column_def(c, constraints))
    return tuple(columns)


def column_def(
    c: Cursor,
    constraints: list[ConstraintDef] | None = None,
    *,
    stops: tuple[str, ...] = _LAST_WORDS,
) -> ColumnDef:
    """Parse ``a INT [NOT NULL] [DEFAULT …] [COMMENT '…'] [CHECK (…)] …``, up to one of ``stops``.

    ``constraints``: takes the column's CHECK and keys; None: the statement cannot have them.
    """
    start = c.index
    token = c.name_part("the name of a column")
    if c.at("."):
        c.refuse("Adding a field of a struct is not supported")
    c.accept(":")
    draft = _Draft(Name((token.value,), token.span), column_type(c, stops))
    while not c.done and not c.at_any((",", ")")) and not _stops(c, stops):
        _option(c, draft, constraints, stops)
    return ColumnDef(
        token.value, draft.type, draft.nullable, draft.default, draft.comment, c.span_from(start)
    )


def _stops(c: Cursor, stops: tuple[str, ...]) -> bool:
    return any(c.at(*words.split()) for words in stops)


@dataclass(slots=True)
class _Draft:
    """A column as far as it was read."""

    name: Name
    type: Span
    nullable: bool = True
    default: Span | None = None
    comment: str | None = None
    seen: set[str] = field(default_factory=set)


AFTER_DEFAULT = (
    "NOT NULL", "COMMENT", "CHECK", "CONSTRAINT", "GENERATED", "PRIMARY KEY", "UNIQUE",
    "REFERENCES", *TRAIT_STARTS,
)  # fmt: skip


def _option(
    c: Cursor, draft: _Draft, constraints: list[ConstraintDef] | None, stops: tuple[str, ...]
) -> None:
    start = c.index
    name = constraint_name(c)
    word = "NOT NULL" if c.at("NOT") else c.token.upper
    if word in draft.seen and word not in ("CHECK", "REFERENCES"):
        c.fail(f"Expected one {word} for '{draft.name.parts[-1]}'")
    draft.seen.add(word)
    if c.accept("NOT"):
        c.expect("NULL")
        _not_null(c, draft, constraints, start, name)
    elif c.accept("DEFAULT"):
        draft.default = c.expression((",", ")", *AFTER_DEFAULT, *stops), what="a value")
        at = c.token
        if traits(c).enforced is False:
            c.refuse("A DEFAULT that is not enabled is not supported: leave it out", at.span)
    elif name is None and c.accept("NULL"):
        pass
    elif name is None and c.accept("COMMENT"):
        draft.comment = c.string("the comment in quotes")
    elif constraints is not None and c.at_any(("CHECK", "PRIMARY", "UNIQUE", "REFERENCES")):
        constraints.append(column_constraint(c, start, name, draft.name))
    elif c.at_any(_OPTIONS):
        c.refuse(f"{c.token.upper} is not supported here")
    else:
        c.fail("Expected NOT NULL, DEFAULT, COMMENT, CHECK, ',' or ')'")


def _not_null(
    c: Cursor,
    draft: _Draft,
    constraints: list[ConstraintDef] | None,
    start: int,
    name: Name | None,
) -> None:
    at = c.token
    found = traits(c)
    if found.enforced is not False:
        draft.nullable = False
    elif constraints is None:
        c.refuse("A NOT NULL that is not enforced is not supported here", at.span)
    else:
        span = c.span_from(start)
        columns = (draft.name,)
        new = ConstraintDef(Kind.NOT_NULL, span, name, columns=columns, traits=found)
        constraints.append(new)


def _ends_type(c: Cursor, stops: tuple[str, ...]) -> bool:
    return c.at_any(_OPTIONS) or _stops(c, stops)


def column_type(c: Cursor, stops: tuple[str, ...] = ()) -> Span:
    """Take the tokens of a type: all up to the column's next option outside of ``<…>``, or to one
    of ``stops``."""
    start, angles = c.index, 0
    while not c.done:
        if angles == 0 and (c.at_any((",", ")")) or (c.index > start and _ends_type(c, stops))):
            break
        if c.at("("):
            c.skip_brackets()
            continue
        if c.token.kind is TokenKind.STRING and angles == 0:
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
