"""The parsed SHOW and DESCRIBE statements about databases and tables."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.parsed.parts import Name, PartitionItem


@dataclass(frozen=True, slots=True)
class ShowDatabases:
    """``SHOW DATABASES|SCHEMAS [[LIKE] 'pattern']``."""

    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowTables:
    """``SHOW TABLES [IN|FROM d] [[LIKE] 'pattern']``."""

    database: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowPartitions:
    """``SHOW PARTITIONS t [PARTITION (…)]``."""

    name: Name
    partition: tuple[PartitionItem, ...] = ()


@dataclass(frozen=True, slots=True)
class ShowCreateTable:
    """``SHOW CREATE TABLE t``."""

    name: Name


@dataclass(frozen=True, slots=True)
class ShowTableProperties:
    """``SHOW TBLPROPERTIES t [('key')]``."""

    name: Name
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ShowColumns:
    """``SHOW COLUMNS IN|FROM t``."""

    name: Name


@dataclass(frozen=True, slots=True)
class DescribeTable:
    """``DESCRIBE|DESC [TABLE] [EXTENDED|FORMATTED] t [column]``."""

    name: Name
    extended: bool = False
    column: Name | None = None
