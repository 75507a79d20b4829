"""The decision of AUTO CDC: what becomes of each key's newest record, in both tables.

The query gives one row for each key. ``Act`` names the values of its columns ``act`` (of the
target) and ``note`` (of the state table). ``fate`` is APPLIED, DUPLICATE or STALE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from acidsql.acid.table import Column, Table
from acidsql.acid.types import HiveType, parse_type
from acidsql.plan.cdc_order import struct_sql
from acidsql.plan.cdc_rules import Rules
from acidsql.plan.event_query import (
    Derived,
    EventQuery,
    Planned,
    Reduced,
    default_fields,
    key_columns,
    omitted_value,
)
from acidsql.plan.sqltext import Text
from acidsql.storage import event_records as ew
from acidsql.storage.columns import literal, quote

APPLIED, DUPLICATE, STALE = "applied", "duplicate", "stale"
ROW = f"{ew.PREFIX}row"  # the row id of the state table's row


class Act(IntEnum):
    """What is done with one row of a table."""

    NOTHING = 0
    UPDATE = 1
    MOVE = 2  # an update that brings the row to another partition or bucket
    INSERT = 3
    DELETE = 4


@dataclass(frozen=True, slots=True)
class Sides:
    """The views that the query reads, and the state table.

    ``folded`` is a view over ``files``, which is a view over the folded records' files.
    """

    files: str
    folded: str
    target: str
    state_view: str
    state: Table

    @property
    def sequence(self) -> str:
        """The state table's column of order values."""
        return state_columns(self.state)[0]


def state_columns(state: Table) -> tuple[str, str, str]:
    """The state table's columns: the order value, whether the key is deleted, since when."""
    sequence, deleted, at = (column.name for column in state.columns[-3:])
    return sequence, deleted, at


def decide(rules: Rules, planned: Planned, sides: Sides) -> EventQuery:
    """Compose the query. Its ``source`` is the view over the folded records."""
    new = _new_values(rules, planned)
    whole, reduced = (
        _query(rules, planned, sides, new, _joined(rules, planned, sides, is_reduced=is_reduced))
        for is_reduced in (False, True)
    )
    partitions = tuple(
        (key, f"k{i}") for i, key in enumerate(rules.keys) if key in planned.table.partition_columns
    )
    names = frozenset(f"k{i}" for i in range(len(rules.keys)))
    source = Derived(sides.folded, planned.new().raw(f"SELECT * FROM {sides.files}"))
    return EventQuery(
        planned.table, whole, source=source, reduced=Reduced(reduced, names, partitions)
    )


def _joined(rules: Rules, planned: Planned, sides: Sides, *, is_reduced: bool) -> Text:
    """The folded records, each with its row in the target and in the state table."""
    table = planned.table
    by_target = _on(rules.keys, "t")
    by_state = _on(rules.keys, "x")
    columns: list[Text | str] = [
        "f.*",
        *key_columns("t"),
        *(f"t.{quote(column.name)} AS o{i}" for i, column in enumerate(table.all_columns)),
        f"x.row__id AS {ROW}",
        f"{_kept_order(rules, sides)} AS v",
    ]
    text = planned.new().raw("SELECT\n").commas(columns)
    text.raw(f"\nFROM {sides.folded} AS f\nLEFT OUTER JOIN ")
    text.raw(_side(sides.target, "t", sides.folded, by_target, is_reduced=is_reduced))
    text.raw(f" ON {by_target}\nLEFT OUTER JOIN ")
    text.raw(_side(sides.state_view, "x", sides.folded, by_state, is_reduced=is_reduced))
    return text.raw(f" ON {by_state}")


def _on(keys: Sequence[Column], alias: str) -> str:
    return " AND ".join(f"{alias}.{quote(key.name)} = f.k{i}" for i, key in enumerate(keys))


def _side(view: str, alias: str, folded: str, on: str, *, is_reduced: bool) -> str:
    """A table's rows or, reduced, only those with a record. Spark broadcasts the keys for that."""
    if not is_reduced:
        return f"{view} AS {alias}"
    sent = f"(SELECT /*+ BROADCAST(f) */ * FROM {folded} AS f) AS f"
    return f"(SELECT {alias}.* FROM {view} AS {alias} LEFT SEMI JOIN {sent} ON {on}) AS {alias}"


def _kept_order(rules: Rules, sides: Sides) -> str:
    """The order value that the key had before; NULL if none is known."""
    noted = f"x.{quote(sides.sequence)}"
    if not rules.order:
        return noted
    values = [f"t.{quote(column.name)}" for column in rules.order]
    live = struct_sql(values) if rules.is_struct else values[0]
    known = " AND ".join(f"{value} IS NOT NULL" for value in values)
    # The user may have inserted a row whose key was deleted: then both are known.
    return f"greatest(CASE WHEN {known} THEN {live} END, {noted})"


def _new_values(rules: Rules, planned: Planned) -> dict[str, str]:
    """The value of each column of the target after an insert or an update, by name."""
    new = {key.name: f"k{i}" for i, key in enumerate(rules.keys)}
    new |= {column.name: f"top.v{i}" for i, column in enumerate(rules.columns)}
    fields = {column: i for i, column in enumerate(rules.columns)}
    types = default_fields(planned, rules.kept)
    for i, column in enumerate(planned.table.all_columns):
        if column in rules.kept:
            default = omitted_value(planned, column, types)
            new[column.name] = f"CASE WHEN blank THEN {default} ELSE o{i} END"
        elif column in rules.ignoring:
            old = f"CASE WHEN NOT blank THEN o{i} END"
            new[column.name] = newest(f"v{fields[column]}", old, parse_type(column.type))
    return new


def newest(path: str, old: str, kind: HiveType) -> str:
    """SQL of the newest value that is not NULL since the newest delete, or else the old one.

    The parts of a struct are such values, too.

    Args:
        path: The field of each of the records ``news``.
        old: SQL of the value before these records.
        kind: The value's type.
    """
    found = f"try_element_at(filter(news, r -> r.d OR r.{path} IS NOT NULL), -1).{path}"
    if kind.kind != "struct":
        return f"coalesce({found}, {old})"
    parts = ", ".join(
        f"{literal(name)}, {newest(f'{path}.{quote(name)}', f'({old}).{quote(name)}', child)}"
        for name, child in zip(kind.names, kind.children, strict=True)
    )
    return f"CASE WHEN {found} IS NOT NULL OR {old} IS NOT NULL THEN named_struct({parts}) END"


def _query(rules: Rules, planned: Planned, sides: Sides, new: dict[str, str], joined: Text) -> Text:
    table = planned.table
    stays = [
        f"{new[column.name]} <=> o{i}"
        for i, column in enumerate(table.all_columns)
        if column in table.partition_columns or column.name in table.bucket_columns
    ]
    columns: list[Text | str] = [
        *ew.KEYS,
        *(f"k{i}" for i in range(len(rules.keys))),
        "s",
        "top.d AS d",
        "n",
        "m",
        ROW,
        f"{_fate()} AS fate",
        f"{_act(' AND '.join(stays) or 'true')} AS act",
        f"{_note(is_in_target=bool(rules.order))} AS note",
        *(f"{new[column.name]} AS c{i}" for i, column in enumerate(table.all_columns)),
    ]
    text = planned.new().raw("SELECT\n").commas(columns)
    facts = [
        "*",
        "coalesce(s > v, true) AS fresh",
        # Before the newest record there is no row, or a record deletes it.
        f"{ew.PARTITION} IS NULL OR coalesce(gone > v, gone IS NOT NULL) AS blank",
        *(["filter(recs, r -> coalesce(r.s > v, true)) AS news"] if rules.ignoring else []),
    ]
    text.raw(f"\nFROM (SELECT {', '.join(facts)} FROM (").add(joined)
    return text.raw("\n))")


def _fate() -> str:
    return f"CASE WHEN fresh THEN '{APPLIED}' WHEN s = v THEN '{DUPLICATE}' ELSE '{STALE}' END"


def _act(stays: str) -> str:
    is_new = f"{ew.PARTITION} IS NULL"
    return (
        f"CASE WHEN NOT fresh OR (top.d AND {is_new}) THEN {Act.NOTHING.value} "
        f"WHEN top.d THEN {Act.DELETE.value} WHEN {is_new} THEN {Act.INSERT.value} "
        f"WHEN {stays} THEN {Act.UPDATE.value} ELSE {Act.MOVE.value} END"
    )


def _note(*, is_in_target: bool) -> str:
    """The change of the state table. With order values in the target it has deleted keys only."""
    put = f"WHEN {ROW} IS NULL THEN {Act.INSERT.value} ELSE {Act.UPDATE.value} END"
    if not is_in_target:
        return f"CASE WHEN NOT fresh THEN {Act.NOTHING.value} {put}"
    dropped = f"CASE WHEN {ROW} IS NULL THEN {Act.NOTHING.value} ELSE {Act.DELETE.value} END"
    return f"CASE WHEN NOT fresh THEN {Act.NOTHING.value} WHEN NOT top.d THEN {dropped} {put}"
