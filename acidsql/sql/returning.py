"""Parses RETURNING, the last clause of INSERT, UPDATE, DELETE and MERGE (PostgreSQL 18)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from acidsql.sql.cursor import Cursor
from acidsql.sql.insert import IsAcid
from acidsql.sql.statements import Delete, Insert, Merge, MultiInsert, Returning, Update
from acidsql.sql.tokens import Kind, Span, words

_Read = Callable[
    [Cursor, IsAcid, Span | None], Insert | Update | Delete | Merge | MultiInsert | None
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


def with_returning(read: _Read) -> _Read:
    """The parser of a statement that may end with RETURNING, from the parser of the rest."""

    def parse(
        c: Cursor, is_acid: IsAcid, ctes: Span | None
    ) -> Insert | Update | Delete | Merge | MultiInsert | None:
        at = _clause(c)
        if at is None:
            return read(c, is_acid, ctes)
        body = c.before(at)
        statement = read(body, is_acid, ctes)
        if statement is None:
            return None
        body.end()
        c.index = at
        if isinstance(statement, MultiInsert):
            c.refuse("RETURNING of several INSERTs is not supported: their tables differ")
        if isinstance(statement, Insert) and statement.replacing is not None:
            c.refuse("RETURNING of INSERT … REPLACE is not supported")
        return replace(statement, returning=_returning(c))

    return parse


def _clause(c: Cursor) -> int | None:
    """The index of the word RETURNING that begins the clause; None without the clause."""
    if "returning" not in c.text.lower():  # a VALUES list may have a million tokens
        return None
    found, index = None, c.index
    while index < len(c.tokens) - 1:
        if c.tokens[index].upper == "RETURNING" and _begins_clause(c, index):
            found = index
        index = c.partner.get(index, index) + 1
    return found


def _begins_clause(c: Cursor, index: int) -> bool:
    before, after = c.tokens[index - 1], c.tokens[index + 1]
    if before.kind is Kind.SYMBOL and before.text not in _OPERAND_ENDS:
        return False
    if before.upper in _BEFORE_NAME and c.tokens[index - 2].text != ".":
        return False
    if after.kind in (Kind.SYMBOL, Kind.END):
        return after.text in _FIRST_SYMBOLS
    is_function = after.upper in ("LEFT", "RIGHT") and c.tokens[index + 2].text == "("
    return after.upper not in _BEHIND_ALIAS or is_function


def _returning(c: Cursor) -> Returning:
    start = c.index
    c.expect("RETURNING")
    names = _names(c) if c.at("WITH", "(") else {}
    if c.at("DISTINCT") and c.peek().kind is not Kind.END and c.peek().text != ",":
        c.refuse("RETURNING DISTINCT is not supported: it is one row for each changed row")
    items = [_item(c)]
    while c.accept(","):
        items.append(_item(c))
    return Returning(c.span_from(start), tuple(items), names.get("OLD"), names.get("NEW"))


def _names(c: Cursor) -> dict[str, str]:
    """Parse ``WITH (OLD AS x, NEW AS y)``."""
    c.take(2)
    found: dict[str, str] = {}
    while True:
        row = c.token
        if row.upper not in ("OLD", "NEW"):
            c.fail("Expected OLD or NEW")
        if row.upper in found:
            c.fail(f"Expected {row.upper} once")
        c.take()
        c.expect("AS")
        found[row.upper] = c.name_part().value
        if not c.inside():
            return found


def _item(c: Cursor) -> Span:
    start = c.index
    if not _star(c):
        c.expression((",",), _REFUSED, "a column, an expression or *")
    return c.span_from(start)


def _star(c: Cursor) -> bool:
    """Take ``*`` or ``x.*``, perhaps with EXCEPT (…), if the item is that."""
    ahead = 0
    while c.peek(ahead).is_name and c.peek(ahead + 1).text == ".":
        ahead += 2
    if c.peek(ahead).text != "*":
        return False
    c.take(ahead + 1)
    if c.at("EXCEPT", "("):
        c.take()
        c.skip_brackets()
    if not c.done and not c.at(","):
        c.fail("Expected ',' or the end of the statement")
    return True
