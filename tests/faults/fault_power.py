"""A power cut: changes of names that were not synced are undone, as a file system may do."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from fault_around import Around

from acidsql.storage.files.filesystem import FileSystem, local_path_of


@dataclass
class _Note:
    """One change of a name: ``made``, ``moved`` here from another name, or ``gone`` into the
    attic."""

    kind: str
    path: Path
    other: Path | None = None


class Disk:
    """The changes of a disk that are not synced yet.

    Args:
        attic: The directory that keeps deleted files.
    """

    def __init__(self, attic: Path) -> None:
        self._attic, self._notes = attic, list[_Note]()
        self._number = 0

    def __call__(self, inner: FileSystem) -> FileSystem:
        """A file system on this disk."""
        return _Noting(inner, self)

    def note(self, kind: str, path: str, other: Path | None = None) -> None:
        """Note that the name ``path`` has changed."""
        self._notes.append(_Note(kind, Path(path), other))

    def moved(self, source: str, target: str) -> None:
        """Note that a file or directory has a new name. Notes about names in it move with it."""
        for note in self._notes:
            if Path(source) in note.path.parents:
                note.path = Path(target) / note.path.relative_to(source)
        self.note("moved", target, Path(source))

    def keep(self, path: str) -> None:
        """Move a file or directory into the attic instead of deleting it."""
        if os.path.lexists(path):
            self._number += 1
            kept = self._attic / str(self._number)
            os.rename(path, kept)
            self.note("gone", path, kept)

    def synced(self, path: str) -> None:
        """Forget the notes about the names in a directory: they are durable now."""
        self._notes = [note for note in self._notes if note.path.parent != Path(path)]

    def cut(self) -> None:
        """Cut the power: undo all noted changes."""
        for note in reversed(self._notes):
            if note.kind == "made" and note.path.is_dir():
                shutil.rmtree(note.path)
            elif note.kind == "made":
                note.path.unlink(missing_ok=True)
            elif note.kind == "moved" and os.path.lexists(note.path):
                self._rename(note.path, note.other)
            elif note.kind == "gone":
                self._rename(note.other, note.path)
        self._notes.clear()

    @staticmethod
    def _rename(source: Any, target: Any) -> None:
        if target.parent.is_dir():  # otherwise it is gone together with its directory
            os.rename(source, target)


class _Noting(Around):
    """A file system that tells the disk each change of a name."""

    def __init__(self, inner: FileSystem, disk: Disk) -> None:
        super().__init__(inner)
        self._disk = disk

    def create_directory(self, path: str) -> None:
        missing = []
        above = local_path_of(path)
        while not os.path.lexists(above):
            missing.append(above)
            above = os.path.dirname(above)
        self._inner.create_directory(path)
        for made in reversed(missing):
            self._disk.note("made", made)

    def open_output(self, path: str) -> BinaryIO:
        self._disk.note("made", path)
        return self._inner.open_output(path)

    def rename(self, source: str, target: str) -> None:
        self._inner.rename(source, target)
        self._disk.moved(source, target)

    def rename_file(self, source: str, target: str) -> None:
        self._inner.rename_file(source, target)
        self._disk.moved(source, target)

    def delete_directory(self, path: str) -> None:
        self._disk.keep(path)

    def delete_file(self, path: str) -> None:
        self._disk.keep(path)

    def remove_empty_directory(self, path: str) -> bool:
        is_empty = os.path.isdir(path) and not os.listdir(path)
        if is_empty:
            self._disk.keep(path)
        return is_empty

    def sync_directory(self, path: str) -> None:
        self._disk.synced(path)
