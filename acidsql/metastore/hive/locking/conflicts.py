"""Which committed changes a snapshot does not see, told from write ids and names of directories.

A rebalance has no write id. So a base that the snapshot does not see is looked up in the queue.

The server compares two transactions by time: who waited for a lock would lose to the transaction
that it waited for. So acidsql compares itself, and tells the server not to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from acidsql.acid.layout import AcidDirectory, DirectoryKind, parse_directory
from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.errors import TxnAbortedError, WriteConflictError
from acidsql.metastore.hive.wire import convert, snapshots
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.own_txns import OwnTxn
from acidsql.metastore.hive.wire.raw_tables import RawTables
from acidsql.metastore.hive.wire.server import Server
from acidsql.metastore.interface import LockComponent, Operation, WriteConflict

_ValidIds = TypeVar("_ValidIds", ValidTxnList, ValidWriteIdList)


def unseen_ids(before: _ValidIds, now: _ValidIds, own: int | None) -> list[int]:
    """Return the write ids, or transactions, that were committed since a snapshot, ascending,
    without our ``own``."""
    new: range = range(before.high_water_mark + 1, now.high_water_mark + 1)
    candidates = sorted({*before.exceptions, *new} - {own})
    return [number for number in candidates if now.is_valid(number) and not before.is_valid(number)]


def higher_write_ids(now: ValidWriteIdList, own: int) -> list[int]:
    """Return the committed write ids that are higher than our own, ascending."""
    return [
        write_id for write_id in range(own + 1, now.high_water_mark + 1) if now.is_valid(write_id)
    ]


def conflicting_write_id(
    directory_names: Iterable[str],
    unseen_write_ids: Sequence[int],
    operations: Collection[Operation],
    own_write_id: int | None,
) -> int | None:
    """Return a write id whose changes conflict with ours, the highest one in the first directory
    with a conflict; None if there is none.

    The rules are those of ``conflict_rules``. Only if a compaction has put several write ids
    together, a conflict is supposed where there may be none.

    Args:
        directory_names: The directories of a partition, or of an unpartitioned table.
        unseen_write_ids: The committed write ids that our snapshot does not see, ascending.
        operations: How we change the partition.
        own_write_id: Our write id, if there is one yet.
    """
    for name in directory_names:
        directory = parse_directory(name)
        if directory is not None:
            met_write_ids = _common_write_ids(directory, unseen_write_ids)
            if met_write_ids and _may_conflict(
                directory, met_write_ids, set(operations), own_write_id
            ):
                return met_write_ids[-1]
    return None


def _common_write_ids(directory: AcidDirectory, unseen_write_ids: Sequence[int]) -> list[int]:
    """Return those of the write ids whose events may be in a directory: those in its name's range;
    for a base that a compaction wrote, all up to the base's own."""
    first = directory.min_write_id
    if directory.kind is DirectoryKind.BASE and directory.visibility_txn_id:
        first = 0  # a compacted base has the events of all write ids up to its own
    return [
        write_id for write_id in unseen_write_ids if first <= write_id <= directory.max_write_id
    ]


def _may_conflict(
    directory: AcidDirectory,
    met_write_ids: Sequence[int],
    own_operations: set[Operation],
    own_write_id: int | None,
) -> bool:
    """Whether changes by these write ids in a directory conflict with our operations, as far as its
    kind tells. A delta with inserts conflicts only with our overwrite, if its write id is higher. A
    delete delta or a base conflicts unless we only insert; a base that is no compaction's also if
    its write id is higher than ours."""
    changes = bool(own_operations - {Operation.INSERT})
    if directory.kind is DirectoryKind.DELETE_DELTA:
        return changes
    if directory.kind is DirectoryKind.DELTA:
        return (
            Operation.OVERWRITE in own_operations
            and own_write_id is not None
            and met_write_ids[0] < own_write_id
        )
    if changes:
        return True
    # An overwrite with a higher write id hides what we insert. A compaction hides nothing.
    return (
        own_write_id is not None
        and met_write_ids[-1] > own_write_id
        and not directory.visibility_txn_id
    )


def may_be_hidden_by_overwrite(directory_names: Iterable[str], own_write_id: int) -> bool:
    """Whether one of these directories is the base of an overwrite with a higher write id than
    ours, which would hide the rows that we have inserted. Whether the overwrite has committed is
    not asked."""
    directories = (parse_directory(name) for name in directory_names)
    return any(
        directory is not None
        and directory.kind is DirectoryKind.BASE
        and not directory.visibility_txn_id
        and directory.max_write_id > own_write_id
        for directory in directories
    )


class HiveConflicts:
    """The part of the store about conflicts; ``TxnStore`` describes the methods."""

    def __init__(self, server: Server, raw_tables: RawTables) -> None:
        self._server, self._raw_tables = server, raw_tables

    def write_conflicts(
        self,
        txn_id: int,
        snapshot: ValidTxnList,
        components: Sequence[LockComponent] | None = None,
    ) -> list[WriteConflict]:
        """Return the conflicts of ``components`` (None: of all that the transaction has written),
        without the winners' names.

        Only COMMIT knows which partitions a statement has changed whose text names none. So before,
        such a statement has no conflicts.
        """
        own = self._server.own_txn(txn_id)
        if components is None:
            changes = {
                (table, partition): set(own.operations(table))
                for table in own.write_ids
                for partition in own.partitions(table) or [""]
            }
        else:
            changes = self._changes_of_components(components)
        return self._conflicts(own, snapshot, changes)

    def _changes_of_components(
        self, components: Sequence[LockComponent]
    ) -> dict[tuple[TableName, str], set[Operation]]:
        """Return the operations of components by table and partition ("" if unpartitioned). SELECT,
        NO_TXN and whole databases are left out, as are components of a partitioned table that name
        no partition."""
        operations_by_partition: dict[tuple[TableName, str], set[Operation]] = {}
        for component in components:
            if component.table is None or component.operation in (
                Operation.SELECT,
                Operation.NO_TXN,
            ):
                continue
            name = TableName(component.database, component.table)
            if component.partition is not None or not self._raw_tables.is_partitioned(name):
                operations_by_partition.setdefault((name, component.partition or ""), set()).add(
                    component.operation
                )
        return operations_by_partition

    def at_commit(self, own: OwnTxn, snapshot: ValidTxnList | None) -> list[WriteConflict]:
        """Return the conflicts of a transaction that commits, at most one for each table and
        partition.

        What was locked before the snapshot was taken cannot have conflicts, with one exception:
        Hive's TRUNCATE does not wait for inserts, nor do inserts wait for it. Only this one is
        looked for without a snapshot, and then only higher write ids than the transaction's own
        count.
        """
        changes: dict[tuple[TableName, str], set[Operation]] = {}
        for table, write_id in own.write_ids.items():
            operations = set(own.operations(table))
            late = own.late_operations(table)
            inserts = Operation.INSERT in operations
            if snapshot is None:
                inserts = (
                    table,
                    Operation.INSERT,
                ) in own.recorded_operations  # it has published rows
            is_shared = own.shares(table) and inserts
            for partition in own.partitions(table) or [""] if late or is_shared else ():
                relevant = set(late)
                if is_shared and may_be_hidden_by_overwrite(
                    self._directory_names(own, table, partition), write_id
                ):
                    relevant.add(Operation.INSERT)
                if relevant:
                    changes[table, partition] = relevant
        return self._conflicts(own, snapshot, changes)

    def _rebalance_write_id(
        self, names: Iterable[str], snapshot: ValidTxnList, table: TableName
    ) -> int | None:
        """Return the write id of a base in which rows have row ids that the snapshot does not know;
        None if there is none.

        The queue tells what made the base. If the queue has forgotten, a rebalance is supposed.
        """
        new = [
            base
            for base in map(parse_directory, names)
            if base is not None
            and base.kind is DirectoryKind.BASE
            and base.visibility_txn_id
            and not snapshot.is_valid(base.visibility_txn_id)
        ]
        if not new:
            return None
        request = hive.ShowCompactRequest(dbName=table.database, tbName=table.name)
        entries = self._server.call("show_compact", request).compacts
        keeps = {entry.txnId for entry in entries if entry.type != hive.CompactionType.REBALANCE}
        return next(
            (base.max_write_id for base in new if base.visibility_txn_id not in keeps), None
        )

    def _conflicts(
        self,
        own: OwnTxn,
        snapshot: ValidTxnList | None,
        changes: dict[tuple[TableName, str], set[Operation]],
    ) -> list[WriteConflict]:
        """Return at most one conflict for each (table, partition) of ``changes``, with what the
        snapshot does not see: from the names of the directories there
        (``conflicting_write_id``). If none is found, and ``changes`` has more than inserts, a
        rebalance counts, too, but not in Hive 3. Without a snapshot, ``changes`` are inserts, and
        only write ids above our own matter. The conflicts have no winner's number, and are not by
        row; their order is that of table and partition."""
        if not changes:
            return []
        tables = sorted({table for table, _ in changes}, key=str)
        before = {} if snapshot is None else self.valid_write_ids(snapshot, tables)
        now_valid = snapshots.valid_txns(self._server.call("get_open_txns"), own.id)
        now = self.valid_write_ids(now_valid, tables)
        conflicts = []
        for (table, partition), operations in sorted(changes.items(), key=str):
            ours = own.write_ids.get(table)
            if snapshot is None:
                foreign = higher_write_ids(now[table], own.write_ids[table])
            else:
                foreign = unseen_ids(before[table], now[table], ours)
            changes_rows = (
                bool(operations - {Operation.INSERT}) and not self._server.features.is_hive3
            )
            if not foreign and not changes_rows:
                continue
            names = self._directory_names(own, table, partition)
            write_id = conflicting_write_id(names, foreign, operations, ours)
            if write_id is None and changes_rows and snapshot is not None:
                write_id = self._rebalance_write_id(names, snapshot, table)
            if write_id is not None:
                conflicts.append(
                    WriteConflict(None, table, partition or None, write_id, by_row=False)
                )
        return conflicts

    def _directory_names(self, own: OwnTxn, table: TableName, partition: str) -> Sequence[str]:
        """List what is in a partition's directory, or in the table's ("" as the partition): names
        only. The table's location is asked once for each transaction."""
        if table not in own.places:
            own.places[table] = convert.from_server_location(
                self._raw_tables.need(table).sd.location
            )
        return self._server.list_names(f"{own.places[table]}/{partition}".rstrip("/"))

    def valid_write_ids(
        self, valid_txns: ValidTxnList, tables: Sequence[TableName]
    ) -> dict[TableName, ValidWriteIdList]:
        """Return the write ids of each table that the snapshot sees, in one call; without tables
        none is made."""
        if not tables:
            return {}
        request = hive.GetValidWriteIdsRequest(
            fullTableNames=[str(table) for table in tables], validTxnList=str(valid_txns)
        )
        lists_by_name = {
            raw.fullTableName: snapshots.valid_write_ids(raw)
            for raw in self._server.call("get_valid_write_ids", request).tblValidWriteIds
        }
        return {table: lists_by_name[str(table)] for table in tables}


def converted_conflict(own: OwnTxn, error: TxnAbortedError) -> TxnAbortedError | WriteConflictError:
    """Return, not raise, the WriteConflictError (it has ``ended``) for an error of the server,
    which aborts a transaction that lost a conflict: its message has "due to a write conflict". Any
    other error is returned itself."""
    if "due to a write conflict" not in error.message:
        return error
    conflict = WriteConflictError(
        f"Another transaction committed a change to the same thing first, so transaction {own.id} "
        f"was aborted. Run it again; retries=n does so. {error.message}",
        txnId=own.id,
    )
    conflict.ended = True
    return conflict
