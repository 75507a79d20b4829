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
from acidsql.acid.types import parse_type
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.errors import AcidSqlError
from acidsql.storage.checking.contents import CheckedFile, CheckSpec, Clustering, check_file
from acidsql.storage.checking.deletes import check_deletes
from acidsql.storage.checking.directories import (
    Known,
    check_names,
    check_overlaps,
    check_pairs,
    missing_places,
    place_of,
)
from acidsql.storage.event_records import RECORD
from acidsql.storage.files.filesystem import FileSystem
from acidsql.storage.files.listing import Listing, list_table
from acidsql.storage.files.parallel import in_threads
from acidsql.storage.folding.fold import Fold
from acidsql.storage.folding.plan import folds_of
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.inventory import FoundFile
from acidsql.storage.spark.worker_process import spare_later_tasks

MOST = 1000  # findings that are shown
_TASK_BYTES, _TASK_FILES = 64 << 20, 256
_OF_TASK = 200  # findings that a task reports at most
# Types of CLUSTERED BY whose hash is not known here: Hive hashes nanoseconds, which are cut here.
_NOT_EXACT = ("timestamp", "binary")


@dataclass(frozen=True, slots=True)
class Work:
    """Files to look at together.

    Attributes:
        place: The path of the table's or partition's directory.
        files: The files.
        fold: Their visible events, to compare the row ids; None: compare nothing.
    """

    place: str
    files: tuple[CheckedFile, ...]
    fold: Fold | None = None


@dataclass(frozen=True, slots=True)
class Checking:
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

    def run(self, spark: SparkSession, found: Sequence[FoundFile], known: Known) -> list[Finding]:
        """All findings.

        Args:
            spark: The session, which runs the tasks.
            found: The inventory of the table in the snapshot.
            known: What the metastore said after the inventory was made.
        """
        missing = missing_places(self.fs, self.table, known)
        if "" in missing:
            return list(missing.values())
        findings, listings = list(missing.values()), dict[str, Listing]()
        places = [name for name in known.partitions if name not in missing]
        for name, listed in zip(places, in_threads(self.listed, places), strict=True):
            if isinstance(listed, Listing):
                listings[name] = listed
            else:
                findings.append(listed)
        findings += check_names(self.table, found, known, listings.values())
        for pairs in in_threads(lambda name: self._pairs(name, listings.get(name)), places):
            findings += pairs
        for name, listing in listings.items():
            findings += check_overlaps(listing, place_of(self.table, name))
        of_files, works = self._works(found, listings, places)
        return [*findings, *of_files, *_run(spark, _in_tasks(works), self._spec())]

    def listed(self, partition: str) -> Listing | Finding:
        """What a reader reads of a table or partition, or why readers refuse it."""
        try:
            (listing,) = list_table(
                self.fs, self.table.location, [partition], self.write_ids, self.txns,
                plain=self.table.is_insert_only, history_is_kept=True,
            )  # fmt: skip
        except AcidSqlError as error:
            path = str(error.parameters.get("path", place_of(self.table, partition)))
            return Finding(path, "UNREADABLE_DIRECTORY", error.message)
        return listing

    def _pairs(self, partition: str, listing: Listing | None) -> list[Finding]:
        return check_pairs(self.fs, place_of(self.table, partition), listing)

    def _works(
        self, found: Sequence[FoundFile], listings: dict[str, Listing], places: Collection[str]
    ) -> tuple[list[Finding], list[Work]]:
        """What to do about each file that readers of this version or an older one need."""
        findings: list[Finding] = []
        works: list[Work] = []
        marked, own = self._marked(found), dict[str, list[FoundFile]]()
        for one in found:
            own.setdefault(one.partition, []).append(one)
        for name in places:
            listed = self._files(own.get(name, ()), listings.get(name), marked)
            files = {file.path: file for file in listed}
            place = place_of(self.table, name)
            for fold in self._folds(listings.get(name), findings, place):
                reads = (*fold.inserts, *fold.deletes)
                together = (files.pop(read.file, None) for read in reads)
                works.append(Work(place, tuple(file for file in together if file), fold))
            works += [Work(place, (file,)) for file in files.values()]
        return findings, works

    def _folds(
        self, listing: Listing | None, findings: list[Finding], place: str
    ) -> Iterable[Fold]:
        if listing is None or self.table.is_insert_only or not self.all_rows:
            return []
        try:
            return folds_of(self.table, listing, self.write_ids, major=False)
        except (AcidSqlError, OSError) as error:
            why = error.message if isinstance(error, AcidSqlError) else str(error)
            findings.append(_not_compared(place, "Delete events", why))
            return []

    def _files(
        self, own: Iterable[FoundFile], listing: Listing | None, marked: Collection[str]
    ) -> Iterator[CheckedFile]:
        """The files that a reader reads; if the place cannot be listed, those that it should."""
        wanted = ("history",) if listing is not None else ("history", "visible")
        if listing is not None:
            for file in (*listing.data, *listing.deletes):
                mark = directory_of(file.path) in marked
                yield CheckedFile(
                    file.path, file.size, file.length, file.directory, has_version_mark=mark
                )
            for group in listing.originals:
                for path, size in zip(group.paths, group.sizes, strict=True):
                    yield CheckedFile(path, size, is_plain=True)
        for one in own:
            if one.state in wanted and one.bytes and one.kind != "litter":
                is_event = one.acid is not None and bucket_id_of(one.file or "") is not None
                is_plain = self.table.is_insert_only or not is_event
                yield CheckedFile(one.path, one.bytes, one.length, one.acid, is_plain=is_plain)

    def _marked(self, found: Iterable[FoundFile]) -> frozenset[str]:
        """The directories that have an ``_orc_acid_version``."""
        paths = sorted({directory_of(one.path) for one in found if one.acid and one.file})
        are = in_threads(lambda path: self.fs.exists(f"{path}/{ACID_VERSION_FILE}"), paths)
        return frozenset(path for path, is_marked in zip(paths, are, strict=True) if is_marked)

    def _spec(self) -> CheckSpec:
        columns = [(column.name, column.type) for column in self.table.columns]
        is_parquet = self.table.file_format == PARQUET
        return CheckSpec(RowSchema.of(columns), is_parquet, self._clustering(), self.all_rows)

    def _clustering(self) -> Clustering | None:
        table = self.table
        if not table.is_bucketed or table.is_insert_only:
            return None
        names = [column.name for column in table.columns]
        places = tuple(names.index(name) for name in table.bucket_columns)
        types = tuple(table.columns[place].type for place in places)
        if any(parse_type(one).children or one in _NOT_EXACT for one in types):
            return None
        return Clustering(places, types, table.num_buckets, table.bucketing_version)


def _not_compared(place: str, what: str, why: str) -> Finding:
    return Finding(place, "NOT_COMPARED", f"{what} were not compared with rows: {why}")


def check_work(work: Work, spec: CheckSpec) -> list[Finding]:
    """The findings of one piece of work. It runs in a task."""
    found = [finding for file in work.files for finding in check_file(file, spec)]
    if work.fold is None:
        return found
    what = f"The delete events of bucket {work.fold.bucket_id}"
    bad = next((one for one in found if one.severity == ERROR), None)
    if bad is not None:
        name = bad.path.removeprefix(f"{work.place}/")
        return [*found, _not_compared(work.place, what, f"see {name}.")]
    try:
        return [*found, *check_deletes(work.fold, work.place)]
    except (AcidSqlError, OSError) as error:
        return [*found, _not_compared(work.place, what, str(error))]


def _in_tasks(works: Iterable[Work]) -> list[list[Work]]:
    """The work of each task. Small files share a task."""
    tasks: list[list[Work]] = []
    left = files = 0
    for work in works:
        size, count = sum(file.size for file in work.files), len(work.files)
        if not tasks or size > left or count > files:
            tasks.append([])
            left, files = _TASK_BYTES, _TASK_FILES
        tasks[-1].append(work)
        left, files = left - size, files - count
    return tasks


def _run(spark: SparkSession, tasks: Sequence[Sequence[Work]], spec: CheckSpec) -> list[Finding]:
    if not tasks:
        return []
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    rows = numbers.mapInArrow(_checker(tasks, spec), f"{RECORD} string").collect()
    return [Finding.from_json(row[0]) for row in rows]


def _checker(
    tasks: Sequence[Sequence[Work]], spec: CheckSpec
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_later_tasks()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                found = [one.to_json() for one in check_task(tasks[number], spec)]
                yield pa.record_batch([pa.array(found, pa.string())], [RECORD])

    return run


def check_task(works: Iterable[Work], spec: CheckSpec) -> list[Finding]:
    """The findings of a task; if there are too many, not all of them."""
    found: list[Finding] = []
    for work in works:
        found += check_work(work, spec)
        if len(found) > _OF_TASK:
            return [*found[:_OF_TASK], too_many(work.place)]
    return found


def too_many(path: str) -> Finding:
    """The finding that says that others are not shown."""
    return Finding(path, "TOO_MANY_FINDINGS", "There are more findings than are shown.")
