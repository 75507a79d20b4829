"""The fold of AUTO CDC: a query that gives the newest record of each key, and what is wrong.

::

    k0 …    the key, in the types of the target's columns
    tr      whether the records truncate: they have one row, with NULLs for the key
    s       the newest order value
    top     the newest record: ``d``, whether it deletes, and ``v0`` …, the columns that it sets
    gone    the newest order value of a record that deletes, or NULL
    recs    with IGNORE NULL UPDATES and with SCD type 2: a record of each order value, ascending,
            each with ``s``, ``n`` (how many have it) and the fields of ``top``
    n       the number of records
    m       the number of different order values
    nulls   the number of records without an order value, or with NULL in a part of it
    ties    the number of order values that different records have; ``tie`` is one of them, as text

Records are converted to the types of the target's columns first. So records that differ only before
this conversion are equal. A record that deletes sets no columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acidsql.acid.table import Column
from acidsql.acid.values.types import HiveType, parse_type
from acidsql.errors import AnalysisError
from acidsql.plan.cdc.order import as_struct, comparable, has_null, plain_order, stored_type
from acidsql.plan.cdc.rules import CdcRules, RuleExpression
from acidsql.plan.rows.event_query import Fields, RewriteContext, assigned_sql
from acidsql.plan.values.assignment import read_back_sql
from acidsql.plan.values.sqltext import Text
from acidsql.storage import event_records as ew
from acidsql.storage.columns import literal, quote, shown_type

# Columns of the query over the source. Reserved names: no user's expression can mean them.
_SOURCE_VALUE = f"{ew.PREFIX}r"  # + ordinal
_DELETES = f"{ew.PREFIX}d"
_TRUNCATES = f"{ew.PREFIX}t"
_ORDER = f"{ew.PREFIX}q"
_TRUNCATED = f"coalesce({_TRUNCATES}, false)"  # a condition that is the word NULL is no BOOLEAN

# The column of ``CdcFold.faults``: the condition of the error that the record is; NULL: it is none.
FAULT = f"{ew.PREFIX}fault"
NULL_KEY = "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY"
NULL_SEQUENCE = "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE"


@dataclass(frozen=True, slots=True)
class CdcFold:
    """The queries of the fold.

    Attributes:
        query: The fold: one row for each key.
        faults: A query for the records as they are, each with the column ``FAULT``: the condition
            of its error, or NULL.
        sequence: The type of the order values.
    """

    query: Text
    faults: Text
    sequence: HiveType


def compose_fold(
    rules: CdcRules, context: RewriteContext, source: Text, alias: str | None, names: Iterable[str]
) -> CdcFold:
    """Compose the query that gives one row for each key, and one for records that truncate: the
    newest record, and counts of what is wrong with the records. Compose also the query ``faults``:
    the source's columns of all records, good ones too, and ``FAULT``. Spark analyses the records;
    nothing runs.

    Args:
        rules: The statement's rules.
        context: The context of the rewrite.
        source: The source as a relation.
        alias: The qualifier of the source's columns, or None.
        names: The source's columns.

    Raises:
        AnalysisError: A value does not fit its column, a condition is no BOOLEAN, or order values
            have no order.
    """
    columns = (*rules.keys, *rules.columns)
    by_name = {name.lower(): name for name in names}  # the session may tell cases apart
    prefix = "" if alias is None else f"{quote(alias)}."
    source_values = [f"{prefix}{quote(by_name[column.name])}" for column in columns]
    rows = _records(rules, context, source, source_values)
    fields = context.analyse(rows)
    _check_condition(rules.delete_when, "APPLY AS DELETE WHEN", context, rules, _DELETES, fields)
    _check_condition(
        rules.truncate_when, "APPLY AS TRUNCATE WHEN", context, rules, _TRUNCATES, fields
    )
    values = {
        column.name: _value(context, f"{_SOURCE_VALUE}{i}", kind, column, rules)
        for i, (column, (_, kind)) in enumerate(zip(columns, fields, strict=False))
    }
    sequence, kind = _sequence(rules, context, fields, values)
    keys = [f"k{i}" for i in range(len(rules.keys))]
    # Texts with a collation would compare by it.
    uncollated = [f"CAST({values[column.name]} AS {shown_type(column.type)})" for column in columns]
    converted = _converted_columns(rules, keys, uncollated, sequence)
    # Spark would sort anew by each group's constant.
    keys += ["tr"] if rules.truncate_when else []
    text = context.new().raw("SELECT\n").commas(_key_columns(rules, keys, has_null("s", kind)))
    text.raw("\nFROM (SELECT\n").commas(_order_columns(rules, keys))
    text.raw("\nFROM (SELECT\n").commas(converted).raw("\nFROM (").add(rows)
    group_columns = ", ".join(keys)
    text.raw(f"\n))\nGROUP BY {group_columns}, s)\nGROUP BY {group_columns}")
    faults = _faults(uncollated[: len(rules.keys)], has_null(f"({sequence})", kind))
    records_with_faults = (
        context.new().raw("SELECT\n").commas([*map(quote, by_name.values()), faults])
    )
    records_with_faults.raw("\nFROM (").add(
        _records(rules, context, source, source_values, f"{prefix}*")
    )
    return CdcFold(text, records_with_faults.raw("\n)"), kind)


def _converted_columns(
    rules: CdcRules, key_names: Sequence[str], uncollated: Sequence[str], sequence: str
) -> list[str]:
    """Return SQL of the columns of the records before they are folded: keys ``k0`` …, NULL if the
    record truncates; ``tr``, only if the statement has such records; order value ``s``; ``d``,
    whether the record deletes or truncates; values ``v0`` …, NULL if it does. A hint in the first
    spreads the records by key.

    ``key_names`` are the names of the key columns; ``uncollated`` is SQL of keys, then of values.
    """
    key_values = [
        f"CASE WHEN {_TRUNCATED} THEN NULL ELSE {sql} END" for sql in uncollated[: len(key_names)]
    ]
    return [
        f"/*+ REPARTITION({', '.join(key_names)}) */ {key_values[0]} AS k0",
        *(f"{sql} AS k{i}" for i, sql in enumerate(key_values) if i),
        *([f"{_TRUNCATED} AS tr"] if rules.truncate_when else []),
        f"{sequence} AS s",
        f"coalesce({_DELETES} OR {_TRUNCATED}, false) AS d",
        *(
            f"CASE WHEN {_DELETES} OR {_TRUNCATED} THEN NULL ELSE {sql} END AS v{i}"
            for i, sql in enumerate(uncollated[len(key_names) :])
        ),
    ]


def _faults(key_sqls: Sequence[str], no_order: str) -> str:
    """Return SQL of the error condition of a record as the column ``FAULT``: NULL_KEY if a key is
    NULL, else NULL_SEQUENCE if ``no_order``, or NULL for a good record. A record that truncates
    needs no key."""
    no_key = " OR ".join(f"{key} IS NULL" for key in key_sqls)
    return (
        f"CASE WHEN NOT {_TRUNCATED} AND ({no_key}) THEN {literal(NULL_KEY)} "
        f"WHEN {no_order} THEN {literal(NULL_SEQUENCE)} END AS {FAULT}"
    )


def _records(
    rules: CdcRules,
    context: RewriteContext,
    source_relation: Text,
    source_values: Sequence[str],
    *extra_columns: str,
) -> Text:
    """Compose a query with one row for each record: the ``extra_columns``, the values of keys and
    columns, unconverted, and the conditions as they are written, which may be NULL: whether
    it deletes, whether it truncates (each false without its rule). The names are reserved ones.

    The order value is the last column, unless columns of the target hold it.
    """
    columns: list[Text | str] = [
        *extra_columns,
        *(f"{sql} AS {_SOURCE_VALUE}{i}" for i, sql in enumerate(source_values)),
    ]
    for condition, name in ((rules.delete_when, _DELETES), (rules.truncate_when, _TRUNCATES)):
        value = context.new().raw("false") if condition is None else condition.value(context)
        columns.append(value.raw(f" AS {name}"))
    if not rules.order:
        columns.append(rules.sequence.value(context).raw(f" AS {_ORDER}"))
    return context.new().raw("SELECT\n").commas(columns).raw("\nFROM ").add(source_relation)


def _order_columns(rules: CdcRules, key_names: list[str]) -> list[Text | str]:
    """Return SQL of the columns of a query that groups the records by key and order value: the key,
    ``s``; ``top``, any of the records; ``n``, their number; and ``tie``, whether they differ, maps
    compared whatever the order of their entries. The caller adds GROUP BY."""
    plain = "".join(f", 'v{i}', v{i}" for i in range(len(rules.columns)))
    compared = "".join(
        f", 'v{i}', {comparable(f'v{i}', parse_type(column.type))}"
        for i, column in enumerate(rules.columns)
    )
    record = f"named_struct('d', d{compared})"
    return [
        *key_names,
        "s",
        f"any_value(named_struct('d', d{plain})) AS top",
        "count(*) AS n",
        f"min({record}) <> max({record}) AS tie",
    ]


def _key_columns(rules: CdcRules, key_names: list[str], is_null: str) -> list[Text | str]:
    """Return SQL of the columns of the fold, which the module lists: one row for each key, over the
    rows that `_order_columns` gives for each key and order value. ``is_null``: SQL that tells
    whether an order value is NULL. The caller adds GROUP BY."""
    columns: list[Text | str] = [
        *key_names,
        *([] if rules.truncate_when else ["false AS tr"]),
        "max(s) AS s",
        "max_by(top, s) AS top",
        "max(CASE WHEN top.d THEN s END) AS gone",
        "sum(n) AS n",
        "count(*) AS m",
        f"sum(CASE WHEN {is_null} THEN n ELSE 0 END) AS nulls",
        "count_if(tie) AS ties",
        "CAST(max(CASE WHEN tie THEN s END) AS STRING) AS tie",
    ]
    if rules.ignore_null_columns or rules.tracked_columns is not None:
        fields = "".join(f", 'v{i}', top.v{i}" for i in range(len(rules.columns)))
        by_order = "(a, b) -> CASE WHEN a.s < b.s THEN -1 WHEN a.s > b.s THEN 1 ELSE 0 END"
        record = f"named_struct('s', s, 'd', top.d, 'n', n{fields})"
        columns.append(f"array_sort(collect_list({record}), {by_order}) AS recs")
    return columns


def _value(
    context: RewriteContext, sql: str, value_type: HiveType, column: Column, rules: CdcRules
) -> str:
    """Return SQL of a value converted to its column's type, as the next batch will read it from the
    column: a CHAR is padded, and a partition's text that means NULL is NULL. Raise AnalysisError if
    the column takes no values of the type."""
    value = assigned_sql(context, sql, value_type, column, rules.place)
    return read_back_sql(value, column, is_partition=column in context.table.partition_columns)


def _sequence(
    rules: CdcRules, context: RewriteContext, fields: Fields, values: dict[str, str]
) -> tuple[str, HiveType]:
    """Return SQL of the order value in its plain form, and its type: built from the converted
    ``values`` of the target's columns if these hold it, else from the column of `_records`. Raise
    AnalysisError if values of the type have no order that can be kept."""
    if rules.order:
        parts = [(values[column.name], stored_type(column.type)) for column in rules.order]
        return as_struct(parts) if rules.is_struct else parts[0]
    order_type = dict(fields)[_ORDER]
    plain_form = plain_order(_ORDER, order_type)
    if plain_form is None:
        span = rules.sequence.span or rules.place
        raise AnalysisError(
            f"SEQUENCE BY gives values of type {str(order_type).upper()}, which have no order that "
            "AUTO CDC can keep. Use a number, a time, a text without a collation (… COLLATE "
            "UTF8_BINARY), or a struct of these.",
            context.text, span.start, span.end,
            condition="AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE", sqlstate="42000",
        )  # fmt: skip
    return plain_form


def _check_condition(
    condition: RuleExpression | None,
    clause_name: str,
    context: RewriteContext,
    rules: CdcRules,
    column: str,
    fields: Fields,
) -> None:
    """Raise AnalysisError if the column of a clause's condition is neither a BOOLEAN nor the word
    NULL. ``clause_name``: for the message. A missing condition passes: its column is ``false``."""
    kind = dict(fields)[column].kind
    if kind not in ("boolean", "void"):  # void: the word NULL
        place = (condition and condition.span) or rules.place
        raise AnalysisError(
            f"{clause_name} needs a BOOLEAN condition, not a {kind.upper()}.",
            context.text, place.start, place.end,
            condition="DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", sqlstate="42K09",
        )  # fmt: skip
