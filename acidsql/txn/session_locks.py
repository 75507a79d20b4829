"""The locks that a session holds beyond its transactions, by LOCK outside of BEGIN … COMMIT.

One SESSION transaction holds all of them. The first LOCK opens it. It ends with the last UNLOCK, or
with the session. Its heartbeat is the session's sign of life: if that stops, the locks end as those
of any transaction. It neither reads nor writes, so it holds back no cleaner and no history.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from acidsql.errors import AcidSqlError, NoSuchTxnError, TxnAbortedError, TxnError
from acidsql.metastore.interface import LockComponent, LockInfo, TxnStore
from acidsql.txn.locks import LockWaiter
from acidsql.txn.txn import Txn, abort_quietly


class BorrowedLocks:
    """The locks of a session, for work of its statements that does not rely on them."""

    def __init__(self, locks: SessionLocks) -> None:
        self._locks = locks

    @property
    def txn_id(self) -> int | None:
        """The id of the SESSION transaction that holds the locks; None: none is held."""
        return self._locks.txn_id

    def need_held(self) -> None:
        """Do nothing: a loss of these locks is reported to a statement of the session alone."""


class SessionLocks:
    """The locks of one session. Statements run one at a time; other threads may read beside them.

    Args:
        store: The store of locks.
        open_holder: Opens a SESSION transaction, with a heartbeat.
        waiter: Acquires locks under the session's settings of now.
    """

    def __init__(
        self, store: TxnStore, open_holder: Callable[[], Txn], waiter: Callable[[], LockWaiter]
    ) -> None:
        self._store, self._open, self._waiter = store, open_holder, waiter
        self._holder: Txn | None = None
        self._granted: set[int] = set()
        self._is_unsure = False
        self._guard = threading.Lock()  # of the requests: a reader must not withdraw a new one

    @property
    def txn_id(self) -> int | None:
        """The number of the SESSION transaction that holds the locks; None if there is none."""
        return None if self._holder is None else self._holder.id

    def need_held(self) -> None:
        """Ask the store whether the session still has its locks. Raise if it has lost them; do
        nothing if it has them or never had any. A loss is told once: then the session has none. If
        the reply to an earlier request was lost, withdraw the request, unless another thread is at
        a request now.

        Raises:
            TxnError: SESSION_LOCKS_LOST: they timed out, or somebody has ended them.
            MetastoreError: The store cannot be reached.
        """
        holder = self._holder
        if holder is None:
            return
        if not holder.is_alive:
            try:
                self._store.heartbeat(holder.id)  # it tells why
            except (TxnAbortedError, NoSuchTxnError) as error:
                raise self._forget_lost(holder, error) from error
        if self._is_unsure and self._guard.acquire(blocking=False):
            try:
                self._withdraw(holder)
            finally:
                self._guard.release()

    def acquire(self, components: Sequence[LockComponent], agent_info: str) -> None:
        """Wait for all of these locks. If it raises, none of them is held.

        Raises:
            LockTimeoutError: They were not granted in time. Earlier locks stay.
            MetastoreError: The store did not answer. Earlier locks stay.
            TxnAbortedError: The new holder was aborted, as to end a deadlock; the session had no
                locks.
            TxnError: SESSION_LOCKS_LOST: the session held locks, and has lost them.
        """
        self.need_held()
        with self._guard:
            if self._holder is None:
                self._holder = self._open()
            self._acquire(self._holder, components, agent_info)

    def held_locks(self) -> list[LockInfo]:
        """Ask the store for the locks that the session holds, and return one LockInfo for each
        locked object; an empty list if there are none.

        Raises:
            TxnError: SESSION_LOCKS_LOST: they timed out, or somebody has ended them.
        """
        self.need_held()
        holder = self._holder
        return [] if holder is None else self._locks_of(holder)

    def release(self, locks: Collection[LockInfo]) -> bool:
        """End each lock whose parts (one for each locked object) are all in ``locks``. If no lock
        is left, the transaction that held them ends, too. May be repeated.

        Returns:
            True if a lock was ended.

        Raises:
            TxnError: SESSION_LOCKS_LOST: they timed out, or somebody has ended them.
        """
        self.need_held()
        with self._guard:
            return self._holder is not None and self._release(
                self._holder, lambda lock: lock in locks
            )

    def close(self) -> None:
        """Commit the SESSION transaction that holds the locks, which ends them all, and forget
        both. A failure is only logged: then they time out."""
        if self._holder is not None:
            self._holder.end_quietly()
            self._holder, self._granted, self._is_unsure = None, set(), False

    def _acquire(self, holder: Txn, components: Sequence[LockComponent], agent_info: str) -> None:
        """Wait for locks in the name of the holder, the SESSION transaction. If it has ended,
        forget it, and raise SESSION_LOCKS_LOST if it held locks, otherwise the store's error. After
        any other error withdraw the request, and raise the error."""
        try:
            self._granted.add(self._waiter().acquire(holder.id, components, agent_info).lock_id)
        except (TxnAbortedError, NoSuchTxnError) as error:
            if self._granted:
                raise self._forget_lost(holder, error) from error
            self._forget(holder)
            raise
        except BaseException:
            # If the reply was lost, the request may be in the store, and in the way of others.
            self._is_unsure = True
            with suppress(AcidSqlError):
                self._withdraw(holder)
            raise

    def _locks_of(self, holder: Txn) -> list[LockInfo]:
        """Ask the store for the locks of a transaction, waiting ones too: one LockInfo for each
        locked object."""
        return [lock for lock in self._store.show_locks() if lock.txn_id == holder.id]

    def _release(self, holder: Txn, is_selected: Callable[[LockInfo], bool]) -> bool:
        """Unlock in the store each lock of which all parts are selected, waiting ones too; a lock
        with another part stays whole. If no lock is left, or there was none, end the holder, the
        SESSION transaction, too. Return True if a lock was ended."""
        parts: dict[int, list[bool]] = {}
        for lock in self._locks_of(holder):
            parts.setdefault(lock.lock_id, []).append(is_selected(lock))
        ended_locks = [lock_id for lock_id, part_flags in parts.items() if all(part_flags)]
        for lock_id in ended_locks:
            self._store.unlock(holder.id, lock_id)
            self._granted.discard(lock_id)
        if len(ended_locks) == len(parts):
            self.close()
        return bool(ended_locks)

    def _withdraw(self, holder: Txn) -> None:
        """End all locks and requests in the store of which the session does not know that they were
        granted, as the reply was lost. If no lock is left, end the holder, too."""
        self._release(holder, lambda lock: lock.lock_id not in self._granted)
        self._is_unsure = False

    def _forget_lost(self, holder: Txn, store_error: TxnError) -> TxnError:
        """Forget all locks of the session, because the transaction that held them has ended. Return
        (do not raise) the error SESSION_LOCKS_LOST, with the text of ``store_error``."""
        self._forget(holder)
        return TxnError(
            "This session has lost its locks, because the transaction that held them has ended. "
            f"{store_error.message} Others may have changed what was locked: LOCK it again, and "
            "then look at it again.",
            condition="SESSION_LOCKS_LOST",
            txnId=holder.id,
        )

    def _forget(self, holder: Txn) -> None:
        """Abort the holder, which stops its heartbeat, and have no holder and no locks from now on.
        A failure is only logged."""
        abort_quietly(holder, "the locks of its session are lost")  # it has ended: no heartbeat
        self._holder, self._granted, self._is_unsure = None, set(), False
