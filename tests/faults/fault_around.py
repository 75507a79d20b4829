"""A file system around another one."""

from __future__ import annotations

from typing import BinaryIO

from acidsql.storage.files.filesystem import Entry, FileSystem


class Around(FileSystem):
    """Reads as the inner file system does. A subclass says how it writes."""

    def __init__(self, inner: FileSystem) -> None:
        self._inner = inner

    def list(self, path: str) -> list[Entry]:
        return self._inner.list(path)

    def exists(self, path: str) -> bool:
        return self._inner.exists(path)

    def size(self, path: str) -> int:
        return self._inner.size(path)

    def open_input(self, path: str) -> BinaryIO:
        return self._inner.open_input(path)
