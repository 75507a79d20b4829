"""Finds which column of MERGE's target ON equates with which column of the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.acid.table import Column
from acidsql.plan.event_query import Fields, Planned
from acidsql.sql.conditions import terms_of
from acidsql.sql.statements import Merge
from acidsql.sql.tokens import Span
from acidsql.storage.reading.source_partitions import has_one_text


@dataclass(frozen=True, slots=True)
class Equated:
    """A term ``target.column = source.name`` of ON.

    Attributes:
        column: The target's column.
        name: The source's column as ON names it, in lower case.
        own: The source's own name for this column, and the column's type. None if the source has
            no column of this name, or several: in a case-sensitive session it may have p and P.
        is_same: The two columns have the same value wherever the term is true. Spark compares
            values of two types after a cast, or by a collation: then '01' equals 1.
    """

    column: Column
    name: str
    own: tuple[str, str] | None
    is_same: bool


@dataclass(frozen=True, slots=True)
class Term:
    """A term of ON, with the columns that it equates, if it does nothing else."""

    place: Span
    equated: Equated | None


def terms_of_on(statement: Merge, planned: Planned, source: Fields) -> list[Term]:
    """The terms of ON that AND joins; empty if the top level has an OR or a CASE.

    Args:
        statement: The statement.
        planned: The facts about the statement.
        source: The source's columns.
    """
    return [
        Term(place, None if pair is None else _equated(statement, planned, source, dict(pair)))
        for place, pair in terms_of(planned.text, statement.on)
    ]


def equated_in(terms: Sequence[Term]) -> list[Equated]:
    """The columns that these terms equate, in the order of the terms."""
    return [term.equated for term in terms if term.equated is not None]


def _equated(
    statement: Merge, planned: Planned, source: Fields, names: dict[str, str]
) -> Equated | None:
    """What a term equates. ``names`` maps its qualifiers to columns: one or two."""
    ours = statement.qualifier.lower()
    theirs = (statement.source_alias or "").lower()
    if ours == theirs or names.keys() != {ours, theirs}:
        return None
    name = names[theirs]
    own = [(field, kind) for field, kind in source if field.lower() == name]
    for column in planned.table.all_columns:
        if column.name == names[ours]:
            if len(own) != 1:
                return Equated(column, name, None, is_same=False)
            field, kind = own[0]
            is_same = str(kind) == column.type and not kind.collation and has_one_text(column.type)
            return Equated(column, name, (field, str(kind)), is_same)
    return None
