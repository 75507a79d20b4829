"""Waits for locks: checks a lock with growing pauses, and says who holds it.

The waiter also aborts transactions that have timed out, because they may hold the lock.

Source: Hive ``DbLockManager``. Hive's pauses grow to a minute. Ours stop growing at
``acidsql.lock.poll.interval``; the longest total wait is the same as Hive's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from acidsql.acid.table import TableName
from acidsql.errors import AcidSqlError, LockTimeoutError
from acidsql.metastore.conflict_rules import short_statement
from acidsql.metastore.interface import (
    LockComponent,
    LockInfo,
    LockResponse,
    LockState,
    TxnStore,
)
from acidsql.settings import FIRST_LOCK_SLEEP_MS, Settings
from acidsql.txn.waits import Wait, duration_text, moment_text, waiting

# Limits for a lock that is not worth waiting for: if others hold it, somebody uses the table.
NO_WAIT_SETTINGS = Settings.of(
    {"hive.lock.numretries": "1", "hive.lock.sleep.between.retries": "1s"}
)


@dataclass(frozen=True, slots=True)
class AcquiredLock:
    """A lock that was granted.

    Attributes:
        lock_id: The lock's number.
        waited: True if the lock was not granted at once. Then names, types and partitions may
            have changed meanwhile, and the caller must look them up again.
    """

    lock_id: int
    waited: bool


class OwnLocks(Protocol):
    """The part of ``SessionLocks`` that ``LockWaiter`` uses."""

    @property
    def txn_id(self) -> int | None:
        """The transaction that holds the session's locks; None if it has none."""

    def need_held(self) -> None:
        """Raise TxnError if the session has lost its locks."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A request for locks: the transaction, the locks, and the statement if it is known."""

    txn_id: int
    components: Sequence[LockComponent]
    agent_info: str | None

    @property
    def locks(self) -> str:
        """The locks in words: ``EXCLUSIVE on default.t, SHARED_READ on default.s``."""
        return ", ".join(
            f"{lock.lock_type.name} on "
            f"{lock_object_name(lock.database, lock.table, lock.partition)}"
            for lock in self.components
        )

    @property
    def waiter(self) -> str:
        """The transaction in words: ``Transaction 12 (UPDATE t SET a = 1)``."""
        statement = short_statement(self.agent_info or "")
        return f"Transaction {self.txn_id}" + (f" ({statement})" if statement else "")


@dataclass(frozen=True, slots=True)
class LockWaiter:
    """Acquires locks for one session.

    Attributes:
        store: The store of locks.
        settings: For ``lock_wait_ms``, ``lock_poll_interval_ms`` and ``txn_timeout_ms``.
        sleep: Waits for some seconds; tests replace it.
        elapsed: A clock in seconds that only runs forward. It measures only our own wait; the
            store's clock decides which transactions have timed out.
        own: The locks of the same session, which are in nobody's way here.
    """

    store: TxnStore
    settings: Settings
    sleep: Callable[[float], None] = time.sleep
    elapsed: Callable[[], float] = time.monotonic
    own: OwnLocks | None = None

    def acquire(
        self, txn_id: int, components: Sequence[LockComponent], agent_info: str | None = None
    ) -> AcquiredLock:
        """Ask the store for all components as one lock, and wait until it is granted. If the wait
        fails or is interrupted, the request is withdrawn. If the store does not answer the request
        itself, the request may stay there. The locks of ``own`` are not in the way, and must not be
        lost. A wait of more than two seconds is reported (``Wait``).

        Raises:
            LockTimeoutError: The lock was not granted in ``lock_wait_ms``.
            TxnAbortedError: The transaction was aborted meanwhile, perhaps to end a deadlock.
            TxnError: SESSION_LOCKS_LOST: the locks of the same session have ended. Here the locks
                that were asked for are held, and stay.
        """
        session = None if self.own is None else self.own.txn_id
        response = self.store.lock(txn_id, components, agent_info=agent_info, session=session)
        waited = response.state is LockState.WAITING
        if waited:
            try:
                with waiting(self.elapsed) as wait:
                    self._wait(wait, _Request(txn_id, components, agent_info), response)
            except BaseException:
                self._give_up(txn_id, response.lock_id)
                raise
        if self.own is not None:
            self.own.need_held()  # now: from here on, the transaction's own locks protect it
        return AcquiredLock(response.lock_id, waited)

    def _wait(self, wait: Wait, request: _Request, response: LockResponse) -> None:
        """Block until the lock is granted: check it with growing pauses, and abort transactions
        (whoever's) that have timed out. Raise LockTimeoutError after ``lock_wait_ms``, or
        TxnAbortedError if this transaction is aborted meanwhile."""
        limit_s = self.settings.lock_wait_ms / 1000
        pause_s = FIRST_LOCK_SLEEP_MS / 1000
        while response.state is LockState.WAITING:
            left_s = limit_s - wait.seconds
            if left_s <= 0:
                raise _lock_timeout_error(request, limit_s, response.blocked_by)
            wait.report(partial(_wait_text, request, response.blocked_by, limit_s))
            self.sleep(min(pause_s, left_s, wait.next_report_s))
            pause_s = min(pause_s * 2, self.settings.lock_poll_interval_ms / 1000)
            # The holder may be a process that died. Only a waiter needs the holder aborted.
            self.store.abort_timed_out(self.settings.txn_timeout_ms)
            response = self.store.check_lock(request.txn_id, response.lock_id)

    def _give_up(self, txn_id: int, lock_id: int) -> None:
        """Withdraw the request, so that others do not wait for it. An error of the store is
        ignored."""
        with suppress(AcidSqlError):  # at the latest, the lock goes with its transaction
            self.store.unlock(txn_id, lock_id)


def _wait_text(
    request: _Request, blocker: LockInfo | None, limit_s: float, waited_time: str
) -> str:
    """Return sentences about a wait that goes on: what waits for which locks, who is in the way,
    how long the wait can last, and how to end it. ``waited_time``: in words."""
    waiting_text = f"{request.waiter} has waited for {waited_time} for {request.locks}."
    limit_text = (
        f"The wait ends after {duration_text(limit_s)} at the latest (hive.lock.numretries, "
        "hive.lock.sleep.between.retries)"
    )
    if blocker is None:
        return f"{waiting_text} SHOW LOCKS lists the locks. {limit_text}."
    return (
        f"{waiting_text} {describe_lock(blocker)} {limit_text}; ABORT TRANSACTIONS "
        f"{blocker.txn_id} ends transaction {blocker.txn_id}, and undoes its changes."
    )


def _lock_timeout_error(
    request: _Request, waited_s: float, blocker: LockInfo | None
) -> LockTimeoutError:
    """Make the error that says which locks were not granted in how many seconds, and which
    transaction is in the way, with its number, user, host and statement as message parameters.
    ``blocker`` is None if the store did not tell; then the error has the number of the own
    transaction alone."""
    message = f"Transaction {request.txn_id} did not get {request.locks} in {waited_s:.1f} s."
    if blocker is None:
        return LockTimeoutError(f"{message} Run the statement again.", txnId=request.txn_id)
    return LockTimeoutError(
        f"{message} {describe_lock(blocker)} Wait for it and run the statement again, or end it "
        f"with ABORT TRANSACTIONS {blocker.txn_id}; hive.lock.numretries and "
        "hive.lock.sleep.between.retries say how long to wait.",
        txnId=request.txn_id,
        blockerTxnId=blocker.txn_id,
        blockerUser=blocker.user,
        blockerHost=blocker.host,
        blockerStatement=blocker.agent_info,
    )


def describe_lock(lock: LockInfo) -> str:
    """Return a sentence about a lock: its transaction, user and host, whether it holds or waits
    ("itself waits, earlier, for"), the lock's type and object, since when it holds it, and the
    statement, cut to be short. Left out is what the store does not know."""
    has = "holds" if lock.state is LockState.ACQUIRED else "itself waits, earlier, for"
    where = lock_object_name(lock.database, lock.table, lock.partition)
    statement = short_statement(lock.agent_info)
    doing = f" (statement: {statement})" if statement else ""
    since = f" since {moment_text(lock.acquired_at_ms)}" if lock.acquired_at_ms else ""
    return (
        f"Transaction {lock.txn_id} of user {lock.user} on host {lock.host} {has} "
        f"{lock.lock_type.name} on {where}{since}{doing}."
    )


def lock_object_name(database: str, table: str | None, partition: str | None) -> str:
    """Return ``database db`` (without a table), ``db.table`` or ``db.table/p=1``; a temporary table
    has the name that users write."""
    if table is None:
        return f"database {database}"
    return str(TableName(database, table)) + (f"/{partition}" if partition else "")
