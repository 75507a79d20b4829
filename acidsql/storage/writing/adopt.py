"""CREATE TABLE … LOCATION over plain ORC files: check the files, and rename them for Hive.

Row ids of such files are made from the files' names (see ``originals``), so the names must be
Hive's, ``000000_0``. Spark's names are ``part-00000-…``. Such files are renamed one by one, each in
one step. So every reader of the directory as plain ORC always finds every row once. After a crash
the next attempt goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acidsql.acid.layout import (
    BUCKET_ID_MAX,
    bucket_id_of_original,
    is_hidden,
    is_original,
    parse_directory,
    plain_name,
)
from acidsql.errors import FormatError
from acidsql.storage.files.filesystem import Entry, FileSystem
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.files.partition_tree import is_partition
from acidsql.storage.orc.damage import reason_of
from acidsql.storage.tables.file_info import read_file_info
from acidsql.storage.tables.orc_schema import columns_of


@dataclass(frozen=True, slots=True)
class DirectoryContents:
    """The contents of one table or partition directory.

    Attributes:
        path: The directory.
        acid: Its bases and deltas.
        originals: The plain files that readers see, also in directories below; sorted by path.
    """

    path: str
    acid: tuple[Entry, ...]
    originals: tuple[Entry, ...]

    @property
    def badly_named(self) -> list[Entry]:
        """The originals without a bucket id in their names: their rows have no row ids."""
        return [entry for entry in self.originals if not is_original(entry.name)]


def list_contents(fs: FileSystem, path: str) -> DirectoryContents:
    """List a table's or partition's directory, and return its bases and deltas, and the plain files
    beside these, at any depth, without hidden and empty ones. If there is a base, readers see no
    plain files, so there are none, and their directories are not looked at.

    Raises:
        FormatError: The directory has partitions, but the statement names fewer partition columns;
            or a link to a directory.
    """
    entries = [entry for entry in fs.list(path) if not is_hidden(entry.name)]
    for entry in entries:
        _refuse_link(entry)
    acid = [entry for entry in entries if entry.is_dir and parse_directory(entry.name) is not None]
    has_base = any(entry.name.startswith("base_") for entry in acid)
    other_entries = [] if has_base else [entry for entry in entries if entry not in acid]
    files = sorted(_visible_files_below(fs, other_entries), key=lambda entry: entry.path)
    return DirectoryContents(path, tuple(acid), tuple(files))


def check_partitions(fs: FileSystem, location: str, columns: Sequence[str]) -> None:
    """Raise an error for files beside partitions, because no reader would see them. Hidden and
    empty files do not count; without partition columns nothing is checked.

    Raises:
        FormatError: There is a file, a directory that is no partition, or a link to a directory.
    """
    if not columns:
        return
    for entry in fs.list(location):
        if is_hidden(entry.name) or not (entry.is_dir or entry.size):
            continue
        _refuse_link(entry)
        if not entry.is_dir or not is_partition(entry.name, columns[0]):
            raise FormatError(
                f"'{entry.path}' is in no partition: the table is said to be PARTITIONED BY "
                f"({', '.join(columns)}).",
                path=entry.path,
            )
        check_partitions(fs, entry.path, columns[1:])


def _visible_files_below(fs: FileSystem, entries: Sequence[Entry]) -> list[Entry]:
    """List the files among these entries and, at any depth, in their directories, without hidden
    entries and empty files. Raise FormatError for a directory with = in its name, which looks like
    a partition, and for a link to a directory."""
    files = []
    for entry in entries:
        if is_hidden(entry.name):
            continue
        _refuse_link(entry)
        if entry.is_dir and "=" in entry.name:
            raise FormatError(
                f"'{entry.path}' looks like a partition: say PARTITIONED BY (…) with its columns.",
                path=entry.path,
            )
        if entry.is_dir:
            files += _visible_files_below(fs, fs.list(entry.path))
        elif entry.size:
            files.append(entry)
    return files


def plain_files(fs: FileSystem, contents: DirectoryContents) -> list[Entry]:
    """List the files in the bases and deltas of an insert-only table, at any depth, without hidden
    and empty ones.

    Raises:
        FormatError: There is a link to a directory, or a directory with = in its name.
    """
    return _visible_files_below(fs, contents.acid)


def _refuse_link(entry: Entry) -> None:
    """Raise FormatError for a link to a directory: the files behind it may belong to another
    table.
    """
    if entry.is_dir and entry.is_link:
        raise FormatError(
            f"'{entry.path}' is a link, and a table owns only the files in its own directory.",
            path=entry.path,
        )


def columns_of_originals(originals: Sequence[Entry]) -> list[list[tuple[str, str]]]:
    """Return the columns of each file, name and Hive's type; every footer is read.

    Raises:
        FormatError: A file is not ORC, or it has ACID events.
    """
    return run_in_threads(lambda entry: _original_columns(entry.path), originals)


def count_originals(contents: DirectoryContents) -> int:
    """Return the number of rows in all originals together, as their footers say."""
    return sum(run_in_threads(lambda entry: read_file_info(entry.path).rows, contents.originals))


def _original_columns(path: str) -> list[tuple[str, str]]:
    """Return the columns of a file, name and Hive's type. Raises FormatError if it is not ORC, or
    has ACID events.
    """
    try:
        info = read_file_info(path)
    except FormatError as error:
        raise FormatError(f"'{path}' cannot be a table's: {reason_of(error)}.", path=path) from None
    if info.is_acid:
        raise FormatError(f"'{path}' holds ACID events, and lies in no base or delta.", path=path)
    return columns_of(path)


def check_buckets(contents: DirectoryContents, num_buckets: int) -> None:
    """Raise an error for originals of a bucketed table whose names do not name a bucket of the
    table.

    Raises:
        FormatError: A name has no bucket id, or a bucket id that the table does not have.
    """
    for entry in contents.originals:
        if not is_original(entry.name) or bucket_id_of_original(entry.path) >= num_buckets:
            raise FormatError(
                f"'{entry.path}' is in no bucket of a table of {num_buckets}: the files of a "
                "CLUSTERED BY table are called after their buckets, 000000_0, 000001_0 …, and hold "
                "Hive's buckets (Spark's are others). Make the table elsewhere, and LOAD DATA.",
                path=entry.path,
            )


def check_names(contents: DirectoryContents) -> None:
    """Raise an error if originals that lie beside bases or deltas would be renamed: delete events
    there may name their rows.

    Raises:
        FormatError: There are bases or deltas, and originals without a bucket id in their names.
    """
    if contents.acid and contents.badly_named:
        path = contents.badly_named[0].path
        raise FormatError(
            f"'{path}' has no bucket id in its name (000000_0 …), so that its rows have no row "
            f"ids, and lies beside {contents.acid[0].name}.",
            path=path,
        )


def rename_originals(fs: FileSystem, contents: DirectoryContents) -> int:
    """Rename files without a bucket id in their names to Hive's names, durably.

    The new numbers go on above the highest bucket id in the existing names, in the order of the
    paths. After a crash a second run goes on, and gives every file the name that the first run
    would have given.

    Returns:
        The number of renamed files.
    """
    existing_paths = {entry.path for entry in contents.originals}
    numbers = [bucket_id_of_original(e.path) for e in contents.originals if is_original(e.name)]
    number = max(numbers, default=-1) + 1
    directories = set()
    for entry in contents.badly_named:
        directory = entry.path.rpartition("/")[0]
        while (target := f"{directory}/{_name(number)}") in existing_paths:
            number += 1
        fs.rename_file(entry.path, target)
        existing_paths.add(target)
        directories.add(directory)
        number += 1
    for directory in sorted(directories):
        fs.sync_directory(directory)
    return len(contents.badly_named)


def _name(number: int) -> str:
    """Return the name of a file for its number. Bucket ids have 12 bits; higher numbers get names
    of Hive's copies.
    """
    copy_number, bucket_id = divmod(number, BUCKET_ID_MAX + 1)
    return f"{plain_name(bucket_id)}_copy_{copy_number}" if copy_number else plain_name(bucket_id)


def unreadable_as_full_acid(fs: FileSystem, directory: str) -> str | None:
    """Return the first path that full-ACID readers would not see, or would read in another way, in
    the directory of an insert-only table without partitions, or of one partition; None if there is
    none.

    There may be only bases and deltas in it, and in these only files with names like 000000_0.
    Hidden names are skipped. The footers are not read.
    """
    for entry in fs.list(directory):
        if is_hidden(entry.name):
            continue
        if not entry.is_dir or parse_directory(entry.name) is None:
            return entry.path
        for child in fs.list(entry.path):
            if not is_hidden(child.name) and (child.is_dir or not is_original(child.name)):
                return child.path
    return None
