"""Parses ALTER, DROP and TRUNCATE TABLE."""

from __future__ import annotations

from acidsql.acid.table import TRANSACTIONAL
from acidsql.sql.commands.alter_columns import parse_alter_columns
from acidsql.sql.commands.compactions import is_at_compact, parse_compact
from acidsql.sql.commands.constraints import parse_alter_constraint
from acidsql.sql.commands.properties import (
    parse_properties,
    parse_properties_and_places,
    parse_property_keys,
)
from acidsql.sql.grammar.cursor import Cursor
from acidsql.sql.grammar.insert import IsOurs, parse_static_partition
from acidsql.sql.grammar.refusals import refuse_alter
from acidsql.sql.parsed.statements import (
    AddPartitions,
    ConvertTable,
    DropPartitions,
    DropTable,
    Name,
    PartitionItem,
    RenamePartition,
    RenameTable,
    SetFileFormat,
    SetTableProperties,
    Statement,
    TruncateTable,
    UnsetTableProperties,
)


def parse_drop_table(c: Cursor, is_ours: IsOurs) -> DropTable | None:
    """Parse ``DROP TABLE [IF EXISTS] t [PURGE]``; return None if the table is Spark's. PURGE is
    ignored."""
    c.expect("DROP", "TABLE")
    if_exists = c.accept("IF", "EXISTS") is not None
    name = c.take_name("the name of a table")
    if not is_ours(name.parts):
        return None
    c.accept("PURGE")
    c.expect_end("PURGE or the end of the statement")
    return DropTable(name, if_exists)


def parse_truncate_table(c: Cursor, is_ours: IsOurs) -> TruncateTable | None:
    """Parse ``TRUNCATE [TABLE] t [PARTITION (…)]``; return None if the table is Spark's. COLUMNS
    raises UnsupportedError; a column of PARTITION without a value is a syntax error."""
    c.expect("TRUNCATE")
    c.accept("TABLE")
    name = c.take_name("the name of a table")
    if not is_ours(name.parts):
        return None
    partition = parse_static_partition(c) if c.is_at("PARTITION") else ()
    if c.is_at("COLUMNS"):
        c.refuse("TRUNCATE … COLUMNS is not supported: use UPDATE")
    c.expect_end("PARTITION or the end of the statement")
    return TruncateTable(name, partition)


def parse_alter_table(c: Cursor, is_ours: IsOurs) -> Statement | None:
    """Parse ``ALTER TABLE t …`` about columns, constraints, TBLPROPERTIES, FILEFORMAT, partitions,
    RENAME TO or COMPACT. Return None if t is Spark's, unless the statement converts it to an ACID
    table, which gives a ConvertTable. Raise UnsupportedError for an ALTER TABLE that ACID tables do
    not have."""
    c.expect("ALTER", "TABLE")
    name = c.take_name("the name of a table")
    if not is_ours(name.parts) or c.is_at("CONVERT", "TO", "ACID"):
        return _parse_conversion(c, name)
    statement = parse_alter_constraint(c, name) or parse_alter_columns(c, name)
    if statement is not None:
        return statement
    if is_at_compact(c):
        return parse_compact(c, name)
    if c.accept("SET", "TBLPROPERTIES"):
        start = c.index
        pairs, places = parse_properties_and_places(c)
        c.expect_end()
        return SetTableProperties(name, pairs, c.span_from(start), places)
    if c.accept("UNSET", "TBLPROPERTIES"):
        if_exists = c.accept("IF", "EXISTS") is not None
        start = c.index
        keys = parse_property_keys(c)
        c.expect_end()
        return UnsetTableProperties(name, keys, c.span_from(start), if_exists)
    if c.accept("SET", "FILEFORMAT"):
        statement = SetFileFormat(
            name, c.take_name_part("a format").value, c.tokens[c.index - 1].span
        )
        c.expect_end()
        return statement
    if c.is_at("DROP", "PARTITION") or c.is_at("DROP", "IF", "EXISTS", "PARTITION"):
        return _parse_drop_partitions(c, name)
    if c.is_at("ADD", "PARTITION") or c.is_at("ADD", "IF", "NOT", "EXISTS", "PARTITION"):
        return _parse_add_partitions(c, name)
    if c.is_at("RENAME", "TO"):
        c.take(2)
        new_name = c.take_name("the new name")
        c.expect_end()
        return RenameTable(name, new_name)
    return _parse_rename_partition(c, name) or refuse_alter(c)


def _parse_conversion(c: Cursor, name: Name) -> ConvertTable | None:
    """Parse the change of a plain table to an ACID table: CONVERT TO ACID, or SET TBLPROPERTIES
    with 'transactional'='true', whose result has all the properties. Return None, without moving,
    for any other statement."""
    if c.accept("CONVERT", "TO", "ACID"):
        c.expect_end()
        return ConvertTable(name)
    start = c.index
    if c.is_at("SET", "TBLPROPERTIES", "("):
        c.take(2)
        pairs = parse_properties(c)
        if any(k.lower() == TRANSACTIONAL and v.lower() == "true" for k, v in pairs):
            c.expect_end()
            return ConvertTable(name, pairs)
    c.index = start
    return None


def _parse_rename_partition(c: Cursor, name: Name) -> RenamePartition | None:
    """Parse ``PARTITION (…) RENAME TO PARTITION (…)``; return None, without moving, for other
    words."""
    start = c.index
    if c.is_at("PARTITION", "("):
        partition = parse_static_partition(c)
        if c.accept("RENAME", "TO"):
            new_partition = parse_static_partition(c)
            c.expect_end()
            return RenamePartition(name, partition, new_partition)
    c.index = start
    return None


def _parse_add_partitions(c: Cursor, name: Name) -> AddPartitions:
    """Parse ``ADD [IF NOT EXISTS] PARTITION (…) PARTITION (…) …``, each column with a value.
    LOCATION raises UnsupportedError."""
    c.expect("ADD")
    if_not_exists = c.accept("IF", "NOT", "EXISTS") is not None
    specs: list[tuple[PartitionItem, ...]] = []
    while c.is_at("PARTITION") or not specs:
        specs.append(parse_static_partition(c))
        if c.is_at("LOCATION"):
            c.refuse("A LOCATION of a partition is not supported: a partition is in its table's "
                     "directory. LOAD DATA copies files into it")  # fmt: skip
    c.expect_end("PARTITION or the end of the statement")
    return AddPartitions(name, tuple(specs), if_not_exists)


def _parse_drop_partitions(c: Cursor, name: Name) -> DropPartitions:
    """Parse ``DROP [IF EXISTS] PARTITION (…), … [PURGE]``, each column with a value. PURGE is
    ignored."""
    c.expect("DROP")
    if_exists = c.accept("IF", "EXISTS") is not None
    specs = [parse_static_partition(c)]
    while c.accept(","):
        specs.append(parse_static_partition(c))
    c.accept("PURGE")
    c.expect_end("',' or the end of the statement")
    return DropPartitions(name, tuple(specs), if_exists)
