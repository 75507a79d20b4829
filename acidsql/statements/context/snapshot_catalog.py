"""The catalog as the snapshot of a session's reads sees it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import Partition, Table, TableName
from acidsql.errors import CatalogError, SnapshotTooOldError, TableChangedError
from acidsql.metastore.catalog_history import CatalogChange
from acidsql.metastore.conflict_rules import author_text
from acidsql.metastore.foreign import CatalogEntry, acid_table
from acidsql.metastore.interface import Catalog
from acidsql.statements.context.current_txn import Transactions
from acidsql.txn import Snapshot, TxnManager


class SnapshotCatalog:
    """Looks up tables, views and partitions as the snapshot of one session's reads sees them.

    The catalog itself has no snapshots. So each method reads the catalog first, and then checks
    whether the answer is newer than the snapshot.

    Args:
        metastore: The catalog, as it is now.
        txns: Tells what others have changed in the catalog since the snapshot of a single read.
        transactions: Tells whose snapshot the reads see, and what the open transaction has added.
    """

    def __init__(self, metastore: Catalog, txns: TxnManager, transactions: Transactions) -> None:
        self._metastore, self._txns, self._transactions = metastore, txns, transactions

    def find(self, name: TableName, *, at_a_glance: bool = False) -> CatalogEntry:
        """Look a name up in the catalog, as of the snapshot of the transaction or of
        ``acid.snapshot()``, if there is one.

        ``at_a_glance``: the constraints of a table may be outdated, because a cache may answer.

        Returns:
            The ACID table, or view of acidsql's; a ``ForeignTable``, which has no snapshots; or
            None.

        Raises:
            SnapshotTooOldError: Since the snapshot, the table was created, dropped or renamed, or
                got other columns; or a view of this name was created, dropped, renamed or replaced.
            CatalogError: TABLE_IS_MOVING: the table is moving to another metastore.
        """
        entry = (self._metastore.glance if at_a_glance else self._metastore.find)(name)
        self._partition_changes(name)  # raises if the table or view itself was changed
        if isinstance(entry, Table) and entry.moving is not None:
            raise CatalogError(
                f"{name} is moving {entry.moving}, and the move did not end. Call export_to_hive "
                "or import_from_hive again, as before: then it ends.",
                condition="TABLE_IS_MOVING", sqlstate="55006", table=name,
            )  # fmt: skip
        return entry

    def require_same_view(self, view: Table) -> None:
        """Check, after the snapshot was taken, that a view is still as it was read: its query,
        columns, comment and properties.

        Raises:
            SnapshotTooOldError: Since the transaction's snapshot, the view was created, dropped,
                renamed or replaced.
            TableChangedError: The view was changed, or dropped, meanwhile.
        """
        if self.find(view.name) != view:
            raise TableChangedError(
                f"The view {view.name} was changed meanwhile. Read it again.", table=view.name
            )

    def partitions(self, table: Table) -> list[Partition]:
        """Return the partitions of a table as the snapshot sees them; none for an unpartitioned
        table.

        These are the partitions in the catalog and, in a transaction or ``acid.snapshot()``, those
        that the transaction has added, and those that others have dropped since its snapshot was
        taken. Partitions that others have added since are not left out. Raise SnapshotTooOldError
        if a transaction or ``acid.snapshot()`` is open, and the table itself was changed since.
        """
        if not table.partition_columns:
            return []
        catalog_partitions = self._metastore.partitions(table.name)
        if self._transactions.snapshot_txn is None:
            return catalog_partitions
        current = self._transactions.current
        own_partitions = [] if current is None else current.partitions().get(table.name, [])
        dropped_partitions = [
            Partition(
                tuple(value for _, value in parse_partition_name(name)), f"{table.location}/{name}"
            )
            for name in self.partitions_dropped_by_others(table)
        ]
        return list(dict.fromkeys([*catalog_partitions, *own_partitions, *dropped_partitions]))

    def partition_names(self, table: Table) -> list[str]:
        """Return the partitions of a table that the snapshot sees, by their directories below the
        table's, like ``p1=a/p2=1``."""
        return table.directory_names(self.partitions(table))

    def partitions_dropped_by_others(self, table: Table) -> dict[str, CatalogChange]:
        """Return the partitions that others have dropped since the snapshot: name, like
        ``p1=a/p2=1`` → the change that dropped the partition. The dict is empty outside of a
        transaction and ``acid.snapshot()``, and for an unpartitioned table, which is not checked.

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
        snapshot, or have changed the partitioned table itself. Outside of a transaction and
        ``acid.snapshot()`` nothing is refused."""
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
            TableChangedError: Outside of a transaction: the same changes, of any partition. In
                every case: the table now has other columns, another directory or another layout.
            CatalogError: The table is gone.
        """
        txn, name = self._transactions.snapshot_txn, table.name
        current_table = acid_table(self._metastore.glance(name))
        changes = txn.catalog_changes(name) if txn else self._txns.catalog_changes(snapshot, name)
        if txn is not None:
            listed_partitions = set(partitions).difference(dropped_partitions)
            changes = [
                change
                for change in changes
                if change.partition is None or change.partition in listed_partitions
            ]
        # Outside of a transaction the partitions were read after the snapshot was taken. So one
        # that is not among them may have rows of the snapshot: RENAME drops a partition, too.
        change = next(iter(changes), None)
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
        """Return what others have changed of a table's partitions in the catalog since the
        snapshot; [] outside of a transaction and ``acid.snapshot()``.

        Raises:
            SnapshotTooOldError: The table itself was changed.
        """
        txn = self._transactions.snapshot_txn
        changes = [] if txn is None else txn.catalog_changes(name)
        for change in changes:
            if change.partition is None:
                raise self._too_old_error(name, change)
        return changes

    def _too_old_error(self, name: TableName, change: CatalogChange) -> SnapshotTooOldError:
        """Return the error that this change of a table, or of a partition of it, came after the
        snapshot. A transaction or ``acid.snapshot()`` must be open."""
        txn = self._transactions.snapshot_txn
        assert txn is not None
        changed_name = f"{name}/{change.partition}" if change.partition else str(name)
        return SnapshotTooOldError(
            f"{author_text(change)} changed the meaning of {changed_name} in the catalog, after "
            f"transaction {txn.id} had taken its snapshot. So the rows of that "
            "snapshot cannot be read or changed. End this transaction, or snapshot, and begin "
            "a new one.",
            txnId=txn.id,
            changedBy="" if change.txn_id is None else change.txn_id,
            table=name,
            partition=change.partition or "",
        )
