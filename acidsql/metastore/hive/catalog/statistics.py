"""The number of rows in a Hive Metastore, which a commit changes.

Hive answers ``count(*)`` from ``numRows`` while COLUMN_STATS_ACCURATE says that statistics are
right. No program tells the server that rows have changed. So whoever commits takes that mark away
first. That is not enough: after each compaction, Hive sets the mark again without counting
(``ANALYZE TABLE … NOSCAN``), and each INSERT of Hive adds to ``numRows``, even if that is wrong or
missing. So ``numRows`` must always be right.

A change of statistics bears the write id of its transaction. So the server notices if Hive's
INSERT OVERWRITE, which sets the mark, runs at the same time.

To read it, add to it, and write it back takes two calls. Meanwhile the transaction has a lock on a
name that only acidsql uses, so that its sessions do not lose each other's changes. A transaction of
one statement asks for it together with its record (``HiveTxns.record_partitions``), which saves a
call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from acidsql.acid.layout import parse_partition_name
from acidsql.acid.table import STATISTICS, Partition, TableName
from acidsql.errors import AcidSqlError, LockTimeoutError
from acidsql.metastore.hive.catalog.partitions import HivePartitions
from acidsql.metastore.hive.locking.locks import HiveLocks, raw_component
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.own_txns import OwnTxn
from acidsql.metastore.hive.wire.raw_tables import RawTables, chunks
from acidsql.metastore.hive.wire.server import NAME_MAX, Server
from acidsql.metastore.interface import LockType, Operation, RowChange, RowChanges

_NOT_KNOWN = RowChange(None)


class HiveStatistics:
    """The part of the store about statistics."""

    def __init__(
        self,
        server: Server,
        raw_tables: RawTables,
        locks: HiveLocks,
        partitions: HivePartitions,
    ) -> None:
        self._server, self._raw_tables = server, raw_tables
        self._locks, self._partitions = locks, partitions

    def statistics(self, name: TableName) -> dict[str, str]:
        """See ``Catalog``."""
        raw = self._raw_tables.find(name)
        return {} if raw is None else convert.statistics_of(raw)

    def keep_statistics(
        self, name: TableName, entries: Mapping[str, str], *, txn_id: int | None = None
    ) -> None:
        """Note facts about a table beside its properties; earlier ones of other names stay. A
        transaction does so under the lock on the numbers of rows, which it keeps; None takes no
        lock. Without the lock, a commit of another session would lose what it tells the server
        about rows.

        Raises:
            LockTimeoutError: Others hold this lock.
            CatalogError: There is no such table.
        """
        own = self._server.own_txn(txn_id or 0)
        if txn_id is not None:
            self.lock_counts(own, [name])
            if name not in own.counts_locked:
                raise LockTimeoutError(
                    f"The statistics of {name} cannot be noted, because transactions that change "
                    "the table are committing. Run the statement again.",
                    txnId=txn_id,
                )
        raw = self._raw_tables.need(name)
        convert.change_properties(raw, {f"{STATISTICS}{k}": v for k, v in entries.items()}, ())
        self._raw_tables.alter(name, raw)

    def lock_counts(self, own: OwnTxn, tables: Iterable[TableName]) -> None:
        """Lock the numbers of rows of tables, until the transaction ends, and note this in
        ``own.counts_locked``. If others hold one of the locks for too long, none is taken, and
        nothing is raised."""
        names = sorted(set(tables) - own.counts_locked, key=str)
        if names and self._locks.lock_soon(own, [row_count_lock(table) for table in names]):
            own.counts_locked.update(names)

    def count_all(
        self,
        own: OwnTxn,
        changes: RowChanges,
        added: Mapping[TableName, Iterable[Partition]],
    ) -> None:
        """Change the numbers of rows on the server, and add the partitions, before COMMIT. What an
        earlier attempt told the server is taken back first.

        A number whose lock is not granted becomes unknown.

        Args:
            own: The transaction. It notes what the server was told.
            changes: How it changes the numbers of rows, by table and partition.
            added: The partitions that it has written to; the catalog may know them.
        """
        self.uncount(own)
        tables = dict.fromkeys([*own.write_ids, *added])
        counting = [
            table
            for table in tables
            if any(map(_changes_row_count, changes.get(table, {}).values()))
        ]
        self.lock_counts(own, counting)
        for table in tables:
            raw = self._raw_tables.find(table)
            if raw is None:
                continue  # its rows go with it
            own.places[table] = convert.from_server_location(raw.sd.location)
            row_changes = changes.get(table, {})
            if table in counting and table not in own.counts_locked:
                row_changes = dict.fromkeys(row_changes, _NOT_KNOWN)
            touched = {**dict.fromkeys(own.partitions(table), RowChange(0)), **row_changes}
            own.reported_row_counts[table] = None
            existing = self._count(raw, touched, own.write_ids.get(table))
            new = [
                partition for partition in added.get(table, ()) if partition.values not in existing
            ]
            self._partitions.add(
                raw, new, {_values(name): change for name, change in row_changes.items()}
            )
            own.reported_row_counts[table] = row_changes

    def uncount(self, own: OwnTxn) -> None:
        """Take back the numbers of rows that the server was told of a transaction that did not
        commit. Errors are ignored.

        A number that is not locked becomes unknown, because others may write it at the same time.
        """
        counted, own.reported_row_counts = own.reported_row_counts, {}
        for table, changes in counted.items():
            if changes is None:
                changes = dict.fromkeys(own.partitions(table) or [""], _NOT_KNOWN)
            elif table not in own.counts_locked:
                changes = {
                    name: _NOT_KNOWN
                    for name, change in changes.items()
                    if _changes_row_count(change)
                }
            back = {
                name: change.reverted
                for name, change in changes.items()
                if _changes_row_count(change)
            }
            with suppress(AcidSqlError):  # the transaction's own error is more important
                raw = self._raw_tables.find(table) if back else None
                if raw is not None:
                    self._count(raw, back, None)

    def _count(
        self, raw: Any, changes: Mapping[str, RowChange], write_id: int | None
    ) -> set[tuple[str | None, ...]]:
        """Change the numbers of rows of a table and its partitions on the server, and remove their
        marks of being right. Partitions that the server does not have are skipped.

        Args:
            raw: The table's struct.
            changes: The changes by the partition's name; "" is the unpartitioned table itself.
            write_id: The transaction's write id; None: it has ended.

        Returns:
            The values of those partitions in ``changes`` that exist.
        """
        name = TableName(raw.dbName, raw.tableName)
        if _change_row_count(raw, changes.get("")):
            self._raw_tables.alter(name, raw, write_id)
        existing: set[tuple[str | None, ...]] = set()
        for chunk in chunks(sorted(set(changes) - {""})):
            database = self._server.qualified_database(name.database)
            raws = self._server.call("get_partitions_by_names", database, name.name, list(chunk))
            existing.update(map(_values_of, raws))
            by_values = {
                _values(partition_name): changes[partition_name] for partition_name in chunk
            }
            changed = [
                raw for raw in raws if _change_row_count(raw, by_values.get(_values_of(raw)))
            ]
            if changed:
                self._raw_tables.alter_partitions(name, changed, write_id)
        return existing


def row_count_lock(table: TableName) -> Any:
    """The lock on a table's numbers of rows, as a component."""
    name = f"(rows of {table.name})"[:NAME_MAX]
    return raw_component(LockType.EXCL_WRITE, table.database, name, None, Operation.SELECT)


def _changes_row_count(change: RowChange) -> bool:
    return change.is_all or change.rows != 0


def _change_row_count(raw: Any, change: RowChange | None) -> bool:
    """Change the number of rows in a struct, and remove the mark that it is right; nothing is sent.
    Return whether the struct has changed. Without a ``change`` the number stays."""
    before: dict[str, str] = dict(raw.parameters or {})
    rows = convert.row_count(raw)
    convert.set_row_count(raw, rows if change is None else change.rows_after(rows))
    return before != dict(raw.parameters)


def _values_of(raw: Any) -> tuple[str | None, ...]:
    return convert.partition_of(raw).values


def _values(name: str) -> tuple[str | None, ...]:
    return tuple(value for _, value in parse_partition_name(name)) if name else ()
