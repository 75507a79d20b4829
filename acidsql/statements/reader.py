"""Fills stand-ins with the rows of a snapshot, and runs the statements that are Spark's."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache

from pyspark.sql import DataFrame

from acidsql.acid.predicate import ANYTHING, EVERYTHING, Demand, Predicate, any_of, equals
from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import LockComponent, WriteConflict
from acidsql.plan import lower
from acidsql.plan.demands import demands
from acidsql.plan.event_query import Derived, EventQuery, Reduced
from acidsql.plan.foreign import (
    dropped,
    nothing_to_drop,
    refuse_acid_tables,
    refuse_new_location,
)
from acidsql.plan.query import Resolve, StandIn, acid_tables, placeholders, rewrite
from acidsql.plan.rewrite import Prepared
from acidsql.plan.said_terms import said_behind
from acidsql.plan.sqltext import Text
from acidsql.plan.standins import used_by
from acidsql.plan.undone import Undone
from acidsql.sql.conditions import has_lasting_conditions
from acidsql.sql.frames import need_relations
from acidsql.sql.statements import Effect, Reads, SparkStatement
from acidsql.sql.table_changes import TableChanges
from acidsql.sql.tokens import Span
from acidsql.statements.changes import ChangeFeed
from acidsql.statements.directories import refuse_owned_directory
from acidsql.statements.events import Events, Views
from acidsql.statements.explain import locks_section, plan_section, tables_section
from acidsql.statements.family import Context
from acidsql.statements.result import nothing, rows_frame
from acidsql.statements.said import Args, Said
from acidsql.statements.table_rows import TableRows, shaped
from acidsql.statements.time_travel import When
from acidsql.statements.undo import UndoneChanges
from acidsql.statements.view_rows import in_view, said_in, view_rows
from acidsql.storage.files.listing import Listing
from acidsql.storage.reading.returned import no_rows
from acidsql.storage.reading.row_conflicts import changed_a_common_row
from acidsql.storage.reading.scan_columns import empty, unread
from acidsql.storage.reading.source_partitions import demanded_by_source
from acidsql.storage.spark import jvm
from acidsql.storage.spark.clocks import lasting_plan
from acidsql.storage.spark.repeatable import (
    constant_columns,
    evaluated_once,
    is_sent_unasked,
    repeatable,
    without_constants,
)
from acidsql.storage.spark.views import settled
from acidsql.txn import Snapshot

# A temporary view keeps its plan: its text names stand-ins, or DataFrames, which are dropped soon.
_KEPT_PLANS = {"spark.sql.legacy.storeAnalyzedPlanForView": "true"}
_BY_CASE = "spark.sql.caseSensitive"
_FEW_VALUES = 8  # of a partition column: then a job that finds fewer of them does not pay
_NOTHING_KNOWN: Mapping[str, Demand] = {}
_OF_FILES = re.compile(r"\binput_file_", re.IGNORECASE)  # functions that need a scan by Spark


class Reader:
    """Fills the stand-ins of one session's statements."""

    def __init__(self, context: Context) -> None:
        self._spark, self._metastore, self._names = context.spark, context.metastore, context.names
        self._txns, self._transactions = context.txns, context.transactions
        self._sparks = context.databases
        self._tables = TableRows(context)
        self._travel = self._tables.travel
        self._changes = ChangeFeed(context, self._travel)
        self._undone = UndoneChanges(context, self._changes, self._travel)

    def views(
        self,
        prepared: Prepared,
        snapshot: Snapshot,
        said: Said,
        *,
        few: int = 0,
        needed: Mapping[str, Demand] = _NOTHING_KNOWN,
    ) -> Views:
        """The rows of a statement's stand-ins in a snapshot, lazily. Rows may be left out that
        the statement's conditions rule out.

        Args:
            prepared: The statement.
            snapshot: What the transaction sees.
            said: The session's settings for it.
            few: See ``scan``, for the target and the views in ``needed``. The caller gives more
                than 0 only if the statement reads its target once, or says what it needs of it.
            needed: What the statement needs of these views, if the caller knows. Views of one table
                with one demand get the rows of the first of them, with its virtual columns.
        """
        change, few = prepared.queries[0], 0 if _OF_FILES.search(said.text) else few
        return self._views(prepared.standins, snapshot, prepared.texts, said, change, few, needed)

    def _views(
        self,
        standins: Collection[StandIn],
        snapshot: Snapshot,
        queries: Sequence[Text],
        said: Said,
        change: EventQuery | None = None,
        few: int = 0,
        needed: Mapping[str, Demand] = _NOTHING_KNOWN,
    ) -> Views:
        views, known_rows = Views(), dict[tuple[TableName, Demand | None], DataFrame]()
        source = None if change is None else change.source

        @cache
        def demanded() -> Mapping[str, Demand]:
            return self._demands(standins, queries, said, source, views)

        @cache
        def of_target(known: Demand) -> Predicate:
            return self._demanded_by_source(change, known.condition, views) if change else ANYTHING

        def rows(standin: StandIn) -> DataFrame:
            def of_all() -> Demand:
                told = self._told(standin, change)
                known = demanded().get(standin.view, EVERYTHING).also(told)
                return known.also(of_target(known)) if standin.is_target else known

            asked = needed.get(standin.view)
            if (read := (standin.table.name, asked)) in known_rows:
                return known_rows[read]
            few_of_it = few if standin.is_target or asked else 0
            if standin.query is not None:
                self._transactions.need_same_view(standin.table)
                return view_rows(self._spark, standin, views)
            found = self._tables.rows(
                standin, snapshot, self._when(standin, said), asked or of_all, few_of_it
            )
            if asked is not None:
                known_rows[read] = found
            return found

        # What a query needs of them is not known, so they come first.
        for one in standins:
            if one.changes is not None:
                with in_view(self._spark, one.within):
                    its = said_in(one.within, said)
                    views[one.view] = self._changed(one.table, one.changes, snapshot, its)
        others = [one for one in standins if not one.is_target and one.changes is None]
        for one in others:
            views[one.view] = rows(one)
        if source is not None:
            views[source.view] = evaluated_once(self._derived(source, views, said))
        # The target comes last: the values of the source may decide which partitions it needs.
        for standin in standins:
            if standin.is_target:
                views.target = views[standin.view] = rows(standin)
        return views

    def _told(self, standin: StandIn, change: EventQuery | None) -> Predicate:
        """What the text says about a stand-in's rows. It compares names without their case."""
        kept = {} if standin.within is None else standin.within.settings
        if str(kept.get(_BY_CASE) or self._spark.conf.get(_BY_CASE)).lower() == "true":
            return ANYTHING
        return change.said if change and standin.is_target else said_behind(standin)

    def _changed(
        self, table: Table, changes: TableChanges | Undone, snapshot: Snapshot, said: Said
    ) -> DataFrame:
        if isinstance(changes, TableChanges):
            return self._changes.called(table, changes, snapshot, said)
        return self._undone.rows(table, changes, snapshot)

    def _when(self, standin: StandIn, said: Said) -> When | None:
        if standin.as_of is None:
            return None
        with in_view(self._spark, standin.within):
            return self._travel.when(standin.as_of, said_in(standin.within, said))

    def _demanded_by_source(self, change: EventQuery, known: Predicate, views: Views) -> Predicate:
        """A predicate for the target partitions that MERGE's source has rows for. May run a job."""
        if (found := self._reduction(change)) is None:
            return ANYTHING
        reduced, derived = found
        asked = [pair for pair in reduced.partitions if not _has_few(known, pair[0])]
        source = repeatable(rows := views[derived.view]) if asked else None
        if source is None or not source.is_small(self._spark):
            return ANYTHING
        views.is_pruned = True
        with lower.mapped_errors(derived.query):
            return demanded_by_source(rows, asked)

    def _demands(
        self,
        standins: Collection[StandIn],
        queries: Sequence[Text],
        said: Said,
        source: Derived | None,
        known: Views,
    ) -> dict[str, Demand]:
        """The demands of the queries on the stand-ins' rows, by view. No job runs."""
        if jvm.is_remote(self._spark):  # nobody can ask for a plan there
            return {}
        views = {one.view: known[one.view] for one in standins if one.changes}
        unfilled: dict[str, DataFrame] = {}
        for one in standins:
            if one.query is not None:
                unfilled[one.view] = view_rows(self._spark, one, views | unfilled)
            elif one.changes is None:
                rows = unread(self._spark, one.table, one.virtual, one.view)
                unfilled[one.view] = shaped(rows, one)
        views |= unfilled
        if source is not None and not lower.used(source.query, unfilled):
            views[source.view] = known[source.view]
        elif source is not None:
            views[source.view] = self._derived(source, unfilled, said)
        found: dict[str, list[Demand]] = {}
        for query in queries:
            if not has_lasting_conditions(query.sql):
                return {}
            plan = lasting_plan(self._frame(query, views, said))
            if plan is None:
                return {}
            for view, demand in demands(plan, unfilled).items():
                found.setdefault(view, []).append(demand)
        return {view: any_of(of_each) for view, of_each in found.items()}

    def empty_views(self, standins: Iterable[StandIn]) -> dict[str, DataFrame]:
        """Views without rows for the stand-ins, to analyse a statement with."""
        views: dict[str, DataFrame] = {}
        for one in standins:
            views[one.view] = self._empty_view(one, views)
        return views

    def _empty_view(self, standin: StandIn, views: Mapping[str, DataFrame]) -> DataFrame:
        if standin.query is not None:
            return view_rows(self._spark, standin, views)
        if standin.returned is not None:
            return no_rows(self._spark, standin.returned)
        if standin.changes is not None:
            return self._changes.none(standin.table)
        return shaped(empty(self._spark, standin.table, standin.virtual), standin)

    def events(self, query: EventQuery, views: Views, said: Said) -> Events:
        """The lazy events of a query.

        Raises:
            SqlError: As ``lower.frame``.
        """

        def whole() -> DataFrame:
            return self._frame(query.query, views, said)

        if (found := self._reduction(query)) is None:
            return Events(whole())
        reduced, derived = found
        source = repeatable(rows := views[derived.view])
        is_small = source is not None and source.is_small(self._spark)
        if not is_small:
            return Events(whole(), source if views.is_pruned else None)
        if reduced.joining <= constant_columns(rows):
            if views.target is not None and is_sent_unasked(views.target):
                return Events(whole(), source)
            views[derived.view] = without_constants(rows)
        return Events(self._frame(reduced.query, views, said), source, whole)

    def _reduction(self, query: EventQuery) -> tuple[Reduced, Derived] | None:
        """MERGE's query over a reduced target, and its source; None if there is only one query."""
        if query.reduced is None or query.source is None or not self._txns.settings.fast_paths:
            return None
        return query.reduced, query.source

    def _derived(self, source: Derived, views: Mapping[str, DataFrame], said: Said) -> DataFrame:
        return lower.derived_rows(self._spark, source, views, said.args, said.time)

    def _frame(self, text: Text, views: Mapping[str, DataFrame], said: Said) -> DataFrame:
        return lower.frame(self._spark, text, lower.used(text, views), said.args, said.time)

    def meets(self, conflict: WriteConflict, ours: Sequence[str]) -> bool:
        """Whether another transaction updated or deleted a row that this transaction changed, too.

        ``ours``: the directories that this transaction published. True also if this is unknown.
        """
        table, place = acid_table(self._metastore.find(conflict.table)), conflict.partition
        if table is None or conflict.write_id is None:
            return True
        if table.partition_columns and place is None:
            return True
        return changed_a_common_row(self._spark, table, place or "", conflict.write_id, ours)

    # ── statements that are Spark's ──────────────────────────────────────────────────────────

    def pass_on(
        self, statement: SparkStatement, said: Said, args: Args, resolve: Resolve, readable: Resolve
    ) -> DataFrame:
        """Run a statement of Spark's, with stand-ins for the tables that it reads.

        ``resolve`` finds ACID tables; ``readable`` finds plain tables of the metastore, too.
        """
        if statement.reads is Reads.NOTHING or statement.effect is not Effect.READS:
            is_ours, double_quoted = self._sparks.is_ours, said.double_quoted
            refuse_new_location(said.text, is_ours, double_quoted=double_quoted)
            refuse_owned_directory(self._metastore, said.text, double_quoted=double_quoted)
            self._sparks.share_named(said.text)
        if statement.reads is Reads.NOTHING:
            return self._alone(said, args, resolve)
        found = rewrite(said.text, statement, readable, double_quoted=said.double_quoted)
        if not found.edits:
            return self._verbatim(said.text, args)
        text = Text(said.text, [*found.edits, *placeholders(said.text)])
        if not found.standins:
            return self._of_frames(text.verbatim(Span(0, len(said.text))), said)
        snapshot = self._transactions.look([*acid_tables(found.standins)])
        mode, span = statement.explained or (None, statement.span)
        query = text.verbatim(span)
        # To get the plan of a statement that is not a query would run the statement.
        is_query = statement.effect is Effect.READS
        views = self._views(found.standins, snapshot, [query] if is_query else [], said)
        if statement.explained is not None:
            rows = lower.frame(self._spark, query, views, said.args)
            plan = self._explained(rows, found.standins, snapshot, mode, said)
            return rows_frame(self._spark, "plan string", [(plan,)])
        with jvm.changed_conf(self._spark, _KEPT_PLANS):
            return lower.frame(self._spark, query, views, said.args, runs=not is_query)

    def _alone(self, said: Said, args: Args, resolve: Resolve) -> DataFrame:
        """Run a statement of Spark's that reads no table by a query."""
        text, is_sparks, double_quoted = said.text, self._names.is_sparks, said.double_quoted
        need_relations(text, double_quoted=double_quoted)
        refuse_acid_tables(text, resolve, is_sparks, double_quoted=double_quoted)
        name = dropped(text, double_quoted=double_quoted)
        if name is not None and self._names.qualify(name.parts) and not is_sparks(name.parts):
            if self._txns.settings.ignores_missing and not self._names.foreign(name.parts):
                return nothing(self._spark)
            raise nothing_to_drop(name, text)
        return self._verbatim(text, args)

    def _of_frames(self, text: Text, said: Said) -> DataFrame:
        """Run a statement of Spark's that names DataFrames, and no ACID tables."""
        with lower.mapped_errors(text), jvm.changed_conf(self._spark, _KEPT_PLANS):
            return settled(self._verbatim(text.sql, said.args))

    def _verbatim(self, text: str, args: Args) -> DataFrame:
        given = dict(args) if isinstance(args, Mapping) else list(args or ())
        return self._spark.sql(text, args=given or None)

    def explain(
        self, prepared: Prepared, said: Said, mode: str | None, locks: Iterable[LockComponent]
    ) -> DataFrame:
        """EXPLAIN of a row-changing statement: its locks, its tables' files, and Spark's plan."""
        snapshot = self._transactions.look(prepared.reads)
        views = self.views(prepared, snapshot, said)
        named = ""
        if prepared.source is not None:
            source = prepared.source
            named = source.query.sql
            views[source.view] = lower.frame(self._spark, source.query, views, said.args, said.time)
        plans = []
        for query in prepared.queries:
            text = query.query.sql + named + (query.source.query.sql if query.source else "")
            standins = used_by(text, prepared.standins)
            rows = self.events(query, views, said).rows
            plans.append(self._explained(rows, standins, snapshot, mode, said))
        plans[0] = locks_section(locks) + plans[0]
        return rows_frame(self._spark, "plan string", [(plan,) for plan in plans])

    def _explained(
        self,
        rows: DataFrame,
        standins: Iterable[StandIn],
        snapshot: Snapshot,
        mode: str | None,
        said: Said,
    ) -> str:
        """The files that a plan reads of ACID tables, and the plan, as text."""
        shown = {
            (one.table.name, when): (one.table, *self._tables.listed(one.table, snapshot, when))
            for one in standins
            if one.table.is_transactional and one.changes is None
            for when in [self._when(one, said)]
        }
        plan = plan_section(jvm.explain(rows, mode))
        return tables_section([*shown.values()], jvm.scans_of(rows)) + plan

    def listed(self, table: Table, snapshot: Snapshot) -> tuple[list[Listing], ValidWriteIdList]:
        """The files of all partitions that a snapshot reads, and the write ids that it sees."""
        return self._tables.listed(table, snapshot)


def _has_few(known: Predicate, column: Column) -> bool:
    """Whether the predicate leaves only a few values for a column."""
    values = equals(known, column.name)
    return values is not None and len(values) <= _FEW_VALUES
