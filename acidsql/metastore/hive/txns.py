"""The life of transactions in a Hive Metastore: open, look, write, abort. ``commit`` has COMMIT.

``own_txns`` says in which order locks and write ids must come.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList
from acidsql.errors import (
    AcidSqlError,
    MetastoreError,
    NoSuchTxnError,
    TxnAbortedError,
    TxnError,
)
from acidsql.metastore.hive.catalog.partitions import HivePartitions
from acidsql.metastore.hive.catalog.statistics import HiveStatistics, row_count_lock
from acidsql.metastore.hive.locking.locks import HiveLocks, raw_component, worker_text
from acidsql.metastore.hive.locking.numbers import HiveNumbers
from acidsql.metastore.hive.wire import snapshots
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.own_txns import OwnTxn
from acidsql.metastore.hive.wire.raw_tables import RawTables
from acidsql.metastore.hive.wire.server import ROLLED_BACK, Server
from acidsql.metastore.interface import (
    LockComponent,
    LockType,
    Operation,
    TxnInfo,
    TxnState,
    TxnType,
)
from acidsql.metastore.streams import Batch

_STATES = {
    hive.TxnState.OPEN: TxnState.OPEN,
    hive.TxnState.ABORTED: TxnState.ABORTED,
    hive.TxnState.COMMITTED: TxnState.COMMITTED,
}
_BY_STATEMENT = 50001  # Hive's reason for an abort (TxnErrorMsg)
_FEW = 10  # partitions, whose directories are published in a moment
_GAP_S = 1.5  # after a restart the server may report numbers that nobody has, for a second


class HiveTxns:
    """The part of the store about transactions; ``TxnStore`` describes the methods."""

    def __init__(
        self,
        server: Server,
        raw_tables: RawTables,
        numbers: HiveNumbers,
        locks: HiveLocks,
        partitions: HivePartitions,
        statistics: HiveStatistics,
    ) -> None:
        self._server, self._raw_tables, self._numbers = server, raw_tables, numbers
        self._locks, self._partitions, self._statistics = locks, partitions, statistics

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
        """Open a transaction on the server, remember it as one of this session, and return its
        number. ``batch``: its locks will name this run of a stream. The server has limits of its
        own, so ``timeout_ms`` and ``max_open_txns`` are not used."""
        own = OwnTxn(0, user, host, agent_info, type=txn_type)
        if batch is not None:
            own.works_for = worker_text(batch)
        own.id = own.holder = self._numbers.open(own)
        self._server.own_txns[own.id] = own
        return own.id

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    def valid_txns(self, txn_id: int = 0) -> ValidTxnList:
        """Return the snapshot of now: which transactions are open or aborted, the others up to the
        highest number being committed. ``txn_id`` is not among the open ones, so it sees its own
        writes; if it is of this session, it notes that it has its snapshot."""
        valid = snapshots.valid_txns(self._server.call("get_open_txns"), txn_id)
        if txn_id in self._server.own_txns:
            self._server.own_txns[txn_id].note_snapshot()
        return valid

    def valid_txns_under(self, lease: int) -> ValidTxnList | None:
        """Return the snapshot of now if the READ_ONLY transaction ``lease`` is open; None if it has
        ended.

        Hive 3 is asked twice. Hive 4 is asked once: its answer lists READ_ONLY transactions, too,
        so that ``lease`` can be found in it. They write nothing, so the list of open ones may have
        them.
        """
        if self._server.features.is_hive3:
            return self.valid_txns() if self.txn_state(lease) is TxnState.OPEN else None
        request = hive.GetOpenTxnsRequest(excludeTxnTypes=[])
        valid = snapshots.valid_txns(self._server.call("get_open_txns_req", request), 0)
        return valid if lease in valid.open else None

    def keep_files(self, txn_id: int, tables: Sequence[TableName]) -> None:
        """Keep the server's cleaner from the files of these tables until the transaction ends, if
        it looks at write ids and not at open transactions.

        Such a cleaner deletes what a compaction has replaced, unless a transaction has registered a
        write id of the table that is not above the compaction's highest one. A compaction that
        commits after the snapshot may have begun long before, so its highest write id may be any.
        Hence the lowest one is registered: no compaction of the table is cleaned meanwhile.

        Source: Hive 4.2 ``CompactionTxnHandler.findReadyToClean``, ``MIN_HISTORY_WRITE_ID``.
        """
        own = self._server.own_txns.get(txn_id)
        if own is None or not self._server.features.registers_readers:
            return
        new = set(tables) - own.kept_tables
        if not new:
            return
        # A row of a transaction that has ended would stay, and keep the files for ever.
        self._numbers.heartbeat(txn_id)
        lowest = {f"{table.database}.{table.name}": 1 for table in new}
        self._server.call("add_write_ids_to_min_history", txn_id, lowest)
        own.kept_tables |= new

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def allocate_write_id(self, txn_id: int, table: TableName) -> int:
        """Return the transaction's write id in a table, the same at each call; only the first asks
        the server.

        Raises:
            TxnError: READ_ONLY_TRANSACTION: the transaction is READ_ONLY.
            TxnAbortedError, NoSuchTxnError: It has ended.
        """
        own = self._server.own_txn(txn_id)
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
                answer = self._server.call("allocate_table_write_ids", request)
            except MetastoreError:
                # Raises if the transaction is not open: that is the reason
                self._numbers.heartbeat(txn_id)
                raise
            own.write_ids[table] = answer.txnToWriteIds[0].writeId
        return own.write_ids[table]

    def _record_changes(self, own: OwnTxn, table: TableName, num_partitions: int) -> bool:
        """Tell the server with which operations the transaction changes a table, now that it has a
        write id. Return True after a call, False if the server knows all of them already.
        ``num_partitions``: how many partitions the statement writes to.

        Only a request for a lock (SHARED_READ) does that. The lock itself is not needed, because
        the transaction holds one that is at least as strong; if it is not granted at once, it is
        given up. But COMMIT needs the lock on the numbers of rows. So over Hive 4 a transaction of
        one statement with few partitions asks for both at once, unless it only updates.
        """
        new = [
            operation
            for operation in own.operations(table)
            if (table, operation) not in own.recorded_operations
        ]
        if not new:
            return False
        is_dynamic = self._raw_tables.is_partitioned(table)
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
            and not self._server.features.is_hive3
        )
        locks_counts = commits_soon and new != [Operation.UPDATE]
        if locks_counts:
            components.append(row_count_lock(table))
        answer = self._locks.request(own, own.id, components)
        own.recorded_operations.update((table, operation) for operation in new)
        if answer.state != hive.LockState.ACQUIRED:
            # Somebody waits for our first lock, and the new one would wait for them; or another
            # transaction is committing.
            self._server.call("unlock", hive.UnlockRequest(lockid=answer.lockid))
        elif locks_counts:
            own.counts_locked.add(table)
        return True

    def record_partitions(self, txn_id: int, table: TableName, partitions: Collection[str]) -> None:
        """Tell the server, before anything is published, how a transaction changes a table, and
        note the partitions for COMMIT; "" is an unpartitioned table. Over Hive 3, or if the server
        knows partitions of the table already, the partitions are told now, too. Without partitions
        nothing happens. Raise TxnAbortedError or NoSuchTxnError if the transaction has ended."""
        if not partitions:
            return  # nothing is published, so a cleaner must find nothing
        own, named = self._server.own_txn(txn_id), set(partitions) - {""}
        was_asked = self._record_changes(own, table, len(named))
        for operation in own.operations(table):
            own.changed_partitions.setdefault((table, operation), set()).update(named)
        if self._server.features.is_hive3 or own.has_reported(
            table
        ):  # else the record has no partition
            self._partitions.tell(own, table)
        # A transaction that has ended must not publish: a later table of this name, after a DROP,
        # may give the write id to others. All of these calls fail then.
        if was_asked:
            self._numbers.need_locks(own)
        else:
            self._numbers.heartbeat(txn_id)

    def restore_components(self, txn_id: int, components: Sequence[LockComponent]) -> None:
        """Send a heartbeat, and forget all components of the transaction's locks but these: they
        alone tell from now on how it changes tables. Its locks stay.

        The server's record stays, too: others may see a conflict where there is none, and a
        compactor looks where there is nothing. Raise TxnAbortedError or NoSuchTxnError if it has
        ended.
        """
        self._numbers.heartbeat(txn_id)
        self._server.own_txn(txn_id).keep(components)

    # ── the end ──────────────────────────────────────────────────────────────────────────────

    def abort_txn(self, txn_id: int, reason: str = "") -> None:
        """Abort a transaction. One of this session also loses its locks, what it told about numbers
        of rows is taken back, and it is forgotten. The reason ``ABORT TRANSACTIONS`` is told to the
        server as a statement's, any other one as a rollback. Raise TxnError if the server says that
        it has ended; then it is not forgotten, only its locks are given up."""
        code = _BY_STATEMENT if reason == "ABORT TRANSACTIONS" else ROLLED_BACK
        own = self._server.own_txns.get(txn_id)
        if own is not None and own.reported_row_counts:
            with suppress(AcidSqlError):
                self._numbers.heartbeat(
                    txn_id
                )  # it is open, and has its lock on the numbers of rows
                self._statistics.uncount(own)
        try:
            self._server.call("abort_txn", hive.AbortTxnRequest(txnid=txn_id, errorCode=code))
        except TxnError:  # it has ended otherwise
            if own is not None:
                self._numbers.release(own)
            raise
        if own is not None:
            self._server.own_txns.pop(txn_id, None)
            self._numbers.release(own)
            self.uncount_ended(own)

    def uncount_ended(self, own: OwnTxn) -> None:
        """Take back the numbers of rows that the server was told of a transaction that has ended,
        and so holds no lock on them. A READ_ONLY transaction of its own locks them meanwhile; a
        number that it cannot lock becomes unknown. Errors are ignored."""
        if own.reported_row_counts:
            holder = OwnTxn(0, own.user, own.host, own.agent_info, type=TxnType.READ_ONLY)
            with suppress(AcidSqlError):  # the transaction's own error is more important
                holder.id = holder.holder = self._numbers.open(holder)
                self._statistics.lock_counts(holder, own.reported_row_counts)
            own.counts_locked = holder.counts_locked
            self._statistics.uncount(own)
            self._server.end_number(holder.id)

    # ── asking about transactions ────────────────────────────────────────────────────────────

    def txn_state(self, txn_id: int) -> TxnState | None:
        """Return the state of a transaction. One of this session gets a heartbeat: it is OPEN or
        ABORTED, or None if the server says otherwise that it has ended. Another one is looked up in
        ``show_txns``: None if it is not there, as committed ones are not."""
        if txn_id in self._server.own_txns:
            try:
                self._numbers.heartbeat(txn_id)
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
            answer = self._server.call("get_open_txns_info")
        except MetastoreError:
            time.sleep(_GAP_S)
            answer = self._server.call("get_open_txns_info")
        return [_txn_info(raw) for raw in sorted(answer.open_txns, key=lambda raw: raw.id)]

    def abort_timed_out(self, timeout_ms: int) -> list[int]:
        return []  # the server does

    def house_keep(self, timeout_ms: int, interval_ms: int, retention_ms: int) -> bool:
        return False  # the server does


def _txn_info(raw: Any) -> TxnInfo:
    """Make the TxnInfo of a transaction that the server shows; missing times become 0, missing
    texts ""."""
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
