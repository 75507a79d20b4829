"""Parses SHOW and DESCRIBE."""

from __future__ import annotations

from acidsql.sql.commands.compactions import parse_show_compactions
from acidsql.sql.commands.databases import DATABASE_WORDS
from acidsql.sql.commands.properties import parse_property_key
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import IsOurs, parse_partition_clause
from acidsql.sql.parsed.statements import (
    DescribeHistory,
    DescribeTable,
    Name,
    PartitionItem,
    ShowColumns,
    ShowCreateTable,
    ShowDatabases,
    ShowLocks,
    ShowPartitions,
    ShowStreams,
    ShowTableProperties,
    ShowTables,
    ShowTransactions,
    ShowViews,
    Statement,
)
from acidsql.sql.text.tokens import Span, TokenKind

_DATABASES_WORDS = ("DATABASES", "SCHEMAS", "NAMESPACES")


def parse_show(c: Cursor, is_ours: IsOurs) -> Statement | None:
    """Parse a SHOW statement; return None, with the cursor moved, if Spark runs it. SHOW DATABASES,
    TABLES, VIEWS, TRANSACTIONS, LOCKS, COMPACTIONS and STREAMS are always acidsql's, except SHOW
    DATABASES IN a catalog; SHOW of a table is only if ``is_ours`` says so."""
    c.expect("SHOW")
    if c.accept("COMPACTIONS"):
        return parse_show_compactions(c)
    if c.accept("LOCKS"):
        return _parse_show_locks(c)
    if c.accept("TRANSACTIONS"):
        c.expect_end()
        return ShowTransactions()
    if c.accept("STREAMS"):
        c.expect_end()
        return ShowStreams()
    if c.is_at_any(_DATABASES_WORDS):
        c.take()
        # SHOW NAMESPACES IN a catalog is Spark's.
        return None if c.is_at("IN") or c.is_at("FROM") else ShowDatabases(_parse_pattern(c))
    for word, kind in (("TABLES", ShowTables), ("VIEWS", ShowViews)):
        if c.accept(word):
            database = c.take_name("a database") if c.accept("IN") or c.accept("FROM") else None
            return kind(database, _parse_pattern(c))
    return _parse_show_table(c, is_ours)


def _parse_show_table(c: Cursor, is_ours: IsOurs) -> Statement | None:
    """Parse SHOW PARTITIONS, CREATE TABLE, TBLPROPERTIES or COLUMNS of a table; return None if the
    table is Spark's, or for any other SHOW. AS SERDE raises UnsupportedError."""
    if c.accept("PARTITIONS"):
        return _parse_show_partitions(c, is_ours)
    if c.accept("CREATE", "TABLE"):
        name = c.take_name("the name of a table")
        if not is_ours(name.parts):
            return None
        if c.is_at("AS", "SERDE"):
            c.refuse("SHOW CREATE TABLE … AS SERDE is not supported")
        c.expect_end()
        return ShowCreateTable(name)
    if c.accept("TBLPROPERTIES"):
        return _parse_show_properties(c, is_ours)
    if c.accept("COLUMNS"):
        return _parse_show_columns(c, is_ours)
    return None


def _parse_show_partitions(c: Cursor, is_ours: IsOurs) -> ShowPartitions | None:
    """Parse ``t [PARTITION (…)]`` after SHOW PARTITIONS; return None if the table is Spark's."""
    name = c.take_name("the name of a table")
    if not is_ours(name.parts):
        return None
    partition = parse_partition_clause(c) if c.is_at("PARTITION") else ()
    c.expect_end("PARTITION or the end of the statement")
    return ShowPartitions(name, partition)


def _parse_show_properties(c: Cursor, is_ours: IsOurs) -> ShowTableProperties | None:
    """Parse ``t [(key)]`` after SHOW TBLPROPERTIES; return None if the table is Spark's."""
    name = c.take_name("the name of a table")
    if not is_ours(name.parts):
        return None
    key = None
    if c.accept("("):
        key = parse_property_key(c)
        c.expect(")")
    c.expect_end()
    return ShowTableProperties(name, key)


def _parse_show_columns(c: Cursor, is_ours: IsOurs) -> ShowColumns | None:
    """Parse ``IN|FROM t [IN|FROM d]`` after SHOW COLUMNS; return None if the table is Spark's. The
    database behind replaces the one before the table's name."""
    if not c.accept("IN") and not c.accept("FROM"):
        c.fail("Expected IN or FROM")
    name = c.take_name("the name of a table")
    if c.accept("IN") or c.accept("FROM"):
        database = c.take_name("a database")
        parts = (*database.parts, name.parts[-1])
        name = Name(parts, Span(name.span.start, database.span.end))
    if not is_ours(name.parts):
        return None
    c.expect_end()
    return ShowColumns(name)


def _parse_show_locks(c: Cursor) -> ShowLocks:
    """Parse the text after SHOW LOCKS: a database, or a table and perhaps a PARTITION, or nothing
    for all; then EXTENDED."""
    name = database = None
    partition: tuple[PartitionItem, ...] = ()
    if c.is_at_any(DATABASE_WORDS[:2]) and c.peek().is_name:
        c.take()
        database = c.take_name("the name of a database")
    elif not c.is_at_end and not (c.is_at("EXTENDED") and c.peek().kind is TokenKind.END):
        name = c.take_name("the name of a table, DATABASE or EXTENDED")
        partition = parse_partition_clause(c) if c.is_at("PARTITION") else ()
    extended = c.accept("EXTENDED") is not None
    c.expect_end("EXTENDED or the end of the statement")
    return ShowLocks(name, partition, database, extended)


def _parse_pattern(c: Cursor) -> str | None:
    """Parse ``[LIKE] 'pattern'``, up to the statement's end; return None if there is no pattern.
    Anything else is a syntax error."""
    pattern = None
    if c.accept("LIKE") or c.token.kind is TokenKind.STRING:
        pattern = c.take_string("a pattern in quotes")
    c.expect_end("LIKE or the end of the statement")
    return pattern


def parse_describe(c: Cursor, is_ours: IsOurs) -> DescribeTable | DescribeHistory | None:
    """Parse ``DESCRIBE [TABLE] [EXTENDED|FORMATTED] t [column]`` or ``DESCRIBE HISTORY t [LIMIT
    n]``; return None if Spark runs it, as t is its own. AS JSON and PARTITION raise
    UnsupportedError."""
    c.take()
    if (
        c.is_at("HISTORY")
        and c.peek().is_name
        and (of_history := _parse_describe_history(c, is_ours))
    ):
        return of_history
    if c.is_at("TABLE") and (c.peek().is_name or c.peek().upper in ("EXTENDED", "FORMATTED")):
        c.take()
    extended = c.is_at_any(("EXTENDED", "FORMATTED")) and c.peek().is_name
    if extended:
        c.take()
    if not c.token.is_name:
        return None
    name = c.take_name("the name of a table")
    if not is_ours(name.parts):
        return None
    if c.is_at("AS", "JSON"):
        c.refuse("DESCRIBE … AS JSON is not supported")
    if c.is_at("PARTITION"):
        c.refuse("DESCRIBE … PARTITION is not supported")
    column = None if c.is_at_end else c.take_name("the name of a column")
    c.expect_end()
    return DescribeTable(name, extended, column)


def _parse_describe_history(c: Cursor, is_ours: IsOurs) -> DescribeHistory | None:
    """Parse ``HISTORY t [LIMIT n]``. Return None, without moving, if it rather is ``DESCRIBE
    history column``: t is no ACID table, but one is called history. Otherwise t may be a table of
    Spark's, which raises no error here."""
    start = c.index
    c.take()
    name = c.take_name("the name of a table")
    if not is_ours(name.parts) and is_ours(("history",)):
        c.index = start
        return None
    limit = c.take_number() if c.accept("LIMIT") else None
    c.expect_end("LIMIT or the end of the statement")
    return DescribeHistory(name, limit)
