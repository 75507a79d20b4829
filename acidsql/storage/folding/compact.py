"""Compaction of one table or partition: run the job that ``plan`` has planned, publish the result.
A fold is the work on one bucket id.

A major compaction takes all events whose write ids are decided and below the lowest open write id.
It writes the live rows to ``base_N``; they keep their row ids. A minor compaction merges the deltas
above the base into ``delta_a_b`` and ``delete_delta_a_b``, and does not read the base. A snapshot
that may see the result sees the same rows as before. Older snapshots do not read the result; their
files stay until the cleaner finds that no snapshot needs them.

Source: Hive ``CompactorMR``, ``Worker``; hive-format, "Compaction and cleaning" and rule 7 of the
safe write profile.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa
from pyspark.sql import SparkSession

from acidsql.acid.layout import (
    ACID_VERSION,
    ACID_VERSION_FILE,
    COMPACTED_METADATA,
    METADATA_FILE,
    PAIRED_FILE,
    REBALANCED_FILE,
)
from acidsql.errors import AcidSqlError, WriteError
from acidsql.storage.event_records import RECORD, Record, Task
from acidsql.storage.files.entries import is_lone_half
from acidsql.storage.files.filesystem import FileSystem
from acidsql.storage.folding.fold import BucketFold, FoldSpec, fold_bucket
from acidsql.storage.folding.mend import mend
from acidsql.storage.folding.plan import CompactionPlan
from acidsql.storage.folding.rebalance import rebalance
from acidsql.storage.orc.options import OrcOptions
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events.orc_reader import row_count
from acidsql.storage.spark.session.task import current_task
from acidsql.storage.spark.session.worker_process import spare_later_tasks
from acidsql.storage.tables.parquet import parquet_compression
from acidsql.storage.writing.placing import NewDirectory, fill_staged_directory, place_objects
from acidsql.storage.writing.publish import discard, empty_file, final_names

_RECORD_DDL = f"{RECORD} string"
_FEW_FILES, _FEW_BYTES, _FEW_ROWS = 100, 2**20, 500_000  # which the driver folds itself
_TAKEN_SUFFIX = ".taken"
_STAGED = re.compile(r"_tmp_(?:compaction|source)_(\d+)_.+")  # see also writing.staging


class CompactionRun:
    """One compaction at work: ``run``, then ``publish``.

    As a context manager it makes its staging directory, and always removes it.

    Args:
        fs: The table's file system.
        plan: What to do.
        txn_id: The worker's transaction. The name of the staging directory has it, so the cleaner
            can tell the files of a running compaction from the files that a crash left.

    Attributes:
        phase: What it does now, in a word: ``merge`` or ``spread``, then ``publish``.
        folded: The number of folds that have been run.
        records: A record of each file that was written.
    """

    def __init__(self, fs: FileSystem, plan: CompactionPlan, txn_id: int) -> None:
        """Note what to do. Nothing is created before the block begins."""
        table = plan.table
        self._fs, self.plan = fs, plan
        self.spec = FoldSpec(
            staging=staging_of(table.location, txn_id),
            row=RowSchema.from_fields((column.name, column.type) for column in table.columns),
            orc=OrcOptions.from_properties(table.properties),
            insert_only=table.is_insert_only,
            parquet=parquet_compression(table),
        )
        self.records: list[Record] = []
        self.phase, self.folded = "merge", 0
        self._is_rebalance = False

    def __enter__(self) -> CompactionRun:
        self._fs.create_directory(self.spec.staging)
        return self

    def __exit__(self, *_: object) -> None:
        discard(self._fs, [self.spec.staging])

    def is_small(self) -> bool:
        """Whether a job, with a Python worker, would take longer than the folds themselves: at most
        100 files with 1 MiB and 500,000 rows together. Always False on an object store, and for
        Parquet.

        The footers of small files are read: if rows are alike, a few bytes have millions of them.
        On an object store these would be requests.

        Raises:
            FormatError: A file is damaged.
            WriteError: A file could not be read.
        """
        sizes = self.plan.sizes
        if len(sizes) > _FEW_FILES or sum(sizes) > _FEW_BYTES:
            return False
        if self.spec.parquet is not None or not self._fs.has_directories:
            return False
        reads = [read for fold in self.plan.folds for read in (*fold.inserts, *fold.deletes)]
        with _naming_os_errors():
            return sum(row_count(read.file, read.length) for read in reads) <= _FEW_ROWS

    def run_in_driver(self, go_on: Callable[[], None]) -> None:
        """Fold without Spark, one bucket id after the other: write files into the staging
        directory, and add their records to ``records``. For a compaction that ``is_small``.

        Args:
            go_on: Called before each fold; it raises if the compaction must stop.

        Raises:
            FormatError: The files break Hive's rules, or are damaged.
            UnsupportedError: The files have values that would change when they are written again.
            WriteError: The files have days that would be read as others from a file of ours; or a
                file could not be read or written.
        """
        for number, bucket_fold in enumerate(self.plan.folds):
            go_on()
            with _naming_os_errors():
                self.records += fold_bucket(bucket_fold, self.spec, Task(number, 0))
            self.folded += 1

    def run(
        self, spark: SparkSession, go_on: Callable[[], None], at_once: int | None = None
    ) -> None:
        """Fold in Spark, one task for each bucket id: write files into the staging directory, and
        add their records to ``records``.

        Args:
            spark: The session.
            go_on: Called before each job; it raises if the compaction must stop.
            at_once: The number of tasks in one job; jobs run one after the other. None: one job.

        Raises:
            FormatError, UnsupportedError, WriteError: The files cannot be folded; the error may be
                Spark's own.
        """
        folds = self.plan.folds
        step = at_once or max(1, len(folds))
        for start in range(0, len(folds), step):
            go_on()
            job_folds = folds[start : start + step]
            self.records += _run_fold_job(spark, job_folds, self.spec)
            self.folded += len(job_folds)

    def rebalance(self, spark: SparkSession, buckets: int | None, order_by: str | None) -> None:
        """Spread the rows over bucket ids, with new row ids, in Spark jobs: write files into the
        staging directory, and add their records to ``records``. ``publish`` will mark the results
        as rebalanced. Called instead of ``run``.

        Args:
            spark: The session.
            buckets: The number of bucket ids; None: as many as there are folds.
            order_by: SQL that orders rows by the table's columns; None: the order of their row ids.

        Raises:
            FormatError, UnsupportedError, WriteError: The files cannot be folded; the error may be
                Spark's own.
        """
        folds = self.plan.folds
        bucket_count = buckets or len(folds)
        self.phase, self._is_rebalance = "spread", True
        self.records += rebalance(spark, self.plan.table, folds, self.spec, bucket_count, order_by)

    def mend(self, spark: SparkSession) -> None:
        """Write the live rows in a Spark job, although their files are not sorted or have rows of
        other bucket ids: write files into the staging directory, and add their records to
        ``records``. For a major compaction of a full-ACID table that is not bucketed. Called
        instead of ``run``.

        Args:
            spark: The session.

        Raises:
            SnapshotTooOldError: A file is gone.
            FormatError, UnsupportedError, WriteError: A file is damaged, or cannot be written; the
                error may be Spark's own.
        """
        self.phase = "spread"
        self.records += mend(spark, self.plan, self.spec)

    @property
    def written(self) -> tuple[int, int]:
        """The number of written files and bytes."""
        return len(self.records), sum(record.bytes for record in self.records)

    def staged_bytes(self) -> int:
        """The bytes that tasks have written so far. Any thread may ask."""
        files = self._fs.list_if_there(self.spec.staging)
        return sum(entry.size for entry in files if not entry.is_dir)

    def publish(self, still_ours: Callable[[], None]) -> list[str]:
        """Put the complete results into their places, without committing: each by one rename, or on
        an object store by copies. Before renames, single halves of pairs that dead workers left are
        moved away. If the second of two renames fails, the first is undone, if the compaction is
        still ours.

        Args:
            still_ours: Called before the first copy and before each rename; it raises if another
                worker has the compaction.

        Returns:
            The paths of the new directories.

        Raises:
            WriteError: A file is missing, or has another length than its writer reported.
            FileExistsError: There is a directory of this name.
        """
        fs, plan = self._fs, self.plan
        self.phase = "publish"
        new = [
            NewDirectory(
                plan.path,
                name,
                final_names(files, is_plain=self.spec.insert_only),
                self._markers(name),
            )
            for name, files in self._directories()
        ]
        still_ours()
        if not fs.has_directories:
            placed_directories: list[str] = []
            place_objects(fs, plan.path, new, placed_directories)
            return placed_directories
        _move_halves_away(fs, plan.path, f"{self.spec.staging}/half")
        ready = []
        for number, new_directory in enumerate(new):
            staged = f"{self.spec.staging}/{number}"
            fill_staged_directory(fs, staged, new_directory)
            ready.append((staged, new_directory.path))
        moved = 0
        try:
            for staged, target in ready:
                still_ours()
                fs.rename(staged, target)
                moved += 1
            fs.sync_directory(plan.path)
        except BaseException:
            if moved == 1 and len(ready) == 2:
                # If this fails, or the compaction is not ours any more, the next worker does it.
                with suppress(AcidSqlError, OSError):
                    still_ours()
                    fs.rename(ready[0][1], ready[0][0])
            raise
        return [target for _, target in ready]

    def _directories(self) -> list[tuple[str, list[Record]]]:
        """Return the directories to publish, the delete delta first: each with its name and the
        records of its files. A directory without files is left out, but a base gets an empty file,
        which is written now.
        """
        by_kind: dict[str, list[Record]] = {"insert": [], "delete": []}
        for record in self.records:
            by_kind[record.kind].append(record)
        if self.plan.major and not by_kind["insert"]:
            # A base without rows must still have a file.
            by_kind["insert"].append(empty_file(self.spec, self.plan.partition))
        names = ((self.plan.deletes, "delete"), (self.plan.inserts, "insert"))
        return [(name, by_kind[kind]) for name, kind in names if name and by_kind[kind]]

    def _markers(self, name: str) -> dict[str, bytes]:
        """Return the marker files of a new directory, name → contents. Each has
        ``_orc_acid_version``, unless the table is insert-only, and after a rebalance its mark.
        Without ``_v`` in the name, a base also has Hive's mark of a compaction, and each of two
        directories that are put into place together the mark of a pair.
        """
        markers = {} if self.spec.insert_only else {ACID_VERSION_FILE: ACID_VERSION}
        if self._is_rebalance:
            markers[REBALANCED_FILE] = b""
        if "_v" in name:
            return markers  # invisible until the worker's transaction commits
        if self.plan.major:
            return {**markers, METADATA_FILE: COMPACTED_METADATA}
        if len({record.kind for record in self.records}) == 2:
            return {**markers, PAIRED_FILE: b""}
        return markers


def staging_of(location: str, txn_id: int) -> str:
    """Return a new path for the staging directory of a compaction. Its first letter hides it from
    every reader.
    """
    return f"{location}/_tmp_compaction_{txn_id}_{uuid.uuid4().hex[:12]}"


def staging_txn_id(name: str) -> int | None:
    """Return the transaction id in the name of a staging directory of a compaction, or of a query's
    staged rows (``writing.staging``); None for another name.
    """
    staged_match = _STAGED.fullmatch(name)
    return int(staged_match[1]) if staged_match else None


def rename_dead_staging(fs: FileSystem, location: str, is_open: Callable[[int], bool]) -> list[str]:
    """Rename the staging directories of compactions, and of queries' staged rows, whose
    transactions have ended, so that their workers cannot publish results any more. The caller
    deletes the directories that this returns.

    Such a worker may have slept since it made sure that the compaction was still its own, and may
    put its result into place at any moment. If that result overlapped with a later, size-tiered
    one, readers would read rows twice. So a worker calls this before it lists the directories that
    it is going to merge. (Deletion alone is not enough: in the middle of it, the dead worker could
    put some of its files into place.)

    Args:
        fs: The table's file system.
        location: The table's directory.
        is_open: Whether a transaction is open.

    Returns:
        The paths of all staging directories of ended transactions: the new names, and those that
        stay as they are, because they were renamed before or lie on an object store.
    """
    renamed_paths = []
    for entry in fs.list_if_there(location):
        txn_id = staging_txn_id(entry.name)
        if txn_id is None or is_open(txn_id):
            continue
        if entry.name.endswith(_TAKEN_SUFFIX) or not fs.has_directories:
            # It could not be deleted yet; or, on an object store, what such a worker puts into
            # place bears its transaction in its name, and is never seen.
            renamed_paths.append(entry.path)
            continue
        # A new name: a task that is still alive may have made the directory again.
        away = f"{entry.path}.{uuid.uuid4().hex[:12]}{_TAKEN_SUFFIX}"
        with suppress(FileNotFoundError):  # somebody else takes it away
            fs.rename(entry.path, away)
            renamed_paths.append(away)
    return renamed_paths


def _move_halves_away(fs: FileSystem, path: str, away: str) -> None:
    """Rename single halves of pairs, which a dead worker left in the directory ``path``, to
    ``away-NUMBER``: another engine might read them. They are not deleted in place: while files are
    deleted, a half without its mark would look complete.
    """
    entries = fs.list(path)
    names = {entry.name for entry in entries}
    for number, entry in enumerate(entries):
        # The other half may have come meanwhile, so a second listing is asked about a half.
        if is_lone_half(fs, entry, names) and is_lone_half(
            fs, entry, {entry_now.name for entry_now in fs.list(path)}
        ):
            fs.rename(entry.path, f"{away}-{number}")


@contextmanager
def _naming_os_errors() -> Iterator[None]:
    """Turn the block's OSError into WriteError."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"A file could not be read or written: {error}.") from error


def _run_fold_job(spark: SparkSession, folds: Sequence[BucketFold], spec: FoldSpec) -> list[Record]:
    """Run a Spark job with one task for each fold, and return the records of the written files.
    There must be a fold.
    """
    tasks = spark.range(0, len(folds), 1, len(folds))
    records = tasks.mapInArrow(_fold_function(folds, spec), _RECORD_DDL).collect()
    return [Record.from_json(row[0]) for row in records]


def _fold_function(
    folds: Sequence[BucketFold], spec: FoldSpec
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of the Python tasks: numbers of folds → for each, a batch with the
    records of its files as JSON. A task also makes later tasks of its worker cheaper.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield, for each number of a fold, a batch with the records of its files."""
        spare_later_tasks()
        task = current_task()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                records = fold_bucket(folds[number], spec, task)
                yield pa.record_batch([[record.to_json() for record in records]], [RECORD])

    return run
