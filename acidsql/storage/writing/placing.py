"""Puts complete files under the names that readers look at, in the way that a file system allows.

Where a directory can be renamed, a hidden directory is filled, synced and renamed. So no reader
ever sees a directory without its marker or with half its files.

On an object store nothing can be renamed. There the driver alone, which is also the one that
commits, makes the objects: the markers first, then copies of what the tasks have written below a
hidden name. So a task that Spark has given up, and that goes on writing, changes nothing. Half a
directory may be seen, but no reader uses it: its name bears a write id, or a compaction's
transaction, that is still open. A request that failed may be carried out later, so after a failure
the transaction must not be committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acidsql.errors import WriteError
from acidsql.storage.event_records import Record
from acidsql.storage.files.filesystem import FileSystem
from acidsql.storage.files.memory import MEMORY, is_in_memory
from acidsql.storage.files.parallel import THREADS, run_in_threads

_COPY_MAX = 5 * 1024**3  # bytes that S3 copies in one request


@dataclass(frozen=True, slots=True)
class NewDirectory:
    """A base or delta to be made.

    Attributes:
        parent: The table's directory or a partition's.
        name: Its own name.
        files: The files to put into it, by their names there.
        markers: The contents of further files, by their names there.
    """

    parent: str
    name: str
    files: Mapping[str, Record]
    markers: Mapping[str, bytes]

    @property
    def path(self) -> str:
        """Where it will be."""
        return f"{self.parent}/{self.name}"

    @property
    def sizes(self) -> dict[str, int]:
        """The bytes of everything in it, by name."""
        files = {name: file.bytes for name, file in self.files.items()}
        return files | {name: len(data) for name, data in self.markers.items()}


def fill_staged_directory(fs: FileSystem, staged: str, new: NewDirectory) -> None:
    """Make a hidden directory, write the markers into it, then move the files there, and sync it.

    Raises:
        WriteError: A file is missing or has another length than its writer reported.
    """
    fs.create_directory(staged)
    for name, data in new.markers.items():
        fs.write_file(f"{staged}/{name}", data)
    for name, file in new.files.items():
        size = fs.size(file.path) if fs.exists(file.path) else None
        if size != file.bytes:
            raise _wrong_length_error(file.path, file.bytes, size)
        fs.rename(file.path, f"{staged}/{name}")
    fs.sync_directory(staged)


def place_directories(
    fs: FileSystem, location: str, staging: str, new: Sequence[NewDirectory], placed: list[str]
) -> None:
    """Put a statement's files into new directories, one after the other, each complete at once and
    durable; on an object store ``place_objects`` does it.

    Args:
        fs: The table's file system.
        location: The table's directory.
        staging: The statement's staging directory.
        new: The directories.
        placed: Receives the path of each directory before anything is done there. A directory that
            belongs to somebody else is taken out again.

    Raises:
        FileExistsError: Somebody else has a directory of this name.
        WriteError: A file is missing or has another length than its writer reported.
    """
    if not fs.has_directories:
        place_objects(fs, location, new, placed)
        return
    for number, directory in enumerate(new):
        staged = f"{staging}/{number}"
        fill_staged_directory(fs, staged, directory)
        _make_durable(fs, location, directory.parent)
        _rename_into_place(fs, staged, directory.path, placed)
        fs.sync_directory(directory.parent)


def place_objects(
    fs: FileSystem, location: str, new: Sequence[NewDirectory], placed: list[str]
) -> None:
    """Put files into new directories on an object store: write the markers, copy the files, and
    compare. The copied files stay where they are, too.

    Args:
        fs: The table's file system.
        location: The table's directory.
        new: The directories.
        placed: Receives the paths of all directories before anything is done there.

    Raises:
        FileExistsError: A directory of this name is there; nothing was done.
        WriteError: A file is too large to be copied, has another length than its writer reported,
            or somebody else's file is there, too.
    """
    _refuse_too_large(new)
    sizes_there = _sizes_there(fs, location, new)
    for directory in new:
        if sizes_there[directory.path]:
            raise FileExistsError(f"'{directory.path}' is there already")
    placed += [directory.path for directory in new]
    markers = [
        (f"{directory.path}/{name}", data)
        for directory in new
        for name, data in directory.markers.items()
    ]
    run_in_threads(lambda marker: fs.write_file(*marker), markers)
    files = [
        (file, f"{directory.path}/{name}")
        for directory in new
        for name, file in directory.files.items()
    ]
    run_in_threads(lambda file: _copy_object(fs, *file), files)
    sizes_there = _sizes_there(fs, location, new)
    for directory in new:
        _need_exact_contents(directory, sizes_there[directory.path])


def _copy_object(fs: FileSystem, file: Record, target: str) -> None:
    """Copy a file of the driver's memory, or of the same store, to an object."""
    if is_in_memory(file.path):
        fs.write_file(target, MEMORY.read(file.path))
    else:
        fs.copy_file(file.path, target)


def _sizes_there(
    fs: FileSystem, location: str, new: Sequence[NewDirectory]
) -> dict[str, dict[str, int]]:
    """Return the sizes, in bytes, of the files that these directories hold now: path of the
    directory → name → size. A directory that is not there has no files.
    """
    if len(new) > THREADS:
        fs = fs.cached_listings(location)
    children_by_directory = run_in_threads(fs.list_if_there, [directory.path for directory in new])
    return {
        directory.path: {entry.name: entry.size for entry in entries}
        for directory, entries in zip(new, children_by_directory, strict=True)
    }


def _need_exact_contents(new: NewDirectory, sizes_there: Mapping[str, int]) -> None:
    """Raise WriteError if a new directory does not hold exactly its files and markers, by name and
    size.
    """
    for name, expected in new.sizes.items():
        if sizes_there.get(name) != expected:
            raise _wrong_length_error(f"{new.path}/{name}", expected, sizes_there.get(name))
    if foreign_names := sizes_there.keys() - new.sizes:
        raise WriteError(
            f"'{new.path}/{min(foreign_names)}' was put there by somebody else, and its rows would "
            "be taken for this statement's. Nothing was changed; run the statement again.",
            path=new.path,
        )


def _refuse_too_large(new: Sequence[NewDirectory]) -> None:
    """Raise WriteError if a file has more bytes than a store copies in one request."""
    for file in (file for directory in new for file in directory.files.values()):
        if file.bytes > _COPY_MAX:
            raise WriteError(
                f"A file has {file.bytes} bytes, and a store copies at most {_COPY_MAX} in one "
                "request. Let the statement run in more tasks (REPARTITION), or give the table "
                "more buckets. Of LOAD DATA, split the file.",
                path=file.path,
            )


def _wrong_length_error(path: str, expected: int, size: int | None) -> WriteError:
    """Return the error for a file whose length is not the one that its writer reported; None: it is
    missing.
    """
    return WriteError(
        f"'{path}' should have {expected} bytes and has {size}. The driver and the executors must "
        "see the same warehouse.",
        path=path,
    )


def _rename_into_place(fs: FileSystem, staged: str, target: str, placed: list[str]) -> None:
    """Rename a staged directory to its target, which is added to ``placed`` before. Raises
    FileExistsError, and takes it out again, if the target is somebody else's.
    """
    # The target is noted first: a rename may succeed although its reply is lost.
    placed.append(target)
    try:
        fs.rename(staged, target)
    except FileExistsError:
        placed.remove(target)  # the directory there belongs to somebody else
        raise


def _make_durable(fs: FileSystem, location: str, parent: str) -> None:
    """Make a directory, with those above it, and sync each directory above it, up to ``location``,
    so that the new names last. Nothing happens if the directory is there.
    """
    if fs.exists(parent):
        return
    fs.create_directory(parent)
    path = parent
    while path != location:
        path = path.rpartition("/")[0]
        fs.sync_directory(path)
