"""*Do*, and the first part of *keep*: write the events of each query, then publish the files.

The second part of *keep* is the commit, which ``runner`` calls. A multi-insert publishes the files
of one target before it writes the events of the next target. The events of a query are the rows
that it inserts, and the row ids of those that it deletes. The stand-ins that ``Filler`` fills are
the views in the places of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from acidsql.plan.analysis import lower
from acidsql.plan.locking import PossiblePartitions
from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.rows.event_query import Collecting, EventQuery, StaticPartition
from acidsql.statements.context.family import Context
from acidsql.statements.context.result import Clock
from acidsql.statements.context.statement_text import StatementText, query_rows
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.statements.context.work import Work
from acidsql.statements.dml.hold import LockedStatement
from acidsql.statements.queries.events import Events, Views
from acidsql.statements.queries.filler import Filler
from acidsql.storage.event_records import WriteMode
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.spark.repeatable import repeatable_query
from acidsql.storage.writing.save import TableWrite, write_spec
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
        """Write and publish the events of all targets of a statement, one target after another.
        Note in ``work`` the directories, the table whose columns the commit changes, and the
        transaction that the statement reverts. The transaction is not committed. Raise the errors
        of ``write_each``."""
        if held.prepared.table_before is not None:
            work.altered = held.prepared.queries[0].table
        work.reverted = held.prepared.reverted_txn_id
        with clock("do"):
            # An UPDATE or DELETE without a subquery in WHERE reads its target once.
            hints = (query.hints for query in held.prepared.queries)
            is_point = all(hint.collecting is not Collecting.NEVER for hint in hints)
            few_rows = self._context.txns.settings.driver_row_limit if is_point else 0
            views = self._filler.views(held.prepared, held.snapshot, statement_text, few=few_rows)
        with self._evaluate_source(transaction.txn, held.prepared, views, statement_text):
            targets = zip(held.prepared.queries, held.possible_partitions, strict=True)
            returning = held.prepared.returning
            notes_replaced = returning is not None and returning.needs_pairs
            self.write_each(
                transaction, targets, views, statement_text, clock, work, notes_replaced
            )

    def write_each(
        self,
        transaction: Transaction,
        targets: Iterable[tuple[EventQuery, PossiblePartitions]],
        views: Views,
        statement_text: StatementText,
        clock: Clock,
        work: Work,
        notes_replaced: bool = False,
    ) -> None:
        """Write and publish the events of these queries, one after another, and note the results in
        ``work``. With each query comes the list of partitions that it can change; None: any, or an
        unpartitioned table. ``notes_replaced``: files beside the new rows' say which rows these
        replace.

        Raises:
            UnsupportedError: The transaction has overwritten a partition to which a query writes,
                or two branches write to one partition, and one of them overwrites it.
            ConstraintError: A row breaks NOT NULL or CHECK.
        """
        for query, possible_partitions in targets:
            overwrite = query.mode is WriteMode.OVERWRITE
            if not query.table.partition_columns:
                transaction.refuse_overwritten(query.table, [""], overwrite=overwrite)
            if overwrite and isinstance(query.partitions, StaticPartition):
                transaction.refuse_overwritten(
                    query.table, possible_partitions or (), overwrite=overwrite
                )
            with self._new_table_write(
                transaction.txn, query, possible_partitions, notes_replaced
            ) as writing:
                with clock("do"):
                    self._write_events(writing, query, views, statement_text)
                with clock("keep"):
                    partitions = writing.partitions
                    transaction.refuse_overwritten(query.table, partitions, overwrite=overwrite)
                    work.publish(query.table, writing)

    def _few_rows_limit(self, query: EventQuery, events: Events) -> int:
        """Return up to how many rows the driver may collect and write, which is the setting
        ``driver_row_limit``. 0: a job writes all rows, because neither the query's form nor its
        source says that they are few; or because ``evaluates_once`` is set, and a second evaluation
        could give other rows."""
        is_tiny = query.source is not None and query.source.is_short
        if events.source is not None:
            is_tiny = events.source.is_tiny
        if query.hints.collecting is Collecting.NEVER and not is_tiny:
            return 0
        if self._evaluates_once and repeatable_query(events.rows) is None:
            return 0
        return self._context.txns.settings.driver_row_limit

    @contextmanager
    def _evaluate_source(
        self, txn: Txn, prepared: PreparedStatement, views: Views, statement_text: StatementText
    ) -> Iterator[None]:
        """If several queries of a statement read one source (``prepared.source``), evaluate it
        once, before the block, into temporary files in the first target's directory. They exist as
        long as the block runs; a DataFrame of them is put into ``views``. Otherwise only run the
        block."""
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
        self,
        txn: Txn,
        query: EventQuery,
        possible_partitions: PossiblePartitions,
        notes_replaced: bool,
    ) -> TableWrite:
        """Make the TableWrite for a query's events. Nothing is written yet, but the transaction
        uses up a statement id, or two if the query deletes rows: the lower one is for the delete
        events. If the statement gives values for all partition columns, all new rows go to the
        first of ``possible_partitions``; otherwise the rows' values decide."""
        table, mode, settings = query.table, query.mode, self._context.txns.settings
        is_static = isinstance(query.partitions, StaticPartition)
        static_partition = next(iter(possible_partitions or ()), None) if is_static else None
        # Rows that a CHANGE replaces stay in their directories. A new table may replace another one
        # of its name, whose partitions are not its own.
        needs_names = (
            mode in (WriteMode.OVERWRITE, WriteMode.MOVE)
            or mode.is_merge
            or (mode is WriteMode.INSERT and not static_partition)
        )
        first_statement_id, fs = txn.next_statement_id(), filesystem_for(table.location)
        write_id = txn.write_id(table.name)
        # Delete events get the lower statement id. Otherwise Hive would apply them to the rows of
        # this same write.
        last_statement_id = txn.next_statement_id() if mode.has_deletes else first_statement_id
        spec = write_spec(
            table,
            write_id,
            (first_statement_id, last_statement_id),
            mode,
            static_partition=static_partition,
            names=self._context.partitions.names(table) if needs_names else None,
            notes_replaced=notes_replaced,
        )
        return TableWrite(
            fs,
            table,
            spec,
            partitions_max=settings.max_dynamic_partitions,
            is_fast=settings.fast_paths,
        )

    def _write_events(
        self, writing: TableWrite, query: EventQuery, views: Views, statement_text: StatementText
    ) -> None:
        """Write a query's events into hidden files. ``query.plain_rows`` are written as they are.
        Rows that Spark makes are checked against NOT NULL and CHECK, and written by the driver if
        they are few, else by a job; then an overwrite also replaces all old rows there. Nothing is
        published."""
        if query.plain_rows is not None:
            writing.plain_rows(query.plain_rows)
            return
        events = self._filler.events(query, views, statement_text)
        with (
            events.require_unchanged_source(self._context.spark),
            lower.mapped_errors(query.query),
            lower.naming_checks(events.rows, query.table),
        ):
            rows, settings = query.hints.literal_rows, self._context.txns.settings
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
                    if_small=query.hints.collecting is Collecting.IF_SMALL,
                    otherwise=make_checked_rows,
                )
        if query.mode is WriteMode.OVERWRITE:
            writing.replace_all()
