"""Compaction of one table or partition: plan it, run the job, publish the result.

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
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from acidsql.acid import bucket_codec
from acidsql.acid.layout import (
    ACID_VERSION,
    ACID_VERSION_FILE,
    COMPACTED_METADATA,
    METADATA_FILE,
    ORIGINALS_BASE,
    PAIRED_FILE,
    Kind,
    base_name,
    bucket_id_of,
    bucket_name,
    compacted_delta_name,
    is_original,
    plain_name,
)
from acidsql.acid.state import AcidState
from acidsql.acid.table import Table
from acidsql.acid.write_ids import CompactorWriteIdList, ValidTxnList
from acidsql.errors import AcidSqlError
from acidsql.storage.event_records import RECORD, Record, Task
from acidsql.storage.files.filesystem import FileSystem
from acidsql.storage.files.listing import Listing, is_half, list_table
from acidsql.storage.files.parquet import parquet_of
from acidsql.storage.folding.fold import Fold, FoldSpec, fold
from acidsql.storage.folding.rebalance import rebalance
from acidsql.storage.orc.options import OrcOptions
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.event_reader import FileRead, plain_reads, plan_deletes, plan_reads
from acidsql.storage.spark.worker_process import spare_later_tasks
from acidsql.storage.writing.publish import discard, empty_file, fill

_RECORD_DDL = f"{RECORD} string"
_STAGED = re.compile(r"_tmp_(?:compaction|source)_(\d+)_.+")  # see also writing.staging


@dataclass(frozen=True)
class CompactionPlan:
    """What a compaction of one table or partition will do.

    Attributes:
        table: The table.
        partition: The directory below the table's; "" if unpartitioned.
        major: The compaction makes a base; otherwise it makes deltas.
        listing: The files to read, and the directories that are already obsolete.
        write_ids: The write id list by which events are chosen.
        inserts: The name of the directory for insert events.
        deletes: The name of the directory for delete events; None for a major compaction.
    """

    table: Table
    partition: str
    major: bool
    listing: Listing
    write_ids: CompactorWriteIdList
    inserts: str
    deletes: str | None

    @property
    def path(self) -> str:
        """The table's or partition's directory."""
        return f"{self.table.location}/{self.partition}".rstrip("/")

    @property
    def directories(self) -> list[str]:
        """The names of the files and directories that are read, in a reader's order."""
        state = self.listing.state
        base = [state.base.name] if state.base and self.major else []
        originals = list(state.originals) if self.major else []
        return [*originals, *base, *(delta.name for delta in state.deltas)]

    @property
    def bytes(self) -> int:
        """The size of the files that are read, without files that have no event columns."""
        return sum(file.size for file in (*self.listing.data, *self.listing.deletes))

    @cached_property
    def folds(self) -> list[Fold]:
        """The tasks. This reads the footers of files without event columns."""
        if self.table.is_insert_only:
            paths = [path for group in self.listing.originals for path in group.paths]
            reads = plain_reads({self.partition: paths})
        else:
            reads = plan_reads([self.listing], self.write_ids)
        inserts, deletes = _by_bucket(reads), _by_bucket(plan_deletes(self.listing, self.write_ids))
        return [
            Fold(
                self.partition,
                bucket,
                tuple(inserts.get(bucket, ())),
                tuple(deletes.get(bucket, ())),
                self.major,
            )
            for bucket in sorted({*inserts, *deletes})
        ]


def plan_compaction(
    fs: FileSystem,
    table: Table,
    partition: str,
    write_ids: CompactorWriteIdList,
    txns: ValidTxnList,
    *,
    major: bool,
    visibility_txn_id: int = 0,
    anyway: bool = False,
) -> tuple[CompactionPlan | None, AcidState]:
    """Plan a compaction, and sort the directories by Hive's rules.

    Args:
        fs: The table's file system.
        table: The table.
        partition: The directory below the table's; "" if unpartitioned.
        write_ids: The valid write ids of the compactor.
        txns: The valid transactions.
        major: Plan a major compaction. A compaction of an insert-only table is always major.
        visibility_txn_id: The ``_v`` number in the names of the results, which Hive 3 cannot read;
            0: no ``_v``.
        anyway: Plan the compaction also for a single delta or base. A single base gets a new base
            with a higher number.

    Returns:
        The plan, or None if there are too few directories to compact; and the directories' state.

    Raises:
        FormatError: The directory breaks Hive's rules.
    """
    # Rows of a plain file have no write ids. From a delta of several write ids, a snapshot could
    # not leave out the rows that it must not see. A base can be left out as a whole.
    major = major or table.is_insert_only
    (listing,) = list_table(
        fs, table.location, [partition], write_ids, txns, plain=table.is_insert_only
    )
    state = listing.state
    is_something = anyway and (listing.data or listing.originals)
    if not is_something and not _is_enough(listing, write_ids, major=major):
        return None, state
    if not major:
        listing = _above_base(listing)
    first, last = _range(state)
    if anyway and state.base and not state.deltas:
        last = max(write_ids.high_water_mark, last + 1)  # two bases cannot have one name
    if major:
        inserts, deletes = base_name(last, visibility_txn_id), None
    else:
        inserts = compacted_delta_name(first, last, visibility_txn_id)
        deletes = f"delete_{inserts}"
    return CompactionPlan(table, partition, major, listing, write_ids, inserts, deletes), state


def _is_enough(listing: Listing, write_ids: CompactorWriteIdList, *, major: bool) -> bool:
    """Hive 4's rule (``QueryCompactor.Util.isEnoughToCompact``), and a rule of our own."""
    state = listing.state
    if major:
        # Files beside the deltas of an insert-only table are not listed: no reader takes them.
        has_originals = any(not group.write_id for group in listing.originals)
        # A base has no aborted events, so its readers need not know which write ids were aborted.
        has_aborted = bool(state.deltas) and write_ids.is_any_aborted(*_range(state))
        return has_originals or has_aborted or len(state.deltas) + (state.base is not None) > 1
    deletes = sum(delta.kind is Kind.DELETE_DELTA for delta in state.deltas)
    return len(state.deltas) > 1 and not (len(state.deltas) == 2 and deletes == 1)


def _range(state: AcidState) -> tuple[int, int]:
    """The lowest and the highest write id of the directories that are read."""
    first = min((delta.min_write_id for delta in state.deltas), default=ORIGINALS_BASE)
    base = state.base.max_write_id if state.base else ORIGINALS_BASE
    return first, max((delta.max_write_id for delta in state.deltas), default=base)


def _above_base(listing: Listing) -> Listing:
    """The files that a minor compaction reads."""
    return replace(
        listing,
        data=tuple(file for file in listing.data if file.directory.kind is not Kind.BASE),
        originals=tuple(group for group in listing.originals if group.in_delta),
    )


def _by_bucket(reads: Sequence[FileRead]) -> dict[int, list[FileRead]]:
    found: dict[int, list[FileRead]] = {}
    for read in reads:
        found.setdefault(_bucket(read), []).append(read)
    return found


def _bucket(read: FileRead) -> int:
    if read.path is not None:
        bucket = bucket_id_of(read.path.rpartition("/")[2])
        assert bucket is not None, "listings have bucket files only"
        return bucket
    assert read.original is not None
    name = read.original.path.rpartition("/")[2]
    if is_original(name):
        return int(name.partition("_")[0])
    return bucket_codec.decode(read.original.bucket_property).bucket_id


# ── the job ──────────────────────────────────────────────────────────────────────────────────


class Compacting:
    """One compaction at work: ``run``, then ``publish``.

    As a context manager it always removes its staging directory.

    Args:
        fs: The table's file system.
        plan: What to do.
        txn_id: The worker's transaction. The name of the staging directory has it, so the cleaner
            can tell the files of a running compaction from the files that a crash left.
    """

    def __init__(self, fs: FileSystem, plan: CompactionPlan, txn_id: int) -> None:
        table = plan.table
        self._fs, self.plan = fs, plan
        self.spec = FoldSpec(
            staging=staging_of(table.location, txn_id),
            row=RowSchema.of((column.name, column.type) for column in table.columns),
            orc=OrcOptions.of(table.properties),
            insert_only=table.is_insert_only,
            parquet=parquet_of(table),
        )
        self.records: list[Record] = []

    def __enter__(self) -> Compacting:
        self._fs.create_directory(self.spec.staging)
        return self

    def __exit__(self, *_: object) -> None:
        discard(self._fs, [self.spec.staging])

    def run(
        self, spark: SparkSession, go_on: Callable[[], None], at_once: int | None = None
    ) -> None:
        """Fold in one task for each bucket id.

        Args:
            spark: The session.
            go_on: Called before each job; it raises if the compaction must stop.
            at_once: The number of tasks in one job; jobs run one after the other. None: one job.

        Raises:
            FormatError, UnsupportedError: As ``fold.fold``.
        """
        folds = self.plan.folds
        step = at_once or max(1, len(folds))
        for start in range(0, len(folds), step):
            go_on()
            self.records += _run(spark, folds[start : start + step], self.spec)

    def rebalance(self, spark: SparkSession, buckets: int | None, order_by: str | None) -> None:
        """Spread the rows over bucket ids, with new row ids. Called instead of ``run``.

        Args:
            spark: The session.
            buckets: The number of bucket ids; None: as many as there are.
            order_by: SQL that orders rows by the table's columns.

        Raises:
            FormatError, UnsupportedError: As ``fold.fold``.
        """
        folds = self.plan.folds
        wanted = buckets or len(folds)
        self.records += rebalance(spark, self.plan.table, folds, self.spec, wanted, order_by)

    @property
    def written(self) -> tuple[int, int]:
        """The number of written files and bytes."""
        return len(self.records), sum(record.bytes for record in self.records)

    def publish(self, still_ours: Callable[[], None]) -> list[str]:
        """Move the complete results into their places, each by one rename.

        Args:
            still_ours: Called before each rename; it raises if another worker has the compaction.

        Returns:
            The directories.

        Raises:
            WriteError: A file is missing, or has another length than its writer reported.
        """
        fs, plan = self._fs, self.plan
        still_ours()
        _remove_halves(fs, plan.path, f"{self.spec.staging}/half")
        ready = []
        for number, (name, files) in enumerate(self._directories()):
            staged = f"{self.spec.staging}/{number}"
            fill(fs, staged, files, self._markers(name), self._name_of)
            ready.append((staged, f"{plan.path}/{name}"))
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
        by_kind: dict[str, list[Record]] = {"insert": [], "delete": []}
        for record in self.records:
            by_kind[record.kind].append(record)
        if self.plan.major and not by_kind["insert"]:
            # A base without rows must still have a file.
            by_kind["insert"].append(empty_file(self._fs, self.spec, self.plan.partition))
        names = ((self.plan.deletes, "delete"), (self.plan.inserts, "insert"))
        return [(name, by_kind[kind]) for name, kind in names if name and by_kind[kind]]

    def _markers(self, name: str) -> dict[str, bytes]:
        markers = {} if self.spec.insert_only else {ACID_VERSION_FILE: ACID_VERSION}
        if "_v" in name:
            return markers  # invisible until the worker's transaction commits
        if self.plan.major:
            return {**markers, METADATA_FILE: COMPACTED_METADATA}
        if len({record.kind for record in self.records}) == 2:
            return {**markers, PAIRED_FILE: b""}
        return markers

    def _name_of(self, bucket_id: int) -> str:
        return plain_name(bucket_id) if self.spec.insert_only else bucket_name(bucket_id)


def staging_of(location: str, txn_id: int) -> str:
    """The staging directory of a compaction. Its first letter hides it from every reader."""
    return f"{location}/_tmp_compaction_{txn_id}_{uuid.uuid4().hex[:12]}"


def staging_txn_of(name: str) -> int | None:
    """The transaction id in a staging directory's name (see also ``staging``); otherwise None."""
    found = _STAGED.fullmatch(name)
    return int(found[1]) if found else None


def _remove_halves(fs: FileSystem, path: str, away: str) -> None:
    """Remove single halves of pairs that a dead worker left: another engine might read them.

    A half is renamed: while files are deleted, a half without its mark would look complete.
    """
    for number, entry in enumerate(fs.list(path)):
        # List again each time: the other half may have come meanwhile.
        if is_half(fs, entry, {other.name for other in fs.list(path)}):
            fs.rename(entry.path, f"{away}-{number}")


def _run(spark: SparkSession, folds: Sequence[Fold], spec: FoldSpec) -> list[Record]:
    tasks = spark.range(0, len(folds), 1, len(folds))
    records = tasks.mapInArrow(_folder(folds, spec), _RECORD_DDL).collect()
    return [Record.from_json(row[0]) for row in records]


def _folder(
    folds: Sequence[Fold], spec: FoldSpec
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_later_tasks()
        context = TaskContext.get()
        assert context is not None, "runs in a Spark task"
        task = Task(context.partitionId(), context.taskAttemptId())
        for batch in batches:
            for number in batch.column(0).to_pylist():
                records = fold(folds[number], spec, task)
                yield pa.record_batch([[record.to_json() for record in records]], [RECORD])

    return run
