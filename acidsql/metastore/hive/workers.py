"""A worker beside Hive's workers: it takes an entry of the server's queue, and marks its end.

The server does not check that an entry still belongs to whoever marks it. So a worker looks first.
After an entry is marked as compacted, Hive's cleaner will delete the old files. So it is marked
directly before ``commit_txn``, never earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from acidsql.acid.table import TableName
from acidsql.errors import AcidSqlError, MetastoreError, TxnError
from acidsql.metastore import stringable_map
from acidsql.metastore.compaction_queue import (
    Compacted,
    CompactionInfo,
    CompactionRequest,
    CompactionState,
    CompactionType,
    Enqueued,
)
from acidsql.metastore.hive.compactions import VERSION, HiveCompactions, pool_of, type_of
from acidsql.metastore.hive.wire import snapshots
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.kinds import TableKind, kind_of
from acidsql.metastore.hive.wire.raw_tables import RawTables
from acidsql.metastore.hive.wire.server import Server

_INITIATED, _WORKING = "i", "w"  # as the server asks for them
_MESSAGE_MAX = 1000
_OWN_TYPES = (CompactionType.MINOR, CompactionType.MAJOR)
_OWN_KINDS = (TableKind.FULL_ACID, TableKind.INSERT_ONLY)


class HiveWorkers:
    """The part of the store about workers; ``CompactionQueue`` describes the methods."""

    def __init__(self, server: Server, raw_tables: RawTables, compactions: HiveCompactions) -> None:
        self._server, self._raw_tables, self._compactions = server, raw_tables, compactions
        self._taken_entries: dict[int, Any] = {}  # by number

    def compact(self, request: CompactionRequest) -> Enqueued:
        """Queue a compaction. If a WORKING entry is in the way, queue the entries of all dead
        workers of acidsql's again (``revoke``); if there were any, make the request once more, and
        return its answer: mostly the entry that now waits in the dead one's place."""
        answer = self._compactions.compact(request)
        is_free = answer.accepted or answer.state is not CompactionState.WORKING
        if is_free or not self.revoke(0):
            return answer
        return self._compactions.compact(
            request
        )  # gives the entry that is queued instead of the dead one's

    def has_work(self, *, pool: str | None = None, pool_timeout_ms: int | None = None) -> bool:
        """Whether the oldest waiting entry of a pool (None: without a name) is one for acidsql:
        False without one, and if Hive must take it. ``pool_timeout_ms`` is not used: it is the
        server's."""
        return self._oldest_entry_of(pool) is not None

    def _oldest_entry_of(self, pool: str | None) -> Any:
        """Return the server's struct of the INITIATED entry of a pool (None: without a name) that
        has the lowest number, which is the one that the server gives to the next worker. None:
        there is none, or only Hive's workers may take it (``_is_for_acidsql``)."""
        waiting = (
            entry
            for entry in self._compactions.raw_entries(state=_INITIATED)
            if pool_of(entry.poolName) == pool
        )
        oldest = min(waiting, key=lambda entry: entry.id, default=None)
        return None if oldest is None or not self._is_for_acidsql(oldest) else oldest

    def _is_for_acidsql(self, raw: Any) -> bool:
        """Whether acidsql may compact what an entry names: it is a minor or major compaction of an
        ACID table, or of a table that is gone. A rebalance, and work on tables of other engines,
        such as Iceberg's, are Hive's."""
        if type_of(raw) not in _OWN_TYPES:
            return False
        raw_table = self._raw_tables.find(_table_name(raw))
        return raw_table is None or kind_of(raw_table) in _OWN_KINDS

    def take_next(
        self,
        txn_id: int,
        worker_id: str,
        *,
        pool: str | None = None,
        pool_timeout_ms: int | None = None,
        only: int | None = None,
    ) -> CompactionInfo | None:
        """Give the worker the oldest entry of a pool, and remember it until its end is marked. None
        if there is none, or it is left to Hive. ``only`` names the pool of this entry, but an older
        one may be given; None if ``only`` does not wait. ``worker_id`` must begin with the host's
        name, or the server could not give a dead host's entries to others. ``pool_timeout_ms`` is
        not used: it is the server's."""
        if only is not None:
            requested = next(
                (
                    entry
                    for entry in self._compactions.raw_entries(state=_INITIATED)
                    if entry.id == only
                ),
                None,
            )
            if requested is None:
                return None
            pool = pool_of(requested.poolName)
        if self._oldest_entry_of(pool) is None:
            return None
        request = hive.FindNextCompactRequest(
            workerId=worker_id, workerVersion=VERSION, poolName=pool
        )
        raw = self._server.call("find_next_compact2", request).ci
        if raw is None:
            return None
        raw.workerId = worker_id
        self._taken_entries[raw.id] = raw
        try:
            is_for_acidsql = self._is_for_acidsql(raw)
        except BaseException:
            self.queue_again(raw.id, txn_id)
            raise
        if not is_for_acidsql:  # it became the oldest one in the meantime
            self.queue_again(raw.id, txn_id)
            return None
        return CompactionInfo(
            id=raw.id,
            table=_table_name(raw),
            partition=raw.partitionname or None,
            type=type_of(raw),
            state=CompactionState.WORKING,
            worker_id=worker_id,
            txn_id=txn_id,
            pool=pool,
            properties=stringable_map.decode(raw.properties),
            buckets=_buckets(raw),
            order_by=raw.orderByClause or None,
        )

    def begin_compaction(self, compaction_id: int, txn_id: int, highest_write_id: int) -> None:
        """Tell the server the transaction and the highest write id of an entry that ``take_next``
        has given; without a user, the entry gets the session's. KeyError for any other entry."""
        raw = self._taken_entries[compaction_id]
        raw.highestWriteId, raw.state = highest_write_id, _WORKING
        raw.runas = raw.runas or self._server.user
        self._server.call("update_compactor_state", raw, txn_id)

    def note_progress(self, compaction_id: int, txn_id: int, progress: str) -> None:
        if self._is_ours(compaction_id, txn_id):
            self._server.call("set_hadoop_jobid", progress, compaction_id)

    @contextmanager
    def compacted(self, txn_id: int, compaction: Compacted) -> Iterator[None]:
        """Mark an entry as compacted before the block, which must do nothing but commit; forget it
        afterwards. If the block's error says that it has not committed, the entry is marked as
        failed, with the error's text, and forgotten; after a MetastoreError, which leaves that
        open, the mark stays, and the entry is remembered.

        Raises:
            TxnError: COMPACTION_LOST: the entry is not this worker's any more.
        """
        if not self._is_ours(compaction.id, txn_id):
            raise TxnError(
                f"Compaction {compaction.id} is no longer this worker's.",
                condition="COMPACTION_LOST", sqlstate="40001", compactionId=compaction.id,
            )  # fmt: skip
        self._server.call("mark_compacted", self._taken_entries[compaction.id])
        try:
            yield
        except MetastoreError:
            raise  # the outcome is not known
        except AcidSqlError as error:
            with suppress(AcidSqlError):
                self.mark_failed(compaction.id, txn_id, str(error))
            raise
        self._taken_entries.pop(compaction.id, None)

    def mark_failed(self, compaction_id: int, txn_id: int, message: str) -> None:
        self._mark("mark_failed", compaction_id, txn_id, message)

    def mark_refused(self, compaction_id: int, txn_id: int, message: str) -> None:
        self._mark("mark_refused", compaction_id, txn_id, message)

    def _mark(self, method: str, compaction_id: int, txn_id: int, message: str) -> None:
        """Call the server's ``method`` (``mark_failed`` or ``mark_refused``) with the message, cut
        to 1,000 characters, if this worker still has the entry, which may have no transaction yet.
        Forget the entry in any case."""
        if self._is_ours(compaction_id, txn_id, None):
            raw = self._taken_entries[compaction_id]
            raw.errorMessage = message[:_MESSAGE_MAX]
            self._server.call(method, raw)
        self._taken_entries.pop(compaction_id, None)

    def _is_ours(self, compaction_id: int, *txn_ids: int | None) -> bool:
        """Whether this store has taken an entry, and the server says that the entry is still
        WORKING for the same worker and for one of these transactions; None stands for an entry for
        which ``begin_compaction`` was not called."""
        raw = self._taken_entries.get(compaction_id)
        if raw is None:
            return False
        return any(
            (entry_there.state, entry_there.workerid) == ("working", raw.workerId)
            and (entry_there.txnId or None) in txn_ids
            for entry_there in self._compactions.raw_entries(id=compaction_id)
        )

    def queue_again(self, compaction_id: int, txn_id: int) -> None:
        """Mark an entry that this worker has taken and does not finish as REFUSED, and queue a copy
        under a new number, as the server cannot queue an entry again. Nothing happens if another
        worker has it now, or if acidsql does not know its type: then the server queues it again
        when the worker's time is over. ``txn_id``, which is not ended, only tells whose the entry
        is."""
        raw = self._taken_entries.get(compaction_id)
        is_known = raw is not None and type_of(raw) is not CompactionType.UNKNOWN
        if is_known and self._is_ours(compaction_id, txn_id, None):
            self.mark_refused(compaction_id, txn_id, "given up, and queued again")
            self._request_again(raw)

    def revoke(self, worker_timeout_ms: int) -> list[int]:
        """Mark the entries of acidsql's workers whose transaction has ended as REFUSED, and queue
        copies under new numbers; the server does not show properties, so the copies have none.
        Return the old numbers. Left out are entries that this store has taken, and those without a
        transaction. The server revokes the entries of Hive's workers; ``worker_timeout_ms`` is not
        used."""
        entries = [
            entry
            for entry in self._compactions.raw_entries(state=_WORKING)
            if entry.workerVersion == VERSION
            and entry.txnId
            and entry.id not in self._taken_entries
        ]
        if not entries:
            return []
        request = hive.GetOpenTxnsRequest(excludeTxnTypes=[])
        answer = self._server.call("get_open_txns_req", request)
        alive = snapshots.valid_txns(answer, 0).open
        dead = [entry for entry in entries if entry.txnId not in alive]
        for entry in dead:
            raw = hive.CompactionInfoStruct(
                id=entry.id,
                dbname=entry.dbname,
                tablename=entry.tablename,
                partitionname=entry.partitionname,
                type=entry.type,
                state=_WORKING,
                poolname=entry.poolName,
                errorMessage="its worker died; queued again",
            )
            self._server.call("mark_refused", raw)
            self._request_again(raw)
        return [entry.id for entry in dead]

    def _request_again(self, raw: Any) -> None:
        """Queue a compaction with the table, partition, type, pool and options of an entry's
        ``CompactionInfoStruct``, under a new number; the requester is ``acidsql-again``."""
        self._compactions.compact(
            CompactionRequest(
                _table_name(raw),
                raw.partitionname or None,
                type_of(raw),
                f"{VERSION}-again",
                stringable_map.decode(raw.properties),
                pool_of(raw.poolname),
                _buckets(raw),
                raw.orderByClause or None,
            )
        )


def _table_name(raw: Any) -> TableName:
    return TableName(raw.dbname, raw.tablename)


def _buckets(raw: Any) -> int | None:
    return raw.numberOfBuckets if (raw.numberOfBuckets or 0) > 0 else None
