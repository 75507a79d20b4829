"""Parses ALTER TABLE … ADD, CHANGE, RENAME, REPLACE COLUMNS, in the syntax of Hive and of Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from acidsql.sql.commands.columns import (
    AFTER_DEFAULT,
    parse_column_def,
    parse_column_type,
    parse_columns_in_brackets,
)
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.parsed.statements import (
    AddColumns,
    AddFilledColumns,
    ChangeColumns,
    ColumnChange,
    ColumnDef,
    Name,
    ReplaceColumns,
    Statement,
)
from acidsql.sql.text.tokens import Span, TokenKind

_WITH_VALUES = "WITH VALUES"  # SQL Server's words for it
_ACTIONS = "Expected TYPE, COMMENT, SET or DROP DEFAULT, SET or DROP NOT NULL"


def parse_alter_columns(c: Cursor, name: Name) -> Statement | None:
    """Parse the text after ``ALTER TABLE t``, up to the statement's end: ADD, REPLACE, RENAME,
    CHANGE or ALTER COLUMN; return None, without moving, for any other words. DROP COLUMN, FIRST,
    AFTER and PARTITION COLUMN raise UnsupportedError."""
    if c.is_at("ADD", "COLUMN") or c.is_at("ADD", "COLUMNS"):
        c.take(2)
        return _parse_added_columns(c, name)
    if c.accept("REPLACE", "COLUMNS"):
        columns = _parse_columns(c)
        c.expect_end("',' or the end of the statement")
        return ReplaceColumns(name, columns)
    if c.accept("RENAME", "COLUMN"):
        return ChangeColumns(name, (_parse_column_rename(c),))
    if c.is_at("ALTER") or c.is_at("CHANGE"):
        is_hives = c.take().upper == "CHANGE"
        c.accept("COLUMN")
        if is_hives and not _is_spark_change(c):
            return ChangeColumns(name, (_parse_hive_change(c),))
        changes = [_parse_spark_change(c)]
        while c.accept(","):
            changes.append(_parse_spark_change(c))
        c.expect_end("',' or the end of the statement")
        return ChangeColumns(name, tuple(changes))
    if c.is_at("DROP", "COLUMN") or c.is_at("DROP", "COLUMNS"):
        _refuse_drop(c)
    if c.is_at("PARTITION", "COLUMN"):
        c.refuse("The type of a partition column cannot be changed", _two_words(c))
    return None


def _parse_added_columns(c: Cursor, name: Name) -> AddColumns:
    """Parse the columns of ADD COLUMNS to the statement's end. With WITH VALUES behind them, which
    fills the columns of old rows, return AddFilledColumns."""
    columns, start = _parse_columns(c, _WITH_VALUES), c.index
    is_filled = c.accept(*_WITH_VALUES.split()) is not None
    place = c.span_from(start) if is_filled else None
    c.expect_end("',' or the end of the statement")
    return AddColumns(name, columns) if place is None else AddFilledColumns(name, columns, place)


def _parse_columns(c: Cursor, *stops: str) -> tuple[ColumnDef, ...]:
    """Parse column definitions, in brackets or without. Without brackets, they end before a word of
    ``stops``. CASCADE or RESTRICT behind them is skipped, as it changes nothing for an ACID table.
    """
    if c.is_at("("):
        columns = parse_columns_in_brackets(c)
    else:
        stops = ("CASCADE", "RESTRICT", *stops)
        column_defs = [parse_column_def(c, stops=stops)]
        while c.accept(","):
            column_defs.append(parse_column_def(c, stops=stops))
        columns = tuple(column_defs)
    _accept_cascade(c)
    return columns


def _accept_cascade(c: Cursor) -> None:
    """Take CASCADE or RESTRICT, which change nothing for an ACID table, if one of them comes next.

    They decide about the columns of partitions, which Hive's readers of ACID tables do not use.
    """
    if not c.accept("CASCADE"):
        c.accept("RESTRICT")


def _parse_column_name(c: Cursor) -> Name:
    """Parse the name of a column; a name of several parts, a field of a struct, raises
    UnsupportedError."""
    name = c.take_name("the name of a column")
    if len(name.parts) > 1:
        c.refuse("Changing a field of a struct is not supported", name.span)
    return name


def _parse_column_rename(c: Cursor) -> ColumnChange:
    """Parse ``a TO b`` up to the statement's end."""
    start = c.index
    column = _parse_column_name(c)
    c.expect("TO")
    new_name = _parse_column_name(c)
    c.expect_end()
    return ColumnChange(column, new_name, span=c.span_from(start))


def _parse_hive_change(c: Cursor) -> ColumnChange:
    """Parse Hive's ``a b type [COMMENT '…'] [CASCADE|RESTRICT]`` after CHANGE [COLUMN], up to the
    statement's end. The result has b as the new name, also if it is a, the type, and the comment,
    DEFAULT and NOT NULL if they are there. FIRST and AFTER raise UnsupportedError."""
    start = c.index
    column = _parse_column_name(c)
    at = c.index
    new = parse_column_def(c, stops=("FIRST", "AFTER", "CASCADE", "RESTRICT"))
    _refuse_position(c)
    _accept_cascade(c)
    c.expect_end("COMMENT or the end of the statement")
    return ColumnChange(
        column,
        Name((new.name,), c.tokens[at].span),
        new.type,
        new.comment,
        new.default,
        must_not_be_null=not new.nullable,
        span=c.span_from(start),
    )


def _is_spark_change(c: Cursor) -> bool:
    """Whether Spark's form of CHANGE follows the word COLUMN: a column's name, then COMMENT '…',
    TYPE …, SET or DROP with NOT or DEFAULT, FIRST, or AFTER and a last word.

    Spark tries this form first, so ``CHANGE a type INT`` changes the type of ``a``. It does not
    rename ``a`` to ``type``.
    """
    if not c.token.is_name:
        return False
    ahead = 1
    while c.peek(ahead).upper == ".":
        ahead += 2
    word, after = c.peek(ahead), c.peek(ahead + 1)
    if word.upper == "COMMENT":
        return after.kind is TokenKind.STRING
    if word.upper == "TYPE":
        return after.kind is not TokenKind.END
    if word.upper in ("SET", "DROP"):
        return after.upper in ("NOT", "DEFAULT")
    if word.upper == "FIRST":
        return after.kind is TokenKind.END or after.upper == ","
    return word.upper == "AFTER" and c.peek(ahead + 2).kind is TokenKind.END


@dataclass(slots=True)
class _ChangeDraft:
    """The change of a column, while it is read. None and False mean no change."""

    type: Span | None = None
    comment: str | None = None
    default: Span | None = None
    drops_default: bool = False
    drops_not_null: bool = False
    must_not_be_null: bool = False


def _parse_spark_change(c: Cursor) -> ColumnChange:
    """Parse one of Spark's changes ``a TYPE … | COMMENT '…' | SET|DROP DEFAULT … | SET|DROP NOT
    NULL``; the result has this change only. FIRST and AFTER raise UnsupportedError, and other words
    SqlSyntaxError."""
    start = c.index
    column = _parse_column_name(c)
    draft = _ChangeDraft()
    if c.accept("TYPE"):
        draft.type = parse_column_type(c)
    elif c.accept("COMMENT"):
        draft.comment = c.take_string("the comment in quotes")
    elif c.accept("SET", "NOT", "NULL"):
        draft.must_not_be_null = True
    elif c.accept("SET", "DEFAULT"):
        draft.default = c.take_expression((",", *AFTER_DEFAULT), noun="a value")
    elif c.accept("DROP", "DEFAULT"):
        draft.drops_default = True
    elif c.accept("DROP", "NOT", "NULL"):
        draft.drops_not_null = True
    else:
        _refuse_position(c)
        c.fail(_ACTIONS)
    return ColumnChange(
        column,
        None,
        draft.type,
        draft.comment,
        draft.default,
        draft.drops_default,
        draft.drops_not_null,
        draft.must_not_be_null,
        span=c.span_from(start),
    )


def _refuse_position(c: Cursor) -> None:
    """Raise UnsupportedError if FIRST or AFTER comes next: files hold columns by position."""
    if c.is_at("FIRST"):
        span = c.token.span
    elif c.is_at("AFTER"):
        span = Span(c.token.start, c.peek().end)
    else:
        return
    c.refuse(
        "Columns cannot be moved (Hive 10311): files hold them by position. Name them in the "
        "order that you want in SELECT",
        span,
    )


def _two_words(c: Cursor) -> Span:
    """Return the place of the next two tokens, which are not taken."""
    return Span(c.token.start, c.peek().end)


def _refuse_drop(c: Cursor) -> NoReturn:
    """Raise the UnsupportedError for ALTER TABLE … DROP COLUMN, with advice."""
    c.refuse(
        "ALTER TABLE … DROP COLUMN is not supported on an ACID table (Hive 10313): files hold "
        "columns by position, so that the columns after it, or a column that is added later, would "
        "show its values. Use CREATE TABLE … AS SELECT with the columns to keep",
        _two_words(c),
    )
