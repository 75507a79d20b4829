"""Which files to look at, in which tasks; the findings of all of them.

Files of one bucket go into one task: if each is sound by itself, the task compares their row ids.
The driver gets findings, at most a few for each file (I7).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from acidsql.acid.findings import ERROR, Finding
from acidsql.acid.layout import ACID_VERSION_FILE, bucket_id_of
from acidsql.acid.paths import directory_of
from acidsql.acid.table import PARQUET, Table
from acidsql.acid.values.types import parse_type
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.errors import AcidSqlError
from acidsql.storage.checking.contents import CheckedFile, CheckSpec, Clustering, check_file
from acidsql.storage.checking.deletes import check_deletes
from acidsql.storage.checking.directories import (
    CatalogFacts,
    check_names,
    check_overlaps,
    check_pairs,
    missing_places,
    place_of,
)
from acidsql.storage.event_records import RECORD
from acidsql.storage.files.filesystem import FileSystem
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.folding.fold import BucketFold
from acidsql.storage.folding.plan import folds_of
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.pruning.inventory import FoundFile
from acidsql.storage.spark.session.worker_process import spare_later_tasks
from acidsql.storage.tables.listing import Listing, list_table

MOST = 1000  # findings that are shown
_TASK_BYTES, _TASK_FILES = 64 << 20, 256
_OF_TASK = 200  # findings that a task reports at most
# Types of CLUSTERED BY whose hash is not known here: Hive hashes nanoseconds, which are cut here.
_NOT_EXACT = ("timestamp", "binary")


@dataclass(frozen=True, slots=True)
class CheckWork:
    """Files to look at together.

    Attributes:
        place: The path of the table's or partition's directory.
        files: The files.
        fold: Their visible events, to compare the row ids; None: compare nothing.
    """

    place: str
    files: tuple[CheckedFile, ...]
    fold: BucketFold | None = None


@dataclass(frozen=True, slots=True)
class TableCheck:
    """The check of one table in one snapshot.

    Attributes:
        fs: The table's file system.
        table: The table.
        write_ids: The valid write ids.
        txns: The valid transactions.
        all_rows: Read each row; otherwise only the footers of files.
    """

    fs: FileSystem
    table: Table
    write_ids: ValidWriteIdList
    txns: ValidTxnList
    all_rows: bool

    def run(
        self, spark: SparkSession, found_files: Sequence[FoundFile], catalog_facts: CatalogFacts
    ) -> list[Finding]:
        """Check the table, and return all findings; if the table's own directory is missing, only
        the finding about that. Directories are listed in threads of the driver, files are read in
        Spark tasks.

        Args:
            spark: The session, which runs the tasks.
            found_files: The inventory of the table in the snapshot.
            catalog_facts: What the metastore knew after the inventory was made.
        """
        missing = missing_places(self.fs, self.table, catalog_facts)
        if "" in missing:
            return list(missing.values())
        findings, listings = list(missing.values()), dict[str, Listing]()
        places = [name for name in catalog_facts.partitions if name not in missing]
        for name, listed in zip(places, run_in_threads(self.list_or_refuse, places), strict=True):
            if isinstance(listed, Listing):
                listings[name] = listed
            else:
                findings.append(listed)
        findings += check_names(self.table, found_files, catalog_facts, listings.values())
        for pairs in run_in_threads(
            lambda name: self._pair_findings(name, listings.get(name)), places
        ):
            findings += pairs
        for name, listing in listings.items():
            findings += check_overlaps(listing, place_of(self.table, name))
        of_files, works = self._works_to_check(found_files, listings, places)
        return [*findings, *of_files, *_run_check_job(spark, _work_by_task(works), self._spec())]

    def list_or_refuse(self, partition: str) -> Listing | Finding:
        """List a table or partition as a reader does, and return the listing. Return the finding
        UNREADABLE_DIRECTORY if that raises an AcidSqlError: its path is that of the error, or else
        the directory's. Files that compactions have replaced are no fault while they are there.
        """
        try:
            (listing,) = list_table(
                self.fs, self.table.location, [partition], self.write_ids, self.txns,
                plain=self.table.is_insert_only, history_is_kept=True,
            )  # fmt: skip
        except AcidSqlError as error:
            path = str(error.parameters.get("path", place_of(self.table, partition)))
            return Finding(path, "UNREADABLE_DIRECTORY", error.message)
        return listing

    def _pair_findings(self, partition: str, listing: Listing | None) -> list[Finding]:
        return check_pairs(self.fs, place_of(self.table, partition), listing)

    def _works_to_check(
        self,
        found_files: Sequence[FoundFile],
        listings: dict[str, Listing],
        places: Collection[str],
    ) -> tuple[list[Finding], list[CheckWork]]:
        """Return findings and work. The work has each file that readers of this version or an older
        one need, of the partitions in ``places``. The visible files of one bucket are one piece of
        work if their row ids are to be compared; each other file is its own. The findings are those
        of ``_folds_to_compare``.
        """
        findings: list[Finding] = []
        works: list[CheckWork] = []
        marked, files_by_partition = (
            self._marked_directories(found_files),
            dict[str, list[FoundFile]](),
        )
        for file in found_files:
            files_by_partition.setdefault(file.partition, []).append(file)
        for name in places:
            listed = self._files_to_check(
                files_by_partition.get(name, ()), listings.get(name), marked
            )
            files = {file.path: file for file in listed}
            place = place_of(self.table, name)
            for fold in self._folds_to_compare(listings.get(name), findings, place):
                reads = (*fold.inserts, *fold.deletes)
                together = (files.pop(read.file, None) for read in reads)
                works.append(CheckWork(place, tuple(file for file in together if file), fold))
            works += [CheckWork(place, (file,)) for file in files.values()]
        return findings, works

    def _folds_to_compare(
        self, listing: Listing | None, findings: list[Finding], place: str
    ) -> Iterable[BucketFold]:
        """Return the buckets whose row ids are to be compared; none without a listing, ``all_rows``
        or row ids. If the files cannot be sorted into buckets, a finding NOT_COMPARED is added to
        ``findings``, and there are none, either.
        """
        if listing is None or self.table.is_insert_only or not self.all_rows:
            return []
        try:
            return folds_of(self.table, listing, self.write_ids, major=False)
        except (AcidSqlError, OSError) as error:
            reason = error.message if isinstance(error, AcidSqlError) else str(error)
            findings.append(_not_compared(place, "Delete events", reason))
            return []

    def _files_to_check(
        self, found_files: Iterable[FoundFile], listing: Listing | None, marked: Collection[str]
    ) -> Iterator[CheckedFile]:
        """Yield the files of a partition's directory to look at: those that a reader reads, and
        those that readers of older versions need; if the directory cannot be listed, those that a
        reader should read. Litter and empty files are left out of the latter two. ``marked``: the
        directories that have ``_orc_acid_version``; only files that a reader reads are held against
        them.
        """
        extra_states = ("history",) if listing is not None else ("history", "visible")
        if listing is not None:
            for file in (*listing.data, *listing.deletes):
                mark = directory_of(file.path) in marked
                yield CheckedFile(
                    file.path, file.size, file.length, file.directory, has_version_mark=mark
                )
            for group in listing.originals:
                for path, size in zip(group.paths, group.sizes, strict=True):
                    yield CheckedFile(path, size, is_plain=True)
        for found_file in found_files:
            if (
                found_file.state in extra_states
                and found_file.bytes
                and found_file.kind != "litter"
            ):
                is_event = (
                    found_file.acid is not None and bucket_id_of(found_file.file or "") is not None
                )
                is_plain = self.table.is_insert_only or not is_event
                yield CheckedFile(
                    found_file.path,
                    found_file.bytes,
                    found_file.length,
                    found_file.acid,
                    is_plain=is_plain,
                )

    def _marked_directories(self, found_files: Iterable[FoundFile]) -> frozenset[str]:
        """Look for ``_orc_acid_version`` in each base and delta that has files, and return the
        paths of the directories that have one.
        """
        paths = sorted({directory_of(file.path) for file in found_files if file.acid and file.file})
        are = run_in_threads(lambda path: self.fs.exists(f"{path}/{ACID_VERSION_FILE}"), paths)
        return frozenset(path for path, is_marked in zip(paths, are, strict=True) if is_marked)

    def _spec(self) -> CheckSpec:
        """Return what all tasks must know."""
        columns = [(column.name, column.type) for column in self.table.columns]
        is_parquet = self.table.file_format == PARQUET
        return CheckSpec(
            RowSchema.from_fields(columns), is_parquet, self._clustering(), self.all_rows
        )

    def _clustering(self) -> Clustering | None:
        """Return the table's CLUSTERED BY; None if it has none, is insert-only, or has a column
        whose hash is not known exactly (timestamp, binary, nested types).
        """
        table = self.table
        if not table.is_bucketed or table.is_insert_only:
            return None
        names = [column.name for column in table.columns]
        places = tuple(names.index(name) for name in table.bucket_columns)
        types = tuple(table.columns[place].type for place in places)
        if any(
            parse_type(column_type).children or column_type in _NOT_EXACT for column_type in types
        ):
            return None
        return Clustering(places, types, table.num_buckets, table.bucketing_version)


def _not_compared(place: str, subject: str, reason: str) -> Finding:
    """Return the finding that row ids (``subject``) were not compared, with the reason."""
    return Finding(place, "NOT_COMPARED", f"{subject} were not compared with rows: {reason}")


def check_work(work: CheckWork, spec: CheckSpec) -> list[Finding]:
    """Check the files of one piece of work, and return the findings; this runs in a task. Row ids
    are compared only if no file has an error and all can be read; otherwise a finding NOT_COMPARED
    says so. A wrong key index is no hindrance, because only Hive reads it.
    """
    findings = [finding for file in work.files for finding in check_file(file, spec)]
    if work.fold is None:
        return findings
    subject = f"The delete events of bucket {work.fold.bucket_id}"
    errors = (finding for finding in findings if finding.severity == ERROR)
    defect = next((error for error in errors if error.condition != "WRONG_KEY_INDEX"), None)
    if defect is not None:
        name = defect.path.removeprefix(f"{work.place}/")
        return [*findings, _not_compared(work.place, subject, f"see {name}.")]
    try:
        return [*findings, *check_deletes(work.fold, work.place)]
    except (AcidSqlError, OSError) as error:
        return [*findings, _not_compared(work.place, subject, str(error))]


def _work_by_task(works: Iterable[CheckWork]) -> list[list[CheckWork]]:
    """Divide the work into tasks, in order. Pieces share a task up to 64 MiB and 256 files; a
    bigger piece has its own. No piece is divided.
    """
    tasks: list[list[CheckWork]] = []
    bytes_left = files_left = 0
    for work in works:
        size, count = sum(file.size for file in work.files), len(work.files)
        if not tasks or size > bytes_left or count > files_left:
            tasks.append([])
            bytes_left, files_left = _TASK_BYTES, _TASK_FILES
        tasks[-1].append(work)
        bytes_left, files_left = bytes_left - size, files_left - count
    return tasks


def _run_check_job(
    spark: SparkSession, tasks: Sequence[Sequence[CheckWork]], spec: CheckSpec
) -> list[Finding]:
    """Run a Spark job with these tasks, and return their findings; no job without tasks."""
    if not tasks:
        return []
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    rows = numbers.mapInArrow(_check_function(tasks, spec), f"{RECORD} string").collect()
    return [Finding.from_json(row[0]) for row in rows]


def _check_function(
    tasks: Sequence[Sequence[CheckWork]], spec: CheckSpec
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of the Python tasks: batches of tasks' numbers → for each number, a batch
    with its findings as JSON texts. A task also makes later tasks of its worker cheaper
    (``spare_later_tasks``).
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield, for each number of a task, a batch with its findings."""
        spare_later_tasks()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                findings = [finding.to_json() for finding in check_task(tasks[number], spec)]
                yield pa.record_batch([pa.array(findings, pa.string())], [RECORD])

    return run


def check_task(works: Iterable[CheckWork], spec: CheckSpec) -> list[Finding]:
    """Check the files of a task, and return the findings. Once there are more than 200, return the
    first 200 and one that says so, and look at no more work.
    """
    findings: list[Finding] = []
    for work in works:
        findings += check_work(work, spec)
        if len(findings) > _OF_TASK:
            return [*findings[:_OF_TASK], too_many_findings(work.place)]
    return findings


def too_many_findings(path: str) -> Finding:
    """Return the finding that there are more findings than are shown."""
    return Finding(path, "TOO_MANY_FINDINGS", "There are more findings than are shown.")
