"""The session's current transaction: where statements run, and whose snapshot reads see.

A lease is a transaction of the session's that only reads: while it is open, the cleaner deletes no
file that DataFrames may still read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from acidsql.acid.table import TableName
from acidsql.errors import TxnError
from acidsql.metastore.interface import TxnType
from acidsql.metastore.streams import Batch, NextBatch, StreamEntry
from acidsql.settings import Settings
from acidsql.statements.context.time_travel import PointInTime
from acidsql.statements.context.unit_of_work import SameRows, Transaction
from acidsql.statements.context.work import Work
from acidsql.txn import Phase, Snapshot, Txn, TxnManager


class Transactions:
    """The current transaction of one session.

    Args:
        txns: Opens transactions.
        same_rows: Says whether two transactions that changed the same partition changed a common
            row.

    Attributes:
        current: The transaction that BEGIN opened, until it ends; otherwise None.
        on_commit: Called with each transaction after its commit.
        pinned_moment: The moment that all reads see in ``acid.snapshot(…)``; None: the present.
    """

    def __init__(self, txns: TxnManager, same_rows: SameRows) -> None:
        self._txns, self._same_rows = txns, same_rows
        self.current: Transaction | None = None
        self.on_commit: Callable[[Transaction], None] = lambda _: None
        self._pinned_txn: Txn | None = None
        self.pinned_moment: PointInTime | None = None
        self._thread = 0

    @property
    def is_autocommit(self) -> bool:
        """Whether each statement runs in a transaction of its own: neither BEGIN nor a snapshot."""
        return self.current is None and self._pinned_txn is None

    def begin(
        self,
        text: str,
        *,
        read_only: bool = False,
        in_block: bool = False,
        batch: NextBatch | None = None,
        replayed: StreamEntry | None = None,
    ) -> Transaction:
        """Open the transaction that later statements run in, as BEGIN does, and return it. A lease
        keeps files of its DataFrames that are read after its end.

        Args:
            text: What the locks of the transaction show as its statement.
            read_only: True if the transaction must not change anything.
            in_block: True if a ``with acid.transaction()`` block begins the transaction and ends
                it.
            batch: The batch that COMMIT notes in the ledger of streams; None: no batch.
            replayed: The ledger's entry about an earlier commit; then statements that change rows
                are skipped, and for the store the transaction only reads.

        Raises:
            TxnError: A transaction is open already, or this is in ``acid.snapshot()``.
        """
        self.require_autocommit("BEGIN")
        self._txns.hold_lease()  # before the snapshot, which lazy DataFrames may outlive
        only_reads = read_only or replayed is not None
        txn = self._txns.open(
            agent_info=text,
            txn_type=TxnType.READ_ONLY if only_reads else TxnType.DEFAULT,
            multi_statement=True,
        )
        self._thread = threading.get_ident()
        self.current = Transaction(
            txn, is_block=True, read_only=read_only, in_block=in_block,
            on_commit=self._run_on_commit, batch=batch, replayed=replayed,
        )  # fmt: skip
        return self.current

    def set_batch(self, batch: Batch) -> None:
        """Let all later transactions of the session be a part of this batch of a stream, for the
        store."""
        self._txns.batch = batch

    def require_transaction(self) -> Transaction:
        """Return the transaction that BEGIN opened. Raise TxnError if there is none."""
        if self.current is None:
            raise TxnError(
                "There is no open transaction: BEGIN starts one.",
                condition="NO_ACTIVE_TRANSACTION",
                sqlstate="25P01",
            )
        return self.current

    def end_statement(self, transaction: Transaction) -> None:
        """Commit a transaction of one statement, and raise the errors of ``Transaction.commit``. Do
        nothing with the transaction that BEGIN opened: it goes on."""
        if transaction is not self.current:
            transaction.commit(self._same_rows)

    def commit(self) -> Transaction:
        """Run COMMIT, and return the committed transaction. The session then has no transaction.

        After a TxnError, such as a write conflict, the transaction is over: it is rolled back, or
        it is unknown whether it is committed (CommitUnknownError). After a MetastoreError it stays
        open, and COMMIT can be repeated.

        Raises:
            TxnError: No transaction is open, another transaction made a conflicting change first,
                the files of an undone statement could not be deleted, or the transaction was
                aborted.
        """
        transaction = self.require_transaction()
        try:
            transaction.commit(self._same_rows)
        except TxnError as error:
            transaction.abandon(error.condition)
            self.current = None
            raise
        finally:
            if transaction.txn.phase is Phase.COMMITTED:
                self.current = None  # even if a function that follows the commit has failed
        return transaction

    def rollback(self) -> None:
        """Run ROLLBACK: abort the open transaction, and delete its files. The session then has no
        transaction. It is no error if others have aborted it already. Raise TxnError if no
        transaction is open, or if it may be committed or could not be aborted."""
        transaction, self.current = self.require_transaction(), None
        transaction.rollback()

    def end_block(self, transaction: Transaction, *, failed: bool) -> None:
        """End a ``with acid.transaction()`` block: commit, unless the block failed or has rolled
        the transaction back. Whatever is not committed then is aborted, and the session has no
        transaction any more. Raise TxnError if the commit fails; CommitUnknownError, if it is
        unknown whether it has failed."""
        try:
            if not failed and not transaction.rolled_back:
                self.commit()
        finally:
            # Before the abort: if the abort is interrupted, the session has no transaction either.
            self.current = None
            transaction.abandon("its block was left without COMMIT")

    @contextmanager
    def own_transaction(self, text: str, waits: Settings | None = None) -> Iterator[Transaction]:
        """Yield a new transaction of one statement, beside the session's own one. It is aborted
        unless the block commits it. ``waits``: other limits for waiting than the session's."""
        txn = self._txns.open(agent_info=text, lock_settings=waits)
        transaction = Transaction(txn, on_commit=self._run_on_commit)
        try:
            yield transaction
        except BaseException:
            transaction.abandon("the statement failed")
            raise
        if transaction.txn.phase is Phase.OPEN:
            transaction.abandon("nothing was to be done")

    @contextmanager
    def changing_transaction(self, text: str) -> Iterator[Transaction]:
        """Yield the transaction that BEGIN opened or, if there is none, a new one for this
        statement. The block commits the new one (``end_statement``); otherwise it is aborted."""
        if self.current is not None:
            yield self.current
            return
        with self.own_transaction(text) as transaction:
            yield transaction

    @contextmanager
    def changing_statement(self, operation: str, text: str) -> Iterator[tuple[Transaction, Work]]:
        """Yield the transaction that BEGIN opened or, if there is none, a new one; and the ``Work``
        of one statement in it. The block commits the new transaction (``end_statement``). If the
        block fails, the statement is undone.

        ``operation``: what the history of the tables calls the statement: INSERT, MERGE ….
        """
        with (
            self.changing_transaction(text) as transaction,
            transaction.statement(operation, text) as work,
        ):
            yield transaction, work

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def read_snapshot(self, tables: Sequence[TableName]) -> Snapshot:
        """Return the snapshot in which a read of these tables sees them: the open transaction's,
        that of ``acid.snapshot()``, or a new one. An earlier moment (``pinned_moment``) is left to
        the caller. The open transaction notes that a DataFrame reads these tables.

        Raises:
            TxnError: IN_FAILED_TRANSACTION: the transaction can only be rolled back.
        """
        if self.current is not None:
            self.current.refuse_failed()
            self.current.mark_as_read(tables)
            self._txns.keep_files(tables)  # the DataFrame may be read after the transaction's end
        txn = self.snapshot_txn
        return self._txns.snapshot(tables) if txn is None else txn.snapshot(tables)

    @contextmanager
    def pin_snapshot(
        self, moment: Callable[[], PointInTime | None] = lambda: None
    ) -> Iterator[None]:
        """Let all reads of the block see one snapshot, and refuse changes, as ``acid.snapshot()``
        does. The snapshot belongs to this thread. Its READ_ONLY transaction ends with the block.

        ``moment`` is called after the snapshot is taken, and returns an earlier moment that reads
        see; None: reads see the snapshot itself.

        Raises:
            TxnError: A transaction or another snapshot is open.
        """
        self.require_autocommit("acid.snapshot()")
        txn = self._txns.open(
            agent_info="acid.snapshot()", txn_type=TxnType.READ_ONLY, multi_statement=True
        )
        try:
            # The snapshot first: after a DROP, SQLite may use the number of a commit again, and a
            # later commit with the same number is then not in the snapshot.
            txn.snapshot([])
            when = moment()
            self._thread, self._pinned_txn, self.pinned_moment = threading.get_ident(), txn, when
            yield
        finally:
            self._pinned_txn = self.pinned_moment = None
            txn.end_quietly()

    @property
    def snapshot_txn(self) -> Txn | None:
        """The transaction whose snapshot all reads see. None: each read has its own snapshot."""
        return self.current.txn if self.current is not None else self._pinned_txn

    def end_old_leases(self) -> None:
        """End leases that are older than ``acidsql.lease.timeout``."""
        self._txns.end_old_leases()

    def _run_on_commit(self, transaction: Transaction) -> None:
        self.on_commit(transaction)

    # ── refusals ─────────────────────────────────────────────────────────────────────────────

    def require_autocommit(self, operation: str) -> None:
        """Raise TxnError if a transaction is open, or in ``acid.snapshot()``. ``operation``: what
        is refused, for the message."""
        if self.current is not None:
            raise TxnError(
                f"{operation} inside of a transaction: transaction {self.current.id} is open. "
                "COMMIT or ROLLBACK it first.",
                condition="ACTIVE_SQL_TRANSACTION",
                sqlstate="25001",
                txnId=self.current.id,
            )
        if self._pinned_txn is not None:
            raise _read_only_error(operation, "acid.snapshot()")

    def require_autocommit_in_thread(self, operation: str) -> None:
        """Raise TxnError if a transaction, or ``acid.snapshot()``, that this thread opened is open.
        Other threads are not refused."""
        if self._thread == threading.get_ident():
            self.require_autocommit(operation)

    def require_writable(self, operation: str) -> None:
        """Raise TxnError in a READ ONLY transaction and in ``acid.snapshot()``. ``operation``: what
        is refused, for the message."""
        if self._pinned_txn is not None:
            raise _read_only_error(operation, "acid.snapshot()")
        if self.current is not None and self.current.read_only:
            raise _read_only_error(operation, f"transaction {self.current.id}, which is READ ONLY")

    def require_same_thread(self) -> None:
        """Raise TxnError if another thread opened the transaction, or ``acid.snapshot()``, in which
        this session is. Without one of them nothing is refused."""
        if not self.is_autocommit and self._thread != threading.get_ident():
            raise TxnError(
                "Another thread has a transaction open in this session. Give each thread a session "
                "of its own: acidsql.connect().",
                condition="TRANSACTION_OF_ANOTHER_THREAD",
                sqlstate="25000",
            )


def _read_only_error(operation: str, place: str) -> TxnError:
    """Return the error of an operation in a place, such as ``acid.snapshot()``, that only reads."""
    return TxnError(
        f"{operation} is not allowed in {place}: it only reads.",
        condition="READ_ONLY_TRANSACTION",
        sqlstate="25006",
    )
