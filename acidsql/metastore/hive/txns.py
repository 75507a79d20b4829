"""The life of transactions in a Hive Metastore: open, look, write, commit, abort.

A COMMIT is several calls: statistics and partitions first, then ``commit_txn``, which decides. If
it does not commit, statistics are taken back, and a partition without rows stays. ``own_txns`` says
in which order locks and write ids must come.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.errors import (
    AcidSqlError,
    MetastoreError,
    NoSuchTxnError,
    TxnAbortedError,
    TxnError,
    WriteConflictError,
)
from acidsql.metastore import conflict_rules
from acidsql.metastore.hive.catalog.history import HiveHistory
from acidsql.metastore.hive.catalog.ledger import HiveLedger
from acidsql.metastore.hive.catalog.statistics import row_count_lock
from acidsql.metastore.hive.locking.conflicts import HiveConflicts, converted_conflict
from acidsql.metastore.hive.locking.locks import raw_component, worker_text
from acidsql.metastore.hive.locking.renewals import ROLLED_BACK, HiveRenewals
from acidsql.metastore.hive.wire import convert, snapshots
from acidsql.metastore.hive.wire.calls import log
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.own_txns import OwnTxn
from acidsql.metastore.hive.workers import HiveWorkers
from acidsql.metastore.interface import (
    PLAIN_COMMIT,
    Commit,
    LockComponent,
    LockType,
    Operation,
    RowChanges,
    TxnInfo,
    TxnState,
    TxnType,
)
from acidsql.metastore.streams import Batch
from acidsql.metastore.versions import Version

_STATES = {
    hive.TxnState.OPEN: TxnState.OPEN,
    hive.TxnState.ABORTED: TxnState.ABORTED,
    hive.TxnState.COMMITTED: TxnState.COMMITTED,
}
_BY_STATEMENT = 50001  # Hive's reason for an abort (TxnErrorMsg)
_PAUSES_S = (0.2, 1.0, 3.0)  # before COMMIT is sent again
_FEW = 10  # partitions, whose directories are published in a moment
_GAP_S = 1.5  # after a restart the server may report numbers that nobody has, for a second


class HiveTxns(HiveRenewals, HiveLedger, HiveHistory, HiveConflicts, HiveWorkers):
    """The part of the store about transactions; ``TxnStore`` describes the methods."""

    def open_txn(
        self,
        *,
        user: str,
        host: str,
        agent_info: str = "",
        txn_type: TxnType = TxnType.DEFAULT,
        timeout_ms: int | None = None,
        max_open_txns: int | None = None,
        batch: Batch | None = None,
    ) -> int:
        """Open a transaction on the server, and return its number. The server has limits of its
        own, so ``timeout_ms`` and ``max_open_txns`` are not used."""
        own = OwnTxn(0, user, host, agent_info, type=txn_type)
        if batch is not None:
            own.works_for = worker_text(batch)
        own.id = own.holder = self._open(own)
        self._own[own.id] = own
        return own.id

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    def valid_txns(self, txn_id: int = 0) -> ValidTxnList:
        """Return which transactions are committed now. The transaction ``txn_id`` sees its own
        writes, and notes that it has its snapshot."""
        valid = snapshots.valid_txns(self._call("get_open_txns"), txn_id)
        if txn_id in self._own:
            self._own[txn_id].note_snapshot()
        return valid

    def valid_txns_under(self, lease: int) -> ValidTxnList | None:
        """Return which transactions are committed now if the READ_ONLY transaction ``lease`` is
        open; None if it has ended.

        Hive 3 is asked twice. Hive 4 is asked once: its answer lists READ_ONLY transactions, too,
        so that ``lease`` can be found in it. They write nothing, so the list may have them.
        """
        if self.features.is_hive3:
            return self.valid_txns() if self.txn_state(lease) is TxnState.OPEN else None
        request = hive.GetOpenTxnsRequest(excludeTxnTypes=[])
        valid = snapshots.valid_txns(self._call("get_open_txns_req", request), 0)
        return valid if lease in valid.open else None

    def valid_write_ids(
        self, valid_txns: ValidTxnList, tables: Sequence[TableName]
    ) -> dict[TableName, ValidWriteIdList]:
        return self._write_ids(valid_txns, tables)

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def allocate_write_id(self, txn_id: int, table: TableName) -> int:
        """Return the transaction's write id in a table, the same at each call. Raise TxnError
        READ_ONLY_TRANSACTION for a READ_ONLY one, and another error if it has ended."""
        own = self._own_txn(txn_id)
        if own.type is TxnType.READ_ONLY:
            raise TxnError(
                f"Transaction {txn_id} is read-only.",
                condition="READ_ONLY_TRANSACTION", sqlstate="25006", txnId=txn_id,
            )  # fmt: skip
        if table not in own.write_ids:
            request = hive.AllocateTableWriteIdsRequest(
                dbName=table.database, tableName=table.name, txnIds=[txn_id]
            )
            try:
                answer = self._call("allocate_table_write_ids", request)
            except MetastoreError:
                self.heartbeat(txn_id)  # raises if the transaction is not open: that is the reason
                raise
            own.write_ids[table] = answer.txnToWriteIds[0].writeId
        return own.write_ids[table]

    def _record_changes(self, own: OwnTxn, table: TableName, num_partitions: int) -> bool:
        """Tell the server what the transaction changes in a table, now that it has a write id.
        Return False, without a call, if the server knows that already. ``num_partitions``: how many
        partitions the statement writes to.

        Only a request for a lock does that. The lock itself is not needed, because the transaction
        holds one that is at least as strong. But COMMIT needs the lock on the numbers of rows, so a
        transaction that commits soon asks for both at once.
        """
        new = [
            operation
            for operation in own.operations(table)
            if (table, operation) not in own.recorded_operations
        ]
        if not new:
            return False
        is_dynamic = self._is_partitioned.get(table, False)
        components = [
            raw_component(
                LockType.SHARED_READ,
                table.database,
                table.name,
                None,
                operation,
                is_dynamic=is_dynamic,
            )
            for operation in new
        ]
        commits_soon = (
            not own.may_have_several_statements
            and num_partitions <= _FEW
            and not self.features.is_hive3
        )
        locks_counts = commits_soon and new != [Operation.UPDATE]
        if locks_counts:
            components.append(row_count_lock(table))
        answer = self._request(own, own.id, components)
        own.recorded_operations.update((table, operation) for operation in new)
        if answer.state != hive.LockState.ACQUIRED:
            # Somebody waits for our first lock, and the new one would wait for them; or another
            # transaction is committing.
            self._call("unlock", hive.UnlockRequest(lockid=answer.lockid))
        elif locks_counts:
            own.counts_locked.add(table)
        return True

    def record_partitions(self, txn_id: int, table: TableName, partitions: Collection[str]) -> None:
        """Tell the server, before anything is published, what a transaction changes, and note the
        partitions; "" is an unpartitioned table. Without partitions nothing happens. Raise
        TxnAbortedError or NoSuchTxnError if it has ended."""
        if not partitions:
            return  # nothing is published, so a cleaner must find nothing
        own, named = self._own_txn(txn_id), set(partitions) - {""}
        was_asked = self._record_changes(own, table, len(named))
        for operation in own.operations(table):
            own.changed_partitions.setdefault((table, operation), set()).update(named)
        if self.features.is_hive3 or own.has_reported(table):  # else the record has no partition
            self._tell_partitions(own, table)
        # A transaction that has ended must not publish: a later table of this name, after a DROP,
        # may give the write id to others. All of these calls fail then.
        if was_asked:
            self._need_locks(own)
        else:
            self.heartbeat(txn_id)

    def restore_components(self, txn_id: int, components: Sequence[LockComponent]) -> None:
        """The server's record stays: others may see a conflict where there is none, and a
        compactor looks where there is nothing."""
        self.heartbeat(txn_id)
        self._own_txn(txn_id).keep(components)

    # ── the end ──────────────────────────────────────────────────────────────────────────────

    def commit_txn(self, txn_id: int, commit: Commit = PLAIN_COMMIT) -> None:
        """Commit a transaction, but not in one step: before, the table is created, and partitions
        and numbers of rows are told; after it, partitions are dropped, and failures of that are
        only logged. If it does not commit, a created table is dropped again, and the numbers are
        taken back. After a MetastoreError, which leaves the outcome open, all stays."""
        assert not commit.is_replacement, "see ``Abilities.replaces_tables``"
        own, new_table = self._own_txn(txn_id), commit.created_table
        if new_table is not None:
            rows = 0 if new_table.name in commit.row_changes else None
            self._create(new_table, commit.first_write_id, txn_id, rows)
        try:
            self._count_all(own, commit.row_changes, commit.added_partitions)
            for table in own.write_ids:
                self._tell_partitions(own, table)
            if self.features.tells_writes:
                self._tell_writes(own, commit.row_changes)
            conflicts = self._at_commit(own, commit.snapshot)
            if conflicts:
                raise conflict_rules.conflict_error(own.id, conflicts)
            entry = None if commit.batch is None else self._next_entry(own, commit.batch)
            compacted = commit.compacted
            with nullcontext() if compacted is None else self._compacted(txn_id, compacted):
                self._commit(own, entry)
        except MetastoreError:
            raise  # the outcome is not known
        except AcidSqlError as error:
            has_ended = isinstance(error, TxnAbortedError | NoSuchTxnError)
            if has_ended or (isinstance(error, WriteConflictError) and error.ended):
                self._uncount_without_locks(own)
            else:
                self._uncount(own)
            if new_table is not None:
                # The transaction's own directories go when it is abandoned. Others may be the files
                # of a table that was about to move here.
                with suppress(AcidSqlError):
                    self._drop(new_table.name, delete_data=False)
            raise
        self._own.pop(txn_id, None)
        for table, values in commit.dropped_partitions.items():
            try:
                self._drop_partitions(table, values)
            except AcidSqlError as error:  # the transaction is committed
                log.warning("Partitions of %s are without rows, but not dropped: %s", table, error)

    def versions(self, table: TableName) -> list[Version]:
        return []  # see ``Abilities.keeps_versions``

    def changed_by(self, txn_id: int) -> dict[TableName, int]:
        return {}

    def oldest_version(self, table: TableName) -> int:
        raise AssertionError("a Hive Metastore keeps no versions")

    def first_version(self, table: TableName) -> int | None:
        raise AssertionError("a Hive Metastore keeps no versions")

    def identity(self, table: TableName) -> str:
        raise AssertionError("a Hive Metastore keeps no versions")

    def forget_versions(self, table: TableName, oldest: int) -> None:
        raise AssertionError("a Hive Metastore keeps no versions")

    def last_commit(self, *, until_ms: int | None = None, txn_id: int | None = None) -> int | None:
        return None

    def _tell_writes(self, own: OwnTxn, changes: RowChanges) -> None:
        """List the directories that a transaction has written, and tell the server their files, by
        table and partition, so that its listeners can tell others at the commit. A table without a
        write id is left out."""
        for table, partitions in changes.items():
            for name, change in partitions.items() if table in own.write_ids else ():
                files = [
                    f"{directory}/{file}"
                    for directory in change.directories
                    for file in self._list_names(directory)
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
                self._call("add_write_notification_log", request)

    def _commit(self, own: OwnTxn, entry: Any) -> None:
        """Check that the locks are held, COMMIT, and release the locks. ``entry``: the property
        that notes a batch of a stream, or None. If the outcome is not known, the locks stay until
        they time out."""
        self._need_locks(own)
        try:
            self._send_commit(own, entry)
        except TxnError:  # it has ended
            self._release(own)
            raise
        self._release(own)

    def _send_commit(self, own: OwnTxn, entry: Any = None) -> None:
        """Send COMMIT, again if the reply is lost: for the server, the second one is a success. If
        the server does not know the transaction then, that counts as a success if it wrote nothing.

        ``entry``: the property that notes a batch of a stream, or None.

        Raises:
            MetastoreError: The outcome is not known.
            WriteConflictError, TxnAbortedError, NoSuchTxnError: The transaction has ended.
        """
        # The server's own comparison, by time, is needed only if locks let others change the same.
        request = hive.CommitTxnRequest(
            txnid=own.id, keyValue=entry, exclWriteEnabled=own.excludes, txn_type=own.type.value
        )
        lost: MetastoreError | None = None
        end = time.monotonic() + self._client.address.timeout_s
        for pause_s in (*_PAUSES_S, None):
            try:
                self._client.call("commit_txn", request, repeats=0)
                return
            except MetastoreError as error:
                lost = error
                if pause_s is None or time.monotonic() >= end:
                    raise
                time.sleep(pause_s)
            except TxnAbortedError as error:
                raise converted_conflict(own, error) from error
            except NoSuchTxnError:
                if lost is None:
                    raise
                if own.write_ids or entry is not None:
                    raise lost from None  # committed and forgotten, or lost with the database
                return

    def abort_txn(self, txn_id: int, reason: str = "") -> None:
        """Abort a transaction, release its locks, and take back what was told about numbers of
        rows. Raise TxnError if the server says that it has ended."""
        code = _BY_STATEMENT if reason == "ABORT TRANSACTIONS" else ROLLED_BACK
        own = self._own.get(txn_id)
        if own is not None and own.reported_row_counts:
            with suppress(AcidSqlError):
                self.heartbeat(txn_id)  # it is open, and has its lock on the numbers of rows
                self._uncount(own)
        try:
            self._call("abort_txn", hive.AbortTxnRequest(txnid=txn_id, errorCode=code))
        except TxnError:  # it has ended otherwise
            if own is not None:
                self._release(own)
            raise
        if own is not None:
            self._own.pop(txn_id, None)
            self._release(own)
            self._uncount_without_locks(own)

    def _uncount_without_locks(self, own: OwnTxn) -> None:
        """Take back the numbers of rows that the server was told of a transaction that has ended,
        and so holds no lock on them. Another transaction locks them meanwhile. Errors are ignored.
        """
        if own.reported_row_counts:
            holder = OwnTxn(0, own.user, own.host, own.agent_info, type=TxnType.READ_ONLY)
            with suppress(AcidSqlError):  # the transaction's own error is more important
                holder.id = holder.holder = self._open(holder)
                self._lock_counts(holder, own.reported_row_counts)
            own.counts_locked = holder.counts_locked
            self._uncount(own)
            self._end_number(holder.id)

    # ── asking about transactions ────────────────────────────────────────────────────────────

    def txn_state(self, txn_id: int) -> TxnState | None:
        """Return the state of a transaction; None if the server does not know it, or if an own one
        is not open for another reason than an abort. A heartbeat is sent for an own one."""
        if txn_id in self._own:
            try:
                self.heartbeat(txn_id)
            except TxnAbortedError:
                return TxnState.ABORTED
            except NoSuchTxnError:
                return None
            return TxnState.OPEN
        return next((txn.state for txn in self.show_txns() if txn.txn_id == txn_id), None)

    def show_txns(self) -> list[TxnInfo]:
        """Return the open and aborted transactions, by number. If the server fails, ask once more
        after 1.5 seconds."""
        try:
            answer = self._call("get_open_txns_info")
        except MetastoreError:
            time.sleep(_GAP_S)
            answer = self._call("get_open_txns_info")
        return [_txn_info(raw) for raw in sorted(answer.open_txns, key=lambda raw: raw.id)]

    def abort_timed_out(self, timeout_ms: int) -> list[int]:
        return []  # the server does

    def house_keep(self, timeout_ms: int, interval_ms: int, retention_ms: int) -> bool:
        return False  # the server does


def _txn_info(raw: Any) -> TxnInfo:
    """Make the TxnInfo of a transaction that the server shows."""
    return TxnInfo(
        raw.id,
        _STATES[raw.state],
        raw.startedTime or 0,
        raw.lastHeartbeatTime or 0,
        raw.user,
        raw.hostname,
        raw.agentInfo or "",
        raw.metaInfo or "",
    )
