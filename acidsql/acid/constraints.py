"""The constraints of a table beside its columns' NOT NULL and DEFAULT. Pure values.

A CHECK is enforced, or is information. Keys are information alone: neither Hive nor acidsql keeps
rows from breaking them. So is a NOT NULL here: one that is enforced is a part of its column.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum


class ConstraintKind(Enum):
    """The kinds of constraints, by their words in SQL."""

    PRIMARY_KEY = "PRIMARY KEY"
    FOREIGN_KEY = "FOREIGN KEY"
    UNIQUE = "UNIQUE"
    NOT_NULL = "NOT NULL"
    CHECK = "CHECK"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint.

    Attributes:
        name: Its name in lower case, by which it is dropped.
        kind: Its kind.
        condition: The SQL text of a CHECK; else empty.
        columns: The columns of a key or of a NOT NULL; empty for a CHECK.
        parent: The table that a FOREIGN KEY refers to, ``database.table``; else empty.
        parent_columns: Its columns there.
        is_enforced: No statement writes rows that break it. Only a CHECK can be enforced.
        is_relied: The words RELY or NORELY: whether a planner of queries may trust it.
    """

    name: str
    kind: ConstraintKind
    condition: str = ""
    columns: tuple[str, ...] = ()
    parent: str = ""
    parent_columns: tuple[str, ...] = ()
    is_enforced: bool = False
    is_relied: bool = False

    @property
    def body(self) -> str:
        """The text that a metastore keeps: of a CHECK the condition, otherwise a JSON list of
        ``columns``, ``parent`` and ``parent_columns``, always all three."""
        if self.kind is ConstraintKind.CHECK:
            return self.condition
        return json.dumps([self.columns, self.parent, self.parent_columns], ensure_ascii=False)

    @classmethod
    def from_body(
        cls, name: str, kind: ConstraintKind, body: str, *, enforced: bool, relied: bool
    ) -> Constraint:
        """Make a constraint from what a metastore keeps. ``body``: the condition of a CHECK; else
        JSON, the list of columns, parent and the parent's columns, as the property ``body`` gives
        it."""
        if kind is ConstraintKind.CHECK:
            return cls(name, kind, body, is_enforced=enforced, is_relied=relied)
        columns, parent, parent_columns = json.loads(body)
        return cls(name, kind, "", tuple(columns), parent, tuple(parent_columns), enforced, relied)


def check_constraint(name: str, condition: str) -> Constraint:
    """Make the CHECK of SQL without further words: it is enforced and relied on."""
    return Constraint(name, ConstraintKind.CHECK, condition, is_enforced=True, is_relied=True)
