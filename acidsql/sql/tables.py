"""Parses ALTER, DROP and TRUNCATE TABLE."""

from __future__ import annotations

from acidsql.acid.table import TRANSACTIONAL
from acidsql.sql.alter_columns import alter_columns
from acidsql.sql.compactions import at_compact, compact
from acidsql.sql.constraints import alter_constraint
from acidsql.sql.cursor import Cursor
from acidsql.sql.insert import IsAcid, static_partition
from acidsql.sql.properties import properties, property_keys
from acidsql.sql.refusals import refuse_alter
from acidsql.sql.statements import (
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
    c.expect("ALTER", "TABLE")
    name = c.name("the name of a table")
    if not is_acid(name.parts) or c.at("CONVERT", "TO", "ACID"):
        return _conversion(c, name)
    found = alter_constraint(c, name) or alter_columns(c, name)
    if found is not None:
        return found
    if at_compact(c):
        return compact(c, name)
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
    if c.accept("SET", "FILEFORMAT"):
        found = SetFileFormat(name, c.name_part("a format").value, c.tokens[c.index - 1].span)
        c.end()
        return found
    if c.at("DROP", "PARTITION") or c.at("DROP", "IF", "EXISTS", "PARTITION"):
        return _drop_partitions(c, name)
    if c.at("ADD", "PARTITION") or c.at("ADD", "IF", "NOT", "EXISTS", "PARTITION"):
        return _add_partitions(c, name)
    if c.at("RENAME", "TO"):
        c.take(2)
        new_name = c.name("the new name")
        c.end()
        return RenameTable(name, new_name)
    return _rename_partition(c, name) or refuse_alter(c)


def _conversion(c: Cursor, name: Name) -> ConvertTable | None:
    """Parse what makes a plain table an ACID table; None for all else."""
    if c.accept("CONVERT", "TO", "ACID"):
        c.end()
        return ConvertTable(name)
    start = c.index
    if c.at("SET", "TBLPROPERTIES", "("):
        c.take(2)
        pairs = properties(c)
        if any(k.lower() == TRANSACTIONAL and v.lower() == "true" for k, v in pairs):
            c.end()
            return ConvertTable(name, pairs)
    c.index = start
    return None


def _rename_partition(c: Cursor, name: Name) -> RenamePartition | None:
    start = c.index
    if c.at("PARTITION", "("):
        partition = static_partition(c)
        if c.accept("RENAME", "TO"):
            new_partition = static_partition(c)
            c.end()
            return RenamePartition(name, partition, new_partition)
    c.index = start
    return None


def _add_partitions(c: Cursor, name: Name) -> AddPartitions:
    c.expect("ADD")
    if_not_exists = c.accept("IF", "NOT", "EXISTS") is not None
    specs: list[tuple[PartitionItem, ...]] = []
    while c.at("PARTITION") or not specs:
        specs.append(static_partition(c))
        if c.at("LOCATION"):
            c.refuse("A LOCATION of a partition is not supported: a partition is in its table's "
                     "directory. LOAD DATA copies files into it")  # fmt: skip
    c.end("PARTITION or the end of the statement")
    return AddPartitions(name, tuple(specs), if_not_exists)


def _drop_partitions(c: Cursor, name: Name) -> DropPartitions:
    c.expect("DROP")
    if_exists = c.accept("IF", "EXISTS") is not None
    specs = [static_partition(c)]
    while c.accept(","):
        specs.append(static_partition(c))
    c.accept("PURGE")
    c.end("',' or the end of the statement")
    return DropPartitions(name, tuple(specs), if_exists)
