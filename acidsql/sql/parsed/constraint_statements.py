"""The parsed forms of constraints, and of the statements about them. Import from ``statements``."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.acid.constraints import ConstraintKind
from acidsql.sql.parsed.parts import Name
from acidsql.sql.text.tokens import Span


@dataclass(frozen=True, slots=True)
class Traits:
    """The words behind a constraint; None: the statement has none of that kind.

    Attributes:
        enforced: ENABLE or ENFORCED; False for DISABLE and NOT ENFORCED.
        validated: VALIDATE; False for NOVALIDATE.
        relied: RELY; False for NORELY.
    """

    enforced: bool | None = None
    validated: bool | None = None
    relied: bool | None = None


@dataclass(frozen=True, slots=True)
class ConstraintDef:
    """``[CONSTRAINT name] CHECK (…)``, a key, or a NOT NULL that is not enforced.

    Attributes:
        kind: Its kind.
        span: Its place, with its name.
        name: Its name; None without one.
        condition: The place of a CHECK's condition.
        columns: The columns of a key or of NOT NULL.
        parent: The table that a FOREIGN KEY refers to.
        parent_columns: The columns there; empty: those of its primary key.
        traits: The words behind it.
    """

    kind: ConstraintKind
    span: Span
    name: Name | None = None
    condition: Span | None = None
    columns: tuple[Name, ...] = ()
    parent: Name | None = None
    parent_columns: tuple[Name, ...] = ()
    traits: Traits = Traits()


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """``ALTER TABLE t ADD [CONSTRAINT name] CHECK (…)``, or a key."""

    name: Name
    constraint: ConstraintDef


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """``ALTER TABLE t DROP CONSTRAINT [IF EXISTS] name``."""

    name: Name
    constraint: Name
    if_exists: bool = False
