"""Every touch of a file goes through a FileSystem, local or HDFS.

Local files go by ``os``, because a commit is worth nothing before its files are synced to the
disk and Arrow's local file system cannot do that. HDFS goes by Arrow, which needs Hadoop's native
client there. Object stores have no rename that fails if the target exists, and are refused by
name. A test that wants to fail at the n-th call installs a wrapper (``wrap_filesystems``).
"""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import BinaryIO, NamedTuple, cast
from urllib.parse import SplitResult, unquote, urlsplit

import pyarrow.fs as pafs

from acidsql.errors import FormatError, SettingError, UnsupportedError

OBJECT_STORES = frozenset([
    "s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "wasb", "wasbs", "adl", "oss", "cos", "cosn",
    "obs", "o3", "ofs", "swift", "dbfs",
])  # fmt: skip
_BUFFER = 1 << 20  # bytes


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


class FileSystem:
    """What acidsql needs of a file system.

    Paths are plain or begin with the file system's scheme, as a metastore has them. Nothing in
    them is unescaped, as in the text of Hadoop's ``Path``: the ``%3A`` in a partition's directory
    stands for itself, and a blank is a blank.
    """

    def list(self, path: str) -> list[Entry]:
        """The children of a directory, by name; none if it is missing."""
        raise NotImplementedError

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

    def remove_empty_directory(self, path: str) -> bool:
        """Delete a directory if it is empty. False if it is not, or is missing."""
        raise NotImplementedError

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable (HDFS does that by itself)."""
        raise NotImplementedError


class _SyncedFile(io.FileIO):
    """A file for writing whose ``close`` first syncs it to the disk."""

    def close(self) -> None:
        if not self.closed:
            try:
                os.fsync(self.fileno())
            finally:
                super().close()


class LocalFileSystem(FileSystem):
    """``file:`` and plain paths."""

    def list(self, path: str) -> list[Entry]:
        try:
            with os.scandir(plain_path(path)) as found:
                entries = [_entry(path, item) for item in found]
        except FileNotFoundError:
            return []
        return sorted(entries)

    def exists(self, path: str) -> bool:
        return os.path.lexists(plain_path(path))

    def size(self, path: str) -> int:
        return os.stat(plain_path(path)).st_size

    def create_directory(self, path: str) -> None:
        os.makedirs(plain_path(path), exist_ok=True)

    def open_output(self, path: str) -> BinaryIO:
        return io.BufferedWriter(_SyncedFile(plain_path(path), "w"), _BUFFER)

    def open_input(self, path: str) -> BinaryIO:
        return open(plain_path(path), "rb")

    def rename(self, source: str, target: str) -> None:
        old, new = plain_path(source), plain_path(target)
        if os.path.isdir(old):
            # rename(2) replaces a directory only if it is empty: in the race that this test
            # leaves open, nothing can be lost.
            if os.path.lexists(new):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
            os.rename(old, new)
        else:
            os.link(old, new)  # fails if the target exists, which rename(2) of a file does not
            os.unlink(old)

    def rename_file(self, source: str, target: str) -> None:
        new = plain_path(target)
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        os.rename(plain_path(source), new)

    def delete_directory(self, path: str) -> None:
        if os.path.lexists(plain_path(path)):
            shutil.rmtree(plain_path(path))

    def delete_file(self, path: str) -> None:
        os.unlink(plain_path(path))

    def remove_empty_directory(self, path: str) -> bool:
        try:
            os.rmdir(plain_path(path))
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                return False
            raise
        return True

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(plain_path(path), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class ArrowFileSystem(FileSystem):
    """Any of Arrow's file systems: HDFS, in tests also its local one.

    Args:
        arrow: Arrow's file system.
        root: What paths begin with before Arrow's own path (``hdfs://name:8020``).
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
        found = self._arrow.get_file_info(pafs.FileSelector(inside, allow_not_found=True))
        base = path.rstrip("/")
        return sorted(
            Entry(
                info.base_name,
                f"{base}/{info.base_name}",
                info.type == pafs.FileType.Directory,
                info.size or 0,
            )
            for info in found
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
            self._arrow.delete_dir(self._inside(path))

    def delete_file(self, path: str) -> None:
        with self._missing_is_told(path):
            self._arrow.delete_file(self._inside(path))

    @contextmanager
    def _missing_is_told(self, path: str) -> Iterator[None]:
        """HDFS calls a file that is missing an input/output error."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            if self.exists(path):
                raise
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error

    def remove_empty_directory(self, path: str) -> bool:
        if not self.exists(path) or self.list(path):
            return False
        self._arrow.delete_dir(self._inside(path))
        return True

    def sync_directory(self, path: str) -> None:
        """Nothing: the name node logs a name before it answers."""


# ── which file system a location is on ───────────────────────────────────────────────────────

Wrapper = Callable[[FileSystem], FileSystem]
_wrapper: list[Wrapper] = []


def filesystem_for(location: str) -> FileSystem:
    """The file system of a path or URI; cheap enough to call for each file.

    Raises:
        UnsupportedError: It is on an object store or of an unknown scheme.
        SettingError: It is on HDFS, and Hadoop's native client is missing here or not set up, or
            it names no host and there is no default one.
    """
    found = _open(*scheme_and_root(location))
    return _wrapper[-1](found) if _wrapper else found


@contextmanager
def wrap_filesystems(wrapper: Wrapper) -> Iterator[None]:
    """For tests: in this process ``filesystem_for`` gives ``wrapper(file system)`` meanwhile."""
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
    """Without a configuration the default is this machine's disk, which would be written to."""
    try:
        default.get_file_info(pafs.FileSelector("/none", allow_not_found=True))
    except OSError as error:
        raise SettingError(
            f"'hdfs:///' names no host, and the default file system here is no HDFS that answers: "
            f"{error}. Name the host (hdfs://name:8020/…), or let $CLASSPATH begin with the "
            "directory of a core-site.xml that says fs.defaultFS.",
        ) from error


def scheme_and_root(location: str) -> tuple[str, str]:
    """``hdfs`` and ``hdfs://name:8020`` of a location; both empty for a plain path."""
    head, colon, rest = location.partition(":")
    if not colon or "/" in head or not head.isascii() or not head[:1].isalpha():
        return "", ""
    authority = rest[2:].split("/", 1)[0] if rest.startswith("//") else ""
    return head.lower(), f"{head}://{authority}" if authority else ""


def plain_path(path: str) -> str:
    """A path of this machine without its ``file:``. Raises FormatError for another host's."""
    if not path.startswith("file:"):
        return path
    rest = path[len("file:") :]
    if rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        if authority not in ("", "localhost"):
            raise FormatError(f"'{path}' is on another host, '{authority}'", path=path)
        rest = slash + rest
    return rest


def _entry(parent: str, item: os.DirEntry[str]) -> Entry:
    is_dir = item.is_dir()
    path = f"{parent.rstrip('/')}/{item.name}"
    return Entry(item.name, path, is_dir, 0 if is_dir else item.stat().st_size)


def local_path_of(uri: str) -> str:
    """The path behind a properly escaped ``file:`` URI, as Spark's ``_metadata.file_path`` is.

    Spark escapes there (``%20``), while locations in a metastore are not escaped.
    """
    return unquote(plain_path(uri))
