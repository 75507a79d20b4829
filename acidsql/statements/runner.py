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

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import date
from functools import cache

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table, TableName
from acidsql.compaction.background import Background
from acidsql.errors import AcidSqlError, SqlSyntaxError
from acidsql.metastore.interface import Commit, Metastore, WriteConflict
from acidsql.plan.analysis.missing_names import MissingNames
from acidsql.plan.locking import read_lock
from acidsql.plan.rewrite import may_need_workers
from acidsql.plan.standins.names import NameResolver, need_acid_table
from acidsql.plan.standins.query import Resolve
from acidsql.settings import Settings, is_setting
from acidsql.sql.parsed import statements as st
from acidsql.sql.parser import LiteralRules, parse
from acidsql.sql.text.frames import need_relations
from acidsql.statements.cdc.auto_cdc import AutoCdcStatements
from acidsql.statements.context.current_txn import Transactions
from acidsql.statements.context.family import Context, all_handlers
from acidsql.statements.context.partition_specs import Partitions
from acidsql.statements.context.result import (
    Clock,
    Receipt,
    counts_frame,
    empty_frame,
    receipt,
    rows_frame,
    with_display,
)
from acidsql.statements.context.spark_databases import SparkDatabases
from acidsql.statements.context.statement_text import (
    Args,
    StatementText,
    is_utc,
    new_statement_text,
    statement_name,
)
from acidsql.statements.context.temporary_tables import TemporaryTables
from acidsql.statements.context.unit_of_work import Transaction, file_errors
from acidsql.statements.context.work import Work
from acidsql.statements.ddl.state_tables import StateTables
from acidsql.statements.ddl.transactions import TransactionStatements
from acidsql.statements.dml.hold import Holder, LockedStatement
from acidsql.statements.dml.prepare import Changing, Preparer
from acidsql.statements.dml.preview import Previewer
from acidsql.statements.dml.returning import ReturnedRows
from acidsql.statements.dml.write import Writer
from acidsql.statements.families import plain_families, updating_families
from acidsql.statements.maintenance.compactions import CompactionStatements
from acidsql.statements.maintenance.health import TableHealth
from acidsql.statements.maintenance.history import HistoryStatements
from acidsql.statements.maintenance.repair import TableRepairs
from acidsql.statements.queries.changes import ChangeFeed, Moment
from acidsql.statements.queries.reader import Reader
from acidsql.statements.queries.table_rows import TableRows
from acidsql.statements.queries.view_rows import need_no_version
from acidsql.statements.show.shows import ShowStatements
from acidsql.storage.columns import quoted_path
from acidsql.storage.spark.session.job_progress import cancelled_by_ctrl_c
from acidsql.storage.spark.session.jvm import composed_text_conf
from acidsql.storage.writing.warm_workers import warm_workers
from acidsql.txn import TxnManager
from acidsql.txn.retry import retry_transient


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
        last_receipt: The receipt of the last statement that changed something.
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
        self.transactions = Transactions(metastore, self._txns, self._is_row_conflict)
        self._temporary = TemporaryTables(metastore, self._txns)
        self._names = NameResolver(spark, self.transactions, self._temporary.names)
        self._missing = MissingNames(spark, metastore, self._names)
        self._partitions = Partitions(spark, self.transactions)
        context = Context(
            spark, metastore, self._txns, self.transactions, self._names,
            SparkDatabases(spark, metastore), self._partitions, self._temporary, host,
        )  # fmt: skip
        self._reader, self._tables = Reader(context), StateTables(context)
        self._transaction_statements = TransactionStatements(context)
        self.compactions = CompactionStatements(context)
        self._shows, self._rows = ShowStatements(context), TableRows(context)
        self._changes = ChangeFeed(context, self._rows.travel)
        self._history, self._returned_rows = HistoryStatements(context), ReturnedRows(context)
        self.checks, self.health = TableRepairs(context), TableHealth(context)
        self._preparer = Preparer(context, self._reader, self._tables)
        self._previewer = Previewer(context, self._reader)
        self._holder = Holder(context, self._preparer)
        self._writer = Writer(context, self._reader, evaluates_once=evaluates_once)
        self._handlers = all_handlers([
            self._tables, self._transaction_statements, self.compactions, self._shows,
            self._history,
            *updating_families(context, self._tables, self._preparer, self._holder, self._writer),
            *plain_families(context),
        ])  # fmt: skip
        self.auto_cdc = AutoCdcStatements(
            context, self._preparer, self._holder, self._reader, self._writer, self._tables
        )
        self.last_receipt: Receipt | None = None
        self._owns_background = background is None
        self._background = background or Background(
            spark, metastore, lambda: self._txns.settings, user=user, host=host, mode=compactor,
            end_old_leases=self.transactions.end_old_leases, session_locks=self.session_locks,
        )  # fmt: skip
        self.transactions.on_commit = self._background.on_committed

    def runner_for(self, spark: SparkSession) -> Runner:
        """A runner on another Spark session, with the same metastore, settings and compactor.

        The new runner has a transaction of its own, and no temporary tables. It evaluates each
        query once.
        """
        return Runner(
            spark, self._metastore, self.settings, user=self._user, host=self._host,
            background=self._background, evaluates_once=True,
        )  # fmt: skip

    def run(self, text: str, args: Args, retries: int) -> DataFrame:
        """Run one statement; see ``Session.sql``."""

        def run_once() -> DataFrame:
            explained = self._missing.explain_errors(text)
            with self._composing(), explained, self._background.statement():
                return self._run(text, args)

        # Inside BEGIN … COMMIT a second run would see the same snapshot and fail again.
        retries = retries if self.transactions.is_autocommit else 0
        with cancelled_by_ctrl_c(self._spark):
            return retry_transient(run_once, retries, lambda: self.transactions.is_autocommit)

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
        """The live rows of a table or view, as a SELECT would see them, or in an older version."""
        self.transactions.require_same_thread()
        self._temporary.need_kept()
        table = need_acid_table(self._spark, self._names.peek_table_or_view(parts), parts)
        if table.view is not None:
            need_no_version(table, row_id or version is not None or timestamp is not None)
            return self.run(f"SELECT * FROM {quoted_path(parts)}", None, 0)
        with self._composing():
            point_in_time = self._rows.travel.resolve_arguments(version, timestamp)
            return self._rows.live_rows(table, row_id=row_id, point_in_time=point_in_time)

    def snapshot(
        self, timestamp: date | str | None, txn_id: int | None
    ) -> AbstractContextManager[None]:
        """See ``Session.snapshot``."""
        return self.transactions.pin_snapshot(
            lambda: self._rows.travel.resolve_for_all_tables(timestamp, txn_id)
        )

    def history(self, table: Table, limit: int | None) -> DataFrame:
        """See ``Session.history``."""
        with self._composing():
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
        self.transactions.require_same_thread()
        with self._composing():
            return self._changes.changes_between(table, start, end, keys, net=net)

    def files(self, table: Table) -> DataFrame:
        """See ``Session.files``."""
        with self._composing():
            return self._shows.files(table)

    def events(self, path: str) -> DataFrame:
        """See ``Session.events``."""
        with self._composing():
            return self._shows.events(path)

    def close(self) -> None:
        """End the session's locks, stop the compactor, abort the open transaction, and drop the
        temporary tables.

        The locks end first, because the compactor may wait for them.
        """
        self.session_locks.close()
        if self._owns_background:
            self._background.close()
        if self.transactions.current is not None:
            self.transactions.current.abandon("its session was closed")
        self._temporary.close()
        self._txns.close()

    @contextmanager
    def _composing(self) -> Iterator[None]:
        """While the block runs, Spark reads composed text as it is meant, and an error of a file
        names the file."""
        with file_errors(), composed_text_conf(self._spark):
            yield

    # ── say ──────────────────────────────────────────────────────────────────────────────────

    def _run(self, text: str, args: Args) -> DataFrame:
        """Parse a statement and run it by its kind, once. Return its rows, its counts, or an empty
        DataFrame; ``last_receipt`` gets the receipt of a change."""
        self.transactions.require_same_thread()
        self._temporary.need_kept()
        clock = Clock()
        with clock("say"):
            statement_text = new_statement_text(self._spark, text, args)
            text, self._partitions.args = statement_text.text, statement_text.args
            # Each name is looked up once here. Under the locks, the holder compares the tables.
            peek_entry = cache(self._names.peek_entry)
            resolve = cache(lambda parts: self._names.acid_table_or_view(parts, peek_entry(parts)))
            statement = parse(
                text,
                is_ours=lambda parts: resolve(parts) is not None,
                is_setting=is_setting,
                double_quoted_identifiers=statement_text.double_quoted,
                plain=None if args else self._literal_rules(),
            )
            self._transaction_statements.require_allowed(statement, text)
        readable = cache(
            lambda parts: resolve(parts) or self._names.readable_table(parts, peek_entry(parts))
        )
        if (skipped := self._transaction_statements.replay_receipt(statement, text)) is not None:
            self.last_receipt = skipped
            return self._replayed_result(statement, statement_text, skipped)
        if isinstance(statement, st.AutoCdc):
            self._warm_workers()
            self.last_receipt, counts = self.auto_cdc.run(
                statement, statement_text, clock, readable
            )
            return counts
        if isinstance(statement, st.Dml | st.Undo):
            return self._run_change(statement, statement_text, clock, readable)
        match statement:
            case st.SparkStatement():
                return self._reader.run_spark_statement(
                    statement, statement_text.without_time, args, resolve, readable
                )
            case st.Explain():
                return self._explain(statement, statement_text)
            case st.CreateTable() if statement.query is not None:
                return self._create_as_select(statement, statement_text, clock)
        return self._run_command(statement, text)

    def _replayed_result(
        self, statement: st.Statement, statement_text: StatementText, receipt_of_first_run: Receipt
    ) -> DataFrame:
        """The result of a statement that is not run, because an earlier run has committed it.

        A wrong syntax is an error. Other errors are ignored: tables may have changed since.
        """
        if isinstance(statement, Changing):
            try:
                prepared = self._preparer.prepare_change(statement, statement_text)
                if prepared.returning is not None:
                    return self._returned_rows.empty_rows(prepared.returning, statement_text)
            except AcidSqlError as error:
                if isinstance(error, SqlSyntaxError) or getattr(statement, "returning", None):
                    raise
        if isinstance(statement, st.AutoCdc):
            return self.auto_cdc.replay_counts_frame(receipt_of_first_run)
        return (
            counts_frame(self._spark, receipt_of_first_run)
            if receipt_of_first_run.counts
            else empty_frame(self._spark)
        )

    def _literal_rules(self) -> LiteralRules | None:
        settings = self._txns.settings
        rules = LiteralRules(settings.values_max_rows, lambda: is_utc(self._spark))
        return rules if settings.fast_paths else None

    def _run_command(self, statement: st.Statement, text: str) -> DataFrame:
        """Run a statement by the method of its family. Return its rows, or an empty DataFrame that
        shows the receipt."""
        need_relations(text)
        result = self._handlers[type(statement)](statement, text)
        if result is None or isinstance(result, DataFrame):
            return empty_frame(self._spark) if result is None else result
        self.last_receipt = result
        return with_display(empty_frame(self._spark), result)

    def _explain(self, explain: st.Explain, statement_text: StatementText) -> DataFrame:
        """Return the rows of EXPLAIN, or the changes of EXPLAIN CHANGES. Nothing is run or
        locked."""
        statement: st.Statement = explain.statement
        if isinstance(statement, Changing):
            prepared = self._preparer.prepare_change(statement, statement_text)
            if explain.mode == "CHANGES":
                return self._previewer.changes(prepared, statement_text)
            locks = self._holder.locks(statement, prepared, statement_text)
            explainer = self.auto_cdc if isinstance(statement, st.AutoCdc) else self._reader
            return explainer.explain(prepared, statement_text, explain.mode, locks)
        if isinstance(statement, st.CompactTable):
            return self.compactions.explain(statement, statement_text.text)
        # Spark, too, explains its commands by name, because they run no job.
        plan = f"== Physical Plan ==\nExecute {type(statement).__name__}"
        return rows_frame(self._spark, "plan string", [(plan,)])

    # ── hold, do, keep ───────────────────────────────────────────────────────────────────────

    def _run_change(
        self,
        statement: st.Dml | st.Undo,
        statement_text: StatementText,
        clock: Clock,
        resolve: Resolve,
    ) -> DataFrame:
        """Run a statement that changes rows, in the session's transaction or in its own."""
        if may_need_workers(statement_text.text, statement):
            self._warm_workers()
        with clock("say"):
            prepared = self._preparer.prepare_at_a_glance(statement, statement_text, resolve)
            self._returned_rows.keep_files(prepared)
        with self.transactions.changing_transaction(statement_text.text) as transaction:
            with transaction.statement(statement_name(statement), statement_text.text) as work:
                with clock("hold"):
                    held = self._holder.hold(transaction.txn, statement, statement_text, prepared)
                self._writer.write(transaction, held, statement_text, clock, work)
                returned = self._returned_rows.rows(held, work, statement_text)
            with clock("keep"):
                self.transactions.end_statement(transaction)
        self.last_receipt = _receipt(
            statement_text, transaction, work, clock, returns_rows=returned is not None
        )
        return counts_frame(self._spark, self.last_receipt) if returned is None else returned

    def _create_as_select(
        self, statement: st.CreateTable, statement_text: StatementText, clock: Clock
    ) -> DataFrame:
        """Run CREATE TABLE … AS SELECT. The commit creates the table together with its rows."""
        with clock("say"):
            prepared = self._preparer.prepare_create_as_select(statement, statement_text)
            table = prepared.queries[0].table
            if self._tables.exists(statement, table.name):
                return empty_frame(self._spark)
        self._warm_workers()
        operation, own_transaction = (
            "CREATE TABLE AS SELECT",
            self.transactions.own_transaction(statement_text.text),
        )
        noting = self._temporary.track(table.name)
        with (
            noting,
            own_transaction as transaction,
            transaction.statement(operation, statement_text.text) as work,
        ):
            with clock("hold"):
                reads = [*map(read_lock, prepared.reads)]
                if not self._tables.lock_new(
                    statement, table.name, reads, transaction, statement_text.text
                ):
                    return empty_frame(self._spark)
                prepared = self._holder.prepare_under_locks(
                    transaction.txn, statement, statement_text, prepared
                )
                (query,) = prepared.queries
                table, cleanup_id = self._tables.claim_directory(query.table, transaction)
                prepared = replace(prepared, queries=(replace(query, table=table),))
                snapshot = transaction.txn.snapshot(prepared.reads)
            held = LockedStatement(prepared, (None,), snapshot)
            self._writer.write(transaction, held, statement_text, clock, work)
            with clock("keep"):
                transaction.commit(
                    commit=Commit(
                        created_table=table,
                        is_replacement=statement.or_replace,
                        cleanup_id=cleanup_id,
                    )
                )
        self.last_receipt = _receipt(statement_text, transaction, work, clock)
        return with_display(empty_frame(self._spark), self.last_receipt)

    def _warm_workers(self) -> None:
        """Start Python workers while the statement is prepared, locked and planned."""
        if self._txns.settings.warm_workers == "statement":
            warm_workers(self._spark)

    def _is_row_conflict(self, conflict: WriteConflict, own_directories: Sequence[str]) -> bool:
        return not self._txns.settings.conflicts_by_row or self._reader.is_row_conflict(
            conflict, own_directories
        )


def _receipt(
    statement_text: StatementText,
    transaction: Transaction,
    work: Work,
    clock: Clock,
    *,
    returns_rows: bool = False,
) -> Receipt:
    """Make the receipt of a statement that was run in a transaction."""
    return receipt(
        statement_text.text, transaction.id, work.published, clock.seconds, transaction.compaction,
        returns_rows=returns_rows, in_block=len(transaction.works) if transaction.is_block else 0,
    )  # fmt: skip
