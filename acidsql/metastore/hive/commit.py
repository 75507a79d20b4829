"""The COMMIT of a transaction in a Hive Metastore, from the first call to the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList
from acidsql.errors import (
    AcidSqlError,
    MetastoreError,
    NoSuchTxnError,
    TxnAbortedError,
    TxnError,
    WriteConflictError,
)
from acidsql.metastore import conflict_rules
from acidsql.metastore.hive.catalog.partitions import HivePartitions
from acidsql.metastore.hive.catalog.statistics import HiveStatistics
from acidsql.metastore.hive.catalog.tables import HiveTables
from acidsql.metastore.hive.commit_call import send_commit
from acidsql.metastore.hive.locking.conflicts import HiveConflicts
from acidsql.metastore.hive.locking.numbers import HiveNumbers
from acidsql.metastore.hive.streams import HiveStreams
from acidsql.metastore.hive.txns import HiveTxns
from acidsql.metastore.hive.wire import convert
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.own_txns import OwnTxn
from acidsql.metastore.hive.wire.server import Server, log
from acidsql.metastore.hive.workers import HiveWorkers
from acidsql.metastore.interface import PLAIN_COMMIT, Commit, RowChanges


class HiveCommit:
    """COMMIT, which is several calls: ``commit_txn`` decides, what others must know comes before.

    If it does not commit, a created table is dropped again, and the numbers of rows are taken back;
    a partition without rows stays.
    """

    def __init__(
        self,
        server: Server,
        numbers: HiveNumbers,
        conflicts: HiveConflicts,
        tables: HiveTables,
        partitions: HivePartitions,
        statistics: HiveStatistics,
        txns: HiveTxns,
        streams: HiveStreams,
        workers: HiveWorkers,
    ) -> None:
        self._server, self._numbers, self._conflicts = server, numbers, conflicts
        self._tables, self._partitions, self._statistics = tables, partitions, statistics
        self._txns, self._streams, self._workers = txns, streams, workers

    def commit_txn(self, txn_id: int, commit: Commit = PLAIN_COMMIT) -> None:
        """Commit a transaction, but not in one step, and forget it.

        First a new table is created, the server is told numbers of rows, partitions and files, and
        conflicts are looked for; then a batch's entry is locked, and a compaction is marked. After
        COMMIT, partitions are dropped; failures of that are only logged. If an error says that
        COMMIT has not happened, a created table is dropped again without its files, and the numbers
        are taken back. A MetastoreError, even one before COMMIT, leaves the outcome open: all
        stays.

        Raises:
            WriteConflictError: Others have committed conflicting changes.
            TxnError: The transaction has ended, or another worker has the compaction.
            StreamError, LockTimeoutError: As ``HiveStreams.lock_next_entry`` says.
        """
        assert not commit.is_replacement, "see ``Abilities.replaces_tables``"
        own = self._server.own_txn(txn_id)
        self._create_table(txn_id, commit)
        try:
            self._tell_changes(own, commit)
            self._refuse_conflicts(own, commit.snapshot)
            entry = (
                None if commit.batch is None else self._streams.lock_next_entry(own, commit.batch)
            )
            compacted = commit.compacted
            with nullcontext() if compacted is None else self._workers.compacted(txn_id, compacted):
                self._commit_and_release(own, entry)
        except MetastoreError:
            raise  # the outcome is not known
        except AcidSqlError as error:
            self._take_back(own, commit, error)
            raise
        self._server.own_txns.pop(txn_id, None)
        self._drop_partitions(commit.dropped_partitions)

    def _create_table(self, txn_id: int, commit: Commit) -> None:
        """Create ``commit.created_table`` on the server; None: do nothing. It has 0 rows for now if
        ``row_changes`` count its rows; otherwise the number is not known."""
        new_table = commit.created_table
        if new_table is not None:
            rows = 0 if new_table.name in commit.row_changes else None
            self._tables.create_table(
                new_table, first_write_id=commit.first_write_id, txn_id=txn_id, rows=rows
            )

    def _tell_changes(self, own: OwnTxn, commit: Commit) -> None:
        """Tell the server the numbers of rows, add the partitions that the catalog lacks, and tell
        which partitions of each table the transaction has changed. If the server asks for files
        (``tells_writes``), tell them, too."""
        self._statistics.count_all(own, commit.row_changes, commit.added_partitions)
        for table in own.write_ids:
            self._partitions.tell(own, table)
        if self._server.features.tells_writes:
            self._tell_writes(own, commit.row_changes)

    def _tell_writes(self, own: OwnTxn, changes: RowChanges) -> None:
        """Tell the server which files a transaction has written, in a call for each table and
        partition of ``changes``, so that its listeners can tell others at the commit. The files are
        all that is in the change's directories now. A table without a write id is left out."""
        for table, partitions in changes.items():
            for name, change in partitions.items() if table in own.write_ids else ():
                files = [
                    f"{directory}/{file}"
                    for directory in change.directories
                    for file in self._server.list_names(directory)
                ]
                request = hive.WriteNotificationLogRequest(
                    txnId=own.id,
                    writeId=own.write_ids[table],
                    db=table.database,
                    table=table.name,
                    fileInfo=hive.InsertEventRequestData(
                        replace=change.is_all,
                        filesAdded=list(map(convert.to_server_location, files)),
                    ),
                    partitionVals=convert.partition_values(name),
                )
                self._server.call("add_write_notification_log", request)

    def _refuse_conflicts(self, own: OwnTxn, snapshot: ValidTxnList | None) -> None:
        """Raise WriteConflictError if others have committed conflicting changes that the snapshot
        does not see. Without a snapshot only changes with higher write ids than the transaction's
        own count."""
        conflicts = self._conflicts.at_commit(own, snapshot)
        if conflicts:
            raise conflict_rules.conflict_error(own.id, conflicts)

    def _commit_and_release(self, own: OwnTxn, entry: Any) -> None:
        """Send a heartbeat if another number holds the locks, COMMIT, and release the locks, also
        if the server says that the transaction has ended. ``entry``: the property that notes a
        batch of a stream, or None. If the outcome is not known, the locks stay until they time out.
        """
        self._numbers.need_locks(own)
        try:
            send_commit(self._server.client, own, entry)
        except TxnError:  # it has ended
            self._numbers.release(own)
            raise
        self._numbers.release(own)

    def _take_back(self, own: OwnTxn, commit: Commit, error: AcidSqlError) -> None:
        """Take back what was told before a COMMIT that has failed with this error: the numbers of
        rows, and the created table, whose files stay. A failure of that is ignored. If the error
        says that the transaction has ended, another transaction locks the numbers meanwhile."""
        has_ended = isinstance(error, TxnAbortedError | NoSuchTxnError)
        if has_ended or (isinstance(error, WriteConflictError) and error.ended):
            self._txns.uncount_ended(own)
        else:
            self._statistics.uncount(own)
        if commit.created_table is not None:
            # The transaction's own directories go when it is abandoned. Others may be the files of
            # a table that was about to move here.
            with suppress(AcidSqlError):
                self._tables.drop(commit.created_table.name, delete_data=False)

    def _drop_partitions(
        self, partitions: Mapping[TableName, Sequence[tuple[str | None, ...]]]
    ) -> None:
        """Drop the partitions with these values from the catalog, table by table; files stay, and a
        failure is only logged."""
        for table, values in partitions.items():
            try:
                self._partitions.drop(table, values)
            except AcidSqlError as error:  # the transaction is committed
                log.warning("Partitions of %s are without rows, but not dropped: %s", table, error)
