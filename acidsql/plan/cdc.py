"""Rewrites AUTO CDC (SCD type 1) to four queries.

::

    source ── fold: one row for each key, its newest record ──► temporary files
    fold   ── decide: join with target and state table      ──► temporary files
                                    ├── events of the target
                                    └── events of the state table

A record changes a row only if its order value is above all that the key had before. The target
tells the order value of a live row, if it has columns that keep it. Otherwise, and for deleted
keys, the state table does (``acid.cdc``). The decision is made once, so both tables always agree.
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
from acidsql.plan.cdc_decision import ROW, Act, Sides, decide, state_columns
from acidsql.plan.cdc_fold import Fold, fold
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCdc(Prepared):
    """A prepared AUTO CDC. ``queries`` are the events of the target and of the state table.

    Attributes:
        rules: What the statement says.
        sequence: The type of order values.
        state: The state table.
        is_new: The state table does not exist yet.
        fold: The query of ``cdc_fold``, and the stand-ins that it reads.
        files: The temporary view, over the files of the folded records, that ``decide`` reads.
        decide: The query of ``cdc_decision``, and the stand-ins that it reads.
        decided: The view over the decisions that ``queries`` read.
    """

    rules: Rules
    sequence: HiveType
    state: Table
    is_new: bool
    fold: Prepared
    files: str
    decide: Prepared
    decided: str


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
    state, is_new = _state(planned, statement, rules, found, resolve)
    of_state = StandIn(view_name(), state, row_id=True)
    sides = Sides(view_name(), view_name(), of_target.view, of_state.view, state)
    decided = view_name()
    return PreparedCdc(
        (_of_target(planned, decided), _of_state(planned, state, rules, decided)),
        (*sources, of_target, of_state),
        rules=rules,
        sequence=found.sequence,
        state=state,
        is_new=is_new,
        fold=Prepared((EventQuery(target, found.query),), sources),
        files=sides.files,
        decide=Prepared((decide(rules, planned, sides),), (of_target, of_state)),
        decided=decided,
    )


def _source(statement: AutoCdc, blank: Text, view: str | None) -> Text:
    text = blank.new().raw("(SELECT * FROM ")
    text = text.raw(view) if view is not None else text.verbatim(statement.source)
    alias = "" if statement.source_alias is None else f" AS {quote(statement.source_alias)}"
    return text.raw(f"\n){alias}")


# ── the events ───────────────────────────────────────────────────────────────────────────────

# The events of each kind of act. A row that moves is deleted here and inserted there.
_EVENTS = {
    Act.UPDATE: (ew.INSERT | ew.DELETE,),
    Act.MOVE: (ew.DELETE, ew.INSERT),
    Act.INSERT: (ew.INSERT,),
    Act.DELETE: (ew.DELETE,),
}


def _of_target(planned: Planned, decided: str) -> EventQuery:
    table = planned.table
    numbers = {column.name: f"c{i}" for i, column in enumerate(table.all_columns)}
    columns = [
        *(_key(name, name) for name in ew.KEYS),
        ew.ACTION,
        *(f"{numbers[column.name]} AS {quote(column.name)}" for column in table.columns),
        *(
            partition_text(numbers[column.name], column, ordinal)
            for ordinal, column in enumerate(table.partition_columns)
        ),
    ]
    return _events(planned, table, decided, "act", columns)


def _of_state(planned: Planned, state: Table, rules: Rules, decided: str) -> EventQuery:
    sequence, deleted, at = state_columns(state)
    ids = {ew.WRITE_ID: "writeid", ew.BUCKET_PROPERTY: "bucketid", ew.ROW_ID: "rowid"}
    numbers = {key.name: f"k{i}" for i, key in enumerate(rules.keys)}
    now = f"TIMESTAMP_NTZ '{datetime.now(UTC):%Y-%m-%d %H:%M:%S}'"
    columns = [
        *(_key(f"{ROW}.{field}", name) for name, field in ids.items()),
        _key("''", ew.PARTITION),
        ew.ACTION,
        *(f"{numbers[c.name]} AS {quote(c.name)}" for c in state.columns[:-3]),
        f"s AS {quote(sequence)}",
        f"d AS {quote(deleted)}",
        f"{now} AS {quote(at)}",
    ]
    return _events(planned, state, decided, "note", columns)


def _key(sql: str, name: str) -> str:
    """A part of the old row's identity. A new row has none."""
    return f"CASE WHEN {ew.ACTION} <> {ew.INSERT} THEN {sql} END AS {name}"


def _events(
    planned: Planned, table: Table, decided: str, act: str, columns: list[str]
) -> EventQuery:
    kinds = " ".join(
        f"WHEN {act.value} THEN array({', '.join(map(str, events))})"
        for act, events in _EVENTS.items()
    )
    query = planned.new().raw("SELECT\n").commas(columns)
    query.raw(f"\nFROM (SELECT *, explode(CASE {act} {kinds} END) AS {ew.ACTION} FROM {decided})")
    return EventQuery(table, query, deletes=True, merge=True, maybe_few=True, if_small=True)


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
    if not cdc.is_state(found):
        raise _drift(planned, statement, "NAME_TAKEN", f"{name} is another table.")
    facts = (
        ("KEYS_DRIFT", _types(found, -3), _types(wanted, -3), "keys"),
        ("SEQUENCE_DRIFT", found.columns[-3].type, wanted.columns[-3].type, "order values of type"),
        ("SEQUENCE_DRIFT", found.properties[cdc.ORDER], wanted.properties[cdc.ORDER],
         "order values in the columns"),
    )  # fmt: skip
    for condition, before, now, what in facts:
        if before != now:
            message = f"Earlier records of {planned.table.name} had {what} {before or 'none'}, "
            raise _drift(planned, statement, condition, f"{message}these have {now or 'none'}.")
    return found, False


def _types(state: Table, end: int) -> str:
    return ", ".join(sorted(f"{column.name} {column.type}" for column in state.columns[:end]))


def _new_state(planned: Planned, statement: AutoCdc, rules: Rules, folded: Fold) -> Table:
    target = planned.table
    name = cdc.state_name(target.name)
    if not is_name(name.name):
        raise UnsupportedError(
            f"The name of {target.name} is too long: AUTO CDC needs a table {name} beside it.",
            planned.text, statement.target.span.start, statement.target.span.end,
        )  # fmt: skip
    keys = tuple(Column(key.name, key.type) for key in rules.keys)
    taken = {key.name for key in keys}
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
        ),
        bucket_columns=buckets,
        num_buckets=max(target.num_buckets, _BUCKETS) if buckets else -1,
        properties={
            TRANSACTIONAL: "true",
            TRANSACTIONAL_PROPERTIES: FULL_ACID,
            BUCKETING_VERSION: "2",
            cdc.ORDER: ", ".join(quote(column.name) for column in rules.order),
        },
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
        f"deleted rows back. To keep the order values, rename {name}, run AUTO CDC without "
        f"records, and insert the renamed table's rows into the new {name}.",
        planned.text, place.start, place.end,
        condition=f"AUTOCDC_INVALID_STATE.{what}", sqlstate="55000",
    )  # fmt: skip
