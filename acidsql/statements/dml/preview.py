"""EXPLAIN CHANGES: the changes that a statement would make, without making them.

The events come from the query whose rows the statement would write: insert, delete and update
events. Each event is shown with its row. A delete event has only a row id, no values, so the events
are joined with the target's rows.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.cdc import is_cdc_table
from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import ROW__ID, ROW__ID_TYPE, virtual_columns
from acidsql.errors import UnsupportedError
from acidsql.plan.cdc.queries import PreparedCdc
from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.rows.event_query import EventQuery, StaticPartition
from acidsql.plan.standins.query import StandIn, view_name
from acidsql.plan.values.checks import new_values, partition_value
from acidsql.statements.context.family import Context
from acidsql.statements.context.statement_text import StatementText, query_rows
from acidsql.statements.queries.events import Views
from acidsql.statements.queries.filler import Filler
from acidsql.statements.queries.table_rows import TableRows
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote, shown_type
from acidsql.storage.reading.change_columns import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    POSTIMAGE,
    PREIMAGE,
    refuse_reserved_names,
)
from acidsql.storage.reading.scan_columns import row_id_sql
from acidsql.storage.spark.char_columns import mark_char_columns
from acidsql.storage.spark.session import jvm
from acidsql.txn import Snapshot

_OLD = f"{ew.PREFIX}old_"
_CHANGE = f"{ew.PREFIX}change"


class Previewer:
    """Shows what statements of one session would change."""

    def __init__(self, context: Context, filler: Filler) -> None:
        self._spark, self._transactions = context.spark, context.transactions
        self._filler, self._tables = filler, TableRows(context)

    def changes(self, prepared: PreparedStatement, statement_text: StatementText) -> DataFrame:
        """Return the changes that a statement would make, lazily, one row for each image: the
        table's columns, ``_change_type`` and ``row__id`` (NULL for a row that is new, and for all
        rows of an insert-only table). Nothing is locked or written.

        AUTO CDC shows changes of its target, not of the tables beside the target.

        Raises:
            UnsupportedError: The statement changes several tables, or the table has a column with
                the name of a column of the changes.
        """
        if isinstance(prepared, PreparedCdc):
            return self._auto_cdc_changes(prepared, statement_text)
        shown_queries = [query for query in prepared.queries if not is_cdc_table(query.table)]
        shown_queries = shown_queries or list(prepared.queries)
        table, *other_tables = {query.table.name: query.table for query in shown_queries}.values()
        if other_tables:
            raise UnsupportedError(
                "The statement changes several tables, which have no columns in common. "
                "acid.changes(…) shows what it changed, after it has run in a transaction.",
                condition="UNSUPPORTED_FEATURE.CHANGES",
            )
        refuse_reserved_names(table)
        snapshot = self._transactions.read_snapshot([*prepared.reads, table.name])
        views = self._filler.views(prepared, snapshot, statement_text)
        if (source := prepared.source) is not None:
            views[source.view] = query_rows(self._spark, source.query, views, statement_text)
        current_table = prepared.table_before or table
        changes_by_query = [
            self._changes(query, views, snapshot, statement_text, current_table)
            for query in shown_queries
        ]
        return mark_char_columns(reduce(DataFrame.unionAll, changes_by_query), table)

    def _auto_cdc_changes(self, prepared: PreparedCdc, statement_text: StatementText) -> DataFrame:
        """Return the changes that AUTO CDC would make in its target, lazily. One query folds the
        records, decides about them and makes the changes, without temporary files between."""
        events, table = prepared.queries[0], prepared.queries[0].table
        refuse_reserved_names(table)
        # Only the records tell whether one of them truncates. If none does, both queries decide
        # alike.
        decision = prepared.decide_without_files(
            prepared.decisions.truncate or prepared.decisions.join
        )
        snapshot = self._transactions.read_snapshot([*decision.reads, table.name])
        views = self._filler.views(decision, snapshot, statement_text)
        views[prepared.decision_view] = self._filler.events(
            decision.queries[0], views, statement_text
        ).rows
        return mark_char_columns(
            self._changes(events, views, snapshot, statement_text, table), table
        )

    def _changes(
        self,
        query: EventQuery,
        views: Views,
        snapshot: Snapshot,
        statement_text: StatementText,
        current_table: Table,
    ) -> DataFrame:
        """Return the changes that one query would make, lazily: inserted rows, the images of
        changed rows, or, of an INSERT OVERWRITE, the rows that it deletes and inserts. The columns
        are those of ``changes``. ``current_table``: the table without the columns that the
        statement adds."""
        events = self._filler.events(query, views, statement_text).rows
        if query.mode is ew.WriteMode.OVERWRITE:
            deleted_rows = self._overwritten_rows(
                query, events, snapshot, statement_text, current_table
            )
            return deleted_rows.unionAll(_inserted_rows(events, query.table))
        if not query.mode.has_deletes:
            return _inserted_rows(events, query.table)
        if views.target is not None:
            events = _join_old_rows(events, views.target, query.table)
        return _changed_rows(events, query.table, has_old=views.target is not None)

    def _overwritten_rows(
        self,
        query: EventQuery,
        events: DataFrame,
        snapshot: Snapshot,
        statement_text: StatementText,
        current_table: Table,
    ) -> DataFrame:
        """Return, as deletions, the rows that an INSERT OVERWRITE would delete from the table as it
        is now, lazily: all rows or, of a partitioned table, those of the partitions that get rows
        or that the statement names."""
        table = query.table
        live_rows = self._tables.rows(
            StandIn(view_name(), current_table, virtual_columns(current_table, {ROW__ID})), snapshot
        )
        if table.partition_columns:
            partition_values = events
            values = [f"{ew.VALUE}{ordinal}" for ordinal in range(len(table.partition_columns))]
            if isinstance(query.partitions, StaticPartition):
                static_values = query.partitions.values
                static_row = query_rows(self._spark, static_values, {}, statement_text)
                partition_values = static_row.toDF(*values)
            is_same_partition = " AND ".join(
                f"{quote(column.name)} <=> {partition_value(column, ordinal)}"
                for ordinal, column in enumerate(table.partition_columns)
            )
            live_rows = live_rows.join(
                partition_values.selectExpr(*values).distinct(),
                F.expr(is_same_partition),
                "left_semi",
            )
        row_id = ROW__ID if table.has_row_ids else "NULL"
        return jvm.select(
            live_rows,
            *(f"{sql} AS {quote(name)}" for name, sql in _old_values(live_rows, table).items()),
            f"'{DELETE}' AS {CHANGE_TYPE}",
            f"{_ROW_ID_OF.format(row_id)} AS {ROW__ID}",
        )


_ROW_ID_OF = f"CAST({{}} AS {ROW__ID_TYPE})"


def _old_values(rows: DataFrame, table: Table) -> dict[str, str]:
    """Return, for each column of the table by its name, SQL of the value in ``rows``, cast to the
    type that users see. SQL of a NULL stands for a column that ``rows`` lacks, because the
    statement adds the column."""
    existing_columns = set(rows.columns)
    return {
        column.name: f"CAST({quote(column.name) if column.name in existing_columns else 'NULL'} AS "
        f"{shown_type(column.type)})"
        for column in table.all_columns
    }


def _join_old_rows(events: DataFrame, target: DataFrame, table: Table) -> DataFrame:
    """Return the events, lazily, each with the values and ``KEYS`` of the target row that has its
    row id and partition, in further columns whose names have the prefix ``_OLD``. They are NULL for
    an event without an old row."""
    values = {key: key for key in ew.KEYS} | _old_values(target, table)
    old_rows = jvm.select(
        target, *(f"{sql} AS {quote(_OLD + name)}" for name, sql in values.items())
    )
    is_same_row = " AND ".join(f"{key} = {_OLD}{key}" for key in ew.KEYS)
    return events.join(old_rows, F.expr(is_same_row), "left")


def _changed_rows(events: DataFrame, table: Table, *, has_old: bool) -> DataFrame:
    """Return the events as changes, lazily: an insert or delete event is one row, an update event
    two, the images before and after. The columns are the table's, ``_change_type`` and ``row__id``,
    which is NULL for new rows.

    ``has_old``: whether the events have the columns of ``_join_old_rows``; if not, old rows are
    shown with the values of the events' own columns. If the events lack these, too, as those of a
    DELETE may, the values are NULL.
    """
    deletes, inserts = f"{ew.ACTION} & {ew.DELETE} <> 0", f"{ew.ACTION} & {ew.INSERT} <> 0"
    has_new = all(column.name in events.columns for column in table.columns)
    new_columns = (
        new_values(table) if has_new else [_null(column.type) for column in table.all_columns]
    )
    old_columns = (
        [quote(_OLD + column.name) for column in table.all_columns] if has_old else new_columns
    )
    row_id = _ROW_ID_OF.format(row_id_sql())
    old_row = _change_struct(table, old_columns, f"IF({inserts}, '{PREIMAGE}', '{DELETE}')", row_id)
    new_change_type = f"IF({deletes}, '{POSTIMAGE}', '{INSERT}')"
    new_row = _change_struct(table, new_columns, new_change_type, _ROW_ID_OF.format("NULL"))
    changes = f"array(IF({deletes}, {old_row}, NULL), IF({inserts}, {new_row}, NULL))"
    rows = jvm.select(events, f"explode({changes}) AS {_CHANGE}").where(f"{_CHANGE} IS NOT NULL")
    return jvm.select(rows, f"{_CHANGE}.*")


def _change_struct(table: Table, values: list[str], change: str, row_id: str) -> str:
    """Return SQL of a struct with the fields of one change: the table's columns, each cast to the
    type that users see, ``_change_type`` and ``row__id``. The arguments ``values`` (in the order of
    the table's columns), ``change`` and ``row_id`` are SQL, too."""
    names = [column.name for column in table.all_columns]
    pairs = [
        f"CAST({value} AS {shown_type(column.type)}) AS {quote(name)}"
        for value, column, name in zip(values, table.all_columns, names, strict=True)
    ]
    return f"struct({', '.join([*pairs, f'{change} AS {CHANGE_TYPE}', f'{row_id} AS {ROW__ID}'])})"


def _inserted_rows(events: DataFrame, table: Table) -> DataFrame:
    """Return the events as changes that insert rows, lazily: the table's columns, ``_change_type``
    and a NULL as ``row__id``."""
    pairs = zip(new_values(table), table.all_columns, strict=True)
    return jvm.select(
        events,
        *(f"{value} AS {quote(column.name)}" for value, column in pairs),
        f"'{INSERT}' AS {CHANGE_TYPE}",
        f"{_ROW_ID_OF.format('NULL')} AS {ROW__ID}",
    )


def _null(hive_type: str) -> str:
    return f"CAST(NULL AS {shown_type(hive_type)})"
