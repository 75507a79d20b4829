"""A session's own compactor: it compacts the tables that the session wrote to.

After a commit it asks the initiator about the changed tables and partitions, runs the queued
compactions, and cleans up. It uses at most a quarter of the task slots (at least one). It begins
when no statement of the session runs, or after some seconds if there always is one. It gives up a
compaction, which is then queued again, in two cases:

* A statement begins, and the compaction uses all task slots. This happens only a few times in a
  row, or the tables of a busy session would never be compacted.
* A transaction, in any process, waits for the compaction's lock (to drop the table, for example).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Protocol

from pyspark.sql import SparkSession

from acidsql.acid.table import TableName
from acidsql.compaction.cleaner import Cleaner
from acidsql.compaction.housekeeper import keep_house
from acidsql.compaction.initiator import Initiator
from acidsql.compaction.worker import Worker, WorkerResources
from acidsql.errors import AcidSqlError
from acidsql.metastore.compaction_queue import Candidate
from acidsql.metastore.interface import LockState, Metastore
from acidsql.settings import Settings
from acidsql.storage.spark.session import jobs
from acidsql.storage.spark.session.jvm import has_ended
from acidsql.storage.spark.session.store_conf import give_workers_store_settings, store_settings
from acidsql.txn import BorrowedLocks, SessionLocks, TxnManager

_log = logging.getLogger(__name__)

_SHARE = 4  # the compactor uses one fourth of the task slots
_IDLE_S = 0.2  # it begins when no statement has run for so long
_PATIENCE_S = 5.0  # or when the oldest change is older than this
_GIVES_WAY = 3  # so many times in a row it gives up for a statement
_LOOK_S = 1.0  # the pause between two checks whether a transaction waits for our lock
FAIR_POOL = "acidsql-compactor"

WrittenPlace = tuple[TableName, str | None]


class CommittedTransaction(Protocol):
    """The part of a committed transaction that the compactor uses.

    Attributes:
        compaction: A line for each place is appended: which compaction is queued, or why none.
    """

    @property
    def places(self) -> list[WrittenPlace]:
        """The changed tables and partitions; the partition is None for an unpartitioned table."""

    compaction: list[str]
    """Receives the initiator's findings, for the statement's receipt."""


class Background:
    """Compacts the tables that one session writes to.

    Args:
        spark: The session's Spark session.
        metastore: The session's metastore; the compactor's threads use it, too.
        settings: Gives the session's settings.
        user: The user's name, shown to others.
        host: This process's host, shown to others.
        mode: ``background``: compact in a thread; ``inline``: compact before the statement returns
            that made a compaction necessary; ``off``: do nothing. Nothing is done, either, if the
            metastore has a compactor of its own, unless ``acidsql.hive.compactor`` says so.
        end_old_leases: Ends the session's old leases.
        session_locks: The session's locks. A thread waits for them; a statement that compacts does
            not, because it would wait for itself.
    """

    def __init__(
        self,
        spark: SparkSession,
        metastore: Metastore,
        settings: Callable[[], Settings],
        *,
        user: str,
        host: str,
        mode: str,
        end_old_leases: Callable[[], None] = lambda: None,
        session_locks: SessionLocks | None = None,
    ) -> None:
        self._metastore, self._settings = metastore, settings
        able = metastore.abilities
        is_asked = able.can_work and settings().compactor_of_hive == "session"
        self._is_on = mode != "off" and (able.compacts or is_asked)
        self._inline = mode == "inline"
        self._txns = TxnManager(
            metastore, settings(), user=user, host=host,
            borrowed_locks=BorrowedLocks(session_locks) if session_locks and self._inline else None,
        )  # fmt: skip
        self._spark, self._id = spark, f"{host}-{id(self)}"
        self._sibling_session: SparkSession | None = None
        self._current_worker: Worker | None = None
        self._cleaner = Cleaner(metastore, self._txns, end_old_leases)
        self._written: dict[WrittenPlace, list[list[str]]] = {}
        self._written_since: float | None = None
        self._statements = self._given_way = 0
        self._idle_since = time.monotonic()
        self._wake = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    # These are made at first use: a session that only reads never needs them.

    @cached_property
    def _slots(self) -> int:
        """The number of tasks that Spark runs at once."""
        return jobs.task_slots(self._spark)

    @property
    def _tasks(self) -> int:
        """The number of tasks that the compactor may run at once: a fourth of all, at least one."""
        return max(1, self._slots // _SHARE)

    @property
    def _own_session(self) -> SparkSession:
        """The compactor's own Spark session, made at first use: statements change the settings of
        the user's."""
        if self._sibling_session is None:
            self._sibling_session = jobs.sibling_session(self._spark)
        return self._sibling_session

    @property
    def _worker(self) -> Worker:
        """The worker, made at first use, in the compactor's own Spark session; in mode ``inline``
        in the user's."""
        if self._current_worker is None:
            self._current_worker = self._worker_in(
                self._spark if self._inline else self._own_session
            )
        return self._current_worker

    def _worker_in(self, own: SparkSession) -> Worker:
        """Return a worker that compacts in the session ``own``: in mode ``background`` with few
        tasks, in a fair pool if Spark has such pools."""
        tag = f"acidsql-compactor-{id(self)}"
        resources = WorkerResources(tag)
        if not self._inline:
            pool = FAIR_POOL if jobs.has_fair_pools(self._spark) else None
            resources = WorkerResources(tag, self._tasks, pool)
        return Worker(own, self._metastore, self._txns, self._id, resources)

    def _renew_lost_session(self) -> None:
        """Make the compactor's own session and its worker anew if the server of Spark Connect has
        forgotten the session, and end the old session. Do nothing in mode ``inline``, or if the
        compactor has no session of its own."""
        if (
            self._inline
            or self._own_session is self._spark
            or not jobs.is_forgotten(self._own_session)
        ):
            return
        before, self._sibling_session = self._own_session, jobs.sibling_session(self._spark)
        self._current_worker = self._worker_in(self._sibling_session)
        jobs.end_sibling_session(before, self._spark)  # its client is still open

    # ── called by the session ────────────────────────────────────────────────────────────────

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Count a statement of the session as running inside the ``with`` block. If a compaction
        runs that uses all task slots, it is given up and queued again, but only a few times in a
        row."""
        with self._wake:
            self._statements += 1
        # Without a thread no compaction runs.
        if self._thread is not None and self._tasks >= self._slots and self._worker.is_busy:
            self._give_way()
        try:
            yield
        finally:
            with self._wake:
                self._statements -= 1
                self._idle_since = time.monotonic()
                self._wake.notify_all()

    def _give_way(self) -> None:
        """Stop the worker for a statement, unless this has happened three times in a row. The
        worker's compaction is queued again."""
        if self._given_way < _GIVES_WAY:
            self._given_way += 1
            self._worker.stop()

    def on_committed(self, transaction: CommittedTransaction) -> None:
        """Note which places a committed transaction has written, so that the thread checks whether
        they need a compaction; start the thread if there is none. In mode ``inline``, do a whole
        round before returning: queue the compactions that are due, run the queue, and clean. Errors
        are logged. Do nothing without places, or if the compactor is off."""
        if not self._is_on or not transaction.places:
            return
        with self._wake:
            self._written_since = self._written_since or time.monotonic()
            for place in transaction.places:
                self._written.setdefault(place, []).append(transaction.compaction)
            if not self._inline and self._thread is None and not self._closed:
                self._begin()
            self._wake.notify_all()
        if self._inline:
            self._do_one_round()

    def _begin(self) -> None:
        """Make the worker, and start the thread. An error is only logged, because the transaction
        is committed already; the next commit tries again."""
        try:
            _ = self._worker  # made now, or two threads could each make one
        except Exception as error:
            _log.warning("The compactor could not begin; it tries again later: %s", error)
            return
        self._thread = threading.Thread(target=self._run, name="acidsql-compactor", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Give up a running compaction, and end the thread, the own session and the compactor's
        transactions. This waits for the thread, 30 seconds at most; the thread itself does not
        wait. A second call does nothing more."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()
        # The compaction is queued again for another worker.
        if self._thread is not None and self._thread is not threading.current_thread():
            self._worker.stop()
            self._thread.join(timeout=30)
        if self._sibling_session is not None:
            jobs.end_sibling_session(self._sibling_session, self._spark)
        self._txns.close()

    # ── the thread ───────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        """Do rounds of work until the compactor is closed or Spark is stopped; the thread runs
        this."""
        while self._wait_for_work() and not self._is_over:
            self._do_one_round()

    @property
    def _is_over(self) -> bool:
        """Whether the compactor is closed, or one of the two Spark sessions was stopped, as at the
        program's end."""
        own = self._sibling_session or self._spark
        return self._closed or has_ended(self._spark) or has_ended(own)

    def _wait_for_work(self) -> bool:
        """Block until it is time to look for work, and return True: no statement has run for a
        moment (``_IDLE_S``), and there is a new change or the cleaner's interval is over; or the
        oldest new change is older than ``_PATIENCE_S``. Return False as soon as the compactor is
        closed."""
        until = time.monotonic() + self._settings().compactor_cleaner_interval_ms / 1000
        with self._wake:
            while not self._closed:
                now = time.monotonic()
                is_idle = not self._statements and now - self._idle_since >= _IDLE_S
                since = self._written_since
                if since is not None and (is_idle or now - since >= _PATIENCE_S):
                    return True
                if is_idle and now >= until:
                    return True
                self._wake.wait(_IDLE_S if since is not None else max(_IDLE_S, until - now))
        return False

    def _do_one_round(self) -> None:
        """Do one round: queue the compactions that are due, run the queue (also entries that other
        sessions made), do the housekeeping, and clean: after compactions and aborted transactions,
        replaced tables, and temporary tables of dead sessions. The first error ends the round. It
        is logged, not raised; the next round tries again."""
        self._txns.settings = self._settings()
        try:
            self._renew_lost_session()
            with self._wake:
                if not self._closed:
                    self._worker.go_on()
            self._queue_compactions()
            while not self._closed and self._compact():
                pass
            keep_house(self._metastore, self._settings())
            self._cleaner.clean_after_compactions()
            self._cleaner.clean_aborted()
            self._cleaner.delete_replaced()
            self._cleaner.drop_temporary()
        except (AcidSqlError, OSError) as error:
            _log.warning("The compactor failed: %s", error)
        except Exception as error:
            if not self._is_over:
                _log.warning("The compactor failed: %s", error)

    def _queue_compactions(self) -> None:
        """Check the tables and partitions that were written since the last round, and queue the
        compactions that are due. A line about each (``db.t/p=1: compaction 7: why``, or ``not
        compacted`` in place of the number) is appended to the ``compaction`` list of the
        transactions that wrote there. In mode ``background``, first hand the session's settings of
        object stores to the compactor's own session."""
        with self._wake:
            written, self._written = self._written, {}
            self._written_since = None
        if written and not self._inline:  # the keys of an object store may have changed
            give_workers_store_settings(self._own_session, store_settings(self._spark))
        candidates = self._metastore.candidates() if written else []
        aborted = {(candidate.table, candidate.partition): candidate for candidate in candidates}
        initiator = Initiator(self._metastore, self._settings(), self._id)
        for place, listeners in written.items():
            checked = initiator.check(aborted.get(place, Candidate(*place)))
            if checked is not None:
                queued = f"compaction {checked.id}" if checked.id is not None else "not compacted"
                for messages in listeners:
                    messages.append(f"{checked.place}: {queued}: {checked.why}")

    def _compact(self) -> bool:
        """Run the next entry of the queue; meanwhile a thread gives it up if another transaction
        waits for its lock. Return False if there is no entry, or if an error ended it; the error is
        logged unless the worker was stopped. True also for an entry that was refused."""
        is_finished = threading.Event()
        watch = threading.Thread(target=self._watch, args=(is_finished,), daemon=True)
        watch.start()
        try:
            done_one = self._worker.run_next() is not None
            self._given_way = 0
            return done_one
        except Exception as error:
            if not self._worker.is_stopped and not self._is_over:
                _log.warning("A compaction failed: %s", error)
            return False
        finally:
            is_finished.set()
            watch.join()

    def _watch(self, is_finished: threading.Event) -> None:
        """Look each second (``_LOOK_S``) whether a transaction waits for the worker's lock. If so,
        stop the worker and return; otherwise return when ``is_finished`` is set. Errors of looking
        are only logged."""
        while not is_finished.wait(_LOOK_S):
            try:
                if self._is_in_the_way():
                    self._worker.stop()
                    return
            except AcidSqlError as error:
                _log.warning("The compactor could not look at the locks: %s", error)

    def _is_in_the_way(self) -> bool:
        """Whether a transaction of any process waits for a lock of the running compaction, and this
        lock is the first that blocks it; False if none runs."""
        if not self._worker.is_busy:
            return False
        locks = self._metastore.show_locks()
        ours = {lock.lock_id for lock in locks if lock.txn_id == self._worker.txn_id}
        return any(
            lock.state is LockState.WAITING and lock.blocked_by and lock.blocked_by[0] in ours
            for lock in locks
        )
