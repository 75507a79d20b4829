"""HDFS, by ``hdfs-native``: a client in Rust, without a JVM.

Compared with Arrow's ``libhdfs`` it needs half as many requests to the name node or fewer, it syncs
files, and it removes a directory only if it is empty. What its calls leave open is closed here: its
errors become those of ``os``, no read goes past a file's end (the library would panic), and
``hdfs_file`` writes on when a data node is dead.
"""

from __future__ import annotations

import errno
import io
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, BinaryIO, cast

from acidsql.acid.paths import scheme_and_root
from acidsql.errors import SettingError, UnsupportedError
from acidsql.storage.files.hdfs_file import HdfsReader, HdfsWriter
from acidsql.storage.files.interface import Entry, FileSystem, no_such_file_error
from acidsql.storage.files.libhdfs import open_libhdfs
from acidsql.storage.files.options import hdfs_options

_BUFFER = 1 << 20  # bytes
_CONNECT_S = 10  # seconds until a name node must have answered

# ``RPCError("java.class.Name", "message\n\tat …")``: Rust's text of an error of the name node.
_REMOTE = re.compile(r'(?:Fatal)?RPCError\("([\w.$]+)", "(.*)"\)', re.DOTALL)
_ERRNO_OF = {
    "AccessControlException": errno.EACCES,
    "AuthorizationException": errno.EACCES,
    "FileAlreadyExistsException": errno.EEXIST,
    "FileNotFoundException": errno.ENOENT,
    "NSQuotaExceededException": errno.EDQUOT,
    "DSQuotaExceededException": errno.EDQUOT,
    "QuotaByStorageTypeExceededException": errno.EDQUOT,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotDirectoryException": errno.ENOTDIR,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "SafeModeException": errno.EROFS,
    "SnapshotException": errno.EBUSY,
}
# A file and a directory cannot replace each other; the name node looks at this first.
_OTHER_KIND = "must both be"


class HdfsFileSystem(FileSystem):
    """A name node, a name service with several, or a table of mounts (``viewfs:``).

    Args:
        root: The beginning of each path (``hdfs://name:8020``); ``hdfs:`` for ``fs.defaultFS``.
        settings: Hadoop's settings of HDFS.
    """

    can_remove_empty = True

    def __init__(self, root: str, settings: Mapping[str, str]) -> None:
        self._root = root
        self._settings = tuple(sorted(hdfs_options.client_conf(settings).items()))
        self._modes = hdfs_options.modes(settings)
        self._client()

    def _client(self) -> Any:
        """Return this process's client. One that was made before a fork would hang in the child."""
        return _connect(self._root, self._settings, os.getpid())

    def _inner(self, path: str) -> str:
        """Return a path as the client wants it: without scheme and host."""
        scheme, root = scheme_and_root(path)
        inner = path[len(root) :] if root else path[len(scheme) + 1 :] if scheme else path
        return "/" + inner.lstrip("/")

    def list(self, path: str) -> list[Entry]:
        inner, base = self._inner(path), path.rstrip("/")
        with _os_errors(path):
            statuses = list(self._client().list_status(inner))
        if len(statuses) == 1 and not statuses[0].isdir and statuses[0].path == inner:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        names = [(status.path.rpartition("/")[2], status) for status in statuses]
        return sorted(
            Entry(name, f"{base}/{name}", status.isdir, 0 if status.isdir else status.length)
            for name, status in names
        )

    def _status(self, path: str) -> Any:
        """Return what the name node knows of a path. Raises FileNotFoundError, and
        NotADirectoryError if a file is in the place of a directory on the path.
        """
        with _os_errors(path):
            return self._client().get_file_info(self._inner(path))

    def exists(self, path: str) -> bool:
        try:
            self._status(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def size(self, path: str) -> int:
        """Return the size of a file in bytes. Raises FileNotFoundError, for a directory too."""
        status = self._status(path)
        if status.isdir:
            raise no_such_file_error(path)
        return int(status.length)

    def create_directory(self, path: str) -> None:
        with _os_errors(path):
            self._client().mkdirs(self._inner(path), self._modes.directory, True)

    def open_output(self, path: str) -> BinaryIO:
        """Open a file for writing; an existing file is emptied. ``close()`` lets the data nodes
        sync it to their disks. A file whose writing has failed is deleted.
        """
        import hdfs_native

        def create(replicas: int | None) -> Any:
            options = hdfs_native.WriteOptions(
                overwrite=True,
                create_parent=False,
                permission=self._modes.file,
                replication=replicas,
            )
            # Not ``client.create``: its file is one of Python's, which the garbage collector
            # closes. One that has failed would wait then, in the middle of something else.
            return client.inner.create(inner, options)

        client, inner = self._client(), self._inner(path)
        writer = HdfsWriter(client, inner, create, lambda: _os_errors(path))
        return io.BufferedWriter(writer, _BUFFER)

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading, with random access. Raises FileNotFoundError.

        The client sees nothing of the block that a writer still has open (Hive's streaming), and
        so takes its file for empty. An empty file is opened by Hadoop's own client. Without that
        client, raises UnsupportedError.
        """
        with _os_errors(path):
            file = self._client().read(self._inner(path))
        if not len(file):
            return self._open_unfinished(path)
        return cast(BinaryIO, HdfsReader(file, lambda: _os_errors(path)))

    def _open_unfinished(self, path: str) -> BinaryIO:
        """Open a file by Hadoop's own client. Raises UnsupportedError if it cannot be had here."""
        try:
            return open_libhdfs(self._root, self._settings).open_input(path)
        except SettingError as error:
            raise UnsupportedError(
                f"'{path}' is empty, or a writer has it open, as Hive's streaming does: its rows "
                "are read only by Hadoop's own client, libhdfs, which is not here. Read again when "
                f"the writer has closed it. ({error.message})",
                condition="UNSUPPORTED_FEATURE.OPEN_FILE_OF_HDFS",
                path=path,
            ) from error

    def rename(self, source: str, target: str) -> None:
        """Move a file or a directory in one step. Raises FileExistsError if the target exists, and
        FileNotFoundError without a source. Any other error may hide that the move took place.
        """
        try:
            with _os_errors(source):
                self._client().rename(self._inner(source), self._inner(target), False)
        except OSError as error:
            is_taken = isinstance(error, FileExistsError) or _OTHER_KIND in str(error)
            if is_taken:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from error
            raise

    def rename_file(self, source: str, target: str) -> None:
        self.rename(source, target)

    def delete_directory(self, path: str) -> None:
        """Delete a directory with all its contents, in one step. It may be missing."""
        with _os_errors(path):
            self._client().delete(self._inner(path), True)

    def delete_file(self, path: str) -> None:
        with _os_errors(path):
            is_deleted = self._client().delete(self._inner(path), False)
        if not is_deleted:
            raise no_such_file_error(path)

    def remove_empty_directory(self, path: str) -> bool:
        """Delete a directory in one step if it is empty, and return True. Return False if it is not
        empty, has snapshots, or is missing. Raises NotADirectoryError for a file.
        """
        try:
            if not self._status(path).isdir:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            with _os_errors(path):
                return bool(self._client().delete(self._inner(path), False))
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EBUSY):
                return False
            raise

    def sync_directory(self, path: str) -> None:
        """Do nothing: the name node logs a new name before it answers."""


@lru_cache(maxsize=16)
def _connect(root: str, settings: tuple[tuple[str, str], ...], process: int) -> Any:
    """Return a client with these settings (pairs of name and value); opened ones are kept for each
    process id.

    Raises:
        SettingError: hdfs-native is missing; the path names no host, and there is no default; or no
            name node answers.
    """
    try:
        hdfs_native = _import_client()
    except ImportError as error:
        raise SettingError(
            f"HDFS needs the package hdfs-native, which is not here ({error}): pip install "
            "'acidsql[hdfs]', on executors, too. Or choose Hadoop's own client, libhdfs: "
            f"{hdfs_options.CLIENT}=arrow.",
            name=hdfs_options.CLIENT,
        ) from error
    conf = dict(settings)
    scheme, url = scheme_and_root(root)
    if not url:
        url = hdfs_options.default_root(conf) or f"{scheme}:///"
    _need_name_node(url, conf)
    _take_sparks_user(conf)
    try:
        return _open_client(hdfs_native.Client, url, conf)
    except (RuntimeError, ValueError) as error:
        raise SettingError(
            f"'{url}' cannot be opened as HDFS: {error}. Name the host (hdfs://name:8020/…), or "
            "give Spark the configuration that has it: fs.defaultFS, or the name service of "
            "dfs.nameservices (spark.hadoop.…, or HADOOP_CONF_DIR before Python starts).",
            location=url,
        ) from error


def _open_client(make_client: Any, url: str, conf: dict[str, str]) -> Any:
    """Return a client of ``hdfs_native`` for an address with these settings. A name that is no name
    service is a host's; without a port, Hadoop's default one is meant.

    Raises:
        RuntimeError, ValueError: The client does not take the address.
        SettingError: No name node answers.
    """
    try:
        return make_client(url, conf)
    except (RuntimeError, ValueError):
        complete_url = hdfs_options.with_default_port(url)
        if complete_url == url:
            raise
        _need_name_node(complete_url, conf)
        return make_client(complete_url, conf)


def _import_client() -> Any:
    """Return the library, the installed one or else the one that the driver has sent to this worker
    (``storage.spark.session.python_workers``). Raises ImportError if there is none, or it is for
    another platform.
    """
    try:
        import hdfs_native
    except ImportError:
        places = (f"{place}/{hdfs_options.SHIPPED_CLIENT}" for place in sys.path)
        if (shipped := next(filter(os.path.isdir, places), None)) is None:
            raise
        sys.path.append(shipped)
        import hdfs_native
    return hdfs_native


def _need_name_node(url: str, conf: Mapping[str, str]) -> None:
    """Raise SettingError if no name node of an address takes connections: the client itself would
    try for minutes. Do nothing if the settings do not tell the name nodes.
    """
    addresses = hdfs_options.name_nodes(url.partition("://")[2].strip("/"), conf)
    failures = []
    for address in addresses:
        try:
            socket.create_connection(address, _CONNECT_S).close()
        except OSError as error:
            failures.append(f"{address[0]}:{address[1]}: {error}")
        else:
            return
    if failures:
        raise SettingError(
            f"{url} does not answer ({'; '.join(failures)}). Look at the host, the port and the "
            "network.",
            condition="HDFS_UNAVAILABLE",
            sqlstate="08001",
            location=url,
        )


def _take_sparks_user(conf: Mapping[str, str]) -> None:
    """Let the client be the user that Spark is. On YARN without Kerberos a container belongs to
    another user of the machine, and Spark says in the environment for whom it works.
    """
    if conf.get("hadoop.security.authentication", "simple") == "simple":
        for name in ("HADOOP_USER_NAME", "SPARK_USER"):
            if os.environ.get(name):
                os.environ["HADOOP_USER_NAME"] = os.environ[name]
                return


@contextmanager
def _os_errors(path: str) -> Iterator[None]:
    """Raise the errors of the client in the block as OSError, of the class that ``os`` would raise;
    each has ``path`` as its file name. A panic of the library is one, too.
    """
    try:
        yield
    except OSError as error:
        code = error.errno or _errno_of_class(error)
        raise OSError(code, _first_line(str(error)), path) from error
    except NotImplementedError as error:
        raise OSError(errno.ENOTSUP, str(error), path) from error
    except RuntimeError as error:
        code, message = errno.EIO, str(error)
        if remote := _REMOTE.fullmatch(message):
            name = remote[1].rpartition(".")[2]
            code = _ERRNO_OF.get(name, errno.EIO)
            message = f"{name}: {remote[2]}"
        raise OSError(code, _first_line(message), path) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise OSError(errno.EIO, f"hdfs-native has failed: {error}", path) from error


def _errno_of_class(error: OSError) -> int:
    """Return the number that belongs to an error's class; the client sets none."""
    for number in (errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.EACCES):
        if type(error) is type(OSError(number, "")):
            return number
    return errno.EIO


def _first_line(message: str) -> str:
    """Return an error's text without the stack that the name node sends with it."""
    return re.split(r"\\n|\n", message, maxsplit=1)[0].replace('\\"', '"')
