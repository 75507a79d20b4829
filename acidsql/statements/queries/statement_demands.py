"""Which rows a statement needs of its stand-ins: by its text, Spark's plan, and MERGE's source.

A stand-in is the view in the place of a table. A demand is which of its rows (a predicate) and
columns a statement needs. ``ANYTHING`` is the predicate of all rows, ``EVERYTHING`` the demand for
all rows and columns. An explicit demand is one that the caller gives.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame

from acidsql.acid.table import Column
from acidsql.acid.values.predicate import (
    ANYTHING,
    EVERYTHING,
    Demand,
    Predicate,
    merge_demands,
    possible_values,
)
from acidsql.plan.analysis import lower
from acidsql.plan.analysis.demands import demands_of_plan
from acidsql.plan.rows.event_query import DerivedView, EventQuery
from acidsql.plan.standins.query import StandIn
from acidsql.plan.standins.text_predicates import where_predicate
from acidsql.plan.values.sqltext import Text
from acidsql.sql.queries.conditions import has_lasting_conditions
from acidsql.statements.context.family import Context
from acidsql.statements.context.statement_text import StatementText, query_rows
from acidsql.statements.queries.events import Views
from acidsql.statements.queries.table_rows import select_standin_columns
from acidsql.statements.queries.view_rows import view_rows
from acidsql.storage.reading.pruning.source_partitions import source_predicate
from acidsql.storage.reading.scan_columns import unread_scan
from acidsql.storage.spark.clocks import lasting_plan
from acidsql.storage.spark.repeatable import repeatable_query
from acidsql.storage.spark.session import jvm

_CASE_SENSITIVE = "spark.sql.caseSensitive"
# If a predicate leaves at most so many values of a partition column, no job looks for fewer.
_FEW_VALUES = 8


@dataclass(frozen=True)
class StatementDemands:
    """The demands of one statement on its stand-ins. Nothing is analysed before somebody asks.

    Attributes:
        context: The objects that the statements of a session share.
        standins: The statement's stand-ins.
        queries: All queries over the stand-ins; none if Spark must not analyse the statement.
        statement_text: The statement's text, arguments and time.
        query: The query of the statement's events; None for a statement of Spark's.
        explicit: The rows that the statement needs of a view, by the view's name, if the caller
            knows them.
        views: The views of the stand-ins, as far as they are filled.
    """

    context: Context
    standins: Collection[StandIn]
    queries: Sequence[Text]
    statement_text: StatementText
    query: EventQuery | None = None
    explicit: Mapping[str, Demand] = field(default_factory=dict)
    views: Views = field(default_factory=Views)

    @property
    def source(self) -> DerivedView | None:
        """MERGE's source, or the new rows of REPLACE WHERE; None for other statements."""
        return None if self.query is None else self.query.source

    def shared_rows(self, standin: StandIn) -> DataFrame | None:
        """Return the rows of an earlier view of the same table with an equal explicit demand; None
        if there is no such view, or no explicit demand on this one."""
        if (demand := self.explicit.get(standin.view)) is None:
            return None
        for twin in self.standins:
            is_equal = twin.table.name == standin.table.name
            if is_equal and twin.view in self.views and self.explicit.get(twin.view) == demand:
                return self.views[twin.view]
        return None

    def demand_on(self, standin: StandIn) -> Demand:
        """Return which rows and columns of a stand-in the statement needs, by its text and Spark's
        plan; for MERGE's target also by the partitions for which the source has rows, which may run
        a job."""
        text_predicate = self._text_predicate(standin)
        demand = self._plan_demands.get(standin.view, EVERYTHING).with_condition(text_predicate)
        if not standin.is_target or self.query is None:
            return demand
        return demand.with_condition(self._source_predicate(self.query, demand.condition))

    def _text_predicate(self, standin: StandIn) -> Predicate:
        """Return the predicate that the statement's WHERE or ON gives for the rows of a stand-in.

        The text's terms are matched with columns regardless of case. So the predicate is
        ``ANYTHING`` in a session, or for a view, that tells names apart by case.
        """
        conf, view = self.context.spark.conf, standin.enclosing_view
        is_case_sensitive = None if view is None else view.settings.get(_CASE_SENSITIVE)
        if str(is_case_sensitive or conf.get(_CASE_SENSITIVE)).lower() == "true":
            return ANYTHING
        if self.query is not None and standin.is_target:
            return self.query.hints.target_predicate
        return where_predicate(standin)

    @cached_property
    def _plan_demands(self) -> Mapping[str, Demand]:
        """Return which rows and columns Spark's plans of all queries need of each view. {} if
        Spark's plan cannot be had, or may not last until the query runs. No job runs."""
        if jvm.is_remote(self.context.spark):  # a client of Spark Connect cannot get the plan
            return {}
        unread_views, views = self._unread_views()
        demands_by_view: dict[str, list[Demand]] = {}
        for query in self.queries:
            if not has_lasting_conditions(query.sql):
                return {}
            rows = query_rows(self.context.spark, query, views, self.statement_text)
            if (plan := lasting_plan(rows)) is None:
                return {}
            for view, demand in demands_of_plan(plan, unread_views).items():
                demands_by_view.setdefault(view, []).append(demand)
        return {view: merge_demands(view_demands) for view, view_demands in demands_by_view.items()}

    def _unread_views(self) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
        """Return two dicts of views by name, for an analysis that reads no files: the views over
        relations that stand for the tables' files; and all views of the queries, which adds those
        of changes and of MERGE's source."""
        changes = {
            standin.view: self.views[standin.view] for standin in self.standins if standin.changes
        }
        spark, unread_views = self.context.spark, dict[str, DataFrame]()
        for standin in self.standins:
            if standin.query is not None:
                unread_views[standin.view] = view_rows(spark, standin, changes | unread_views)
            elif standin.changes is None:
                rows = unread_scan(spark, standin.table, standin.virtual, standin.view)
                unread_views[standin.view] = select_standin_columns(rows, standin)
        views = changes | unread_views
        if (source := self.source) is not None:
            args, time = self.statement_text.args, self.statement_text.time
            views[source.view] = (
                lower.derived_rows(spark, source, views, args, time)
                if source.view not in self.views or lower.views_in_text(source.query, unread_views)
                else self.views[source.view]
            )
        return unread_views, views

    def _source_predicate(self, query: EventQuery, condition: Predicate) -> Predicate:
        """Return a predicate that the target's partition columns have one of the values that
        MERGE's source joins with. ``ANYTHING``: the query cannot be reduced, fast paths are off,
        ``condition`` leaves few values of each such column already, or the source is not small or
        may give other rows each time. If the source is read, perhaps by a job,
        ``views.is_pruned`` is set."""
        if (reduction := query.reduction) is None or not self.context.txns.settings.fast_paths:
            return ANYTHING
        reduced_query, source_view = reduction
        column_pairs = [
            pair for pair in reduced_query.partitions if not _has_few_values(condition, pair[0])
        ]
        source = repeatable_query(rows := self.views[source_view.view]) if column_pairs else None
        if source is None or not source.is_small(self.context.spark):
            return ANYTHING
        self.views.is_pruned = True
        with lower.mapped_errors(source_view.query):
            return source_predicate(rows, column_pairs)


def _has_few_values(predicate: Predicate, column: Column) -> bool:
    """Whether the predicate leaves only a few values for a column."""
    values = possible_values(predicate, column.name)
    return values is not None and len(values) <= _FEW_VALUES
