"""Finds the columns of MERGE's source that ON compares with columns of the target."""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.plan.rows.equated import Term
from acidsql.plan.rows.event_query import Fields, RewriteContext
from acidsql.sql.parsed.statements import Merge
from acidsql.sql.queries.conditions import mentioned_columns


def joining_columns(
    statement: Merge, context: RewriteContext, source: Fields, terms: Sequence[Term]
) -> frozenset[str]:
    """Return the source's columns that ON compares with the target's, in lower case.

    These are the source's columns in each term of ON that also names a column of the target; with
    an OR or a CASE at the top level, all of ON is one term. They are found by name: a name that
    both sides have and that no alias qualifies is the target's. If there are none, ON does not
    compare the two sides. Then it is of no use to look for partners before the join.
    """
    source_names = {name.lower() for name, _ in source}
    target_columns = {column.name for column in context.table.all_columns}
    target = statement.qualifier.lower()
    places = [term.place for term in terms] or [statement.on]
    joining: set[str] = set()
    for place in places:
        chains = mentioned_columns(context.text, place)
        target_chains = {
            chain
            for chain in chains
            if target in chain[:-1] or (len(chain) == 1 and chain[0] in target_columns)
        }
        source_parts = {part for name in chains - target_chains for part in name}
        joining |= source_parts & source_names if target_chains else set()
    return frozenset(joining)
