"""Rewrites AUTO CDC to four queries.

::

    source ── fold: one row for each key, its newest record ──► temporary files
    fold   ── decide: join with target and state table      ──► temporary files
                                    ├── events of the target
                                    └── events of the state table

A record changes a row only if its order value is above all that the key had before. The target
tells the order value of a live row, if it has columns that keep it. Otherwise, and for deleted
keys, the state table does (``acid.cdc``). The decision is made once, so both tables always agree.
With SCD type 2 the target has all versions of a key, and ``cdc_history`` decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from acidsql.acid import cdc
from acidsql.acid.paths import is_name
from acidsql.acid.table import (
    BUCKETING_VERSION,
    FULL_ACID,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    Column,
    Table,
)
from acidsql.acid.types import HiveType, parse_type
from acidsql.errors import AnalysisError, CatalogError, UnsupportedError
from acidsql.plan.cdc_decision import (
    ROW,
    Act,
    Sides,
    decide,
    decide_first,
    decide_truncation,
)
from acidsql.plan.cdc_fold import Fold, fold
from acidsql.plan.cdc_history import check_history, decide_history
from acidsql.plan.cdc_rules import Rules, bind_rules, refuse_target
from acidsql.plan.event_query import EventQuery, Fields, Planned, partition_text
from acidsql.plan.query import (
    Resolve,
    StandIn,
    new_standin,
    placeholders,
    refuse_reserved_names,
    rewrite,
    view_name,
)
from acidsql.plan.rewrite import Prepared
from acidsql.plan.sqltext import Text
from acidsql.sql.statements import AutoCdc
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote

_BUCKETS = 4  # of the state table of a target without buckets
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


def plan_auto_cdc(
    text: str, statement: AutoCdc, resolve: Resolve, analyse: Analyse, *, double_quoted: bool
) -> PreparedCdc:
    """Rewrite a statement.

    Args:
        text: The user's statement.
        statement: The parsed statement.
        resolve: Gives the ACID table of a name, or None.
        analyse: Asks Spark for the columns of a query.
        double_quoted: ``"…"`` is a name in this session.

    Raises:
        SqlError: A name, a type or an expression is wrong (see ``bind_rules``), or order values
            have a type without an order.
        AnalysisError: The state table has other keys, or another kind of order values.
    """
    refuse_reserved_names(text)
    target = resolve(statement.target.parts)
    if target is None:  # it was dropped after the text was parsed
        raise CatalogError(f"There is no ACID table '{'.'.join(statement.target.parts)}'.")
    refuse_target(target, statement.target, text)
    rewritten = rewrite(text, statement, resolve, double_quoted=double_quoted)
    sources = rewritten.standins
    blank = Text(text, [*rewritten.edits, *placeholders(text)])
    of_target = new_standin(target, is_target=True)
    planned = Planned(text, target, of_target.view, blank, lambda q: analyse(q, sources, None))
    source = _source(statement, blank, rewritten.source_view)
    fields = planned.analyse(blank.new().raw("SELECT * FROM ").add(source))
    rules = bind_rules(statement, planned, fields)
    names = [name for name, _ in fields]
    found = fold(rules, planned, source, statement.source_alias, names)
    if rules.history is not None:
        check_history(target, found.sequence, text, statement.target.span)
    state, is_new = _state(planned, statement, rules, found, resolve)
    of_state = StandIn(view_name(), state, row_id=True)
    of_floor = StandIn(view_name(), state)
    sides = Sides(view_name(), view_name(), of_target.view, of_state.view, of_floor.view, state)
    ways = _ways(rules, planned, sides, found.sequence, (of_target, of_state, of_floor))
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
    now = f"TIMESTAMP_NTZ '{datetime.now(UTC):%Y-%m-%d %H:%M:%S}'"
    return [
        *(f"{numbers[c.name]} AS {quote(c.name)}" for c in cdc.keys_of(state)),
        f"s AS {quote(sequence)}",
        f"d AS {quote(deleted)}",
        f"{now} AS {quote(at)}",
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


# ── the state table ──────────────────────────────────────────────────────────────────────────


def _state(
    planned: Planned, statement: AutoCdc, rules: Rules, folded: Fold, resolve: Resolve
) -> tuple[Table, bool]:
    """The state table, and whether it is yet to be created."""
    name = cdc.state_name(planned.table.name)
    wanted = _new_state(planned, statement, rules, folded)
    found = resolve((name.database, name.name))
    if found is None:
        return wanted, True
    if not cdc.is_state(found) or not _has_form(found):
        raise _drift(planned, statement, "NAME_TAKEN", f"{name} is no state table of AUTO CDC.")
    order = "order values of type"
    facts = [
        ("SCD_TYPE_DRIFT", found.properties.get(cdc.SCD_TYPE, "1"), str(statement.scd_type),
         "SCD type"),
        ("KEYS_DRIFT", _types(cdc.keys_of(found)), _types(cdc.keys_of(wanted)), "keys"),
        ("SEQUENCE_DRIFT", *(cdc.state_columns(one)[0].type for one in (found, wanted)), order),
        ("SEQUENCE_DRIFT", found.properties[cdc.ORDER], wanted.properties[cdc.ORDER],
         "order values in the columns"),
    ]  # fmt: skip
    for condition, before, now, what in facts:
        if before != now:
            message = f"Earlier records of {planned.table.name} had {what} {before or 'none'}, "
            raise _drift(planned, statement, condition, f"{message}these have {now or 'none'}.")
    _check_values(planned, statement, found, wanted)
    return found, False


def _has_form(state: Table) -> bool:
    """Whether a table has the columns of a state table: others may have made or changed it."""
    try:
        _, deleted, at = cdc.state_columns(state)
    except ValueError:
        return False
    return bool(cdc.keys_of(state)) and (deleted.type, at.type) == ("boolean", "timestamp")


def _check_values(planned: Planned, statement: AutoCdc, found: Table, wanted: Table) -> None:
    """Refuse records with other columns than those that the state table of versions has."""

    def error(message: str) -> AnalysisError:
        return AnalysisError(
            f"{found.name} keeps earlier records, which had {message}",
            planned.text, statement.target.span.start, statement.target.span.end,
            condition="AUTOCDC_INVALID_STATE.COLUMNS_DRIFT", sqlstate="55000",
        )  # fmt: skip

    known = {column.name: column for column in cdc.values_of(found)}
    for column in cdc.values_of(wanted):
        before = known.pop(column.name, None)
        if before is None or before.type != column.type:
            name, alter = quote(column.name), f"ALTER TABLE {found.name}"
            what = f"{name} {column.type.upper()}"
            way = f"CHANGE COLUMN {name} {what}."
            if before is None:
                way = f"ADD COLUMNS ({what}); or, if it was renamed, {alter} CHANGE COLUMN …."
            raise error(f"no column {what}. Give the table this column first: {alter} {way}")
    for name in map(quote, known):
        # The versions that a late record splits would lose the column's values.
        raise error(f"a column {name}. Give these records one, too, perhaps NULL AS {name}.")


def _types(columns: tuple[Column, ...]) -> str:
    return ", ".join(sorted(f"{column.name} {column.type}" for column in columns))


def _new_state(planned: Planned, statement: AutoCdc, rules: Rules, folded: Fold) -> Table:
    target = planned.table
    name = cdc.state_name(target.name)
    if not is_name(name.name):
        raise UnsupportedError(
            f"The name of {target.name} is too long: AUTO CDC needs a table {name} beside it.",
            planned.text, statement.target.span.start, statement.target.span.end,
        )  # fmt: skip
    keys = tuple(Column(key.name, key.type) for key in rules.keys)
    values: tuple[Column, ...] = ()
    properties = {
        TRANSACTIONAL: "true",
        TRANSACTIONAL_PROPERTIES: FULL_ACID,
        BUCKETING_VERSION: "2",
        cdc.ORDER: ", ".join(quote(column.name) for column in rules.order),
    }
    if rules.history is not None:
        values = tuple(Column(column.name, column.type) for column in rules.columns)
        properties |= {cdc.SCD_TYPE: "2", cdc.NUM_KEYS: str(len(keys))}
    taken = {column.name for column in (*keys, *values)}
    sequence, deleted, at = (_free(one, taken) for one in ("sequence", "deleted", "at"))
    buckets = tuple(key.name for key in keys if parse_type(key.type).kind != "binary")
    return Table(
        name,
        "",  # its directory is chosen when it is created
        (
            *keys,
            Column(sequence, str(folded.sequence)),
            Column(deleted, "boolean"),
            Column(at, "timestamp"),
            *values,
        ),
        bucket_columns=buckets,
        num_buckets=max(target.num_buckets, _BUCKETS) if buckets else -1,
        properties=properties,
        comment=f"Order values of the keys of {target.name.name}, for AUTO CDC",
    )


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _drift(planned: Planned, statement: AutoCdc, what: str, message: str) -> AnalysisError:
    name, place = cdc.state_name(planned.table.name), statement.target.span
    return AnalysisError(
        f"{message} DROP TABLE {name} forgets all order values: then late records may bring "
        f"deleted rows back. If the first AUTO CDC failed, there are none yet. To keep them, "
        f"rename {name}, run AUTO CDC without records, and insert the renamed table's rows into "
        f"the new {name}.",
        planned.text, place.start, place.end,
        condition=f"AUTOCDC_INVALID_STATE.{what}", sqlstate="55000",
    )  # fmt: skip
