"""The current transaction of a session: where its statements run, and what its reads see."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import Partition, Table, TableName
from acidsql.errors import CatalogError, SnapshotTooOldError, TableChangedError, TxnError
from acidsql.metastore.catalog_history import CatalogChange
from acidsql.metastore.conflict_rules import who
from acidsql.metastore.foreign import Found, acid_table
from acidsql.metastore.interface import Catalog, TxnType
from acidsql.metastore.streams import Batch, NextBatch, StreamEntry
from acidsql.settings import Settings
from acidsql.statements.time_travel import When
from acidsql.statements.unit_of_work import SameRows, Transaction
from acidsql.statements.work import Work
from acidsql.txn import Phase, Snapshot, Txn, TxnManager


class Transactions:
    """The current transaction of one session.

    Args:
        metastore: The catalog.
        txns: Opens transactions.
        same_rows: Says whether two transactions that changed the same partition changed a common
            row.

    Attributes:
        current: The transaction that BEGIN opened, until it ends; otherwise None.
        on_commit: Called with each transaction after its commit.
        when: The moment that all reads see in ``acid.snapshot(…)``; None: the present.
    """

    def __init__(self, metastore: Catalog, txns: TxnManager, same_rows: SameRows) -> None:
        self._metastore, self._txns, self._same_rows = metastore, txns, same_rows
        self.current: Transaction | None = None
        self.on_commit: Callable[[Transaction], None] = lambda _: None
        self._pinned: Txn | None = None
        self.when: When | None = None
        self._thread = 0

    @property
    def is_plain(self) -> bool:
        """True if each statement runs in a transaction of its own."""
        return self.current is None and self._pinned is None

    def begin(
        self,
        text: str,
        *,
        read_only: bool = False,
        in_block: bool = False,
        batch: NextBatch | None = None,
        replayed: StreamEntry | None = None,
    ) -> Transaction:
        """BEGIN. Raises TxnError if a transaction is open already, or in ``acid.snapshot()``.

        ``batch`` and ``replayed`` are described at ``Transaction``.
        """
        self.need_plain("BEGIN")
        self._txns.hold_lease()  # a lazy DataFrame of the transaction may be read after its end
        only_reads = read_only or replayed is not None
        txn = self._txns.open(
            agent_info=text,
            txn_type=TxnType.READ_ONLY if only_reads else TxnType.DEFAULT,
            several=True,
        )
        self._thread = threading.get_ident()
        self.current = Transaction(
            txn, several=True, read_only=read_only, in_block=in_block, on_commit=self._committed,
            batch=batch, replayed=replayed,
        )  # fmt: skip
        return self.current

    def work_for(self, batch: Batch) -> None:
        """Let the store know which batch of a stream all transactions from now on work for."""
        self._txns.batch = batch

    def need(self) -> Transaction:
        """The transaction that BEGIN opened. Raises TxnError if there is none."""
        if self.current is None:
            raise TxnError(
                "There is no open transaction: BEGIN starts one.",
                condition="NO_ACTIVE_TRANSACTION",
                sqlstate="25P01",
            )
        return self.current

    def end_of_statement(self, transaction: Transaction) -> None:
        """Commit a transaction of one statement; a transaction that BEGIN opened goes on."""
        if transaction is not self.current:
            transaction.commit(self._same_rows)

    def commit(self) -> Transaction:
        """COMMIT. Returns the transaction that was committed.

        After a TxnError, such as a write conflict, the transaction is over: it is rolled back, or
        nobody knows whether it is committed (CommitUnknownError). After a MetastoreError it stays
        open, and COMMIT can be repeated.

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
                self.current = None  # even if a function that follows the commit has failed
        return transaction

    def rollback(self) -> None:
        """ROLLBACK. A transaction that others have aborted already is no error."""
        transaction, self.current = self.need(), None
        transaction.rollback()

    def end_block(self, transaction: Transaction, *, failed: bool) -> None:
        """The end of a ``with acid.transaction()`` block: COMMIT, unless it was rolled back."""
        try:
            if not failed and not transaction.rolled_back:
                self.commit()
        finally:
            # Before the abort: if the abort is interrupted, the session has no transaction either.
            self.current = None
            transaction.abandon("its block was left without COMMIT")

    @contextmanager
    def own(self, text: str, waits: Settings | None = None) -> Iterator[Transaction]:
        """A transaction of one statement. It is aborted unless the statement commits it."""
        txn = self._txns.open(agent_info=text, waits=waits)
        transaction = Transaction(txn, on_commit=self._committed)
        try:
            yield transaction
        except BaseException:
            transaction.abandon("the statement failed")
            raise
        if transaction.txn.phase is Phase.OPEN:
            transaction.abandon("nothing was to be done")

    @contextmanager
    def changing(self, text: str) -> Iterator[Transaction]:
        """The transaction that BEGIN opened or, if there is none, one for this statement."""
        if self.current is not None:
            yield self.current
            return
        with self.own(text) as transaction:
            yield transaction

    @contextmanager
    def statement(self, operation: str, text: str) -> Iterator[tuple[Transaction, Work]]:
        """One statement of ``changing``. ``operation``: see ``Transaction.statement``."""
        with self.changing(text) as transaction, transaction.statement(operation, text) as work:
            yield transaction, work

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def look(self, tables: Sequence[TableName]) -> Snapshot:
        """The snapshot of a read: the transaction's, the pinned one, or a new one.

        Raises:
            TxnError: IN_FAILED_TRANSACTION: the transaction can only be rolled back.
        """
        if self.current is not None:
            self.current.refuse_failed()
            self.current.show(tables)
        txn = self._txn
        return self._txns.snapshot(tables) if txn is None else txn.snapshot(tables)

    @contextmanager
    def pinned(self, moment: Callable[[], When | None] = lambda: None) -> Iterator[None]:
        """``acid.snapshot()``: all reads in the block see one snapshot; changes are refused.

        ``moment`` is asked after the snapshot is taken. After a DROP, SQLite may give the number of
        a commit again; a later commit with the same number is then not in the snapshot.
        """
        self.need_plain("acid.snapshot()")
        txn = self._txns.open(
            agent_info="acid.snapshot()", txn_type=TxnType.READ_ONLY, several=True
        )
        try:
            txn.snapshot([])
            when = moment()
            self._thread, self._pinned, self.when = threading.get_ident(), txn, when
            yield
        finally:
            self._pinned = self.when = None
            txn.end_quietly()

    @property
    def _txn(self) -> Txn | None:
        """The transaction whose snapshot all reads see. None: each read has its own snapshot."""
        return self.current.txn if self.current is not None else self._pinned

    # The catalog has no snapshots. So read the catalog first, and then ask whether its answer is
    # newer than the snapshot.

    def find(self, name: TableName) -> Found:
        """What the name means at the time of the transaction's snapshot (see ``Catalog``). A
        ``ForeignTable`` has no snapshots.

        Raises:
            SnapshotTooOldError: Since the snapshot, the table was made, dropped or renamed, or got
                other columns, or a view of its name was made, dropped, renamed or replaced.
            CatalogError: TABLE_IS_MOVING: it is on the way to another metastore.
        """
        return self._in_snapshot(name, self._metastore.find(name))

    def glance(self, name: TableName) -> Found:
        """As ``find``, at a glance (see ``Catalog``)."""
        return self._in_snapshot(name, self._metastore.glance(name))

    def _in_snapshot(self, name: TableName, found: Found) -> Found:
        self._changes(name)
        if isinstance(found, Table) and found.moving is not None:
            raise CatalogError(
                f"{name} is moving {found.moving}, and the move did not end. Call export_to_hive "
                "or import_from_hive again, as before: then it ends.",
                condition="TABLE_IS_MOVING", sqlstate="55006", table=name,
            )  # fmt: skip
        return found

    def need_same_view(self, view: Table) -> None:
        """Check, after the snapshot was taken, that a view has the query that was read before.

        Raises:
            SnapshotTooOldError: As ``find``.
            TableChangedError: The view was replaced, or dropped, meanwhile.
        """
        if self.find(view.name) != view:
            raise TableChangedError(
                f"The view {view.name} was changed meanwhile. Read it again.", table=view.name
            )

    def partitions(self, table: Table) -> list[Partition]:
        """A table's partitions: those in the catalog, those that this transaction has added, and
        those that others have dropped since its snapshot was taken (see ``lost``)."""
        if not table.partition_columns:
            return []
        known = self._metastore.partitions(table.name)
        if self._txn is None:
            return known
        own = [] if self.current is None else self.current.partitions().get(table.name, [])
        gone = [
            Partition(
                tuple(value for _, value in parse_partition_name(name)), f"{table.location}/{name}"
            )
            for name in self.lost(table)
        ]
        return list(dict.fromkeys([*known, *own, *gone]))

    def partition_names(self, table: Table) -> list[str]:
        """As ``partitions``, by their directories below the table's, ``p1=a/p2=1``."""
        prefix = f"{table.location}/"
        return [partition.location.removeprefix(prefix) for partition in self.partitions(table)]

    def lost(self, table: Table) -> dict[str, CatalogChange]:
        """Partitions that others have dropped since the snapshot, which may have rows in them.

        Such a partition may exist again, with newer rows.

        Raises:
            SnapshotTooOldError: As ``find``.
        """
        if not table.partition_columns:
            return {}
        return {one.partition: one for one in self._changes(table.name) if one.partition}

    def refuse_lost(self, table: Table, partitions: Iterable[str]) -> None:
        """Raise SnapshotTooOldError if one of these partitions is lost, or as ``find``."""
        lost = self.lost(table)
        for name in partitions:
            if name in lost:
                raise self._too_old(table.name, lost[name])

    def need_unchanged(
        self, table: Table, partitions: Collection[str], seen: Snapshot, lost: Collection[str] = ()
    ) -> None:
        """Check, after files were listed, that the catalog's answers fit the snapshot.

        The table was looked up first, then the snapshot was taken, then the files were listed.
        Another session may have changed the catalog in between.

        Args:
            table: The table as it was looked up.
            partitions: The directories of the listed partitions.
            seen: The snapshot.
            lost: The partitions that were lost already, and so were not listed.

        Raises:
            SnapshotTooOldError: In a transaction or ``acid.snapshot()``: since the snapshot, the
                table was changed, or one of the partitions was dropped. Outside of both: the
                snapshot's lease has ended.
            TableChangedError: Outside of a transaction: the same changes. In every case: the table
                now has other columns, another directory or another layout.
            CatalogError: The table is gone.
        """
        ours, name = self._txn, table.name
        now = acid_table(self._metastore.glance(name))
        since = ours.catalog_changes(name) if ours else self._txns.catalog_changes(seen, name)
        listed = set(partitions).difference(lost) if since else set[str]()
        change = next(
            (one for one in since if one.partition is None or one.partition in listed), None
        )
        if change is not None and ours is not None:
            raise self._too_old(name, change)
        if now is not None and now.columns != table.columns:
            # A type may have become wider, and the snapshot may have values that need it.
            raise TableChangedError(
                f"The columns of {name} were changed meanwhile. Read it again.", table=name
            )
        if now is not None and not now.lies_as(table):
            raise TableChangedError(f"{name} was replaced meanwhile. Read it again.", table=name)
        if now is None:
            raise CatalogError(f"{name} was dropped meanwhile.", table=name)
        if change is not None:
            raise TableChangedError(
                f"{name} or a partition of it was dropped meanwhile. Read it again.", table=name
            )

    def _changes(self, name: TableName) -> list[CatalogChange]:
        """Changes of partitions since the snapshot. A change of the table itself is an error."""
        found = [] if self._txn is None else self._txn.catalog_changes(name)
        for change in found:
            if change.partition is None:
                raise self._too_old(name, change)
        return found

    def _too_old(self, name: TableName, change: CatalogChange) -> SnapshotTooOldError:
        assert self._txn is not None
        what = f"{name}/{change.partition}" if change.partition else str(name)
        return SnapshotTooOldError(
            f"{who(change)} changed the meaning of {what} in the catalog, after transaction "
            f"{self._txn.id} had taken its snapshot. So the rows of that snapshot cannot be "
            "read or changed. End this transaction, or snapshot, and begin a new one.",
            txnId=self._txn.id,
            changedBy="" if change.txn_id is None else change.txn_id,
            table=name,
            partition=change.partition or "",
        )

    def end_old_leases(self) -> None:
        """End leases that are older than ``acidsql.lease.timeout``."""
        self._txns.end_old_leases()

    def _committed(self, transaction: Transaction) -> None:
        self.on_commit(transaction)

    # ── what is refused ──────────────────────────────────────────────────────────────────────

    def need_plain(self, what: str) -> None:
        """Raise TxnError if a transaction is open, or in ``acid.snapshot()``."""
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

    def need_plain_thread(self, what: str) -> None:
        """As ``need_plain``, if this thread opened the transaction. Others are not concerned."""
        if self._thread == threading.get_ident():
            self.need_plain(what)

    def need_writable(self, what: str) -> None:
        """Raise TxnError if only reads are allowed."""
        if self._pinned is not None:
            raise _read_only(what, "acid.snapshot()")
        if self.current is not None and self.current.read_only:
            raise _read_only(what, f"transaction {self.current.id}, which is READ ONLY")

    def need_thread(self) -> None:
        """Raise TxnError in a thread other than the one that opened the transaction."""
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
