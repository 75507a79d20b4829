"""Files that the driver keeps in memory until it puts them into an object store, each at once.

A stream to an object cannot be given up: even a writer that failed leaves an object. So no file is
streamed to the name that readers look at.
"""

from __future__ import annotations

import io
import uuid
from typing import BinaryIO

from acidsql.storage.files.interface import FileSystem, no_such_file_error

SCHEME = "acidsql-memory"

_files: dict[str, dict[str, bytes]] = {}  # by directory, then by path


class _MemoryFile(io.BytesIO):
    """A file for writing. ``close`` puts its bytes into ``contents`` under its path."""

    def __init__(self, contents: dict[str, bytes], path: str) -> None:
        super().__init__()
        self._contents, self._path = contents, path

    def close(self) -> None:
        if not self.closed:
            self._contents[self._path] = self.getvalue()
        super().close()


class MemoryFileSystem(FileSystem):
    """The directories that ``new_directory`` has made in this process."""

    def size(self, path: str) -> int:
        return len(self.read(path))

    def open_output(self, path: str) -> BinaryIO:
        return _MemoryFile(_files[path.rpartition("/")[0]], path)

    def open_input(self, path: str) -> BinaryIO:
        return io.BytesIO(self.read(path))

    def read(self, path: str) -> bytes:
        """Return the bytes of a whole file. Raises FileNotFoundError."""
        try:
            return _files[path.rpartition("/")[0]][path]
        except KeyError:
            raise no_such_file_error(path) from None

    def delete_directory(self, path: str) -> None:
        _files.pop(path, None)


MEMORY = MemoryFileSystem()


def is_in_memory(path: str) -> bool:
    """Whether a path is a directory that ``new_directory`` has made in this process, or is directly
    in one. The file itself need not exist.
    """
    return path.rpartition("/")[0] in _files or path in _files


def new_directory() -> str:
    """Make an empty directory in memory, and return its path, ``acidsql-memory:/`` and a random
    name. ``MEMORY.delete_directory`` frees it.
    """
    path = f"{SCHEME}:/{uuid.uuid4().hex}"
    _files[path] = {}
    return path
