"""Finds the condition that selects the rows of MERGE's target with a partner in the source.

The condition is ON itself, or a cheaper condition that may keep too many rows, never too few.
"""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.plan.event_query import Fields, Planned
from acidsql.plan.sqltext import Text
from acidsql.sql.conditions import mentioned, terms_of
from acidsql.sql.statements import Merge
from acidsql.storage.columns import quote

# The types whose equal values have equal hashes, with their bytes. Strings are not among them:
# under a collation two different strings may be equal.
_SIZES = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "date": 4}
_PACKED = 8  # bytes of join keys that Spark itself packs into one BIGINT


def partner_condition(statement: Merge, planned: Planned, source: Fields) -> tuple[Text, bool]:
    """A condition that is true for every pair of rows for which ON is true.

    Spark joins twice as fast by one BIGINT as by several columns. Spark packs several columns into
    one BIGINT only if they take at most 8 bytes. For more bytes, the columns that ON equates are
    hashed into one BIGINT here.

    Args:
        statement: The statement; its ON has no subquery.
        planned: The facts about the statement.
        source: The source's columns.

    Returns:
        The condition, and whether it compares hashes. If not, the condition is ON.
    """
    on = planned.new().user(statement.on)
    terms = terms_of(planned.text, statement.on)
    if statement.source_alias is None or sum(pair is not None for _, pair in terms) < 2:
        return on, False
    target = statement.alias or statement.target.parts[-1]
    own = [(column.name, column.type) for column in planned.table.all_columns]
    others = [(name, str(kind)) for name, kind in source]
    equated: list[tuple[str, str, str]] = []
    rest: list[Text] = []
    for place, pair in terms:
        names = _sides(pair or set(), target.lower(), statement.source_alias.lower())
        mine, theirs = (_only(own, names[0]), _only(others, names[1])) if names else (None, None)
        if mine and theirs and mine[1] == theirs[1] in _SIZES:
            equated.append((mine[0], theirs[0], mine[1]))
        else:
            rest.append(planned.new().user(place))
    if sum(_SIZES[kind] for _, _, kind in equated) <= _PACKED:
        return on, False
    condition = planned.new().raw(_hash(target, [name for name, _, _ in equated])).raw(" = ")
    condition.raw(_hash(statement.source_alias, [name for _, name, _ in equated]))
    for term in rest:
        condition.raw(" AND ").add(term)
    return condition, True


def joining_columns(statement: Merge, planned: Planned, source: Fields) -> frozenset[str]:
    """The source's columns that ON compares with the target's, in lower case.

    They are found by name. If there are none, ON does not compare the two sides. Then looking for
    partners before the join is of no use.
    """
    theirs = {name.lower() for name, _ in source}
    mine = {column.name for column in planned.table.all_columns}
    target = (statement.alias or statement.target.parts[-1]).lower()
    places = [place for place, _ in terms_of(planned.text, statement.on)] or [statement.on]
    found: set[str] = set()
    for place in places:
        names = mentioned(planned.text, place)
        own = {one for one in names if target in one[:-1] or (len(one) == 1 and one[0] in mine)}
        others = {part for name in names - own for part in name}
        found |= others & theirs if own else set()
    return frozenset(found)


def _only(columns: Sequence[tuple[str, str]], name: str) -> tuple[str, str] | None:
    """The only column of this name, in upper or lower case; None if there are none or several."""
    same = [column for column in columns if column[0].lower() == name]
    return same[0] if len(same) == 1 else None


def _hash(alias: str, names: Sequence[str]) -> str:
    return f"xxhash64({', '.join(f'{quote(alias)}.{quote(name)}' for name in names)})"


def _sides(pair: set[tuple[str, str]], target: str, source: str) -> tuple[str, str] | None:
    """The target's and the source's column of a pair; None if the pair has not one of each."""
    columns = dict(pair)
    if target == source or columns.keys() != {target, source}:
        return None
    return columns[target], columns[source]
