"""A session's own compactor: looks at what the session wrote, when nobody is in its way.

After a commit it asks the initiator about the tables and partitions that were written to, runs what
that has queued, and cleans up. It takes at most a quarter of the task slots (one at least), begins
when no statement of the session runs, or after some seconds if there always is one, and gives a
compaction up, to be queued again, when

* a statement begins, and the compaction has all the slots that there are (but not for ever: or a
  busy session would never be compacted);
* somebody, in whatever process, waits for the lock that it holds (to drop the table, say).
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
from acidsql.compaction.worker import Resources, Worker
from acidsql.errors import AcidSqlError
from acidsql.metastore.compaction_queue import Candidate
from acidsql.metastore.interface import LockState, Metastore
from acidsql.settings import Settings
from acidsql.storage import jvm
from acidsql.txn import TxnManager

_log = logging.getLogger(__name__)

_SHARE = 4  # of the task slots one part
_IDLE_S = 0.2  # so long no statement must have run
_PATIENCE_S = 5.0  # or something was written so long ago
_GIVES_WAY = 3  # times in a row to statements
_LOOK_S = 1.0  # between two looks whether somebody waits for our lock
FAIR_POOL = "acidsql-compactor"

Place = tuple[TableName, str | None]


class Committed(Protocol):
    """What a transaction has to tell."""

    @property
    def places(self) -> list[Place]:
        """The tables that it has written to, or their partitions (None: there are none)."""

    compaction: list[str]
    """What is found out is put here, for the statement's receipt."""


class Background:
    """Compacts what one session writes.

    Args:
        spark: The session's.
        metastore: Its metastore, which this thread uses beside it.
        settings: Gives its settings.
        user: Shown to others; so is the host.
        host: Of this process.
        mode: ``background``; ``inline``: compact before the statement returns that made it
            necessary; ``off``: do nothing.
        end_old_leases: The session's.
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
    ) -> None:
        self._metastore, self._settings = metastore, settings
        self._is_on, self._inline = mode != "off", mode == "inline"
        self._txns = TxnManager(metastore, settings(), user=user, host=host)
        self._spark, self._id = spark, f"{host}-{id(self)}"
        self._cleaner = Cleaner(metastore, self._txns, end_old_leases)
        self._written: dict[Place, list[list[str]]] = {}
        self._written_since: float | None = None
        self._statements = self._given_way = 0
        self._idle_since = time.monotonic()
        self._wake = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    # What only reads is never told of anything: it needs none of this.

    @cached_property
    def _slots(self) -> int:
        return jvm.task_slots(self._spark)

    @property
    def _tasks(self) -> int:
        return max(1, self._slots // _SHARE)

    @cached_property
    def _worker(self) -> Worker:
        tag = f"acidsql-compactor-{id(self)}"
        if self._inline:
            own, resources = self._spark, Resources(tag)
        else:
            # A session of its own: ours changes its settings while statements run.
            own = jvm.session_beside(self._spark)
            pool = FAIR_POOL if jvm.has_fair_pools(self._spark) else None
            resources = Resources(tag, self._tasks, pool)
        return Worker(own, self._metastore, self._txns, self._id, resources)

    # ── what the session tells ───────────────────────────────────────────────────────────────

    @contextmanager
    def statement(self) -> Iterator[None]:
        """While a statement of the session runs."""
        with self._wake:
            self._statements += 1
        # Without a thread nothing is at work.
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
        if self._given_way < _GIVES_WAY:
            self._given_way += 1
            self._worker.stop()

    def committed(self, transaction: Committed) -> None:
        """Something was committed."""
        if not self._is_on or not transaction.places:
            return
        with self._wake:
            self._written_since = self._written_since or time.monotonic()
            for place in transaction.places:
                self._written.setdefault(place, []).append(transaction.compaction)
            if not self._inline and self._thread is None and not self._closed:
                _ = self._worker  # made here, before two threads could make one each
                self._thread = threading.Thread(
                    target=self._run, name="acidsql-compactor", daemon=True
                )
                self._thread.start()
            self._wake.notify_all()
        if self._inline:
            self._once()

    def close(self) -> None:
        """Give up what runs. May be called twice."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()
        # A compaction that is given up here is queued again, for whoever comes next.
        if self._thread is not None and self._thread is not threading.current_thread():
            self._worker.stop()
            self._thread.join(timeout=30)
        self._txns.close()

    # ── the thread ───────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while self._wait_for_work():
            self._once()

    def _wait_for_work(self) -> bool:
        """Return when there may be something to do, and it is time; False: it is over."""
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

    def _once(self) -> None:
        """Look, compact, clean. Nobody waits for it: what fails now is tried again later."""
        self._txns.settings = self._settings()
        with self._wake:
            if not self._closed:
                self._worker.go_on()
        try:
            self._look()
            while not self._closed and self._compact():
                pass
            keep_house(self._metastore, self._settings())
            self._cleaner.after_compactions()
            self._cleaner.aborted()
        except (AcidSqlError, OSError) as error:
            _log.warning("The compactor failed: %s", error)
        except Exception as error:
            if not self._closed:
                _log.warning("The compactor failed: %s", error)

    def _look(self) -> None:
        with self._wake:
            written, self._written = self._written, {}
            self._written_since = None
        aborted = {
            (one.table, one.partition): one for one in self._metastore.candidates()
        } if written else {}  # fmt: skip
        initiator = Initiator(self._metastore, self._settings(), self._id)
        for place, listeners in written.items():
            found = initiator.check(aborted.get(place, Candidate(*place)))
            if found is not None:
                queued = f"compaction {found.id}" if found.id is not None else "not compacted"
                for told in listeners:
                    told.append(f"{found.place}: {queued}: {found.why}")

    def _compact(self) -> bool:
        """Run the next entry; False if there is none, or it was given up."""
        done = threading.Event()
        watch = threading.Thread(target=self._watch, args=(done,), daemon=True)
        watch.start()
        try:
            done_one = self._worker.run_next() is not None
            self._given_way = 0
            return done_one
        except Exception as error:
            if not self._worker.is_stopped:
                _log.warning("A compaction failed: %s", error)
            return False
        finally:
            done.set()
            watch.join()

    def _watch(self, done: threading.Event) -> None:
        """Stop the worker when somebody waits for its lock."""
        while not done.wait(_LOOK_S):
            try:
                if self._is_in_the_way():
                    self._worker.stop()
                    return
            except AcidSqlError as error:
                _log.warning("The compactor could not look at the locks: %s", error)

    def _is_in_the_way(self) -> bool:
        if not self._worker.is_busy:
            return False
        locks = self._metastore.show_locks()
        ours = {lock.lock_id for lock in locks if lock.txn_id == self._worker.txn_id}
        return any(
            lock.state is LockState.WAITING and lock.blocked_by and lock.blocked_by[0] in ours
            for lock in locks
        )
