"""Moves a table from one metastore to another. The table's files stay unchanged in their place.

A killed process may stop the move after any of these steps:

1. Lock the table in both metastores. If somebody reads or writes the table, the move fails.
2. Mark the table in its old metastore (``acidsql.moving``). acidsql uses no marked table.
3. Create the table in the new metastore, marked, too, with write ids above those of its files.
4. Check that readers in the new metastore find the same files.
5. Remove the table from the old metastore, without its files.
6. Remove the mark in the new metastore.

So at any moment at least one metastore has the table, and at most one has it without a mark. A
repeated call continues where the first call ended. If a step fails, the earlier steps are undone.
If a metastore does not answer, nobody knows whether it has done the step, and the marks stay.

The *label* is a file in the table's directory, which says that the table has moved to a Hive
Metastore (``_write_label``).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from acidsql.acid import cdc
from acidsql.acid.constraints import ConstraintKind
from acidsql.acid.layout import MOVED_FILE
from acidsql.acid.paths import directory_name
from acidsql.acid.table import MOVING, Partition, Table, TableName
from acidsql.acid.values.types import parse_type
from acidsql.acid.write_ids import ValidTxnList
from acidsql.errors import (
    AcidSqlError,
    CatalogError,
    CommitUnknownError,
    MetastoreError,
    UnsupportedError,
)
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Commit, Database, Metastore
from acidsql.plan.locking import exclusive_lock
from acidsql.statements.directories.moving_files import (
    refuse_zstd,
    require_settled_files,
    snapshot_files,
    strip_visibility_txns,
)
from acidsql.statements.directories.places import normalized_location
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.txn import NO_WAIT_SETTINGS, SessionLocks, Snapshot, Txn, TxnManager
from acidsql.txn.snapshot import snapshot_of


@dataclass(frozen=True, slots=True)
class Side:
    """A metastore, and the table's name in it.

    Attributes:
        store: The metastore.
        name: The table's name.
        store_name: The metastore in words, without a password.
        locks: The locks that the session holds in the metastore.
    """

    store: Metastore
    name: TableName
    store_name: str
    locks: SessionLocks | None = None

    @property
    def address(self) -> str:
        """The metastore and the table's name, as the mark in the other metastore has them."""
        return f"{self.store_name} {self.name}"

    def snapshot(self) -> Snapshot:
        """Return the snapshot that a reader gets now in this metastore, without any lock."""
        return snapshot_of(self.store, self.store.valid_txns(), [self.name])

    @property
    def high_water_mark(self) -> int:
        """The table's highest write id in this metastore, read from it now."""
        return self.snapshot().write_ids[self.name].high_water_mark


class Move:
    """One move of a table from a metastore to another.

    Args:
        old: The metastore that has the table.
        new: The metastore that gets it.
        call: The name of the public function.
        user: The user's name. Sessions that wait for the locks see the user and the host.
        host: The host of this process.
    """

    def __init__(self, old: Side, new: Side, call: str, *, user: str, host: str) -> None:
        self._old, self._new, self._call = old, new, call
        self._managers = [
            TxnManager(
                side.store, NO_WAIT_SETTINGS, user=user, host=host, borrowed_locks=side.locks
            )
            for side in (old, new)
        ]

    def run(self) -> None:
        """Move the table, or end a move that was interrupted. No file is copied.

        Raises:
            CatalogError: There is no such table, the name is taken, or another move of the table
                has not ended.
            LockTimeoutError: Somebody uses the table.
            UnsupportedError: The new metastore's readers would not see the same rows, or cannot
                keep all of the table.
            MetastoreError: A metastore does not answer. Call this again.
        """
        try:
            self._run()
        finally:
            for manager in self._managers:
                manager.close()

    def _run(self) -> None:
        """Lock the table in both metastores, move it, and remove the mark in the new metastore. If
        an interrupted move has only its last step left (the old metastore has no such table any
        more), only remove the mark."""
        old_txn, new_txn = (manager.open(agent_info=self._call) for manager in self._managers)
        with old_txn, new_txn:
            old_txn.lock([exclusive_lock(self._old.name)], agent_info=self._call)
            new_txn.lock([exclusive_lock(self._new.name)], agent_info=self._call)
            table, new_table = self._look_up_tables()
            if table is None:
                self._unmark(new_txn)
                new_txn.end_quietly()
                return
            self._move_table(old_txn, new_txn, table, new_table)
        with self._managers[1].open(agent_info=self._call) as last_txn:
            last_txn.lock([exclusive_lock(self._new.name)], agent_info=self._call)
            self._unmark(last_txn)
            last_txn.end_quietly()

    def _look_up_tables(self) -> tuple[Table | None, Table | None]:
        """Look the table up in the old and in the new metastore. None: there is no ACID table of
        this name there; there may be a view or a plain table.

        Raises:
            CatalogError: The old metastore has no such table and no move of it has begun, the new
                name is taken, or another move of the table has not ended.
        """
        table = acid_table(self._old.store.find(self._old.name))
        new_table = acid_table(self._new.store.find(self._new.name))
        is_of_this_move = new_table is not None and new_table.moving == f"from {self._old.address}"
        if table is None and not is_of_this_move:
            raise CatalogError(
                f"There is no ACID table {self._old.name} in {self._old.store_name}.",
                table=self._old.name,
            )
        if new_table is not None and not is_of_this_move:
            raise CatalogError(
                f"There is a table {self._new.name} already in {self._new.store_name}.",
                condition="TABLE_OR_VIEW_ALREADY_EXISTS", sqlstate="42P07", table=self._new.name,
            )  # fmt: skip
        if table is not None and table.moving not in (None, f"to {self._new.address}"):
            raise CatalogError(
                f"{self._old.name} is moving {table.moving}. Repeat that move.",
                condition="TABLE_IS_MOVING", sqlstate="55006", table=self._old.name,
            )  # fmt: skip
        return table, new_table

    def _move_table(
        self, old_txn: Txn, new_txn: Txn, table: Table, new_table: Table | None
    ) -> None:
        """Check that the table can move, mark it, create it in the new metastore, compare the
        files, and drop it from the old metastore without its files. A failure between the mark
        and the drop is undone, unless a metastore did not answer. Directories may be renamed
        (``strip_visibility_txns``). The new table keeps its mark.

        Raises:
            UnsupportedError: The new metastore's readers would not see the same rows, or cannot
                keep all of the table.
            MetastoreError: Nobody knows what a metastore has done; the marks stay.
            CommitUnknownError: The same, about the creation of the new table.
        """
        partitions = self._old.store.partitions(self._old.name)
        snapshot = self._old.snapshot()
        require_settled_files(
            table, partitions, snapshot, for_hive=self._new.store.abilities.shared_with_hive
        )
        is_for_hive3 = self._new.store.abilities.read_by_hive3
        if is_for_hive3:
            refuse_zstd(table, partitions, snapshot)
        _require_supported_types(table)
        _require_keys_kept(table, self._new.store)
        refuse_cdc_tables(self._old.store, table)
        self._old.store.alter_table(
            self._old.name, set_properties={MOVING: f"to {self._new.address}"}, txn_id=old_txn.id
        )
        is_begun = new_table is not None
        try:
            new_valid_txns = ValidTxnList(0) if is_for_hive3 else self._new.store.valid_txns()
            strip_visibility_txns(table, partitions, snapshot, new_valid_txns)
            self._create_table(new_txn, table, partitions, new_table)
            is_begun = True
            self._require_same_files(table, partitions)
            self._write_label(table)
        except (MetastoreError, CommitUnknownError):
            raise  # nobody knows what the metastore has done: the marks stay
        except (AcidSqlError, OSError):
            with suppress(AcidSqlError):
                self._undo(old_txn, table.location, is_begun)
            raise
        self._old.store.drop_table(self._old.name, txn_id=old_txn.id, delete_data=False)
        old_txn.end_quietly()

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    def _create_table(
        self, txn: Txn, table: Table, partitions: Sequence[Partition], new_table: Table | None
    ) -> None:
        """Commit the transaction that creates the table in the new metastore, with the mark, its
        partitions, and write ids above those of its files. If an earlier attempt has made
        ``new_table`` there, only partitions are added; but if the old table was written to since,
        ``new_table`` is dropped without its files, and the table is created anew."""
        last_write_id = self._old.high_water_mark
        if new_table is not None and self._new.high_water_mark < last_write_id:
            # The old metastore's table was written to after the first attempt.
            self._new.store.drop_table(self._new.name, txn_id=txn.id, delete_data=False)
            new_table = None
        location = self._location(table)
        moved_partitions = [
            replace(partition, location=location + partition.location.removeprefix(table.location))
            for partition in partitions
        ]
        self._make_database()
        properties = {**table.properties, MOVING: f"from {self._old.address}"}
        created_table = replace(
            table, name=self._new.name, location=location, properties=properties, identity=""
        )
        txn.commit(
            Commit(
                created_table=created_table if new_table is None else None,
                first_write_id=last_write_id + 1,
                added_partitions={self._new.name: moved_partitions} if moved_partitions else {},
            )
        )

    def _location(self, table: Table) -> str:
        """Return the path of the table's directory in the form that the new metastore keeps. The
        directory itself is the same."""
        return (
            table.location
            if self._new.store.abilities.shared_with_hive
            else normalized_location(table.location)
        )

    def _make_database(self) -> None:
        """Create the new table's database, unless it exists, with the directory ``<name>.db`` in
        that of the database ``default``.

        Its directory is never around the table's directory, because a Hive Metastore deletes the
        directory of a dropped database.
        """
        store, name = self._new.store, self._new.name.database
        if store.get_database(name) is None:
            default = store.get_database("default")
            assert default is not None
            store.create_database(Database(name, f"{default.location}/{directory_name(name)}.db"))

    def _write_label(self, table: Table) -> None:
        """Write a label, a file in the table's directory that says that the table has moved to a
        Hive Metastore; if the table moves to another kind of metastore, delete the label if there
        is one.

        Otherwise acidsql's own metastore would give the directory to a new table of the old name.
        """
        if self._new.store.abilities.shared_with_hive:
            label = f"{self._new.address}\n".encode()
            filesystem_for(table.location).write_file(f"{table.location}/{MOVED_FILE}", label)
        else:
            _remove_label(table.location)

    def _require_same_files(self, table: Table, partitions: Sequence[Partition]) -> None:
        """List the table's files by both metastores, and raise UnsupportedError unless readers find
        the same ones. Nothing is checked if somebody has written to the new table already."""
        if self._new.high_water_mark > self._old.high_water_mark:
            return  # a program that does not know the mark has used the table already
        old_files = snapshot_files(table, partitions, self._old.snapshot(), self._old.name)
        new_files = snapshot_files(table, partitions, self._new.snapshot(), self._new.name)
        if old_files != new_files:
            differences = sorted(set(old_files) ^ set(new_files)) or sorted(old_files)
            raise UnsupportedError(
                f"Readers of {self._new.store_name} would not see the same files of "
                f"{self._old.name} (for example {differences[0][0]}). Run a major compaction, and "
                "clean up, first.",
                condition="UNSUPPORTED_FEATURE.MOVE",
            )

    def _undo(self, old_txn: Txn, location: str, is_made: bool) -> None:
        """Undo the steps so far.

        First delete the label (``_write_label``), if Hive uses the new metastore, too. Then drop
        the new table without its files, if it ``is_made`` and is there: in a transaction of its
        own, under an EXCLUSIVE lock. Then remove the mark of the old table. If somebody has written
        to the new table, the new table and the mark stay, without the label.
        """
        store = self._new.store
        if store.abilities.shared_with_hive:
            _remove_label(location)
        if is_made and acid_table(store.find(self._new.name)) is not None:
            if self._new.high_water_mark > self._old.high_water_mark:
                return  # somebody has written to it: only the end of the move is right
            with self._managers[1].open(agent_info=self._call) as txn:
                txn.lock([exclusive_lock(self._new.name)], agent_info=self._call)
                store.drop_table(self._new.name, txn_id=txn.id, delete_data=False)
                txn.end_quietly()
        self._old.store.alter_table(self._old.name, unset_properties=[MOVING], txn_id=old_txn.id)

    def _unmark(self, txn: Txn) -> None:
        """Remove the mark of the table in the new metastore."""
        self._new.store.alter_table(self._new.name, unset_properties=[MOVING], txn_id=txn.id)


def _remove_label(location: str) -> None:
    """Delete the label that the table of this directory has moved to a Hive Metastore, if it is
    there."""
    fs, label_path = filesystem_for(location), f"{location}/{MOVED_FILE}"
    if fs.exists(label_path):
        fs.delete_file(label_path)


def refuse_cdc_tables(store: Metastore, table: Table) -> None:
    """Refuse a table that has tables of AUTO CDC beside it: a move would leave them behind.

    Raises:
        UnsupportedError: UNSUPPORTED_FEATURE.MOVE.
    """
    for name in cdc.cdc_table_names(table.name):
        cdc_table = acid_table(store.find(name))
        if cdc_table is not None and cdc.is_cdc_table(cdc_table):
            raise UnsupportedError(
                f"{table.name} follows changes by AUTO CDC, which needs {name} beside it. A move "
                f"would leave that table behind. DROP TABLE {name} ends the following.",
                condition="UNSUPPORTED_FEATURE.MOVE",
            )


def _require_supported_types(table: Table) -> None:
    """Raise FormatError, which names the type, if acidsql does not support a column's type."""
    for column in table.all_columns:
        parse_type(column.type)  # raises the error


def _require_keys_kept(table: Table, store: Metastore) -> None:
    """Raise UnsupportedError if the table has a PRIMARY KEY, UNIQUE or FOREIGN KEY, and the
    metastore keeps no keys."""
    keys = [
        constraint
        for constraint in table.constraints
        if constraint.kind not in (ConstraintKind.CHECK, ConstraintKind.NOT_NULL)
    ]
    if keys and not store.abilities.keeps_keys:
        raise UnsupportedError(
            f"{table.name} has the constraint {keys[0].name} ({keys[0].kind.value}), which acidsql "
            "does not make in a Hive Metastore. It is information alone: ALTER TABLE … DROP "
            "CONSTRAINT, and add it there by Hive.",
            condition="UNSUPPORTED_FEATURE.KEY_CONSTRAINT",
        )
