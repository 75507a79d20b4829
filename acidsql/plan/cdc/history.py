"""The decision of AUTO CDC with SCD type 2: a row for each version of a key.

::

    records of the key:  those of the batch, and all that its rows and the state table tell
    runs:                records one after another whose tracked columns are equal, and no delete
    rows of the target:  one for each run, from its first record (__START_AT) to the next run or
                         delete (__END_AT), with the values of its last record

So the history is always the fold of the distinct records, in whatever order they came. A row of the
target is the only record of its run, unless the state table has the run's records. The state table
has the records of the longer runs, because a late record may split them, and the deletes. The query
gives one row for each record; the record that begins a run decides about the row of the target.
The event key of a row is its row id and partition.
"""

from __future__ import annotations

from acidsql.acid import cdc
from acidsql.acid.table import Column, Table
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.errors import AnalysisError
from acidsql.plan.cdc.decision import (
    APPLIED,
    BROADCAST,
    DUPLICATE,
    ROW,
    CdcViews,
    RowAct,
    add_steps,
    defaults,
    joined_side,
    keyed_query,
)
from acidsql.plan.cdc.order import comparable, keeps_order, plain_order
from acidsql.plan.cdc.rules import CdcRules
from acidsql.plan.rows.event_query import EventQuery, RewriteContext, assigned_sql
from acidsql.plan.values.sqltext import Text
from acidsql.plan.values.struct_fields import FieldMatching
from acidsql.sql.text.tokens import Span
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote, shown_type

# Where a record comes from. If several places have a record, the first of them counts.
_STATE, _TARGET, _BATCH, _END = range(4)  # _END: a row's __END_AT where no record begins
_PART = f"{ew.PREFIX}part"  # which of both a row of the target tells; beside the user's columns


def check_history(table: Table, sequence: HiveType, text: str, place: Span) -> None:
    """Check that a target can keep versions (SCD type 2): it has the columns __START_AT and
    __END_AT, and each has a type that tells apart all order values and keeps their order. This need
    not be their own type. For STRING order values a column of the partitions will not do: it would
    read "" as NULL.

    Args:
        table: The target.
        sequence: The type of order values.
        text: The user's statement.
        place: The target's place in the statement.

    Raises:
        AnalysisError: AUTOCDC_TARGET_COLUMNS: a column is missing, or its type will not do.
    """
    columns = {column.name: column for column in table.all_columns}
    for name in cdc.VERSION:
        column = columns.get(name)
        # A partition reads a text as NULL if it is empty.
        is_lossy = column in table.partition_columns and sequence.kind == "string"
        if column is None or is_lossy or not _keeps_order(sequence, parse_type(column.type)):
            required = ", ".join(
                f"{version_name.upper()} {str(sequence).upper()}" for version_name in cdc.VERSION
            )
            actual = "has no such column" if column is None else f"has {column.type.upper()}"
            actual += ", by which it is partitioned" if is_lossy else ""
            raise AnalysisError(
                f"SCD TYPE 2 needs the columns {required} in {table.name}, for the order values of "
                f"each version; {name.upper()}: the table {actual}.",
                text, place.start, place.end,
                condition="AUTOCDC_TARGET_COLUMNS", sqlstate="42703",
            )  # fmt: skip


def _keeps_order(value_type: HiveType, column_type: HiveType) -> bool:
    """Whether a column type tells apart all order values of a type, and keeps their order; it need
    not be the same type. Two structs are compared field by field, by position, and need equally
    many fields."""
    if value_type.kind == "struct" == column_type.kind:
        has_same_length = len(value_type.children) == len(column_type.children)
        return has_same_length and all(map(_keeps_order, value_type.children, column_type.children))
    return keeps_order(value_type, Column("", str(column_type)))


def decide_history(
    rules: CdcRules, context: RewriteContext, sides: CdcViews, kind: HiveType
) -> EventQuery:
    """Compose the query that decides with SCD type 2. Its ``source`` is the view over the folded
    records. Both its forms first reduce the tables to the records' keys; the reduced form also has
    the records broadcast.

    Args:
        rules: The statement's rules.
        context: The context of the rewrite.
        sides: The views.
        kind: The type of order values.
    """
    full_query, reduced_query = (
        _decision_query(rules, context, _record_query(rules, context, sides, kind, hint), kind)
        for hint in ("", BROADCAST)
    )
    return keyed_query(rules, context, sides, full_query, reduced_query)


def _record_query(
    rules: CdcRules, context: RewriteContext, sides: CdcViews, order_type: HiveType, hint: str
) -> Text:
    """Compose the query over all records of the batch's keys: one row for each key (``k0`` …) and
    order value (``s``). ``rec``: the record there; of several, that of the first place (``src``):
    state table, begin of a target's row, batch, end of a target's row. ``n``: how many records the
    batch has there, or NULL. ``copies``: how many rows of the target begin there; ``old`` and the
    event key: those of one; `ROW`: the state row's id. ``hint``: for the joins with the keys."""
    keys = [f"k{i}" for i in range(len(rules.keys))]
    fields = range(len(rules.columns))

    def values_struct(alias: str, columns: list[str], *, condition: str = "") -> str:
        values = ", ".join(f"'v{i}', {alias}.{column}" for i, column in enumerate(columns))
        struct = f"named_struct({values})" if values else "named_struct('v', true)"
        return f"CASE WHEN {condition} THEN {struct} END" if condition else struct

    def key_columns(alias: str) -> list[str]:
        return [f"{alias}.{quote(key.name)} AS k{i}" for i, key in enumerate(rules.keys)]

    set_columns = [quote(column.name) for column in rules.columns]
    null_keys = [f"NULL AS {name}" for name in ew.KEYS]
    sequence, deleted = (column.name for column in cdc.state_columns(sides.state)[:2])
    start, end = (
        _plain_order_sql(f"t.{quote(name)}", context.table, name, order_type)
        for name in cdc.VERSION
    )
    old = ", ".join(
        f"'o{i}', t.{quote(column.name)}" for i, column in enumerate(context.table.all_columns)
    )
    batch_records = [
        *keys, "r.s", "r.d", "r.n", f"{_BATCH} AS src",
        values_struct("r", [f"v{i}" for i in fields], condition="NOT r.d") + " AS val",
        *null_keys, "NULL AS old", f"NULL AS {ROW}",
    ]  # fmt: skip
    state_records = [
        *key_columns("x"), f"x.{quote(sequence)}", f"x.{quote(deleted)}", "NULL", f"{_STATE}",
        values_struct("x", set_columns, condition=f"NOT x.{quote(deleted)}"),
        *null_keys, "NULL", "x.row__id",
    ]  # fmt: skip
    begins = f"{_PART} = {_TARGET}"
    target_records = [
        *key_columns("t"), f"CASE WHEN {begins} THEN {start} ELSE {end} END", f"NOT {begins}",
        "NULL", _PART, values_struct("t", set_columns, condition=begins),
        *(f"CASE WHEN {begins} THEN t.{name} END" for name in ew.KEYS),
        f"CASE WHEN {begins} THEN named_struct({old}) END", "NULL",
    ]  # fmt: skip
    text = context.new().raw("SELECT\n").commas([
        *keys, "s", "min_by(named_struct('d', d, 'val', val), src) AS rec", "min(src) AS src",
        "sum(n) AS n", f"count_if(src = {_TARGET}) AS copies",
        *(f"any_value({name}, true) AS {name}" for name in (*ew.KEYS, "old", ROW)),
    ])  # fmt: skip
    text.raw("\nFROM (\nSELECT ").commas(batch_records)
    text.raw(f"\nFROM (SELECT *, explode(recs) AS r FROM {sides.folded})\nUNION ALL SELECT ")
    text.commas(state_records).raw("\nFROM ")
    text.raw(joined_side(sides.state_view, "x", sides.folded, rules.keys, hint))
    text.raw("\nUNION ALL SELECT ").commas(target_records)
    text.raw(f"\nFROM (SELECT *, explode(array({_TARGET}, {_END})) AS {_PART} FROM ")
    text.raw(joined_side(sides.target, "t", sides.folded, rules.keys, hint))
    text.raw(f") AS t WHERE {begins} OR t.{quote(cdc.VERSION[1])} IS NOT NULL")
    return text.raw(f"\n)\nGROUP BY {', '.join(keys)}, s")


def _plain_order_sql(sql: str, table: Table, name: str, order_type: HiveType) -> str:
    """Return SQL of the target's order value in the column ``name``, in the plain form in which
    order values compare, as ``order_type``; NULL stays NULL. ``sql``: the column."""
    (column,) = (column for column in table.all_columns if column.name == name)
    plain = plain_order(sql, parse_type(column.type))
    assert plain is not None  # check_history
    return f"CASE WHEN {sql} IS NOT NULL THEN CAST({plain[0]} AS {shown_type(str(order_type))}) END"


def _decision_query(
    rules: CdcRules, context: RewriteContext, records: Text, order_type: HiveType
) -> Text:
    """Compose the query that decides about each record of the batch's keys (SCD type 2): one row
    for each record, with what is done to the row of the version that it begins (``act``) and in the
    state table (``note``). The columns are those of SCD type 1, then the record's own values ``w0``
    …. A record is left out if there is nothing to do or to count, and its row is there once at
    most."""
    table = context.table
    keys = ", ".join(f"k{i}" for i in range(len(rules.keys)))
    new = _new_values(rules, context, order_type)
    columns = table.all_columns
    changed_places = [
        f"NOT {new[column.name]} <=> old.o{i}"
        for i, column in enumerate(columns)
        if column in table.partition_columns or column.name in table.bucket_columns
    ]
    changes = [
        f"NOT {_comparable(new[column.name], column)} <=> {_comparable(f'old.o{i}', column)}"
        for i, column in enumerate(columns)
        if column not in rules.unset_columns
    ]
    output_columns: list[Text | str] = [
        *ew.KEYS,
        *(f"k{i}" for i in range(len(rules.keys))),
        "s",
        "rec.d AS d",
        "n",
        "CASE WHEN n IS NOT NULL THEN 1 END AS m",
        ROW,
        f"CASE WHEN n IS NOT NULL THEN "
        f"CASE WHEN src = {_BATCH} THEN '{APPLIED}' ELSE '{DUPLICATE}' END END AS fate",
        f"{_act_sql(' OR '.join(changes), ' OR '.join(changed_places) or 'false')} AS act",
        f"{_note_sql()} AS note",
        "copies > 1 AS twice",
        *(f"{new[column.name]} AS c{i}" for i, column in enumerate(columns)),
        *(f"rec.val.v{i} AS w{i}" for i in range(len(rules.columns))),
    ]
    by_order = f"PARTITION BY {keys} ORDER BY s"
    whole_run = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    run_window = f"PARTITION BY {keys}, run ORDER BY s {whole_run}"
    steps = [
        [f"lag(rec) OVER ({by_order}) AS prev"],
        [f"{_begins_run_sql(rules)} AS begins"],
        [
            f"count_if(begins) OVER ({by_order}) AS run",
            f"lead(CASE WHEN begins THEN s END) IGNORE NULLS OVER ({by_order}) AS until",
        ],
        [
            f"last_value(rec.val) OVER ({run_window}) AS val",
            # The run may have a row, though a late record is the first one now.
            f"first_value(old, true) OVER ({run_window}) AS row_before",
            f"count(*) OVER ({run_window}) AS size",
        ],
    ]
    text = context.new().raw("SELECT * FROM (SELECT\n").commas(output_columns)
    return add_steps(text, steps, records).raw(
        ") WHERE act <> 0 OR note <> 0 OR n IS NOT NULL OR twice"
    )


def _begins_run_sql(rules: CdcRules) -> str:
    """Return SQL that tells whether a record ``rec`` begins a run, that is, a version or a delete:
    it is its key's first, deletes, follows a delete, or differs from the record before (``prev``)
    in a tracked column. NULLs are equal, and maps whatever the order of their entries."""
    changed = [
        f"NOT {_comparable(f'rec.val.v{i}', column)} <=> {_comparable(f'prev.val.v{i}', column)}"
        for i, column in enumerate(rules.columns)
        if column in (rules.tracked_columns or ())
    ]
    return " OR ".join(["prev IS NULL", "prev.d", "rec.d", *changed])


def _comparable(sql: str, column: Column) -> str:
    return comparable(sql, parse_type(column.type))


def _new_values(rules: CdcRules, context: RewriteContext, order_type: HiveType) -> dict[str, str]:
    """Return name → SQL of the value in a version's row, for each column of the target: the values
    of the run's last record. __START_AT and __END_AT are the order values of its first record and
    of the next run's (NULL: none). A column that no record sets has the value of the run's earlier
    row, or its DEFAULT."""
    new = {key.name: f"k{i}" for i, key in enumerate(rules.keys)}
    new |= {column.name: f"val.v{i}" for i, column in enumerate(rules.columns)}
    default = defaults(rules, context)
    version = dict(zip(cdc.VERSION, ("s", "until"), strict=True))
    for i, column in enumerate(context.table.all_columns):
        if column in rules.unset_columns:
            old = f"row_before.o{i}"
            new[column.name] = (
                f"CASE WHEN row_before IS NOT NULL THEN {old} ELSE {default[column.name]} END"
            )
        elif column.name in version:
            # The order of an order value's fields is the order in which they compare.
            new[column.name] = assigned_sql(
                context, version[column.name], order_type, column, rules.place,
                matching=FieldMatching.BY_POSITION,
            )  # fmt: skip
    return new


def _act_sql(changes: str, moves: str) -> str:
    """Return SQL of the `RowAct` on the row that begins with a record. A version without a row is
    INSERTed; a row that is no version now is DELETEd; else MOVE if ``moves``, UPDATE if
    ``changes``, or NOTHING. ``changes`` and ``moves``: SQL that tells whether a version's columns
    differ from its row's, and whether it belongs to another partition or bucket."""
    is_version = "begins AND NOT rec.d"
    return (
        f"CASE WHEN copies = 0 AND {is_version} THEN {RowAct.INSERT.value} "
        f"WHEN copies = 0 THEN {RowAct.NOTHING.value} "
        f"WHEN NOT ({is_version}) THEN {RowAct.DELETE.value} "
        f"WHEN {moves} THEN {RowAct.MOVE.value} WHEN {changes} THEN {RowAct.UPDATE.value} "
        f"ELSE {RowAct.NOTHING.value} END"
    )


def _note_sql() -> str:
    """Return SQL of the `RowAct` on the state table, which keeps deletes, and the records of runs
    of several records: INSERT if one is to be kept and is not there, DELETE if the reverse, else
    NOTHING.

    A row's __END_AT tells a delete, too. So a delete that only a row tells is kept in the state
    table only if no version is before it.
    """
    is_kept = f"CASE WHEN rec.d THEN src <> {_END} OR prev IS NULL OR prev.d ELSE size > 1 END"
    return (
        f"CASE WHEN {is_kept} = ({ROW} IS NOT NULL) THEN {RowAct.NOTHING.value} "
        f"WHEN {ROW} IS NULL THEN {RowAct.INSERT.value} ELSE {RowAct.DELETE.value} END"
    )
