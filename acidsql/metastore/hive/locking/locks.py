"""Locks in a Hive Metastore.

The server grants locks, but finds no circle of waiting transactions. So a waiter looks at all locks
and, if it waits in a circle, aborts the youngest of acidsql's transactions in it. It never aborts
Hive's.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from acidsql.errors import TxnAbortedError, TxnError
from acidsql.metastore.conflict_rules import short_statement
from acidsql.metastore.hive.locking.numbers import HiveNumbers
from acidsql.metastore.hive.wire import hive3
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.hive.wire.own_txns import OwnTxn
from acidsql.metastore.hive.wire.server import NAME_MAX, Server
from acidsql.metastore.interface import (
    LockComponent,
    LockInfo,
    LockResponse,
    LockState,
    LockType,
    Operation,
)
from acidsql.metastore.lock_rules import circle_in_words, find_circle, merge_components
from acidsql.metastore.streams import Batch

_TYPES = {
    LockType.SHARED_READ: hive.LockType.SHARED_READ,
    LockType.SHARED_WRITE: hive.LockType.SHARED_WRITE,
    LockType.EXCL_WRITE: hive.LockType.EXCL_WRITE,
    LockType.EXCLUSIVE: hive.LockType.EXCLUSIVE,
}
_TYPE_OF = {number: lock_type for lock_type, number in _TYPES.items()}
OPERATIONS = {
    Operation.SELECT: hive.DataOperationType.SELECT,
    Operation.INSERT: hive.DataOperationType.INSERT,
    Operation.UPDATE: hive.DataOperationType.UPDATE,
    Operation.DELETE: hive.DataOperationType.DELETE,
    Operation.OVERWRITE: hive.DataOperationType.UPDATE,  # as Hive calls it
    Operation.NO_TXN: hive.DataOperationType.NO_TXN,
}
_OURS = "acidsql: "  # by this, sessions know each other's locks
_LEADER_ELECTION = "__metastore_leader_election__"  # in place of a database
_WORKS_FOR = re.compile(r"^\[[0-9a-f]{24} [^]]*\] ")  # see ``worker_text``
_AGENT_MAX = 128  # characters; with more, the server fails
_PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)  # others hold some locks only while they commit
_GRANTED = 0  # the number of a lock that was not asked for


class HiveLocks:
    """The part of the store about locks; ``TxnStore`` describes the methods."""

    def __init__(self, server: Server, numbers: HiveNumbers) -> None:
        self._server, self._numbers = server, numbers

    def lock(
        self,
        txn_id: int,
        components: Sequence[LockComponent],
        *,
        agent_info: str | None = None,
        session: int | None = None,
    ) -> LockResponse:
        """Note all components, and request locks for those that the transaction's earlier locks do
        not cover; if there are none, answer lock 0 and ACQUIRED without a request. An overwrite
        becomes EXCLUSIVE; the server is told that all of them only read. Unless ``agent_info`` is
        None, it becomes the transaction's statement. ``session`` must be None: sessions hold no
        locks here. Raise TxnAbortedError or NoSuchTxnError if the transaction has ended."""
        assert session is None, "no session holds locks here: keeps_session_locks"
        own = self._server.own_txn(txn_id)
        if agent_info is not None:
            own.agent_info = agent_info
        requested = [_strengthen_overwrite(component) for component in components]
        own.note_components(requested)
        missing = own.uncovered_components(merge_components(requested))
        if not missing:
            return LockResponse(_GRANTED, LockState.ACQUIRED)
        answer = self.request(
            own, own.holder, [_raw_read_component(component) for component in missing]
        )
        own.waiting_locks[answer.lockid] = missing
        return self._lock_response(own, answer)

    def request(self, own: OwnTxn, number: int, components: list[Any]) -> Any:
        """Request a lock for a transaction, under ``number``, one of the two numbers that it may
        have, and return the server's answer. Texts are cut to what the server takes."""
        request = hive.LockRequest(
            component=components,
            txnid=number,
            user=own.user[:NAME_MAX],
            hostname=own.host[:NAME_MAX],
            agentInfo=_agent(own),
        )
        return self._server.call("lock", request)

    def lock_soon(
        self, own: OwnTxn, components: list[Any], pauses_s: Sequence[float] | None = None
    ) -> bool:
        """Lock what others lock only while they commit. Return True when the lock is granted. Wait
        for as long as the pauses say, by default 9 seconds; then give the request up, and return
        False."""
        answer = self.request(own, own.holder, components)
        for pause_s in pauses_s or _PAUSES_S:
            if answer.state == hive.LockState.ACQUIRED:
                return True
            time.sleep(pause_s)
            request = hive.CheckLockRequest(lockid=answer.lockid, txnid=own.holder)
            answer = self._server.call("check_lock", request)
        self._server.call("unlock", hive.UnlockRequest(lockid=answer.lockid))
        return False

    def check_lock(self, txn_id: int, lock_id: int) -> LockResponse:
        """Check a waiting lock. If transactions wait in a circle, abort the youngest of acidsql's,
        and check again; if that is this one, raise TxnAbortedError. Raise TxnError if the lock is
        gone."""
        own = self._server.own_txn(txn_id)
        request = hive.CheckLockRequest(lockid=lock_id, txnid=own.holder)
        while True:
            try:
                answer = self._server.call("check_lock", request)
            except TxnError:
                self._numbers.heartbeat(own.id)  # the lock is gone: perhaps its transaction, too
                raise
            response = self._lock_response(own, answer)
            if response.state is LockState.ACQUIRED or not self._end_circle(own, lock_id):
                return response

    def _lock_response(self, own: OwnTxn, answer: Any) -> LockResponse:
        """Return whether a lock is granted, by the server's answer, and if not, what blocks it
        (None: the server has not noted it). Over Hive 3, which may grant too early, compare with
        all locks instead. A granted lock is noted in ``own``."""
        number, is_granted = answer.lockid, answer.state == hive.LockState.ACQUIRED
        blocker = None
        if self._server.features.is_hive3 and own.must_look_again(number):
            blocking = hive3.blocking_locks(number, own.numbers, self.show_locks())
            is_granted, blocker = not blocking, next(iter(blocking), None)
        elif not is_granted:
            blocker = _noted_blocker(number, self.show_locks())
        if is_granted:
            own.grant(number)
            return LockResponse(number, LockState.ACQUIRED)
        return LockResponse(number, LockState.WAITING, blocker)

    def _end_circle(self, own: OwnTxn, lock_id: int) -> bool:
        """If transactions wait in a circle with this one, abort the youngest of acidsql's. Return
        whether there was a circle. Raise TxnAbortedError if the youngest is this one."""
        raw = self._locks()
        locks = hive3.unified_locks(
            lock_id, own.numbers, [_lock_info(raw_lock) for raw_lock in raw]
        )
        circle = find_circle(own.holder, locks)
        if not circle:
            return False
        ours = {raw_lock.txnid for raw_lock in raw if (raw_lock.agentInfo or "").startswith(_OURS)}
        victim = max(ours.intersection(circle), default=own.holder)
        for number in own.numbers if victim == own.holder else [victim]:
            self._server.call("abort_txn", hive.AbortTxnRequest(txnid=number))
        if victim == own.holder:
            reason = circle_in_words(circle, victim)
            raise TxnAbortedError(f"Transaction {own.id} was aborted: {reason}.", txnId=own.id)
        return True

    def unlock(self, txn_id: int, lock_id: int) -> None:
        if lock_id != _GRANTED:
            self._server.own_txn(txn_id).waiting_locks.pop(lock_id, None)
            self._server.call("unlock", hive.UnlockRequest(lockid=lock_id))

    def show_locks(self) -> list[LockInfo]:
        """Return the locks, sorted by state and number, without those by which servers elect the
        one that does the housekeeping (Hive 4.2): they are no table's, and their holder never lets
        go."""
        locks = [_lock_info(raw) for raw in self._locks() if raw.dbname != _LEADER_ELECTION]
        return sorted(locks, key=lambda lock: (lock.state.value, lock.lock_id, lock.internal_id))

    def txns_of_other_runs(self, batch: Batch) -> list[int]:
        """Return the numbers of the transactions with a lock that work for the batch's application,
        sink and query, but for another run, ascending."""
        ours = f"{_OURS}{worker_text(batch)}"
        stream = ours[: ours.index(" ", len(_OURS)) + 1]
        marks = {raw_lock.txnid: raw_lock.agentInfo or "" for raw_lock in self._locks()}
        return sorted(
            txn_id
            for txn_id, mark in marks.items()
            if mark.startswith(stream) and not mark.startswith(ours)
        )

    def _locks(self) -> Sequence[Any]:
        return self._server.call("show_locks", hive.ShowLocksRequest()).locks or []


def _strengthen_overwrite(component: LockComponent) -> LockComponent:
    """An overwrite locks inserts out, as by Hive's default (``hive.txn.xlock.iow``): the base would
    hide the rows of an insert that commits before it."""
    if component.operation is Operation.OVERWRITE:
        return replace(component, lock_type=LockType.EXCLUSIVE)
    return component


def _raw_read_component(lock_component: LockComponent) -> Any:
    """Make the struct of a component as if it only read (SELECT), so that the server records no
    change yet; NO_TXN stays."""
    is_change = lock_component.operation not in (Operation.SELECT, Operation.NO_TXN)
    return raw_component(
        lock_component.lock_type,
        lock_component.database,
        lock_component.table,
        lock_component.partition,
        Operation.SELECT if is_change else lock_component.operation,
    )


def raw_component(
    lock_type: LockType,
    database: str,
    table: str | None,
    partition: str | None,
    operation: Operation,
    *,
    is_dynamic: bool = False,
) -> Any:
    """Make the server's struct of a lock's component: a whole database if ``table`` is None, a
    whole table if ``partition`` is None. ``is_dynamic``: the partitions are told later."""
    level = hive.LockLevel.DB
    if table is not None:
        level = hive.LockLevel.TABLE if partition is None else hive.LockLevel.PARTITION
    return hive.LockComponent(
        type=_TYPES[lock_type],
        level=level,
        dbname=database,
        tablename=table,
        partitionname=partition,
        operationType=OPERATIONS[operation],
        isTransactional=True,
        isDynamicPartitionWrite=is_dynamic,
    )


def worker_text(batch: Batch) -> str:
    """The text in a lock that names the stream of its transaction, by a hash of application, sink
    and query, and the run of the stream: ``[hash run] ``.

    The server tells others nothing more of an open transaction that they could know it by.
    """
    stream = "\n".join((batch.app_id, batch.sink, batch.query_id))
    return f"[{sha256(stream.encode()).hexdigest()[:24]} {batch.run_id[:40]}] "


def _agent(own: OwnTxn) -> str:
    """The statement as a lock may have it, after acidsql's mark and the run of a stream: short, at
    most 128 characters, and others than ASCII as ``?``."""
    text = f"{_OURS}{own.works_for}{short_statement(own.agent_info)}".encode(
        "ascii", "replace"
    ).decode()
    return text[:_AGENT_MAX]


def _noted_blocker(lock_id: int, locks: Sequence[LockInfo]) -> LockInfo | None:
    """Return the lock that blocks a lock, as far as the server has noted it; otherwise None."""
    own = next((lock for lock in locks if lock.lock_id == lock_id and lock.blocked_by), None)
    if own is None or own.blocked_by is None:
        return None
    return next(
        (lock for lock in locks if (lock.lock_id, lock.internal_id) == own.blocked_by), None
    )


def _lock_info(raw: Any) -> LockInfo:
    """Make the LockInfo of a lock that the server shows; any state but ACQUIRED counts as WAITING.
    Its statement is without what acidsql's sessions write before it, their mark and the run of a
    stream."""
    blocker = None
    if raw.blockedByExtId:
        blocker = (raw.blockedByExtId, raw.blockedByIntId or 1)
    is_held = raw.state == hive.LockState.ACQUIRED
    return LockInfo(
        lock_id=raw.lockid,
        internal_id=raw.lockIdInternal or 1,
        txn_id=raw.txnid or 0,
        database=raw.dbname,
        table=raw.tablename,
        partition=raw.partname,
        state=LockState.ACQUIRED if is_held else LockState.WAITING,
        lock_type=_TYPE_OF[raw.type],
        acquired_at_ms=raw.acquiredat or None,
        user=raw.user,
        host=raw.hostname,
        agent_info=_WORKS_FOR.sub("", (raw.agentInfo or "").removeprefix(_OURS)),
        blocked_by=blocker,
    )
