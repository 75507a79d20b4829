"""Fills the stand-ins of statements with the rows of a snapshot, and queries the filled views.

A stand-in is a temporary view in the place of a table, a view or a call of ``table_changes`` in a
statement's text. A demand is which of its rows and columns the statement needs; others may be left
out. The events of a statement are the rows that it inserts, and the row ids of those that it
deletes. A reduced query is MERGE's over only those rows of the target that have partners.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, partial

from pyspark.sql import DataFrame

from acidsql.acid.values.predicate import Demand
from acidsql.costs import FastPath, note_fast_path
from acidsql.plan.analysis import lower
from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.rows.event_query import EventQuery
from acidsql.plan.standins.query import StandIn
from acidsql.sql.queries.table_changes import TableChanges
from acidsql.statements.context.family import Context
from acidsql.statements.context.statement_text import StatementText, query_rows
from acidsql.statements.queries.changes import ChangeFeed
from acidsql.statements.queries.events import Events, Views
from acidsql.statements.queries.statement_demands import StatementDemands
from acidsql.statements.queries.table_rows import TableRows, select_standin_columns
from acidsql.statements.queries.undo import UndoneChanges
from acidsql.statements.queries.view_rows import in_view, text_of_view_query, view_rows
from acidsql.storage.reading.returned import no_rows
from acidsql.storage.reading.scan_columns import empty_scan
from acidsql.storage.spark.repeatable import (
    constant_columns,
    hide_constants,
    is_broadcast_by_spark,
    prevent_reevaluation,
    repeatable_query,
)
from acidsql.txn import Snapshot

_NO_DEMANDS: Mapping[str, Demand] = {}
_FILE_FUNCTIONS = re.compile(r"\binput_file_", re.IGNORECASE)  # functions that need a scan by Spark


class Filler:
    """Fills the stand-ins of one session's statements."""

    def __init__(self, context: Context) -> None:
        self._context, self._spark = context, context.spark
        self._tables = TableRows(context)
        self._changes = ChangeFeed(context, self._tables.travel)
        self._undone = UndoneChanges(context, self._changes, self._tables.travel)

    def views(
        self, prepared: PreparedStatement, snapshot: Snapshot, statement_text: StatementText, *,
        few: int = 0, explicit_demands: Mapping[str, Demand] = _NO_DEMANDS,
    ) -> Views:  # fmt: skip
        """Return the lazy rows of each view that a statement reads, by the view's name: of its
        tables, views and changes in a snapshot. Files are listed now.

        The views may lack rows that the statement's conditions rule out. To find these rows, a job
        may run.

        Args:
            prepared: The statement.
            snapshot: What the transaction sees.
            statement_text: The statement's text, arguments and time.
            few: Up to how many rows the driver may find itself, without a job, of the target and of
                the views in ``explicit_demands``; 0: none. The caller gives more than 0 only if the
                statement reads its target once, or if the caller gives an explicit demand on the
                target.
            explicit_demands: The rows that the statement needs of these views, if the caller knows
                them. Views of one table with equal demands share the rows of the first of these
                views, with its virtual columns.
        """
        few = 0 if _FILE_FUNCTIONS.search(statement_text.text) else few
        demands = StatementDemands(
            self._context, prepared.standins, prepared.texts, statement_text, prepared.queries[0],
            explicit_demands,
        )  # fmt: skip
        return self.fill(demands, snapshot, few)

    def fill(self, demands: StatementDemands, snapshot: Snapshot, few: int = 0) -> Views:
        """Put the lazy rows of each view of a statement into ``demands.views``, and return that. A
        view comes after those that it needs: changes, tables and views, MERGE's source, the target.
        Files are listed now, and a job may find the rows that the statement needs. ``few``: up to
        how many rows of the target, or of a view with an explicit demand, the driver may find
        itself, without a job."""
        standins, views, statement_text = demands.standins, demands.views, demands.statement_text
        for standin in standins:  # nobody knows which changes a query needs, so they come first
            if standin.changes is not None:
                views[standin.view] = self._change_rows(standin, snapshot, statement_text)
        for standin in standins:
            if standin.changes is None and not standin.is_target:
                views[standin.view] = self._rows(standin, snapshot, demands, few)
        if (source := demands.source) is not None:
            args, time = statement_text.args, statement_text.time
            rows = lower.derived_rows(self._spark, source, views, args, time)
            views[source.view] = prevent_reevaluation(rows)
        for standin in standins:  # the target comes last: the source may decide on its partitions
            if standin.is_target:
                views.target = views[standin.view] = self._rows(standin, snapshot, demands, few)
        return views

    def _change_rows(
        self, standin: StandIn, snapshot: Snapshot, statement_text: StatementText
    ) -> DataFrame:
        """Return the rows of a call of ``table_changes``, or of the changes that RESTORE or REVERT
        undoes, lazily. Errors in a view's text name the view."""
        table, changes, enclosing_view = standin.table, standin.changes, standin.enclosing_view
        assert changes is not None
        with in_view(self._spark, enclosing_view):
            if not isinstance(changes, TableChanges):
                return self._undone.rows(table, changes, snapshot)
            view_text = text_of_view_query(enclosing_view, statement_text)
            return self._changes.rows_of_call(table, changes, snapshot, view_text)

    def _rows(
        self, standin: StandIn, snapshot: Snapshot, demands: StatementDemands, few: int
    ) -> DataFrame:
        """Return the rows of a view (whose own views are filled), or of a table, lazily. A table's
        files are listed now, unless an earlier view of it has the same explicit demand; then the
        rows are that view's. ``few``: up to how many rows the driver may find itself, without a
        job; it counts for the target and for explicit demands only."""
        if standin.query is not None:
            self._context.catalog.require_same_view(standin.table)
            return view_rows(self._spark, standin, demands.views)
        if (shared_rows := demands.shared_rows(standin)) is not None:
            return shared_rows
        point_in_time = self._tables.point_in_time(standin, demands.statement_text)
        explicit_demand = demands.explicit.get(standin.view)
        # The listing of the table may ask for the demand twice, or never.
        demand = explicit_demand or cache(partial(demands.demand_on, standin))
        few = few if standin.is_target or explicit_demand else 0
        return self._tables.rows(standin, snapshot, point_in_time, demand=demand, few=few)

    def empty_views(self, standins: Iterable[StandIn]) -> dict[str, DataFrame]:
        """Return a DataFrame without rows for each stand-in, by the name of its view, for the
        analysis of a statement. ``standins``: those of a view's query come before the view's own.
        """
        views: dict[str, DataFrame] = {}
        for standin in standins:
            views[standin.view] = self._empty_view(standin, views)
        return views

    def _empty_view(self, standin: StandIn, views: Mapping[str, DataFrame]) -> DataFrame:
        """Return a DataFrame without rows in the columns of a stand-in. ``views``: the empty views
        before it, of which a view of the metastore may be made."""
        if standin.query is not None:
            return view_rows(self._spark, standin, views)
        if standin.returned is not None:
            return no_rows(self._spark, standin.returned)
        if standin.changes is not None:
            return self._changes.no_rows(standin.table)
        return select_standin_columns(
            empty_scan(self._spark, standin.table, standin.virtual), standin
        )

    def events(self, query: EventQuery, views: Views, statement_text: StatementText) -> Events:
        """Return the lazy events of a query over filled views. If MERGE's source is small and fast
        paths are on, they come from a reduced query, which reads only the target rows that have
        partners, and ``Events.otherwise`` makes them from the full query; this may change the
        source's view in ``views``. In all other cases they come from the full query, and
        ``otherwise`` is None: also if all columns of the join are constants in the source, and
        Spark broadcasts the target. ``Events.source`` is the source if it is read several times.

        Raises:
            SqlError: Spark cannot analyse the query; the error points into the user's text.
        """

        def events_of_full_query() -> DataFrame:
            return query_rows(self._spark, query.query, views, statement_text)

        reduction = query.reduction if self._context.txns.settings.fast_paths else None
        if reduction is None:
            return Events(events_of_full_query())
        reduced_query, source_view = reduction
        source = repeatable_query(rows := views[source_view.view])
        if source is None or not source.is_small(self._spark):
            return Events(events_of_full_query(), source if views.is_pruned else None)
        if reduced_query.joining <= constant_columns(rows):
            if views.target is not None and is_broadcast_by_spark(views.target):
                return Events(events_of_full_query(), source)
            views[source_view.view] = hide_constants(rows)
        note_fast_path(FastPath.MERGE_PARTNERS)
        reduced_rows = query_rows(self._spark, reduced_query.query, views, statement_text)
        return Events(reduced_rows, source, events_of_full_query)
