"""Files → directories: a statement's files become a complete delta or base, or nothing.

A statement's files lie in a hidden staging directory below the table's directory. Publishing
decides which final directories they make, and ``placing`` puts them there. The events stay
invisible until the store commits their write id.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from acidsql.acid.layout import (
    ACID_VERSION,
    ACID_VERSION_FILE,
    base_name,
    bucket_name,
    delete_delta_name,
    delta_name,
    plain_name,
    replaced_name,
)
from acidsql.errors import ConstraintError, MergeCardinalityError, WriteError
from acidsql.storage.event_records import (
    EXAMPLES,
    Record,
    WriteMode,
    WriteSpec,
    keys_of_text,
)
from acidsql.storage.files.filesystem import FileSystem, filesystem_for
from acidsql.storage.writing.placing import NewDirectory, place_directories
from acidsql.storage.writing.plain_file import HowToWrite, insert_writer

_STAGED = re.compile(r"_tmp_(\d{7,})_\d{4}_.+")  # the names that staging_directory makes


@dataclass(frozen=True, slots=True)
class PublishedWrite:
    """The result of a statement on disk.

    Attributes:
        inserted: The number of new rows, without new versions of rows.
        updated: The number of new versions of rows.
        deleted: The number of deleted rows, without updated rows.
        files: The number of bucket files.
        bytes: The size of the bucket files.
        write_id: The statement's write id; None if nothing was published.
        directories: Paths of the directories, in order.
        partitions: The changed partition directories, ``p1=a/p2=1``; "" if unpartitioned.
        overwrote: The statement replaced the former contents of these partitions.
        rows: How many rows more each partition has now; fewer are negative.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    files: int = 0
    bytes: int = 0
    write_id: int | None = None
    directories: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    overwrote: bool = False
    rows: Mapping[str, int] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        """The number of rows that were inserted, updated or deleted."""
        return self.inserted + self.updated + self.deleted


def staging_directory(location: str, write_id: int, statement_id: int, unique: str) -> str:
    """Return the path of a statement's staging directory. Its first letter hides it from every
    reader.
    """
    return f"{location}/_tmp_{write_id:07d}_{statement_id:04d}_{unique}"


def staged_write_id(name: str) -> int | None:
    """Return the write id in the name of a staging directory; None for any other name."""
    staged_match = _STAGED.fullmatch(name)
    return int(staged_match[1]) if staged_match else None


def check_records(records: Iterable[Record], *, merge: bool) -> list[Record]:
    """Check a job's records, and return the records of the files to publish: of kind ``insert``,
    then ``delete``, then ``replaced``. Other kinds are only checked.

    Raises:
        WriteError: The job mixed two attempts of one task, or wrote one bucket id of a partition
            twice, in files of one kind; or a row was changed twice, and the statement is no MERGE.
        ConstraintError: A NOT NULL column got a null.
        MergeCardinalityError: A row of MERGE's target was matched twice.
    """
    by_kind: dict[str, list[Record]] = {}
    for record in records:
        by_kind.setdefault(record.kind, []).append(record)
    if nulls := by_kind.get("null"):
        raise ConstraintError(
            f"Column '{nulls[0].detail}' is NOT NULL, and the statement would write a null there.",
            condition="NOT_NULL_CONSTRAINT_VIOLATION",
            sqlstate="23502",
            column=nulls[0].detail,
        )
    if duplicates := by_kind.get("duplicate"):
        _raise_duplicate(duplicates, merge)
    _check_attempts(by_kind)
    files = [
        record for kind in ("insert", "delete", "replaced") for record in by_kind.get(kind, [])
    ]
    writes = Counter((file.kind, file.partition, file.bucket_id) for file in files)
    for (kind, partition, bucket_id), times in writes.items():
        if times > 1:
            raise WriteError(f"Bucket {bucket_id} of '{partition}' was written twice ({kind}).")
    return files


def publish(
    fs: FileSystem,
    location: str,
    spec: WriteSpec,
    files: Sequence[Record],
    directories: list[str],
    *,
    are_copies: bool = False,
) -> PublishedWrite:
    """Put checked files into their directories, without committing, and return what was published,
    without counting files of kind ``replaced``; after a failure, try to delete the directories.

    Args:
        fs: The table's file system.
        location: The table's directory.
        spec: The spec with which the files were written.
        files: The result of ``check_records``.
        directories: Receives each directory before the directory is put into place. After a
            failure, the caller finds here which directories may be left.
        are_copies: The files are copies by LOAD DATA: plain files, in a table of any kind.

    Raises:
        FileExistsError: Somebody else has a directory of this name.
        WriteError: A file is missing or has another length than its writer reported: the executors
            write to another file system than the driver sees.
    """
    grouped: dict[tuple[str, str], list[Record]] = {}
    for file in files:
        name = _directory_name(spec, file.kind)
        grouped.setdefault((file.partition, name), []).append(file)
    markers = {} if spec.insert_only else {ACID_VERSION_FILE: ACID_VERSION}
    is_plain = spec.insert_only or are_copies
    new = [
        NewDirectory(
            f"{location}/{partition}" if partition else location,
            name,
            final_names(members, is_plain=is_plain),
            markers,
        )
        for (partition, name), members in sorted(grouped.items())
    ]
    try:
        place_directories(fs, location, spec.staging, new, directories)
    except BaseException:
        discard(fs, directories)
        raise
    files = [file for file in files if file.kind != "replaced"]
    updated = sum(file.updated for file in files)
    return PublishedWrite(
        inserted=sum(file.rows for file in files if file.kind == "insert") - updated,
        updated=updated,
        deleted=sum(file.rows for file in files if file.kind == "delete") - updated,
        files=len(files),
        bytes=sum(file.bytes for file in files),
        write_id=spec.write_id,
        directories=tuple(directories),
        partitions=tuple(sorted({file.partition for file in files})),
        overwrote=spec.mode is WriteMode.OVERWRITE,
        rows=_row_changes(files),
    )


def _row_changes(files: Iterable[Record]) -> dict[str, int]:
    """Return partition directory → how many rows more it has now; fewer are negative."""
    more_rows: Counter[str] = Counter()
    for file in files:
        more_rows[file.partition] += file.rows if file.kind == "insert" else -file.rows
    return dict(more_rows)


def empty_file(spec: HowToWrite, partition: str) -> Record:
    """Write a file without rows into the staging directory, in the format of the table's other new
    files, and return its record, of kind ``insert`` and bucket id 0.

    An empty base needs such a file: after an INSERT OVERWRITE without rows, after TRUNCATE, or
    after a compaction that found only deleted rows.
    """
    fs, path = filesystem_for(spec.staging), f"{spec.staging}/empty-{abs(hash(partition))}"
    stats = insert_writer(fs.open_output(path), spec).close()
    return Record("insert", 0, 0, partition, 0, path, 0, 0, stats.bytes)


def discard(fs: FileSystem, directories: Iterable[str]) -> None:
    """Delete directories of a statement, as far as possible. An error of the file system is
    ignored.

    A hidden staging directory, and a directory of an aborted transaction, stay invisible if they
    cannot be deleted now; the cleaner deletes them later. If the transaction goes on, the caller
    must check that published directories are gone (``unit_of_work``).
    """
    for directory in directories:
        try:
            fs.delete_directory(directory)
        except OSError:
            continue


def _raise_duplicate(duplicates: Sequence[Record], merge: bool) -> None:
    """Raise MergeCardinalityError in a MERGE, else WriteError, for rows that would be changed
    twice.
    """
    rows = sum(record.rows for record in duplicates)
    if merge:
        error = MergeCardinalityError(
            f"{rows} more row(s) of the source matched a row of the target that was matched "
            "already. Make the source's keys unique, or make the condition tell its rows apart.",
            rows=rows,
        )
        keys = [key for record in duplicates for key in keys_of_text(record.detail)]
        error.examples = tuple(keys[:EXAMPLES])
        raise error
    raise WriteError(
        f"{rows} row(s) would be changed twice: an expression of the statement yields several rows."
    )


def _check_attempts(by_kind: dict[str, list[Record]]) -> None:
    """Raise WriteError if delete keys and files come from two attempts of one task of the insert
    stage (I9).
    """
    attempts_by_task: dict[int, set[int]] = {}
    for kind in ("done", "seen"):
        for record in by_kind.get(kind, []):
            attempts_by_task.setdefault(record.task, set()).add(record.attempt)
    repeated = [task for task, attempts in attempts_by_task.items() if len(attempts) > 1]
    if repeated:
        raise WriteError(
            f"Spark ran task {repeated[0]} of this statement again after others had used its first "
            "result, and the two may differ. Nothing was changed; run the statement again."
        )


def _directory_name(spec: WriteSpec, kind: str) -> str:
    """Return the name of the directory for files of a kind: a delete delta for ``delete``; for
    other kinds a base if the statement overwrites, else a delta.
    """
    if kind == "delete":
        return delete_delta_name(spec.write_id, spec.delete_statement_id)
    if spec.mode is WriteMode.OVERWRITE:
        return base_name(spec.write_id)
    return delta_name(spec.write_id, spec.insert_statement_id)


def final_names(files: Iterable[Record], *, is_plain: bool) -> dict[str, Record]:
    """Return final name in its directory → file. ``is_plain``: the files have no event columns."""
    return {_file_name(file, is_plain=is_plain): file for file in files}


def _file_name(file: Record, *, is_plain: bool) -> str:
    """Return the final name of a file, which its bucket id makes: ``000003_0`` of a plain file,
    ``bucket_00003`` of events, a hidden name of replaced rows.
    """
    if file.kind == "replaced":
        return replaced_name(file.bucket_id)
    return plain_name(file.bucket_id) if is_plain else bucket_name(file.bucket_id)
