"""Parses TBLPROPERTIES: ``('key' = 'value', …)``."""

from __future__ import annotations

from acidsql.sql.cursor import Cursor
from acidsql.sql.tokens import Kind, Span


def properties(c: Cursor) -> tuple[tuple[str, str], ...]:
    """Parse ``('key' = 'value', key.part = 1, …)``."""
    return properties_and_places(c)[0]


def properties_and_places(c: Cursor) -> tuple[tuple[tuple[str, str], ...], tuple[Span, ...]]:
    """Parse the same as ``properties``, and give the place of each property, too."""
    if not c.accept("("):
        c.fail("Expected '('")
    pairs: list[tuple[str, str]] = []
    places: list[Span] = []
    while not pairs or c.inside():
        start = c.index
        pairs.append(_property(c))
        places.append(c.span_from(start))
    return tuple(pairs), tuple(places)


def property_keys(c: Cursor) -> tuple[str, ...]:
    """Parse ``('key', key.part, …)``."""
    if not c.accept("("):
        c.fail("Expected '('")
    keys = [property_key(c)]
    while c.inside():
        keys.append(property_key(c))
    return tuple(keys)


def _property(c: Cursor) -> tuple[str, str]:
    key = property_key(c)
    if not c.accept("=") and not c.accept("=="):
        c.fail("Expected '='")
    token = c.token
    if token.kind is Kind.STRING:
        return key, c.take().value
    if token.kind is Kind.NUMBER:
        return key, c.take().text
    if token.upper in ("TRUE", "FALSE"):
        return key, c.take().text.lower()
    c.fail("Expected a value in quotes, a number, TRUE or FALSE")


def property_key(c: Cursor) -> str:
    """Parse ``'a.b'`` or ``a.b``."""
    if c.token.kind is Kind.STRING:
        return c.take().value
    return ".".join(c.name("the key of a property").parts)
