"""EXPLAIN: a statement's locks, the files that it reads of ACID tables, and Spark's plan.

A stand-in is the view in the place of a table. An original is a file in no base or delta, from the
time before the table was ACID.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from acidsql.acid.layout import bucket_id_of
from acidsql.acid.table import Table, TableName
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.metastore.interface import LockComponent
from acidsql.plan.rewrite import PreparedStatement
from acidsql.plan.standins.standins import StandIn, standins_in
from acidsql.statements.context.family import Context
from acidsql.statements.context.result import text_frame
from acidsql.statements.context.statement_text import StatementText, query_rows
from acidsql.statements.queries.filler import Filler
from acidsql.statements.queries.table_rows import TableRows
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.files.sizes import size_text
from acidsql.storage.spark.session import jvm
from acidsql.storage.spark.session.jvm import ScannedFiles
from acidsql.storage.tables.file_info import read_file_info
from acidsql.storage.tables.listing import Listing
from acidsql.txn import Snapshot

_DIRECTORIES_SHOWN = 20
_FOOTERS_MAX = 1000  # if there are more delete files, their events are not counted
_ITEMS_SHOWN = 8
# A list of more than 16 items with neither blanks nor colons: Spark writes blanks in a list of
# columns, colons in a struct. A match starts at the start of an item. The quantifiers are
# possessive, so that a literal of a million letters is searched once only.
_LONG_LIST = re.compile(r"(?<![^\[\](),:\s])(?:[^\[\](),:\s]*+,){16,}+[^\[\](),:\s]*+")
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:(?://[^/]*)?(?=/)")


class Explainer:
    """Explains the statements of one session."""

    def __init__(self, context: Context, filler: Filler) -> None:
        self._spark, self._transactions = context.spark, context.transactions
        self._filler, self._tables = filler, TableRows(context)

    def explain(
        self, prepared: PreparedStatement, statement_text: StatementText, mode: str | None,
        locks: Iterable[LockComponent],
    ) -> DataFrame:  # fmt: skip
        """Return EXPLAIN of a statement that changes rows: a row of text for each of its queries.
        The text lists the files that the query reads of ACID tables, and then has Spark's plan. The
        first text begins with ``locks``. Nothing is written or locked; a job may find the
        partitions that a MERGE reads."""
        snapshot = self._transactions.read_snapshot(prepared.reads)
        views = self._filler.views(prepared, snapshot, statement_text)
        source_sql = ""
        if (source := prepared.source) is not None:
            source_sql = source.query.sql
            views[source.view] = query_rows(self._spark, source.query, views, statement_text)
        plans = []
        for query in prepared.queries:
            text = query.query.sql + source_sql + (query.source.query.sql if query.source else "")
            standins = standins_in(text, prepared.standins)
            rows = self._filler.events(query, views, statement_text).rows
            plans.append(self.plan(rows, standins, snapshot, mode, statement_text))
        plans[0] = _locks_section(locks) + plans[0]
        return text_frame(self._spark, "plan", plans)

    def plan(
        self, rows: DataFrame, standins: Iterable[StandIn], snapshot: Snapshot, mode: str | None,
        statement_text: StatementText,
    ) -> str:  # fmt: skip
        """Return the text of EXPLAIN for a query: the files that its plan reads of each ACID table,
        then Spark's plan. ``rows``: the query as a DataFrame. ``mode``: that of EXPLAIN, such as
        EXTENDED; None: the plain one. Files are listed, and footers may be read."""
        files_by_table = {
            (standin.table.name, point_in_time): (
                standin.table,
                *self._tables.list_files(standin.table, snapshot, point_in_time),
            )
            for standin in standins
            if standin.table.is_transactional and standin.changes is None
            for point_in_time in [self._tables.point_in_time(standin, statement_text)]
        }
        plan = plan_section(jvm.explain(rows, mode))
        return _tables_section([*files_by_table.values()], jvm.scanned_files(rows)) + plan


@dataclass(frozen=True, slots=True)
class _PlannedFile:
    """One file of the snapshot.

    Attributes:
        directory: The file's directory below the table's directory; "" for an original in the
            table's directory itself.
        bytes: The file's size; 0 for an original, because a listing does not have its size.
        has_deletes: The file contains delete events.
        bucket_id: The bucket id; None for an original.
    """

    path: str
    partition: str
    directory: str
    bytes: int
    has_deletes: bool
    bucket_id: int | None


def _locks_section(locks: Iterable[LockComponent]) -> str:
    """Return the section of EXPLAIN about the locks that a statement would take: a heading, then a
    line for each different lock, such as ``SHARED_READ on db.t partition p=1``; "" without
    locks."""
    lines = []
    for lock in locks:
        locked_object = (
            lock.database if lock.table is None else TableName(lock.database, lock.table)
        )
        partition = f" partition {lock.partition}" if lock.partition else ""
        lines.append(f"{lock.lock_type.name} on {locked_object}{partition}")
    # A MERGE takes one lock for each of its operations; the lines are equal.
    return "\n".join(["== Locks ==", *dict.fromkeys(lines), ""]) if lines else ""


def plan_section(plan: str) -> str:
    """Return the text of Spark's plan, with each list of more than 16 items cut to its first 8.

    A scan of several partitions has the values of the partitions, and the sizes of the files, as
    literals.
    """
    return _LONG_LIST.sub(_list_beginning, plan)


def _list_beginning(match: re.Match[str]) -> str:
    """Return the first 8 items of a list, and how many more there are."""
    items = match[0].split(",")
    return f"{','.join(items[:_ITEMS_SHOWN])},… {len(items) - _ITEMS_SHOWN} more"


def _tables_section(
    tables: Sequence[tuple[Table, Sequence[Listing], ValidWriteIdList]], scans: ScannedFiles | None
) -> str:
    """Return the section of EXPLAIN about the files that a plan reads of each ACID table; ""
    without tables. Footers of delete files may be read.

    Args:
        tables: Each table with its files in the snapshot and its valid write ids.
        scans: The files that Spark's plan opens, and the files that remain after Spark applied
            conditions on paths. None: these are unknown, and all files count as read.
    """
    lines = [line for table_and_files in tables for line in _table_lines(*table_and_files, scans)]
    return "\n".join(["== ACID Tables ==", *lines, ""]) if lines else ""


def _table_lines(
    table: Table,
    listings: Sequence[Listing],
    write_ids: ValidWriteIdList,
    scans: ScannedFiles | None,
) -> list[str]:
    """Return the lines about a table: how much the plan reads of its files, directories and
    partitions, its delete events, the visible write ids, and the first 20 directories that it
    reads, and how many more there are. One line more if Python tasks read some of the files. This
    may read footers of delete files."""
    files = [file for listing in listings for file in _snapshot_files(table, listing)]
    read_files = _files_of_plan(files, scans)
    directories = list(dict.fromkeys(file.directory for file in files))
    read_directories = list(dict.fromkeys(file.directory for file in read_files))
    lines = [
        f"{table.name}: {len(read_files)} of {len(files)} files, {len(read_directories)} of "
        f"{len(directories)} directories, {size_text(sum(file.bytes for file in read_files))}"
    ]
    if table.partition_columns:
        partitions = {file.partition for file in read_files}
        lines.append(f"  partitions: {len(partitions)} of {len(listings)}")
    delete_files = [file for file in read_files if file.has_deletes]
    if delete_files:
        lines.append(
            f"  delete events: {_event_count(delete_files)} in "
            f"{_count_text(len(delete_files), 'file')}"
        )
    row_files = [file for file in read_files if not file.has_deletes]
    if scans is not None and any(_plain_path(file.path) not in scans.opened for file in row_files):
        lines.append("  some files are read by Python tasks, which Spark's reader cannot read")
    lines.append(f"  snapshot: {_snapshot_text(table, write_ids)}")
    for directory in read_directories[:_DIRECTORIES_SHOWN]:
        files_inside = [file for file in read_files if file.directory == directory]
        lines.append(
            f"  {directory or '(originals)'}: {_count_text(len(files_inside), 'file')}, "
            f"{size_text(sum(file.bytes for file in files_inside))}"
        )
    if len(read_directories) > _DIRECTORIES_SHOWN:
        lines.append(
            f"  … and {_count_text(len(read_directories) - _DIRECTORIES_SHOWN, 'directory')} more"
        )
    return lines


def _snapshot_text(table: Table, write_ids: ValidWriteIdList) -> str:
    """Return in words which write ids of a table a snapshot sees: ``db.t up to write id 7, without
    3, 5 (open), 2 (aborted)``."""
    if write_ids.high_water_mark == 0:
        return f"{table.name}, of which nothing is written"
    hidden = [
        f"{_first_items(ids)} ({state})"
        for ids, state in ((write_ids.open, "open"), (write_ids.aborted, "aborted"))
        if ids
    ]
    left_out = f", without {', '.join(hidden)}" if hidden else ""
    return f"{table.name} up to write id {write_ids.high_water_mark}{left_out}"


def _first_items(ids: Sequence[int]) -> str:
    """Return the first 8 of some ids, and how many more there are."""
    shown = ", ".join(map(str, sorted(ids)[:_ITEMS_SHOWN]))
    return f"{shown} … {len(ids) - _ITEMS_SHOWN} more" if len(ids) > _ITEMS_SHOWN else shown


def _snapshot_files(table: Table, listing: Listing) -> list[_PlannedFile]:
    """Return each file of one partition's listing: data, deletes, then originals, whose size is not
    known (0), nor their bucket (None)."""
    files = []
    for event_files, has_deletes in ((listing.data, False), (listing.deletes, True)):
        for file in event_files:
            directory = f"{listing.partition}/{file.directory.name}".lstrip("/")
            bucket_id = bucket_id_of(file.path.rpartition("/")[2])
            files.append(
                _PlannedFile(
                    file.path, listing.partition, directory, file.size, has_deletes, bucket_id
                )
            )
    for group in listing.originals:
        for path in group.paths:
            original_directory = path.removeprefix(f"{table.location}/").rpartition("/")[0]
            files.append(_PlannedFile(path, listing.partition, original_directory, 0, False, None))
    return files


def _files_of_plan(files: Sequence[_PlannedFile], scans: ScannedFiles | None) -> list[_PlannedFile]:
    """Return those of a table's files that a plan reads, in their order: row files, and the delete
    files that the plan reads or, of those that it does not name, those of the same partitions and
    buckets. The rows of an original may belong to any bucket of its partition. All files if
    ``scans`` is None."""
    if scans is None:
        return list(files)
    row_files = {file for file in files if not file.has_deletes and _is_read_by_plan(file, scans)}
    places = {(file.partition, file.bucket_id) for file in row_files}
    # A file without a bucket id is an original. Its rows may belong to any bucket.
    anywhere = {partition for partition, bucket_id in places if bucket_id is None}

    def has_rows(file: _PlannedFile) -> bool:
        return file.partition in anywhere or (file.partition, file.bucket_id) in places

    # Without a join with the delete events, Spark's plan does not contain the delete files.
    return [
        file
        for file in files
        if file in row_files
        or _plain_path(file.path) in scans.selected
        or (file.has_deletes and _plain_path(file.path) not in scans.opened and has_rows(file))
    ]


def _is_read_by_plan(file: _PlannedFile, scans: ScannedFiles) -> bool:
    """Whether a plan reads a row file: by Spark, after its conditions on paths, or by Python
    tasks."""
    path = _plain_path(file.path)
    # A file that Spark does not open is read by Python tasks, if the plan has any, or not at all.
    return path in scans.selected or (scans.has_python and path not in scans.opened)


def _plain_path(path: str) -> str:
    """Return a path without scheme and host."""
    match = _SCHEME.match(path)
    return path[match.end() :] if match else path


def _event_count(files: Sequence[_PlannedFile]) -> str:
    """Return the number of events by the files' footers, as text; ``?`` if there are more than
    1,000 files."""
    if len(files) > _FOOTERS_MAX:
        return "?"
    rows = run_in_threads(lambda file: read_file_info(file.path).rows, files)
    return f"{sum(rows):,}"


def _count_text(count: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"
