"""The file system of a location. All access to files goes through a FileSystem.

Local files are accessed by ``os``, because a commit needs files that are synced to the disk, and
Arrow's local file system cannot sync. HDFS is accessed by ``hdfs-native``, or by Arrow if
``acidsql.hdfs.client`` says so. Object stores are accessed by Arrow. HDFS and the stores are opened
with what Spark has been told about them. A test that must fail at the n-th call installs a wrapper
(``wrap_filesystems``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from acidsql.acid.paths import S3_SCHEMES, local_path_of, scheme_and_root
from acidsql.errors import CatalogError, SettingError, UnsupportedError
from acidsql.storage.files.arrow import ArrowFileSystem
from acidsql.storage.files.hdfs import HdfsFileSystem
from acidsql.storage.files.interface import Entry, FileSystem, length_of
from acidsql.storage.files.libhdfs import open_libhdfs
from acidsql.storage.files.local import LocalFileSystem, real_location, real_locations
from acidsql.storage.files.memory import MEMORY, SCHEME, is_in_memory
from acidsql.storage.files.object_store import GoogleStore, ObjectStore
from acidsql.storage.files.options import hdfs_options
from acidsql.storage.files.options.hdfs_options import default_root
from acidsql.storage.files.options.store_options import open_store, settings_here

_LOCAL = LocalFileSystem()
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
        SettingError: The location is on HDFS, and the client is missing or not set up; or the
            location names no host, and there is no default host; or no name node answers. Or it is
            on an object store that cannot be opened.
    """
    fs = _unwrapped_filesystem(location)
    return _wrapper[-1](fs) if _wrapper else fs


def sparks_location(path: str) -> str:
    """Return a path that a user wrote as Spark understands it: without a scheme, and if
    ``fs.defaultFS`` is not this machine's disk, it is a path there.

    Raises:
        CatalogError: INVALID_LOCATION: the path is relative, and ``fs.defaultFS`` is another file
            system: only that system knows the user's directory there.
    """
    root = default_root(settings_here())
    if not root or scheme_and_root(path)[0]:
        return path
    if not path.startswith("/"):
        raise CatalogError(
            f"'{path}' is relative, and paths without a scheme are on {root} (fs.defaultFS). Let "
            "it begin with '/', or with file: for this machine's disk.",
            condition="INVALID_LOCATION", sqlstate="42K05", location=path,
        )  # fmt: skip
    return f"{root}{path}"


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
    if scheme in ("", "file"):
        return _LOCAL
    if scheme in OBJECT_STORES:
        return _open_store(scheme, root, tuple(sorted(settings_here().items())))
    if scheme in hdfs_options.SCHEMES:
        return _open_hdfs(root or f"{scheme}:", tuple(sorted(settings_here().items())))
    if scheme == SCHEME and is_in_memory(location):
        return MEMORY
    description = (
        "an object store that acidsql does not know" if scheme in _OTHER_STORES else "unknown"
    )
    raise UnsupportedError(
        f"'{scheme}:' is {description}; ACID tables can lie on file:, hdfs:, s3a:, gs: and abfss:.",
        scheme=scheme,
    )


@lru_cache(maxsize=16)
def _open_hdfs(root: str, settings: tuple[tuple[str, str], ...]) -> FileSystem:
    """Open HDFS with these settings (pairs of name and value), by the client that
    ``acidsql.hdfs.client`` names. ``root`` is ``scheme://host``, or ``scheme:`` without a host.
    Opened ones are kept.

    Raises SettingError if HDFS cannot be opened.
    """
    conf = dict(settings)
    client = conf.get(hdfs_options.CLIENT, "native")
    if client == "arrow":
        return open_libhdfs(root, tuple(sorted(hdfs_options.hdfs_settings(conf).items())))
    if client != "native":
        raise SettingError(
            f"{hdfs_options.CLIENT}={client} is neither native nor arrow.",
            name=hdfs_options.CLIENT,
        )
    return HdfsFileSystem(root, conf)


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


__all__ = [
    "OBJECT_STORES", "ArrowFileSystem", "Entry", "FileSystem", "LocalFileSystem", "filesystem_for",
    "length_of", "local_path_of", "real_location", "real_locations", "sparks_location",
    "wrap_filesystems",
]  # fmt: skip
