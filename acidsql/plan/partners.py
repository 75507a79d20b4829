"""Finds the columns of MERGE's source that ON compares with columns of the target."""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.plan.equated import Term
from acidsql.plan.event_query import Fields, Planned
from acidsql.sql.conditions import mentioned_columns
from acidsql.sql.statements import Merge


def joining_columns(
    statement: Merge, planned: Planned, source: Fields, terms: Sequence[Term]
) -> frozenset[str]:
    """The source's columns that ON compares with the target's, in lower case.

    These are the source's columns in each term of ON that also names a column of the target. They
    are found by name. If there are none, ON does not compare the two sides. Then it is of no use
    to look for partners before the join.
    """
    theirs = {name.lower() for name, _ in source}
    mine = {column.name for column in planned.table.all_columns}
    target = statement.qualifier.lower()
    places = [term.place for term in terms] or [statement.on]
    found: set[str] = set()
    for place in places:
        names = mentioned_columns(planned.text, place)
        own = {one for one in names if target in one[:-1] or (len(one) == 1 and one[0] in mine)}
        others = {part for name in names - own for part in name}
        found |= others & theirs if own else set()
    return frozenset(found)
