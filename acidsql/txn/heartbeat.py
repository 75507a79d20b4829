"""The thread that tells the metastore that our transactions are alive.

Source: Hive ``DbTxnManager.Heartbeater``: every ``hive.txn.timeout``/2.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from typing import Protocol

from acidsql.errors import AcidSqlError, MetastoreError, NoSuchTxnError, TxnAbortedError
from acidsql.metastore.interface import TxnStore

_log = logging.getLogger(__name__)
_RETRIES_PER_INTERVAL = 10


class HasTxnId(Protocol):
    """The part of a transaction that ``Heartbeat`` uses."""

    @property
    def id(self) -> int:
        """The transaction's number."""


class Heartbeat:
    """Sends heartbeats for the open transactions of one session, from one daemon thread.

    The heartbeat must not keep a transaction alive that nobody can use. Therefore it holds only
    weak references to transactions, and it sends nothing more for a transaction that the store
    reports as ended. The thread ends with the process, with ``stop``, and with any unexpected
    exception.

    Args:
        store: The store that gets the heartbeats. The session's own thread uses it, too.
        interval_ms: The time between two heartbeats, in milliseconds.
        on_beat: Called in the thread after each heartbeat that the store has answered.
    """

    def __init__(
        self, store: TxnStore, interval_ms: int, on_beat: Callable[[], None] = lambda: None
    ) -> None:
        self._store, self._interval_ms, self._on_beat = store, interval_ms, on_beat
        self._alive: dict[int, weakref.ref[HasTxnId]] = {}
        self._dead: dict[int, AcidSqlError] = {}
        self._guard = threading.Lock()
        self._signal = threading.Event()  # wakes the thread: ``_stopped`` or the interval changed
        self._stopped = False
        self._thread: threading.Thread | None = None

    def watch(self, txn: HasTxnId) -> None:
        """Send heartbeats for a transaction from now on, the first one after an interval at most.
        The first call starts the thread. The transaction is only weakly referenced. After ``stop``
        no heartbeat is sent."""
        with self._guard:
            self._alive[txn.id] = weakref.ref(txn)
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(
                    target=self._run, name="acidsql-heartbeat", daemon=True
                )
                self._thread.start()

    def forget(self, txn_id: int) -> None:
        """Send no more heartbeats for a transaction, which has ended or shall time out. Drop the
        error that ``check`` would raise for it."""
        with self._guard:
            self._alive.pop(txn_id, None)
            self._dead.pop(txn_id, None)

    def check(self, txn_id: int) -> None:
        """Raise the error by which an earlier heartbeat learned that the transaction has ended, as
        a new exception at each call until ``forget``; do nothing if none did. The store is not
        asked.

        Raises:
            TxnAbortedError: The transaction was aborted.
            NoSuchTxnError: The store has no open transaction of this number.
        """
        with self._guard:
            error = self._dead.get(txn_id)
        if error is not None:
            # Each call raises a new exception, because a raised one would collect tracebacks.
            raise type(error)(error.message, **dict(error.parameters))

    def stop(self) -> None:
        """Stop the heartbeats, and wait for the thread's end, at most an interval and a second; the
        thread itself does not wait. May be called twice."""
        self._stopped = True
        self._signal.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=self._interval_ms / 1000 + 1)

    def change_interval(self, interval_ms: int) -> None:
        """Change the interval, and let the thread send heartbeats now."""
        self._interval_ms = interval_ms
        self._signal.set()

    def beat(self) -> bool:
        """Send one heartbeat for each watched transaction, and forget those that nobody references
        any more. After ``stop`` send none. Return False if the store could not be reached for one
        of them; a transaction that the store reports as ended counts as answered."""
        with self._guard:
            txns = list(self._alive.items())
        answered = True
        for txn_id, reference in txns:
            if self._stopped:
                break
            if reference() is None:
                self.forget(txn_id)
            else:
                answered = self._beat_for(txn_id) and answered
        return answered

    def _beat_for(self, txn_id: int) -> bool:
        """Send a heartbeat for one transaction. Return False, and log, if the store did not answer.
        If the transaction has ended, send no more, and keep the error for ``check``."""
        try:
            self._store.heartbeat(txn_id)
        except (TxnAbortedError, NoSuchTxnError) as error:
            with self._guard:
                # The session's thread may have ended the transaction meanwhile (``forget``). Then
                # this error is no news.
                if self._alive.pop(txn_id, None) is not None:
                    self._dead[txn_id] = error
        except MetastoreError as error:
            _log.warning("No heartbeat for transaction %d: %s", txn_id, error)
            return False
        return True

    def _run(self) -> None:
        """Send heartbeats, the first after an interval, until ``stop``, and call ``on_beat`` after
        each round that the store has answered; send them ten times as often while it does not
        answer. An unexpected error, of ``on_beat``, too, is logged, and ends the thread."""
        wait_ms = float(self._interval_ms)
        try:
            while True:
                self._signal.wait(wait_ms / 1000)
                self._signal.clear()
                if self._stopped:
                    return
                answered = self.beat()
                if answered:
                    self._on_beat()
                wait_ms = self._interval_ms / (1 if answered else _RETRIES_PER_INTERVAL)
        except BaseException:
            # Without a heartbeat the transactions time out. That is right for a session in an
            # unknown state.
            _log.exception("The heartbeat ended; open transactions will time out")
