"""Parses USE, and CREATE, ALTER, DESCRIBE and DROP DATABASE."""

from __future__ import annotations

from acidsql.sql.commands.properties import parse_properties, parse_property_keys
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.parsed.statements import (
    AlterDatabase,
    CreateDatabase,
    DescribeDatabase,
    DropDatabase,
    Use,
)

DATABASE_WORDS = ("DATABASE", "SCHEMA", "NAMESPACE")
_PROPERTIES = ("DBPROPERTIES", "PROPERTIES")


def parse_create_database(c: Cursor) -> CreateDatabase:
    """Parse ``CREATE DATABASE [IF NOT EXISTS] d``, then COMMENT, LOCATION and WITH DBPROPERTIES,
    each at most once, in any order. MANAGEDLOCATION raises UnsupportedError."""
    c.take(2)
    if_not_exists = c.accept("IF", "NOT", "EXISTS") is not None
    name = c.take_name("the name of the new database")
    clause_texts: dict[str, str] = {}
    pairs: tuple[tuple[str, str], ...] = ()
    while not c.is_at_end:
        word = c.token.upper
        if c.is_at("MANAGEDLOCATION"):
            c.refuse("MANAGEDLOCATION is not supported: LOCATION is the directory of ACID tables")
        if c.is_at("WITH") and c.peek().upper in _PROPERTIES and not pairs:
            c.take(2)
            pairs = parse_properties(c)
            continue
        if word not in ("COMMENT", "LOCATION") or word in clause_texts:
            c.fail("Expected COMMENT, LOCATION, WITH DBPROPERTIES or the end of the statement")
        c.take()
        clause_texts[word] = c.take_string()
    return CreateDatabase(
        name, if_not_exists, clause_texts.get("COMMENT"), clause_texts.get("LOCATION"), pairs
    )


def parse_alter_database(c: Cursor) -> AlterDatabase | None:
    """Parse ``ALTER DATABASE d SET|UNSET [DB]PROPERTIES (…)``; the cursor is at ALTER. Return None
    for any other ALTER DATABASE, which Spark runs; the cursor has moved then."""
    c.take(2)
    if not c.token.is_name:
        return None
    name = c.take_name("the name of a database")
    if not c.is_at_any(("SET", "UNSET")) or c.peek().upper not in _PROPERTIES:
        return None
    word = c.token.upper
    c.take(2)
    if word == "UNSET":
        return AlterDatabase(name, unset=parse_property_keys(c))
    return AlterDatabase(name, parse_properties(c))


def parse_describe_database(c: Cursor) -> DescribeDatabase:
    """Parse ``DESCRIBE DATABASE [EXTENDED] d``, but not the statement's end."""
    c.take(2)
    extended = c.is_at("EXTENDED") and c.peek().is_name
    if extended:
        c.take()
    return DescribeDatabase(c.take_name("the name of a database"), extended)


def parse_drop_database(c: Cursor) -> DropDatabase:
    """Parse ``DROP DATABASE [IF EXISTS] d [RESTRICT|CASCADE]``; RESTRICT is the same as neither."""
    c.take(2)
    if_exists = c.accept("IF", "EXISTS") is not None
    name = c.take_name("the name of a database")
    cascade = c.accept("CASCADE") is not None
    if not cascade:
        c.accept("RESTRICT")
    c.expect_end("CASCADE, RESTRICT or the end of the statement")
    return DropDatabase(name, if_exists, cascade)


def parse_use(c: Cursor) -> Use:
    """Parse ``USE [DATABASE|SCHEMA|NAMESPACE] d``, up to the statement's end. The word DATABASE, if
    no name follows, is the name itself; so are its synonyms."""
    c.expect("USE")
    if c.is_at_any(DATABASE_WORDS) and c.peek().is_name:
        c.take()
    name = c.take_name("the name of a database")
    c.expect_end()
    return Use(name)
