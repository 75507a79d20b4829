"""An object store on the disk: no directories, nothing is renamed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from fault_around import Around

from acidsql.storage.files.filesystem import FileSystem
from acidsql.storage.files.memory import MEMORY


class StoreOnDisk(Around):
    """Behaves as an object store does, and keeps the objects as files."""

    has_directories = False

    @staticmethod
    def over(inner: FileSystem) -> FileSystem:
        """The store instead of the disk. Files in memory stay there."""
        return inner if inner is MEMORY else StoreOnDisk(inner)

    def create_directory(self, path: str) -> None:
        pass  # a prefix needs nothing

    def open_output(self, path: str) -> BinaryIO:
        _make_parent(path)
        return self._inner.open_output(path)

    def begin_copy(self, source: str, target: str) -> Callable[[], None]:
        """The rest of a copy that the store has begun: it has read the source."""
        data = Path(source).read_bytes()

        def end() -> None:
            _make_parent(target)
            Path(f"{target}.half").write_bytes(data)
            os.rename(f"{target}.half", target)  # an object is there as a whole or not at all

        return end

    def delete_directory(self, path: str) -> None:
        self._inner.delete_directory(path)

    def delete_file(self, path: str) -> None:
        self._inner.delete_file(path)

    def remove_empty_directory(self, path: str) -> bool:
        return self._inner.remove_empty_directory(path)

    def sync_directory(self, path: str) -> None:
        pass


def _make_parent(path: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
