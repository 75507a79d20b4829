"""A session: what a person holds in the hand."""

from __future__ import annotations

import getpass
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table
from acidsql.compaction.service import Service
from acidsql.errors import CatalogError, SettingError
from acidsql.metastore.compaction_queue import CompactionType
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import Metastore
from acidsql.result import Receipt
from acidsql.runner import Runner
from acidsql.settings import Settings, known_settings
from acidsql.storage.filesystem import filesystem_for
from acidsql.storage.missing_files import name_missing_files
from acidsql.storage.python_workers import prepare_workers
from acidsql.transaction import Transaction

_CONF = "spark.acidsql."
_METASTORE_FILE = ".acidsql/metastore.db"
_newest: list[Session] = []


def connect(
    spark: SparkSession | None = None,
    *,
    warehouse: str | None = None,
    metastore: str | None = None,
    retries: int = 0,
    compactor: str = "background",
    settings: Mapping[str, str] | None = None,
) -> Session:
    """Open a new, independent session.

    Args:
        spark: The Spark session to run in; default: the active one, else a new one.
        warehouse: The directory that tables lie in, on ``file:`` or ``hdfs:``; default: the Spark
            conf ``spark.acidsql.warehouse``, else ``spark.sql.warehouse.dir``.
        metastore: A URL; default: the Spark conf ``spark.acidsql.metastore``, else an SQLite file
            in the warehouse.
        retries: How often a statement that failed because of others (``TransientTxnError``) is
            run again on a fresh snapshot.
        compactor: Who compacts what this session writes: ``background``, a thread of its own, with
            at most a quarter of the task slots, when no statement runs; ``inline``, the statement
            that made it necessary, before it returns; ``off``, nobody (``acidsql compactor`` may,
            or you: ``ALTER TABLE … COMPACT``).
        settings: Settings by Hive's names (``{"hive.txn.timeout": "60s"}``); the Spark conf
            ``spark.acidsql.<name>`` sets them too, these win.

    Returns:
        The session. Close it, or use it as a context manager.

    Raises:
        SettingError: A setting has no such name or value, no metastore can be derived, the
            warehouse cannot be made, or PYSPARK_PYTHON names a Python that Spark's workers cannot
            run our code with.
        MetastoreError: The metastore cannot be opened.
    """
    if spark is None:
        spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    if compactor not in ("background", "inline", "off"):
        raise SettingError(f"compactor='{compactor}' is none of background, inline, off.")
    chosen = Settings.of({**_conf_settings(spark), **(settings or {})})
    where = warehouse or _conf(spark, "warehouse") or spark.conf.get("spark.sql.warehouse.dir")
    assert where is not None
    where = where.rstrip("/")
    store = _open_metastore(metastore or _conf(spark, "metastore"), where, chosen)
    prepare_workers(spark)
    name_missing_files()
    session = Session(spark, where, store, chosen, retries, compactor)
    _newest[:] = [session]
    return session


class Session:
    """Runs statements; made by ``connect``.

    Attributes:
        spark: The Spark session.
        warehouse: The directory that tables lie in.
        metastore: Where tables and transactions are kept.
        last: What the last statement that changed something did, or None.
    """

    def __init__(
        self,
        spark: SparkSession,
        warehouse: str,
        metastore: Metastore,
        settings: Settings,
        retries: int,
        compactor: str = "off",
    ) -> None:
        self.spark, self.warehouse, self.metastore = spark, warehouse, metastore
        self._who = {"user": getpass.getuser(), "host": socket.gethostname()}
        self._runner = Runner(spark, metastore, settings, compactor=compactor, **self._who)
        self._retries = retries
        self._closed = False
        self._lock = threading.RLock()

    @property
    def last(self) -> Receipt | None:
        """What the last statement that changed something did."""
        return self._runner.last

    def sql(
        self,
        text: str,
        args: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        retries: int | None = None,
    ) -> DataFrame:
        """Run one statement.

        Args:
            text: The statement; one ``;`` may end it.
            args: Values: a dict for ``:name``, a list for ``?``.
            retries: As in ``connect``, for this statement.

        Returns:
            For SELECT and SHOW the rows, lazily. For INSERT, UPDATE, DELETE and MERGE one row:
            num_affected_rows, num_inserted_rows, num_updated_rows, num_deleted_rows, txn_id,
            write_id, all bigint (a multi-insert: one row for each branch; write_id is NULL where
            nothing changed). For all else no rows and no columns.

        Raises:
            SqlError: The text is wrong; nothing was done.
            TxnError: The transaction failed; the table is as it was.
            AcidSqlError: See ``acidsql.errors``. Whatever fails leaves the table as it was.
        """
        self._need_open()
        with self._lock:
            return self._runner.run(text, args, self._retries if retries is None else retries)

    def table(self, name: str, *, row_id: bool = False) -> DataFrame:
        """The live rows of a table, lazily, in one snapshot.

        Args:
            name: ``table`` or ``database.table``.
            row_id: Put ``row__id`` (struct of writeid, bucketid, rowid) first.

        Raises:
            CatalogError: There is no such table.
        """
        return self._runner.read_table(self._table(name), row_id=row_id)

    def files(self, table: str) -> DataFrame:
        """The files of a table, and what else lies in its directory.

        Returns:
            One row for each file, and for each directory without files, by path: ``partition``
            string (its directory, "" if there is none), ``directory`` string, ``kind`` string
            (base, delta, delete_delta, original, litter), ``min_write_id`` and ``max_write_id``
            bigint, ``statement_id`` int, ``visibility_txn_id`` bigint (of Hive 4's compactor),
            ``file`` string, ``bucket`` int (its bucket id), ``rows`` bigint (events in it; NULL if
            it is no ORC file, or gone when the DataFrame is evaluated), ``bytes`` bigint, ``state``
            string, ``path`` string, ``problem`` string (why its rows cannot be told). The state is
            of a snapshot of now, or of the transaction's:
            visible; obsolete (hidden by a base or a wider delta); aborted; open (written under a
            transaction that had not committed); unknown (no reader takes it for data: what a
            crash left, files of others, partitions that were dropped).

        Raises:
            CatalogError: There is no such table.
        """
        return self._runner.files(self._table(table))

    def events(self, path: str) -> DataFrame:
        """The events of a file as they stand in it, deleted and invisible ones too, lazily.

        Args:
            path: A bucket file, or a base, delta or delete_delta directory, as ``files`` tells it.

        Returns:
            One row for each event, in the file's order: ``operation`` int (0 insert, 2 delete),
            ``originalTransaction`` bigint, ``bucket`` int and ``rowId`` bigint (the row id),
            ``currentTransaction`` bigint (the write id of this event), ``row`` struct (the columns
            that the file has; NULL of a delete), ``path`` string.

        Raises:
            FormatError: There is no such file, or it holds no events.
        """
        self._need_open()
        return self._runner.events(path)

    def compact(
        self, table: str, partition: str | None = None, *, kind: str = "major", wait: bool = False
    ) -> DataFrame:
        """Queue a compaction.

        Args:
            table: ``table`` or ``database.table``.
            partition: Its directory, ``p1=a/p2=1``; default: all of a partitioned table's.
            kind: ``minor``, ``major`` or ``rebalance``.
            wait: Compact here and now, unless somebody else does already; then wait for that.

        Returns:
            The entries, as SHOW COMPACTIONS shows them. Where one is queued or at work already,
            that is it.

        Raises:
            CatalogError: There is no such table or partition.
            WriteError: ``wait``, and it failed; the table is as it was.
            TxnError: A transaction is open.
        """
        self._need_open()
        if kind.upper() not in CompactionType.__members__:
            raise SettingError(f"kind='{kind}' is none of minor, major, rebalance.")
        with self._lock:
            return self._runner.compactions.compact(
                self._table(table), partition, CompactionType[kind.upper()], wait=wait
            )

    def clean(self) -> DataFrame:
        """Delete now what no open transaction, lease or later reader can see, in all tables.

        That is what compactions have replaced, what aborted transactions have left, hidden
        directories of statements that died, and dropped tables.

        Returns:
            One row for each directory, or file, that is gone: ``table`` string, ``path`` string,
            ``kind`` string (obsolete, aborted, litter, dropped), ``bytes`` bigint.

        Raises:
            TxnError: A transaction is open.
        """
        self._need_open()
        with self._lock:
            return self._runner.compactions.clean()

    def run_compactor(
        self, *, once: bool = False, pool: str | None = None, tell: Callable[[str], None] = print
    ) -> None:
        """Serve the metastore's queue: initiator, worker, cleaner and housekeeper.

        Several may run at once, in any process. ``acidsql compactor`` is this under a command.

        Args:
            once: Look once, compact all that needs it, clean up, and return; else it goes on until
                it is interrupted.
            pool: Compact only what is queued for that pool; default: what is for none.
            tell: Given a line when something was done.
        """
        self._need_open()
        service = Service(
            self.spark,
            self.metastore,
            self._runner.settings,
            pool=pool,
            tell=tell,
            end_old_leases=self._runner.transactions.end_old_leases,
            **self._who,
        )
        service.run(once=once)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Run any number of statements as one transaction: all of them happen, or none.

        Each sees what those before it have written, and otherwise what was committed when the
        first of them read or wrote. The block's end commits; an exception rolls back.

        Yields:
            The transaction: ``id``, ``savepoint(name)``, ``rollback(to=None)``.

        Raises:
            WriteConflictError: Somebody else committed a change to the same thing meanwhile: run
                the whole block again.
            CommitUnknownError: Nobody can tell whether it was committed; see ``txn_state``.
            TxnError: A transaction is open already, or this one was aborted.
        """
        self._need_open()
        with self._lock:
            transaction = self._runner.transactions.begin("acid.transaction()", in_block=True)
        failed = True
        try:
            yield transaction
            failed = False
        finally:
            with self._lock:
                self._runner.transactions.end_block(transaction, failed=failed)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads in the block see one snapshot of all tables; nothing can be changed in it.

        Raises:
            TxnError: A transaction is open, or another snapshot.
        """
        self._need_open()
        with self._runner.transactions.pinned():
            yield

    def txn_state(self, txn_id: int) -> str | None:
        """What became of a transaction: ``open``, ``committed`` or ``aborted``.

        Ask this after a CommitUnknownError. None: there never was one of this number, or it ended
        longer than ``acidsql.txn.history.retention`` ago.
        """
        state = self.metastore.txn_state(txn_id)
        return None if state is None else state.name.lower()

    @property
    def in_transaction(self) -> bool:
        """BEGIN was said, and neither COMMIT nor ROLLBACK yet."""
        return self._runner.transactions.current is not None

    def close(self) -> None:
        """Abort what is open and let go of the metastore. May be called twice."""
        if not self._closed:
            self._closed = True
            self._runner.close()
            self.metastore.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _need_open(self) -> None:
        if self._closed:
            raise SettingError("The session is closed. Open a new one with acidsql.connect().")

    def _table(self, name: str) -> Table:
        table = self._runner.resolve(tuple(part.strip("`") for part in name.split(".")))
        if table is None:
            raise CatalogError(f"There is no ACID table '{name}'.", table=name)
        return table


def newest() -> Session | None:
    """The session that was opened last and is not closed: what ``%%acidsql`` uses."""
    return _newest[0] if _newest and not _newest[0]._closed else None


def _conf(spark: SparkSession, name: str) -> str | None:
    return spark.conf.get(f"{_CONF}{name}", None)


def _conf_settings(spark: SparkSession) -> dict[str, str]:
    """``spark.acidsql.hive.txn.timeout`` and the like; spark-submit drops ``--conf hive.…``."""
    found = {}
    for setting in known_settings():
        name = setting.name
        value = _conf(spark, name.removeprefix("acidsql."))
        if value is not None:
            found[name] = value
    return found


def _open_metastore(url: str | None, warehouse: str, settings: Settings) -> Metastore:
    files = filesystem_for(warehouse)
    try:
        files.create_directory(warehouse)
    except OSError as error:
        raise SettingError(f"The warehouse '{warehouse}' cannot be made: {error}") from error
    if url is None:
        if not _is_local(warehouse):
            raise SettingError(
                f"The warehouse '{warehouse}' is not on this machine: say metastore=…, because "
                "an SQLite file cannot be shared over a network."
            )
        path = f"{_plain(warehouse)}/{_METASTORE_FILE}"
        files.create_directory(path.rpartition("/")[0])
        url = sqlite_url(path)
    return EmbeddedMetastore(url, warehouse=warehouse, settings=settings)


def _is_local(warehouse: str) -> bool:
    return warehouse.startswith(("/", "file:")) or ":" not in warehouse.split("/")[0]


def _plain(warehouse: str) -> str:
    if warehouse.startswith("file:"):
        return "/" + warehouse[len("file:") :].lstrip("/")
    return warehouse
