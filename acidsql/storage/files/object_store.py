"""Object stores (S3, Google Cloud Storage, Azure's flat one), by Arrow.

A store has objects under names, and no directories: a directory is there while an object's name
begins with its path. Nothing can be renamed. An object is there as a whole or not at all, and every
request that follows sees it. Requests are what costs time, so many questions are answered from one
listing (``cached_listings``).
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO

import pyarrow.fs as pafs

from acidsql.acid.layout import is_hidden
from acidsql.errors import UnsupportedError
from acidsql.storage.files.arrow import ArrowFileSystem
from acidsql.storage.files.interface import Entry, FileSystem, length_of, no_such_file_error
from acidsql.storage.files.parallel import THREADS, run_in_threads
from acidsql.storage.orc.batches import READ_WHOLE
from acidsql.storage.orc.damage import is_gone

# Bytes that come in no more time than a store takes to answer a request. So a small file is read
# at once, and not its footer first.
NO_WAIT_SETTINGS = 128 * 1024
_Object = tuple[str, int | None]  # the part of a name below a directory; bytes, None: a directory


class ObjectStore(ArrowFileSystem):
    """A bucket or container.

    Args:
        arrow: Arrow's file system.
        root: The beginning of each path (``s3a://bucket``).
        bucket: Arrow's name for it.
    """

    has_directories = False
    small_file = READ_WHOLE

    def __init__(self, arrow: pafs.FileSystem, root: str, bucket: str) -> None:
        super().__init__(arrow, root)
        self._bucket = bucket

    def _arrow_path(self, path: str) -> str:
        return f"{self._bucket}{path.removeprefix(self._root)}".rstrip("/")

    def cached_listings(self, location: str, below: Sequence[str] = ("",)) -> FileSystem:
        """List all objects below some directories of ``location`` now, and return a file system
        that answers from these lists. If they are more than 16, the whole ``location`` is listed
        instead. Raises FileNotFoundError if a directory to be listed is missing.
        """
        paths = [f"{location}/{name}".rstrip("/") for name in below]
        if len(paths) > THREADS:  # otherwise they are listed at the same time
            paths = [location]
        return _CachedListings(
            self, dict(zip(paths, run_in_threads(self._list_objects, paths), strict=True))
        )

    def _list_objects(self, path: str) -> list[_Object]:
        """Return all objects below a directory, at any depth, in no order: for each the rest of its
        path below the directory, and its size in bytes (None for a directory).

        Raises FileNotFoundError.
        """
        inside = self._arrow_path(path)
        with self._file_not_found_errors(path):
            infos = self._arrow.get_file_info(pafs.FileSelector(inside, recursive=True))
        return [
            (info.path[len(inside) + 1 :], info.size if info.is_file else None) for info in infos
        ]

    def _is_missing(self, path: str, error: OSError) -> bool:
        """Whether an error of the store says that there is no such object. The store is not
        asked."""
        return is_gone(error)

    def create_directory(self, path: str) -> None:
        """Make a directory and its parents; nothing if its name is hidden: nobody looks for a
        hidden directory before there is something in it.
        """
        if not is_hidden(path.rpartition("/")[2]):
            super().create_directory(path)

    def open_input(self, path: str) -> BinaryIO:
        """Open an object for reading; an object of up to 128 KiB is read into memory now. Raises
        FileNotFoundError.
        """
        # Arrow asks for the length first, and Python cannot tell it.
        file = super().open_input(path)
        if length_of(file) > NO_WAIT_SETTINGS:
            return file
        with file, self._file_not_found_errors(path):
            return io.BytesIO(file.read())

    def copy_file(self, source: str, target: str) -> None:
        with self._file_not_found_errors(source):
            self._arrow.copy_file(self._arrow_path(source), self._arrow_path(target))

    def rename(self, source: str, target: str) -> None:
        """Raise UnsupportedError: an object store cannot rename."""
        raise UnsupportedError(
            f"'{source}' should be renamed to '{target}', and an object store cannot do this in "
            "one step.",
            condition="UNSUPPORTED_FEATURE.RENAME_ON_OBJECT_STORE",
            path=source,
        )

    def delete_directory(self, path: str) -> None:
        with suppress(FileNotFoundError), self._file_not_found_errors(path):
            self._arrow.delete_dir(self._arrow_path(path))

    def sync_directory(self, path: str) -> None:
        """Do nothing: a store answers when an object is durable."""


class GoogleStore(ObjectStore):
    """A bucket of Google's. Arrow lists all that is below a directory anyway, and leaves out the
    directories for which no object stands."""

    def list(self, path: str) -> list[Entry]:
        """List the children of a directory, sorted by name, from all objects below it. Raises
        FileNotFoundError.
        """
        base, children = path.rstrip("/"), dict[str, Entry]()
        for below, size in self._list_objects(path):
            name, _, rest = below.partition("/")
            is_dir = bool(rest) or size is None
            children[name] = Entry(name, f"{base}/{name}", is_dir, 0 if is_dir else size or 0)
        return sorted(children.values())


class _CachedListings(FileSystem):
    """A file system whose ``list`` answers from one earlier list of all objects below each root.

    A directory without files below it is not among its parent's children: an object that only
    stands for a directory is what tools leave, and no base or delta.

    Args:
        fs: The store. It is asked for all that is not below a root, and opens the files.
        objects: For each root directory the objects below it.
    """

    has_directories = False

    def __init__(self, fs: ObjectStore, objects: Mapping[str, Iterable[_Object]]) -> None:
        self._fs, self._roots = fs, tuple(objects)
        self._children: dict[str, dict[str, Entry]] = {root: {} for root in objects}
        for root, root_objects in objects.items():
            for name, size in root_objects:
                self._add_object(root, name, size)

    def _add_object(self, root: str, name: str, size: int | None) -> None:
        """Add an object to the children of its directory, and each directory on the way below
        ``root`` to its parent's. A ``size`` of None is an empty directory, which its parent does
        not list.
        """
        path = f"{root}/{name}"
        if size is None:
            self._children.setdefault(path, {})
            return
        parent, _, last = path.rpartition("/")
        is_new = last not in self._children.setdefault(parent, {})
        self._children[parent][last] = Entry(last, path, False, size)
        while is_new and len(parent) > len(root):
            path, (parent, _, last) = parent, parent.rpartition("/")
            is_new = last not in self._children.setdefault(parent, {})
            self._children[parent][last] = Entry(last, path, True, 0)

    def _is_listed(self, path: str) -> bool:
        """Whether a path is a root directory, or below one."""
        return any(path == root or path.startswith(f"{root}/") for root in self._roots)

    def list(self, path: str) -> list[Entry]:
        """Return the children of a directory, sorted by name. For a directory that is neither a
        root nor below one, ask the store. Raises FileNotFoundError if the earlier list has nothing
        in the directory, or the store does not know it.
        """
        if not self._is_listed(path):
            return self._fs.list(path)
        if path not in self._children:
            raise no_such_file_error(path)
        return sorted(self._children[path].values())

    def open_input(self, path: str) -> BinaryIO:
        return self._fs.open_input(path)
