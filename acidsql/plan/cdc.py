"""Rewrites AUTO CDC to four queries.

::

    source ── fold: one row for each key, its newest record ──► temporary files, or the driver
    fold   ── decide: join with target and state table      ──► temporary files, or the driver
                                    ├── events of the target
                                    └── events of the state table

A record changes a row only if its order value is above all that the key had before. The target
tells the order value of a live row, if it has columns that keep it. Otherwise, and for deleted
keys, the state table does (``acid.cdc``). The decision is made once, so both tables always agree.
With SCD type 2 the target has all versions of a key, and ``cdc_history`` decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from acidsql.acid import cdc
from acidsql.acid.table import Table
from acidsql.acid.types import HiveType
from acidsql.acid.virtual_columns import ROW__ID
from acidsql.errors import CatalogError
from acidsql.plan.cdc_decision import (
    ROW,
    Act,
    Sides,
    decide,
    decide_first,
    decide_truncation,
)
from acidsql.plan.cdc_fold import fold
from acidsql.plan.cdc_history import check_history, decide_history
from acidsql.plan.cdc_rules import Rules, bind_rules, refuse_target
from acidsql.plan.cdc_state import moment, no_rows, state_of
from acidsql.plan.event_query import Derived, EventQuery, Fields, Planned, partition_text
from acidsql.plan.query import (
    Resolve,
    StandIn,
    new_standin,
    placeholders,
    refuse_reserved_names,
    rewrite,
    source_virtual_columns,
    view_name,
)
from acidsql.plan.rewrite import Prepared
from acidsql.plan.sqltext import Text
from acidsql.sql.statements import AutoCdc
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote

Analyse = Callable[[Text, tuple[StandIn, ...], None], Fields]


@dataclass(frozen=True, slots=True)
class Ways:
    """The queries that decide, each with the stand-ins that it reads.

    Attributes:
        join: Joins the records with the rows of their keys.
        truncate: For records of which one truncates. None: the statement has none.
        first: If there are no rows yet: over the records alone. None: ``join`` does this, too.
    """

    join: Prepared
    truncate: Prepared | None = None
    first: Prepared | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCdc(Prepared):
    """A prepared AUTO CDC. ``queries`` are the events of the target and of the state table.

    Attributes:
        rules: What the statement says.
        sequence: The type of order values.
        state: The state table.
        is_new: The state table does not exist yet.
        fold: The query of ``cdc_fold``, and the stand-ins that it reads.
        faults: ``Fold.faults``, over the same stand-ins.
        files: The temporary view, over the files of the folded records, that ``decide`` reads.
        ways: The queries that decide.
        decided: The view over the decisions that ``queries`` read.
        loads: What ``queries`` are with ``ways.first``: inserts.
    """

    rules: Rules
    sequence: HiveType
    state: Table
    is_new: bool
    fold: Prepared
    faults: Text
    files: str
    ways: Ways
    decided: str
    loads: tuple[EventQuery, ...]

    def unwritten(self, way: Prepared) -> Prepared:
        """The query of a way over the fold's query instead of its files: it writes nothing."""
        ((decide,), (folded,)) = way.queries, self.fold.queries
        view = self.files if decide.source is None else decide.source.view
        decide = replace(decide, source=Derived(view, folded.query))
        return Prepared((decide,), (*self.fold.standins, *way.standins))


def plan_auto_cdc(
    text: str,
    statement: AutoCdc,
    resolve: Resolve,
    analyse: Analyse,
    *,
    double_quoted: bool,
    is_case_sensitive: bool = False,
) -> PreparedCdc:
    """Rewrite a statement.

    Args:
        text: The user's statement.
        statement: The parsed statement.
        resolve: Gives the ACID table of a name, or None.
        analyse: Asks Spark for the columns of a query.
        double_quoted: ``"…"`` is a name in this session.
        is_case_sensitive: The session tells names apart by case.

    Raises:
        SqlError: A name, a type or an expression is wrong (see ``bind_rules``), or order values
            have a type without an order.
        AnalysisError: The state table has other keys, or another kind of order values.
    """
    refuse_reserved_names(text)
    target = _target(text, statement, resolve)
    rewritten = rewrite(text, statement, resolve, double_quoted=double_quoted)
    sources = rewritten.standins
    blank = Text(text, [*rewritten.edits, *placeholders(text)])
    of_target = new_standin(target, is_target=True)
    planned = Planned(text, target, of_target.view, blank, lambda q: analyse(q, sources, None))
    planned = replace(planned, is_case_sensitive=is_case_sensitive)
    source = _source(statement, blank, rewritten.source_view)
    virtual = source_virtual_columns(text, statement, resolve)
    read = planned.analyse(blank.new().raw("SELECT * FROM ").add(source))
    fields = [field for field in read if field[0] not in virtual]
    rules = bind_rules(statement, planned, fields)
    found = fold(rules, planned, source, statement.source_alias, [name for name, _ in fields])
    if rules.history is not None:
        check_history(target, found.sequence, text, statement.target.span)
    state, is_new = state_of(planned, statement, rules, found, resolve)
    sides, of_state = _sides(of_target.view, state, is_new)
    ways = _ways(rules, planned, sides, found.sequence, (of_target, *of_state))
    decided = view_name()
    return PreparedCdc(
        _both(planned, state, rules, decided, is_first=False),
        (*sources, *ways.join.standins),
        rules=rules,
        sequence=found.sequence,
        state=state,
        is_new=is_new,
        fold=Prepared((EventQuery(target, found.query),), sources),
        faults=found.faults,
        files=sides.files,
        ways=ways,
        decided=decided,
        loads=_both(planned, state, rules, decided, is_first=True),
    )


def _target(text: str, statement: AutoCdc, resolve: Resolve) -> Table:
    target = resolve(statement.target.parts)
    if target is None:  # it was dropped after the text was parsed
        raise CatalogError(f"There is no ACID table '{'.'.join(statement.target.parts)}'.")
    refuse_target(target, statement.target, text)
    return target


def _sides(target: str, state: Table, is_new: bool) -> tuple[Sides, tuple[StandIn, ...]]:
    """The views, and the stand-ins of the state table, which has none if it is new."""
    if is_new:
        return Sides(view_name(), view_name(), target, no_rows(state), no_rows(state), state), ()
    rows, floor = StandIn(view_name(), state, (ROW__ID,)), StandIn(view_name(), state)
    return Sides(view_name(), view_name(), target, rows.view, floor.view, state), (rows, floor)


def _ways(
    rules: Rules, planned: Planned, sides: Sides, kind: HiveType, standins: tuple[StandIn, ...]
) -> Ways:
    if rules.history is not None:  # versions have no floor
        return Ways(Prepared((decide_history(rules, planned, sides, kind),), standins[:2]))
    truncate = None
    if rules.truncate_when is not None:
        truncate = Prepared((decide_truncation(rules, planned, sides),), standins)
    return Ways(
        Prepared((decide(rules, planned, sides),), standins),
        truncate,
        Prepared((decide_first(rules, planned, sides, kind),), ()),
    )


def _source(statement: AutoCdc, blank: Text, view: str | None) -> Text:
    text = blank.new().raw("(SELECT * FROM ")
    text = text.raw(view) if view is not None else text.verbatim(statement.source)
    alias = "" if statement.source_alias is None else f" AS {quote(statement.source_alias)}"
    return text.raw(f"\n){alias}")


# ── the events ───────────────────────────────────────────────────────────────────────────────

# The events of each kind of act.
_EVENTS = {
    Act.UPDATE: ew.INSERT | ew.DELETE,
    Act.MOVE: ew.INSERT | ew.DELETE | ew.MOVED,
    Act.INSERT: ew.INSERT,
    Act.DELETE: ew.DELETE,
}


def _both(
    planned: Planned, state: Table, rules: Rules, decided: str, *, is_first: bool
) -> tuple[EventQuery, EventQuery]:
    """The events of the target and of the state table; if there are no rows yet, inserts."""
    events = _inserts if is_first else _events
    keys = {name: name for name in ew.KEYS}
    ids = {ew.WRITE_ID: "writeid", ew.BUCKET_PROPERTY: "bucketid", ew.ROW_ID: "rowid"}
    noted = {name: f"{ROW}.{field}" for name, field in ids.items()} | {ew.PARTITION: "''"}
    return (
        events(planned, planned.table, decided, "act", keys, _of_target(planned.table)),
        events(planned, state, decided, "note", noted, _of_state(state, rules)),
    )


def _of_target(table: Table) -> list[str]:
    numbers = {column.name: f"c{i}" for i, column in enumerate(table.all_columns)}
    return [
        *(f"{numbers[column.name]} AS {quote(column.name)}" for column in table.columns),
        *(
            partition_text(numbers[column.name], column, ordinal)
            for ordinal, column in enumerate(table.partition_columns)
        ),
    ]


def _of_state(state: Table, rules: Rules) -> list[str]:
    sequence, deleted, at = (column.name for column in cdc.state_columns(state))
    numbers = {key.name: f"k{i}" for i, key in enumerate(rules.keys)}
    values = {column.name: f"w{i}" for i, column in enumerate(rules.columns)}
    return [
        *(f"{numbers[c.name]} AS {quote(c.name)}" for c in cdc.keys_of(state)),
        f"s AS {quote(sequence)}",
        f"d AS {quote(deleted)}",
        f"{moment()} AS {quote(at)}",
        *(f"{values.get(c.name, 'NULL')} AS {quote(c.name)}" for c in cdc.values_of(state)),
    ]


def _events(
    planned: Planned, table: Table, decided: str, act: str, keys: dict[str, str], values: list[str]
) -> EventQuery:
    """The events of a table.

    Args:
        planned: The facts about the statement.
        table: The table.
        decided: The view over the decisions.
        act: The decisions' column about this table.
        keys: SQL of the old row's identity, by column. A new row has none.
        values: The columns of the new row.
    """
    kinds = " ".join(f"WHEN {act.value} THEN {events}" for act, events in _EVENTS.items())
    old = [f"CASE WHEN {ew.ACTION} <> {ew.INSERT} THEN {keys[n]} END AS {n}" for n in ew.KEYS]
    query = planned.new().raw("SELECT\n").commas([*old, ew.ACTION, *values])
    query.raw(f"\nFROM (SELECT *, CASE {act} {kinds} END AS {ew.ACTION} FROM {decided})")
    query.raw(f"\nWHERE {ew.ACTION} IS NOT NULL")
    return EventQuery(table, query, deletes=True, merge=True, maybe_few=True, if_small=True)


def _inserts(
    planned: Planned, table: Table, decided: str, act: str, keys: dict[str, str], values: list[str]
) -> EventQuery:
    """The same for a table without rows: ``act`` is INSERT or NOTHING."""
    query = planned.new().raw("SELECT\n").commas(values)
    query.raw(f"\nFROM {decided} WHERE {act} = {Act.INSERT.value}")
    return EventQuery(table, query)
