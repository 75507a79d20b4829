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

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import date
from functools import cache

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table, TableName
from acidsql.compaction.background import Background
from acidsql.errors import AcidSqlError, SqlSyntaxError
from acidsql.metastore.interface import Metastore, WriteConflict
from acidsql.plan.locking import read_lock
from acidsql.plan.missing_names import MissingNames
from acidsql.plan.names import Names, need_acid_table
from acidsql.plan.query import Resolve
from acidsql.plan.rewrite import may_need_workers
from acidsql.settings import Settings, is_setting
from acidsql.sql import statements as st
from acidsql.sql.frames import need_relations
from acidsql.sql.parser import LiteralRules, parse
from acidsql.statements.auto_cdc import AutoCdcStatements
from acidsql.statements.changes import ChangeFeed, Moment
from acidsql.statements.compactions import CompactionStatements
from acidsql.statements.current_txn import Transactions
from acidsql.statements.families import plain_families, updating_families
from acidsql.statements.family import Context, all_handlers
from acidsql.statements.health import TableHealth
from acidsql.statements.history import HistoryStatements
from acidsql.statements.hold import Held, Holder
from acidsql.statements.partition_specs import Partitions
from acidsql.statements.prepare import Changing, Preparer
from acidsql.statements.preview import Previewer
from acidsql.statements.reader import Reader
from acidsql.statements.repair import TableRepairs
from acidsql.statements.result import (
    Clock,
    Receipt,
    counts_frame,
    nothing,
    receipt,
    rows_frame,
    showing,
)
from acidsql.statements.returning import ReturnedRows
from acidsql.statements.shows import ShowStatements
from acidsql.statements.spark_databases import SparkDatabases
from acidsql.statements.state_tables import StateTables
from acidsql.statements.statement_text import (
    Args,
    StatementText,
    is_utc,
    new_statement_text,
    statement_name,
)
from acidsql.statements.table_rows import TableRows
from acidsql.statements.temporary_tables import TemporaryTables
from acidsql.statements.transactions import TransactionStatements
from acidsql.statements.unit_of_work import Transaction, file_errors
from acidsql.statements.view_rows import need_no_version
from acidsql.statements.work import Work
from acidsql.statements.write import Writer
from acidsql.storage.columns import quoted_path
from acidsql.storage.spark.job_progress import cancelled_by_ctrl_c
from acidsql.storage.writing.warm_workers import warm_workers
from acidsql.txn import TxnManager
from acidsql.txn.retry import again


class Runner:
    """Runs the statements of one session.

    Args:
        spark: The Spark session.
        metastore: Keeps tables and transactions.
        settings: Limits and time-outs.
        user: The user's name. Sessions that wait for our locks see the user and the host.
        host: The host of this process.
        compactor: ``background``, ``inline`` or ``off``.
        background: The compactor of another runner of the same metastore, to share.

    Attributes:
        last: The receipt of the last statement that changed something.
        transactions: Decides which transaction a statement runs in.
        session_locks: The locks that the session holds beyond its transactions.
        compactions, auto_cdc, checks, health: Run statements of their kinds, or methods about them.
    """

    def __init__(
        self,
        spark: SparkSession,
        metastore: Metastore,
        settings: Settings,
        *,
        user: str,
        host: str,
        compactor: str = "off",
        background: Background | None = None,
        evaluates_once: bool = False,
    ) -> None:
        self._spark, self._metastore, self._user, self._host = spark, metastore, user, host
        self._txns = TxnManager(metastore, settings, user=user, host=host)
        self.session_locks = self._txns.session_locks
        self.transactions = Transactions(metastore, self._txns, self._same_rows)
        self._temporary = TemporaryTables(metastore, self._txns)
        self._names = Names(spark, self.transactions, self._temporary.names)
        self._missing = MissingNames(spark, metastore, self._names)
        self._partitions = Partitions(spark, self.transactions)
        context = Context(
            spark, metastore, self._txns, self.transactions, self._names,
            SparkDatabases(spark, metastore), self._partitions, self._temporary, host,
        )  # fmt: skip
        self._reader, self._tables = Reader(context), StateTables(context)
        self._of_transactions = TransactionStatements(context)
        self.compactions = CompactionStatements(context)
        self._shows, self._rows = ShowStatements(context), TableRows(context)
        self._changes = ChangeFeed(context, self._rows.travel)
        self._history, self._returned = HistoryStatements(context), ReturnedRows(context)
        self.checks, self.health = TableRepairs(context), TableHealth(context)
        self._preparer = Preparer(context, self._reader, self._tables)
        self._previewer = Previewer(context, self._reader)
        self._holder = Holder(context, self._preparer)
        self._writer = Writer(context, self._reader, evaluates_once=evaluates_once)
        self._handlers = all_handlers([
            self._tables, self._of_transactions, self.compactions, self._shows, self._history,
            *updating_families(context, self._tables, self._preparer, self._holder, self._writer),
            *plain_families(context),
        ])  # fmt: skip
        self.auto_cdc = AutoCdcStatements(
            context, self._preparer, self._holder, self._reader, self._writer, self._tables
        )
        self.last: Receipt | None = None
        self._owns_background = background is None
        self._background = background or Background(
            spark, metastore, lambda: self._txns.settings, user=user, host=host, mode=compactor,
            end_old_leases=self.transactions.end_old_leases, session_locks=self.session_locks,
        )  # fmt: skip
        self.transactions.on_commit = self._background.committed

    def beside(self, spark: SparkSession) -> Runner:
        """A runner on another Spark session, with the same metastore, settings and compactor.

        It has a transaction of its own, and no temporary tables. It evaluates each query once.
        """
        return Runner(
            spark, self._metastore, self.settings, user=self._user, host=self._host,
            background=self._background, evaluates_once=True,
        )  # fmt: skip

    def run(self, text: str, args: Args, retries: int) -> DataFrame:
        """Run one statement; see ``Session.sql``."""

        def once() -> DataFrame:
            with file_errors(), self._missing.told(text), self._background.statement():
                return self._run(text, args)

        # Inside BEGIN … COMMIT a second run would see the same snapshot and fail again.
        retries = retries if self.transactions.is_plain else 0
        with cancelled_by_ctrl_c(self._spark):
            return again(once, retries, lambda: self.transactions.is_plain)

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self._txns.settings

    def resolve(self, parts: tuple[str, ...]) -> Table | None:
        """The ACID table of a name, or None."""
        self._temporary.need_kept()
        return self._names.peek_acid_table(parts)

    def qualify(self, parts: tuple[str, ...]) -> TableName | None:
        """The full name of a table; None for a name that is Spark's."""
        return self._names.qualify(parts)

    def read_table(
        self,
        parts: tuple[str, ...],
        *,
        row_id: bool,
        version: int | None = None,
        timestamp: date | str | None = None,
    ) -> DataFrame:
        """The live rows of a table or view, in the snapshot that a SELECT would see, or of an older
        version."""
        self.transactions.need_thread()
        self._temporary.need_kept()
        table = need_acid_table(self._spark, self._names.peek_table_or_view(parts), parts)
        if table.view is not None:
            need_no_version(table, row_id or version is not None or timestamp is not None)
            return self.run(f"SELECT * FROM {quoted_path(parts)}", None, 0)
        with file_errors():
            when = self._rows.travel.at(version, timestamp)
            return self._rows.of(table, row_id=row_id, when=when)

    def snapshot(
        self, timestamp: date | str | None, txn_id: int | None
    ) -> AbstractContextManager[None]:
        """See ``Session.snapshot``."""
        return self.transactions.pin_snapshot(
            lambda: self._rows.travel.of_all_tables(timestamp, txn_id)
        )

    def history(self, table: Table, limit: int | None) -> DataFrame:
        """See ``Session.history``."""
        with file_errors():
            return self._history.history(table, limit)

    def changes(
        self,
        table: Table,
        start: Moment,
        end: Moment | None,
        keys: Sequence[str] | None,
        net: bool,
    ) -> DataFrame:
        """See ``Session.changes``."""
        self.transactions.need_thread()
        with file_errors():
            return self._changes.changes_between(table, start, end, keys, net=net)

    def files(self, table: Table) -> DataFrame:
        """See ``Session.files``."""
        with file_errors():
            return self._shows.files(table)

    def events(self, path: str) -> DataFrame:
        """See ``Session.events``."""
        with file_errors():
            return self._shows.events(path)

    def close(self) -> None:
        """End the session's locks, stop the compactor, which may wait for them, abort the open
        transaction, and drop the temporary tables."""
        self.session_locks.close()
        if self._owns_background:
            self._background.close()
        if self.transactions.current is not None:
            self.transactions.current.abandon("its session was closed")
        self._temporary.close()
        self._txns.close()

    # ── say ──────────────────────────────────────────────────────────────────────────────────

    def _run(self, text: str, args: Args) -> DataFrame:
        self.transactions.need_thread()
        self._temporary.need_kept()
        clock = Clock()
        with clock("say"):
            said = new_statement_text(self._spark, text, args)
            text, self._partitions.args = said.text, said.args
            # Each name is looked up once here. Under the locks, the holder compares the tables.
            seen = cache(self._names.peek_entry)
            resolve = cache(lambda parts: self._names.acid_table_or_view(parts, seen(parts)))
            statement = parse(
                text,
                is_acid=lambda parts: resolve(parts) is not None,
                is_setting=is_setting,
                double_quoted_identifiers=said.double_quoted,
                plain=None if args else self._plain(),
            )
            self._of_transactions.allow(statement, text)
        readable = cache(
            lambda parts: resolve(parts) or self._names.readable_table(parts, seen(parts))
        )
        if (skipped := self._of_transactions.skipped(statement, text)) is not None:
            self.last = skipped
            return self._skipped(statement, said, skipped)
        if isinstance(statement, st.AutoCdc):
            self._warm_workers()
            self.last, counts = self.auto_cdc.run(statement, said, clock, readable)
            return counts
        if isinstance(statement, st.Dml | st.Undo):
            return self._change(statement, said, clock, readable)
        match statement:
            case st.SparkStatement():
                return self._reader.run_spark_statement(
                    statement, said.without_time, args, resolve, readable
                )
            case st.Explain():
                return self._explain(statement, said)
            case st.CreateTable() if statement.query is not None:
                return self._create_as_select(statement, said, clock)
        return self._command(statement, text)

    def _skipped(self, statement: st.Statement, said: StatementText, skipped: Receipt) -> DataFrame:
        """The result of a statement that is not run, because it was committed before.

        A wrong syntax is an error. Other errors are ignored: tables may have changed since.
        """
        if isinstance(statement, Changing):
            try:
                prepared = self._preparer.change(statement, said)
                if prepared.returning is not None:
                    return self._returned.none(prepared.returning, said)
            except AcidSqlError as error:
                if isinstance(error, SqlSyntaxError) or getattr(statement, "returning", None):
                    raise
        if isinstance(statement, st.AutoCdc):
            return self.auto_cdc.replay_counts_frame(skipped)
        return counts_frame(self._spark, skipped) if skipped.counts else nothing(self._spark)

    def _plain(self) -> LiteralRules | None:
        settings = self._txns.settings
        plain = LiteralRules(settings.values_max_rows, lambda: is_utc(self._spark))
        return plain if settings.fast_paths else None

    def _command(self, statement: st.Statement, text: str) -> DataFrame:
        need_relations(text)
        result = self._handlers[type(statement)](statement, text)
        if result is None or isinstance(result, DataFrame):
            return nothing(self._spark) if result is None else result
        self.last = result
        return showing(nothing(self._spark), result)

    def _explain(self, explain: st.Explain, said: StatementText) -> DataFrame:
        statement: st.Statement = explain.statement
        if isinstance(statement, Changing):
            prepared = self._preparer.change(statement, said)
            if explain.mode == "CHANGES":
                return self._previewer.changes(prepared, said)
            locks = self._holder.locks(statement, prepared, said)
            explains = self.auto_cdc if isinstance(statement, st.AutoCdc) else self._reader
            return explains.explain(prepared, said, explain.mode, locks)
        if isinstance(statement, st.CompactTable):
            return self.compactions.explain(statement, said.text)
        # Spark, too, explains its commands by name, because they run no job.
        plan = f"== Physical Plan ==\nExecute {type(statement).__name__}"
        return rows_frame(self._spark, "plan string", [(plan,)])

    # ── hold, do, keep ───────────────────────────────────────────────────────────────────────

    def _change(
        self, statement: st.Dml | st.Undo, said: StatementText, clock: Clock, resolve: Resolve
    ) -> DataFrame:
        """Run a statement that changes rows, in the session's transaction or in its own."""
        if may_need_workers(said.text, statement):
            self._warm_workers()
        with clock("say"):
            prepared = self._preparer.at_a_glance(statement, said, resolve)
            self._returned.keep(prepared)
        with self.transactions.changing_transaction(said.text) as transaction:
            with transaction.statement(statement_name(statement), said.text) as work:
                with clock("hold"):
                    held = self._holder.hold(transaction.txn, statement, said, prepared)
                self._writer.write(transaction, held, said, clock, work)
                returned = self._returned.of(held, work, said)
            with clock("keep"):
                self.transactions.end_of_statement(transaction)
        self.last = _receipt(said, transaction, work, clock, returns=returned is not None)
        return counts_frame(self._spark, self.last) if returned is None else returned

    def _create_as_select(
        self, statement: st.CreateTable, said: StatementText, clock: Clock
    ) -> DataFrame:
        """Run CREATE TABLE … AS SELECT. The commit creates the table together with its rows."""
        with clock("say"):
            prepared = self._preparer.create_as_select(statement, said)
            table = prepared.queries[0].table
            if self._tables.exists(statement, table.name):
                return nothing(self._spark)
        self._warm_workers()
        operation, own = "CREATE TABLE AS SELECT", self.transactions.own_transaction(said.text)
        noting = self._temporary.noting(table.name)
        with noting, own as transaction, transaction.statement(operation, said.text) as work:
            with clock("hold"):
                reads = [*map(read_lock, prepared.reads)]
                if not self._tables.lock_new(statement, table.name, reads, transaction, said.text):
                    return nothing(self._spark)
                prepared = self._holder.current(transaction.txn, statement, said, prepared)
                (query,) = prepared.queries
                table, place = self._tables.take_place(query.table, transaction)
                prepared = replace(prepared, queries=(replace(query, table=table),))
                snapshot = transaction.txn.snapshot(prepared.reads)
            held = Held(prepared, (None,), snapshot)
            self._writer.write(transaction, held, said, clock, work)
            with clock("keep"):
                transaction.commit(create_table=table, replaces=statement.or_replace, cleaned=place)
        self.last = _receipt(said, transaction, work, clock)
        return showing(nothing(self._spark), self.last)

    def _warm_workers(self) -> None:
        """Start Python workers while the statement is prepared, locked and planned."""
        if self._txns.settings.warm_workers == "statement":
            warm_workers(self._spark)

    def _same_rows(self, conflict: WriteConflict, ours: Sequence[str]) -> bool:
        return not self._txns.settings.conflicts_by_row or self._reader.is_row_conflict(
            conflict, ours
        )


def _receipt(
    said: StatementText,
    transaction: Transaction,
    work: Work,
    clock: Clock,
    *,
    returns: bool = False,
) -> Receipt:
    return receipt(
        said.text, transaction.id, work.published, clock.seconds, transaction.compaction,
        returns=returns, in_block=len(transaction.works) if transaction.is_block else 0,
    )  # fmt: skip
