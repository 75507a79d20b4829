"""MERGE → a query whose rows are events and marks of matches.

::

    target  JOIN  source  ON …                  inner, left, right or full: what the clauses need
      └─ clause     number of the first WHEN clause that is true
          └─ values     of that clause, and what it does (action)

Every matched pair yields a row, even where no clause fires, because a second match of the same
row is an error all the same (as in Hive and Spark); the second step of the write sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.acid.table import Column
from acidsql.acid.types import HiveType
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.plan.event_query import (
    KEY_NAMES,
    EventQuery,
    Planned,
    assigned,
    default_fields,
    omitted_value,
    partition_text,
    refuse_window,
    row_id_columns,
    single,
    value_name,
)
from acidsql.plan.sqltext import Text
from acidsql.sql.binder import bind_assignments, bind_insert, default_sql, is_default, value_span
from acidsql.sql.conditions import equated_columns
from acidsql.sql.statements import (
    Action,
    InsertAction,
    Matched,
    Merge,
    MergeClause,
    UpdateAction,
    Value,
)
from acidsql.sql.tokens import Span
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote

_CLAUSE = f"{ew.PREFIX}clause"
_PRESENT = f"{ew.PREFIX}present"
_OLD = f"{ew.PREFIX}old"  # + ordinal: a column of the row that was read

_JOINS = {
    (False, False): "INNER JOIN",
    (True, False): "RIGHT OUTER JOIN",
    (False, True): "LEFT OUTER JOIN",
    (True, True): "FULL OUTER JOIN",
}


@dataclass(frozen=True, slots=True)
class _Bound:
    """A clause with its columns resolved; ``values`` maps a column's name to its new value."""

    clause: MergeClause
    values: dict[str, Text]
    places: dict[str, Span]

    @property
    def action(self) -> int:
        if self.clause.action is Action.DELETE:
            return ew.DELETE
        if isinstance(self.clause.action, InsertAction) or self.clause.action is Action.INSERT_ALL:
            return ew.INSERT
        return ew.DELETE | ew.INSERT


def plan_merge(statement: Merge, planned: Planned, source_view: str | None) -> EventQuery:
    """Rewrite a MERGE.

    Args:
        statement: The statement.
        planned: What is known of it.
        source_view: The stand-in of a source that is a plain name, or None.

    Raises:
        AnalysisError: A name, a count or a type does not fit.
        UnsupportedError: UPDATE SET * would change a partition or bucketing column.
    """
    source = _source(statement, planned, source_view)
    bound = [_bind(clause, statement, planned, source) for clause in statement.clauses]
    pairs = _pairs(statement, planned, source, bound)
    kinds = dict(planned.analyse(pairs))
    _check_sides(statement, planned, source, bound)
    query = planned.new().raw("SELECT\n").commas(_events(planned, bound, kinds))
    query.raw("\nFROM (").add(pairs).raw(f"\n)\nWHERE {_CLAUSE} > 0")
    if any(clause.matched is Matched.MATCHED for clause in statement.clauses):
        query.raw(f" OR ({ew.WRITE_ID} IS NOT NULL AND {_PRESENT})")
    return EventQuery(
        planned.table,
        query,
        deletes=True,
        merge=True,
        allow_duplicate_deletes=_only_deletes(statement),
    )


def _only_deletes(statement: Merge) -> bool:
    """The exemption: what is deleted twice is deleted."""
    matched = [c for c in statement.clauses if c.matched is Matched.MATCHED]
    return len(matched) == 1 and matched[0].action is Action.DELETE and not matched[0].condition


def _source(statement: Merge, planned: Planned, view: str | None) -> Text:
    text = planned.new().raw(f"(SELECT *, true AS {_PRESENT} FROM ")
    if view is not None:
        text.raw(view)
    else:
        text.verbatim(statement.source)
    if statement.source_alias is not None:
        alias = quote(statement.source_alias)
        text.raw(f" AS {alias}")
        if statement.source_columns is not None:
            text.raw(f" ({', '.join(map(quote, statement.source_columns))})")
        return text.raw(f"\n) AS {alias}")
    return text.raw("\n)")


def _check_sides(statement: Merge, planned: Planned, source: Text, bound: Sequence[_Bound]) -> None:
    """Refuse the other side's columns in a clause about rows without a partner.

    All of them would be NULL there.
    """
    target = f"{planned.standin} AS {quote(statement.alias or statement.target.parts[-1])}"
    sides: dict[Matched, Text | str] = {
        Matched.NOT_MATCHED: source,
        Matched.NOT_MATCHED_BY_SOURCE: target,
    }
    for matched, side in sides.items():
        used: list[Text | str] = []
        for item in bound:
            if item.clause.matched is matched:
                used += item.values.values()
                if item.clause.condition is not None:
                    used.append(planned.new().user(item.clause.condition))
        if used:
            query = planned.new()
            if statement.ctes is not None:
                query.verbatim(statement.ctes).raw("\n")
            planned.analyse(query.raw("SELECT\n").commas(used).raw("\nFROM ").add(side))


def _pairs(statement: Merge, planned: Planned, source: Text, bound: Sequence[_Bound]) -> Text:
    """The joined rows: keys, old values, the clause that fires, the values of every clause."""
    alias = statement.alias or statement.target.parts[-1]
    columns: list[Text | str] = [*row_id_columns(alias), _PRESENT]
    columns += [
        f"{quote(alias)}.{quote(column.name)} AS {_OLD}{i}"
        for i, column in enumerate(planned.table.all_columns)
    ]
    columns.append(_which_clause(planned, alias, bound))
    columns += _guarded_values(planned, bound)
    text = planned.new()
    if statement.ctes is not None:
        text.verbatim(statement.ctes).raw("\n")
    kinds = {clause.matched for clause in statement.clauses}
    join = _JOINS[Matched.NOT_MATCHED in kinds, Matched.NOT_MATCHED_BY_SOURCE in kinds]
    text.raw("SELECT\n").commas(columns)
    text.raw(f"\nFROM {planned.standin} AS {quote(alias)} {join} ").add(source)
    return text.raw("\nON ").user(statement.on)


def _which_clause(planned: Planned, alias: str, bound: Sequence[_Bound]) -> Text:
    """The number of the first clause that is true, from 1; 0 if none is."""
    row_id = f"{quote(alias)}.row__id IS NOT NULL"
    when = {
        Matched.MATCHED: f"{row_id} AND {_PRESENT} IS NOT NULL",
        Matched.NOT_MATCHED: f"{quote(alias)}.row__id IS NULL",
        Matched.NOT_MATCHED_BY_SOURCE: f"{_PRESENT} IS NULL",
    }
    text = planned.new().raw("CASE")
    for number, item in enumerate(bound, 1):
        text.raw(f" WHEN {when[item.clause.matched]}")
        if item.clause.condition is not None:
            refuse_window(planned, item.clause.condition)
            text.raw(" AND ").user(item.clause.condition)
        text.raw(f" THEN {number}")
    return text.raw(f" ELSE 0 END AS {_CLAUSE}")


def _guarded_values(planned: Planned, bound: Sequence[_Bound]) -> list[Text | str]:
    """Each clause's values, evaluated only where that clause fires: elsewhere one may divide by 0.

    The clause's number is a lateral alias, so that a condition is evaluated once.
    """
    found: list[Text | str] = []
    for number, item in enumerate(bound, 1):
        for value in item.values.values():
            guarded = planned.new().raw(f"CASE WHEN {_CLAUSE} = {number} THEN ")
            guarded.add(single(value)).raw(f" END AS {value_name(len(found))}")
            found.append(guarded)
    return found


def _events(
    planned: Planned, bound: Sequence[_Bound], kinds: dict[str, HiveType]
) -> list[Text | str]:
    table = planned.table
    fitted = _fitted_values(planned, bound, kinds)
    columns = {
        column.name: _new_value(i, column, bound, fitted)
        for i, column in enumerate(table.all_columns)
    }
    inserts = [str(n) for n, item in enumerate(bound, 1) if item.action == ew.INSERT]
    action = "".join(f" WHEN {n} THEN {item.action}" for n, item in enumerate(bound, 1))
    keys = [
        # A new row goes to the partition of its values, not to that of a row it did not match.
        f"CASE WHEN {_CLAUSE} IN ({', '.join(inserts)}) THEN NULL ELSE {name} END AS {name}"
        if inserts and name == ew.PARTITION
        else name
        for name in KEY_NAMES
    ]
    return [
        *keys,
        f"CASE {_CLAUSE}{action} ELSE {ew.MATCHED} END AS {ew.ACTION}",
        *(f"{columns[c.name]} AS {quote(c.name)}" for c in table.columns),
        *(
            partition_text(columns[column.name], column, ordinal)
            for ordinal, column in enumerate(table.partition_columns)
        ),
    ]


def _fitted_values(
    planned: Planned, bound: Sequence[_Bound], kinds: dict[str, HiveType]
) -> dict[tuple[int, str], str]:
    """(clause number, column) → SQL of its value, made fit for the column."""
    by_name = {column.name: column for column in planned.table.all_columns}
    fitted: dict[tuple[int, str], str] = {}
    for number, item in enumerate(bound, 1):
        for name in item.values:
            value = value_name(len(fitted))
            fitted[number, name] = assigned(
                planned, value, kinds[value], by_name[name], item.places[name]
            )
    return fitted


def _new_value(
    ordinal: int, column: Column, bound: Sequence[_Bound], fitted: dict[tuple[int, str], str]
) -> str:
    """A column's value after the clause that fired; the old one where it does not set it."""
    branches = "".join(
        f" WHEN {number} THEN {fitted[number, column.name]}"
        for number in range(1, len(bound) + 1)
        if (number, column.name) in fitted
    )
    old = f"{_OLD}{ordinal}"
    return f"CASE {_CLAUSE}{branches} ELSE {old} END" if branches else old


# ── clauses ──────────────────────────────────────────────────────────────────────────────────


def _bind(clause: MergeClause, statement: Merge, planned: Planned, source: Text) -> _Bound:
    action = clause.action
    if isinstance(action, UpdateAction):
        return _bind_update(clause, action, statement, planned)
    if isinstance(action, InsertAction):
        return _bind_insert(clause, action, planned)
    if action is Action.DELETE:
        return _Bound(clause, {}, {})
    return _bind_star(clause, statement, planned, source)


def _bind_update(
    clause: MergeClause, action: UpdateAction, statement: Merge, planned: Planned
) -> _Bound:
    alias = statement.alias or statement.target.parts[-1]
    bound = bind_assignments(planned.text, planned.table, alias, action.assignments)
    values = {item.column.name: _value(item.value, item.column, planned) for item in bound}
    return _Bound(clause, values, {i.column.name: value_span(i.value) for i in bound})


def _bind_insert(clause: MergeClause, action: InsertAction, planned: Planned) -> _Bound:
    bound = bind_insert(planned.text, planned.table, action.columns, ())
    if len(bound.from_source) != len(action.values):
        raise AnalysisError(
            f"INSERT names {len(bound.from_source)} column(s) and gives {len(action.values)} "
            "value(s).",
            planned.text, clause.span.start, clause.span.end,
            condition="MERGE_INSERT_VALUE_COUNT_MISMATCH", sqlstate="21S01",
        )  # fmt: skip
    pairs = list(zip(bound.from_source, action.values, strict=True))
    values = {column.name: _value(value, column, planned) for column, value in pairs}
    places = {column.name: value_span(value) for column, value in pairs}
    return _with_omitted(clause, values, places, bound.omitted, planned)


def _bind_star(clause: MergeClause, statement: Merge, planned: Planned, source: Text) -> _Bound:
    """``UPDATE SET *`` and ``INSERT *``: the source's columns, by name."""
    given = _source_columns(statement, planned, source)
    is_update = clause.action is Action.UPDATE_ALL
    values: dict[str, Text] = {}
    for column in planned.table.all_columns:
        if column.name not in given:
            if is_update or column in planned.table.partition_columns:
                raise _star_error(planned, clause, column)
            continue
        if is_update and _is_placing(planned, column):
            _require_equated(statement, planned, clause, column, given[column.name])
            continue
        name = quote(given[column.name])
        if statement.source_alias is not None:
            name = f"{quote(statement.source_alias)}.{name}"
        values[column.name] = planned.new().raw(name)
    places = dict.fromkeys(values, clause.span)
    omitted = [] if is_update else [c for c in planned.table.all_columns if c.name not in values]
    return _with_omitted(clause, values, places, omitted, planned)


def _with_omitted(
    clause: MergeClause,
    values: dict[str, Text],
    places: dict[str, Span],
    omitted: Sequence[Column],
    planned: Planned,
) -> _Bound:
    types = default_fields(planned, omitted)
    for column in omitted:
        values[column.name] = planned.new().raw(omitted_value(planned, column, types))
        places[column.name] = clause.span
    return _Bound(clause, values, places)


def _value(value: Value, column: Column, planned: Planned) -> Text:
    if is_default(value):
        return planned.new().raw(default_sql(column))
    assert isinstance(value, Span)
    refuse_window(planned, value)
    return planned.new().user(value)


def _source_columns(statement: Merge, planned: Planned, source: Text) -> dict[str, str]:
    query = planned.new()
    if statement.ctes is not None:
        query.verbatim(statement.ctes).raw("\n")
    fields = planned.analyse(query.raw("SELECT * FROM ").add(source))
    return {name.lower(): name for name, _ in fields if name != _PRESENT}


def _is_placing(planned: Planned, column: Column) -> bool:
    table = planned.table
    return column in table.partition_columns or column.name in table.bucket_columns


def _require_equated(
    statement: Merge, planned: Planned, clause: MergeClause, column: Column, name: str
) -> None:
    """UPDATE SET * leaves a placing column out where ON says that it would not change."""
    target = statement.alias or statement.target.parts[-1]
    pair = {(target.lower(), column.name), ((statement.source_alias or "").lower(), name.lower())}
    if pair in equated_columns(planned.text, statement.on):
        return
    kind = "partition" if column in planned.table.partition_columns else "bucketing"
    raise UnsupportedError(
        f"UPDATE SET * would change the {kind} column '{column.name}'. Equate it with the "
        "source's in ON, or name the columns to set.",
        planned.text, clause.span.start, clause.span.end,
        condition=f"UNSUPPORTED_FEATURE.UPDATE_{kind.upper()}_COLUMN",
    )  # fmt: skip


def _star_error(planned: Planned, clause: MergeClause, column: Column) -> AnalysisError:
    return AnalysisError(
        f"The source has no column '{column.name}', which * needs.",
        planned.text, clause.span.start, clause.span.end,
        condition="UNRESOLVED_COLUMN.WITH_SUGGESTION", sqlstate="42703",
    )  # fmt: skip
