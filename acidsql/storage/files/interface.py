"""The interface to a file system. ``filesystem`` chooses the file system of a location."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO, NamedTuple


class Entry(NamedTuple):
    """One child of a directory.

    Attributes:
        name: The last part of its path.
        path: The whole path, in the form of the path that was listed.
        is_dir: True for a directory.
        size: Bytes of a file; 0 for a directory.
        is_link: True for a link, whatever it leads to. Readers follow a link. A deletion deletes
            the link and nothing behind it.
    """

    name: str
    path: str
    is_dir: bool
    size: int
    is_link: bool = False


_Entries = list[Entry]  # inside the class, ``list`` is the name of a method


def no_such_file_error(path: str) -> FileNotFoundError:
    """Return a FileNotFoundError for a file or directory that is not there."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def length_of(file: BinaryIO) -> int:
    """Return the size of an open file in bytes, without a request to an object store. Arrow's files
    are asked for their ``size()``. In any other file the position moves to the end.
    """
    size = getattr(file, "size", None)  # Arrow's files: on GCS none can be at its own end
    return file.seek(0, os.SEEK_END) if size is None else int(size())


class FileSystem:
    """The operations that acidsql needs of a file system.

    Paths are plain, or begin with the file system's scheme, as in a metastore. Paths have no
    escapes, as in the text of Hadoop's ``Path``: the ``%3A`` in a partition's directory stands for
    itself, and a blank is a blank.

    Attributes:
        has_directories: A directory is a thing of its own, which ``rename`` moves in one step.
            False on an object store: there a directory is only a common beginning of names. It
            exists while there is such a name, and nothing can be renamed.
        can_remove_empty: ``remove_empty_directory`` is one step. Elsewhere another session may put
            a file there between the look and the deletion, and the file would be deleted, too.
        small_file: The size in bytes up to which Python tasks read a file in less time than Spark:
            they ask an object store once or twice, Spark's ORC reader ten times. 0 elsewhere.
        unsynced_reason: Why a closed file may be lost with the power, as a sentence without its
            full stop. None: a closed file is on the disks.
    """

    has_directories = True
    can_remove_empty = False
    small_file = 0
    unsynced_reason: str | None = None

    def cached_listings(self, location: str, below: Sequence[str] = ("",)) -> FileSystem:
        """Return a file system that lists some directories now, and answers from these lists later.

        Args:
            location: A table's directory.
            below: The paths of the directories below it that the caller will list (``[""]``: the
                table's own).

        Returns:
            A file system for the same files: ``list`` of these directories is as old as this call.
            It is this file system itself where a list takes little time.
        """
        return self

    def list(self, path: str) -> list[Entry]:
        """List the children of a directory, sorted by name.

        A child that disappears meanwhile is left out, and only this child. A broken link is listed
        as a file, and cannot be opened.

        Raises:
            FileNotFoundError: There is no such directory.
        """
        raise NotImplementedError

    def list_if_there(self, path: str) -> _Entries:
        """List the children of a directory; an empty list if there is no such directory, or it is
        a file.
        """
        try:
            return self.list(path)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def exists(self, path: str) -> bool:
        """Whether there is a file, directory or link at a path, even a broken link."""
        raise NotImplementedError

    def is_link(self, path: str) -> bool:
        """Whether a path is a link. Always False on a file system without links (HDFS)."""
        return False

    def first_link_on_path(self, location: str, below: str = "") -> str | None:
        """Return the path of the first link among ``location``, the directories from there to
        ``below``, and ``below`` itself (a path below ``location``). None if there is no link.

        Files behind a link may belong to somebody else. They are read, but never deleted.
        """
        path = location
        for part in ("", *filter(None, below.split("/"))):
            path = f"{path}/{part}".rstrip("/")
            if self.is_link(path):
                return path
        return None

    def size(self, path: str) -> int:
        """Return the size of a file in bytes. Raises FileNotFoundError."""
        raise NotImplementedError

    def create_directory(self, path: str) -> None:
        """Make a directory and its parents. The directory may exist already."""
        raise NotImplementedError

    def write_file(self, path: str, data: bytes) -> None:
        """Write a whole file and sync it. An existing file is replaced."""
        with self.open_output(path) as file:
            file.write(data)

    def open_output(self, path: str) -> BinaryIO:
        """Open a file for writing; an existing file is emptied. ``close()`` syncs it to disk."""
        raise NotImplementedError

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading, with random access. Raises FileNotFoundError."""
        raise NotImplementedError

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file within an object store; no other file system can. An existing target is
        replaced.

        If this raises an error, the store may copy the file nevertheless, and later. Raises
        FileNotFoundError without a source.
        """
        raise NotImplementedError

    def rename(self, source: str, target: str) -> None:
        """Move a file or a directory. Raises FileExistsError if the target exists."""
        raise NotImplementedError

    def rename_file(self, source: str, target: str) -> None:
        """Rename a file in one step: the file always has exactly one of the two names.

        Raises FileExistsError if the target exists. The caller must make sure that nobody makes the
        target meanwhile.
        """
        raise NotImplementedError

    def delete_directory(self, path: str) -> None:
        """Delete a directory with all its contents. The directory may be missing.

        A link, here or inside, is deleted itself; nothing behind it is deleted.
        """
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        """Delete a file. Raises FileNotFoundError."""
        raise NotImplementedError

    def delete_file_if_there(self, path: str) -> None:
        """Delete a file, if it exists."""
        with suppress(FileNotFoundError):
            self.delete_file(path)

    def remove_empty_directory(self, path: str) -> bool:
        """Delete a directory if it is empty. False if it is not empty, or does not exist.

        Without ``can_remove_empty``, nobody else may write there meanwhile.
        """
        raise NotImplementedError

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable (HDFS does this by itself)."""
        raise NotImplementedError
