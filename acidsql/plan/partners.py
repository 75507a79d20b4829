"""Which rows of a MERGE's target can have a partner: ON, or what is cheaper to find out."""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.plan.event_query import Fields, Planned
from acidsql.plan.sqltext import Text
from acidsql.sql.conditions import mentioned, terms_of
from acidsql.sql.statements import Merge
from acidsql.storage.columns import quote

# Bytes of the types whose equal values are hashed alike, on either side. Not of strings: a
# collation may take two for equal that are not the same.
_SIZES = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "date": 4}
_PACKED = 8


def partner_condition(statement: Merge, planned: Planned, source: Fields) -> tuple[Text, bool]:
    """A condition that holds of any two rows that ON holds of, and whether it is not ON itself.

    Spark joins twice as fast by one BIGINT as by several columns, and packs those into one only if
    they take no more than 8 bytes. Columns that ON wants to be equal are hashed into one.

    Args:
        statement: The statement; its ON has no subquery.
        planned: What is known of it.
        source: The source's columns.
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
    """The source's columns that ON compares with the target's, in lower case, by their names alone.

    Where there are none, ON says nothing of pairs. Then Spark joins by no condition, and to look
    for partners beforehand is of no use.
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
    """The only column that a name can mean, whether or not a session tells p from P."""
    same = [column for column in columns if column[0].lower() == name]
    return same[0] if len(same) == 1 else None


def _hash(alias: str, names: Sequence[str]) -> str:
    return f"xxhash64({', '.join(f'{quote(alias)}.{quote(name)}' for name in names)})"


def _sides(pair: set[tuple[str, str]], target: str, source: str) -> tuple[str, str] | None:
    """The target's and the source's column of a pair that has one of each."""
    columns = dict(pair)
    if target == source or columns.keys() != {target, source}:
        return None
    return columns[target], columns[source]
