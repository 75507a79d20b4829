"""The parsed statements about views."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.parsed.parts import Name, Query


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """The name of a view's column, and its comment."""

    name: Name
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class CreateView:
    """``CREATE [OR REPLACE] VIEW [IF NOT EXISTS] v [(a, b COMMENT '…')] … AS query``.

    ``columns`` is empty without a column list.
    """

    name: Name
    query: Query
    columns: tuple[ViewColumn, ...] = ()
    comment: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterView:
    """``ALTER VIEW v AS query``."""

    name: Name
    query: Query


@dataclass(frozen=True, slots=True)
class RenameView:
    """``ALTER VIEW v RENAME TO w``."""

    name: Name
    new_name: Name


@dataclass(frozen=True, slots=True)
class DropView:
    """``DROP VIEW [IF EXISTS] v``."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowViews:
    """``SHOW VIEWS [IN|FROM d] [[LIKE] 'pattern']``."""

    database: Name | None = None
    pattern: str | None = None
