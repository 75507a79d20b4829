"""Finds the condition that selects the rows of MERGE's target with a partner in the source.

The condition is ON itself, or a cheaper condition that may keep too many rows, never too few.
"""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.plan.equated import Term
from acidsql.plan.event_query import Fields, Planned
from acidsql.plan.sqltext import Text
from acidsql.sql.conditions import mentioned
from acidsql.sql.statements import Merge
from acidsql.storage.columns import quote

# The types whose equal values have equal hashes, with their bytes. Strings are not among them:
# under a collation two different strings may be equal.
_SIZES = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "date": 4}
_PACKED = 8  # bytes of join keys that Spark itself packs into one BIGINT


def partner_condition(
    statement: Merge, planned: Planned, terms: Sequence[Term]
) -> tuple[Text, bool]:
    """A condition that is true for every pair of rows for which ON is true.

    Spark joins twice as fast by one BIGINT as by several columns. Spark packs several columns into
    one BIGINT only if they take at most 8 bytes. For more bytes, the columns that ON equates are
    hashed into one BIGINT here.

    Args:
        statement: The statement; its ON has no subquery.
        planned: The facts about the statement.
        terms: The terms of ON.

    Returns:
        The condition, and whether it compares hashes. If not, the condition is ON.
    """
    hashed: list[tuple[str, str, str]] = []
    rest: list[Text] = []
    for term in terms:
        one = term.equated
        if one is not None and one.own is not None and one.own[1] == one.column.type in _SIZES:
            hashed.append((one.column.name, *one.own))
        else:
            rest.append(planned.new().user(term.place))
    if statement.source_alias is None or sum(_SIZES[kind] for _, _, kind in hashed) <= _PACKED:
        return planned.new().user(statement.on), False
    target = statement.qualifier
    condition = planned.new().raw(_hash(target, [name for name, _, _ in hashed])).raw(" = ")
    condition.raw(_hash(statement.source_alias, [name for _, name, _ in hashed]))
    for text in rest:
        condition.raw(" AND ").add(text)
    return condition, True


def joining_columns(
    statement: Merge, planned: Planned, source: Fields, terms: Sequence[Term]
) -> frozenset[str]:
    """The source's columns that ON compares with the target's, in lower case.

    They are found by name. If there are none, ON does not compare the two sides. Then looking for
    partners before the join is of no use.
    """
    theirs = {name.lower() for name, _ in source}
    mine = {column.name for column in planned.table.all_columns}
    target = statement.qualifier.lower()
    places = [term.place for term in terms] or [statement.on]
    found: set[str] = set()
    for place in places:
        names = mentioned(planned.text, place)
        own = {one for one in names if target in one[:-1] or (len(one) == 1 and one[0] in mine)}
        others = {part for name in names - own for part in name}
        found |= others & theirs if own else set()
    return frozenset(found)


def _hash(alias: str, names: Sequence[str]) -> str:
    return f"xxhash64({', '.join(f'{quote(alias)}.{quote(name)}' for name in names)})"
