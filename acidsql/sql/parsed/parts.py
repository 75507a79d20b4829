"""The parts of parsed statements: names, values, columns, clauses. Import from ``statements``."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from acidsql.sql.text.tokens import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A name, which may be qualified: unquoted, with upper and lower case as the user wrote it."""

    parts: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Default:
    """The word DEFAULT instead of a value."""

    span: Span


Value = Span | Default


@dataclass(frozen=True, slots=True)
class Query:
    """The place of a text that Spark reads as a query: SELECT, WITH, FROM, TABLE, VALUES with more,
    (…)."""

    span: Span


@dataclass(frozen=True, slots=True)
class Values:
    """The rows of ``INSERT … VALUES``. ``span`` spans the word VALUES and all rows.

    A row without brackets (``VALUES 1, 2``) is a row of one value, as in Spark.
    """

    span: Span
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class Literals:
    """The rows of an ``INSERT … VALUES`` of plain literals only (see ``plain_values``).

    ``columns`` has the literals of each column, as the user wrote them. No column is empty.
    """

    span: Span
    columns: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PartitionItem:
    """``p = value`` (static) or ``p`` (dynamic; ``value`` is None) in a PARTITION clause."""

    name: str
    value: Span | None
    span: Span


@dataclass(frozen=True, slots=True)
class Replacing:
    """``REPLACE WHERE condition`` or ``REPLACE USING (columns)`` of an INSERT.

    ``span`` spans the clause. Exactly one of ``where`` and ``using`` is given.
    """

    span: Span
    where: Span | None = None
    using: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class SortBy:
    """``column [ASC|DESC]`` in SORTED BY."""

    name: Name
    descending: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Assignment:
    """``[x.]c = value`` in SET. ``target`` has all parts of the name."""

    target: Name
    value: Value


class Matched(Enum):
    """The rows to which a WHEN clause of MERGE applies."""

    MATCHED = "WHEN MATCHED"
    NOT_MATCHED = "WHEN NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "WHEN NOT MATCHED BY SOURCE"


@dataclass(frozen=True, slots=True)
class UpdateAction:
    """``UPDATE SET c = value, …``."""

    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class InsertAction:
    """``INSERT [(columns)] VALUES (…)``. ``columns`` is None without a column list."""

    columns: tuple[Name, ...] | None
    values: tuple[Value, ...]


class Action(Enum):
    """The actions of MERGE without columns and values."""

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
    """A column in CREATE TABLE or ADD COLUMNS. ``type`` spans the type in the text."""

    name: str
    type: Span
    nullable: bool = True
    default: Span | None = None
    comment: str | None = None
    span: Span = field(default=Span(0, 0))


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """The changes of one column in ALTER TABLE. None means no change.

    ``must_not_be_null``: the statement has NOT NULL.
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
class Returning:
    """``RETURNING [WITH (OLD AS x, NEW AS y)] item, …``.

    Attributes:
        span: The place of the clause, which is the statement's last one.
        items: The places of the items, each with its alias.
        old: The name that WITH gives to the old row; None without WITH.
        new: The name that WITH gives to the new row; None without WITH.
    """

    span: Span
    items: tuple[Span, ...]
    old: str | None = None
    new: str | None = None
