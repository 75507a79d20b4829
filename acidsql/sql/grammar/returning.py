"""Parses RETURNING, the last clause of INSERT, UPDATE, DELETE and MERGE (PostgreSQL 18)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import IsOurs
from acidsql.sql.parsed.statements import Delete, Insert, Merge, MultiInsert, Returning, Update
from acidsql.sql.text.tokens import Span, TokenKind, words

_Parser = Callable[
    [Cursor, IsOurs, Span | None], Insert | Update | Delete | Merge | MultiInsert | None
]

# Behind one of these words RETURNING is a name.
_BEFORE_NAME = words(
    "SELECT ALL DISTINCT AS FROM JOIN HAVING UPDATE INTO TABLE OVERWRITE USING LATERAL AND OR NOT "
    "IN LIKE RLIKE ILIKE REGEXP BETWEEN IS ESCAPE DIV CASE WHEN THEN ELSE WHERE SET ON BY WITH "
    "RETURNING"
)
# Before one of these words RETURNING is an alias.
_BEHIND_ALIAS = words(
    "AS FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW UNION EXCEPT "
    "INTERSECT MINUS JOIN INNER CROSS LEFT RIGHT FULL SEMI ANTI NATURAL LATERAL ON USING SET "
    "PIVOT UNPIVOT TABLESAMPLE WHEN VALUES SELECT AND OR IN IS BETWEEN LIKE DIV"
)
_FIRST_SYMBOLS = ("(", "*", "-", "+", "~", "?", ":")
_OPERAND_ENDS = (")", "]", "?", "*")
_REFUSED = {
    word: f"RETURNING … {word} is not supported: it is one row for each changed row. Use the "
    "DataFrame's methods"
    for word in words(
        "FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW UNION EXCEPT "
        "INTERSECT MINUS LATERAL INTO PIVOT |>"
    )
}


def with_returning(read: _Parser) -> _Parser:
    """Return a parser that reads a statement with RETURNING at its end, or without. ``read`` parses
    the statement itself. The parser's result is that of ``read``, with the clause in ``returning``.
    RETURNING of a multi-insert or of INSERT … REPLACE raises UnsupportedError."""

    def parse(
        c: Cursor, is_ours: IsOurs, ctes: Span | None
    ) -> Insert | Update | Delete | Merge | MultiInsert | None:
        """Parse the statement with ``read``, and RETURNING behind it; return None if ``read``
        does."""
        at = _clause_index(c)
        if at is None:
            return read(c, is_ours, ctes)
        body = c.cut_before(at)
        statement = read(body, is_ours, ctes)
        if statement is None:
            return None
        body.expect_end()
        c.index = at
        if isinstance(statement, MultiInsert):
            c.refuse("RETURNING of several INSERTs is not supported: their tables differ")
        if isinstance(statement, Insert) and statement.replacing is not None:
            c.refuse("RETURNING of INSERT … REPLACE is not supported")
        return replace(statement, returning=_parse_returning(c))

    return parse


def _clause_index(c: Cursor) -> int | None:
    """Return the index of the word RETURNING that begins the clause: the last one outside brackets
    that is no column or alias. None without the clause."""
    if "returning" not in c.text.lower():  # a VALUES list may have a million tokens
        return None
    clause_index, index = None, c.index
    while index < len(c.tokens) - 1:
        if c.tokens[index].upper == "RETURNING" and _begins_clause(c, index):
            clause_index = index
        index = c.partner.get(index, index) + 1
    return clause_index


def _begins_clause(c: Cursor, index: int) -> bool:
    """Whether the word RETURNING at ``index`` begins the clause, and is no column or alias: the
    tokens around it decide."""
    before, after = c.tokens[index - 1], c.tokens[index + 1]
    if before.kind is TokenKind.SYMBOL and before.text not in _OPERAND_ENDS:
        return False
    if before.upper in _BEFORE_NAME and c.tokens[index - 2].text != ".":
        return False
    if after.kind in (TokenKind.SYMBOL, TokenKind.END):
        return after.text in _FIRST_SYMBOLS
    is_function = after.upper in ("LEFT", "RIGHT") and c.tokens[index + 2].text == "("
    return after.upper not in _BEHIND_ALIAS or is_function


def _parse_returning(c: Cursor) -> Returning:
    """Parse ``RETURNING [WITH (OLD AS x, NEW AS y)] item, …``; RETURNING DISTINCT, and clauses such
    as ORDER BY behind an item, raise UnsupportedError."""
    start = c.index
    c.expect("RETURNING")
    names = _parse_row_names(c) if c.is_at("WITH", "(") else {}
    if c.is_at("DISTINCT") and c.peek().kind is not TokenKind.END and c.peek().text != ",":
        c.refuse("RETURNING DISTINCT is not supported: it is one row for each changed row")
    items = [_parse_item(c)]
    while c.accept(","):
        items.append(_parse_item(c))
    return Returning(c.span_from(start), tuple(items), names.get("OLD"), names.get("NEW"))


def _parse_row_names(c: Cursor) -> dict[str, str]:
    """Parse ``WITH (OLD AS x, NEW AS y)``: return the names, without quotes, by "OLD" and "NEW";
    one may be missing. A second one of a kind is a syntax error."""
    c.take(2)
    row_names: dict[str, str] = {}
    while True:
        row = c.token
        if row.upper not in ("OLD", "NEW"):
            c.fail("Expected OLD or NEW")
        if row.upper in row_names:
            c.fail(f"Expected {row.upper} once")
        c.take()
        c.expect("AS")
        row_names[row.upper] = c.take_name_part().value
        if not c.take_separator():
            return row_names


def _parse_item(c: Cursor) -> Span:
    """Take one item of RETURNING, ``*``, ``x.*`` or an expression, and return its place."""
    start = c.index
    if not _take_star(c):
        c.take_expression((",",), _REFUSED, "a column, an expression or *")
    return c.span_from(start)


def _take_star(c: Cursor) -> bool:
    """Take ``*`` or ``x.*``, perhaps with EXCEPT (…), and return True. Return False, without
    moving, for another item; raise SqlSyntaxError if more follows the star."""
    ahead = 0
    while c.peek(ahead).is_name and c.peek(ahead + 1).text == ".":
        ahead += 2
    if c.peek(ahead).text != "*":
        return False
    c.take(ahead + 1)
    if c.is_at("EXCEPT", "("):
        c.take()
        c.skip_brackets()
    if not c.is_at_end and not c.is_at(","):
        c.fail("Expected ',' or the end of the statement")
    return True
