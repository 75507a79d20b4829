"""The parsed statements that change databases, or the current one."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.parts import Name


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """``CREATE DATABASE|SCHEMA [IF NOT EXISTS] d [COMMENT '…'] [LOCATION '…']``."""

    name: Name
    if_not_exists: bool = False
    comment: str | None = None
    location: str | None = None


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
