"""``acidsql compactor``: initiator, worker, cleaner and housekeeper in a loop.

With a Hive Metastore it is a worker beside Hive's, and deletes the hidden directories of dead
sessions; Hive's initiator and cleaner do the rest.
Several services may run at once, on one machine or on many.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from acidsql.compaction.cleaner import Cleaner
from acidsql.compaction.housekeeper import keep_house
from acidsql.compaction.initiator import Initiator
from acidsql.compaction.worker import Worker, WorkerResources
from acidsql.errors import MetastoreError
from acidsql.metastore.interface import Metastore
from acidsql.settings import Settings
from acidsql.txn import TxnManager

_log = logging.getLogger(__name__)


class Service:
    """The compactor service of one process.

    Args:
        spark: The session in which compactions run.
        metastore: The metastore whose queue the service serves.
        settings: Thresholds and intervals.
        user: The user's name, shown to others.
        host: This process's host, shown to others.
        pool: The worker takes entries of this pool only; None: entries without a pool.
        tell: Called with a line for a person when something was done.
        end_old_leases: Ends the old leases of the session that runs the service, if there is one.
    """

    def __init__(
        self,
        spark: SparkSession,
        metastore: Metastore,
        settings: Settings,
        *,
        user: str,
        host: str,
        pool: str | None = None,
        tell: Callable[[str], None] = _log.info,
        end_old_leases: Callable[[], None] = lambda: None,
    ) -> None:
        self._metastore, self._settings, self._pool, self._tell = metastore, settings, pool, tell
        self._txns = TxnManager(metastore, settings, user=user, host=host)
        me = f"{host}-{os.getpid()}"
        self._initiator = Initiator(metastore, settings, me)
        resources = WorkerResources(f"acidsql-compactor-{os.getpid()}-{id(self)}")
        self._worker = Worker(spark, metastore, self._txns, me, resources)
        self._cleaner = Cleaner(metastore, self._txns, end_old_leases, spark)
        self._ended = threading.Event()
        self._checked_s: float | None = None
        self._failed: dict[str, str] = {}  # by step: why it failed in the last round
        self._is_due = True  # all tables are looked at in this round

    def run(self, *, once: bool = False) -> None:
        """Do rounds of work until ``end`` is called, with pauses between them. Errors of a step are
        logged, not raised. At the end, open transactions are aborted, and the heartbeat stops.

        Args:
            once: Check once, run all queued compactions, clean, and return.
        """
        pause_s = (
            min(
                self._settings.compactor_worker_sleep_ms,
                self._settings.compactor_cleaner_interval_ms,
            )
            / 1000
        )
        try:
            while not self._ended.is_set():
                self._do_one_round()
                if once or self._ended.wait(pause_s):
                    return
        finally:
            self._txns.close()

    def end(self) -> None:
        """Give up a running compaction, which is queued again, and make ``run`` return.

        Another thread or a signal handler calls this.
        """
        self._ended.set()
        self._worker.stop()

    def _do_one_round(self) -> None:
        """Do one round: housekeeping, checks (if their interval has passed), compactions, cleaning.
        An error ends only its step, and is logged, not raised."""
        now_s = time.monotonic()
        interval_s = self._settings.compactor_check_interval_ms / 1000
        self._is_due = self._checked_s is None or now_s - self._checked_s >= interval_s
        if self._is_due:
            self._checked_s = now_s
        for step in (
            self._keep_house,
            self._queue_due_compactions,
            self._run_queued_compactions,
            self._clean,
        ):
            try:
                step()
                self._failed.pop(step.__name__, None)
            except Exception as error:  # an error in one table must not stop the service
                self._tell_once(step.__name__, error)

    def _tell_once(self, step: str, error: Exception) -> None:
        """Log why a step failed, unless this or another step has failed with the same message, in
        this round too, and not succeeded since: the metastore may be away for days. The message is
        remembered. Nothing is logged after ``end``."""
        if self._ended.is_set():
            return
        if str(error) not in self._failed.values():
            _log.warning("The compactor tries again and again after an error: %s", error)
        self._failed[step] = str(error)

    def _keep_house(self) -> None:
        keep_house(self._metastore, self._settings)

    def _queue_due_compactions(self) -> None:
        """Check all changed tables, queue the compactions that are due, and report these, and those
        that were queued already. Do nothing if it is not time to check, or if Hive's initiator
        serves the metastore."""
        if not self._is_due or not self._metastore.abilities.can_initiate:
            return
        for outcome in self._initiator.run():
            if outcome.id is not None:
                self._tell(f"queued {outcome.id}: {outcome.place}: {outcome.why}")

    def _run_queued_compactions(self) -> None:
        """Run queued compactions of this pool until the queue is empty or the service ends, and
        report each. The error of a failed one is logged, and the next one runs; a MetastoreError is
        raised."""
        while not self._ended.is_set():
            try:
                number = self._worker.run_next(pool=self._pool)
            except MetastoreError:  # the same would happen at once
                raise
            except Exception as error:  # the entry has the error, too
                if not self._ended.is_set():
                    _log.warning("A compaction failed: %s", error)
                continue
            if number is None:
                return
            self._tell(f"compaction {number} is done")

    def _clean(self) -> None:
        """Delete the files that nobody needs, and report each. If Hive's cleaner serves the
        metastore, only hidden directories of dead sessions are deleted, and only when a check is
        due."""
        if not self._is_due and not self._metastore.abilities.can_clean:
            return  # there is only what dead sessions left, for which each table is listed
        for removed in self._cleaner.run():
            self._tell(f"removed {removed.path} ({removed.kind}, {removed.bytes} bytes)")
