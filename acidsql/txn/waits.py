"""Says whom a statement waits for: after two seconds, then at growing distances.

A plain script would be silent while it waits for a lock. So a wait is logged as a warning, which
Python shows on standard error even if the program has not set up logging. A terminal that shows the
progress of a statement shows the wait there instead (``waits_shown_by``), so that nobody reads it
twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

_log = logging.getLogger(__name__)

_FIRST_REPORTS_S = (2.0, 10.0, 30.0)
_LATER_REPORTS_S = 60.0  # from each report to the next, after the first ones
_SHOWN_S = 2.0  # from each report that is shown to the next

# Shows a sentence about a wait in the place of the last one; None takes it away.
ShowWait = Callable[[str | None], None]

_shown_by: ContextVar[ShowWait | None] = ContextVar("acidsql_shows_waits", default=None)


@contextmanager
def waits_shown_by(show: ShowWait) -> Iterator[None]:
    """Give the waits of the block to ``show`` instead of the log. Waits of other threads are not
    among them."""
    token = _shown_by.set(show)
    try:
        yield
    finally:
        _shown_by.reset(token)


class Wait:
    """One wait, which says from time to time whom it is for.

    Args:
        elapsed: A clock in seconds that only runs forward; tests replace it.
    """

    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._elapsed, self._start = elapsed, elapsed()
        self._next_s = _FIRST_REPORTS_S[0]

    @property
    def seconds(self) -> float:
        """The seconds since the wait began."""
        return self._elapsed() - self._start

    @property
    def next_report_s(self) -> float:
        """The seconds until the next report; 0 if it is due."""
        return max(0.0, self._next_s - self.seconds)

    def report(self, sentences: Callable[[str], str]) -> None:
        """Log the wait as a warning if a report is due; or show it, at each call, where the waits
        of this thread are shown.

        Args:
            sentences: Returns the text, from the time waited so far in words.
        """
        if (show := _shown_by.get()) is not None:
            show(sentences(duration_text(self.seconds)))
            if self.seconds >= self._next_s:  # or the waiter would not pause any more
                self._next_s = self.seconds + _SHOWN_S
        elif self.seconds >= self._next_s:
            _log.warning("%s", sentences(duration_text(self.seconds)))
            self._next_s = next(
                (distance_s for distance_s in _FIRST_REPORTS_S if distance_s > self.seconds),
                self.seconds + _LATER_REPORTS_S,
            )


@contextmanager
def waiting(elapsed: Callable[[], float] = time.monotonic) -> Iterator[Wait]:
    """Give the block a ``Wait``. At its end, the wait is not shown any more."""
    try:
        yield Wait(elapsed)
    finally:
        if (show := _shown_by.get()) is not None:
            show(None)


def duration_text(seconds: float) -> str:
    """Return a time in words, in its two largest units: ``0.7 s``, ``12 s``, ``91 min 42 s``, ``26
    h 5 min``."""
    if seconds < 2:
        return f"{seconds:.1f} s"
    minutes, rest_s = divmod(int(seconds), 60)
    if minutes < 100:
        return " ".join([f"{minutes} min"] * bool(minutes) + [f"{rest_s} s"] * bool(rest_s))
    return f"{minutes // 60} h {minutes % 60} min"


def moment_text(time_ms: int) -> str:
    """Return a moment, in milliseconds since the epoch, as ``2026-01-31 08:15:00 UTC``."""
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
