"""Waits until compactions have ended, runs those that no worker takes, and reports long waits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from acidsql.errors import AcidSqlError, WriteError
from acidsql.metastore.compaction_queue import CompactionInfo, CompactionState, CompactionType
from acidsql.metastore.interface import Metastore
from acidsql.settings import Settings
from acidsql.statements.maintenance.compaction_rows import UNFINISHED
from acidsql.txn.locks import lock_object_name
from acidsql.txn.waits import moment_text, waiting

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.1  # Hive: 2 s; ours doubles, too
_HIVE_TAKES = (
    "A worker of Hive must take it: check that hive.compactor.worker.threads "
    "(metastore.compactor.worker.threads) is more than 0 where Hive's workers run."
)
_OLDER_FIRST = (
    "The Hive Metastore hands out the oldest entry of a pool first, and a rebalance to Hive's "
    "workers alone: SHOW COMPACTIONS lists the entries."
)


class RunNext(Protocol):
    """The part of ``compaction.worker.Worker`` that ``CompactionWaiter`` uses."""

    def __call__(self, *, only: int) -> int | None:
        """Compact the entry of this number, or an older one. Return the number of the entry that
        was compacted; None if there was none to take."""


class CompactionWaiter:
    """Waits for the compactions that one session has asked for.

    Args:
        metastore: Has the queue.
        run_next: Runs a compaction in this session (``Worker.run_next``).
        settings: The settings of now.
        sleep: Waits for some seconds; tests replace it.
        elapsed: A clock in seconds that only runs forward; tests replace it.
    """

    def __init__(
        self,
        metastore: Metastore,
        run_next: RunNext,
        settings: Callable[[], Settings],
        sleep: Callable[[float], None] = time.sleep,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metastore, self._run_next, self._settings = metastore, run_next, settings
        self._sleep, self._elapsed = sleep, elapsed

    def wait(self, compaction_id: int) -> None:
        """Wait, without a limit, until a compaction has ended, and run it in this session if no
        other worker does. A refused one is only logged, and one that the store has forgotten counts
        as ended.

        Meanwhile transactions that timed out are aborted, and compactions are taken from workers
        that timed out. What sessions must not compact, the metastore's own workers compact. A wait
        of more than two seconds is reported (``Wait``).

        Raises:
            WriteError: COMPACTION_FAILED: the compaction failed.
        """
        pause_s = _FIRST_PAUSE_S
        longest_s = self._settings().compactor_wait_timeout_ms / 1000
        with waiting(self._elapsed) as wait:
            while (entry := self._entry(compaction_id)) is not None and entry.state in UNFINISHED:
                # No worker has taken it yet, or its worker has given up.
                if entry.state is CompactionState.INITIATED and self._compact(entry):
                    continue
                wait.report(partial(self._wait_text, entry))
                self._sleep(min(pause_s, max(wait.next_report_s, _FIRST_PAUSE_S)))
                pause_s = min(2 * pause_s, longest_s)
                self._metastore.abort_timed_out(self._settings().txn_timeout_ms)
                self._metastore.revoke(self._settings().compactor_worker_timeout_ms)
        if entry is not None and entry.state is CompactionState.REFUSED:
            # For users who do not look at the result.
            _log.warning("compaction %d: refused: %s", compaction_id, entry.message)
        if entry is not None and entry.state is CompactionState.FAILED:
            raise WriteError(
                f"Compaction {compaction_id} failed: {entry.message}",
                condition="COMPACTION_FAILED",
                compactionId=compaction_id,
            )

    def _may_compact(self, entry: CompactionInfo) -> bool:
        """Whether sessions may run this compaction over this metastore."""
        abilities = self._metastore.abilities
        is_allowed = entry.type is not CompactionType.REBALANCE or abilities.can_rebalance
        return abilities.can_work and is_allowed

    def _compact(self, entry: CompactionInfo) -> bool:
        """Run a compaction, unless another worker takes its entry or sessions must not take it.
        Return whether this session has run a compaction to its end. Raise the error if it fails.

        A Hive Metastore may hand out an older entry, which is run instead. The error of that one is
        only logged, and this compaction still waits. So it does if no entry could be taken, as with
        too many open transactions.
        """
        if not self._may_compact(entry):
            return False
        try:
            return self._run_next(only=entry.id) is not None
        except AcidSqlError as error:
            entry_now = self._entry(entry.id)
            if entry_now is None or entry_now.state is not CompactionState.INITIATED:
                raise
            _log.warning("Compaction %d waits, because of an error: %s", entry.id, error)
            return False  # the same error may come again at once

    def _wait_text(self, entry: CompactionInfo, waited_time: str) -> str:
        """Return sentences about the wait for a compaction: which one, which worker it waits for,
        and how to end it. ``waited_time``: in words."""
        where = lock_object_name(entry.table.database, entry.table.name, entry.partition)
        return (
            f"This statement has waited for {waited_time} for compaction {entry.id} "
            f"({entry.type.name.lower()} of {where}). {self._worker_text(entry)} The wait has no "
            "limit. Ctrl+C ends the wait, and the compaction stays queued."
        )

    def _worker_text(self, entry: CompactionInfo) -> str:
        """Return sentences that say which worker has an entry, or which one can take it."""
        if entry.state is CompactionState.WORKING:
            since = f" since {moment_text(entry.started_ms)}" if entry.started_ms else ""
            progress = f" ({entry.progress})" if entry.progress else ""
            return f"Worker {entry.worker_id} has it{since}{progress}."
        advice = f"ABORT COMPACTIONS {entry.id} takes it out of the queue."
        if self._metastore.abilities.shared_with_hive:
            taker = _OLDER_FIRST if self._may_compact(entry) else _HIVE_TAKES
            advice = f"{taker} {advice}"
        return f"No worker has taken it yet. {advice}"

    def _entry(self, compaction_id: int) -> CompactionInfo | None:
        """Return the store's entry of a compaction; None if the store has forgotten it, as after a
        DROP of its table."""
        return next(
            (entry for entry in self._metastore.compactions() if entry.id == compaction_id), None
        )
