"""EXPLAIN CHANGES: the changes that a statement would make, without making them.

The statement's events are the query that the statement would write. Each event is shown with its
row. A delete event has no values, so it is joined with the rows of the target.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.cdc import is_beside
from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import ROW__ID, ROW__ID_TYPE, virtual_columns
from acidsql.errors import UnsupportedError
from acidsql.plan import lower
from acidsql.plan.cdc import PreparedCdc
from acidsql.plan.checks import new_values, partition_value
from acidsql.plan.event_query import EventQuery
from acidsql.plan.query import StandIn, view_name
from acidsql.plan.rewrite import Prepared
from acidsql.statements.events import Views
from acidsql.statements.family import Context
from acidsql.statements.reader import Reader
from acidsql.statements.statement_text import StatementText
from acidsql.statements.table_rows import TableRows
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote, shown_type
from acidsql.storage.reading.change_columns import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    POSTIMAGE,
    PREIMAGE,
    need_names,
)
from acidsql.storage.reading.scan_columns import row_id_sql
from acidsql.storage.spark import jvm
from acidsql.storage.spark.char_columns import as_char
from acidsql.txn import Snapshot

_OLD = f"{ew.PREFIX}old_"
_CHANGE = f"{ew.PREFIX}change"


class Previewer:
    """Shows what statements of one session would change."""

    def __init__(self, context: Context, reader: Reader) -> None:
        self._spark, self._transactions = context.spark, context.transactions
        self._reader, self._tables = reader, TableRows(context)

    def changes(self, prepared: Prepared, said: StatementText) -> DataFrame:
        """The changes, lazily: the table's columns, ``_change_type``, ``row__id``.

        A target of AUTO CDC shows its own rows, not those of the tables beside it.

        Raises:
            UnsupportedError: The statement changes several tables.
        """
        if isinstance(prepared, PreparedCdc):
            return self._of_records(prepared, said)
        shown = [query for query in prepared.queries if not is_beside(query.table)]
        shown = shown or list(prepared.queries)
        table, *others = {query.table.name: query.table for query in shown}.values()
        if others:
            raise UnsupportedError(
                "The statement changes several tables, which have no columns in common. "
                "acid.changes(…) shows what it changed, after it has run in a transaction.",
                condition="UNSUPPORTED_FEATURE.CHANGES",
            )
        need_names(table)
        snapshot = self._transactions.read_snapshot([*prepared.reads, table.name])
        views = self._reader.views(prepared, snapshot, said)
        if (source := prepared.source) is not None:
            views[source.view] = lower.frame(self._spark, source.query, views, said.args, said.time)
        before = prepared.before or table
        parts = [self._changes(query, views, snapshot, said, before) for query in shown]
        return as_char(reduce(DataFrame.unionAll, parts), table)

    def _of_records(self, prepared: PreparedCdc, said: StatementText) -> DataFrame:
        """What AUTO CDC would change in its target. Its fold and decision stay queries."""
        events, table = prepared.queries[0], prepared.queries[0].table
        need_names(table)
        # Only the records tell whether one truncates. If none does, both ways decide alike.
        way = prepared.decide_without_files(prepared.decisions.truncate or prepared.decisions.join)
        snapshot = self._transactions.read_snapshot([*way.reads, table.name])
        views = self._reader.views(way, snapshot, said)
        views[prepared.decision_view] = self._reader.events(way.queries[0], views, said).rows
        return as_char(self._changes(events, views, snapshot, said, table), table)

    def _changes(
        self,
        query: EventQuery,
        views: Views,
        snapshot: Snapshot,
        said: StatementText,
        before: Table,
    ) -> DataFrame:
        events = self._reader.events(query, views, said).rows
        if query.overwrite:
            deleted = self._overwritten(query, events, snapshot, said, before)
            return deleted.unionAll(_added(events, query.table))
        if not query.deletes:
            return _added(events, query.table)
        if views.target is not None:
            events = _with_old(events, views.target, query.table)
        return _changed(events, query.table, has_old=views.target is not None)

    def _overwritten(
        self,
        query: EventQuery,
        events: DataFrame,
        snapshot: Snapshot,
        said: StatementText,
        before: Table,
    ) -> DataFrame:
        """The rows that an INSERT OVERWRITE would delete. ``before``: the table as it is now."""
        table = query.table
        live = self._tables.rows(
            StandIn(view_name(), before, virtual_columns(before, {ROW__ID})), snapshot
        )
        if table.partition_columns:
            replaced = events
            values = [f"{ew.VALUE}{i}" for i in range(len(table.partition_columns))]
            if query.static_partition is not None:
                named = lower.frame(self._spark, query.static_partition, {}, said.args, said.time)
                replaced = named.toDF(*values)
            same = " AND ".join(
                f"{quote(column.name)} <=> {partition_value(column, i)}"
                for i, column in enumerate(table.partition_columns)
            )
            live = live.join(replaced.selectExpr(*values).distinct(), F.expr(same), "left_semi")
        row_id = ROW__ID if table.has_row_ids else "NULL"
        return jvm.select(
            live,
            *(f"{sql} AS {quote(name)}" for name, sql in _old_values(live, table).items()),
            f"'{DELETE}' AS {CHANGE_TYPE}",
            f"{_ROW_ID_OF.format(row_id)} AS {ROW__ID}",
        )


_ROW_ID_OF = f"CAST({{}} AS {ROW__ID_TYPE})"


def _old_values(rows: DataFrame, table: Table) -> dict[str, str]:
    """SQL of the columns of an old row, which has none of the columns that a statement adds."""
    known = set(rows.columns)
    return {
        column.name: f"CAST({quote(column.name) if column.name in known else 'NULL'} AS "
        f"{shown_type(column.type)})"
        for column in table.all_columns
    }


def _with_old(events: DataFrame, target: DataFrame, table: Table) -> DataFrame:
    """The events, with the row that was read from the target in columns of their own."""
    values = {key: key for key in ew.KEYS} | _old_values(target, table)
    old = jvm.select(target, *(f"{sql} AS {quote(_OLD + name)}" for name, sql in values.items()))
    same = " AND ".join(f"{key} = {_OLD}{key}" for key in ew.KEYS)
    return events.join(old, F.expr(same), "left")


def _changed(events: DataFrame, table: Table, *, has_old: bool) -> DataFrame:
    """One row for each change: an update gives two."""
    deletes, inserts = f"{ew.ACTION} & {ew.DELETE} <> 0", f"{ew.ACTION} & {ew.INSERT} <> 0"
    has_new = all(column.name in events.columns for column in table.columns)
    new = new_values(table) if has_new else [_null(column.type) for column in table.all_columns]
    old = [quote(_OLD + column.name) for column in table.all_columns] if has_old else new
    key = _ROW_ID_OF.format(row_id_sql())
    one = _struct(table, old, f"IF({inserts}, '{PREIMAGE}', '{DELETE}')", key)
    kind = f"IF({deletes}, '{POSTIMAGE}', '{INSERT}')"
    other = _struct(table, new, kind, _ROW_ID_OF.format("NULL"))
    both = f"array(IF({deletes}, {one}, NULL), IF({inserts}, {other}, NULL))"
    rows = jvm.select(events, f"explode({both}) AS {_CHANGE}").where(f"{_CHANGE} IS NOT NULL")
    return jvm.select(rows, f"{_CHANGE}.*")


def _struct(table: Table, values: list[str], kind: str, row_id: str) -> str:
    names = [column.name for column in table.all_columns]
    pairs = [
        f"CAST({value} AS {shown_type(column.type)}) AS {quote(name)}"
        for value, column, name in zip(values, table.all_columns, names, strict=True)
    ]
    return f"struct({', '.join([*pairs, f'{kind} AS {CHANGE_TYPE}', f'{row_id} AS {ROW__ID}'])})"


def _added(events: DataFrame, table: Table) -> DataFrame:
    pairs = zip(new_values(table), table.all_columns, strict=True)
    return jvm.select(
        events,
        *(f"{value} AS {quote(column.name)}" for value, column in pairs),
        f"'{INSERT}' AS {CHANGE_TYPE}",
        f"{_ROW_ID_OF.format('NULL')} AS {ROW__ID}",
    )


def _null(hive_type: str) -> str:
    return f"CAST(NULL AS {shown_type(hive_type)})"
