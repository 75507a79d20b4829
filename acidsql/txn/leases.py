"""Leases keep the cleaner from deleting files that lazy DataFrames may still read.

A lease is an open READ_ONLY transaction with a heartbeat. It holds no lock. The cleaner deletes no
file that an open transaction may need, so a lease protects every snapshot that is taken after the
lease was opened. A session therefore needs no new lease for each snapshot, only one when the last
lease has grown old. At most eleven leases of a session are open at a time.

A lease belongs to the session, not to a DataFrame, because derived DataFrames, temporary views and
caches can outlive the DataFrame unnoticed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

PARTS = 10  # a lease serves new snapshots for 1/10 of its time, so each has at least 9/10 left


class LeaseTxn(Protocol):
    """The part of a transaction that ``Leases`` uses."""

    @property
    def id(self) -> int:
        """The transaction's number."""

    @property
    def is_alive(self) -> bool:
        """True if the transaction is open, here and in the store."""

    def end_quietly(self) -> None:
        """End the transaction; a failure is only logged."""


class Leases:
    """The leases of one session. The heartbeat's thread uses them, too.

    Args:
        open_lease: Opens a READ_ONLY transaction.
        timeout_ms: ``acidsql.lease.timeout``. The attribute may be changed at any time.
        elapsed: A clock in seconds that only runs forward.
    """

    def __init__(
        self,
        open_lease: Callable[[], LeaseTxn],
        timeout_ms: int,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open, self.timeout_ms, self._elapsed = open_lease, timeout_ms, elapsed
        self._held: deque[tuple[float, LeaseTxn]] = deque()  # oldest first
        self._guard = threading.Lock()

    def hold(self) -> int:
        """Make sure that a lease, an open READ_ONLY transaction, protects the next snapshot, and
        return its number.

        A new lease is opened if the newest has served a tenth of its time, or has ended in the
        store. Leases that are older than the time-out end. Errors of ``open_lease`` are passed on.
        """
        self.end_old()
        with self._guard:
            now = self._elapsed()
            if not self._held or self._is_used_up(*self._held[-1], now):
                self._held.append((now, self._open()))
            return self._held[-1][1].id

    def newest(self) -> int | None:
        """Return the number of the newest lease if it has served less than a tenth of its time, so
        that it can protect another snapshot; otherwise None. The store is not asked whether it
        still has the lease. Leases that are older than the time-out end."""
        self.end_old()
        with self._guard:
            if not self._held or self._has_served(self._held[-1][0], self._elapsed()):
                return None
            return self._held[-1][1].id

    def _is_used_up(self, since: float, lease: LeaseTxn, now: float) -> bool:
        """Whether a lease cannot protect another snapshot: it has served a tenth of its time, or it
        is not open in the store any more (the store is asked)."""
        return self._has_served(since, now) or not lease.is_alive

    def _has_served(self, since: float, now: float) -> bool:
        """Whether a lease from the time ``since`` has served a tenth of the time-out."""
        return now - since >= self.timeout_ms / 1000 / PARTS

    def end_old(self) -> None:
        """End the leases that are older than the time-out, whether or not somebody still reads
        under them. A failure is only logged."""
        oldest = self._elapsed() - self.timeout_ms / 1000
        while True:
            with self._guard:
                if not self._held or self._held[0][0] > oldest:
                    return
                _, lease = self._held.popleft()
            lease.end_quietly()

    def close(self) -> None:
        """End all leases. A failure is only logged."""
        with self._guard:
            held, self._held = self._held, deque()
        for _, lease in held:
            lease.end_quietly()
