"""A process that runs random transactions on the tables of ``lists``, and writes its history.

``main`` runs a ``Job``. Everything but Spark is real: the store, locks, snapshots, write ids,
files. A statement has the steps of acidsql's runner: lock, snapshot, write, publish. A transaction
is an ``acidsql.statements.context.unit_of_work.Transaction``.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import broken
from history import FAIL, INFO, OK, Log
from lists import Change, Events, Reader, Row, define, partition_of, write_here

from acidsql.acid.table import Table
from acidsql.errors import (
    AcidSqlError,
    CommitUnknownError,
    MetastoreError,
    TransientTxnError,
    UnsupportedError,
)
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.interface import (
    LockComponent,
    LockType,
    Operation,
    TxnType,
    WriteConflict,
)
from acidsql.settings import Settings
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.storage.event_records import WriteMode
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.writing import save
from acidsql.storage.writing.save import TableWrite, write_spec
from acidsql.txn import Snapshot, TxnManager

KEYS = range(3)  # the keys in each table, to which all processes append
PESSIMISTIC, OPTIMISTIC, BY_ROW = "pessimistic", "optimistic", "by row"
OPERATIONS = {
    "insert": (Operation.INSERT,),
    "update": (Operation.UPDATE,),
    "merge": (Operation.INSERT, Operation.UPDATE),
    "overwrite": (Operation.OVERWRITE,),
}


@dataclass(frozen=True)
class Job:
    """The job of a process.

    Attributes:
        url: The store's URL.
        warehouse: The directory of the tables; the history is beside them.
        number: The number of the process, from 0 on.
        seed: The random numbers depend on it and on the process's number only.
        txns: The number of transactions.
        modes: Lock modes; each transaction takes one of them.
        settings: acidsql's settings.
        statements: The greatest number of statements in a transaction.
        reads: The fraction of a transaction's statements that only read.
        pause: The longest pause between two statements, in seconds, in which other processes may
            work.
        dies: In the first COMMIT from this transaction on, the process kills itself, before or
            after the store has committed.
        broken: The name of the thing that is broken on purpose (``broken.LAYERS``), or "".
    """

    url: str
    warehouse: str
    number: int
    seed: int
    txns: int
    modes: tuple[str, ...] = (PESSIMISTIC, OPTIMISTIC, BY_ROW)
    settings: dict[str, str] = field(default_factory=dict)
    statements: int = 4
    reads: float = 0.3
    pause: float = 0.01
    dies: int | None = None
    broken: str = ""

    @property
    def name(self) -> str:
        return f"w{self.number}"

    @property
    def log(self) -> Path:
        return Path(self.warehouse, f"{self.name}.jsonl")


class GivenUpError(Exception):
    """The transaction is given up here, at random."""


class Worker:
    """Runs one job.

    Args:
        job: The job.
        store: The store.
    """

    def __init__(self, job: Job, store: EmbeddedMetastore) -> None:
        self._job, self._store = job, store
        self._chance = random.Random(f"{job.seed} {job.number}")
        self._log, self._reader = Log(job.log, job.name), Reader()
        settings = Settings.of(job.settings)
        self._manager = TxnManager(
            store, settings, user=job.name, host="h", sleep=lambda s: time.sleep(min(s, 0.02))
        )
        self._tables = define(Path(job.warehouse))
        self._next_value = (job.number + 1) * 100_000
        self._counting = 0  # the transaction's operations, without those that were undone
        self._mode = PESSIMISTIC

    def run(self) -> None:
        """Run all transactions, one after the other."""
        for _ in range(self._job.txns):
            self._mode = self._chance.choice(self._job.modes)
            detection = "row" if self._mode == BY_ROW else "partition"
            if self._manager.settings.conflicts_by_row != (self._mode == BY_ROW):
                name = "acidsql.conflict.detection"
                self._manager.settings = self._manager.settings.with_(name, detection)
            if self._chance.random() < 0.15:
                self._look()
            else:
                self._transaction()
        self._manager.close()

    # ── transactions ─────────────────────────────────────────────────────────────────────────

    def _look(self) -> None:
        """Run a SELECT of all tables in one snapshot, outside of a transaction."""
        self._begin()
        snapshot = self._manager.snapshot([table.name for table in self._tables])
        try:
            for table in self._tables:
                self._read(table, snapshot, self._partitions(table))
            self._log.end(OK)
        except OSError as error:  # only a broken layer reads files that another process deletes
            self._log.end(FAIL, repr(error))

    def _transaction(self) -> None:
        read_only = self._chance.random() < 0.1
        self._begin()
        txn_type = TxnType.READ_ONLY if read_only else TxnType.DEFAULT
        txn = self._manager.open(agent_info="by chance", txn_type=txn_type)
        transaction = Transaction(txn, is_block=True, read_only=read_only)
        committing = False
        try:
            self._statements(transaction)
            if self._chance.random() < 0.08:
                raise GivenUpError("by chance")
            self._log.commit()
            committing = True
            self._commit(transaction)
            self._log.end(OK)
        except (AcidSqlError, GivenUpError, OSError) as error:
            transaction.abandon(str(error)[:100])
            unknown = committing and isinstance(error, CommitUnknownError | MetastoreError)
            condition = getattr(error, "condition", type(error).__name__)
            self._log.end(INFO if unknown else FAIL, f"{condition}: {error}")

    def _commit(self, transaction: Transaction) -> None:
        dies = self._job.dies is not None and self._log.count >= self._job.dies
        if dies and self._chance.random() < 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
        transaction.commit(self._same_rows if self._mode == BY_ROW else None)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)

    def _statements(self, transaction: Transaction) -> None:
        for number in range(self._chance.randint(1, self._job.statements)):
            time.sleep(self._chance.uniform(0, self._job.pause))
            table, what = self._chance.choice(self._tables), self._chance.random()
            if transaction.read_only or self._chance.random() < self._job.reads:
                snapshot = transaction.txn.snapshot([table.name])
                self._read(table, snapshot, self._partitions(table, transaction))
            elif what < 0.15 and number:
                self._undone(table, transaction)
            else:
                self._append(table, transaction)

    def _undone(self, table: Table, transaction: Transaction) -> None:
        """Run a statement, then ROLLBACK TO a savepoint before it."""
        transaction.savepoint("s")
        kept = self._counting
        self._append(table, transaction)
        transaction.rollback("s")
        self._undo(kept)

    # ── statements ───────────────────────────────────────────────────────────────────────────

    def _append(self, table: Table, transaction: Transaction) -> None:
        kinds = ["update"] * 3 + ["merge"] * 4 + ["insert", "overwrite"]
        kind, key = self._chance.choice(kinds), self._chance.choice(KEYS)
        value = self._next_value = self._next_value + 1
        if kind == "insert":
            key = value  # no other process inserts this one
        with self._going_on(), transaction.statement("UPDATE", "") as work:
            transaction.txn.lock(self._locks(table, kind, key), agent_info=f"{kind} {table.name}")
            snapshot = transaction.txn.snapshot([table.name])
            rows = self._rows(table, snapshot, self._partitions(table, transaction))
            changes = self._changes(table, kind, key, value, rows)
            if not changes:
                return
            is_overwrite = kind == "overwrite"
            if not table.partition_columns:
                transaction.refuse_overwritten(table, [""], overwrite=is_overwrite)
            events = Events(changes, is_overwrite, self._chance.randint(0, 1))
            with self._writing(table, kind, transaction) as writing:
                writing.events(events)
                transaction.refuse_overwritten(table, writing.partitions, overwrite=is_overwrite)
                self._log.append((table.name.name, key), value)
                self._counting += 1
                work.publish(table, writing)

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """If a statement fails it is undone. Then the transaction goes on, or is given up."""
        kept = self._counting
        try:
            yield
        except (TransientTxnError, UnsupportedError):
            self._undo(kept)
            if self._chance.random() < 0.6:
                raise

    def _changes(
        self, table: Table, kind: str, key: int, value: int, rows: list[Row]
    ) -> list[Change]:
        """The changes that a statement makes to the rows that it sees."""
        mine = [row for row in rows if row.key == key]
        if not mine:
            new = Change(key, (value,))
            others = [] if table.partition_columns else rows
            kept = [Change(row.key, row.values) for row in others if kind == "overwrite"]
            return [] if kind == "update" else [*kept, new]
        if kind == "overwrite":
            places = {row.partition for row in mine}
            return [
                Change(row.key, (*row.values, value) if row.key == key else row.values)
                for row in rows
                if row.partition in places
            ]
        return [Change(key, (*row.values, value), row) for row in mine]

    def _writing(self, table: Table, kind: str, transaction: Transaction) -> TableWrite:
        txn = transaction.txn
        first = txn.next_statement_id()
        second = txn.next_statement_id() if kind in ("update", "merge") else first
        mode = WriteMode.of_insert(is_overwrite=kind == "overwrite")
        spec = write_spec(table, txn.write_id(table.name), (first, second), mode)
        return TableWrite(filesystem_for(table.location), table, spec)

    def _same_rows(self, conflict: WriteConflict, ours: Sequence[str]) -> bool:
        """Replaces ``acidsql.storage.reading.row_conflicts``, without Spark."""
        (table,) = (table for table in self._tables if table.name == conflict.table)
        if conflict.write_id is None or (table.partition_columns and not conflict.partition):
            return True
        return self._reader.changed_a_common_row(
            table, conflict.partition or "", conflict.write_id, ours
        )

    def _locks(self, table: Table, kind: str, key: int) -> list[LockComponent]:
        """The locks of ``acidsql.plan.locking``: on the partition or, as if it were not known, on
        the table."""
        excluding = {
            PESSIMISTIC: ("update", "merge", "overwrite"),
            OPTIMISTIC: ("overwrite",),
            BY_ROW: ("merge", "overwrite"),
        }
        lock_type = LockType.SHARED_READ if kind == "insert" else LockType.SHARED_WRITE
        if kind in excluding[self._mode]:
            lock_type = LockType.EXCL_WRITE
        named = kind == "overwrite" or self._chance.random() < 0.5
        partition = partition_of(table, key) if named else ""
        name = table.name
        return [
            LockComponent(lock_type, name.database, name.name, partition or None, operation)
            for operation in OPERATIONS[kind]
        ]

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def _read(self, table: Table, snapshot: Snapshot, partitions: list[str]) -> None:
        lists: dict[int, list[tuple[int, ...]]] = {key: [] for key in KEYS}
        for row in self._rows(table, snapshot, partitions):
            lists.setdefault(row.key, []).append(row.values)
        for key, found in lists.items():
            self._log.read((table.name.name, key), found)
            self._counting += 1

    def _rows(self, table: Table, snapshot: Snapshot, partitions: list[str]) -> list[Row]:
        return self._reader.rows(table, broken.snapshot(self._job.broken, snapshot), partitions)

    def _partitions(self, table: Table, transaction: Transaction | None = None) -> list[str]:
        """The partitions that the catalog knows, and the transaction's own."""
        if not table.partition_columns:
            return []
        own = transaction.partitions().get(table.name, []) if transaction else []
        known = {one.location for one in (*self._store.partitions(table.name), *own)}
        return sorted(location.removeprefix(f"{table.location}/") for location in known)

    # ── the log ──────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        self._log.begin()
        self._counting = 0

    def _undo(self, kept: int) -> None:
        self._log.undo(kept)
        self._counting = kept


def main(job: Job) -> None:
    """Run a job, with the thing broken that it names."""
    # These tests have no power cut, so nothing must be synced to the disk.
    os.fsync = lambda _: None  # type: ignore[assignment]
    save.write_events = write_here  # type: ignore[assignment] - no Spark here
    broken.install(job.broken)
    Worker(job, EmbeddedMetastore(job.url, warehouse=job.warehouse)).run()
