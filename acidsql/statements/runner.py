"""Runs one statement from start to finish, in four phases. Read this module first.

*Say*: parse, bind, analyse and rewrite the text. No transaction is open yet, so a wrong text has
no effect. *Hold*: open the transaction, wait for its locks, then take the snapshot (I6). *Do*: one
Spark job writes the events into a hidden directory. *Keep*: move the files into their directories
and commit in the metastore. This commit is the only commit point: a failure before it leaves the
table as it was.

Between BEGIN and COMMIT a statement does not open or commit a transaction. The statement runs in
the open transaction and sees its snapshot. COMMIT or ROLLBACK decides about the written files.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table
from acidsql.compaction.background import Background
from acidsql.errors import TransientTxnError
from acidsql.metastore.interface import LockComponent, Metastore, WriteConflict
from acidsql.plan import lower
from acidsql.plan.event_query import EventQuery
from acidsql.plan.insert import plan_create_as_select
from acidsql.plan.locking import Touched, exclusive, locks_of, read_lock
from acidsql.plan.names import Names
from acidsql.plan.query import Resolve, rewrite
from acidsql.plan.rewrite import Prepared, plan_dml
from acidsql.plan.sqltext import Text
from acidsql.settings import Settings, is_setting
from acidsql.sql import statements as st
from acidsql.sql.parser import Plain, parse
from acidsql.statements.compactions import CompactionCommands
from acidsql.statements.current_txn import Transactions
from acidsql.statements.load import Loads
from acidsql.statements.partition_specs import Partitions
from acidsql.statements.reader import Reader, Views
from acidsql.statements.result import (
    Clock,
    Family,
    Receipt,
    counts_frame,
    nothing,
    receipt,
    rows_frame,
)
from acidsql.statements.said import Args, Said, by_name, has_double_quoted_names, is_utc
from acidsql.statements.shows import Shows
from acidsql.statements.tables import Commands
from acidsql.statements.transactions import TransactionCommands
from acidsql.statements.unit_of_work import Transaction, Work, file_errors
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.spark import jvm
from acidsql.storage.writing.save import Save, Writing
from acidsql.storage.writing.staging import staged
from acidsql.txn import Snapshot, Txn, TxnManager

_LONGEST_PAUSE_S = 0.2  # before a statement is run again after a conflict


@dataclass(frozen=True, slots=True)
class _Held:
    """A statement whose locks are held.

    Attributes:
        prepared: The statement.
        touched: For each query, the partitions that the query can change. None means any.
        snapshot: The snapshot that was taken under the locks.
    """

    prepared: Prepared
    touched: Sequence[Touched]
    snapshot: Snapshot


class Runner:
    """Runs the statements of one session.

    Args:
        spark: The Spark session.
        metastore: Keeps tables and transactions.
        settings: Limits and time-outs.
        user: The user's name. Sessions that wait for our locks see the user and the host.
        host: The host of this process.
        compactor: ``background``, ``inline`` or ``off``.

    Attributes:
        last: The receipt of the last statement that changed something.
        transactions: Decides which transaction a statement runs in.
        compactions: Runs the statements and methods about compactions.
    """

    def __init__(
        self,
        spark: SparkSession,
        metastore: Metastore,
        settings: Settings,
        *,
        user: str,
        host: str,
        compactor: str,
    ) -> None:
        self._spark, self._metastore = spark, metastore
        self._txns = TxnManager(metastore, settings, user=user, host=host)
        self.transactions = Transactions(metastore, self._txns, self._same_rows)
        self._names = Names(spark, self.transactions)
        self._partitions = Partitions(spark, self.transactions)
        self._reader = Reader(spark, metastore, self.transactions, self._names)
        known = spark, metastore, self._txns, self.transactions, self._names
        self._commands, self._of_transactions = Commands(*known), TransactionCommands(*known)
        self.compactions = CompactionCommands(*known, host)
        self._shows = Shows(*known)
        self._families: Sequence[Family] = (
            self._commands, self._of_transactions, Loads(*known), self.compactions,
        )  # fmt: skip
        self.last: Receipt | None = None
        self._background = Background(
            spark, metastore, lambda: self._txns.settings, user=user, host=host, mode=compactor,
            end_old_leases=self.transactions.end_old_leases,
        )  # fmt: skip
        self.transactions.on_commit = self._background.committed

    def run(self, text: str, args: Args, retries: int) -> DataFrame:
        """Run one statement; see ``Session.sql``."""
        # Inside BEGIN … COMMIT a second run would see the same snapshot and fail again.
        left = retries if self.transactions.is_plain else 0
        while True:
            try:
                with file_errors(), self._background.statement():
                    return self._run(text, args)
            except TransientTxnError:
                if left <= 0 or not self.transactions.is_plain:
                    raise
                left -= 1
                # A random pause, so that two statements in conflict do not start together again.
                time.sleep(random.uniform(0, _LONGEST_PAUSE_S))

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self._txns.settings

    def resolve(self, parts: tuple[str, ...]) -> Table | None:
        """The ACID table of a name, or None."""
        return self._names.resolve(parts)

    def read_table(self, table: Table, *, row_id: bool) -> DataFrame:
        """A table's live rows, in the snapshot that a SELECT would see."""
        self.transactions.need_thread()
        with file_errors():
            return self._reader.table(table, row_id=row_id)

    def files(self, table: Table) -> DataFrame:
        """See ``Session.files``."""
        with file_errors():
            return self._shows.files(table)

    def events(self, path: str) -> DataFrame:
        """See ``Session.events``."""
        with file_errors():
            return self._shows.events(path)

    def close(self) -> None:
        """Stop the background compactor and abort the open transaction."""
        self._background.close()
        if self.transactions.current is not None:
            self.transactions.current.abandon("its session was closed")
        self._txns.close()

    # ── say ──────────────────────────────────────────────────────────────────────────────────

    def _run(self, text: str, args: Args) -> DataFrame:
        self.transactions.need_thread()
        clock = Clock()
        with clock("say"):
            text = jvm.substitute_variables(self._spark, text)
            said = Said(text, by_name(args), has_double_quoted_names(self._spark, text))
            # Each name is looked up once here. _hold compares the tables again, under the locks.
            resolve = cache(self._names.resolve)
            statement = parse(
                text,
                is_acid=lambda parts: resolve(parts) is not None,
                is_setting=is_setting,
                double_quoted_identifiers=said.double_quoted,
                plain=None if args else self._plain(),
            )
            self._of_transactions.allow(statement, text)
        if isinstance(statement, st.Dml):
            return self._change(statement, said, clock, resolve)
        match statement:
            case st.SparkStatement():
                return self._reader.pass_on(statement, said, args)
            case st.Explain():
                return self._explain(statement, said)
            case st.CreateTable() if statement.query is not None:
                return self._create_as_select(statement, said, clock)
        return self._command(statement, text)

    def _plain(self) -> Plain:
        return Plain(self._txns.settings.values_max_rows, lambda: is_utc(self._spark))

    def _command(self, statement: st.Statement, text: str) -> DataFrame:
        for family in self._families:
            if family.knows(statement):
                self.last = family.run(statement, text) or self.last
                return nothing(self._spark)
        return self._shows.run(statement, text)

    def _prepare(self, statement: st.Dml, said: Said, resolve: Resolve | None = None) -> Prepared:
        resolve = resolve or self._names.resolve
        analyse = lower.Analysis(self._spark, said.args, self._reader.empty_views).fields
        return plan_dml(said.text, statement, resolve, analyse, double_quoted=said.double_quoted)

    def _prepare_create(self, statement: st.CreateTable, said: Said) -> Prepared:
        assert statement.query is not None
        found = rewrite(said.text, statement, self._names.resolve, double_quoted=said.double_quoted)
        query = Text(said.text, found.edits).verbatim(statement.query.span)
        fields = lower.fields(self._spark, query, self._reader.empty_views(found.standins))
        name = self._names.new(statement.name, said.text)
        table = self._commands.define(statement, said.text, name, fields)
        planned = plan_create_as_select(said.text, table, query, fields, statement.query.span)
        return Prepared((planned,), found.standins)

    def _explain(self, explain: st.Explain, said: Said) -> DataFrame:
        statement: st.Statement = explain.statement
        if isinstance(statement, st.Dml):
            prepared = self._prepare(statement, said)
            locks = self._locks(statement, prepared, self._touched(prepared, said))
            return self._reader.explain(prepared, said, explain.mode, locks)
        if isinstance(statement, st.CompactTable):
            return self.compactions.explain(statement, said.text)
        # Spark, too, explains its commands by name, because they run no job.
        plan = f"== Physical Plan ==\nExecute {type(statement).__name__}"
        return rows_frame(self._spark, "plan string", [(plan,)])

    # ── hold, do, keep ───────────────────────────────────────────────────────────────────────

    def _change(self, statement: st.Dml, said: Said, clock: Clock, resolve: Resolve) -> DataFrame:
        """Run a statement that changes rows, in the session's transaction or in its own."""
        with clock("say"):
            prepared = self._prepare(statement, said, resolve)
        with self.transactions.changing(said.text) as transaction:
            with transaction.statement() as work:
                with clock("hold"):
                    held = self._hold(transaction.txn, statement, said, prepared)
                self._do(transaction, held, said, clock, work)
            with clock("keep"):
                self.transactions.end_of_statement(transaction)
        self.last = _receipt(said, transaction, work, clock)
        return counts_frame(self._spark, self.last)

    def _create_as_select(self, statement: st.CreateTable, said: Said, clock: Clock) -> DataFrame:
        """Run CREATE TABLE … AS SELECT. The commit creates the table together with its rows."""
        with clock("say"):
            prepared = self._prepare_create(statement, said)
            table = prepared.queries[0].table
            if self._commands.exists(statement, table.name):
                return nothing(self._spark)
        with self.transactions.own(said.text) as transaction, transaction.statement() as work:
            with clock("hold"):
                locks = [exclusive(table.name), *map(read_lock, prepared.reads)]
                transaction.txn.lock(locks, agent_info=said.text)
                if self._commands.exists(statement, table.name):
                    return nothing(self._spark)
                table, place = self._commands.take_place(table, transaction)
                (query,) = prepared.queries
                prepared = replace(prepared, queries=(replace(query, table=table),))
                snapshot = transaction.txn.snapshot(prepared.reads)
            self._do(transaction, _Held(prepared, (None,), snapshot), said, clock, work)
            with clock("keep"):
                transaction.commit(create_table=table, cleaned=place.id)
        self.last = _receipt(said, transaction, work, clock)
        return nothing(self._spark)

    def _hold(self, txn: Txn, statement: st.Dml, said: Said, prepared: Prepared) -> _Held:
        """Take the locks, then the snapshot (I6).

        If a table or its partitions changed before the locks were granted, prepare the statement
        again. The second time lock each target table as a whole, so that two rounds are enough.
        """
        is_first = not txn.has_looked
        touched = self._touched(prepared, said)
        txn.lock(self._locks(statement, prepared, touched), agent_info=said.text)
        snapshot = txn.snapshot(prepared.reads)
        # If an earlier statement took the snapshot, newer partitions have no visible rows.
        is_whole = not is_first or self._covers(touched, prepared, said)
        if is_whole and self._is_unchanged(prepared):
            return _Held(prepared, touched, snapshot)
        if is_first:
            txn.forget_snapshot()
        again = self._prepare(statement, said)
        whole = self._locks(statement, again, [None] * len(again.queries))
        txn.lock(whole, agent_info=said.text)
        return _Held(again, self._touched(again, said), txn.snapshot(again.reads))

    def _touched(self, prepared: Prepared, said: Said) -> list[Touched]:
        return [self._partitions.touched(query, said) for query in prepared.queries]

    def _locks(
        self, statement: st.Dml, prepared: Prepared, touched: Sequence[Touched]
    ) -> list[LockComponent]:
        targets = zip(prepared.queries, touched, strict=True)
        return locks_of(statement, targets, prepared.reads, self._txns.settings)

    def _covers(self, touched: Sequence[Touched], prepared: Prepared, said: Said) -> bool:
        """Whether the locked partitions are still all that the statement can change."""
        for query, before in zip(prepared.queries, touched, strict=True):
            if query.partitions is not None and before is not None:
                now = self._partitions.touched(query, said)
                if now is None or not set(now) <= set(before):
                    return False
        return True

    def _is_unchanged(self, prepared: Prepared) -> bool:
        return all(self.transactions.get_table(table.name) == table for table in prepared.tables)

    def _do(
        self, transaction: Transaction, held: _Held, said: Said, clock: Clock, work: Work
    ) -> None:
        """Write and publish each target's events, and add what was published to ``work``."""
        with clock("do"):
            # An UPDATE or DELETE without a subquery in WHERE reads its target once.
            is_point = all(query.maybe_few for query in held.prepared.queries)
            few = self._txns.settings.driver_max_rows if is_point else 0
            views = self._reader.views(held.prepared, held.snapshot, said, few=few)
        with self._source(transaction.txn, held.prepared, views, said):
            for query, touched in zip(held.prepared.queries, held.touched, strict=True):
                if not query.table.partition_columns:
                    transaction.refuse_hidden(query.table, [""])
                with self._writing(transaction.txn, query, touched) as writing:
                    with clock("do"):
                        self._write(writing, query, views, said)
                    with clock("keep"):
                        transaction.refuse_hidden(query.table, writing.partitions)
                        work.publish(query.table, writing)

    def _same_rows(self, conflict: WriteConflict, ours: Sequence[str]) -> bool:
        return not self._txns.settings.conflicts_by_row or self._reader.meets(conflict, ours)

    @contextmanager
    def _source(self, txn: Txn, prepared: Prepared, views: Views, said: Said) -> Iterator[None]:
        """Evaluate the source of a multi-insert once (I9), into our own temporary files."""
        if prepared.source is None:
            yield
            return
        source = lower.frame(self._spark, prepared.source.query, views, said.args)
        location = prepared.queries[0].table.location
        with staged(source, location, txn.id) as rows:
            views[prepared.source.view] = rows
            yield

    def _writing(self, txn: Txn, query: EventQuery, touched: Touched) -> Writing:
        table = query.table
        static = None if query.static_partition is None or not touched else next(iter(touched))
        # Rows that replace others stay in their directories.
        has_new_rows = query.overwrite or query.merge or not (query.deletes or static)
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
                self._partitions.names(table) if has_new_rows else None,
                self._txns.settings.max_dynamic_partitions,
            ),
        )

    def _write(self, writing: Writing, query: EventQuery, views: Views, said: Said) -> None:
        if query.plain_rows is not None:
            writing.plain_rows(query.plain_rows)
            return
        events = self._reader.events(query, views, said)
        with events.unchanged(self._spark), lower.mapped_errors(query.query):
            rows = query.literal_rows
            if rows is not None and rows <= self._txns.settings.values_max_rows:
                writing.literal_rows(events.rows)
            else:
                is_tiny = events.source is not None and events.source.is_tiny
                few = self._txns.settings.driver_max_rows if query.maybe_few or is_tiny else 0
                small, whole = query.if_small, events.otherwise
                writing.events(events.rows, few, if_small=small, otherwise=whole)
        if query.overwrite:
            writing.replace_all()


def _receipt(said: Said, transaction: Transaction, work: Work, clock: Clock) -> Receipt:
    return receipt(said.text, transaction.id, work.published, clock.seconds, transaction.compaction)
