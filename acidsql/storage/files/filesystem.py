"""The file system of a location. All access to files goes through a FileSystem.

Local files are accessed by ``os``, because a commit needs files that are synced to the disk, and
Arrow's local file system cannot sync. HDFS is accessed by Arrow, which needs Hadoop's native
client. Object stores are accessed by Arrow, with what Spark has been told about them. A test that
must fail at the n-th call installs a wrapper (``wrap_filesystems``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

import pyarrow.fs as pafs

from acidsql.acid.paths import S3_SCHEMES, local_path_of, scheme_and_root
from acidsql.errors import SettingError, UnsupportedError
from acidsql.storage.files.arrow import ArrowFileSystem
from acidsql.storage.files.interface import Entry, FileSystem, length_of
from acidsql.storage.files.local import LocalFileSystem, real_location, real_locations
from acidsql.storage.files.memory import MEMORY, SCHEME, is_in_memory
from acidsql.storage.files.object_store import GoogleStore, ObjectStore
from acidsql.storage.files.options.store_options import open_store, settings_here

OBJECT_STORES = frozenset([*S3_SCHEMES, "gs", "abfs", "abfss"])
_OTHER_STORES = frozenset(
    ["gcs", "wasb", "wasbs", "adl", "oss", "cos", "cosn", "obs", "o3", "ofs", "swift", "dbfs"]
)


# ── which file system a location is on ───────────────────────────────────────────────────────

Wrapper = Callable[[FileSystem], FileSystem]
_wrapper: list[Wrapper] = []


def filesystem_for(location: str) -> FileSystem:
    """Return the file system of a path or URI. Open file systems are kept, so the call is cheap
    enough for each file.

    Raises:
        UnsupportedError: The location's scheme is unknown.
        SettingError: The location is on HDFS, and Hadoop's native client is missing or not set up;
            or the location names no host, and there is no default host. Or it is on an object store
            that cannot be opened.
    """
    fs = _unwrapped_filesystem(location)
    return _wrapper[-1](fs) if _wrapper else fs


@contextmanager
def wrap_filesystems(wrapper: Wrapper) -> Iterator[None]:
    """For tests: inside the block, ``filesystem_for`` gives ``wrapper(file system)``, in all
    threads of this process. In nested blocks only the innermost wrapper counts.
    """
    _wrapper.append(wrapper)
    try:
        yield
    finally:
        _wrapper.remove(wrapper)


def _unwrapped_filesystem(location: str) -> FileSystem:
    """Return the file system of a location, without the wrapper that a test may have installed.

    A path of ``memory.new_directory`` in this process gives ``MEMORY``. An object store is opened
    with the settings that this process or task has now, unless it is open with the same ones.
    Raises UnsupportedError and SettingError as ``filesystem_for`` does.
    """
    scheme, root = scheme_and_root(location)
    if scheme in OBJECT_STORES:
        return _open_store(scheme, root, tuple(sorted(settings_here().items())))
    if scheme == SCHEME and is_in_memory(location):
        return MEMORY
    return _open_local_or_hdfs(scheme, root)


@lru_cache(maxsize=16)
def _open_local_or_hdfs(scheme: str, root: str) -> FileSystem:
    """Open the local file system or HDFS; ``root`` is ``scheme://host``. Opened ones are kept.

    Raises UnsupportedError for any other scheme, and SettingError if HDFS cannot be opened.
    """
    if scheme in ("", "file"):
        return LocalFileSystem()
    if scheme == "hdfs":
        return ArrowFileSystem(_open_hdfs(urlsplit(root)), root)
    description = (
        "an object store that acidsql does not know" if scheme in _OTHER_STORES else "unknown"
    )
    raise UnsupportedError(
        f"'{scheme}:' is {description}; ACID tables can lie on file:, hdfs:, s3a:, gs: and abfss:.",
        scheme=scheme,
    )


@lru_cache(maxsize=16)
def _open_store(scheme: str, root: str, settings: tuple[tuple[str, str], ...]) -> FileSystem:
    """Open an object store with these settings (pairs of name and value), and return a GoogleStore
    for ``gs``, else an ObjectStore. Opened ones are kept. ``root`` is ``scheme://authority``.

    Raises SettingError if the path names no bucket, or the store cannot be opened.
    """
    authority = root.partition("://")[2]
    if not authority:
        raise SettingError(f"A path on an object store names its bucket: {scheme}://bucket/path.")
    bucket = authority.partition("@")[0]  # Azure: container@account.dfs.core.windows.net
    kind = GoogleStore if scheme == "gs" else ObjectStore
    return kind(open_store(scheme, authority, dict(settings)), root, bucket)


def _open_hdfs(address: SplitResult) -> pafs.FileSystem:
    """Open the HDFS of an address; without a host it is ``fs.defaultFS`` of Hadoop's configuration.

    Raises SettingError if Hadoop's native client is missing, or that default is no HDFS.
    """
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
    """Raise SettingError if the default file system does not answer a request for a list as HDFS
    does. Without a configuration it is this machine's disk, which answers with an error.
    """
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
    "length_of", "local_path_of", "real_location", "real_locations",
    "wrap_filesystems",
]  # fmt: skip
