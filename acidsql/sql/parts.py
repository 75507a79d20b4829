"""What statements are made of: names, values, columns, clauses.

``statements`` hands all of it on: it is the one door.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from acidsql.sql.tokens import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A possibly qualified name, unquoted, as the user wrote it (case kept)."""

    parts: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Default:
    """The word DEFAULT in the place of a value."""

    span: Span


Value = Span | Default


@dataclass(frozen=True, slots=True)
class Query:
    """Anything Spark reads as a query: SELECT, WITH, FROM, TABLE, VALUES as a query, (…)."""

    span: Span


@dataclass(frozen=True, slots=True)
class Values:
    """The rows of ``INSERT … VALUES``; ``span`` runs from the word VALUES to the last bracket.

    A row without brackets (``VALUES 1, 2``) is a row of one value, as in Spark.
    """

    span: Span
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class Literals:
    """The rows of ``INSERT … VALUES`` where every value is a plain literal (``plain_values``).

    ``columns`` are the literals as they were written, column by column, none of them empty.
    """

    span: Span
    columns: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PartitionItem:
    """``p = value`` (static) or ``p`` (dynamic, value None) of a PARTITION clause."""

    name: str
    value: Span | None
    span: Span


@dataclass(frozen=True, slots=True)
class SortBy:
    """``column [ASC|DESC]`` of SORTED BY."""

    name: Name
    descending: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Assignment:
    """``[x.]c = value`` of SET; ``target`` keeps the parts as written."""

    target: Name
    value: Value


class Matched(Enum):
    """Which rows a WHEN clause of MERGE speaks of."""

    MATCHED = "WHEN MATCHED"
    NOT_MATCHED = "WHEN NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "WHEN NOT MATCHED BY SOURCE"


@dataclass(frozen=True, slots=True)
class UpdateAction:
    """``UPDATE SET c = value, …``."""

    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class InsertAction:
    """``INSERT [(columns)] VALUES (…)``; ``columns`` None where no list was given."""

    columns: tuple[Name, ...] | None
    values: tuple[Value, ...]


class Action(Enum):
    """The actions that carry nothing else."""

    UPDATE_ALL = "UPDATE SET *"
    INSERT_ALL = "INSERT *"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """``WHEN … [AND condition] THEN action``."""

    matched: Matched
    condition: Span | None
    action: UpdateAction | InsertAction | Action
    span: Span


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """A column of CREATE TABLE or ADD COLUMNS; ``type`` spans the type as written."""

    name: str
    type: Span
    nullable: bool = True
    default: Span | None = None
    comment: str | None = None
    span: Span = field(default=Span(0, 0))


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What ALTER TABLE says of one column; None: it stays as it is.

    ``must_not_be_null`` says NOT NULL, which a column can only keep.
    """

    column: Name
    new_name: Name | None
    type: Span | None = None
    comment: str | None = None
    default: Span | None = None
    drops_default: bool = False
    drops_not_null: bool = False
    must_not_be_null: bool = False
    span: Span = field(default=Span(0, 0))


@dataclass(frozen=True, slots=True)
class Check:
    """``[CONSTRAINT name] CHECK (condition)``."""

    name: str | None
    condition: Span
