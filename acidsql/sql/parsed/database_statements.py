"""The parsed statements about databases."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.parsed.parts import Name

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """``CREATE DATABASE|SCHEMA [IF NOT EXISTS] d [COMMENT '…'] [LOCATION '…']
    [WITH DBPROPERTIES (…)]``."""

    name: Name
    if_not_exists: bool = False
    comment: str | None = None
    location: str | None = None
    properties: Pairs = ()


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    """``ALTER DATABASE|SCHEMA d SET DBPROPERTIES (…)``, or ``UNSET DBPROPERTIES ('key', …)``."""

    name: Name
    properties: Pairs = ()
    unset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribeDatabase:
    """``DESCRIBE|DESC DATABASE|SCHEMA [EXTENDED] d``."""

    name: Name
    extended: bool = False


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """``DROP DATABASE|SCHEMA [IF EXISTS] d [RESTRICT|CASCADE]``."""

    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """``USE [DATABASE|SCHEMA|NAMESPACE] d``."""

    name: Name
