"""Fills stand-ins with the rows of a snapshot, and runs the statements that are Spark's."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache

from pyspark.sql import DataFrame

from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.values.predicate import (
    ANYTHING,
    EVERYTHING,
    Demand,
    Predicate,
    merge_demands,
    possible_values,
)
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import LockComponent, WriteConflict
from acidsql.plan.analysis import lower
from acidsql.plan.analysis.demands import demands_of_plan
from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.rows.event_query import DerivedView, EventQuery, ReducedQuery
from acidsql.plan.standins.changes_to_undo import ChangesToUndo
from acidsql.plan.standins.foreign import (
    dropped_name,
    nothing_to_drop,
    refuse_acid_tables,
    refuse_new_location,
)
from acidsql.plan.standins.query import Resolve, StandIn, acid_tables, placeholders, rewrite
from acidsql.plan.standins.standins import standins_in
from acidsql.plan.standins.text_predicates import where_predicate
from acidsql.plan.values.sqltext import Text
from acidsql.sql.parsed.statements import Effect, Reads, SparkStatement
from acidsql.sql.queries.conditions import has_lasting_conditions
from acidsql.sql.queries.table_changes import TableChanges
from acidsql.sql.text.frames import need_relations
from acidsql.sql.text.tokens import Span
from acidsql.statements.context.family import Context
from acidsql.statements.context.result import empty_frame, rows_frame
from acidsql.statements.context.statement_text import Args, StatementText
from acidsql.statements.context.time_travel import PointInTime
from acidsql.statements.directories.directories import refuse_owned_directory
from acidsql.statements.queries.changes import ChangeFeed
from acidsql.statements.queries.events import Events, Views
from acidsql.statements.queries.explain import locks_section, plan_section, tables_section
from acidsql.statements.queries.table_rows import TableRows, select_standin_columns
from acidsql.statements.queries.undo import UndoneChanges
from acidsql.statements.queries.view_rows import in_view, text_of_view_query, view_rows
from acidsql.storage.reading.pruning.source_partitions import source_predicate
from acidsql.storage.reading.returned import no_rows
from acidsql.storage.reading.row_conflicts import changed_a_common_row
from acidsql.storage.reading.scan_columns import empty_scan, unread_scan
from acidsql.storage.spark.clocks import lasting_plan
from acidsql.storage.spark.repeatable import (
    constant_columns,
    evaluated_once,
    hide_constants,
    is_sent_unasked,
    repeatable_query,
)
from acidsql.storage.spark.session import jvm
from acidsql.storage.spark.views import settle
from acidsql.storage.tables.listing import Listing
from acidsql.txn import Snapshot

# A temporary view keeps its plan: its text names stand-ins, or DataFrames, which are dropped soon.
_KEPT_PLANS = {"spark.sql.legacy.storeAnalyzedPlanForView": "true"}
_CASE_SENSITIVE = "spark.sql.caseSensitive"
# If a predicate leaves at most so many values of a partition column, no job looks for fewer.
_FEW_VALUES = 8
_NO_DEMANDS: Mapping[str, Demand] = {}
_FILE_FUNCTIONS = re.compile(r"\binput_file_", re.IGNORECASE)  # functions that need a scan by Spark


class Reader:
    """Fills the stand-ins of one session's statements."""

    def __init__(self, context: Context) -> None:
        self._spark, self._metastore, self._names = context.spark, context.metastore, context.names
        self._txns, self._transactions = context.txns, context.transactions
        self._spark_databases = context.databases
        self._tables = TableRows(context)
        self._travel = self._tables.travel
        self._changes = ChangeFeed(context, self._travel)
        self._undone = UndoneChanges(context, self._changes, self._travel)

    def views(
        self,
        prepared: PreparedStatement,
        snapshot: Snapshot,
        statement_text: StatementText,
        *,
        few: int = 0,
        explicit_demands: Mapping[str, Demand] = _NO_DEMANDS,
    ) -> Views:
        """The lazy rows of a statement's stand-ins in a snapshot.

        The views may lack rows that the statement's conditions rule out.

        Args:
            prepared: The statement.
            snapshot: What the transaction sees.
            statement_text: The statement's text, arguments and time.
            few: See ``scan``, for the target and the views in ``explicit_demands``. The caller
                gives more than 0 only if the statement reads its target once, or if the caller
                gives an explicit demand on the target.
            explicit_demands: The rows that the statement needs of these views, if the caller
                knows them. Views of one table with equal demands share the rows of the first of
                these views, with its virtual columns.
        """
        event_query, few = (
            prepared.queries[0],
            0 if _FILE_FUNCTIONS.search(statement_text.text) else few,
        )
        return self._views(
            prepared.standins,
            snapshot,
            prepared.texts,
            statement_text,
            event_query,
            few,
            explicit_demands,
        )

    def _views(
        self,
        standins: Collection[StandIn],
        snapshot: Snapshot,
        queries: Sequence[Text],
        statement_text: StatementText,
        query: EventQuery | None = None,
        few: int = 0,
        explicit_demands: Mapping[str, Demand] = _NO_DEMANDS,
    ) -> Views:
        views, rows_by_demand = Views(), dict[tuple[TableName, Demand | None], DataFrame]()
        source = None if query is None else query.source

        @cache
        def query_demands() -> Mapping[str, Demand]:
            return self._demands(standins, queries, statement_text, source, views)

        @cache
        def pruning(demand: Demand) -> Predicate:
            return self._partition_predicate(query, demand.condition, views) if query else ANYTHING

        def read_standin(standin: StandIn) -> DataFrame:
            def demand_of_query() -> Demand:
                predicate = self._text_predicate(standin, query)
                demand = query_demands().get(standin.view, EVERYTHING).with_condition(predicate)
                return demand.with_condition(pruning(demand)) if standin.is_target else demand

            explicit_demand = explicit_demands.get(standin.view)
            if (key := (standin.table.name, explicit_demand)) in rows_by_demand:
                return rows_by_demand[key]
            few_of_standin = few if standin.is_target or explicit_demand else 0
            if standin.query is not None:
                self._transactions.require_same_view(standin.table)
                return view_rows(self._spark, standin, views)
            rows = self._tables.rows(
                standin, snapshot, self._point_in_time(standin, statement_text),
                explicit_demand or demand_of_query, few_of_standin,
            )  # fmt: skip
            if explicit_demand is not None:
                rows_by_demand[key] = rows
            return rows

        for standin in standins:  # nobody knows which changes a query needs, so they come first
            if standin.changes is not None:
                with in_view(self._spark, standin.enclosing_view):
                    view_text = text_of_view_query(standin.enclosing_view, statement_text)
                    views[standin.view] = self._change_rows(
                        standin.table, standin.changes, snapshot, view_text
                    )
        plain_standins = [
            standin for standin in standins if not standin.is_target and standin.changes is None
        ]
        for standin in plain_standins:
            views[standin.view] = read_standin(standin)
        if source is not None:
            views[source.view] = evaluated_once(self._derived_rows(source, views, statement_text))
        for standin in standins:  # the target comes last: the source may decide on its partitions
            if standin.is_target:
                views.target = views[standin.view] = read_standin(standin)
        return views

    def _text_predicate(self, standin: StandIn, event_query: EventQuery | None) -> Predicate:
        """The predicate that the statement's text gives for the rows of a stand-in.

        The text's terms are matched with columns regardless of case. So the predicate is
        ``ANYTHING`` in a session that tells names apart by case.
        """
        settings = {} if standin.enclosing_view is None else standin.enclosing_view.settings
        if (
            str(settings.get(_CASE_SENSITIVE) or self._spark.conf.get(_CASE_SENSITIVE)).lower()
            == "true"
        ):
            return ANYTHING
        return (
            event_query.target_predicate
            if event_query and standin.is_target
            else where_predicate(standin)
        )

    def _change_rows(
        self,
        table: Table,
        changes: TableChanges | ChangesToUndo,
        snapshot: Snapshot,
        statement_text: StatementText,
    ) -> DataFrame:
        """Return the changes that a stand-in shows, lazily: of a call of ``table_changes``, or
        those to undo."""
        if isinstance(changes, TableChanges):
            return self._changes.rows_of_call(table, changes, snapshot, statement_text)
        return self._undone.rows(table, changes, snapshot)

    def _point_in_time(self, standin: StandIn, statement_text: StatementText) -> PointInTime | None:
        """Return the version or time of a stand-in's AS OF clause; None without one."""
        if standin.as_of is None:
            return None
        with in_view(self._spark, standin.enclosing_view):
            return self._travel.resolve_as_of(
                standin.as_of, text_of_view_query(standin.enclosing_view, statement_text)
            )

    def _partition_predicate(
        self, event_query: EventQuery, predicate: Predicate, views: Views
    ) -> Predicate:
        """A predicate for the target partitions for which MERGE's source has rows.

        To find the partitions, this may run a job.
        """
        if (reduction := self._reduction(event_query)) is None:
            return ANYTHING
        reduced_query, source_view = reduction
        column_pairs = [
            pair for pair in reduced_query.partitions if not _has_few_values(predicate, pair[0])
        ]
        source = repeatable_query(rows := views[source_view.view]) if column_pairs else None
        if source is None or not source.is_small(self._spark):
            return ANYTHING
        views.is_pruned = True
        with lower.mapped_errors(source_view.query):
            return source_predicate(rows, column_pairs)

    def _demands(
        self,
        standins: Collection[StandIn],
        queries: Sequence[Text],
        statement_text: StatementText,
        source: DerivedView | None,
        filled_views: Views,
    ) -> dict[str, Demand]:
        """The demands of the queries on the stand-ins' rows, by view. No job runs."""
        if jvm.is_remote(self._spark):  # a client of Spark Connect cannot get the plan
            return {}
        views = {
            standin.view: filled_views[standin.view] for standin in standins if standin.changes
        }
        unread_views: dict[str, DataFrame] = {}
        for standin in standins:
            if standin.query is not None:
                unread_views[standin.view] = view_rows(self._spark, standin, views | unread_views)
            elif standin.changes is None:
                rows = unread_scan(self._spark, standin.table, standin.virtual, standin.view)
                unread_views[standin.view] = select_standin_columns(rows, standin)
        views |= unread_views
        if source is not None and not lower.views_in_text(source.query, unread_views):
            views[source.view] = filled_views[source.view]
        elif source is not None:
            views[source.view] = self._derived_rows(source, unread_views, statement_text)
        demands_by_view: dict[str, list[Demand]] = {}
        for query in queries:
            if not has_lasting_conditions(query.sql):
                return {}
            plan = lasting_plan(self._frame(query, views, statement_text))
            if plan is None:
                return {}
            for view, demand in demands_of_plan(plan, unread_views).items():
                demands_by_view.setdefault(view, []).append(demand)
        return {view: merge_demands(view_demands) for view, view_demands in demands_by_view.items()}

    def empty_views(self, standins: Iterable[StandIn]) -> dict[str, DataFrame]:
        """Views without rows in the place of the stand-ins, for the analysis of a statement."""
        views: dict[str, DataFrame] = {}
        for standin in standins:
            views[standin.view] = self._empty_view(standin, views)
        return views

    def _empty_view(self, standin: StandIn, views: Mapping[str, DataFrame]) -> DataFrame:
        """Return a DataFrame without rows, but with the columns of a stand-in. A view's query runs
        over ``views``."""
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
        """The lazy events of a query.

        Raises:
            SqlError: Spark cannot analyse the query; see ``lower.frame``.
        """

        def events_of_full_query() -> DataFrame:
            return self._frame(query.query, views, statement_text)

        if (reduction := self._reduction(query)) is None:
            return Events(events_of_full_query())
        reduced_query, source_view = reduction
        source = repeatable_query(rows := views[source_view.view])
        is_small = source is not None and source.is_small(self._spark)
        if not is_small:
            return Events(events_of_full_query(), source if views.is_pruned else None)
        if reduced_query.joining <= constant_columns(rows):
            if views.target is not None and is_sent_unasked(views.target):
                return Events(events_of_full_query(), source)
            views[source_view.view] = hide_constants(rows)
        return Events(
            self._frame(reduced_query.query, views, statement_text), source, events_of_full_query
        )

    def _reduction(self, query: EventQuery) -> tuple[ReducedQuery, DerivedView] | None:
        """MERGE's query over a reduced target, and MERGE's source.

        None if the statement has only its full query, or if fast paths are off.
        """
        if query.reduced is None or query.source is None or not self._txns.settings.fast_paths:
            return None
        return query.reduced, query.source

    def _derived_rows(
        self, source: DerivedView, views: Mapping[str, DataFrame], statement_text: StatementText
    ) -> DataFrame:
        return lower.derived_rows(
            self._spark, source, views, statement_text.args, statement_text.time
        )

    def _frame(
        self, text: Text, views: Mapping[str, DataFrame], statement_text: StatementText
    ) -> DataFrame:
        """Return a query over those of the views that its text names, lazily. Raise SqlError if
        Spark cannot analyse it."""
        return lower.frame(
            self._spark,
            text,
            lower.views_in_text(text, views),
            statement_text.args,
            statement_text.time,
        )

    def is_row_conflict(self, conflict: WriteConflict, own_directories: Sequence[str]) -> bool:
        """Whether another transaction updated or deleted a row that this transaction changed, too.

        Also True if nobody can tell.

        Args:
            conflict: The change by the other transaction.
            own_directories: The directories that this transaction has published.
        """
        table, partition = acid_table(self._metastore.find(conflict.table)), conflict.partition
        if table is None or conflict.write_id is None:
            return True
        if table.partition_columns and partition is None:
            return True
        return changed_a_common_row(
            self._spark, table, partition or "", conflict.write_id, own_directories
        )

    # ── statements that are Spark's ──────────────────────────────────────────────────────────

    def run_spark_statement(
        self,
        statement: SparkStatement,
        statement_text: StatementText,
        args: Args,
        resolve: Resolve,
        readable: Resolve,
    ) -> DataFrame:
        """Run a statement of Spark's, with stand-ins for the tables that the statement reads.

        Args:
            statement: The statement.
            statement_text: The statement's text and arguments.
            args: The arguments as the user gave them.
            resolve: Finds ACID tables.
            readable: Finds ACID tables, and plain tables of the metastore.
        """
        if statement.reads is Reads.NOTHING or statement.effect is not Effect.READS:
            is_ours, double_quoted = (
                self._spark_databases.is_acid_database,
                statement_text.double_quoted,
            )
            refuse_new_location(statement_text.text, is_ours, double_quoted=double_quoted)
            refuse_owned_directory(
                self._metastore, statement_text.text, double_quoted=double_quoted
            )
            self._spark_databases.share_named(statement_text.text)
        if statement.reads is Reads.NOTHING:
            return self._run_without_tables(statement_text, args, resolve)
        rewritten = rewrite(
            statement_text.text, statement, readable, double_quoted=statement_text.double_quoted
        )
        if not rewritten.edits:
            return self._run_verbatim(statement_text.text, args)
        text = Text(statement_text.text, [*rewritten.edits, *placeholders(statement_text.text)])
        if not rewritten.standins:
            return self._run_over_frames(
                text.verbatim(Span(0, len(statement_text.text))), statement_text
            )
        snapshot = self._transactions.read_snapshot([*acid_tables(rewritten.standins)])
        mode, span = statement.explained or (None, statement.span)
        query = text.verbatim(span)
        # Spark runs a statement that is not a query when it is asked for the statement's plan.
        is_query = statement.effect is Effect.READS
        views = self._views(
            rewritten.standins, snapshot, [query] if is_query else [], statement_text
        )
        if statement.explained is not None:
            rows = lower.frame(self._spark, query, views, statement_text.args)
            plan = self._plan_text(rows, rewritten.standins, snapshot, mode, statement_text)
            return rows_frame(self._spark, "plan string", [(plan,)])
        with jvm.changed_conf(self._spark, _KEPT_PLANS):
            return lower.frame(self._spark, query, views, statement_text.args, runs=not is_query)

    def _run_without_tables(
        self, statement_text: StatementText, args: Args, resolve: Resolve
    ) -> DataFrame:
        """Run a statement of Spark's in which no query reads a table."""
        text, is_in_spark, double_quoted = (
            statement_text.text,
            self._names.is_in_spark,
            statement_text.double_quoted,
        )
        need_relations(text, double_quoted=double_quoted)
        refuse_acid_tables(text, resolve, is_in_spark, double_quoted=double_quoted)
        name = dropped_name(text, double_quoted=double_quoted)
        if name is not None and self._names.qualify(name.parts) and not is_in_spark(name.parts):
            if self._txns.settings.ignores_missing and not self._names.find_foreign(name.parts):
                return empty_frame(self._spark)
            raise nothing_to_drop(name, text)
        return self._run_verbatim(text, args)

    def _run_over_frames(self, text: Text, statement_text: StatementText) -> DataFrame:
        """Run a statement of Spark's that names DataFrames but no ACID tables."""
        with lower.mapped_errors(text), jvm.changed_conf(self._spark, _KEPT_PLANS):
            return settle(self._run_verbatim(text.sql, statement_text.args))

    def _run_verbatim(self, text: str, args: Args) -> DataFrame:
        spark_args = dict(args) if isinstance(args, Mapping) else list(args or ())
        return self._spark.sql(text, args=spark_args or None)

    def explain(
        self,
        prepared: PreparedStatement,
        statement_text: StatementText,
        mode: str | None,
        locks: Iterable[LockComponent],
    ) -> DataFrame:
        """EXPLAIN of a row-changing statement: its locks, its tables' files, and Spark's plan."""
        snapshot = self._transactions.read_snapshot(prepared.reads)
        views = self.views(prepared, snapshot, statement_text)
        source_sql = ""
        if prepared.source is not None:
            source = prepared.source
            source_sql = source.query.sql
            views[source.view] = lower.frame(
                self._spark, source.query, views, statement_text.args, statement_text.time
            )
        plans = []
        for query in prepared.queries:
            text = query.query.sql + source_sql + (query.source.query.sql if query.source else "")
            standins = standins_in(text, prepared.standins)
            rows = self.events(query, views, statement_text).rows
            plans.append(self._plan_text(rows, standins, snapshot, mode, statement_text))
        plans[0] = locks_section(locks) + plans[0]
        return rows_frame(self._spark, "plan string", [(plan,) for plan in plans])

    def _plan_text(
        self,
        rows: DataFrame,
        standins: Iterable[StandIn],
        snapshot: Snapshot,
        mode: str | None,
        statement_text: StatementText,
    ) -> str:
        """The text of a plan, after a list of the files that the plan reads of ACID tables."""
        files_by_table = {
            (standin.table.name, point_in_time): (
                standin.table,
                *self._tables.list_files(standin.table, snapshot, point_in_time),
            )
            for standin in standins
            if standin.table.is_transactional and standin.changes is None
            for point_in_time in [self._point_in_time(standin, statement_text)]
        }
        plan = plan_section(jvm.explain(rows, mode))
        return tables_section([*files_by_table.values()], jvm.scans_of(rows)) + plan

    def list_files(
        self, table: Table, snapshot: Snapshot
    ) -> tuple[list[Listing], ValidWriteIdList]:
        """The files of all partitions in a snapshot, and the write ids visible in the snapshot."""
        return self._tables.list_files(table, snapshot)


def _has_few_values(predicate: Predicate, column: Column) -> bool:
    """Whether the predicate leaves only a few values for a column."""
    values = possible_values(predicate, column.name)
    return values is not None and len(values) <= _FEW_VALUES
