"""What acidsql needs of a file system. ``filesystem`` says which one a location is on."""

from __future__ import annotations

from contextlib import suppress
from typing import BinaryIO, NamedTuple


class Entry(NamedTuple):
    """One child of a directory.

    Attributes:
        name: The last part of its path.
        path: The whole path, in the form of the path that was listed.
        is_dir: True for a directory.
        size: Bytes of a file; 0 for a directory.
    """

    name: str
    path: str
    is_dir: bool
    size: int


_Entries = list[Entry]  # the class has a method of the name of list


class FileSystem:
    """What acidsql needs of a file system.

    Paths are plain or begin with the file system's scheme, as a metastore has them. Nothing in
    them is unescaped, as in the text of Hadoop's ``Path``: the ``%3A`` in a partition's directory
    stands for itself, and a blank is a blank.
    """

    def list(self, path: str) -> list[Entry]:
        """The children of a directory, by name.

        A child that goes away meanwhile is left out alone. A link that leads nowhere is a file:
        whoever needs the file fails when he opens it.

        Raises:
            FileNotFoundError: There is no such directory.
        """
        raise NotImplementedError

    def list_if_there(self, path: str) -> _Entries:
        """The same, for those who may find no directory there: then there are no children."""
        try:
            return self.list(path)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def exists(self, path: str) -> bool:
        """True for a file or a directory."""
        raise NotImplementedError

    def size(self, path: str) -> int:
        """Bytes of a file. Raises FileNotFoundError."""
        raise NotImplementedError

    def create_directory(self, path: str) -> None:
        """Make a directory and its parents; it may be there already."""
        raise NotImplementedError

    def write_file(self, path: str, data: bytes) -> None:
        """Write a whole file and sync it."""
        with self.open_output(path) as file:
            file.write(data)

    def open_output(self, path: str) -> BinaryIO:
        """A new file for writing; an old one is cut. ``close()`` syncs it to disk."""
        raise NotImplementedError

    def open_input(self, path: str) -> BinaryIO:
        """A file for reading, with random access. Raises FileNotFoundError."""
        raise NotImplementedError

    def rename(self, source: str, target: str) -> None:
        """Move a file or a directory. Raises FileExistsError; never overwrites."""
        raise NotImplementedError

    def rename_file(self, source: str, target: str) -> None:
        """Give a file another name in one step: it always has one of the two, never both.

        Raises FileExistsError; the caller sees to it that nobody makes the target meanwhile.
        """
        raise NotImplementedError

    def delete_directory(self, path: str) -> None:
        """Delete a directory with all below it; it may be missing."""
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        """Delete a file. Raises FileNotFoundError."""
        raise NotImplementedError

    def delete_file_if_there(self, path: str) -> None:
        """Delete a file that somebody else may have deleted."""
        with suppress(FileNotFoundError):
            self.delete_file(path)

    def remove_empty_directory(self, path: str) -> bool:
        """Delete a directory if it is empty. False if it is not, or is missing."""
        raise NotImplementedError

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable (HDFS does that by itself)."""
        raise NotImplementedError
