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

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table, TableName
from acidsql.compaction.background import Background
from acidsql.costs import Costs, recorded_costs
from acidsql.errors import AcidSqlError, SqlSyntaxError
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Metastore
from acidsql.plan.analysis.syntax_errors import explained_syntax_errors
from acidsql.plan.rewrite import may_need_workers
from acidsql.plan.standins.names import Glance
from acidsql.plan.standins.query import Resolve
from acidsql.settings import Settings, setting_name
from acidsql.sql.parsed import statements as st
from acidsql.sql.parser import LiteralRules, parse
from acidsql.sql.text.frames import need_relations
from acidsql.sql.text.tokens import SqlText
from acidsql.statements.context.environment import file_errors, statement_environment
from acidsql.statements.context.result import (
    Clock,
    Receipt,
    ReceiptWithRows,
    counts_frame,
    empty_frame,
    receipt,
    text_frame,
    with_display,
)
from acidsql.statements.context.statement_text import (
    Args,
    StatementText,
    is_utc,
    new_statement_text,
    statement_name,
)
from acidsql.statements.dml.prepare import Changing
from acidsql.statements.queries.changes import Moment
from acidsql.statements.queries.view_rows import refuse_version
from acidsql.statements.recognition import Recognized
from acidsql.statements.wiring import Wiring
from acidsql.storage.columns import quoted_path
from acidsql.storage.spark.session.job_progress import cancelled_by_ctrl_c
from acidsql.storage.spark.session.jvm import composed_text_conf, is_own_catalog
from acidsql.txn.retry import retry_transient


class Runner:
    """Runs the statements of one session.

    Args:
        spark: The Spark session.
        metastore: Keeps tables and transactions.
        settings: Limits and time-outs.
        user: The user's name. Sessions that wait for our locks see the user and the host.
        host: The host of this process.
        compactor: ``background``, ``inline`` or ``off``; ignored if there is a ``background``.
        background: The compactor of another runner of the same metastore, to share.

    After each commit the compactor is told of the transaction.

    Attributes:
        last_receipt: The receipt of the last statement that changed something.
        last_error: The class and the text of the last error of a statement, or None. The rows of a
            query may fail later, which is not noted.
        last_costs: The costs of the last statement of any kind, also of one that failed.
        transactions: Decides which transaction a statement runs in.
        session_locks: The locks that the session holds beyond its transactions.
        compactions, auto_cdc, checks, health: Run statements of their kinds, or methods about them.
    """

    def __init__(
        self, spark: SparkSession, metastore: Metastore, settings: Settings, *,
        user: str, host: str, compactor: str = "off", background: Background | None = None,
        evaluates_once: bool = False,
    ) -> None:  # fmt: skip
        self._spark, self._metastore, self._user, self._host = spark, metastore, user, host
        self._wiring = wiring = Wiring(
            spark, metastore, settings, user=user, host=host, evaluates_once=evaluates_once
        )
        self._txns, self.transactions = wiring.txns, wiring.transactions
        self.session_locks = wiring.txns.session_locks
        self.compactions, self.auto_cdc = wiring.compactions, wiring.auto_cdc
        self.checks, self.health = wiring.checks, wiring.health
        self.last_receipt: Receipt | None = None
        self.last_costs: Costs | None = None
        self.last_error: str | None = None
        self._owns_background = background is None
        self._background = background or Background(
            spark, metastore, lambda: self._txns.settings, user=user, host=host, mode=compactor,
            end_old_leases=self.transactions.end_old_leases, session_locks=self.session_locks,
        )  # fmt: skip
        self.transactions.on_commit = self._background.on_committed

    def run(self, text: str, args: Args, retries: int) -> DataFrame:
        """Run one statement, and return its rows or counts; other statements have an empty result.
        Ctrl+C cancels the statement's Spark jobs. An OSError, but for a ConnectionError, becomes a
        WriteError that names the file, and an error about a missing table or view tells more about
        the name.

        Args:
            text: The text of the statement.
            args: The values of its parameters.
            retries: How often a statement outside of a transaction runs again at most after a
                TransientTxnError, such as a write conflict. In a transaction there is no retry.
        """

        def run_once() -> DataFrame:
            explained = self._wiring.missing.explain_errors(text)
            syntax_errors = explained_syntax_errors(text)
            with file_errors(), explained, syntax_errors, self._background.statement():
                return self._run(text, args)

        # Inside BEGIN … COMMIT a second run would see the same snapshot and fail again.
        retries = retries if self.transactions.is_autocommit else 0
        with self._noted_costs(), cancelled_by_ctrl_c(self._spark):
            return retry_transient(run_once, retries, lambda: self.transactions.is_autocommit)

    @contextmanager
    def _noted_costs(self) -> Iterator[None]:
        """Note the costs of the statement that the block runs in ``last_costs``, also if the block
        fails, and its error in ``last_error``. If the block has set a new ``last_receipt``, this
        gets the costs, too."""
        receipt_before = self.last_receipt
        with recorded_costs() as recorder:
            try:
                yield
            except Exception as error:
                self.last_error = f"{type(error).__name__}: {error}"
                raise
            finally:
                self.last_costs = recorder.costs
                if (receipt := self.last_receipt) is not None and receipt is not receipt_before:
                    self.last_receipt = replace(receipt, costs=self.last_costs)

    # ── say ──────────────────────────────────────────────────────────────────────────────────

    def _run(self, text: str, args: Args) -> DataFrame:
        """Parse a text, and hand the statement to the object that runs its kind. Return the rows,
        which are empty or counts if the statement only changes something. A statement of acidsql's
        runs under the confs that composed SQL needs; afterwards the session has its own again.

        Raises:
            TxnError: Another thread opened the session's transaction, temporary tables were lost,
                or the transaction only reads.
            UnsupportedError: The statement cannot be part of the open transaction.
        """
        wiring, clock, glance = self._wiring, Clock(), Glance(self._wiring.names)
        self.transactions.require_same_thread()
        wiring.temporary.require_existing()
        with clock("say"):
            statement_text = new_statement_text(self._spark, text, args)
            text, wiring.partitions.args = statement_text.text, statement_text.args
            statement = parse(
                text,
                is_ours=lambda parts: glance.find(parts) is not None,
                setting_name=setting_name,
                double_quoted_identifiers=statement_text.double_quoted,
                plain=None if args else self._literal_rules(),
            )
            wiring.transaction_statements.require_allowed(statement, text)
        # SET and RESET of Spark's change the settings that composed text would need.
        if isinstance(statement, st.SparkStatement):
            lazy_text = statement_text.without_time
            return wiring.spark_statements.run(statement, lazy_text, args, glance)
        with composed_text_conf(self._spark):
            return self._run_own(statement, statement_text, clock, glance)

    def _run_own(
        self, statement: st.Statement, statement_text: StatementText, clock: Clock, glance: Glance
    ) -> DataFrame:
        """Hand a statement that is not Spark's to the object that runs its kind, and return its
        rows or counts; other statements have an empty result. The receipt of a statement that
        changes something is noted in ``last_receipt``. A statement that an earlier run of the same
        program has committed (``replay_receipt``) is not run again."""
        wiring, text = self._wiring, statement_text.text
        if (skipped := wiring.transaction_statements.replay_receipt(statement, text)) is not None:
            self.last_receipt = skipped
            return self._replayed_result(statement, statement_text, skipped)
        match statement:
            case _ if isinstance(statement, st.Dml | st.Undo):
                return self._change(statement, statement_text, clock, glance.find_readable)
            case st.AutoCdc():
                self.last_receipt, counts = self.auto_cdc.run(
                    statement, statement_text, clock, glance.find_readable
                )
                return counts
            case st.Explain():
                return self._explain(statement, statement_text)
            case st.CreateTable() if statement.query is not None:
                return self._result_frame(
                    wiring.filled_tables.create(statement, statement_text, clock)
                )
        need_relations(text)
        return self._result_frame(wiring.handlers[type(statement)](statement, text))

    # ── hold, do, keep ───────────────────────────────────────────────────────────────────────

    def _change(
        self,
        statement: st.Dml | st.Undo,
        statement_text: StatementText,
        clock: Clock,
        resolve: Resolve,
    ) -> DataFrame:
        """Run a statement that changes rows, in the session's transaction or in its own, and note
        its receipt. Return the rows of RETURNING, lazily, or else the counts (``counts_frame``)."""
        wiring, phases, text = self._wiring, self._wiring.phases, statement_text.text
        if may_need_workers(text, statement):
            wiring.context.warm_workers()
        with clock("say"):
            prepared = phases.preparer.prepare_at_a_glance(statement, statement_text, resolve)
            wiring.returned_rows.keep_files(prepared)
        with self.transactions.changing_transaction(text) as transaction:
            with transaction.statement(statement_name(statement), text) as work:
                with clock("hold"):
                    held = phases.holder.hold(transaction.txn, statement, statement_text, prepared)
                with phases.repeated_matches.explained(statement, held, text):
                    phases.writer.write(transaction, held, statement_text, clock, work)
                returned = wiring.returned_rows.rows(held, work, statement_text)
            with clock("keep"):
                self.transactions.end_statement(transaction)
        self.last_receipt = receipt(
            text, transaction.id, work.published, clock.seconds, transaction.compaction,
            returns_rows=returned is not None,
            in_block=len(transaction.works) if transaction.is_block else 0,
        )  # fmt: skip
        return counts_frame(self._spark, self.last_receipt) if returned is None else returned

    # ── results ──────────────────────────────────────────────────────────────────────────────

    def _result_frame(self, result: DataFrame | Receipt | ReceiptWithRows | None) -> DataFrame:
        """Return a DataFrame as it is; for a receipt, its rows, or an empty DataFrame if it has
        none, which shows the receipt to a person, and note the receipt in ``last_receipt``; for
        None, an empty DataFrame."""
        if isinstance(result, DataFrame):
            return result
        if result is None:
            return empty_frame(self._spark)
        if isinstance(result, ReceiptWithRows):
            self.last_receipt = result.receipt
            return with_display(result.rows, result.receipt)
        self.last_receipt = result
        return with_display(empty_frame(self._spark), result)

    def _replayed_result(
        self, statement: st.Statement, statement_text: StatementText, skipped_receipt: Receipt
    ) -> DataFrame:
        """Return the result of a statement that is not run, because an earlier run has committed
        it. With RETURNING: no rows, in RETURNING's columns. AUTO CDC: its own row of counts, with
        the counts of ``skipped_receipt`` (``replay_counts_frame``). Any other: the counts of
        ``skipped_receipt``, all 0 (``replay_receipt``); or, if it has none, an empty DataFrame.

        A statement that changes rows is prepared. A syntax error in it is raised, and each error if
        it has RETURNING. Other errors are ignored: tables may have changed since.
        """
        if isinstance(statement, Changing):
            try:
                prepared = self._wiring.phases.preparer.prepare_change(statement, statement_text)
                if prepared.returning is not None:
                    return self._wiring.returned_rows.empty_rows(prepared.returning, statement_text)
            except AcidSqlError as error:
                if isinstance(error, SqlSyntaxError) or getattr(statement, "returning", None):
                    raise
        if isinstance(statement, st.AutoCdc):
            return self.auto_cdc.replay_counts_frame(skipped_receipt)
        if skipped_receipt.counts:
            return counts_frame(self._spark, skipped_receipt)
        return empty_frame(self._spark)

    def _literal_rules(self) -> LiteralRules | None:
        """Return the rules by which the parser may itself read the rows of VALUES if they have only
        literals; None if fast paths are off."""
        settings = self._txns.settings
        rules = LiteralRules(settings.values_max_rows, lambda: is_utc(self._spark))
        return rules if settings.fast_paths else None

    def _explain(self, explain: st.Explain, statement_text: StatementText) -> DataFrame:
        """Return the rows of EXPLAIN; the statement is not run and nothing is locked. A statement
        that changes rows shows its plan or, with EXPLAIN CHANGES, the changes; COMPACT shows its
        plan; others only their name."""
        wiring, statement = self._wiring, explain.statement
        if isinstance(statement, Changing):
            prepared = wiring.phases.preparer.prepare_change(statement, statement_text)
            if explain.mode == "CHANGES":
                return wiring.previewer.changes(prepared, statement_text)
            locks = wiring.phases.holder.locks(statement, prepared, statement_text)
            explainer = self.auto_cdc if isinstance(statement, st.AutoCdc) else wiring.explainer
            return explainer.explain(prepared, statement_text, explain.mode, locks)
        if isinstance(statement, st.CompactTable):
            return self.compactions.explain(statement, statement_text.text)
        # Spark, too, explains its commands by name, because they run no job.
        plan = f"== Physical Plan ==\nExecute {type(statement).__name__}"
        return text_frame(self._spark, "plan", [plan])

    # ── what spark.sql may hand over ─────────────────────────────────────────────────────────

    def recognize(self, text: SqlText) -> Recognized | None:
        """Return the statement of a text of ``spark.sql`` if it concerns acidsql
        (``Recognition.recognize``); None if Spark alone is to run it. Nothing is run."""
        return self._wiring.recognition.recognize(text, self._literal_rules())

    def find_readable(self, parts: tuple[str, ...]) -> Table | None:
        """Return the table or view that acidsql reads by a name in the place of Spark
        (``Recognition.find``); None for any other name."""
        return self._wiring.recognition.find(parts)

    def find_hidden(self, parts: tuple[str, ...]) -> Table | None:
        """Return the ACID table or view whose name a new table of Spark's would have
        (``Recognition.find_hidden``); None if the name is free."""
        return self._wiring.recognition.find_hidden(parts)

    def may_be_ours(self, parts: tuple[str, ...]) -> bool:
        """Whether the metastore has a table or view of this name, which a temporary view may
        hide."""
        return self._wiring.names.may_be_ours(parts)

    def is_in_spark(self, parts: tuple[str, ...]) -> bool:
        """Whether Spark itself has a table or view of this name."""
        return self._wiring.names.is_in_spark(parts)

    def share_database(self, parts: tuple[str, ...]) -> None:
        """Make the database of a new ACID table in the metastore, if only Spark has it so far.
        ``parts``: the table's name."""
        name = self.qualify(parts)
        if name is None or self._metastore.get_database(name.database) is not None:
            return
        if self._wiring.context.databases.exists(name.database):
            self.run(f"CREATE DATABASE IF NOT EXISTS {quoted_path((name.database,))}", None, 0)

    # ── without a statement ──────────────────────────────────────────────────────────────────

    def runner_for(self, spark: SparkSession) -> Runner:
        """Return a runner on another Spark session, with the same metastore, settings and
        compactor.

        The new runner has a transaction of its own, and no temporary tables. It evaluates each
        query only once (``Writer``).
        """
        return Runner(
            spark, self._metastore, self.settings, user=self._user, host=self._host,
            background=self._background, evaluates_once=True,
        )  # fmt: skip

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self._txns.settings

    def resolve(self, parts: tuple[str, ...]) -> Table | None:
        """Return the ACID table of a name; None if there is none, also for a view or another table.
        Its constraints may be outdated, because a cache may answer. Raise TxnError if temporary
        tables were lost."""
        self._wiring.temporary.require_existing()
        return acid_table(self._wiring.names.find_entry(parts, at_a_glance=True))

    def acid_names(self, database: str | None, pattern: str | None = None) -> list[str]:
        """Return the names of the ACID tables and views of a database that SHOW TABLES LIKE the
        pattern shows; None: of the current one. [] if there is no such database, or another catalog
        is current. Any thread may call this."""
        if not is_own_catalog(self._spark):
            return []
        name = self._wiring.names.current_database if database is None else database.lower()
        return self._wiring.shows.acid_names(name, pattern)

    def acid_columns(self, parts: tuple[str, ...]) -> list[str]:
        """Return the names of the columns of an ACID table or view; [] if there is none of this
        name. Any thread may call this."""
        table = self._wiring.names.find(parts, at_a_glance=True)
        return [] if table is None else [column.name for column in table.all_columns]

    def require_table(self, parts: tuple[str, ...]) -> Table:
        """Return the ACID table of a name (see ``resolve``). Raise CatalogError, with the names of
        similar tables, if there is none."""
        return self._wiring.missing.require_table(self.resolve(parts), parts)

    def similar_tables_hint(self, parts: tuple[str, ...]) -> str:
        """Return a question, with a blank before it, that names tables with names like this one,
        which no table has; "" if there are none."""
        return self._wiring.missing.hint(parts)

    def qualify(self, parts: tuple[str, ...]) -> TableName | None:
        """Return the full name that an ACID table of this name has or would have; None for a name
        that only Spark can have."""
        return self._wiring.names.qualify(parts)

    def read_table(
        self, parts: tuple[str, ...], *, row_id: bool, version: int | None = None,
        timestamp: date | str | None = None,
    ) -> DataFrame:  # fmt: skip
        """Return the live rows of a table or view, lazily, as a SELECT would see them, or a table's
        in an older version; ``row_id`` adds ``row__id``.

        Raises:
            CatalogError: There is no ACID table or view of this name.
            UnsupportedError: A view, or an insert-only table, has no row ids; a view, or a
                metastore without versions, no older version.
            VersionNotFoundError: There is no such version or time.
            TxnError: Another thread has a transaction open in this session, or temporary tables
                were lost.
        """
        self.transactions.require_same_thread()
        self._wiring.temporary.require_existing()
        names = self._wiring.names
        found_table = names.find(parts, at_a_glance=True)
        table = self._wiring.missing.require_table(found_table, parts)
        if table.view is not None:
            refuse_version(table, row_id or version is not None or timestamp is not None)
            return self.run(f"SELECT * FROM {quoted_path(parts)}", None, 0)
        with statement_environment(self._spark):
            point_in_time = self._wiring.rows.travel.resolve_arguments(version, timestamp)
            return self._wiring.rows.live_rows(table, row_id=row_id, point_in_time=point_in_time)

    def snapshot(
        self, timestamp: date | str | None, txn_id: int | None
    ) -> AbstractContextManager[None]:
        """Return a context manager. In its block all reads see one snapshot of all tables: of now,
        of the last commit until ``timestamp``, or of the commit of ``txn_id``. Changes are refused.
        To enter it raises TxnError if a transaction or another snapshot is open."""
        return self.transactions.pin_snapshot(
            lambda: self._wiring.rows.travel.resolve_for_all_tables(timestamp, txn_id)
        )

    def history(self, table: Table, limit: int | None) -> DataFrame:
        """Return the versions and finished compactions of a table as rows, the newest first.
        ``limit``: how many rows at most; None: all."""
        with statement_environment(self._spark):
            return self._wiring.history.history(table, limit)

    def changes(
        self, table: Table, start: Moment, end: Moment | None, keys: Sequence[str] | None, net: bool
    ) -> DataFrame:
        """Return the changes of a table between two versions or times, both included, lazily: a row
        for each inserted or deleted row, or image of an updated one. ``end``: None means now.
        ``keys``: the columns that pair a deleted and a new row as an update. ``net``: only what is
        different in the end."""
        self.transactions.require_same_thread()
        with statement_environment(self._spark):
            return self._wiring.changes.changes_between(table, start, end, keys, net=net)

    def files(self, table: Table) -> DataFrame:
        """Return a row for each directory and file of a table, also of invisible ones, with its
        state in the current snapshot."""
        with statement_environment(self._spark):
            return self._wiring.shows.files(table)

    def events(self, path: str) -> DataFrame:
        """Return the events in a file, or in a base, delta or delete_delta directory, lazily: a row
        for each event."""
        with statement_environment(self._spark):
            return self._wiring.shows.events(path)

    def close(self) -> None:
        """End the session's locks, stop the compactor unless it is another runner's, abort the open
        transaction, drop the temporary tables, and end the leases and the heartbeat.

        The locks end first, because the compactor may wait for them.
        """
        self.session_locks.close()
        if self._owns_background:
            self._background.close()
        if self.transactions.current is not None:
            self.transactions.current.abandon("its session was closed")
        self._wiring.temporary.close()
        self._txns.close()
