"""Parses ``ANALYZE TABLE`` and ``ANALYZE TABLES``, with Hive's words and Spark's."""

from __future__ import annotations

from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import IsOurs
from acidsql.sql.parsed.parts import Name
from acidsql.sql.parsed.statistics_statements import AnalyzeTable, AnalyzeTables
from acidsql.sql.text.tokens import Span


def parse_analyze(
    c: Cursor, is_ours: IsOurs, statement_span: Span
) -> AnalyzeTable | AnalyzeTables | None:
    """Parse ``ANALYZE TABLE t COMPUTE STATISTICS [NOSCAN | FOR COLUMNS …]`` or ``ANALYZE TABLES [IN
    d] COMPUTE STATISTICS [NOSCAN]``; return None if t is Spark's, and for other words behind
    ANALYZE. PARTITION raises UnsupportedError. ``statement_span`` is not used: all statement
    parsers have it."""
    c.expect("ANALYZE")
    if c.accept("TABLES"):
        database = c.take_name("a database") if c.accept("IN") or c.accept("FROM") else None
        return AnalyzeTables(database, _parse_reads_rows(c))
    if not c.accept("TABLE"):
        return None
    name = c.take_name("the name of a table")
    if not is_ours(name.parts):
        return None
    if c.is_at("PARTITION"):
        c.refuse(
            "ANALYZE TABLE … PARTITION is not supported: ANALYZE TABLE … COMPUTE STATISTICS "
            "counts the rows of all partitions"
        )
    reads_rows = _parse_reads_rows(c)
    columns = _parse_columns(c) if reads_rows else ()
    c.expect_end("NOSCAN, FOR COLUMNS or the end of the statement")
    return AnalyzeTable(name, reads_rows, columns)


def _parse_reads_rows(c: Cursor) -> bool:
    """Parse ``COMPUTE STATISTICS [NOSCAN]``, and return whether rows are read: False with NOSCAN,
    else True."""
    c.expect("COMPUTE", "STATISTICS")
    return c.accept("NOSCAN") is None


def _parse_columns(c: Cursor) -> tuple[Name, ...] | None:
    """Parse FOR [ALL] COLUMNS [a, …]; return None for all columns, and () without FOR."""
    if not c.accept("FOR"):
        return ()
    if c.accept("ALL"):
        c.expect("COLUMNS")
        return None
    c.expect("COLUMNS")
    if c.is_at_end:
        return None
    columns = [c.take_name("the name of a column")]
    while c.accept(","):
        columns.append(c.take_name("the name of a column"))
    return tuple(columns)
