"""The decision of AUTO CDC: what becomes of each key's newest record, in both tables.

The order value of a record is its value of SEQUENCE BY. The floor is the order value of the newest
record that truncated; what is not newer is stale. The state table has the order values that the
target cannot tell. The query gives one row for each key. ``RowAct`` names the values of its columns
``act`` (of the target) and ``note`` (of the state table). ``fate`` is APPLIED, DUPLICATE or STALE.
``twice`` tells that the target has several rows for one record; rows with one key also tell this.

The folded records, which ``fold`` gives, are one row for each key. An event key is what identifies
the row that was read: its row id and partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from acidsql.acid import cdc
from acidsql.acid.table import Column, Table
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.plan.cdc.order import struct_sql
from acidsql.plan.cdc.rules import CdcRules
from acidsql.plan.rows.event_query import (
    DerivedView,
    EventQuery,
    Hints,
    ReducedQuery,
    RewriteContext,
    default_fields,
    key_columns,
    omitted_value,
)
from acidsql.plan.values.sqltext import Text
from acidsql.storage import event_records as ew
from acidsql.storage.columns import literal, quote, shown_type

APPLIED, DUPLICATE, STALE = "applied", "duplicate", "stale"
ROW = f"{ew.PREFIX}row"  # the row id of the state table's row
BROADCAST = "/*+ BROADCAST(f) */ "


class RowAct(IntEnum):
    """What is done with one row of a table."""

    NOTHING = 0
    UPDATE = 1
    MOVE = 2  # an update that brings the row to another partition or bucket
    INSERT = 3
    DELETE = 4


@dataclass(frozen=True, slots=True)
class CdcViews:
    """The views that the query reads, and the state table.

    ``folded`` is a view over ``files``, which is a view over the folded records' files. ``floor``
    and ``state_view`` are relations of the state table; each is read in its own way.
    """

    files: str
    folded: str
    target: str
    state_view: str
    floor: str
    state: Table

    @property
    def sequence(self) -> str:
        """The state table's column of order values."""
        return cdc.state_columns(self.state)[0].name


def decide_by_join(rules: CdcRules, context: RewriteContext, sides: CdcViews) -> EventQuery:
    """Compose the query that decides what each key's records do to the target's row and to the
    state table's (SCD type 1, no record truncates). The result also has the query that first drops
    the tables' rows of other keys (``hints.reduced``). Its ``source`` is the view over the folded
    records."""
    floor = _floor_query(rules, sides)
    full_query, reduced_query = (
        _decision_query(
            rules,
            context,
            _join_records(rules, context, sides, hint),
            old_floor_query=floor,
            truncation_query=None,
        )
        for hint in (None, BROADCAST)
    )
    return keyed_query(rules, context, sides, full_query, reduced_query)


def keyed_query(
    rules: CdcRules, context: RewriteContext, sides: CdcViews, full_query: Text, reduced_query: Text
) -> EventQuery:
    """Return the event query that decides about the folded records' keys: ``full_query``, with
    ``reduced_query`` as its reduced form (``hints.reduced``), which joins by ``k0`` … and names the
    keys that are partition columns. Its ``source`` is the view ``sides.folded`` over
    ``sides.files``.

    Args:
        rules: The statement's rules.
        context: The context of the rewrite.
        sides: The views.
        full_query: The query that is right for any number of records.
        reduced_query: The query that first reduces the tables to rows whose keys have records, with
            the records broadcast to all tasks.
    """
    partitions = tuple(
        (key, f"k{i}") for i, key in enumerate(rules.keys) if key in context.table.partition_columns
    )
    names = frozenset(f"k{i}" for i in range(len(rules.keys)))
    source = DerivedView(sides.folded, context.new().raw(f"SELECT * FROM {sides.files}"))
    return EventQuery(
        context.table,
        full_query,
        source=source,
        hints=Hints(reduced=ReducedQuery(reduced_query, names, partitions)),
    )


def decide_truncation(rules: CdcRules, context: RewriteContext, sides: CdcViews) -> EventQuery:
    """Compose the deciding query for a batch in which a record truncates: one row for each key of
    the batch, the target or the state table, and one for the records that truncate, with the
    floor's row of the state table. It joins all rows of both tables, and has no reduced form and no
    ``source``.

    A row without a record has NULLs for the columns of the fold, but for its key.
    """
    keys = [
        f"coalesce(f.k{i}, t.{quote(key.name)}, x.{quote(key.name)}) AS k{i}"
        for i, key in enumerate(rules.keys)
    ]
    columns = [*keys, f"f.* EXCEPT ({', '.join(f'k{i}' for i in range(len(keys)))})"]
    record_or_target_keys = [
        f"coalesce(f.k{i}, t.{quote(key.name)})" for i, key in enumerate(rules.keys)
    ]
    by_state = " AND ".join(
        f"x.{quote(key.name)} <=> {sql}"
        for key, sql in zip(rules.keys, record_or_target_keys, strict=True)
    )
    columns += _joined_columns(rules, context, sides)
    joined = context.new().raw("SELECT\n").commas(columns)
    joined.raw(f"\nFROM {sides.files} AS f\nFULL OUTER JOIN {sides.target} AS t")
    joined.raw(f" ON {_key_condition(rules.keys, 't')}\nFULL OUTER JOIN {sides.state_view} AS x")
    # The floor belongs to the record that truncates.
    joined.raw(f" ON {by_state} AND (f.tr OR x.{quote(rules.keys[0].name)} IS NOT NULL)")
    floor, newest = _floor_query(rules, sides), _newest_truncation(sides)
    return EventQuery(
        context.table,
        _decision_query(rules, context, joined, old_floor_query=floor, truncation_query=newest),
    )


def decide_for_empty_tables(
    rules: CdcRules, context: RewriteContext, sides: CdcViews, kind: HiveType
) -> EventQuery:
    """Compose the deciding query for a target and a state table without rows. It reads the records
    alone, with NULLs for all columns of the tables, and no old floor. It has no ``source``.

    Args:
        rules: The statement's rules.
        context: The context of the rewrite.
        sides: The views.
        kind: The type of order values.
    """
    ids = ("bigint", "int", "bigint", "string")
    null_columns = dict(zip(ew.KEYS, ids, strict=True))
    null_columns |= {f"o{i}": column.type for i, column in enumerate(context.table.all_columns)}
    null_columns |= {ROW: "bigint", "v": str(kind)}
    columns = [
        f"CAST(NULL AS {shown_type(column_type)}) AS {name}"
        for name, column_type in null_columns.items()
    ]
    joined = context.new().raw("SELECT\n").commas(["f.*", *columns])
    joined.raw(f"\nFROM {sides.files} AS f")
    newest = _newest_truncation(sides) if rules.truncate_when else None
    return EventQuery(
        context.table,
        _decision_query(rules, context, joined, old_floor_query=None, truncation_query=newest),
    )


# Relations of one row. As such, and not as values, they tell which rows of a table they need.


def _floor_query(rules: CdcRules, sides: CdcViews) -> str:
    """Return a query of one row with the column ``below``: the floor before this batch, that is,
    the order value of the newest truncation (the state table's row without a key); NULL if there
    was none."""
    key, sequence = quote(rules.keys[0].name), quote(sides.sequence)
    return f"SELECT max({sequence}) AS below FROM {sides.floor} WHERE {key} IS NULL"


def _newest_truncation(sides: CdcViews) -> str:
    """Return a query of one row with the column ``newest``: the greatest order value of the batch's
    records that truncate; NULL if none does."""
    return f"SELECT max(s) AS newest FROM {sides.files} WHERE tr"


def _join_records(
    rules: CdcRules, context: RewriteContext, sides: CdcViews, hint: str | None
) -> Text:
    """Compose the query of the folded records (``f.*``) with their rows in the target and in the
    state table: the columns of `_joined_columns`, NULL where there is no such row. A key gives
    several rows if a table has several. ``hint``: Spark's hint with which both tables are first
    reduced to the records' keys; None: they are not."""
    text = context.new().raw("SELECT\n").commas(["f.*", *_joined_columns(rules, context, sides)])
    text.raw(f"\nFROM {sides.folded} AS f")
    for view, alias in ((sides.target, "t"), (sides.state_view, "x")):
        text.raw(f"\nLEFT OUTER JOIN {joined_side(view, alias, sides.folded, rules.keys, hint)}")
        text.raw(f" ON {_key_condition(rules.keys, alias)}")
    return text


def _joined_columns(rules: CdcRules, context: RewriteContext, sides: CdcViews) -> list[str]:
    """Return SQL of the columns that come from the target's row ``t`` (its event key, then ``o0`` …
    for all its columns), and from the state table's row ``x`` (its row id `ROW`); last ``v``, the
    order value before this batch, from both."""
    return [
        *key_columns("t"),
        *(f"t.{quote(column.name)} AS o{i}" for i, column in enumerate(context.table.all_columns)),
        f"x.row__id AS {ROW}",
        f"{_previous_order(rules, sides)} AS v",
    ]


def _key_condition(keys: Sequence[Column], alias: str) -> str:
    """Return SQL that tells whether a row of the table ``alias`` has the keys of the folded record
    ``f``. A NULL equals nothing."""
    return " AND ".join(f"{alias}.{quote(key.name)} = f.k{i}" for i, key in enumerate(keys))


def joined_side(
    view: str, alias: str, folded: str, keys: Sequence[Column], hint: str | None
) -> str:
    """Return SQL of a table as one side of the join with the folded records, under ``alias``.
    ``hint``: Spark's hint ("" for none) on the records with which the table is first reduced to
    their keys by a semi join; None: all rows."""
    if hint is None:
        return f"{view} AS {alias}"
    broadcast = f"(SELECT {hint}* FROM {folded} AS f) AS f"
    on = _key_condition(keys, alias)
    return (
        f"(SELECT {alias}.* FROM {view} AS {alias} LEFT SEMI JOIN {broadcast} ON {on}) AS {alias}"
    )


def _previous_order(rules: CdcRules, sides: CdcViews) -> str:
    """Return SQL of the order value that a key had before this batch: that of its row ``x`` in the
    state table, or that in the target's row ``t``, if the target keeps order values and no part is
    NULL, whichever is greater; NULL if there is none."""
    state_order = f"x.{quote(sides.sequence)}"
    if not rules.order:
        return state_order
    values = [f"t.{quote(column.name)}" for column in rules.order]
    live_order = struct_sql(values) if rules.is_struct else values[0]
    has_live_order = " AND ".join(f"{value} IS NOT NULL" for value in values)
    # The user may have inserted a row whose key was deleted. Then both tables have an order value.
    return f"greatest(CASE WHEN {has_live_order} THEN {live_order} END, {state_order})"


def _new_values(rules: CdcRules, context: RewriteContext) -> dict[str, str]:
    """Return name → SQL of the value after an insert or an update, for each column of the target.
    It is the newest record's; for IGNORE NULL UPDATES the newest that is not NULL, or else the
    row's old value. A column that no record sets keeps its value, or has its DEFAULT if the row is
    new (``blank``)."""
    new = {key.name: f"k{i}" for i, key in enumerate(rules.keys)}
    new |= {column.name: f"top.v{i}" for i, column in enumerate(rules.columns)}
    fields = {column: i for i, column in enumerate(rules.columns)}
    default = defaults(rules, context)
    for i, column in enumerate(context.table.all_columns):
        if column in rules.unset_columns:
            new[column.name] = f"CASE WHEN blank THEN {default[column.name]} ELSE o{i} END"
        elif column in rules.ignore_null_columns:
            old = f"CASE WHEN NOT blank THEN o{i} END"
            new[column.name] = newest_sql(f"v{fields[column]}", old, parse_type(column.type))
    return new


def defaults(rules: CdcRules, context: RewriteContext) -> dict[str, str]:
    """Return column name → SQL of the value that a new row gets in each column that no record sets:
    its DEFAULT or NULL, in the column's type."""
    types = default_fields(context, rules.unset_columns)
    return {column.name: omitted_value(context, column, types) for column in rules.unset_columns}


def newest_sql(path: str, old: str, kind: HiveType) -> str:
    """Return SQL of the newest value that is not NULL among the records ``news`` since the newest
    delete in them, or else the old value.

    For a struct, the newest value of each field is found in this way; the struct is NULL if there
    is neither a newest value nor an old one.

    Args:
        path: The field of each of the records ``news``.
        old: SQL of the value before these records.
        kind: The value's type.
    """
    newest_value = f"try_element_at(filter(news, r -> r.d OR r.{path} IS NOT NULL), -1).{path}"
    if kind.kind != "struct":
        return f"coalesce({newest_value}, {old})"
    parts = ", ".join(
        f"{literal(name)}, {newest_sql(f'{path}.{quote(name)}', f'({old}).{quote(name)}', child)}"
        for name, child in zip(kind.names, kind.children, strict=True)
    )
    return (
        f"CASE WHEN {newest_value} IS NOT NULL OR {old} IS NOT NULL THEN named_struct({parts}) END"
    )


def _decision_query(
    rules: CdcRules,
    context: RewriteContext,
    joined: Text,
    *,
    old_floor_query: str | None,
    truncation_query: str | None,
) -> Text:
    """Compose the query that decides about each key (SCD type 1), a row for each: the target row's
    event key, ``k0`` …, ``s``, ``d``, ``n``, ``m``, the state row's id; ``fate``, what became of
    the key's newest record, or NULL; ``act`` and ``note``, each a `RowAct`, on the target's and the
    state table's row; ``twice``, always false; and the new values ``c0`` ….

    Args:
        rules: The statement's rules.
        context: The context of the rewrite.
        joined: The query over the joined records.
        old_floor_query: A query of one row, whose column ``below`` is the floor before this batch;
            None: there is none.
        truncation_query: A query of one row, whose column ``newest`` is the order value of the
            batch's newest truncation; None: no record truncates.
    """
    table, new = context.table, _new_values(rules, context)
    unchanged_places = [
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
        f"{_FATE} AS fate",
        f"{_act_sql(' AND '.join(unchanged_places) or 'true')} AS act",
        f"{_note_sql(is_in_target=bool(rules.order))} AS note",
        "false AS twice",
        *(f"{new[column.name]} AS c{i}" for i, column in enumerate(table.all_columns)),
    ]
    floors = {"below": old_floor_query, "newest": truncation_query}
    missing = "".join(f", NULL AS {name}" for name, floor in floors.items() if floor is None)
    relation = context.new().raw(f"SELECT *{missing} FROM (").add(joined).raw("\n)")
    for floor in filter(None, floors.values()):
        relation.raw(f"\nCROSS JOIN ({floor})")
    return add_steps(
        context.new().raw("SELECT\n").commas(columns), _decision_steps(rules), relation
    )


def add_steps(text: Text, steps: Sequence[Sequence[str]], relation: Text) -> Text:
    """Append FROM to the query ``text`` itself: a relation to which each step adds columns,
    computed from the columns of earlier steps; the first step reads ``relation``. Return ``text``.
    """
    for columns in reversed(steps):
        text.raw(f"\nFROM (SELECT *, {', '.join(columns)}")
    return text.raw(" FROM (").add(relation).raw("\n" + ")" * (len(steps) + 1))


def _decision_steps(rules: CdcRules) -> list[list[str]]:
    """Return three steps, each a list of ``SQL AS name``, that compute the facts about each key on
    which the decision is based.

    ``v`` is the order value that the key had before this batch. The steps add:

    ``sweep``   the floor that this batch brings, if it is a higher one; else NULL
    ``bar``     records up to this order value are stale; NULL: none are
    ``fresh``   whether the newest record is not stale; false if the key has no record
    ``swept``   a record truncates, and the key's row is not newer
    ``blank``   before the newest record there is no row, or a record of the batch removes it
    ``news``    those of ``recs`` that are not stale; only with IGNORE NULL UPDATES
    """
    return [
        [
            "CASE WHEN coalesce(newest > below, newest IS NOT NULL) THEN newest END AS sweep",
            "CASE WHEN tr THEN v ELSE greatest(v, below, newest) END AS bar",
        ],
        [
            "coalesce(s > bar, s IS NOT NULL) AS fresh",
            "sweep IS NOT NULL AND coalesce(v <= sweep, true) AS swept",
        ],
        [
            f"{ew.PARTITION} IS NULL OR swept OR coalesce(gone > bar, gone IS NOT NULL) AS blank",
            *(
                ["filter(recs, r -> coalesce(r.s > bar, true)) AS news"]
                if rules.ignore_null_columns
                else []
            ),
        ],
    ]


_FATE = (
    f"CASE WHEN fresh THEN '{APPLIED}' WHEN s = v THEN '{DUPLICATE}' "
    f"WHEN s IS NOT NULL THEN '{STALE}' END"
)


def _act_sql(stays_in_place: str) -> str:
    """Return SQL of the `RowAct` on the target's row. A record that is not stale deletes, inserts,
    or updates the row: UPDATE if ``stays_in_place``, else MOVE. Without such a record, a row that a
    truncation sweeps is deleted. All else is NOTHING. ``stays_in_place``: SQL that tells whether an
    update leaves the row in its partition and bucket."""
    is_new = f"{ew.PARTITION} IS NULL"
    return (
        f"CASE WHEN {is_new} AND (NOT fresh OR top.d) THEN {RowAct.NOTHING.value} "
        f"WHEN NOT fresh THEN CASE WHEN swept THEN {RowAct.DELETE.value} "
        f"ELSE {RowAct.NOTHING.value} END "
        f"WHEN top.d THEN {RowAct.DELETE.value} WHEN {is_new} THEN {RowAct.INSERT.value} "
        f"WHEN {stays_in_place} THEN {RowAct.UPDATE.value} ELSE {RowAct.MOVE.value} END"
    )


def _note_sql(*, is_in_target: bool) -> str:
    """Return SQL of the `RowAct` on the state table's row. A record that is not stale is noted, by
    INSERT or UPDATE; if ``is_in_target``, only one that deletes is, and any other deletes the row.
    Without such a record, a row that a truncation sweeps is deleted. ``is_in_target``: the target
    has the order values, so the state table has only deleted keys."""
    is_new = f"{ROW} IS NULL"
    case_body = f"NOT fresh AND (NOT swept OR {is_new}) THEN {RowAct.NOTHING.value} WHEN NOT fresh"
    if is_in_target:
        case_body += f" OR NOT top.d THEN CASE WHEN {is_new} THEN {RowAct.NOTHING.value} "
        case_body += f"ELSE {RowAct.DELETE.value} END"
    else:
        case_body += f" THEN {RowAct.DELETE.value}"
    return (
        f"CASE WHEN {case_body} WHEN {is_new} THEN {RowAct.INSERT.value} "
        f"ELSE {RowAct.UPDATE.value} END"
    )
