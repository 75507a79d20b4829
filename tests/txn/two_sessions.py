"""Two sessions on one small warehouse without Spark. One of them goes on call by call.

The reading session is the test's own thread. Before each of its store calls, the other session may
go on for some steps. A step of the other session ends before its next store call, before it deletes
something, or where it would sleep for a lock.

The reader is acidsql's own code, down to the listing. Instead of Spark, a loop over the listed
files reads the rows, at the moment when they are asked for.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from acidsql.acid.bucket_codec import encode
from acidsql.acid.layout import bucket_name, delta_name
from acidsql.acid.table import Column, Partition, Table, TableName
from acidsql.compaction.cleaner import Cleaner
from acidsql.compaction.worker import Worker, WorkerResources
from acidsql.errors import CatalogError
from acidsql.metastore.compaction_queue import CompactionRequest, CompactionType
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Commit, Database, LockComponent, LockType, Operation
from acidsql.plan.standins.names import NameResolver
from acidsql.settings import Settings
from acidsql.sql.parsed.statements import SparkStatement
from acidsql.sql.parser import parse
from acidsql.statements.context.current_txn import Transactions
from acidsql.statements.context.family import Context, all_handlers
from acidsql.statements.context.partition_specs import Partitions
from acidsql.statements.context.snapshot_catalog import SnapshotCatalog
from acidsql.statements.context.spark_databases import SparkDatabases
from acidsql.statements.context.temporary_tables import TemporaryTables
from acidsql.statements.ddl.databases import DatabaseStatements
from acidsql.statements.ddl.partitions import PartitionStatements
from acidsql.statements.ddl.tables import TableStatements
from acidsql.statements.queries.table_rows import TableRows
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events.event_reader import (
    plan_deletes,
    plan_reads,
    read_deletes,
    read_file,
)
from acidsql.txn import TxnManager

SCHEMA = RowSchema.from_fields([("v", "string")])
NO_SPARK = SimpleNamespace(
    catalog=SimpleNamespace(
        tableExists=lambda _: False,
        databaseExists=lambda _: False,
        currentCatalog=lambda: "spark_catalog",
    )
)


class Rows:
    """Replaces a DataFrame: a scan that reads its files only when it is asked for rows."""

    def __init__(self, scan: Any) -> None:
        self._listings, self._write_ids = scan.listings, scan.write_ids

    sparkSession = NO_SPARK  # noqa: N815

    def selectExpr(self, *_: str) -> Rows:  # noqa: N802
        return self

    def collect(self) -> frozenset[str]:
        gone = set()
        for listing in self._listings:
            for read in plan_deletes(listing, self._write_ids):
                with naming_missing(str(read.path)):
                    batches = list(read_deletes(read))
                for batch in batches:
                    keys = zip(*(c.to_pylist() for c in batch.columns[:3]), strict=True)
                    gone |= {(listing.partition, *key) for key in keys}
        found: dict[Any, str] = {}
        for read in plan_reads(self._listings, self._write_ids):
            with naming_missing(str(read.path)):
                batches = list(read_file(read, SCHEMA, SCHEMA.names))
            for batch in batches:
                columns = [column.to_pylist() for column in batch.columns]
                for *key, partition, value in zip(*columns, strict=True):
                    found[(partition, *key)] = value
        return frozenset(value for key, value in found.items() if key not in gone)


class Announced:
    """A store that announces the name of each call of one thread, before and after the call."""

    def __init__(self, store: Any, before: Callable[[str], None], after: Callable[[str], None]):
        self._store, self._before, self._after = store, before, after
        self._thread: threading.Thread | None = threading.current_thread()

    def listen_to(self, thread: threading.Thread) -> None:
        self._thread = thread

    def __getattr__(self, name: str) -> Any:
        what = getattr(self._store, name)
        if not callable(what):
            return what

        def call(*args: Any, **options: Any) -> Any:
            mine = threading.current_thread() is self._thread  # but no calls of the heartbeat
            if mine:
                self._before(name)
            answer = what(*args, **options)
            if mine:
                self._after(name)
            return answer

        return call


class Session:
    """The parts of one session."""

    def __init__(self, store: Any, sleep: Callable[[float], None]) -> None:
        self.store = store
        self.txns = TxnManager(store, Settings(), user="u", host="h", sleep=sleep)
        self.transactions = Transactions(self.txns, lambda *_: True)
        catalog = SnapshotCatalog(store, self.txns, self.transactions)
        self.names = NameResolver(NO_SPARK, catalog, {})  # type: ignore[arg-type]
        partitions = Partitions(NO_SPARK, catalog)  # type: ignore[arg-type]
        databases = SparkDatabases(NO_SPARK, store)  # type: ignore[arg-type]
        temporary = TemporaryTables(store, self.txns)
        context = Context(
            NO_SPARK, store, self.txns, self.transactions, catalog, self.names, databases,  # type: ignore[arg-type]
            partitions, temporary, host="h",
        )  # fmt: skip
        kinds = DatabaseStatements, TableStatements, PartitionStatements
        self.handlers = all_handlers([kind(context) for kind in kinds])
        self.tables = TableRows(context)

    def rows(self, name: str) -> frozenset[str] | None:
        """The rows that a query shows; None: there is no such table."""
        table = self._find(("d", name))
        return None if table is None else self.tables.live_rows(table, row_id=False).collect()  # type: ignore[return-value]

    def run(self, text: str) -> None:
        """Run a statement that returns no rows. Raise CatalogError if it names no table of ours:
        then it would be Spark's, which has no such table."""
        statement = parse(text, is_ours=lambda parts: self._find(parts) is not None)
        if isinstance(statement, SparkStatement):
            raise CatalogError(f"Spark has no such table: {text}")
        self.handlers[type(statement)](statement, text)

    def _find(self, parts: tuple[str, ...]) -> Table | None:
        return acid_table(self.names.find_entry(parts, at_a_glance=True))

    def insert(self, name: str, partition: str, value: str) -> None:
        table = self.store.find(TableName("d", name))
        txn = self.txns.open()
        txn.lock([LockComponent(LockType.SHARED_READ, "d", name, None, Operation.INSERT)])
        write_id = txn.write_id(table.name)
        place = f"{table.location}/p={partition}"
        directory = f"{place}/{delta_name(write_id, 0)}"
        fs = filesystem_for(place)
        fs.create_directory(directory)
        with fs.open_output(f"{directory}/{bucket_name(0)}") as file:
            writer = EventFileWriter(file, SCHEMA)
            writer.write_inserts(pa.record_batch([[value]], ["v"]), write_id, encode(0, 0), 0)
            writer.close()
        txn.commit(Commit(added_partitions={table.name: [Partition((partition,), place)]}))

    def compact_and_clean(self, name: str, partition: str) -> None:
        request = CompactionRequest(TableName("d", name), partition, CompactionType.MAJOR, "me")
        number = self.store.compact(request).id
        Worker(NO_SPARK, self.store, self.txns, "w", WorkerResources("tag")).run_next(only=number)  # type: ignore[arg-type]
        Cleaner(self.store, self.txns).run()


class Other(threading.Thread):
    """The session that goes on step by step.

    Attributes:
        steps: The number of steps that it has made.
        is_over: It has run all its statements.
        decided: The number of its statements that have happened.
        fault: The exception that ended it.
    """

    def __init__(self, store: Any, script: list[tuple[str, Callable[[Session], None]]]) -> None:
        super().__init__(daemon=True)
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._script, self._deciding = script, ""
        self.steps = self.decided = 0
        self.is_over = self._sleeps = False
        self.fault: BaseException | None = None
        announced = Announced(store, self._stop, self._happened)
        announced.listen_to(self)
        self._session = Session(announced, self._sleep)
        self.start()
        self._stopped.acquire()

    def run(self) -> None:
        try:
            for deciding, act in self._script:
                self._deciding = deciding
                act(self._session)
            self._session.txns.close()
        except BaseException as error:
            self.fault = error
        self.is_over = True
        self._stopped.release()

    def go_on(self, steps: int = 1) -> None:
        """Make this number of steps, or fewer if no more are left."""
        for _ in range(steps):
            if not self.is_over:
                self.steps += 1
                self._go.release()
                self._stopped.acquire()

    def go_on_until_it_waits(self) -> None:
        """Go on until it has ended, or waits for a lock that the reader holds."""
        self._sleeps = False
        while not self.is_over and not self._sleeps:
            self.go_on()

    def stop_before_deleting(self) -> None:
        """Called before every deletion, by either session."""
        if threading.current_thread() is self:
            self._stop("delete")

    def _sleep(self, _: float) -> None:
        self._sleeps = True
        self._stop("sleep")

    def _stop(self, _: str) -> None:
        self._stopped.release()
        self._go.acquire()

    def _happened(self, name: str) -> None:
        if name == self._deciding:
            self.decided += 1
            self._deciding = ""


class Warehouse:
    """A database d with the partitioned tables t (rows a1 in p=1, a2 in p=2) and u (row u1 in
    p=1)."""

    def __init__(self, root: Path, new_metastore: bytes) -> None:
        self._data, self._kept, store = root / "d", root / "kept", root / "store.db"
        store.write_bytes(new_metastore)
        self.stores = [EmbeddedMetastore(sqlite_url(store), warehouse=str(root)) for _ in range(2)]
        first = Session(self.stores[0], lambda _: None)
        first.store.create_database(Database("d", str(self._data)))
        for name in ("t", "u"):
            place = f"{self._data}/{name}"
            Path(place).mkdir(parents=True)
            columns = (Column("v", "string"),)
            first.store.create_table(
                Table(TableName("d", name), place, columns, (Column("p", "int"),))
            )
        first.insert("t", "1", "a1")
        first.insert("t", "2", "a2")
        first.insert("u", "1", "u1")
        first.txns.close()
        shutil.copytree(self._data, self._kept)
        self._now, self._first = sqlite3.connect(store), sqlite3.connect(":memory:")
        self._now.backup(self._first)

    def reset(self) -> None:
        """Restore the first state."""
        self._first.backup(self._now)
        shutil.rmtree(self._data, ignore_errors=True)
        shutil.copytree(self._kept, self._data)

    def rows(self, *names: str) -> set[str]:
        """The rows that a new session finds in these tables."""
        session = Session(self.stores[0], lambda _: None)
        found = [session.rows(name) or () for name in names]
        session.txns.close()
        return {row for rows in found for row in rows}

    def close(self) -> None:
        for one in (*self.stores, self._now, self._first):
            one.close()
