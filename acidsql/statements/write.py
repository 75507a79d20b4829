"""*Do*, and the first part of *keep*: write the events of each query, then publish its files.

The second part of *keep* is the commit, which ``runner`` calls. A multi-insert publishes the files
of one target before it writes the events of the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from acidsql.plan import lower
from acidsql.plan.event_query import EventQuery
from acidsql.plan.locking import Touched
from acidsql.plan.rewrite import Prepared
from acidsql.statements.events import Events, Views
from acidsql.statements.family import Context
from acidsql.statements.hold import LockedStatement
from acidsql.statements.reader import Reader
from acidsql.statements.result import Clock
from acidsql.statements.statement_text import StatementText
from acidsql.statements.unit_of_work import Transaction
from acidsql.statements.work import Work
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.spark.repeatable import repeatable
from acidsql.storage.writing.save import Save, Writing
from acidsql.storage.writing.staging import staged
from acidsql.txn import Txn


class Writer:
    """Writes the events of one session's statements.

    Args:
        context: What the statements of a session share.
        reader: Fills the stand-ins.
        evaluates_once: The driver does not try to collect the rows of a query that may give other
            rows when a job evaluates it, because there were too many.
    """

    def __init__(self, context: Context, reader: Reader, *, evaluates_once: bool) -> None:
        self._context, self._reader = context, reader
        self._evaluates_once = evaluates_once

    def write(
        self,
        transaction: Transaction,
        held: LockedStatement,
        said: StatementText,
        clock: Clock,
        work: Work,
    ) -> None:
        """Write and publish each target's events, and add what was published to ``work``."""
        if held.prepared.before is not None:
            work.altered = held.prepared.queries[0].table
        work.reverted = held.prepared.reverted
        with clock("do"):
            # An UPDATE or DELETE without a subquery in WHERE reads its target once.
            is_point = all(query.maybe_few for query in held.prepared.queries)
            few = self._context.txns.settings.few_rows if is_point else 0
            views = self._reader.views(held.prepared, held.snapshot, said, few=few)
        with self._source(transaction.txn, held.prepared, views, said):
            targets = zip(held.prepared.queries, held.possible_partitions, strict=True)
            self.write_each(transaction, targets, views, said, clock, work)

    def write_each(
        self,
        transaction: Transaction,
        targets: Iterable[tuple[EventQuery, Touched]],
        views: Views,
        said: StatementText,
        clock: Clock,
        work: Work,
    ) -> None:
        """Write and publish the events of these queries, one after another."""
        for query, touched in targets:
            overwrite = query.overwrite
            if not query.table.partition_columns:
                transaction.refuse_overwritten(query.table, [""], overwrite=overwrite)
            if overwrite and query.static_partition is not None:
                transaction.refuse_overwritten(query.table, touched or (), overwrite=overwrite)
            with self._writing(transaction.txn, query, touched) as writing:
                with clock("do"):
                    self._write(writing, query, views, said)
                with clock("keep"):
                    partitions = writing.partitions
                    transaction.refuse_overwritten(query.table, partitions, overwrite=overwrite)
                    work.publish(query.table, writing)

    def _few(self, query: EventQuery, events: Events) -> int:
        """How many rows the driver may write without a job; 0: it does not try."""
        is_tiny = query.source is not None and query.source.is_short
        if events.source is not None:
            is_tiny = events.source.is_tiny
        if not (query.maybe_few or is_tiny):
            return 0
        if self._evaluates_once and repeatable(events.rows) is None:
            return 0
        return self._context.txns.settings.few_rows

    @contextmanager
    def _source(
        self, txn: Txn, prepared: Prepared, views: Views, said: StatementText
    ) -> Iterator[None]:
        """Evaluate what several queries read once (I9), into our own temporary files."""
        if prepared.source is None:
            yield
            return
        query, location = prepared.source.query, prepared.queries[0].table.location
        with ExitStack() as files:
            with lower.mapped_errors(query):
                source = lower.frame(self._context.spark, query, views, said.args, said.time)
                rows = files.enter_context(staged(source, location, txn.id))
            views[prepared.source.view] = lower.with_chars(rows, prepared.source)
            yield

    def _writing(self, txn: Txn, query: EventQuery, touched: Touched) -> Writing:
        table, settings = query.table, self._context.txns.settings
        static = None if query.static_partition is None or not touched else next(iter(touched))
        # Rows that replace others stay in their directories.
        has_new_rows = query.overwrite or query.merge or not (query.deletes or static)
        needs_names = has_new_rows and not query.makes_table
        first = txn.next_statement_id()
        return Writing(
            filesystem_for(table.location),
            Save(
                table,
                txn.write_id(table.name),
                # Delete events get the lower statement id. Otherwise Hive would apply them to the
                # rows of this same write.
                (first, txn.next_statement_id() if query.deletes else first),
                static if table.partition_columns else "",
                query.overwrite,
                query.merge,
                query.allow_duplicate_deletes,
                self._context.partitions.names(table) if needs_names else None,
                settings.max_dynamic_partitions,
                notes_replaced=query.notes_replaced,
                is_fast=settings.fast_paths,
            ),
        )

    def _write(
        self, writing: Writing, query: EventQuery, views: Views, said: StatementText
    ) -> None:
        if query.plain_rows is not None:
            writing.plain_rows(query.plain_rows)
            return
        events = self._reader.events(query, views, said)
        with (
            events.unchanged(self._context.spark),
            lower.mapped_errors(query.query),
            lower.naming_checks(events.rows, query.table),
        ):
            rows, settings = query.literal_rows, self._context.txns.settings
            new = lower.rows_with_checks(events.rows, query.table, said.time)
            if settings.fast_paths and rows is not None and rows <= settings.values_max_rows:
                writing.literal_rows(new)
            else:
                few = self._few(query, events)
                whole = events.otherwise
                again = whole and (lambda: lower.rows_with_checks(whole(), query.table, said.time))
                writing.events(new, few, if_small=query.if_small, otherwise=again)
        if query.overwrite:
            writing.replace_all()
