"""The public API: ``connect`` opens a session, and ``Session`` runs statements by ``runner``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from acidsql.api.checks import CheckMethods
from acidsql.api.dataframes.methods import DataFrameMethods
from acidsql.api.extension.doors import close_doors, open_doors
from acidsql.api.extension.extension import Extension
from acidsql.api.health import HealthMethods
from acidsql.api.history import HistoryMethods
from acidsql.api.info import InfoMethods
from acidsql.api.migration import Migration
from acidsql.api.opening import (
    conf,
    conf_settings,
    has_password,
    is_hive,
    may_extend,
    open_hive,
    open_metastore,
    warehouse_location,
    warn_of_missing_syncs,
)
from acidsql.api.streams import StreamMethods
from acidsql.api.unknown_tables import note_tables_of
from acidsql.arguments import checked, checked_while_open, need_count
from acidsql.compaction.service import Service
from acidsql.costs import Costs
from acidsql.errors import SettingError
from acidsql.metastore.compaction_queue import REQUESTABLE_TYPES, CompactionType
from acidsql.metastore.interface import Metastore
from acidsql.plan.analysis.evaluation_errors import show_users_text
from acidsql.settings import SPARK_PREFIX, Settings
from acidsql.sql.text.parameters import sql_values
from acidsql.sql.text.tokens import SqlText
from acidsql.statements.context.frames import named_frames
from acidsql.statements.context.result import Receipt
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.storage.files.missing import translate_file_errors
from acidsql.storage.reading.server import need_workers
from acidsql.storage.spark.given_rows import Rows
from acidsql.storage.spark.session.data_source import register_data_source
from acidsql.storage.spark.session.quiet import new_spark
from acidsql.storage.spark.session.store_conf import hand_over_store_settings
from acidsql.storage.spark.views import drop_unneeded, drop_unneeded_briefly
from acidsql.storage.writing.warm_workers import warm_workers

_newest: list[Session] = []


@checked(spark="A metastore's URL goes into metastore=…, a directory into warehouse=….")
def connect(
    spark: SparkSession | None = None,
    *,
    warehouse: str | Path | None = None,
    metastore: str | None = None,
    retries: int = 0,
    compactor: str = "background",
    settings: Mapping[str, str | bool | float] | None = None,
    extend: bool | None = None,
) -> Session:
    """Open a new, independent session.

    Args:
        spark: The Spark session to run in. Default: the active session, else a new, quiet one.
        warehouse: The directory of the tables, on ``file:``, ``hdfs:`` or an object store
            (``s3a:`` …). Default: the Spark conf ``spark.acidsql.warehouse``, else
            ``spark.sql.warehouse.dir``. Not for a Hive Metastore, which has one of its own.
        metastore: The metastore's URL. ``thrift://host:9083`` is a Hive Metastore 4 or 3.1;
            several servers are separated by commas. Default: the Spark conf
            ``spark.acidsql.metastore``, else an SQLite file in the warehouse.
        retries: How often to run a statement again, on a new snapshot, after it failed because of
            another transaction (``TransientTxnError``).
        compactor: How the tables that this session writes are compacted. ``background``: in a
            thread, while no statement runs, with at most a quarter of the task slots. ``inline``:
            by the statement that made a compaction necessary, before it returns. ``off``: not by
            this session. Run ``acidsql compactor`` or ``ALTER TABLE … COMPACT`` instead.
        settings: Settings by Hive's names (``{"hive.txn.timeout": "60s"}``). They take precedence
            over the Spark conf ``spark.acidsql.<name>``.
        extend: Let Spark's own calls of this Spark session know ACID tables, until the session is
            closed: ``spark.sql``, ``df.write`` and others (``acidsql/api/extension``). Default: the
            Spark conf ``spark.acidsql.extend``, else no. The newest of several sessions answers.

    Returns:
        The session, the newest for ``%%acidsql``. Close it, or use it as a context manager.

    Raises:
        SettingError: ``compactor`` or a setting's name or value is unknown, the warehouse cannot
            be made, ``metastore`` is missing and the warehouse is not local, Spark's workers
            cannot run this package, or the server of Spark Connect does not see the warehouse.
        MetastoreError: The metastore cannot be opened.
    """
    if spark is None:
        spark = SparkSession.getActiveSession() or new_spark({})
    need_count(retries, "retries")
    if compactor not in ("background", "inline", "off"):
        raise SettingError(f"compactor='{compactor}' is not one of background, inline, off.")
    chosen = Settings.of({**conf_settings(spark), **(settings or {})})
    _choose_hdfs_client(spark, chosen)
    hand_over_store_settings(spark)
    store_url = (conf(spark, "metastore") or None) if metastore is None else metastore
    store, place = _open_store(spark, warehouse, store_url, chosen)
    warn_of_missing_syncs(place)
    _prepare_spark(spark, place, store_url, chosen)
    session = Session(spark, place, store, chosen, retries, compactor)
    if may_extend(spark) if extend is None else extend:
        session.extend()
    note_tables_of(session)
    _newest[:] = [session]
    return session


def _choose_hdfs_client(spark: SparkSession, settings: Settings) -> None:
    """Put the client for HDFS that the settings name into Spark's conf, from where this process and
    the workers get it, unless it is the one that they use anyway."""
    if settings.hdfs_client != (conf(spark, "hdfs.client") or Settings().hdfs_client):
        spark.conf.set(f"{SPARK_PREFIX}hdfs.client", settings.hdfs_client)


def _open_store(
    spark: SparkSession, warehouse: str | Path | None, url: str | None, settings: Settings
) -> tuple[Metastore, str]:
    """Open the metastore at a URL or, without one, in the warehouse that the argument of
    ``connect`` or the Spark conf names, and return it with the location of the warehouse. Raise
    the errors of ``connect``."""
    where = (conf(spark, "warehouse") or None) if warehouse is None else str(warehouse)
    if is_hive(url):
        return open_hive(url, where)
    place = warehouse_location(
        str(spark.conf.get("spark.sql.warehouse.dir")) if where is None else where
    )
    return open_metastore(url, place, settings), place


def _prepare_spark(
    spark: SparkSession, warehouse: str, url: str | None, settings: Settings
) -> None:
    """Let Spark's workers run this package over the warehouse, let Spark know the format
    ``acidsql`` with the metastore at ``url``, and raise acidsql's errors about files of ACID tables
    and about the user's text. Raise SettingError if the workers cannot run the package, or do not
    see the warehouse."""
    need_workers(spark, warehouse)
    register_data_source(spark, _source_defaults(warehouse, url))
    if settings.warm_workers == "connect":
        warm_workers(spark)
    translate_file_errors()
    show_users_text()


def _source_defaults(warehouse: str, url: str | None) -> dict[str, str]:
    """Return the options with which ``format("acidsql")`` finds a session's metastore. A URL with a
    password is not among them, because Spark would show it: they say that the environment must have
    it, lest the metastore be taken for the SQLite file of the warehouse."""
    from pyspark_acidsql import IN_ENVIRONMENT  # here: many programs do not need the format

    defaults = {} if is_hive(url) else {"warehouse": warehouse}
    if url is None:
        return defaults
    return defaults | ({IN_ENVIRONMENT: "true"} if has_password(url) else {"metastore": url})


class Session(
    Migration, StreamMethods, HistoryMethods, CheckMethods, HealthMethods, InfoMethods,
    DataFrameMethods,
):  # fmt: skip
    """Runs SQL statements over ACID tables. ``connect`` opens a session.

    Attributes:
        spark: The Spark session.
        warehouse: The directory of the tables.
        metastore: The store of tables and transactions.
        last: The receipt of the last statement that changed something, or None.
        costs: The costs of the last statement of any kind, or None.
    """

    _extension: Extension | None = None

    @checked_while_open
    def extend(self, is_on: bool = True) -> None:
        """Let Spark's own calls of this Spark session know ACID tables until ``close``, as
        ``connect(extend=True)`` does.

        Args:
            is_on: False gives everything back, as ``close`` does. What is so already stays so.
        """
        with self._lock:
            if is_on and self._extension is None:
                self._extension = Extension(self)
                open_doors(self._extension)
            elif not is_on:
                self._give_back()

    def _give_back(self) -> None:
        """Take Spark's own calls from this session, if it has them."""
        if self._extension is not None:
            close_doors(self._extension)
            self._extension.is_in_charge = False
            self._extension = None

    @property
    def last(self) -> Receipt | None:
        """The receipt of the last statement that changed something; None if there was none."""
        return self._runner.last_receipt

    @property
    def costs(self) -> Costs | None:
        """What the last statement cost: one of any kind, also SELECT, and one that failed. None if
        there was none. ``last.costs`` are those of the last statement that changed something."""
        return self._runner.last_costs

    @checked_while_open(frames="The values of parameters go into args.")
    def sql(
        self,
        text: str,
        args: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        retries: int | None = None,
        txn_app_id: str | None = None,
        txn_version: int | None = None,
        **frames: Rows,
    ) -> DataFrame:
        """Run one statement.

        Args:
            text: The statement. It may end with one ``;``.
            args: Values of parameters: a dict for ``:name``, a list for ``?``. numpy's scalars are
                taken, too. None, and what pandas and numpy call missing, is NULL.
            retries: As in ``connect``, but for this statement only.
            txn_app_id: A name for a program that may run the same statement again.
            txn_version: The number of the statement, which grows. If this number, or a higher one,
                was committed under this name before, the statement is skipped.
            **frames: DataFrames that the statement reads, or what ``spark.createDataFrame`` takes:
                of pandas, of pyarrow, or a list of dicts. It names them in braces, as in
                ``spark.sql``: ``acid.sql("MERGE INTO t USING {news} n ON …", news=df)``. Without
                another alias, the name is the alias.

        Returns:
            SELECT, SHOW, DESCRIBE and EXPLAIN: the rows, lazily. INSERT, UPDATE, DELETE and MERGE:
            one row with the bigint columns num_affected_rows, num_inserted_rows,
            num_updated_rows, num_deleted_rows, txn_id and write_id. A multi-insert gives one row
            for each branch. write_id is NULL if nothing changed. AUTO CDC adds num_records,
            num_stale_records and num_duplicate_records. With RETURNING: the changed rows, lazily
            (of an INSERT OVERWRITE the new rows); ``last`` has the counts. Any other statement: no
            rows, no columns.

        Raises:
            SqlError: The text is wrong. Nothing was done.
            TxnError: The transaction failed. After a TransientTxnError run the statement again.
                After a CommitUnknownError ask ``txn_state``.
            AcidSqlError: Any other error, see ``acidsql.errors``. The table is as it was.
        """
        need_count(retries, "retries")
        remaining_retries = self._retries if retries is None else retries
        if txn_app_id is not None or txn_version is not None:
            return self._run_numbered(
                text, args, remaining_retries, txn_app_id, txn_version, frames
            )
        drop_unneeded(self.spark)
        text = SqlText(text)
        with self._lock, named_frames(self.spark, text, sql_values(args), frames) as sql_args:
            return self._runner.run(text, sql_args, remaining_retries)

    @checked_while_open
    def compact(
        self, table: str, partition: str | None = None, *, kind: str = "major", wait: bool = False
    ) -> DataFrame:
        """Queue a compaction of a table or of one partition.

        Args:
            table: ``table`` or ``database.table``.
            partition: The partition's directory, ``p1=a/p2=1``. Default: all partitions.
            kind: ``minor``, ``major`` or ``rebalance``.
            wait: Run the compaction in this call. If a worker is already running it, wait.

        Returns:
            The entries in the queue, with the columns of SHOW COMPACTIONS. If a compaction is
            already queued or running, its entry is returned and no new one is queued.

        Raises:
            CatalogError: There is no such table or partition.
            SettingError: ``kind`` is unknown.
            WriteError: ``wait`` is true, and the compaction failed. The table is as it was.
            TxnError: A transaction is open. End it first.
        """
        if kind.upper() not in (requestable.name for requestable in REQUESTABLE_TYPES):
            raise SettingError(f"kind='{kind}' is not one of minor, major, rebalance.")
        with self._lock:
            return self._runner.compactions.compact(
                self._table(table), partition, CompactionType[kind.upper()], wait=wait
            )

    @checked_while_open
    def clean(self) -> DataFrame:
        """Delete now, in all tables, what no open transaction, lease or later reader can see. An
        error in one table is only logged.

        These are directories that a compaction replaced, directories of aborted transactions,
        hidden directories of statements that crashed, and dropped tables. On a Hive Metastore only
        the hidden directories: Hive's cleaner deletes the rest.

        Returns:
            One row for each deleted directory or file: ``table`` string, ``path`` string, ``kind``
            string (obsolete, aborted, litter, dropped), ``bytes`` bigint.

        Raises:
            TxnError: A transaction is open. End it first.
        """
        with self._lock:
            return self._runner.compactions.clean()

    @checked_while_open
    def run_compactor(
        self, *, once: bool = False, pool: str | None = None, tell: Callable[[str], None] = print
    ) -> None:
        """Run the compaction services, and block until interrupted: initiator, worker, cleaner and
        housekeeper, as in Hive.

        On a Hive Metastore run only a worker, and delete the hidden directories of crashed
        statements: the server's own services do the rest. Several processes may run the services at
        the same time. An error of a step is logged, and the next round tries again. The command
        ``acidsql compactor`` calls this method.

        Raises UnsupportedError on a metastore of Hive 3, where only Hive compacts.

        Args:
            once: Do one round (check all tables, compact and clean), and return.
            pool: Compact only entries of this pool. Default: entries without a pool.
            tell: Called with one line of text for each thing done.
        """
        self._runner.compactions.require_worker()
        service = Service(
            self.spark,
            self.metastore,
            self._runner.settings,
            pool=pool,
            tell=tell,
            end_old_leases=self._runner.transactions.end_old_leases,
            **self._user_and_host,
        )
        service.run(once=once)

    @checked_while_open
    @contextmanager
    def transaction(
        self, *, txn_app_id: str | None = None, txn_version: int | None = None
    ) -> Iterator[Transaction]:
        """Run the statements of the block as one transaction: all take effect, or none.

        The first statement that reads or writes takes the snapshot. Each statement sees this
        snapshot and the changes of the statements before it. The end of the block commits; an
        exception rolls back.

        Args:
            txn_app_id: Delta Lake's ``txnAppId``: a name for a program that may run the same
                transaction again, such as a nightly load.
            txn_version: The number of the transaction, which grows from one to the next. If this
                number, or a higher one, was committed under this name before, the statements of
                the block that change rows are skipped, and ``replayed`` is true. Both numbers are
                noted by the COMMIT itself (see ``streams``).

        Yields:
            The transaction: ``id``, ``replayed``, ``savepoint(name)``, ``rollback(to=None)``.

        Raises:
            WriteConflictError: Another transaction committed a conflicting change. Run the whole
                block again.
            CommitUnknownError: It is unknown whether the commit happened. Ask ``txn_state``.
            TxnError: A transaction is already open, or this one was aborted.
            StreamError: Another process committed a version of ``txn_app_id`` meanwhile.
            UnsupportedError: The metastore cannot note a ``txn_app_id``.
        """
        with self._lock:
            transaction = self._begin(txn_app_id, txn_version)
        failed = True
        try:
            yield transaction
            failed = False
        finally:
            with self._lock:
                self._runner.transactions.end_block(transaction, failed=failed)

    @checked_while_open
    def txn_state(self, txn_id: int) -> str | None:
        """The state of a transaction: ``open``, ``committed`` or ``aborted``.

        Call this after a CommitUnknownError. None: there is no transaction of this number, or it
        ended longer than ``acidsql.txn.history.retention`` ago.
        """
        state = self.metastore.txn_state(txn_id)
        return None if state is None else state.name.lower()

    @property
    def txn_id(self) -> int | None:
        """The id of the transaction that BEGIN or ``transaction`` has opened; None if none is open,
        or the session is closed."""
        current = None if self._closed else self._runner.transactions.current
        return None if current is None else current.id

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction of BEGIN or ``transaction`` is open."""
        return self.txn_id is not None

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def close(self) -> None:
        """Abort an open transaction, end the session's locks, drop its temporary tables, stop its
        compactor, and disconnect from the metastore. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self._give_back()
            self._runner.close()
            self.metastore.close()
            drop_unneeded_briefly(self.spark)

    def __repr__(self) -> str:
        txn = "" if self.txn_id is None else f", in txn {self.txn_id}"
        state = "closed" if self._closed else f"Spark {self.spark.version}{txn}"
        return f"Session({self.warehouse}, {self.metastore.url}, {state})"

    def __enter__(self) -> Session:
        self._need_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def newest_session() -> Session | None:
    """Return the session that ``connect`` opened last in this process; None if that one is closed,
    even if an older one is open, or there was none. ``%%acidsql`` uses this session."""
    return _newest[0] if _newest and not _newest[0]._closed else None
