"""Rewrites AUTO CDC to four queries.

::

    source ── fold: one row for each key, its newest record ──► temporary files, or the driver
    fold   ── decide: join with target and state table      ──► temporary files, or the driver
                                    ├── events of the target
                                    └── events of the state table

A record changes a row only if its order value is above all that the key had before. The target
tells the order value of a live row, if it has columns that keep it. Otherwise, and for deleted
keys, the state table does (``acid.cdc``). The decision is made once, so both tables always agree.
With SCD type 2 the target has all versions of a key, and ``history`` decides.

A stand-in is a temporary view in the place of a table. The floor is the order value of the newest
truncation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from acidsql.acid import cdc
from acidsql.acid.table import Table
from acidsql.acid.values.types import HiveType
from acidsql.acid.virtual_columns import ROW__ID
from acidsql.errors import CatalogError
from acidsql.plan.cdc.decision import (
    ROW,
    CdcViews,
    RowAct,
    decide_by_join,
    decide_for_empty_tables,
    decide_truncation,
)
from acidsql.plan.cdc.fold import compose_fold
from acidsql.plan.cdc.history import check_history, decide_history
from acidsql.plan.cdc.rules import CdcRules, bind_rules, refuse_target
from acidsql.plan.cdc.state import find_or_plan_state, no_rows, now_sql
from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.rows.event_query import (
    Collecting,
    DerivedView,
    EventQuery,
    Fields,
    Hints,
    RewriteContext,
    partition_text,
)
from acidsql.plan.standins.query import (
    Resolve,
    StandIn,
    new_standin,
    placeholders,
    refuse_reserved_names,
    rewrite,
    source_virtual_columns,
    view_name,
)
from acidsql.plan.values.sqltext import Text
from acidsql.sql.parsed.statements import AutoCdc
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote

AnalyseCdc = Callable[[Text, tuple[StandIn, ...], None], Fields]


@dataclass(frozen=True, slots=True)
class DecisionQueries:
    """The queries that decide, each with the stand-ins that it reads.

    Attributes:
        join: Joins the records with the rows of their keys.
        truncate: Decides if a record truncates. None: the statement has no such records.
        first: Decides from the records alone, if both tables have no rows yet. None: ``join``
            decides then, too.
    """

    join: PreparedStatement
    truncate: PreparedStatement | None = None
    first: PreparedStatement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCdc(PreparedStatement):
    """A prepared AUTO CDC. ``queries`` are the events of the target and of the state table.

    Attributes:
        rules: The rules of the statement.
        sequence: The type of order values.
        state: The state table.
        is_new: The state table does not exist yet.
        fold: The query of ``fold``, and the stand-ins that it reads.
        faults: ``CdcFold.faults``, over the same stand-ins.
        files: The temporary view over the files of the folded records. ``decide_by_join`` reads it.
        decisions: The queries that decide.
        decision_view: The view over the decisions that ``queries`` read.
        first_queries: Takes the place of ``queries`` if ``decisions.first`` decides: inserts alone.
    """

    rules: CdcRules
    sequence: HiveType
    state: Table
    is_new: bool
    fold: PreparedStatement
    faults: Text
    files: str
    decisions: DecisionQueries
    decision_view: str
    first_queries: tuple[EventQuery, ...]

    def decide_without_files(self, decision: PreparedStatement) -> PreparedStatement:
        """Return ``decision`` changed so that its one query reads the fold's query instead of its
        files, which then need not be written: the fold's query is its ``source``, under the name of
        the view that the decision reads, and the fold's stand-ins come first."""
        ((decide_query,), (folded,)) = decision.queries, self.fold.queries
        view = self.files if decide_query.source is None else decide_query.source.view
        decide_query = replace(decide_query, source=DerivedView(view, folded.query))
        return PreparedStatement((decide_query,), (*self.fold.standins, *decision.standins))


def plan_auto_cdc(
    text: str,
    statement: AutoCdc,
    resolve: Resolve,
    analyse: AnalyseCdc,
    *,
    double_quoted: bool,
    is_case_sensitive: bool = False,
) -> PreparedCdc:
    """Rewrite an AUTO CDC to queries that fold the records, decide, and give events; run nothing.

    Args:
        text: The user's statement.
        statement: The parsed statement.
        resolve: Gives the ACID table of a name, or None.
        analyse: Asks Spark for the columns of a query.
        double_quoted: ``"…"`` is a name in this session.
        is_case_sensitive: The session tells names apart by case.

    Raises:
        SqlError, CatalogError: A name, a type or a clause is wrong, or a table does not fit.
    """
    refuse_reserved_names(text)
    target = _resolve_target(text, statement, resolve)
    target_standin = new_standin(target, is_target=True)
    rewritten = rewrite(text, statement, resolve, double_quoted=double_quoted)
    blank = Text(text, [*rewritten.edits, *placeholders(text)])
    context = RewriteContext(
        text, target, target_standin.view, blank,
        lambda query: analyse(query, rewritten.standins, None), is_case_sensitive=is_case_sensitive,
    )  # fmt: skip
    source = _source_relation(statement, blank, rewritten.source_view)
    virtual = source_virtual_columns(text, statement, resolve)
    fields = context.analyse(blank.new().raw("SELECT * FROM ").add(source))
    fields = [field for field in fields if field[0] not in virtual]
    rules = bind_rules(statement, context, fields)
    folded = compose_fold(
        rules, context, source, statement.source_alias, [name for name, _ in fields]
    )
    if rules.tracked_columns is not None:
        check_history(target, folded.sequence, text, statement.target.span)
    state, is_new = find_or_plan_state(context, statement, rules, folded, resolve)
    sides, state_standins = _views_and_standins(target_standin.view, state, is_new)
    standins = (target_standin, *state_standins)
    decisions = _decision_queries(rules, context, sides, folded.sequence, standins)
    decision_view = view_name()
    return PreparedCdc(
        _both_event_queries(context, state, rules, decision_view, is_first=False),
        (*rewritten.standins, *decisions.join.standins),
        rules=rules,
        sequence=folded.sequence,
        state=state,
        is_new=is_new,
        fold=PreparedStatement((EventQuery(target, folded.query),), rewritten.standins),
        faults=folded.faults,
        files=sides.files,
        decisions=decisions,
        decision_view=decision_view,
        first_queries=_both_event_queries(context, state, rules, decision_view, is_first=True),
    )


def _resolve_target(text: str, statement: AutoCdc, resolve: Resolve) -> Table:
    """Return the target's table. Raise CatalogError if it was dropped after the text was parsed,
    and AnalysisError or UnsupportedError if its rows cannot be changed."""
    target = resolve(statement.target.parts)
    if target is None:  # it was dropped after the text was parsed
        raise CatalogError(f"There is no ACID table '{'.'.join(statement.target.parts)}'.")
    refuse_target(target, statement.target, text)
    return target


def _views_and_standins(
    target: str, state: Table, is_new: bool
) -> tuple[CdcViews, tuple[StandIn, ...]]:
    """Return the names of the views that the queries read, and the state table's two stand-ins (for
    its rows with their row ids, and for the floor). A state table that does not exist yet has none,
    (), and is read as no rows."""
    if is_new:
        return CdcViews(view_name(), view_name(), target, no_rows(state), no_rows(state), state), ()
    rows, floor = StandIn(view_name(), state, (ROW__ID,)), StandIn(view_name(), state)
    return CdcViews(view_name(), view_name(), target, rows.view, floor.view, state), (rows, floor)


def _decision_queries(
    rules: CdcRules,
    context: RewriteContext,
    sides: CdcViews,
    order_type: HiveType,
    standins: tuple[StandIn, ...],
) -> DecisionQueries:
    """Return the queries that decide, with the stand-ins that they read: for SCD type 2 ``join``
    alone; else ``join`` for the general case, ``truncate`` if the statement has records that
    truncate, and ``first`` for empty tables, which needs no stand-ins."""
    if rules.tracked_columns is not None:  # versions have no floor
        return DecisionQueries(
            PreparedStatement((decide_history(rules, context, sides, order_type),), standins[:2])
        )
    truncate = None
    if rules.truncate_when is not None:
        truncate = PreparedStatement((decide_truncation(rules, context, sides),), standins)
    return DecisionQueries(
        PreparedStatement((decide_by_join(rules, context, sides),), standins),
        truncate,
        PreparedStatement((decide_for_empty_tables(rules, context, sides, order_type),), ()),
    )


def _source_relation(statement: AutoCdc, blank: Text, view: str | None) -> Text:
    """Compose the statement's source as a relation ``(SELECT * FROM …)`` with its alias, if it has
    one. ``blank``: an empty Text over the statement, to compose with. ``view``: the stand-in of a
    source that is a table's name, or None."""
    text = blank.new().raw("(SELECT * FROM ")
    text = text.raw(view) if view is not None else text.verbatim(statement.source)
    alias = "" if statement.source_alias is None else f" AS {quote(statement.source_alias)}"
    return text.raw(f"\n){alias}")


# ── the events ───────────────────────────────────────────────────────────────────────────────

# The events of each kind of act.
_EVENTS = {
    RowAct.UPDATE: ew.INSERT | ew.DELETE,
    RowAct.MOVE: ew.INSERT | ew.DELETE | ew.MOVED,
    RowAct.INSERT: ew.INSERT,
    RowAct.DELETE: ew.DELETE,
}


def _both_event_queries(
    context: RewriteContext, state: Table, rules: CdcRules, decision_view: str, *, is_first: bool
) -> tuple[EventQuery, EventQuery]:
    """Return the event query (insert and delete events) of the target, then that of the state
    table, over the view of the decisions.

    ``is_first``: both tables have no rows yet, so all events are inserts.
    """
    events = _insert_query if is_first else _event_query
    keys = {name: name for name in ew.KEYS}
    ids = {ew.WRITE_ID: "writeid", ew.BUCKET_PROPERTY: "bucketid", ew.ROW_ID: "rowid"}
    state_keys = {name: f"{ROW}.{field}" for name, field in ids.items()} | {ew.PARTITION: "''"}
    return (
        events(context, context.table, decision_view, "act", keys, _target_values(context.table)),
        events(context, state, decision_view, "note", state_keys, _state_values(state, rules)),
    )


def _target_values(table: Table) -> list[str]:
    """Return SQL of the target's columns in its events, over the decisions: data columns, then the
    partition values as text."""
    numbers = {column.name: f"c{i}" for i, column in enumerate(table.all_columns)}
    return [
        *(f"{numbers[column.name]} AS {quote(column.name)}" for column in table.columns),
        *(
            partition_text(numbers[column.name], column, ordinal)
            for ordinal, column in enumerate(table.partition_columns)
        ),
    ]


def _state_values(state: Table, rules: CdcRules) -> list[str]:
    """Return SQL of the state table's columns in its events, over the decisions: keys, order value,
    whether it is a delete, this machine's time now; with SCD type 2 also the record's values, NULL
    for a column that records do not set."""
    sequence, deleted, at = (column.name for column in cdc.state_columns(state))
    numbers = {key.name: f"k{i}" for i, key in enumerate(rules.keys)}
    values = {column.name: f"w{i}" for i, column in enumerate(rules.columns)}
    return [
        *(f"{numbers[c.name]} AS {quote(c.name)}" for c in cdc.keys_of(state)),
        f"s AS {quote(sequence)}",
        f"d AS {quote(deleted)}",
        f"{now_sql()} AS {quote(at)}",
        *(f"{values.get(c.name, 'NULL')} AS {quote(c.name)}" for c in cdc.values_of(state)),
    ]


def _event_query(
    context: RewriteContext,
    table: Table,
    decision_view: str,
    act: str,
    keys: dict[str, str],
    values: list[str],
) -> EventQuery:
    """Compose the event query of a table (mode MERGE), over the view of the decisions: the old
    row's identity, NULL for an insert; the action; the values. Rows with nothing to do give no
    event. The driver collects the events if Spark estimates that they take few bytes.

    Args:
        context: The context of the rewrite.
        table: The table.
        decision_view: The view over the decisions.
        act: The decisions' column about this table.
        keys: SQL of the old row's identity, by column.
        values: The columns of the new row.
    """
    kinds = " ".join(f"WHEN {act.value} THEN {events}" for act, events in _EVENTS.items())
    old = [f"CASE WHEN {ew.ACTION} <> {ew.INSERT} THEN {keys[n]} END AS {n}" for n in ew.KEYS]
    query = context.new().raw("SELECT\n").commas([*old, ew.ACTION, *values])
    query.raw(f"\nFROM (SELECT *, CASE {act} {kinds} END AS {ew.ACTION} FROM {decision_view})")
    query.raw(f"\nWHERE {ew.ACTION} IS NOT NULL")
    hints = Hints(collecting=Collecting.IF_SMALL)
    return EventQuery(table, query, ew.WriteMode.MERGE, hints=hints)


def _insert_query(
    context: RewriteContext,
    table: Table,
    decision_view: str,
    act: str,
    keys: dict[str, str],
    values: list[str],
) -> EventQuery:
    """Compose the event query (mode INSERT) of a table without rows: the ``values`` of each row
    whose ``act``, the decisions' column about this table, is INSERT. ``keys`` is not used;
    `_event_query` has it, too."""
    query = context.new().raw("SELECT\n").commas(values)
    query.raw(f"\nFROM {decision_view} WHERE {act} = {RowAct.INSERT.value}")
    return EventQuery(table, query)
