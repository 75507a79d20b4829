"""The state table of AUTO CDC: checks the existing table, or plans the table to create.

Deletes that are older than ``acidsql.cdc.tombstone.retention`` of the target are forgotten. The
floor, which is the order value of the newest truncation, is kept. With SCD type 2 the records that
versions consist of are kept, too, because a late record may split a version. The __END_AT of a
version tells the delete that ended it.

A bond is a text that a target and a table beside it both have in their properties. It tells that
the two belong together (``acid.cdc``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from acidsql.acid import cdc
from acidsql.acid.paths import is_name
from acidsql.acid.properties import property_value
from acidsql.acid.table import (
    BUCKETING_VERSION,
    FULL_ACID,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    Column,
    Table,
    TableName,
)
from acidsql.acid.values.types import parse_type
from acidsql.acid.virtual_columns import ROW__ID, ROW__ID_TYPE
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.plan.cdc.fold import CdcFold
from acidsql.plan.cdc.rules import CdcRules, names_in
from acidsql.plan.rows.event_query import RewriteContext
from acidsql.plan.standins.query import Resolve
from acidsql.settings.kinds import duration_setting
from acidsql.sql.parsed.statements import AutoCdc
from acidsql.sql.text.tokens import Span
from acidsql.storage.columns import quote, quoted_path, shown_type

# The default is an example only: without the property no delete is forgotten.
_RETENTION = duration_setting(
    cdc.TOMBSTONE_RETENTION, "30d", "How long deletes are kept.", unit="h", least_ms=1000
)
_BUCKETS = 4  # of the state table of a target without buckets


def find_or_plan_state(
    context: RewriteContext, statement: AutoCdc, rules: CdcRules, folded: CdcFold, resolve: Resolve
) -> tuple[Table, bool]:
    """Return the state table of the target after a check that it fits this statement, or the
    definition of a new one if AUTO CDC has made none yet. Nothing is created.

    Returns:
        The state table, and whether it must still be created.

    Raises:
        AnalysisError: AUTOCDC_INVALID_STATE: a table that is no state table has the name; AUTO CDC
            made one that is gone; the state table belongs to another target; or its keys, order
            values, SCD type, or columns of values (SCD type 2) differ from the statement's.
        UnsupportedError: The state table's name would be too long.
    """
    name = cdc.state_name(context.table.name)
    new_state = _state_definition(context, statement, rules, folded)
    state = resolve((name.database, name.name))
    if state is not None and not is_state(state):
        raise _drift_error(
            context, statement, "NAME_TAKEN", f"{name} is no state table of AUTO CDC."
        )
    need_own_table(context.table, name, state, context.text, statement.target.span)
    if state is None:
        return new_state, True
    order = "order values of type"
    comparisons = [
        ("SCD_TYPE_DRIFT", state.properties.get(cdc.SCD_TYPE, "1"), str(statement.scd_type),
         "SCD type"),
        ("KEYS_DRIFT", _types(cdc.keys_of(state)), _types(cdc.keys_of(new_state)), "keys"),
        ("SEQUENCE_DRIFT", *(cdc.state_columns(table)[0].type for table in (state, new_state)),
         order),
        ("SEQUENCE_DRIFT", state.properties[cdc.ORDER], new_state.properties[cdc.ORDER],
         "order values in the columns"),
    ]  # fmt: skip
    for condition, earlier_value, new_value, subject in comparisons:
        if earlier_value != new_value:
            message = (
                f"Earlier records of {context.table.name} had {subject} {earlier_value or 'none'}, "
            )
            raise _drift_error(
                context, statement, condition, f"{message}these have {new_value or 'none'}."
            )
    _check_value_columns(context, statement, state, new_state)
    return state, False


def need_own_table(
    target: Table,
    name: TableName,
    table: Table | None,
    text: str | None = None,
    place: Span | None = None,
) -> None:
    """Raise AnalysisError if a table of AUTO CDC's beside a target is missing, though the target
    has a bond to it, or is there, but by its bond belongs to another target, or to an earlier one
    of this name. A missing one that was never made passes.

    Args:
        target: The target.
        name: The name of the table beside the target.
        table: The table of this name; None: there is none.
        text: The statement; None: there is none.
        place: The target's place in the statement.

    Raises:
        AnalysisError: AUTOCDC_INVALID_STATE.MISSING or OF_ANOTHER_TABLE.
    """
    if cdc.bond_of(target, name) is None if table is None else cdc.belongs_to(table, target):
        return
    if table is None:
        reason = "MISSING"
        message = (
            f"{name}, in which AUTO CDC keeps what {target.name} cannot tell, is not there. Others "
            f"have dropped or renamed it, or have renamed {target.name}. If it has another name "
            f"now (SHOW TABLES '*acidsql_*'), ALTER TABLE … RENAME TO {name} brings it back. If it "
            "is lost, late records may bring deleted rows back, and records that waited are "
            f"missing: ALTER TABLE {target.name} UNSET TBLPROPERTIES IF EXISTS "
            f"('{cdc.bond_key(name)}') lets AUTO CDC begin anew nevertheless."
        )
    else:
        reason = "OF_ANOTHER_TABLE"
        message = (
            f"{name} does not belong to {target.name}, but to a table that others have dropped or "
            f"renamed, or it is older than the one that AUTO CDC has used last. If no table needs "
            f"it, DROP TABLE {name}. If its table has another name now, rename both alike."
        )
    at = (0, 0) if place is None else (place.start, place.end)
    condition = f"AUTOCDC_INVALID_STATE.{reason}"
    raise AnalysisError(message, text, *at, condition=condition, sqlstate="55000")


def is_state(state: Table) -> bool:
    """Whether a table is a state table of AUTO CDC's, by its name and a property, and still has the
    columns of one (keys, the order value, a BOOLEAN, a TIMESTAMP): others may have changed it."""
    if not cdc.is_state(state):
        return False
    try:
        _, deleted, at = cdc.state_columns(state)
    except ValueError:
        return False
    return bool(cdc.keys_of(state)) and (deleted.type, at.type) == ("boolean", "timestamp")


def tombstone_retention(properties: Mapping[str, str]) -> int | None:
    """Return how long a target's state table keeps deletes, in ms; None: for ever. Raises
    SettingError."""
    text = declared_retention(properties)
    return None if text is None else _RETENTION.read(text)


def declared_retention(properties: Mapping[str, str]) -> str | None:
    """Return the target's property about how long deletes are kept, as it was declared; None if it
    was not. Of several spellings, the one in small letters counts."""
    return property_value(properties, _RETENTION.name)


def now_sql(ago_ms: int = 0) -> str:
    """Return SQL of the time in UTC, or of the time ``ago_ms`` earlier, but not before 1970, by
    this machine's clock now: a TIMESTAMP_NTZ literal in whole seconds, for the column ``at``."""
    now = datetime.now(UTC)
    moment = now - timedelta(milliseconds=min(ago_ms, int(now.timestamp() * 1000)))  # from 1970 on
    return f"TIMESTAMP_NTZ '{moment:%Y-%m-%d %H:%M:%S}'"


def forget_statement(state: Table, kept_ms: int) -> str:
    """Return the SQL of a DELETE that makes a state table forget the deleted keys that were noted
    longer than ``kept_ms`` ago, by this machine's clock. The floor stays."""
    _, deleted, at = (quote(column.name) for column in cdc.state_columns(state))
    key = quote(cdc.keys_of(state)[0].name)
    return (
        f"DELETE FROM {quoted_path((state.name.database, state.name.name))}\n"
        f"WHERE {deleted} AND {key} IS NOT NULL AND {at} < {now_sql(kept_ms)}"
    )


def _check_value_columns(
    context: RewriteContext, statement: AutoCdc, state: Table, new_state: Table
) -> None:
    """Raise AnalysisError COLUMNS_DRIFT if the columns that the records set (``new_state``) differ
    in name or type from those in the state table, which keeps earlier records (SCD type 2). Their
    order does not matter. State tables of SCD type 1 have none, so they pass."""

    def drift_error(message: str) -> AnalysisError:
        """Return the error COLUMNS_DRIFT; the message is the end of a sentence."""
        return AnalysisError(
            f"{state.name} keeps earlier records, which had {message}",
            context.text, statement.target.span.start, statement.target.span.end,
            condition="AUTOCDC_INVALID_STATE.COLUMNS_DRIFT", sqlstate="55000",
        )  # fmt: skip

    state_columns = {column.name: column for column in cdc.values_of(state)}
    for column in cdc.values_of(new_state):
        old_column = state_columns.pop(column.name, None)
        if old_column is None or old_column.type != column.type:
            name, alter = quote(column.name), f"ALTER TABLE {state.name}"
            # The names of a struct's fields stay as they are.
            is_nested = parse_type(column.type).children
            definition = f"{name} {column.type if is_nested else column.type.upper()}"
            remedy = f"CHANGE COLUMN {name} {definition}."
            if old_column is None:
                remedy = (
                    f"ADD COLUMNS ({definition}); or, if it was renamed, {alter} CHANGE COLUMN …."
                )
            raise drift_error(
                f"no column {definition}. Give the table this column first: {alter} {remedy}"
            )
    for name in map(quote, state_columns):
        # The versions that a late record splits would lose the column's values.
        raise drift_error(f"a column {name}. Give these records one, too, perhaps NULL AS {name}.")


def _types(columns: tuple[Column, ...]) -> str:
    """Return the names and types of columns as one text, in the order of the names, for
    comparison."""
    return ", ".join(sorted(f"{column.name} {column.type}" for column in columns))


def _state_definition(
    context: RewriteContext, statement: AutoCdc, rules: CdcRules, folded: CdcFold
) -> Table:
    """Return the definition of the state table that this statement needs; nothing is created. Its
    columns are the keys, the order value, ``deleted``, ``at``, and with SCD type 2 the values. Its
    buckets are by the keys, except BINARY ones: as many as the target's, but at least 4; there are
    none if all keys are BINARY. Raise UnsupportedError if its name would be too long."""
    target = context.table
    name = cdc.state_name(target.name)
    if not is_name(name.name):
        raise UnsupportedError(
            f"The name of {target.name} is too long: AUTO CDC needs a table {name} beside it.",
            context.text, statement.target.span.start, statement.target.span.end,
        )  # fmt: skip
    keys = tuple(Column(key.name, key.type) for key in rules.keys)
    values: tuple[Column, ...] = ()
    properties = {
        TRANSACTIONAL: "true",
        TRANSACTIONAL_PROPERTIES: FULL_ACID,
        BUCKETING_VERSION: "2",
        cdc.ORDER: ", ".join(quote(column.name) for column in rules.order),
    }
    if rules.tracked_columns is not None:
        values = tuple(Column(column.name, column.type) for column in rules.columns)
        properties |= {cdc.SCD_TYPE: "2", cdc.NUM_KEYS: str(len(keys))}
    taken_names = {column.name for column in (*keys, *values)}
    sequence, deleted, at = (
        _free_name(name_base, taken_names) for name_base in ("sequence", "deleted", "at")
    )
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


def no_rows(state: Table) -> str:
    """Return SQL of a relation without rows, with a state table's columns and ``row__id``, which
    takes the place of a state table that does not exist yet."""
    types = {column.name: shown_type(column.type) for column in state.columns}
    types[ROW__ID] = ROW__ID_TYPE
    nulls = (f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in types.items())
    return f"(SELECT {', '.join(nulls)} WHERE false)"


def with_renamed_columns(state: Table, names: Mapping[str, str]) -> Table:
    """Return a state table's definition with its columns renamed like its target's, also in
    CLUSTERED BY and in the property of the order's columns. Its own columns (order value, deleted,
    at) get other names if a new name is theirs. Nothing is altered.

    ``names``: old name → new name.
    """

    def renamed(columns: Iterable[Column]) -> tuple[Column, ...]:
        return tuple(replace(c, name=names.get(c.name, c.name)) for c in columns)

    keys, values = renamed(cdc.keys_of(state)), renamed(cdc.values_of(state))
    taken_names = {column.name for column in (*keys, *values)}
    state_columns: list[Column] = []
    for column in cdc.state_columns(state):
        state_columns.append(replace(column, name=_free_name(column.name, taken_names)))
        taken_names.add(state_columns[-1].name)
    by_position = zip(state.columns, (*keys, *state_columns, *values), strict=True)
    new_names = {old.name: new.name for old, new in by_position}
    order = names_in(text) if (text := state.properties[cdc.ORDER]) else ()
    order_list = ", ".join(quote(names.get(name, name)) for name in order)
    return replace(
        state,
        columns=(*keys, *state_columns, *values),
        bucket_columns=tuple(new_names[name] for name in state.bucket_columns),
        properties={**state.properties, cdc.ORDER: order_list},
    )


def _free_name(name: str, taken_names: set[str]) -> str:
    """Return the name, with as many underscores behind it as it needs to differ from all taken
    names."""
    while name in taken_names:
        name += "_"
    return name


def _drift_error(
    context: RewriteContext, statement: AutoCdc, reason: str, message: str
) -> AnalysisError:
    """Return the error AUTOCDC_INVALID_STATE.``reason``: the state table does not fit this
    statement. The message ends with how to begin anew."""
    name, place = cdc.state_name(context.table.name), statement.target.span
    return AnalysisError(
        f"{message} DROP TABLE {name} forgets all order values: then late records may bring "
        f"deleted rows back. If the first AUTO CDC failed, there are none yet. To keep them, "
        f"rename {name}, run AUTO CDC without records, and insert the renamed table's rows into "
        f"the new {name}.",
        context.text, place.start, place.end,
        condition=f"AUTOCDC_INVALID_STATE.{reason}", sqlstate="55000",
    )  # fmt: skip
