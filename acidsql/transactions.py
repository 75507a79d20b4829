"""What transaction a session's statements run in, and what its reads see."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from acidsql.acid.table import Partition, Table, TableName
from acidsql.errors import TxnError
from acidsql.metastore.interface import Catalog, TxnType
from acidsql.transaction import SameRows, Transaction
from acidsql.txn import Phase, Snapshot, Txn, TxnManager


class Transactions:
    """What transaction a session's statements run in, and what its reads see.

    Args:
        metastore: Where tables are.
        txns: Opens them.
        same_rows: Says whether a conflict of two that changed the same partition stands.

    Attributes:
        current: BEGIN's, until it ends; else None.
        on_commit: Told of each transaction that is committed.
    """

    def __init__(self, metastore: Catalog, txns: TxnManager, same_rows: SameRows) -> None:
        self._metastore, self._txns, self._same_rows = metastore, txns, same_rows
        self.current: Transaction | None = None
        self.on_commit: Callable[[Transaction], None] = lambda _: None
        self._pinned: Txn | None = None
        self._thread = 0

    @property
    def is_plain(self) -> bool:
        """Every statement is a transaction of its own now."""
        return self.current is None and self._pinned is None

    def begin(self, text: str, *, read_only: bool = False, in_block: bool = False) -> Transaction:
        """BEGIN. Raises TxnError if one is open already, or in ``acid.snapshot()``."""
        self.need_plain("BEGIN")
        self._txns.hold_lease()  # what is read in it may be read when it is over
        txn = self._txns.open(
            agent_info=text, txn_type=TxnType.READ_ONLY if read_only else TxnType.DEFAULT
        )
        self._thread = threading.get_ident()
        self.current = Transaction(
            txn, several=True, read_only=read_only, in_block=in_block, on_commit=self._committed
        )
        return self.current

    def need(self) -> Transaction:
        """The open one. Raises TxnError where there is none."""
        if self.current is None:
            raise TxnError(
                "There is no open transaction: BEGIN starts one.",
                condition="NO_ACTIVE_TRANSACTION",
                sqlstate="25P01",
            )
        return self.current

    def end_of_statement(self, transaction: Transaction) -> None:
        """Commit a transaction of one statement; BEGIN's goes on."""
        if transaction is not self.current:
            transaction.commit(self._same_rows)

    def commit(self) -> Transaction:
        """COMMIT; the transaction that was committed.

        Where somebody else was first, it is rolled back. If the metastore did not answer at all
        it stays open: COMMIT can be said again.

        Raises:
            TxnError: As ``Transaction.commit``.
        """
        transaction = self.need()
        try:
            transaction.commit(self._same_rows)
        except TxnError as error:
            transaction.abandon(error.condition)
            self.current = None
            raise
        finally:
            if transaction.txn.phase is Phase.COMMITTED:
                self.current = None  # even if what follows the commit was interrupted
        return transaction

    def rollback(self) -> None:
        """ROLLBACK. One that others have aborted is over, too, and no error."""
        transaction, self.current = self.need(), None
        transaction.rollback()

    def end_block(self, transaction: Transaction, *, failed: bool) -> None:
        """The end of a ``with acid.transaction()`` block: COMMIT, unless it was rolled back."""
        try:
            if not failed and not transaction.rolled_back:
                self.commit()
        finally:
            # Not after: the session is free again even if the abort is interrupted.
            self.current = None
            transaction.abandon("its block was left without COMMIT")

    @contextmanager
    def own(self, text: str) -> Iterator[Transaction]:
        """A transaction of one statement, which commits it; left otherwise, it is undone."""
        transaction = Transaction(self._txns.open(agent_info=text), on_commit=self._committed)
        try:
            yield transaction
        except BaseException:
            transaction.abandon("the statement failed")
            raise
        if transaction.txn.phase is Phase.OPEN:
            transaction.abandon("nothing was to be done")

    @contextmanager
    def changing(self, text: str) -> Iterator[Transaction]:
        """The transaction that a change belongs to: BEGIN's, or its own."""
        if self.current is not None:
            yield self.current
            return
        with self.own(text) as transaction:
            yield transaction

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def look(self, tables: Sequence[TableName]) -> Snapshot:
        """What a read sees: the transaction's snapshot, a pinned one, or what is committed now."""
        txn = self.current.txn if self.current is not None else self._pinned
        return self._txns.snapshot(tables) if txn is None else txn.snapshot(tables)

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Let all reads see one snapshot, and nothing be changed."""
        self.need_plain("acid.snapshot()")
        txn = self._txns.open(agent_info="acid.snapshot()", txn_type=TxnType.READ_ONLY)
        try:
            txn.snapshot([])
            self._thread, self._pinned = threading.get_ident(), txn
            yield
        finally:
            self._pinned = None
            txn.end_quietly()

    def partitions(self, table: Table) -> list[Partition]:
        """A table's partitions: those in the catalog, and what this transaction has added."""
        known = self._metastore.partitions(table.name)
        if self.current is None:
            return known
        own = self.current.partitions().get(table.name, [])
        return [*known, *(partition for partition in own if partition not in known)]

    def partition_names(self, table: Table) -> list[str]:
        """The same by their directories below the table's, ``p1=a/p2=1``."""
        prefix = f"{table.location}/"
        return [partition.location.removeprefix(prefix) for partition in self.partitions(table)]

    def _committed(self, transaction: Transaction) -> None:
        self.on_commit(transaction)

    # ── what is refused ──────────────────────────────────────────────────────────────────────

    def need_plain(self, what: str) -> None:
        """Raise TxnError if a transaction is open, or reads are pinned."""
        if self.current is not None:
            raise TxnError(
                f"{what} inside of a transaction: transaction {self.current.id} is open. COMMIT or "
                "ROLLBACK it first.",
                condition="ACTIVE_SQL_TRANSACTION",
                sqlstate="25001",
                txnId=self.current.id,
            )
        if self._pinned is not None:
            raise _read_only(what, "acid.snapshot()")

    def need_writable(self, what: str) -> None:
        """Raise TxnError where only reads are allowed."""
        if self._pinned is not None:
            raise _read_only(what, "acid.snapshot()")
        if self.current is not None and self.current.read_only:
            raise _read_only(what, f"transaction {self.current.id}, which is READ ONLY")

    def need_thread(self) -> None:
        """Raise TxnError in another thread than the open transaction's."""
        if not self.is_plain and self._thread != threading.get_ident():
            raise TxnError(
                "Another thread has a transaction open in this session. Give each thread a session "
                "of its own: acidsql.connect().",
                condition="TRANSACTION_OF_ANOTHER_THREAD",
                sqlstate="25000",
            )


def _read_only(what: str, where: str) -> TxnError:
    return TxnError(
        f"{what} is not allowed in {where}: it only reads.",
        condition="READ_ONLY_TRANSACTION",
        sqlstate="25006",
    )
