"""Parses ``RESTORE TABLE`` (Delta Lake's) and ``REVERT TRANSACTION``."""

from __future__ import annotations

from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import IsOurs
from acidsql.sql.parsed.history_statements import Restore, RevertTransaction
from acidsql.sql.parsed.time_travel import parse_time_travel
from acidsql.sql.text.tokens import Span

_AS_OF = (("VERSION", "AS", "OF"), ("TIMESTAMP", "AS", "OF"))


def parse_restore(c: Cursor, is_ours: IsOurs, statement_span: Span) -> Restore | None:
    """Parse ``RESTORE [TABLE] t [TO] VERSION AS OF n|TIMESTAMP AS OF e``; return None if the table
    is Spark's. The version is a number; the timestamp stays a place in the text. The parameter
    ``statement_span`` is not used: all statement parsers have it."""
    c.expect("RESTORE")
    c.accept("TABLE")
    target = c.take_name("the name of a table")
    if not is_ours(target.parts):
        return None
    c.accept("TO")
    if not any(c.is_at(*words) for words in _AS_OF):
        c.fail("Expected VERSION AS OF or TIMESTAMP AS OF")
    clause = c.take_rest()
    return Restore(target, parse_time_travel(c.text, clause))


def parse_revert(c: Cursor, is_ours: IsOurs, statement_span: Span) -> RevertTransaction:
    """Parse ``REVERT TRANSACTION n [SKIP CONFLICTS]``; the result has the place of n, too. The
    other parameters are not used: all statement parsers have them."""
    c.expect("REVERT", "TRANSACTION")
    start = c.index
    txn_id = c.take_number()
    txn_span = c.span_from(start)
    skips_conflicts = c.accept("SKIP", "CONFLICTS") is not None
    c.expect_end("SKIP CONFLICTS or the end of the statement")
    return RevertTransaction(txn_id, txn_span, skips_conflicts)
