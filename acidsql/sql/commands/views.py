"""Parses CREATE, ALTER and DROP VIEW.

A view is ours if its query names an ACID table, or another view of ours. Every other view is
Spark's.
"""

from __future__ import annotations

from acidsql.sql.commands.properties import parse_properties
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import QUERY_STARTS, IsOurs
from acidsql.sql.parsed.parts import Query
from acidsql.sql.parsed.view_statements import (
    AlterView,
    CreateView,
    DropView,
    RenameView,
    ViewColumn,
)
from acidsql.sql.queries.references import tables_in
from acidsql.sql.text.tokens import TokenKind


def parse_create_view(c: Cursor, is_ours: IsOurs) -> CreateView | None:
    """Parse ``CREATE [OR REPLACE] VIEW …``; return None if the view is Spark's: its query reads
    neither an ACID table, nor a view of some, nor a DataFrame, nothing of these has its name
    already, and TBLPROPERTIES do not say ``'transactional'='true'``.

    Raises:
        SqlSyntaxError: The text does not parse.
        UnsupportedError: The view has WITH, PARTITIONED ON, or both OR REPLACE and IF NOT EXISTS;
            or its query reads a DataFrame.
    """
    c.expect("CREATE")
    or_replace = c.accept("OR", "REPLACE") is not None
    c.expect("VIEW")
    at = c.token
    if_not_exists = c.accept("IF", "NOT", "EXISTS") is not None
    name = c.take_name("the name of the new view")
    if not (is_ours(name.parts) or _is_transactional(c) or _reads_acid(c, is_ours)):
        return None
    if or_replace and if_not_exists:
        c.refuse("CREATE OR REPLACE VIEW has no IF NOT EXISTS", at.span)
    columns = _parse_columns(c) if c.is_at("(") else ()
    comment: str | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    clause_words: set[str] = set()
    while not c.is_at("AS"):
        word = c.token.upper
        if c.is_at("PARTITIONED", "ON") or c.is_at("WITH"):
            c.refuse(f"CREATE VIEW … {word} is not supported")
        if word not in ("COMMENT", "TBLPROPERTIES") or word in clause_words:
            c.fail("Expected COMMENT, TBLPROPERTIES or AS")
        clause_words.add(word)
        c.take()
        if word == "COMMENT":
            comment = c.take_string("the comment in quotes")
        else:
            pairs = tuple(pair for pair in parse_properties(c) if not _means_ours(pair))
    return CreateView(name, _take_as_query(c), columns, comment, pairs, or_replace, if_not_exists)


def _is_transactional(c: Cursor) -> bool:
    """Whether a property before the query says that acidsql's metastore has the view, whatever the
    query reads. The cursor does not move."""
    start = c.index
    while not c.is_at("AS") and not c.is_at("TBLPROPERTIES", "(") and not c.is_at_end:
        if c.is_at("("):
            c.skip_brackets()
        else:
            c.take()
    pairs = parse_properties(c) if c.accept("TBLPROPERTIES") else ()
    c.index = start
    return any(map(_means_ours, pairs))


def _means_ours(pair: tuple[str, str]) -> bool:
    """Whether a property of a view is ``'transactional'='true'``. It only decides who has the view,
    and is not kept: a Hive Metastore has no such views."""
    key, value = pair
    return key.lower() == "transactional" and value.lower() == "true"


def _reads_acid(c: Cursor, is_ours: IsOurs) -> bool:
    """Whether the query after AS names an ACID table, a view of ACID tables, or a DataFrame. The
    cursor does not move."""
    start = c.index
    c.skip_to(("AS",))
    tokens = c.tokens[c.index + 1 : -1]
    c.index = start
    if any(token.kind is TokenKind.FRAME for token in tokens):
        return True
    return any(map(is_ours, tables_in(c.text, tokens)))


def _parse_columns(c: Cursor) -> tuple[ViewColumn, ...]:
    """Parse ``(a [COMMENT '…'], …)``, the columns of a view, whose bracket must come next."""
    c.take()
    columns = [_parse_column(c)]
    while c.take_separator():
        columns.append(_parse_column(c))
    return tuple(columns)


def _parse_column(c: Cursor) -> ViewColumn:
    """Parse ``a [COMMENT '…']``, one column of a view."""
    name = c.take_name("the name of a column")
    return ViewColumn(name, c.take_string("the comment in quotes") if c.accept("COMMENT") else None)


def _take_as_query(c: Cursor) -> Query:
    """Take ``AS`` and the query after it, which is the rest of the statement; return its place,
    unparsed. Raise UnsupportedError if the query names a DataFrame, ``{df}``, because the view
    would last longer; SqlSyntaxError if no query begins there."""
    c.expect("AS")
    if not c.is_at_any(QUERY_STARTS):
        c.fail("Expected a query")
    for token in c.tokens[c.index :]:
        if token.kind is TokenKind.FRAME:
            c.refuse(
                "A view cannot read a DataFrame, because it lasts longer: CREATE TEMPORARY VIEW … "
                "can, for this session",
                token.span,
            )
    return Query(c.take_rest())


def parse_drop_view(c: Cursor, is_ours: IsOurs) -> DropView | None:
    """Parse ``DROP VIEW [IF EXISTS] v``; return None if v is neither a view of ACID tables nor an
    ACID table. A table raises no error here."""
    c.expect("DROP", "VIEW")
    if_exists = c.accept("IF", "EXISTS") is not None
    name = c.take_name("the name of a view")
    if not is_ours(name.parts):
        return None
    c.expect_end()
    return DropView(name, if_exists)


def parse_alter_view(c: Cursor, is_ours: IsOurs) -> AlterView | RenameView | None:
    """Parse ``ALTER VIEW v AS query`` or ``… RENAME TO w``; return None if v is neither a view
    of ACID tables nor an ACID table, because Spark runs the statement then. A table raises no error
    here.

    Raises:
        UnsupportedError: A view of Spark's would get a query of ACID tables; or the clause is SET,
            UNSET or WITH; or the query reads a DataFrame.
        SqlSyntaxError: Other words follow.
    """
    c.expect("ALTER", "VIEW")
    name = c.take_name("the name of a view")
    if not is_ours(name.parts):
        if c.is_at("AS") and _reads_acid(c, is_ours):
            c.refuse(
                f"'{'.'.join(name.parts)}' is no view of ACID tables, so it cannot get such a "
                "query: drop it, and create it again",
                name.span,
            )
        return None
    if c.accept("RENAME", "TO"):
        new_name = c.take_name("the new name")
        c.expect_end()
        return RenameView(name, new_name)
    if c.is_at("SET") or c.is_at("UNSET") or c.is_at("WITH"):
        c.refuse(f"ALTER VIEW … {c.token.upper} is not supported: CREATE OR REPLACE VIEW is")
    if not c.is_at("AS"):
        c.fail("Expected AS or RENAME TO")
    return AlterView(name, _take_as_query(c))
