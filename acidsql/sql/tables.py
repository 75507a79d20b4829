"""Parses ALTER, DROP and TRUNCATE TABLE."""

from __future__ import annotations

from typing import NoReturn

from acidsql.sql.alter_columns import alter_columns
from acidsql.sql.compactions import at_compact, compact
from acidsql.sql.constraints import alter_constraint
from acidsql.sql.cursor import Cursor
from acidsql.sql.insert import IsAcid, static_partition
from acidsql.sql.properties import properties, property_keys
from acidsql.sql.statements import (
    DropPartitions,
    DropTable,
    Name,
    RenameTable,
    SetTableProperties,
    Statement,
    TruncateTable,
    UnsetTableProperties,
)
from acidsql.sql.tokens import Kind, Span


def drop_table(c: Cursor, is_acid: IsAcid) -> DropTable | None:
    """Parse ``DROP TABLE [IF EXISTS] t [PURGE]``; None if the table is Spark's."""
    c.expect("DROP", "TABLE")
    if_exists = c.accept("IF", "EXISTS") is not None
    name = c.name("the name of a table")
    if not is_acid(name.parts):
        return None
    c.accept("PURGE")
    c.end("PURGE or the end of the statement")
    return DropTable(name, if_exists)


def truncate_table(c: Cursor, is_acid: IsAcid) -> TruncateTable | None:
    """Parse ``TRUNCATE [TABLE] t [PARTITION (…)]``; None if the table is Spark's."""
    c.expect("TRUNCATE")
    c.accept("TABLE")
    name = c.name("the name of a table")
    if not is_acid(name.parts):
        return None
    partition = static_partition(c) if c.at("PARTITION") else ()
    if c.at("COLUMNS"):
        c.refuse("TRUNCATE … COLUMNS is not supported: use UPDATE")
    c.end("PARTITION or the end of the statement")
    return TruncateTable(name, partition)


def alter_table(c: Cursor, is_acid: IsAcid) -> Statement | None:
    """Parse ``ALTER TABLE t …``; None if the table is Spark's."""
    start = c.index
    c.expect("ALTER", "TABLE")
    name = c.name("the name of a table")
    if not is_acid(name.parts):
        _refuse_conversion(c, name)
        return None
    found = alter_constraint(c, name) or alter_columns(c, name)
    if found is not None:
        return found
    if at_compact(c):
        return compact(c, name, start)
    if c.accept("SET", "TBLPROPERTIES"):
        start = c.index
        pairs = properties(c)
        c.end()
        return SetTableProperties(name, pairs, c.span_from(start))
    if c.accept("UNSET", "TBLPROPERTIES"):
        if_exists = c.accept("IF", "EXISTS") is not None
        start = c.index
        keys = property_keys(c)
        c.end()
        return UnsetTableProperties(name, keys, c.span_from(start), if_exists)
    if c.at("DROP", "PARTITION") or c.at("DROP", "IF", "EXISTS", "PARTITION"):
        return _drop_partitions(c, name)
    if c.at("RENAME", "TO"):
        c.take(2)
        new_name = c.name("the new name")
        c.end()
        return RenameTable(name, new_name)
    _refuse_alter(c)


def _refuse_conversion(c: Cursor, name: Name) -> None:
    """Refuse to set 'transactional' for a table of Spark's.

    Spark would store the property, but the table would not become transactional.
    """
    if not c.at("SET", "TBLPROPERTIES", "("):
        return
    start = c.index
    c.take(2)
    if any(k.lower() == "transactional" and v.lower() == "true" for k, v in properties(c)):
        c.refuse(
            f"'{'.'.join(name.parts)}' is not an ACID table and cannot become one in place: CREATE "
            "TABLE … (columns) LOCATION '…' makes an ACID table of a directory of ORC files",
            name.span,
        )
    c.index = start


def _drop_partitions(c: Cursor, name: Name) -> DropPartitions:
    c.expect("DROP")
    if_exists = c.accept("IF", "EXISTS") is not None
    specs = [static_partition(c)]
    while c.accept(","):
        specs.append(static_partition(c))
    c.accept("PURGE")
    c.end("',' or the end of the statement")
    return DropPartitions(name, tuple(specs), if_exists)


def _refuse_alter(c: Cursor) -> NoReturn:
    if c.done:
        c.fail(
            "Expected ADD, CHANGE, RENAME or REPLACE COLUMNS, ADD or DROP CONSTRAINT, SET or UNSET "
            "TBLPROPERTIES, DROP PARTITION, RENAME TO or COMPACT"
        )
    if c.accept("PARTITION") and c.at("("):
        c.skip_brackets()
    words = [c.peek(n).upper for n in range(2) if c.peek(n).kind is Kind.WORD]
    span = Span(c.token.start, c.peek(max(0, len(words) - 1)).end)
    c.refuse(f"ALTER TABLE … {' '.join(words)} is not supported on an ACID table", span)
