"""Leases: what lazy DataFrames still read is kept from the cleaner.

A lease is an open READ_ONLY transaction with a heartbeat. It is no lock: it only holds back the
cleaner, which deletes nothing that a transaction may need that began earlier. So it protects every
snapshot that is taken after it was opened, and a session needs a new one not for each snapshot
but only when the last has grown old: at most eleven are open at a time.

A lease belongs to the session, not to a DataFrame: derived frames, temporary views and caches
outlive that unseen.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

_PARTS = 10  # a snapshot is protected for at least 9/10 of the time-out


class Held(Protocol):
    """What a lease needs of a transaction."""

    @property
    def id(self) -> int:
        """Its number."""

    @property
    def is_alive(self) -> bool:
        """Nobody has aborted it."""

    def end_quietly(self) -> None:
        """End it; a failure is only logged."""


class Leases:
    """The leases of one session; also used by its heartbeat's thread.

    Args:
        open_lease: Opens a READ_ONLY transaction.
        timeout_ms: ``acidsql.lease.timeout``; may be changed.
        elapsed: A clock in seconds that only runs forward.
    """

    def __init__(
        self,
        open_lease: Callable[[], Held],
        timeout_ms: int,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open, self.timeout_ms, self._elapsed = open_lease, timeout_ms, elapsed
        self._held: deque[tuple[float, Held]] = deque()  # oldest first
        self._guard = threading.Lock()

    def hold(self) -> int:
        """See that the snapshot that is taken next is protected; the lease's number.

        Raises as ``open_lease``.
        """
        self.end_old()
        with self._guard:
            now = self._elapsed()
            if not self._held or self._is_old(*self._held[-1], now):
                self._held.append((now, self._open()))
            return self._held[-1][1].id

    def _is_old(self, since: float, lease: Held, now: float) -> bool:
        return now - since >= self.timeout_ms / 1000 / _PARTS or not lease.is_alive

    def end_old(self) -> None:
        """End those that have timed out."""
        oldest = self._elapsed() - self.timeout_ms / 1000
        while True:
            with self._guard:
                if not self._held or self._held[0][0] > oldest:
                    return
                _, lease = self._held.popleft()
            lease.end_quietly()

    def close(self) -> None:
        """End them all."""
        with self._guard:
            held, self._held = self._held, deque()
        for _, lease in held:
            lease.end_quietly()
