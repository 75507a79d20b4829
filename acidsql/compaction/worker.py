"""The worker: it takes an entry of the queue, compacts, and records the result.

A compaction has its own transaction, and the transaction's heartbeat shows that the worker lives.
The results are in their place before the transaction commits. If a worker dies in between, the next
worker that takes the entry finds nothing to merge, and only the cleaning is left.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from acidsql.acid.layout import DirectoryKind, parse_directory
from acidsql.acid.state import AcidState
from acidsql.acid.table import Table
from acidsql.acid.write_ids import CompactorWriteIdList, ValidTxnList
from acidsql.compaction.decision import compaction_table, has_partition, max_remaining_deltas
from acidsql.errors import AcidSqlError, TransientTxnError, UnsupportedError, WriteError
from acidsql.metastore.compaction_queue import Compacted, CompactionInfo, CompactionType
from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import (
    Commit,
    LockComponent,
    LockType,
    Metastore,
    Operation,
    TxnState,
    TxnType,
)
from acidsql.plan.analysis.lower import job_errors
from acidsql.storage.files.filesystem import FileSystem, filesystem_for
from acidsql.storage.files.sizes import size_text
from acidsql.storage.folding.compact import CompactionRun, rename_dead_staging
from acidsql.storage.folding.plan import CompactionPlan, plan_compaction
from acidsql.storage.orc.damage import MISPLACED_EVENTS
from acidsql.storage.spark.session import jobs
from acidsql.storage.spark.session.job_progress import Tasks, watched_tasks
from acidsql.storage.spark.session.jvm import composed_text_conf
from acidsql.storage.writing.publish import discard
from acidsql.txn import Phase, Txn, TxnManager, abort_quietly
from acidsql.txn.locks import lock_object_name

_log = logging.getLogger(__name__)

NOTHING_TO_DO = "None of the compaction thresholds met, compaction request is refused!"  # Hive's


@dataclass(frozen=True, slots=True)
class WorkerResources:
    """The part of a shared Spark application that a compaction may use.

    Attributes:
        tag: The tag of its jobs, by which they are cancelled.
        tasks: The number of tasks in one job; None: all tasks in one job.
        pool: The pool of a FAIR scheduler; None: the default.
    """

    tag: str
    tasks: int | None = None
    pool: str | None = None


class Worker:
    """Compacts in one Spark session.

    Args:
        spark: The session.
        metastore: The metastore with the queue.
        txns: Opens the transactions.
        worker_id: ``<host>-<id>``, shown to others.
        resources: How much of Spark it may use.

    Attributes:
        txn_id: The transaction of the running compaction; None if none runs.
        tells_s: The seconds from a compaction's begin to its first note in the queue of how far it
            is, and from each note to the next.
    """

    tells_s = 5.0

    def __init__(
        self,
        spark: SparkSession,
        metastore: Metastore,
        txns: TxnManager,
        worker_id: str,
        resources: WorkerResources,
    ) -> None:
        self._spark, self._metastore, self._txns = spark, metastore, txns
        self._id, self._resources = worker_id, resources
        self._stopped = threading.Event()
        self.txn_id: int | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a compaction runs, in the transaction ``txn_id``."""
        return self.txn_id is not None

    def stop(self) -> None:
        """Give up the running compaction, if there is one: its jobs are cancelled, it fails, and
        its entry is queued again. ``go_on`` lets the worker compact again. Another thread calls
        this."""
        self._stopped.set()
        if self.is_busy:
            jobs.call_briefly(lambda: jobs.cancel_jobs(self._spark, self._resources.tag))

    @property
    def is_stopped(self) -> bool:
        """Whether ``stop`` was called, and ``go_on`` was not called since."""
        return self._stopped.is_set()

    def go_on(self) -> None:
        """Allow compactions again after ``stop``."""
        self._stopped.clear()

    def _refuse_stopped(self) -> None:
        """Raise WriteError if the worker is stopped. A compaction calls this between two jobs."""
        # Between two jobs, stop() finds no job to cancel.
        if self.is_stopped:
            raise WriteError("The compaction was given up, and is queued again.")

    def run_next(self, *, pool: str | None = None, only: int | None = None) -> int | None:
        """Take the next entry from the queue, compact it in a transaction of its own, and commit.

        Args:
            pool: Take only entries of this pool; None: those without a pool, and those that have
                waited for their pool for too long.
            only: Take only the entry of this number, if no worker has it.

        Returns:
            The entry's number; None if there was no entry. The queue has the result: the entry may
            have been refused.

        Raises:
            AcidSqlError: The compaction failed, and the entry has the error, too; or it was
                stopped, and the entry is queued again.
        """
        timeout_ms = self._txns.settings.compactor_worker_pool_timeout_ms
        if only is None and not self._metastore.has_work(pool=pool, pool_timeout_ms=timeout_ms):
            return None
        txn = self._txns.open(agent_info="a compaction", txn_type=TxnType.COMPACTION)
        try:
            entry = self._metastore.take_next(
                txn.id, self._id, pool=pool, pool_timeout_ms=timeout_ms, only=only
            )
            if entry is not None:
                self.txn_id = txn.id
                self._compact_or_give_back(txn, entry)
        finally:
            self.txn_id = None
            if txn.phase is Phase.OPEN:
                txn.end_quietly()  # the transaction has no write ids, so this loses nothing
        return None if entry is None else entry.id

    def _compact_or_give_back(self, txn: Txn, entry: CompactionInfo) -> None:
        """Compact an entry. If this fails, abort the transaction, queue the entry again (after
        `stop` or Ctrl-C) or mark it as failed, and raise the error."""
        try:
            self._compact(txn, entry)
        except BaseException as error:
            # A commit would make directories visible that this compaction may have published.
            abort_quietly(txn, str(error))
            if self.is_stopped or isinstance(error, KeyboardInterrupt):
                self._metastore.queue_again(entry.id, txn.id)
            else:
                _log.warning("Compaction %d failed: %s", entry.id, error)
                self._metastore.mark_failed(entry.id, txn.id, str(error) or type(error).__name__)
            raise

    def _compact(self, txn: Txn, entry: CompactionInfo) -> None:
        """Compact an entry under its lock and commit, which makes the entry ready for cleaning.
        First delete the hidden directories that dead workers left in the table's directory. If
        there is nothing to merge, commit only if there are obsolete or aborted files; otherwise,
        and if the table or partition is gone, mark the entry as refused. If the files cannot be
        merged, but a major compaction can mend them, do that. Other errors are raised."""
        started = time.perf_counter()
        table = self._lock_table(txn, entry)
        if table is None:
            return
        if entry.type is CompactionType.REBALANCE:
            self._spend_write_id(table)
        snapshot = txn.snapshot([table.name])
        write_ids = CompactorWriteIdList.from_snapshot(snapshot.write_ids[table.name])
        self._metastore.begin_compaction(entry.id, txn.id, write_ids.high_water_mark)
        fs = filesystem_for(table.location)
        discard(fs, rename_dead_staging(fs, table.location, self._is_open))
        plan_as = partial(self._plan, txn, entry, fs, table, write_ids, snapshot.valid_txns)
        plan, state = plan_as(major=entry.type is not CompactionType.MINOR)
        if plan is None:
            if state.obsolete or state.aborted:
                self._commit(txn, entry, write_ids, "nothing to merge")
            else:
                self._metastore.mark_refused(entry.id, txn.id, NOTHING_TO_DO)
            return
        try:
            summary = self._write(txn, entry, fs, plan, self._merge_or_rebalance)
        except AcidSqlError as error:
            if not _is_mendable(error, table, entry):
                raise
            _log.warning("%s. So all rows of %s are rewritten.", error.message, _place_text(entry))
            plan, _ = plan_as(major=True)
            assert plan is not None, "a major compaction takes all that a minor one takes"
            summary = self._write(txn, entry, fs, plan, self._mend)
        took_s = time.perf_counter() - started
        self._commit(txn, entry, write_ids, f"{summary}; {took_s:.1f} s")

    def _plan(
        self,
        txn: Txn,
        entry: CompactionInfo,
        fs: FileSystem,
        table: Table,
        write_ids: CompactorWriteIdList,
        valid_txns: ValidTxnList,
        *,
        major: bool,
    ) -> tuple[CompactionPlan | None, AcidState]:
        """Return the plan of an entry's compaction and the state of the directories, as
        ``plan_compaction`` does."""
        return plan_compaction(
            fs,
            compaction_table(table, entry.properties),
            entry.partition or "",
            write_ids,
            valid_txns,
            major=major,
            anyway=entry.type is CompactionType.REBALANCE,
            visibility_txn_id=txn.id if self._shows_txn(fs) else 0,
            most_left=max_remaining_deltas(
                self._metastore, table, entry.properties, self._txns.settings
            ),
        )

    def _write(
        self,
        txn: Txn,
        entry: CompactionInfo,
        fs: FileSystem,
        plan: CompactionPlan,
        write_files: Callable[[CompactionInfo, FileSystem, CompactionRun], None],
    ) -> str:
        """Write a compaction's files by ``write_files``, publish them, and return in words how much
        was read and written. Errors are raised."""
        with CompactionRun(fs, plan, txn.id) as work:
            with self._reporting_progress(txn, entry, work):
                write_files(entry, fs, work)
                work.publish(lambda: self._metastore.heartbeat(txn.id))
            return _summary(plan, work.written)

    def _merge_or_rebalance(
        self, entry: CompactionInfo, fs: FileSystem, work: CompactionRun
    ) -> None:
        """Write the compacted files, without publishing them: in the driver if there are few rows
        and ``driver_row_limit`` is not 0, else as a Spark job; a rebalance is always a job. Raise
        TransientTxnError if a rebalance must wait for an open transaction."""
        is_rebalance = entry.type is CompactionType.REBALANCE
        if not is_rebalance and self._txns.settings.driver_row_limit and work.is_small():
            work.run_in_driver(self._refuse_stopped)
            return
        with self._as_job(entry):
            if is_rebalance:
                refuse_open_write_id(work.plan)
                refuse_unseen_deletes(fs, work.plan)
                work.rebalance(self._spark, entry.buckets, entry.order_by)
            else:
                work.run(self._spark, self._refuse_stopped, self._resources.tasks)

    def _mend(self, entry: CompactionInfo, _: FileSystem, work: CompactionRun) -> None:
        """Write the compacted files of a major compaction, without publishing them, from files that
        could not be merged."""
        self._refuse_stopped()
        with self._as_job(entry):
            work.mend(self._spark)

    def _reporting_progress(
        self, txn: Txn, entry: CompactionInfo, work: CompactionRun
    ) -> AbstractContextManager[None]:
        """Return a context manager: while its block runs, another thread writes the progress of the
        work into the queue's entry every few seconds, if it has changed. Nothing is written if the
        block is short."""
        reported = ""

        def tell(tasks: Tasks) -> None:
            """Write the progress into the queue's entry, if it has changed."""
            nonlocal reported
            if reported != (now := progress_of(work, tasks)):
                self._metastore.note_progress(entry.id, txn.id, now)
                reported = now

        return watched_tasks(
            self._spark, self._resources.tag, tell, first_s=self.tells_s, next_s=self.tells_s
        )

    def _shows_txn(self, fs: FileSystem) -> bool:
        """Whether the names of the compaction's results have the transaction's id in them (Hive's
        ``_v0000012``): readers then hide them until the transaction has committed."""
        is_wanted = self._txns.settings.compactor_visibility_id
        # An object store cannot put a whole directory into place in one step.
        return is_wanted or not (self._metastore.abilities.reads_pairs and fs.has_directories)

    def _is_open(self, txn_id: int) -> bool:
        return self._metastore.txn_state(txn_id) is TxnState.OPEN

    def _spend_write_id(self, table: Table) -> None:
        """Take a new write id of the table, and commit its transaction, which writes nothing.

        If the table is a single base, the rebalanced base is named after this write id: it needs
        another name than the present base.
        """
        with self._txns.open(agent_info="a number for a rebalance") as spent:
            spent.write_id(table.name)
            spent.commit()

    def _lock_table(self, txn: Txn, entry: CompactionInfo) -> Table | None:
        """Lock the table or partition, and return the table: SHARED_READ keeps its directory and
        columns unchanged; a rebalance takes EXCL_WRITE, which also blocks UPDATE, DELETE and MERGE.
        Return None if the table or partition is gone; the entry is then marked as refused. Raise
        UnsupportedError if the table is SORTED BY; or if it is bucketed or insert-only, and is to
        be rebalanced."""
        name = entry.table
        kind, operation = LockType.SHARED_READ, Operation.SELECT
        if entry.type is CompactionType.REBALANCE:
            # Rows get new row ids. A statement that deletes by old row ids must wait, or fail at
            # COMMIT with a write conflict.
            kind, operation = LockType.EXCL_WRITE, Operation.UPDATE
        lock = LockComponent(kind, name.database, name.name, entry.partition, operation)
        txn.lock([lock], agent_info=f"COMPACT '{entry.type.name.lower()}' of {_place_text(entry)}")
        table = acid_table(self._metastore.find(name))
        if table is None:
            self._metastore.mark_refused(entry.id, txn.id, f"There is no table {name} any more.")
            return None
        if not has_partition(self._metastore, table, entry.partition):
            reason = f"{name} has no partition {entry.partition} any more."
            self._metastore.mark_refused(entry.id, txn.id, reason)
            return None
        if entry.type is CompactionType.REBALANCE and (table.is_bucketed or table.is_insert_only):
            layout = "bucketed" if table.is_bucketed else "insert-only"
            raise UnsupportedError(
                f"{name} is {layout}; a rebalance spreads the rows of full-ACID tables that are "
                "not bucketed.",
                condition="UNSUPPORTED_FEATURE.REBALANCE",
            )
        if table.sort_columns:
            raise UnsupportedError(
                f"{name} is SORTED BY, and a compaction would not keep its files sorted.",
                condition="UNSUPPORTED_FEATURE.COMPACTION_OF_SORTED_TABLE",
            )
        return table

    def _commit(
        self, txn: Txn, entry: CompactionInfo, write_ids: CompactorWriteIdList, summary: str
    ) -> None:
        """Commit the transaction. The entry becomes ready for cleaning, with the highest write id
        that was compacted, and the summary."""
        compacted = Compacted(entry.id, write_ids.high_water_mark, summary)
        txn.commit(Commit(compacted=compacted))

    @contextmanager
    def _as_job(self, entry: CompactionInfo) -> Iterator[None]:
        """Give the Spark jobs in the ``with`` block the compaction's description, tag and scheduler
        pool, and the settings that SQL composed by acidsql needs. An error that a task raised
        becomes an error of acidsql's."""
        description = f"{entry.type.name.lower()} compaction of {_place_text(entry)}"
        resources = self._resources
        job = jobs.named_jobs(self._spark, description, resources.tag, resources.pool)
        with job_errors(), composed_text_conf(self._spark), job:
            yield


def progress_of(work: CompactionRun, tasks: Tasks) -> str:
    """Return the progress of a compaction, in at most 32 characters: ``merge 12/40, 4 run, 1.2 GB``
    (tasks, and bytes written), or ``publish 1.2 GB``."""
    if work.phase == "publish":
        return f"publish {size_text(work.written[1])}"
    finished, total = tasks.finished, tasks.total
    if work.phase == "merge":  # a job may have a part of the folds only
        finished, total = work.folded + finished, len(work.plan.folds)
    tasks_of = (
        f" {finished}/{total}, {tasks.running} run," if total else ""
    )  # none: between two jobs
    return f"{work.phase}{tasks_of} {size_text(work.staged_bytes())}"[:32]


def refuse_open_write_id(plan: CompactionPlan) -> None:
    """Refuse to rebalance a single base if the next write id, which the new base needs, is open: if
    there are no deltas, and the plan's write ids end at the base's write id or below.

    Raises:
        TransientTxnError: The write id is open. Rebalance when its transaction has ended.
    """
    base, mark = plan.listing.state.base, plan.write_ids.high_water_mark
    if base and not plan.listing.state.deltas and mark <= base.max_write_id:
        raise TransientTxnError(
            f"Write id {mark + 1} is open still: rebalance when that transaction has ended (SHOW "
            "TRANSACTIONS).",
            condition="REBALANCE_MUST_WAIT",
        )


def refuse_unseen_deletes(fs: FileSystem, plan: CompactionPlan) -> None:
    """Refuse to rebalance if there are delete events above the lowest open write id.

    The rebalance would not read these events, and they name rows by their present row ids.

    Raises:
        TransientTxnError: There is such a delete event. Rebalance when the open transaction, which
            began before the delete committed, has ended.
    """
    mark = plan.write_ids.high_water_mark
    for entry in fs.list(plan.path):
        directory = parse_directory(entry.name) if entry.is_dir else None
        if (
            directory is not None
            and directory.kind is DirectoryKind.DELETE_DELTA
            and directory.max_write_id > mark
        ):
            raise TransientTxnError(
                f"Rows were deleted under write id {directory.max_write_id}, while {mark + 1} is "
                "open still: rebalance when that transaction has ended (SHOW TRANSACTIONS).",
                condition="REBALANCE_MUST_WAIT",
            )


def _place_text(entry: CompactionInfo) -> str:
    """Return an entry's table and partition: ``db.table`` or ``db.table/p=1``."""
    return lock_object_name(entry.table.database, entry.table.name, entry.partition)


def _is_mendable(error: AcidSqlError, table: Table, entry: CompactionInfo) -> bool:
    """Whether a major compaction can rewrite the rows of the file at which an entry's compaction
    failed: its events are in the wrong file or order, and the table has no buckets. A file of a
    bucketed table in which rows of another bucket are may have got a wrong name; then nobody knows
    to which bucket its rows belong."""
    return (
        error.condition == MISPLACED_EVENTS
        and not table.is_bucketed
        and entry.type is not CompactionType.REBALANCE
    )


def _summary(plan: CompactionPlan, written: tuple[int, int]) -> str:
    """Return how much a compaction has read and written, in words. ``written``: the number of
    files, and of bytes."""
    files, written_bytes = written
    return (
        f"read {len(plan.directories)} directories, {len(plan.sizes)} files, "
        f"{size_text(sum(plan.sizes))}; wrote {files} files, {size_text(written_bytes)}"
    )
