"""Parses LOAD DATA."""

from __future__ import annotations

from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import IsOurs, parse_static_partition
from acidsql.sql.parsed.statements import LoadData, PartitionItem


def parse_load_data(c: Cursor, is_ours: IsOurs) -> LoadData | None:
    """Parse ``LOAD DATA [LOCAL] INPATH '…' [OVERWRITE] INTO TABLE t [PARTITION (…)]``; return None
    if t is Spark's, or no ``INTO TABLE t`` follows. INPUTFORMAT raises UnsupportedError; a column
    of PARTITION without a value is a syntax error."""
    start = c.index
    c.skip_to(("INTO", "TABLE"))
    if c.is_at_end:
        return None
    c.take(2)
    if not c.token.is_name or not is_ours(c.take_name("the name of a table").parts):
        return None
    c.index = start
    c.expect("LOAD", "DATA")
    local = c.accept("LOCAL") is not None
    c.expect("INPATH")
    place = c.token.span
    path = c.take_string("a path in quotes")
    overwrite = c.accept("OVERWRITE") is not None
    c.expect("INTO", "TABLE")
    name = c.take_name("the name of a table")
    partition: tuple[PartitionItem, ...] = parse_static_partition(c) if c.is_at("PARTITION") else ()
    if c.is_at("INPUTFORMAT"):
        c.refuse("LOAD DATA … INPUTFORMAT is not supported: ORC files are loaded, no others")
    c.expect_end("PARTITION or the end of the statement")
    return LoadData(name, path, place, local, overwrite, partition)
