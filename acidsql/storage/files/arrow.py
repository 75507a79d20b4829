"""A file system by Arrow: HDFS. ``object_store`` builds upon it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, cast

import pyarrow.fs as pafs

from acidsql.storage.files.interface import Entry, FileSystem, no_such_file_error


class ArrowFileSystem(FileSystem):
    """One of Arrow's file systems: HDFS, in tests also the local one.

    Args:
        arrow: Arrow's file system.
        root: The part of a path before Arrow's own path (``hdfs://name:8020``).
    """

    def __init__(self, arrow: pafs.FileSystem, root: str = "") -> None:
        self._arrow, self._root = arrow, root

    def _arrow_path(self, path: str) -> str:
        """Return the path as Arrow wants it: without this file system's root, or else with one
        ``/`` in place of a ``scheme:`` and the slashes after it; ``/`` if nothing is left.
        """
        if self._root and path.startswith(self._root):
            path = path[len(self._root) :]
        elif ":" in path.split("/", 1)[0]:
            path = "/" + path.split(":", 1)[1].lstrip("/")  # hdfs:/path, without an authority
        return path or "/"

    def list(self, path: str) -> list[Entry]:
        """List the children of a directory, sorted by name. Children that are gone meanwhile are
        left out. Raises FileNotFoundError.
        """
        inside = self._arrow_path(path)
        with self._file_not_found_errors(path):
            infos = self._arrow.get_file_info(pafs.FileSelector(inside))
        base = path.rstrip("/")
        return sorted(
            Entry(
                info.base_name,
                f"{base}/{info.base_name}",
                info.type == pafs.FileType.Directory,
                info.size or 0,
            )
            for info in infos
            if info.type != pafs.FileType.NotFound  # gone meanwhile
        )

    def _info(self, path: str) -> pafs.FileInfo:
        return self._arrow.get_file_info(self._arrow_path(path))

    def exists(self, path: str) -> bool:
        return bool(self._info(path).type != pafs.FileType.NotFound)

    def size(self, path: str) -> int:
        """Return the size of a file in bytes. Raises FileNotFoundError, for a directory too."""
        info = self._info(path)
        if info.type != pafs.FileType.File:
            raise no_such_file_error(path)
        return int(info.size)

    def create_directory(self, path: str) -> None:
        self._arrow.create_dir(self._arrow_path(path), recursive=True)

    def open_output(self, path: str) -> BinaryIO:
        return cast(
            BinaryIO, self._arrow.open_output_stream(self._arrow_path(path), compression=None)
        )

    def open_input(self, path: str) -> BinaryIO:
        with self._file_not_found_errors(path):
            return cast(BinaryIO, self._arrow.open_input_file(self._arrow_path(path)))

    def rename(self, source: str, target: str) -> None:
        """Move a file or a directory. Raises FileExistsError if the target exists, and
        FileNotFoundError without a source. The test and the move are two steps.
        """
        # HDFS itself refuses an existing file, but moves *into* an existing directory.
        if self.exists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        with self._file_not_found_errors(source):
            self._arrow.move(self._arrow_path(source), self._arrow_path(target))

    def rename_file(self, source: str, target: str) -> None:
        self.rename(source, target)

    def delete_directory(self, path: str) -> None:
        if self.exists(path):
            with suppress(FileNotFoundError), self._file_not_found_errors(path):
                self._arrow.delete_dir(self._arrow_path(path))

    def delete_file(self, path: str) -> None:
        with self._file_not_found_errors(path):
            self._arrow.delete_file(self._arrow_path(path))

    @contextmanager
    def _file_not_found_errors(self, path: str) -> Iterator[None]:
        """Raise a FileNotFoundError that names ``path`` in place of the block's FileNotFoundError,
        and of any other OSError if ``path`` does not exist: HDFS raises an input/output error
        then. Other errors pass.
        """
        try:
            yield
        except OSError as error:
            if not isinstance(error, FileNotFoundError) and not self._is_missing(path, error):
                raise
            raise no_such_file_error(path) from error

    def _is_missing(self, path: str, error: OSError) -> bool:
        """Whether a path that led to an error does not exist. The file system is asked again."""
        return not self.exists(path)

    def remove_empty_directory(self, path: str) -> bool:
        """Delete a directory if it is empty, in two steps, and return True. Return False if it is
        not empty, or missing.
        """
        if not self.exists(path) or self.list_if_there(path):
            return False
        self._arrow.delete_dir(self._arrow_path(path))
        return True

    def sync_directory(self, path: str) -> None:
        """Do nothing: the name node logs a new name before it answers."""
