"""Files of this machine, by ``os``, which can sync files: a commit needs synced files."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import BinaryIO

from acidsql.acid.paths import is_local, normal, plain_path
from acidsql.storage.files.interface import Entry, FileSystem

_BUFFER = 1 << 20  # bytes


class _SyncedFile(io.FileIO):
    """A file for writing whose ``close`` first syncs it to the disk."""

    def close(self) -> None:
        """Sync the file to the disk and close it, also if syncing fails. A closed file stays as it
        is.
        """
        if not self.closed:
            try:
                os.fsync(self.fileno())
            finally:
                super().close()


class LocalFileSystem(FileSystem):
    """``file:`` and plain paths."""

    can_remove_empty = True

    def list(self, path: str) -> list[Entry]:
        with os.scandir(plain_path(path)) as scan:
            entries = [_entry(path, dir_entry) for dir_entry in scan]
        return sorted(entry for entry in entries if entry is not None)

    def exists(self, path: str) -> bool:
        """Whether there is a file, directory or link, even a broken link. Raises PermissionError if
        the path cannot be accessed.
        """
        # os.path.lexists returns False also if the path cannot be accessed.
        try:
            os.lstat(plain_path(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_link(self, path: str) -> bool:
        return os.path.islink(plain_path(path))

    def size(self, path: str) -> int:
        return os.stat(plain_path(path)).st_size

    def create_directory(self, path: str) -> None:
        os.makedirs(plain_path(path), exist_ok=True)

    def open_output(self, path: str) -> BinaryIO:
        return io.BufferedWriter(_SyncedFile(plain_path(path), "w"), _BUFFER)

    def open_input(self, path: str) -> BinaryIO:
        return open(plain_path(path), "rb")

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory; raise FileExistsError if the target exists. A file gets its new
        name before it loses the old one. A directory is tested and moved in two steps, and replaces
        an empty one that somebody makes between them.
        """
        old, new = plain_path(source), plain_path(target)
        if os.path.isdir(old):
            # rename(2) replaces a directory only if it is empty: in the race that this test
            # leaves open, nothing can be lost.
            if self.exists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
            os.rename(old, new)
        else:
            os.link(old, new)  # fails if the target exists, which rename(2) of a file does not
            os.unlink(old)

    def rename_file(self, source: str, target: str) -> None:
        """Rename a file in one step; raise FileExistsError if the target existed before."""
        new = plain_path(target)
        if self.exists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        os.rename(plain_path(source), new)

    def delete_directory(self, path: str) -> None:
        """Delete a directory with all its contents. A link, as ``path`` or inside, is deleted
        itself, and nothing behind it. The directory may be missing. Others may delete it at the
        same time: the deletion is tried again until the path is gone.
        """
        while self.exists(path):
            with suppress(FileNotFoundError):  # somebody else deletes it, too
                if self.is_link(path):
                    os.unlink(plain_path(path))
                else:
                    shutil.rmtree(plain_path(path))  # it follows no links

    def delete_file(self, path: str) -> None:
        os.unlink(plain_path(path))

    def remove_empty_directory(self, path: str) -> bool:
        """Delete a directory in one step if it is empty, and return True. Return False if it is not
        empty, or missing. Any other OSError is raised, also for a file.
        """
        try:
            os.rmdir(plain_path(path))
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                return False
            raise
        return True

    def sync_directory(self, path: str) -> None:
        """Sync a directory to the disk, so that the names in it are durable."""
        descriptor = os.open(plain_path(path), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def real_location(location: str) -> str:
    """Return the real path of a location: absolute, without links. Locations are stored in this
    form.

    A scheme ``file:`` stays, in lower case and without a host. For a location that is not on this
    machine, return the normal form of the text: without ``..``, ``//`` and a ``/`` at the end.
    """
    if not is_local(location):
        return normal(location)
    scheme = "file:" if location[:5].lower() == "file:" else ""
    return scheme + os.path.realpath(plain_path(location))


def real_locations(locations: Iterable[str]) -> Iterator[str]:
    """Yield ``real_location`` of each location, in order. This is fast if most of them have the
    same parent directory: the real path of a parent is looked up once, and then only whether the
    location itself is a link.
    """
    above = cache(real_location)
    for location in locations:
        directory, _, name = location.rpartition("/")
        is_odd = name in ("", ".", "..") or directory[-1:] in ("", "/", ":")
        # If x is missing, islink does not see a link at x/../link.
        is_odd = is_odd or ".." in directory
        if is_odd or (is_local(location) and os.path.islink(plain_path(location))):
            yield real_location(location)
        else:
            yield f"{above(directory)}/{name}"


def _entry(parent: str, dir_entry: os.DirEntry[str]) -> Entry | None:
    """Return a child of a directory as an ``Entry``. A link has the kind and size of its target; a
    broken link counts as a file. None if the child was deleted after the directory was read.
    """
    try:
        is_dir = dir_entry.is_dir()
        size = 0 if is_dir else dir_entry.stat().st_size
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP):
            raise
        try:  # a broken link has a size above 0, so readers do not skip it as an empty file
            is_dir, size = False, dir_entry.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            return None
    path = f"{parent.rstrip('/')}/{dir_entry.name}"
    return Entry(dir_entry.name, path, is_dir, size, dir_entry.is_symlink())
