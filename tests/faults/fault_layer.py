"""The transaction layer without Spark: a real store, real directories, and statements made by hand.

There is no SQL. A statement locks, takes its snapshot, writes rows of one number each, and
publishes them, in the same steps as ``runner`` and ``hold`` do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from fault_place import SETTINGS, Place
from fault_points import Crash, FaultyStore, Interrupt, Line
from fault_state import rows_by_partition

from acidsql.acid.table import Column, Partition, Table, TableName
from acidsql.errors import AcidSqlError, ConstraintError
from acidsql.metastore.interface import LockComponent, LockType, Operation
from acidsql.statements.context.current_txn import Transactions
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.statements.context.work import Work
from acidsql.storage.event_records import VALUE, WriteMode
from acidsql.storage.files.filesystem import FileSystem, filesystem_for, wrap_filesystems
from acidsql.storage.writing.job import write_rows
from acidsql.storage.writing.save import TableWrite, write_spec
from acidsql.txn import Snapshot, TxnManager

T, P = TableName("default", "t"), TableName("default", "p")  # P is partitioned
# The rows: a value each, with its partition if the table is partitioned.
Rows = tuple[tuple[int, str], ...]
Found = tuple[tuple[str, int, str], ...]  # sorted: table, value, partition ("1" if it has none)


@dataclass(frozen=True)
class Write:
    """A statement that writes to one table after the other.

    Attributes:
        rows: The rows for each table.
        overwrite: The rows replace the old ones.
        fails: The statement fails by itself, after it has published everything.
    """

    rows: tuple[tuple[TableName, Rows], ...]
    overwrite: bool = False
    fails: bool = False

    def __str__(self) -> str:
        what = "overwrite" if self.overwrite else "insert"
        return f"{what} {dict(self.rows)}{' and fail' if self.fails else ''}"


Step = Write | str  # BEGIN, COMMIT, ROLLBACK, SAVEPOINT a, ROLLBACK TO a, (beat)


def insert(table: TableName, *values: int, partition: str = "1") -> Write:
    """An INSERT into one table."""
    return Write(((table, tuple((value, partition) for value in values)),))


@dataclass
class Side:
    """The transaction layer of one session.

    Attributes:
        txns: Opens its transactions.
        transactions: The current transaction of its statements.
    """

    place: Place
    store: Any
    txns: TxnManager = field(init=False)
    transactions: Transactions = field(init=False)

    def __post_init__(self) -> None:
        self.txns = TxnManager(self.store, SETTINGS, user="ann", host="h", sleep=lambda _: None)
        # The thread would count calls when nobody expects it; "(beat)" says when it beats.
        self.txns.heartbeat._thread = threading.current_thread()
        self.transactions = Transactions(self.txns, lambda *_: True)

    def do(self, step: Step) -> None:
        """Run a statement."""
        if isinstance(step, Write):
            self._write(step)
            return
        match step.split():
            case ["BEGIN"]:
                self.transactions.begin(step)
            case ["COMMIT"]:
                self.transactions.commit()
            case ["ROLLBACK"]:
                self.transactions.rollback()
            case ["SAVEPOINT", name]:
                self.transactions.require_transaction().savepoint(name)
            case ["ROLLBACK", "TO", name]:
                self.transactions.require_transaction().rollback(name)
            case ["(beat)"]:
                self.txns.heartbeat.beat()
                self.txns._on_beat()
            case ["(close)"]:
                self.txns.close()
            case _:
                raise ValueError(step)

    def rows(self, tables: Sequence[Table]) -> Found:
        """The rows that the session itself sees."""
        # The first read of a transaction takes its snapshot.
        snapshot = self.transactions.read_snapshot([table.name for table in tables])
        current = self.transactions.current
        added = {} if current is None else current.partitions()
        return _flat(self.store, tables, snapshot, added)

    def _write(self, step: Write) -> None:
        with self.transactions.changing_transaction(str(step)) as transaction:
            with transaction.statement("INSERT", "") as work:
                kind = LockType.EXCL_WRITE if step.overwrite else LockType.SHARED_READ
                operation = Operation.OVERWRITE if step.overwrite else Operation.INSERT
                transaction.txn.lock(
                    [LockComponent(kind, n.database, n.name, None, operation) for n, _ in step.rows]
                )
                transaction.txn.snapshot([name for name, _ in step.rows])
                for name, rows in step.rows:
                    self._publish(transaction, work, name, rows, step.overwrite)
                if step.fails:
                    raise ConstraintError("a row is wrong")
            self.transactions.end_statement(transaction)

    def _publish(
        self, transaction: Transaction, work: Work, name: TableName, rows: Rows, overwrite: bool
    ) -> None:
        table = self.store.find(name)
        statement_id = transaction.txn.next_statement_id()
        write_id = transaction.txn.write_id(name)
        mode = WriteMode.of_insert(is_overwrite=overwrite)
        new_spec = write_spec(table, write_id, (statement_id, statement_id), mode)
        with TableWrite(filesystem_for(table.location), table, new_spec) as writing:
            columns = {"v": pa.array([value for value, _ in rows], pa.int32())}
            if table.partition_columns:
                columns[f"{VALUE}0"] = pa.array([partition for _, partition in rows])
            # As a job and the driver do, in turns.
            writing._has_staged = is_staged = write_id % 2 == 0 or name is P
            spec = writing._spec if is_staged else writing._own_spec
            writing._check_and_add(write_rows(pa.table(columns), table, spec))
            transaction.refuse_overwritten(table, writing.partitions, overwrite=overwrite)
            work.publish(table, writing)


class Layer(Place):
    """A warehouse with two tables, ``t`` and the partitioned ``p``. Each has the row 0."""

    def __init__(self, root: Path, disk: Callable[[FileSystem], FileSystem] | None = None) -> None:
        super().__init__(root)
        self.disk, self._late = disk, list[Callable[[], Any]]()
        self._tables = [
            Table(
                name, f"{self.warehouse}/{name.name}", (Column("v", "int"),),
                partition_columns=(Column("k", "string"),) if name is P else (),
            )
            for name in (T, P)
        ]  # fmt: skip
        for table in self._tables:
            Path(table.location).mkdir()
            self.theirs.create_table(table)
        self.side = Side(self, self.theirs)
        for name in (T, P):
            self.side.do(insert(name, 0))
        self.is_ready()

    def run(self, step: Step, line: Line | None = None, *, same_session: bool = True) -> str:
        """Run a statement. Returns how it ended: ``done``, or the error's condition."""
        self._line = line = line or Line()
        if same_session and isinstance(self.side.store, FaultyStore):
            self.side.store._line = self._line
        else:
            self.side = Side(self, FaultyStore(self.mine, self._line))
        with wrap_filesystems(self.wrap), self._noting_late(line):
            try:
                self.side.do(step)
            except (Crash, Interrupt) as error:
                return type(error).__name__
            except AcidSqlError as error:
                return error.condition
            except OSError:
                return "WRITE_FAILED"  # the runner raises this error
        return "done"

    @contextmanager
    def _noting_late(self, line: Line) -> Iterator[None]:
        try:
            yield
        finally:
            self._late += line.late

    def do_late(self) -> None:
        """Do what an object store has put off."""
        while self._late:
            self._late.pop()()

    def rows(self) -> Found:
        """The rows that other sessions see."""
        txns = self.theirs.valid_txns()
        write_ids = self.theirs.valid_write_ids(txns, [table.name for table in self._tables])
        return _flat(self.theirs, self._tables, Snapshot(txns, write_ids), {})

    def rows_within(self) -> Found:
        """The rows that the session itself sees."""
        self.side.store._line = self._line = Line()
        return self.side.rows(self._tables)


def _flat(
    store: Any,
    tables: Sequence[Table],
    snapshot: Snapshot,
    added: Mapping[TableName, Sequence[Partition]],
) -> Found:
    return tuple(
        sorted(
            (table.name.name, row[0], partition.removeprefix("k=") or "1")
            for table in tables
            for partition, rows in rows_by_partition(
                store, table, snapshot, added.get(table.name, ())
            ).items()
            for row in rows
        )
    )
