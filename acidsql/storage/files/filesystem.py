"""The file system of a location: local or HDFS. All access to files goes through a FileSystem.

Local files are accessed by ``os``, because a commit needs files that are synced to the disk, and
Arrow's local file system cannot sync. HDFS is accessed by Arrow, which needs Hadoop's native
client. Object stores are refused, because they have no rename that fails if the target exists. A
test that must fail at the n-th call installs a wrapper (``wrap_filesystems``).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import BinaryIO, cast
from urllib.parse import SplitResult, urlsplit

import pyarrow.fs as pafs

from acidsql.acid.paths import local_path_of, scheme_and_root
from acidsql.errors import SettingError, UnsupportedError
from acidsql.storage.files.interface import Entry, FileSystem
from acidsql.storage.files.local import LocalFileSystem, real, reals

OBJECT_STORES = frozenset([
    "s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "wasb", "wasbs", "adl", "oss", "cos", "cosn",
    "obs", "o3", "ofs", "swift", "dbfs",
])  # fmt: skip


class ArrowFileSystem(FileSystem):
    """One of Arrow's file systems: HDFS, in tests also the local one.

    Args:
        arrow: Arrow's file system.
        root: The part of a path before Arrow's own path (``hdfs://name:8020``).
    """

    def __init__(self, arrow: pafs.FileSystem, root: str = "") -> None:
        self._arrow, self._root = arrow, root

    def _inside(self, path: str) -> str:
        if self._root and path.startswith(self._root):
            path = path[len(self._root) :]
        elif ":" in path.split("/", 1)[0]:
            path = "/" + path.split(":", 1)[1].lstrip("/")  # hdfs:/path, without an authority
        return path or "/"

    def list(self, path: str) -> list[Entry]:
        inside = self._inside(path)
        with self._missing_is_told(path):
            found = self._arrow.get_file_info(pafs.FileSelector(inside))
        base = path.rstrip("/")
        return sorted(
            Entry(
                info.base_name,
                f"{base}/{info.base_name}",
                info.type == pafs.FileType.Directory,
                info.size or 0,
            )
            for info in found
            if info.type != pafs.FileType.NotFound  # gone meanwhile
        )

    def _info(self, path: str) -> pafs.FileInfo:
        return self._arrow.get_file_info(self._inside(path))

    def exists(self, path: str) -> bool:
        return bool(self._info(path).type != pafs.FileType.NotFound)

    def size(self, path: str) -> int:
        info = self._info(path)
        if info.type != pafs.FileType.File:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return int(info.size)

    def create_directory(self, path: str) -> None:
        self._arrow.create_dir(self._inside(path), recursive=True)

    def open_output(self, path: str) -> BinaryIO:
        return cast(BinaryIO, self._arrow.open_output_stream(self._inside(path), compression=None))

    def open_input(self, path: str) -> BinaryIO:
        return cast(BinaryIO, self._arrow.open_input_file(self._inside(path)))

    def rename(self, source: str, target: str) -> None:
        # HDFS itself refuses an existing file, but moves *into* an existing directory.
        if self.exists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        with self._missing_is_told(source):
            self._arrow.move(self._inside(source), self._inside(target))

    def rename_file(self, source: str, target: str) -> None:
        self.rename(source, target)

    def delete_directory(self, path: str) -> None:
        if self.exists(path):
            with suppress(FileNotFoundError), self._missing_is_told(path):
                self._arrow.delete_dir(self._inside(path))

    def delete_file(self, path: str) -> None:
        with self._missing_is_told(path):
            self._arrow.delete_file(self._inside(path))

    @contextmanager
    def _missing_is_told(self, path: str) -> Iterator[None]:
        """Raise FileNotFoundError for a missing file; HDFS raises an input/output error."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            if self.exists(path):
                raise
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error

    def remove_empty_directory(self, path: str) -> bool:
        if not self.exists(path) or self.list_if_there(path):
            return False
        self._arrow.delete_dir(self._inside(path))
        return True

    def sync_directory(self, path: str) -> None:
        """Do nothing: the name node logs a new name before it answers."""


# ── which file system a location is on ───────────────────────────────────────────────────────

Wrapper = Callable[[FileSystem], FileSystem]
_wrapper: list[Wrapper] = []


def filesystem_for(location: str) -> FileSystem:
    """The file system of a path or URI. The call is cheap enough for each file.

    Raises:
        UnsupportedError: The location is on an object store, or its scheme is unknown.
        SettingError: The location is on HDFS, and Hadoop's native client is missing or not set up;
            or the location names no host, and there is no default host.
    """
    found = _open(*scheme_and_root(location))
    return _wrapper[-1](found) if _wrapper else found


@contextmanager
def wrap_filesystems(wrapper: Wrapper) -> Iterator[None]:
    """For tests: inside the block, ``filesystem_for`` gives ``wrapper(file system)``."""
    _wrapper.append(wrapper)
    try:
        yield
    finally:
        _wrapper.remove(wrapper)


@lru_cache(maxsize=16)
def _open(scheme: str, root: str) -> FileSystem:
    if scheme in ("", "file"):
        return LocalFileSystem()
    if scheme == "hdfs":
        return ArrowFileSystem(_hadoop(urlsplit(root)), root)
    what = "an object store" if scheme in OBJECT_STORES else "an unknown file system"
    raise UnsupportedError(
        f"'{scheme}:' is {what}; ACID tables can lie on file: and hdfs: only", scheme=scheme
    )


def _hadoop(address: SplitResult) -> pafs.FileSystem:
    try:
        # "default" is fs.defaultFS of Hadoop's own configuration.
        arrow = pafs.HadoopFileSystem(address.hostname or "default", address.port or 0)
    except OSError as error:
        raise SettingError(
            f"Hadoop's native client cannot be opened here: {str(error).splitlines()[0]}. It needs "
            "libhdfs.so in $HADOOP_HOME/lib/native or $ARROW_LIBHDFS_DIR, a Java in $JAVA_HOME, "
            "and in $CLASSPATH what `hadoop classpath --glob` prints; on executors, too. Set them "
            "before Python starts.",
        ) from error
    if address.hostname is None:
        _need_hdfs(arrow)
    return arrow


def _need_hdfs(default: pafs.FileSystem) -> None:
    """Refuse a default that is no HDFS: without a configuration it is this machine's disk."""
    try:
        default.get_file_info(pafs.FileSelector("/none", allow_not_found=True))
    except OSError as error:
        raise SettingError(
            f"'hdfs:///' names no host, and the default file system here is no HDFS that answers: "
            f"{error}. Name the host (hdfs://name:8020/…), or let $CLASSPATH begin with the "
            "directory of a core-site.xml that says fs.defaultFS.",
        ) from error


__all__ = [
    "OBJECT_STORES", "ArrowFileSystem", "Entry", "FileSystem", "LocalFileSystem", "filesystem_for",
    "local_path_of", "real", "reals", "wrap_filesystems",
]  # fmt: skip
