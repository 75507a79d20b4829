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
    """What a heartbeat needs to know of a transaction."""

    @property
    def id(self) -> int:
        """Its number."""


class Heartbeat:
    """Beats for the open transactions of one session, from one daemon thread.

    It never keeps a dead transaction alive: it holds transactions weakly, so one that nobody
    can use any more times out; it does not beat again for one that the store calls dead; and
    the thread ends with the process, with ``stop``, and with any unforeseen exception.

    Args:
        store: Where to beat. Used beside the session's own thread.
        interval_ms: Between two beats, in milliseconds.
        on_beat: Called in the thread after each beat.
    """

    def __init__(
        self, store: TxnStore, interval_ms: int, on_beat: Callable[[], None] = lambda: None
    ) -> None:
        self._store, self._interval_ms, self._on_beat = store, interval_ms, on_beat
        self._alive: dict[int, weakref.ref[HasTxnId]] = {}
        self._dead: dict[int, AcidSqlError] = {}
        self._guard = threading.Lock()
        self._signal = threading.Event()  # the thread should look at the next line
        self._stopped = False
        self._thread: threading.Thread | None = None

    def watch(self, txn: HasTxnId) -> None:
        """Begin to beat for a transaction; the first one starts the thread."""
        with self._guard:
            self._alive[txn.id] = weakref.ref(txn)
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(
                    target=self._run, name="acidsql-heartbeat", daemon=True
                )
                self._thread.start()

    def forget(self, txn_id: int) -> None:
        """No longer beat for a transaction: it ended, or it is to time out."""
        with self._guard:
            self._alive.pop(txn_id, None)
            self._dead.pop(txn_id, None)

    def check(self, txn_id: int) -> None:
        """Raise what a beat found out: TxnAbortedError or NoSuchTxnError."""
        with self._guard:
            error = self._dead.get(txn_id)
        if error is not None:
            # A new exception at each call: a raised one would collect tracebacks.
            raise type(error)(error.message, **dict(error.parameters))

    def stop(self) -> None:
        """Stop beating and wait for the thread's end. May be called twice."""
        self._stopped = True
        self._signal.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=self._interval_ms / 1000 + 1)

    def change_interval(self, interval_ms: int) -> None:
        """Beat now, and from now on so often."""
        self._interval_ms = interval_ms
        self._signal.set()

    def beat(self) -> bool:
        """Beat once for every transaction; False if the store did not answer."""
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
        try:
            self._store.heartbeat(txn_id)
        except (TxnAbortedError, NoSuchTxnError) as error:
            with self._guard:
                # It may have committed while we asked; then nobody wants to know.
                if self._alive.pop(txn_id, None) is not None:
                    self._dead[txn_id] = error
        except MetastoreError as error:
            _log.warning("No heartbeat for transaction %d: %s", txn_id, error)
            return False
        return True

    def _run(self) -> None:
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
            # Transactions without a heartbeat time out, which is what must happen to a session
            # that is no longer whole.
            _log.exception("The heartbeat ended; open transactions will time out")
