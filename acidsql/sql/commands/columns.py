"""Parses the columns of CREATE TABLE and ADD COLUMNS. Types stay spans, which Spark reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from acidsql.acid.constraints import ConstraintKind
from acidsql.sql.commands.constraints import (
    TRAIT_STARTS,
    is_at_table_constraint,
    parse_column_constraint,
    parse_constraint_name,
    parse_table_constraint,
    parse_traits,
)
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.parsed.statements import ColumnDef, ConstraintDef, Name
from acidsql.sql.text.tokens import Span, words
from acidsql.sql.text.tokens import TokenKind as TokenKind

_OPTIONS = words(
    "NOT NULL DEFAULT COMMENT CHECK GENERATED CONSTRAINT PRIMARY UNIQUE REFERENCES FOREIGN "
    "FIRST AFTER CASCADE RESTRICT ENABLE DISABLE"
)
_LAST_WORDS = ("CASCADE", "RESTRICT")  # of ADD and REPLACE COLUMNS


def parse_table_elements(c: Cursor) -> tuple[tuple[ColumnDef, ...], list[ConstraintDef]]:
    """Parse ``(a INT NOT NULL, …, CONSTRAINT x CHECK (…))``: return the columns, and the
    constraints of columns and table together, each in the order of the text."""
    columns: list[ColumnDef] = []
    constraints: list[ConstraintDef] = []
    c.expect("(")
    while True:
        if is_at_table_constraint(c):
            constraints.append(parse_table_constraint(c))
        else:
            columns.append(parse_column_def(c, constraints))
        if not c.take_separator():
            return tuple(columns), constraints


def parse_columns_in_brackets(
    c: Cursor, constraints: list[ConstraintDef] | None = None
) -> tuple[ColumnDef, ...]:
    """Parse ``(a INT COMMENT '…', …)``.

    ``constraints``: the list that the columns' CHECKs, keys and NOT NULLs that are not enforced are
    added to; None: the statement cannot have them, and they raise UnsupportedError.
    """
    c.expect("(")
    columns = [parse_column_def(c, constraints)]
    while c.take_separator():
        columns.append(parse_column_def(c, constraints))
    return tuple(columns)


def parse_column_def(
    c: Cursor,
    constraints: list[ConstraintDef] | None = None,
    *,
    stops: tuple[str, ...] = _LAST_WORDS,
) -> ColumnDef:
    """Parse ``a[:] INT [NOT NULL] [DEFAULT …] [COMMENT '…'] [CHECK (…)] …``, up to ``,``, ``)`` or
    one of ``stops``, each of one or several words. A name with a dot raises UnsupportedError.

    ``constraints``: the list that the column's CHECKs, keys and a NOT NULL that is not enforced are
    added to; None: the statement cannot have them, and they raise UnsupportedError.
    """
    start = c.index
    token = c.take_name_part("the name of a column")
    if c.is_at("."):
        c.refuse("Adding a field of a struct is not supported")
    c.accept(":")
    draft = _ColumnDraft(Name((token.value,), token.span), parse_column_type(c, stops))
    while not c.is_at_end and not c.is_at_any((",", ")")) and not _is_at_stop(c, stops):
        _parse_option(c, draft, constraints, stops)
    return ColumnDef(
        token.value, draft.type, draft.nullable, draft.default, draft.comment, c.span_from(start)
    )


def _is_at_stop(c: Cursor, stops: tuple[str, ...]) -> bool:
    """Whether one of ``stops`` comes next, each of one or several words."""
    return any(c.is_at(*words.split()) for words in stops)


@dataclass(slots=True)
class _ColumnDraft:
    """A column, while its definition is read. ``option_words`` are the options read so far."""

    name: Name
    type: Span
    nullable: bool = True
    default: Span | None = None
    comment: str | None = None
    option_words: set[str] = field(default_factory=set)


AFTER_DEFAULT = (
    "NOT NULL", "COMMENT", "CHECK", "CONSTRAINT", "GENERATED", "PRIMARY KEY", "UNIQUE",
    "REFERENCES", *TRAIT_STARTS,
)  # fmt: skip


def _parse_option(
    c: Cursor, draft: _ColumnDraft, constraints: list[ConstraintDef] | None, stops: tuple[str, ...]
) -> None:
    """Parse one option behind a column's type into ``draft``; append a CHECK or a key to
    ``constraints``. The word NULL alone changes nothing. Raise UnsupportedError for options that
    the statement does not have and for a DEFAULT that is not enabled, and SqlSyntaxError for a
    second one of a kind (CHECK and REFERENCES may come again)."""
    start = c.index
    name = parse_constraint_name(c)
    word = "NOT NULL" if c.is_at("NOT") else c.token.upper
    if word in draft.option_words and word not in ("CHECK", "REFERENCES"):
        c.fail(f"Expected one {word} for '{draft.name.parts[-1]}'")
    draft.option_words.add(word)
    if c.accept("NOT"):
        c.expect("NULL")
        _parse_not_null(c, draft, constraints, start, name)
    elif c.accept("DEFAULT"):
        draft.default = c.take_expression((",", ")", *AFTER_DEFAULT, *stops), noun="a value")
        at = c.token
        if parse_traits(c).enforced is False:
            c.refuse("A DEFAULT that is not enabled is not supported: leave it out", at.span)
    elif name is None and c.accept("NULL"):
        pass
    elif name is None and c.accept("COMMENT"):
        draft.comment = c.take_string("the comment in quotes")
    elif constraints is not None and c.is_at_any(("CHECK", "PRIMARY", "UNIQUE", "REFERENCES")):
        constraints.append(parse_column_constraint(c, start, name, draft.name))
    elif c.is_at_any(_OPTIONS):
        c.refuse(f"{c.token.upper} is not supported here")
    else:
        c.fail("Expected NOT NULL, DEFAULT, COMMENT, CHECK, ',' or ')'")


def _parse_not_null(
    c: Cursor,
    draft: _ColumnDraft,
    constraints: list[ConstraintDef] | None,
    start: int,
    name: Name | None,
) -> None:
    """Parse the traits behind NOT NULL. If they do not turn enforcement off, set the draft's
    ``nullable`` to False. If they do, append a ConstraintDef of kind NOT_NULL, with ``name`` and
    the traits, to ``constraints``; raise UnsupportedError if ``constraints`` is None. ``start``:
    the index of the constraint's first token."""
    at = c.token
    not_null_traits = parse_traits(c)
    if not_null_traits.enforced is not False:
        draft.nullable = False
    elif constraints is None:
        c.refuse("A NOT NULL that is not enforced is not supported here", at.span)
    else:
        span = c.span_from(start)
        columns = (draft.name,)
        new = ConstraintDef(
            ConstraintKind.NOT_NULL, span, name, columns=columns, traits=not_null_traits
        )
        constraints.append(new)


def _is_at_type_end(c: Cursor, stops: tuple[str, ...]) -> bool:
    """Whether an option of a column (NOT, DEFAULT …) or one of ``stops`` comes next."""
    return c.is_at_any(_OPTIONS) or _is_at_stop(c, stops)


def parse_column_type(c: Cursor, stops: tuple[str, ...] = ()) -> Span:
    """Take the tokens of a type, unread, and return their span: the first token, and all up to the
    column's next option, ``,``, ``)`` or string outside of ``<…>``, or to one of ``stops``. Raise
    SqlSyntaxError if there are none, or a ``<`` is not closed."""
    start, angles = c.index, 0
    while not c.is_at_end:
        if angles == 0 and (
            c.is_at_any((",", ")")) or (c.index > start and _is_at_type_end(c, stops))
        ):
            break
        if c.is_at("("):
            c.skip_brackets()
            continue
        if c.token.kind is TokenKind.STRING and angles == 0:
            break
        if c.is_at("<>"):  # STRUCT<> has no fields
            c.take()
            continue
        angles += {"<": 1, ">": -1}.get(c.token.text, 0)
        if angles < 0 or c.is_at(")"):
            c.fail("Expected '>'" if angles > 0 else "Expected a type")
        c.take()
    if c.index == start or angles:
        c.fail("Expected a type" if not angles else "Expected '>'")
    return c.span_from(start)
