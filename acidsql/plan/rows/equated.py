"""Finds which column of MERGE's target ON equates with which column of the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.acid.table import Column
from acidsql.plan.rows.event_query import Fields, RewriteContext
from acidsql.sql.parsed.statements import Merge
from acidsql.sql.queries.conditions import terms_and_equated_pairs
from acidsql.sql.text.tokens import Span
from acidsql.storage.reading.pruning.source_partitions import has_one_text


@dataclass(frozen=True, slots=True)
class EquatedColumns:
    """A term ``target.column = source.name`` of ON.

    Attributes:
        column: The target's column.
        name: The source's column as ON names it, in lower case.
        source_column: The name of the source's column as the source spells it, and the column's
            type. None if the source has no column of this name, or several: in a case-sensitive
            session it may have p and P.
        is_same: The two columns have the same value wherever the term is true. Spark compares
            values of two types after a cast, or by a collation: then '01' equals 1.
    """

    column: Column
    name: str
    source_column: tuple[str, str] | None
    is_same: bool


@dataclass(frozen=True, slots=True)
class Term:
    """A term of ON, with the columns that it equates, if it does nothing else."""

    place: Span
    equated: EquatedColumns | None


def terms_of_on(statement: Merge, context: RewriteContext, source: Fields) -> list[Term]:
    """Return the terms of ON that AND joins, in order, each with the columns that it equates, or
    None; [] if the top level has an OR or a CASE.

    Args:
        statement: The statement.
        context: The context of the rewrite.
        source: The source's columns.
    """
    return [
        Term(
            place,
            None if pair is None else _equated_columns(statement, context, source, dict(pair)),
        )
        for place, pair in terms_and_equated_pairs(context.text, statement.on)
    ]


def equated_in(terms: Sequence[Term]) -> list[EquatedColumns]:
    """Return the columns that these terms equate, in the order of the terms."""
    return [term.equated for term in terms if term.equated is not None]


def _equated_columns(
    statement: Merge, context: RewriteContext, source: Fields, names: dict[str, str]
) -> EquatedColumns | None:
    """Return the target's and the source's column that a term of ON equates; None if it does not
    equate one of each, each named by its alias, or the target has no such column. If the source has
    no or several columns of the name, whatever the case, ``source_column`` is None. They
    ``is_same`` if they have one type, whose equal values have one text, and no collation.

    ``names``: the column by qualifier, one or two.
    """
    target_alias = statement.qualifier.lower()
    source_alias = (statement.source_alias or "").lower()
    if target_alias == source_alias or names.keys() != {target_alias, source_alias}:
        return None
    name = names[source_alias]
    namesakes = [(field, kind) for field, kind in source if field.lower() == name]
    for column in context.table.all_columns:
        if column.name == names[target_alias]:
            if len(namesakes) != 1:
                return EquatedColumns(column, name, None, is_same=False)
            field, kind = namesakes[0]
            is_same = str(kind) == column.type and not kind.collation and has_one_text(column.type)
            return EquatedColumns(column, name, (field, str(kind)), is_same)
    return None
