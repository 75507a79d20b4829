"""Moves a table from one metastore to another. Its files stay where they are, as they are.

The steps, each of which a killed process may leave behind it:

1. Lock the table in both metastores. If somebody reads or writes it there, the move fails.
2. Mark the table in its old metastore (``acidsql.moving``). acidsql uses no marked table.
3. Create it in the new metastore, marked, too, with write ids above those of its files.
4. Look whether a reader there finds the same files.
5. Remove it from the old metastore, without its files.
6. Take the mark away in the new one.

So at any moment at least one metastore has the table, and at most one has it without a mark. The
same call again goes on where the first one ended. If a step fails, the steps before it are undone.
If a metastore does not answer, nobody knows what it has done, and the marks stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from acidsql.acid import cdc
from acidsql.acid.constraints import Kind
from acidsql.acid.layout import MOVED_FILE
from acidsql.acid.paths import directory_name
from acidsql.acid.table import MOVING, Partition, Table, TableName
from acidsql.acid.types import parse_type
from acidsql.acid.write_ids import ValidTxnList
from acidsql.errors import (
    AcidSqlError,
    CatalogError,
    CommitUnknownError,
    MetastoreError,
    UnsupportedError,
)
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Database, Metastore
from acidsql.plan.locking import exclusive
from acidsql.statements.moving_files import (
    files_of,
    need_settled,
    refuse_zstd,
    rename_visible,
)
from acidsql.statements.places import entering
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.txn import AT_ONCE, SessionLocks, Snapshot, Txn, TxnManager
from acidsql.txn.snapshot import snapshot_of


@dataclass(frozen=True, slots=True)
class Side:
    """A metastore, and the table's name in it.

    Attributes:
        store: The metastore.
        name: The table's name.
        place: The metastore in words, without a password.
        locks: The locks that the session holds there.
    """

    store: Metastore
    name: TableName
    place: str
    locks: SessionLocks | None = None

    @property
    def words(self) -> str:
        """The table's place, as the mark in the other metastore names it."""
        return f"{self.place} {self.name}"

    def snapshot(self) -> Snapshot:
        """What a reader sees now."""
        return snapshot_of(self.store, self.store.valid_txns(), [self.name])

    @property
    def high_water_mark(self) -> int:
        """The table's highest write id."""
        return self.snapshot().write_ids[self.name].high_water_mark


class Move:
    """One move.

    Args:
        old: The metastore that has the table.
        new: The metastore that gets it.
        call: The name of the public function.
        user: The user's name, which others see at the locks, as they see the host.
        host: The host of this process.
    """

    def __init__(self, old: Side, new: Side, call: str, *, user: str, host: str) -> None:
        self._old, self._new, self._call = old, new, call
        self._managers = [
            TxnManager(one.store, AT_ONCE, user=user, host=host, passed=one.locks)
            for one in (old, new)
        ]

    def run(self) -> None:
        """Move the table, or end a move that was interrupted.

        Raises:
            CatalogError: There is no such table, the name is taken, or the move cannot be made.
            LockTimeoutError: Somebody uses the table.
            UnsupportedError: The new metastore's readers would not see the same rows.
        """
        try:
            self._run()
        finally:
            for manager in self._managers:
                manager.close()

    def _run(self) -> None:
        old, new = (manager.open(agent_info=self._call) for manager in self._managers)
        with old, new:
            old.lock([exclusive(self._old.name)], agent_info=self._call)
            new.lock([exclusive(self._new.name)], agent_info=self._call)
            table, made = self._looked_up()
            if table is None:
                self._unmark(new)
                new.end_quietly()
                return
            self._move(old, new, table, made)
        with self._managers[1].open(agent_info=self._call) as last:
            last.lock([exclusive(self._new.name)], agent_info=self._call)
            self._unmark(last)
            last.end_quietly()

    def _looked_up(self) -> tuple[Table | None, Table | None]:
        """The table in the old and in the new metastore; None if it is not there."""
        table = acid_table(self._old.store.find(self._old.name))
        made = acid_table(self._new.store.find(self._new.name))
        is_ours = made is not None and made.moving == f"from {self._old.words}"
        if table is None and not is_ours:
            raise CatalogError(
                f"There is no ACID table {self._old.name} in {self._old.place}.",
                table=self._old.name,
            )
        if made is not None and not is_ours:
            raise CatalogError(
                f"There is a table {self._new.name} already in {self._new.place}.",
                condition="TABLE_OR_VIEW_ALREADY_EXISTS", sqlstate="42P07", table=self._new.name,
            )  # fmt: skip
        if table is not None and table.moving not in (None, f"to {self._new.words}"):
            raise CatalogError(
                f"{self._old.name} is moving {table.moving}. Repeat that move.",
                condition="TABLE_IS_MOVING", sqlstate="55006", table=self._old.name,
            )  # fmt: skip
        return table, made

    def _move(self, old: Txn, new: Txn, table: Table, made: Table | None) -> None:
        partitions = self._old.store.partitions(self._old.name)
        seen = self._old.snapshot()
        need_settled(table, partitions, seen, for_hive=self._new.store.abilities.shared_with_hive)
        is_for_hive3 = self._new.store.abilities.read_by_hive3
        if is_for_hive3:
            refuse_zstd(table, partitions, seen)
        _need_types(table)
        _need_keys(table, self._new.store)
        need_no_state(self._old.store, table)
        self._old.store.alter_table(
            self._old.name, set_properties={MOVING: f"to {self._new.words}"}, txn_id=old.id
        )
        is_begun = made is not None
        try:
            theirs = ValidTxnList(0) if is_for_hive3 else self._new.store.valid_txns()
            rename_visible(table, partitions, seen, theirs)
            self._create(new, table, partitions, made)
            is_begun = True
            self._need_same(table, partitions)
            self._label(table)
        except (MetastoreError, CommitUnknownError):
            raise  # nobody knows what the metastore has done: the marks stay
        except (AcidSqlError, OSError):
            with suppress(AcidSqlError):
                self._undo(old, table.location, is_begun)
            raise
        self._old.store.drop_table(self._old.name, txn_id=old.id, delete_data=False)
        old.end_quietly()

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    def _create(
        self, txn: Txn, table: Table, partitions: Sequence[Partition], made: Table | None
    ) -> None:
        last = self._old.high_water_mark
        if made is not None and self._new.high_water_mark < last:
            # The old metastore's table was written to after the first attempt.
            self._new.store.drop_table(self._new.name, txn_id=txn.id, delete_data=False)
            made = None
        where = self._location(table)
        moved = [
            replace(one, location=where + one.location.removeprefix(table.location))
            for one in partitions
        ]
        self._make_database()
        properties = {**table.properties, MOVING: f"from {self._old.words}"}
        txn.commit(
            create_table=replace(
                table, name=self._new.name, location=where, properties=properties, identity=""
            )
            if made is None
            else None,
            first_write_id=last + 1,
            add_partitions={self._new.name: moved} if moved else None,
        )

    def _location(self, table: Table) -> str:
        return (
            table.location
            if self._new.store.abilities.shared_with_hive
            else entering(table.location)
        )

    def _make_database(self) -> None:
        """Never around the table: a Hive Metastore deletes a dropped database's directory."""
        store, name = self._new.store, self._new.name.database
        if store.get_database(name) is None:
            default = store.get_database("default")
            assert default is not None
            store.create_database(Database(name, f"{default.location}/{directory_name(name)}.db"))

    def _label(self, table: Table) -> None:
        """Say in the directory that it belongs to another metastore, or not any more.

        Otherwise acidsql's own metastore would give the directory to a new table of the old name.
        """
        if self._new.store.abilities.shared_with_hive:
            label = f"{self._new.words}\n".encode()
            filesystem_for(table.location).write_file(f"{table.location}/{MOVED_FILE}", label)
        else:
            _take_label(table.location)

    def _need_same(self, table: Table, partitions: Sequence[Partition]) -> None:
        """Raise unless readers find the same files by both metastores."""
        if self._new.high_water_mark > self._old.high_water_mark:
            return  # a program that does not know the mark has used the table already
        before = files_of(table, partitions, self._old.snapshot(), self._old.name)
        after = files_of(table, partitions, self._new.snapshot(), self._new.name)
        if before != after:
            odd = sorted(set(before) ^ set(after)) or sorted(before)
            raise UnsupportedError(
                f"Readers of {self._new.place} would not see the same files of {self._old.name} "
                f"(for example {odd[0][0]}). Run a major compaction, and clean up, first.",
                condition="UNSUPPORTED_FEATURE.MOVE",
            )

    def _undo(self, old: Txn, location: str, is_made: bool) -> None:
        store = self._new.store
        if store.abilities.shared_with_hive:
            _take_label(location)
        if is_made and acid_table(store.find(self._new.name)) is not None:
            if self._new.high_water_mark > self._old.high_water_mark:
                return  # somebody has written to it: only the end of the move is right
            with self._managers[1].open(agent_info=self._call) as txn:
                txn.lock([exclusive(self._new.name)], agent_info=self._call)
                store.drop_table(self._new.name, txn_id=txn.id, delete_data=False)
                txn.end_quietly()
        self._old.store.alter_table(self._old.name, unset_properties=[MOVING], txn_id=old.id)

    def _unmark(self, txn: Txn) -> None:
        self._new.store.alter_table(self._new.name, unset_properties=[MOVING], txn_id=txn.id)


def _take_label(location: str) -> None:
    files, label = filesystem_for(location), f"{location}/{MOVED_FILE}"
    if files.exists(label):
        files.delete_file(label)


def need_no_state(store: Metastore, table: Table) -> None:
    """Refuse a table with tables of AUTO CDC beside it, which would stay behind.

    Raises:
        UnsupportedError: UNSUPPORTED_FEATURE.MOVE.
    """
    for name in cdc.names_beside(table.name):
        beside = acid_table(store.find(name))
        if beside is not None and cdc.is_beside(beside):
            raise UnsupportedError(
                f"{table.name} follows changes by AUTO CDC, which needs {name} beside it. A move "
                f"would leave that table behind. DROP TABLE {name} ends the following.",
                condition="UNSUPPORTED_FEATURE.MOVE",
            )


def _need_types(table: Table) -> None:
    for column in table.all_columns:
        parse_type(column.type)  # raises an error that names an unsupported type


def _need_keys(table: Table, store: Metastore) -> None:
    keys = [one for one in table.constraints if one.kind not in (Kind.CHECK, Kind.NOT_NULL)]
    if keys and not store.abilities.keeps_keys:
        raise UnsupportedError(
            f"{table.name} has the constraint {keys[0].name} ({keys[0].kind.value}), which acidsql "
            "does not make in a Hive Metastore. It is information alone: ALTER TABLE … DROP "
            "CONSTRAINT, and add it there by Hive.",
            condition="UNSUPPORTED_FEATURE.KEY_CONSTRAINT",
        )
