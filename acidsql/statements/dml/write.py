"""*Do*, and the first part of *keep*: write the events of each query, then publish the files.

The second part of *keep* is the commit, which ``runner`` calls. A multi-insert publishes the files
of one target before it writes the events of the next target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from acidsql.plan.analysis import lower
from acidsql.plan.locking import PossiblePartitions
from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.rows.event_query import EventQuery
from acidsql.statements.context.family import Context
from acidsql.statements.context.result import Clock
from acidsql.statements.context.statement_text import StatementText, query_rows
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.statements.context.work import Work
from acidsql.statements.dml.hold import LockedStatement
from acidsql.statements.queries.events import Events, Views
from acidsql.statements.queries.filler import Filler
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.spark.repeatable import repeatable_query
from acidsql.storage.writing.save import Save, TableWrite
from acidsql.storage.writing.staging import stage_rows
from acidsql.txn import Txn


class Writer:
    """Writes the events of one session's statements.

    Args:
        context: The objects that the statements of a session share.
        filler: Fills the stand-ins.
        evaluates_once: Whether a query that may give other rows each time is evaluated only once.
            Then the driver does not try to collect its rows: if there were too many rows, a job
            would evaluate the query again.
    """

    def __init__(self, context: Context, filler: Filler, *, evaluates_once: bool) -> None:
        self._context, self._filler = context, filler
        self._evaluates_once = evaluates_once

    def write(
        self,
        transaction: Transaction,
        held: LockedStatement,
        statement_text: StatementText,
        clock: Clock,
        work: Work,
    ) -> None:
        """Write and publish the events of all targets of a statement, one target after another, and
        note in ``work`` the directories and what else the commit needs. The transaction is not
        committed."""
        if held.prepared.table_before is not None:
            work.altered = held.prepared.queries[0].table
        work.reverted = held.prepared.reverted_txn_id
        with clock("do"):
            # An UPDATE or DELETE without a subquery in WHERE reads its target once.
            is_point = all(query.may_collect for query in held.prepared.queries)
            few_rows = self._context.txns.settings.few_rows if is_point else 0
            views = self._filler.views(held.prepared, held.snapshot, statement_text, few=few_rows)
        with self._evaluate_source(transaction.txn, held.prepared, views, statement_text):
            targets = zip(held.prepared.queries, held.possible_partitions, strict=True)
            self.write_each(transaction, targets, views, statement_text, clock, work)

    def write_each(
        self,
        transaction: Transaction,
        targets: Iterable[tuple[EventQuery, PossiblePartitions]],
        views: Views,
        statement_text: StatementText,
        clock: Clock,
        work: Work,
    ) -> None:
        """Write and publish the events of these queries, one after another. With each query comes
        the list of partitions that it can change; None: any, or an unpartitioned table.

        Raises:
            UnsupportedError: The transaction has overwritten a partition to which a query writes.
        """
        for query, possible_partitions in targets:
            overwrite = query.overwrite
            if not query.table.partition_columns:
                transaction.refuse_overwritten(query.table, [""], overwrite=overwrite)
            if overwrite and query.static_partition is not None:
                transaction.refuse_overwritten(
                    query.table, possible_partitions or (), overwrite=overwrite
                )
            with self._new_table_write(transaction.txn, query, possible_partitions) as writing:
                with clock("do"):
                    self._write_events(writing, query, views, statement_text)
                with clock("keep"):
                    partitions = writing.partitions
                    transaction.refuse_overwritten(query.table, partitions, overwrite=overwrite)
                    work.publish(query.table, writing)

    def _few_rows_limit(self, query: EventQuery, events: Events) -> int:
        """Return up to how many rows the driver may collect and write without a job. 0: a job
        writes them, as the query is not small by its form, or a second evaluation could give other
        rows."""
        is_tiny = query.source is not None and query.source.is_short
        if events.source is not None:
            is_tiny = events.source.is_tiny
        if not (query.may_collect or is_tiny):
            return 0
        if self._evaluates_once and repeatable_query(events.rows) is None:
            return 0
        return self._context.txns.settings.few_rows

    @contextmanager
    def _evaluate_source(
        self, txn: Txn, prepared: PreparedStatement, views: Views, statement_text: StatementText
    ) -> Iterator[None]:
        """If several queries of a statement read one source, evaluate it once, into temporary files
        that exist as long as the block runs, and put their rows into ``views``. Otherwise do
        nothing."""
        if prepared.source is None:
            yield
            return
        query, location = prepared.source.query, prepared.queries[0].table.location
        with ExitStack() as files:
            with lower.mapped_errors(query):
                source = query_rows(self._context.spark, query, views, statement_text)
                rows = files.enter_context(stage_rows(source, location, txn.id))
            views[prepared.source.view] = lower.mark_chars(rows, prepared.source)
            yield

    def _new_table_write(
        self, txn: Txn, query: EventQuery, possible_partitions: PossiblePartitions
    ) -> TableWrite:
        """Make the TableWrite for a query's events. Nothing is written yet, but the transaction
        uses up a statement id, or two if the query deletes rows: the lower one is for the delete
        events. If the statement gives values for all partition columns, all new rows go to the
        first of ``possible_partitions``; otherwise the rows' values decide."""
        table, settings = query.table, self._context.txns.settings
        static_partition = (
            None
            if query.static_partition is None or not possible_partitions
            else next(iter(possible_partitions))
        )
        # Rows that replace others stay in their directories.
        has_new_rows = query.overwrite or query.merge or not (query.deletes or static_partition)
        needs_names = has_new_rows and not query.makes_table
        first_statement_id = txn.next_statement_id()
        return TableWrite(
            filesystem_for(table.location),
            Save(
                table,
                txn.write_id(table.name),
                # Delete events get the lower statement id. Otherwise Hive would apply them to the
                # rows of this same write.
                (
                    first_statement_id,
                    txn.next_statement_id() if query.deletes else first_statement_id,
                ),
                static_partition if table.partition_columns else "",
                query.overwrite,
                query.merge,
                query.allow_duplicate_deletes,
                self._context.partitions.names(table) if needs_names else None,
                settings.max_dynamic_partitions,
                notes_replaced=query.notes_replaced,
                is_fast=settings.fast_paths,
            ),
        )

    def _write_events(
        self, writing: TableWrite, query: EventQuery, views: Views, statement_text: StatementText
    ) -> None:
        """Write a query's events into hidden files: few rows by the driver, many by a job. An
        overwrite also replaces all old rows there. Nothing is published."""
        if query.plain_rows is not None:
            writing.plain_rows(query.plain_rows)
            return
        events = self._filler.events(query, views, statement_text)
        with (
            events.require_unchanged_source(self._context.spark),
            lower.mapped_errors(query.query),
            lower.naming_checks(events.rows, query.table),
        ):
            rows, settings = query.literal_rows, self._context.txns.settings
            checked_rows = lower.rows_with_checks(events.rows, query.table, statement_text.time)
            if settings.fast_paths and rows is not None and rows <= settings.values_max_rows:
                writing.literal_rows(checked_rows)
            else:
                few_rows = self._few_rows_limit(query, events)
                make_all_rows = events.otherwise
                make_checked_rows = make_all_rows and (
                    lambda: lower.rows_with_checks(
                        make_all_rows(), query.table, statement_text.time
                    )
                )
                writing.events(
                    checked_rows,
                    few_rows,
                    if_small=query.only_if_small,
                    otherwise=make_checked_rows,
                )
        if query.overwrite:
            writing.replace_all()
