"""The current transaction of a session: where its statements run, and what its reads see."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import Partition, Table, TableName
from acidsql.errors import CatalogError, SnapshotTooOldError, TableChangedError, TxnError
from acidsql.metastore.catalog_history import CatalogChange
from acidsql.metastore.conflict_rules import author_text
from acidsql.metastore.foreign import CatalogEntry, acid_table
from acidsql.metastore.interface import Catalog, TxnType
from acidsql.metastore.streams import Batch, NextBatch, StreamEntry
from acidsql.settings import Settings
from acidsql.statements.context.time_travel import PointInTime
from acidsql.statements.context.unit_of_work import SameRows, Transaction
from acidsql.statements.context.work import Work
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
        pinned_moment: The moment that all reads see in ``acid.snapshot(…)``; None: the present.
    """

    def __init__(self, metastore: Catalog, txns: TxnManager, same_rows: SameRows) -> None:
        self._metastore, self._txns, self._same_rows = metastore, txns, same_rows
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
        """Open the transaction that later statements run in, as BEGIN does, and return it.

        Args:
            text: What the locks of the transaction show as its statement.
            read_only: True if the transaction must not change anything.
            in_block: True if a ``with acid.transaction()`` block begins the transaction and ends
                it.
            batch: The batch that COMMIT notes in the ledger of streams; None: no batch.
            replayed: The ledger's entry about an earlier commit; then statements that change rows
                are skipped.

        Raises:
            TxnError: A transaction is open already, or this is in ``acid.snapshot()``.
        """
        self.require_autocommit("BEGIN")
        self._txns.hold_lease()  # a lazy DataFrame of the transaction may be read after its end
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
        """Tell the store of which stream's batch all later transactions are a part."""
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
        """Commit a transaction of one statement; a transaction that BEGIN opened goes on."""
        if transaction is not self.current:
            transaction.commit(self._same_rows)

    def commit(self) -> Transaction:
        """Run COMMIT, and return the committed transaction.

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
        """Run ROLLBACK. It is no error if others have aborted the transaction already. Raise
        TxnError if no transaction is open, or if it may be committed."""
        transaction, self.current = self.require_transaction(), None
        transaction.rollback()

    def end_block(self, transaction: Transaction, *, failed: bool) -> None:
        """End a ``with acid.transaction()`` block: commit, unless the block failed or has rolled
        the transaction back. Whatever is not committed then is aborted, and the session has no
        transaction any more. Raise the errors of ``commit``."""
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
        """Yield the ``changing_transaction``, and the work of one statement in it. If the block
        fails, the statement is undone.

        ``operation``: what the history of the tables calls the statement: INSERT, MERGE ….
        """
        with (
            self.changing_transaction(text) as transaction,
            transaction.statement(operation, text) as work,
        ):
            yield transaction, work

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def read_snapshot(self, tables: Sequence[TableName]) -> Snapshot:
        """Return the snapshot of a read: the open transaction's, the pinned one, or a new one. The
        open transaction notes that a DataFrame reads these tables.

        Raises:
            TxnError: IN_FAILED_TRANSACTION: the transaction can only be rolled back.
        """
        if self.current is not None:
            self.current.refuse_failed()
            self.current.show(tables)
        txn = self._snapshot_txn
        return self._txns.snapshot(tables) if txn is None else txn.snapshot(tables)

    @contextmanager
    def pin_snapshot(
        self, moment: Callable[[], PointInTime | None] = lambda: None
    ) -> Iterator[None]:
        """Let all reads of the block see one snapshot, and refuse changes, as ``acid.snapshot()``
        does.

        ``moment`` is called after the snapshot is taken, and returns the moment that reads see;
        None: the snapshot itself. After a DROP, SQLite may use the number of a commit again; a
        later commit with the same number is then not in the snapshot.

        Raises:
            TxnError: A transaction or another snapshot is open.
        """
        self.require_autocommit("acid.snapshot()")
        txn = self._txns.open(
            agent_info="acid.snapshot()", txn_type=TxnType.READ_ONLY, multi_statement=True
        )
        try:
            txn.snapshot([])
            when = moment()
            self._thread, self._pinned_txn, self.pinned_moment = threading.get_ident(), txn, when
            yield
        finally:
            self._pinned_txn = self.pinned_moment = None
            txn.end_quietly()

    @property
    def _snapshot_txn(self) -> Txn | None:
        """The transaction whose snapshot all reads see. None: each read has its own snapshot."""
        return self.current.txn if self.current is not None else self._pinned_txn

    # The catalog has no snapshots. So read the catalog first, and then check whether its answer is
    # newer than the snapshot.

    def find(self, name: TableName) -> CatalogEntry:
        """Look a name up in the catalog, as of the snapshot of the transaction or of
        ``acid.snapshot()``, if there is one.

        Returns:
            The ACID table, or view of acidsql's; a ``ForeignTable``, which has no snapshots; or
            None.

        Raises:
            SnapshotTooOldError: Since the snapshot, the table was created, dropped or renamed, or
                got other columns; or a view of this name was created, dropped, renamed or replaced.
            CatalogError: TABLE_IS_MOVING: the table is moving to another metastore.
        """
        return self._check_in_snapshot(name, self._metastore.find(name))

    def glance(self, name: TableName) -> CatalogEntry:
        """Look a name up like ``find``, with the same errors. The constraints of a table may be
        outdated, as this may answer from a cache."""
        return self._check_in_snapshot(name, self._metastore.glance(name))

    def _check_in_snapshot(self, name: TableName, entry: CatalogEntry) -> CatalogEntry:
        """Return the catalog's entry of a name, if the snapshot may use it. Without a snapshot only
        a moving table is refused.

        Raises:
            SnapshotTooOldError: The table or view itself was changed since the snapshot; changes of
                partitions are no error.
            CatalogError: TABLE_IS_MOVING: the table is moving to another metastore.
        """
        self._partition_changes(name)
        if isinstance(entry, Table) and entry.moving is not None:
            raise CatalogError(
                f"{name} is moving {entry.moving}, and the move did not end. Call export_to_hive "
                "or import_from_hive again, as before: then it ends.",
                condition="TABLE_IS_MOVING", sqlstate="55006", table=name,
            )  # fmt: skip
        return entry

    def require_same_view(self, view: Table) -> None:
        """Check, after the snapshot was taken, that a view still has the query that was read.

        Raises:
            SnapshotTooOldError: Since the transaction's snapshot, the view was created, dropped,
                renamed or replaced.
            TableChangedError: The view was replaced, or dropped, meanwhile.
        """
        if self.find(view.name) != view:
            raise TableChangedError(
                f"The view {view.name} was changed meanwhile. Read it again.", table=view.name
            )

    def partitions(self, table: Table) -> list[Partition]:
        """Return the partitions of a table as the snapshot sees them; none for an unpartitioned
        table.

        These are the partitions in the catalog, those that this transaction has added, and those
        that others have dropped since its snapshot was taken. Raise SnapshotTooOldError if the
        table itself was changed since.
        """
        if not table.partition_columns:
            return []
        catalog_partitions = self._metastore.partitions(table.name)
        if self._snapshot_txn is None:
            return catalog_partitions
        own_partitions = (
            [] if self.current is None else self.current.partitions().get(table.name, [])
        )
        dropped_partitions = [
            Partition(
                tuple(value for _, value in parse_partition_name(name)), f"{table.location}/{name}"
            )
            for name in self.partitions_dropped_by_others(table)
        ]
        return list(dict.fromkeys([*catalog_partitions, *own_partitions, *dropped_partitions]))

    def partition_names(self, table: Table) -> list[str]:
        """The partitions of a table by their directories below the table's, like ``p1=a/p2=1``."""
        prefix = f"{table.location}/"
        return [partition.location.removeprefix(prefix) for partition in self.partitions(table)]

    def partitions_dropped_by_others(self, table: Table) -> dict[str, CatalogChange]:
        """Return the partitions that others have dropped since the snapshot: name, like
        ``p1=a/p2=1`` → the change that dropped it. None without a snapshot, or for an unpartitioned
        table, of which nothing is checked then.

        A snapshot may see rows in such a partition, and their files may be gone. A new partition of
        the same name may exist, with newer rows.

        Raises:
            SnapshotTooOldError: The table itself was created, dropped, renamed or given other
                columns since the snapshot.
        """
        if not table.partition_columns:
            return {}
        return {
            change.partition: change
            for change in self._partition_changes(table.name)
            if change.partition
        }

    def refuse_dropped_partitions(self, table: Table, partitions: Iterable[str]) -> None:
        """Raise SnapshotTooOldError if others have dropped one of these partitions since the
        snapshot, or have changed the partitioned table itself. Without a snapshot nothing is
        refused."""
        dropped_partitions = self.partitions_dropped_by_others(table)
        for name in partitions:
            if name in dropped_partitions:
                raise self._too_old_error(table.name, dropped_partitions[name])

    def require_unchanged(
        self,
        table: Table,
        partitions: Collection[str],
        snapshot: Snapshot,
        dropped_partitions: Collection[str] = (),
    ) -> None:
        """Check, after files were listed, that the catalog's answers fit the snapshot.

        The table was looked up first, then the snapshot was taken, then the files were listed.
        Another session may have changed the catalog in between.

        Args:
            table: The table as it was looked up.
            partitions: The directories of the listed partitions.
            snapshot: The snapshot.
            dropped_partitions: Partitions that others had dropped already, so they were not listed.

        Raises:
            SnapshotTooOldError: In a transaction or ``acid.snapshot()``: since the snapshot, the
                table was changed, or one of the partitions was dropped. Outside of both: the
                snapshot's lease has ended.
            TableChangedError: Outside of a transaction: the same changes. In every case: the table
                now has other columns, another directory or another layout.
            CatalogError: The table is gone.
        """
        txn, name = self._snapshot_txn, table.name
        current_table = acid_table(self._metastore.glance(name))
        changes = txn.catalog_changes(name) if txn else self._txns.catalog_changes(snapshot, name)
        listed_partitions = (
            set(partitions).difference(dropped_partitions) if changes else set[str]()
        )
        change = next(
            (
                candidate
                for candidate in changes
                if candidate.partition is None or candidate.partition in listed_partitions
            ),
            None,
        )
        if change is not None and txn is not None:
            raise self._too_old_error(name, change)
        if current_table is not None and current_table.columns != table.columns:
            # A type may have become wider, and the snapshot may have values that need it.
            raise TableChangedError(
                f"The columns of {name} were changed meanwhile. Read it again.", table=name
            )
        if current_table is not None and not current_table.has_same_storage(table):
            raise TableChangedError(f"{name} was replaced meanwhile. Read it again.", table=name)
        if current_table is None:
            raise CatalogError(f"{name} was dropped meanwhile.", table=name)
        if change is not None:
            raise TableChangedError(
                f"{name} or a partition of it was dropped meanwhile. Read it again.", table=name
            )

    def _partition_changes(self, name: TableName) -> list[CatalogChange]:
        """Return the changes of a table's partitions since the snapshot; none without a snapshot.

        Raises:
            SnapshotTooOldError: The table itself was changed.
        """
        changes = [] if self._snapshot_txn is None else self._snapshot_txn.catalog_changes(name)
        for change in changes:
            if change.partition is None:
                raise self._too_old_error(name, change)
        return changes

    def _too_old_error(self, name: TableName, change: CatalogChange) -> SnapshotTooOldError:
        """Return the error of a table, or of a partition of it, that was changed in the catalog
        since the snapshot. A snapshot must be there."""
        assert self._snapshot_txn is not None
        changed_name = f"{name}/{change.partition}" if change.partition else str(name)
        return SnapshotTooOldError(
            f"{author_text(change)} changed the meaning of {changed_name} in the catalog, after "
            f"transaction {self._snapshot_txn.id} had taken its snapshot. So the rows of that "
            "snapshot cannot be read or changed. End this transaction, or snapshot, and begin "
            "a new one.",
            txnId=self._snapshot_txn.id,
            changedBy="" if change.txn_id is None else change.txn_id,
            table=name,
            partition=change.partition or "",
        )

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
