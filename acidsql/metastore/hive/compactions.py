"""Requests for compactions, and what became of them. Hive's cleaner deletes old files."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from acidsql.acid.table import TableName
from acidsql.errors import UnsupportedError
from acidsql.metastore.compaction_queue import (
    Candidate,
    CompactionInfo,
    CompactionRequest,
    CompactionState,
    CompactionType,
    Enqueued,
    HistoryRetention,
)
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.server import Server

_TYPES = {
    CompactionType.MAJOR: hive.CompactionType.MAJOR,
    CompactionType.MINOR: hive.CompactionType.MINOR,
    CompactionType.REBALANCE: hive.CompactionType.REBALANCE,
    CompactionType.ABORT_TXN_CLEANUP: hive.CompactionType.ABORT_TXN_CLEANUP,
    CompactionType.SMART_OPTIMIZE: hive.CompactionType.SMART_OPTIMIZE,
}
_TYPE_BY_NUMBER = {number: compaction_type for compaction_type, number in _TYPES.items()}
_STATES: Mapping[str, CompactionState] = {state.shown: state for state in CompactionState}
VERSION = "acidsql"  # shown to others as that of a worker, and of who asked
_REFUSED_FOR = re.compile(r"\bid=(\d+)")


class HiveCompactions:
    """The part of the store about compactions; ``CompactionQueue`` describes the methods."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def compact(self, request: CompactionRequest) -> Enqueued:
        """Queue a compaction for the session's user. If the server does not accept it, because of
        another entry of the table or partition, the answer has this entry's number and state
        (INITIATED if the server does not show the entry any more). The server does not check that
        there is such a table or partition; callers do."""
        answer = self._server.call(
            "compact2",
            hive.CompactionRequest(
                dbname=request.table.database,
                tablename=request.table.name,
                partitionname=request.partition,
                type=_TYPES[request.type],
                runas=self._server.user,
                properties=dict(request.properties) or None,
                initiatorId=request.initiator_id,
                initiatorVersion=VERSION,
                poolName=request.pool,
                numberOfBuckets=request.buckets,
                orderByClause=request.order_by,
            ),
        )
        if answer.accepted:
            return Enqueued(answer.id, CompactionState.INITIATED, accepted=True)
        # Hive 4 names the entry that is in the way in its message alone.
        named = _REFUSED_FOR.search(answer.errormessage or "")
        number = int(named[1]) if named else answer.id
        entry = next(
            (entry_there for entry_there in self.compactions() if entry_there.id == number), None
        )
        state = CompactionState.INITIATED if entry is None else entry.state
        return Enqueued(number, state, accepted=False)

    def compactions(self) -> list[CompactionInfo]:
        entries = [_compaction_info(raw) for raw in self.raw_entries()]
        return sorted(entries, key=_newest, reverse=True)

    def raw_entries(self, **only: Any) -> list[Any]:
        """Return the server's structs of entries, of any type, in any state and in its order.
        ``only``: fields of ``ShowCompactRequest``, by which the server chooses entries."""
        answer = self._server.call("show_compact", hive.ShowCompactRequest(**only))
        return list(answer.compacts)

    def abort_compactions(self, ids: Sequence[int]) -> dict[int, CompactionState | None]:
        """Let the server abort entries that no worker has. Return each number → the state of the
        entry before the call, or None if there is no such entry."""
        before = {entry.id: entry.state for entry in self.compactions()}
        if ids:  # the server fails at an empty list
            self._server.call(
                "abort_Compactions", hive.AbortCompactionRequest(compactionIds=list(ids))
            )
        return {number: before.get(number) for number in ids}

    def now_ms(self) -> int:
        return int(time.time() * 1000)  # the server does not tell its own

    def purge_compaction_history(self, keep: HistoryRetention) -> None:
        """Do nothing: the server purges its history itself."""

    def candidates(self) -> list[Candidate]:
        return []  # the server does not tell

    def ready_to_clean(self, retention_ms: int) -> list[CompactionInfo]:
        return []  # the server's cleaner

    def aborted_write_ids(self, table: TableName) -> list[int]:
        return []  # the server's cleaner

    def did_not_initiate(self, request: CompactionRequest, message: str) -> None:
        """Do nothing: a client cannot write into the server's history."""

    # The abilities say that nobody calls the rest.

    def mark_compaction_cleaned(self, compaction_id: int) -> None:
        raise _no_cleaner_error()

    def retry_cleaning_later(
        self, compaction_id: int, retention_ms: int, max_attempts: int, message: str
    ) -> None:
        raise _no_cleaner_error()

    def forget_aborted(self, table: TableName, write_ids: Sequence[int]) -> None:
        raise _no_cleaner_error()


def _no_cleaner_error() -> UnsupportedError:
    """Make the error of a call that only a cleaner of acidsql's would make."""
    return UnsupportedError(
        "Only Hive's own cleaner cleans the tables of a Hive Metastore.",
        condition="UNSUPPORTED_FEATURE.COMPACTOR",
    )


def type_of(raw: Any) -> CompactionType:
    """Return the type of an entry that the server shows; UNKNOWN if acidsql does not know it."""
    return _TYPE_BY_NUMBER.get(raw.type, CompactionType.UNKNOWN)


def pool_of(name: str | None) -> str | None:
    """A pool as acidsql names it: None is the pool without a name."""
    return None if name in (None, "", "default") else name


def _newest(compaction: CompactionInfo) -> int:
    return max(compaction.started_ms or 0, compaction.ended_ms or 0, compaction.committed_ms or 0)


def _compaction_info(raw: Any) -> CompactionInfo:
    """Make the CompactionInfo of an entry that the server shows. What the server leaves empty or 0
    becomes None; an unknown state becomes INITIATED. The message is the error's text, or without
    one the text that the server has about the entry. Properties, buckets and order are not shown.
    """
    return CompactionInfo(
        id=raw.id or 0,
        table=TableName(raw.dbname, raw.tablename),
        partition=raw.partitionname or None,
        type=type_of(raw),
        state=_STATES.get(raw.state, CompactionState.INITIATED),
        enqueued_ms=raw.enqueueTime or None,
        started_ms=raw.start or None,
        ended_ms=raw.endTime or None,
        worker_id=raw.workerid or None,
        initiator_id=raw.initiatorId or None,
        txn_id=raw.txnId or None,
        next_txn_id=raw.nextTxnId or None,
        committed_ms=raw.commitTime or None,
        highest_write_id=raw.hightestTxnId or None,  # where the server writes it
        message=raw.errorMessage or raw.metaInfo or None,
        pool=pool_of(raw.poolName),
        progress=_progress(raw),
    )


def _progress(raw: Any) -> str | None:
    """Return what a worker does now (of a worker of Hive's: the number of its job); None if nothing
    is told. The server keeps what acidsql's workers have told it, so None also if an entry of
    theirs is not WORKING any more."""
    if raw.workerVersion == VERSION and raw.state != CompactionState.WORKING.shown:
        return None
    return None if raw.hadoopJobId in (None, "", "None") else str(raw.hadoopJobId)
