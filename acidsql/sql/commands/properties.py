"""Parses TBLPROPERTIES: ``('key' = 'value', …)``."""

from __future__ import annotations

from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.text.tokens import Span, TokenKind


def parse_properties(c: Cursor) -> tuple[tuple[str, str], ...]:
    """Parse ``('key' = 'value', key.part = 1, …)``, one pair at least: return the pairs of key and
    value, both as texts, in order. A key may come twice."""
    return parse_properties_and_places(c)[0]


def parse_properties_and_places(c: Cursor) -> tuple[tuple[tuple[str, str], ...], tuple[Span, ...]]:
    """Parse ``('key' = 'value', …)``, one pair at least: return the pairs, and the place of each
    pair in the statement. A key may come twice."""
    if not c.accept("("):
        c.fail("Expected '('")
    pairs: list[tuple[str, str]] = []
    places: list[Span] = []
    while not pairs or c.take_separator():
        start = c.index
        pairs.append(_parse_property(c))
        places.append(c.span_from(start))
    return tuple(pairs), tuple(places)


def parse_property_keys(c: Cursor) -> tuple[str, ...]:
    """Parse ``('key', key.part, …)`` of UNSET, one key at least: return the keys as texts, in
    order."""
    if not c.accept("("):
        c.fail("Expected '('")
    keys = [parse_property_key(c)]
    while c.take_separator():
        keys.append(parse_property_key(c))
    return tuple(keys)


def _parse_property(c: Cursor) -> tuple[str, str]:
    """Parse ``key = value`` (or ``==``); the value is a string, a number, TRUE or FALSE. Return
    both as texts, TRUE and FALSE in lower case."""
    key = parse_property_key(c)
    if not c.accept("=") and not c.accept("=="):
        c.fail("Expected '='")
    token = c.token
    if token.kind is TokenKind.STRING:
        return key, c.take().value
    if token.kind is TokenKind.NUMBER:
        return key, c.take().text
    if token.upper in ("TRUE", "FALSE"):
        return key, c.take().text.lower()
    c.fail("Expected a value in quotes, a number, TRUE or FALSE")


def parse_property_key(c: Cursor) -> str:
    """Parse ``'a.b'`` or ``a.b``, and return the key as a text."""
    if c.token.kind is TokenKind.STRING:
        return c.take().value
    return ".".join(c.take_name("the key of a property").parts)
