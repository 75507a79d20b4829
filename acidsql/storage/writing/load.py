"""LOAD DATA: bring files from elsewhere into a table.

The statement publishes copies of the files. The source files stay in their place until the
transaction has committed, and only then may they be deleted: a failure in between loses nothing.
Tasks copy one file each (I7). The driver copies LOCAL files, which are on its own disk.
"""

from __future__ import annotations

import fnmatch
import hashlib
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from acidsql.acid import event
from acidsql.acid.layout import is_hidden
from acidsql.acid.paths import scheme_and_root
from acidsql.acid.table import Column
from acidsql.acid.values.types import parse_type
from acidsql.errors import FormatError, WriteError
from acidsql.storage import event_records as ew
from acidsql.storage.files.filesystem import Entry, filesystem_for, length_of
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.orc.damage import reason_of
from acidsql.storage.spark.session.task import current_task
from acidsql.storage.tables.file_info import read_file_info
from acidsql.storage.tables.orc_schema import columns_of, files_with_lost_days, has_no_names
from acidsql.storage.writing import event_writer

_BLOCK = 4 * 1024 * 1024  # bytes copied at once
_TAIL = 64 * 1024  # bytes of footer and statistics, by which two files differ
_RECORD_DDL = f"{ew.RECORD} string"

_MISSING = ("LOAD_DATA_PATH_NOT_EXISTS", "42K03")
_MISFIT = ("INCOMPATIBLE_DATA_FOR_TABLE.LOADED_FILE", "KD000")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to load.

    Attributes:
        path: The file's path.
        rows: The number of rows in the file.
        bytes: The file's length.
        mark: The result of ``mark_of``: it shows whether the file was replaced or changed.
        may_mislead: Spark's ORC reader may show some of its days as others (``lost_days``).
    """

    path: str
    rows: int
    bytes: int
    mark: str
    may_mislead: bool


def find_files(path: str) -> list[Entry]:
    """Return the files of INPATH, sorted by name: one file, the files of a directory, or of a
    pattern.

    Only the last part of the path may be a pattern; it is none if a file or directory has exactly
    this name. Empty files are left out, and hidden ones (for example ``_SUCCESS``) unless the path
    names one exactly. A directory counts as its files if it is the only match, as in Hive.

    Raises:
        FormatError: There are no files, or there are directories among them.
    """
    parent, _, name = path.rstrip("/").rpartition("/")
    siblings = filesystem_for(path).list_if_there(parent or "/")
    matches = [entry for entry in siblings if entry.name == name]
    if not matches:
        matches = [
            e for e in siblings if not is_hidden(e.name) and fnmatch.fnmatchcase(e.name, name)
        ]
    if len(matches) == 1 and matches[0].is_dir:
        children = filesystem_for(path).list_if_there(matches[0].path)
        matches = [entry for entry in children if not is_hidden(entry.name)]
    for entry in matches:
        if entry.is_dir:
            raise FormatError(
                f"'{path}' holds the directory '{entry.name}'; LOAD DATA takes files only. Load "
                "each directory with a statement of its own.",
                condition=_MISSING[0], sqlstate=_MISSING[1], path=path,
            )  # fmt: skip
    files = [entry for entry in matches if entry.size]
    if not files:
        raise FormatError(
            f"There is no file at '{path}' to load.",
            condition=_MISSING[0], sqlstate=_MISSING[1], path=path,
        )  # fmt: skip
    return files


def examine(files: Sequence[Entry], columns: Sequence[Column]) -> list[SourceFile]:
    """Read every footer, check it, and return one SourceFile for each file, in order. Hive does not
    check, and shows wrong rows later.

    Raises:
        FormatError: A file is not ORC, was written by an ACID table, or has other columns.
    """
    return run_in_threads(lambda file: _examine_file(file, columns), files)


def _examine_file(file: Entry, columns: Sequence[Column]) -> SourceFile:
    """Check the footer of one file, and return the facts about the file. The columns are compared
    by ``misfit``. Raises FormatError if it is not ORC, was written by an ACID table, or has other
    columns.
    """
    path = file.path
    try:
        info = read_file_info(path)
    except FormatError as error:
        raise FormatError(
            f"'{path}' cannot be loaded: {reason_of(error)}.",
            condition=_MISFIT[0], sqlstate=_MISFIT[1], path=path,
        ) from None  # fmt: skip
    if info.is_acid or event.VERSION_KEY in info.user_metadata:
        raise FormatError(
            f"'{path}' was written by an ACID table, and its row ids are valid in that table only "
            "(Hive 10413). Read that table, or its directory with acidsql.read, and INSERT … "
            "SELECT the rows.",
            condition="LOAD_DATA_ACID_FILE", sqlstate="0A000", path=path,
        )  # fmt: skip
    if fault := misfit(columns_of(path), columns):
        raise FormatError(
            f"'{path}' does not fit the table: {fault}. INSERT … SELECT … FROM orc.`{path}` can "
            "choose and convert columns.",
            condition=_MISFIT[0], sqlstate=_MISFIT[1], path=path,
        )  # fmt: skip
    may_mislead = info.is_foreign_proleptic and bool(files_with_lost_days([path]))
    return SourceFile(path, info.rows, file.size, mark_of(path), may_mislead)


def misfit(file_columns: Sequence[tuple[str, str]], columns: Sequence[Column]) -> str | None:
    """Return why a file with these columns does not fit the table; None if it fits.

    Hive matches columns by position, so nobody would notice another order. Therefore names count,
    too, unless they are Hive's ``_col0``, ``_col1`` …; case does not. Types must be the same, at
    the same position. The reason is that of the number of columns or of the first column that does
    not fit.
    """
    if len(file_columns) != len(columns):
        return f"it has {len(file_columns)} columns, the table {len(columns)}"
    nameless = has_no_names([name for name, _ in file_columns])
    for number, ((name, kind), column) in enumerate(zip(file_columns, columns, strict=True), 1):
        if not nameless and name.lower() != column.name:
            return f"its column {number} is called '{name}', the table's '{column.name}'"
        if kind.lower() != str(parse_type(column.type)).lower():
            return f"its column '{name}' is of type {kind}, the table's of {column.type}"
    return None


def mark_of(path: str) -> str:
    """Read the end of a file, and return a text by which a changed file is noticed: the file's
    length, and a hash of its last 64 KiB. Raises FileNotFoundError.
    """
    with filesystem_for(path).open_input(path) as file:
        size = length_of(file)
        file.seek(max(0, size - _TAIL))
        return f"{size} {hashlib.md5(file.read(), usedforsecurity=False).hexdigest()}"


# ── copying ──────────────────────────────────────────────────────────────────────────────────


def is_copied_in_place(sources: Sequence[SourceFile], location: str) -> bool:
    """Whether publishing can copy the files themselves: they are in the table's object store
    (scheme and bucket). False if the table's file system has directories.
    """
    if filesystem_for(location).has_directories:
        return False
    return all(scheme_and_root(source.path) == scheme_and_root(location) for source in sources)


def records_in_place(sources: Sequence[SourceFile], spec: ew.WriteSpec) -> list[ew.Record]:
    """Return the records of files that publishing copies from where they are. A record has the
    source's path, and the file's number as bucket id. Nothing is copied yet.
    """
    partition = spec.static_partition or ""
    return [
        ew.Record("insert", 0, 0, partition, number, source.path, source.rows, 0, source.bytes)
        for number, source in enumerate(sources)
    ]


def copy_in_driver(sources: Sequence[SourceFile], spec: ew.WriteSpec) -> list[ew.Record]:
    """Copy files into the staging directory, in the driver, and return a record for each; its
    bucket id is the file's number.

    Raises:
        WriteError: A file was changed or taken away since ``examine``.
    """
    task = ew.Task(0, 0)
    return _refuse_changed_copies(
        [_copy_file(source, n, spec, task) for n, source in enumerate(sources)], sources
    )


def copy_in_tasks(
    spark: SparkSession, sources: Sequence[SourceFile], spec: ew.WriteSpec
) -> list[ew.Record]:
    """Copy files into the staging directory in a Spark job, one task for each.

    Returns:
        One record for each file; its bucket id is the file's number.

    Raises:
        WriteError: A file was changed or taken away since ``examine``.
    """
    tasks = spark.range(0, len(sources), 1, len(sources))
    rows = tasks.mapInArrow(_copy_function(sources, spec), _RECORD_DDL).collect()
    return _refuse_changed_copies([ew.Record.from_json(row[0]) for row in rows], sources)


def _copy_function(
    sources: Sequence[SourceFile], spec: ew.WriteSpec
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of the Python tasks: batches of files' numbers → for each, a batch of the
    records of their copies as JSON, made while it is copied.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copy the files with these numbers, and yield a batch of records for each batch."""
        task = current_task()
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            yield event_writer.to_batch(_copy_file(sources[n], n, spec, task) for n in numbers)

    return run


def _copy_file(source: SourceFile, number: int, spec: ew.WriteSpec, task: ew.Task) -> ew.Record:
    """Copy a file into the staging directory, and return its record; of kind ``gone`` if the file
    does not exist any more. ``number``: the record's bucket id.
    """
    fs = filesystem_for(spec.staging)
    path = f"{spec.staging}/load-{task.number}-{task.attempt}-{uuid.uuid4().hex}"
    where = (task.number, task.attempt, spec.static_partition or "", number)
    try:
        old = filesystem_for(source.path).open_input(source.path)
    except FileNotFoundError:
        return ew.Record("gone", *where, source.path)
    with old, fs.open_output(path) as new:
        shutil.copyfileobj(old, new, _BLOCK)
    return ew.Record("insert", *where, path, source.rows, 0, fs.size(path))


def _refuse_changed_copies(
    records: list[ew.Record], sources: Sequence[SourceFile]
) -> list[ew.Record]:
    """Return the records; raise WriteError if a record says ``gone``, or a copy has another mark
    (``mark_of``) than the file that ``examine`` checked.
    """
    for record in records:
        source = sources[record.bucket_id]
        if record.kind == "gone" or mark_of(record.path) != source.mark:
            raise _source_changed_error(source)
    return records


def need_unchanged(sources: Sequence[SourceFile]) -> None:
    """Read the ends of all source files again, and check that each is still in its place,
    unchanged, so that no other load takes it.

    Raises:
        WriteError: Somebody has moved or changed a file.
    """
    for source in sources:
        try:
            is_same = mark_of(source.path) == source.mark
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise _source_changed_error(source)


def _source_changed_error(source: SourceFile) -> WriteError:
    """Return the error for a file that was changed or taken away while it was loaded."""
    return WriteError(
        f"'{source.path}' was changed or taken away while it was loaded. Nothing was loaded; run "
        "the statement again when the files are complete.",
        path=source.path,
    )


def delete_sources(sources: Sequence[SourceFile]) -> list[str]:
    """Delete the loaded source files, and Hadoop's checksum files beside them. Call this after the
    commit.

    Returns:
        The files that were not deleted: they have changed meanwhile, or could not be deleted. A
        file that is gone already is none of them.
    """
    not_deleted = []
    for source in sources:
        fs = filesystem_for(source.path)
        try:
            if mark_of(source.path) != source.mark:
                not_deleted.append(source.path)
                continue
            directory, _, name = source.path.rpartition("/")
            fs.delete_file(source.path)
            # Hadoop writes a checksum file beside a local file.
            fs.delete_file_if_there(f"{directory}/.{name}.crc")
            fs.sync_directory(directory or "/")
        except FileNotFoundError:
            continue
        except OSError:
            not_deleted.append(source.path)
    return not_deleted
