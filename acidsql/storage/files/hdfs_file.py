"""Open files of HDFS by ``hdfs-native``: one that is read, and one that is written.

The library's writer goes on if a data node dies while a block is written, but fails if a dead one
is chosen for a new block: until the name node has noticed (ten minutes by default), it may choose
it again. Hadoop's own client tells the name node which nodes to leave out; this library cannot. So
a writer here keeps what was written, and writes the whole file again: first as before, for other
nodes may be chosen, then with fewer replicas, as Hadoop's client does, too. The name node makes the
other replicas when the file is closed.
"""

from __future__ import annotations

import errno
import io
import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

_ErrorScope = Callable[[], AbstractContextManager[None]]

_IN_MEMORY = 4 << 20  # bytes of a file that are kept in memory; more go to this machine's disk
_PIECE = 1 << 20
# The replicas of each attempt; None: as many as HDFS wants by itself. With one replica on two data
# nodes of which one is dead, half of the attempts fail: all ten in one of a thousand.
_REPLICAS = (None, None, None, 2, *[1] * 10)
_PATIENCE_S = 180  # no attempt begins later after a failure
# A call of the library's that takes longer counts as failed: some never end if data nodes fail
# (``hsync`` does not). The library itself waits 60 s for a data node's answer.
_LONGEST_CALL_S = 150


class HdfsReader(io.RawIOBase):
    """A file for reading, with random access.

    Args:
        file: The library's reader.
        os_errors: Makes a block raise OSError with the file's path.
    """

    def __init__(self, file: Any, os_errors: _ErrorScope) -> None:
        super().__init__()
        self._file, self._os_errors = file, os_errors
        self._length, self._position = len(file), 0

    def size(self) -> int:
        """Return the file's size in bytes, without a request."""
        return self._length

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}[whence]
        if base + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes: fewer than ``size`` only at the file's end."""
        left = max(self._length - self._position, 0)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        with self._os_errors():  # the library panics at a range that is not in the file
            data: bytes = self._file.read_range(self._position, length)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class HdfsWriter(io.RawIOBase):
    """A new file. ``close`` syncs it to the disks of the data nodes; a file whose writing has
    failed is deleted.

    Args:
        client: The library's client.
        path: The file's path, without scheme and host.
        create: Creates the file, empty, with this number of replicas (None: as many as HDFS wants),
            and returns the library's writer.
        os_errors: Makes a block raise OSError with the file's path.
    """

    def __init__(
        self,
        client: Any,
        path: str,
        create: Callable[[int | None], Any],
        os_errors: _ErrorScope,
    ) -> None:
        super().__init__()
        self._client, self._path, self._create, self._os_errors = client, path, create, os_errors
        self._written = tempfile.SpooledTemporaryFile(  # noqa: SIM115 - ``close`` closes it
            _IN_MEMORY, dir=_local_directory()
        )
        self._written_guard = threading.Lock()
        self._attempts = iter(_REPLICAS)
        self._wanted_replicas: int | None = None  # if the file has fewer now
        self._has_failed = False
        with self._os_errors():
            self._file = self._create(next(self._attempts))

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write all of the data. If no data node takes it, raise OSError; the file is deleted."""
        size = memoryview(data).nbytes
        with self._written_guard:
            self._written.seek(0, os.SEEK_END)
            self._written.write(data)
        self._do(lambda: self._file.write(bytes(data)))
        return size

    def close(self) -> None:
        """Sync and close the file. If this fails, raise OSError; the file is deleted."""
        if self.closed:
            return
        try:
            if not self._has_failed:
                self._do(self._close)
        finally:
            self._written.close()
            super().close()

    def _close(self) -> None:
        """Close the file. The last packet of each block asks the data nodes to sync the block. (The
        library's own ``hsync`` hangs for ever if a data node of the block has failed.)
        """
        self._file.close()
        if self._wanted_replicas is not None:
            self._client.set_replication(self._path, self._wanted_replicas)

    def _do(self, call: Callable[[], object]) -> None:
        """Call, and after a failure of the data nodes write the whole file again, before the next
        call. Raises OSError if no attempt succeeds; the file is then deleted.
        """
        try:
            with self._os_errors():
                _end_in_time(call)
        except OSError as error:
            self._recover(error, call)

    def _recover(self, failure: OSError, call: Callable[[], object]) -> None:
        """Write the file again, which ``call`` could not go on with, in as many attempts as there
        are; then end as ``call`` would have ended. A failure for another reason than the data nodes
        ends it: raise it.
        """
        is_closing = call == self._close
        end = time.monotonic() + _PATIENCE_S
        while _is_of_data_nodes(failure) and time.monotonic() < end:
            replicas = next(self._attempts, 0)
            if replicas == 0:
                break
            try:
                with self._os_errors():
                    self._note_wanted_replicas()
                    self._file = self._create(replicas)
                    _end_in_time(self._replay)
                    if is_closing:
                        _end_in_time(self._close)
                return
            except OSError as error:
                failure = error
        self._has_failed = True
        with suppress(OSError), self._os_errors():
            self._client.delete(self._path, False)
        raise failure

    def _note_wanted_replicas(self) -> None:
        """Note how many replicas HDFS wants: an attempt with fewer ends by asking for these."""
        if self._wanted_replicas is None:
            self._wanted_replicas = self._client.get_file_info(self._path).replication

    def _replay(self) -> None:
        """Write all that was written so far to the new file.

        A replay of an earlier attempt, which nobody waits for any more, may go on meanwhile. So
        each replay has a position and a file of its own.
        """
        file, position = self._file, 0
        while piece := self._written_piece(position):
            file.write(piece)
            position += len(piece)

    def _written_piece(self, position: int) -> bytes:
        """Return a piece of what was written so far, from a position on; b"" at its end."""
        with self._written_guard:
            self._written.seek(position)
            return self._written.read(_PIECE)


def _end_in_time(call: Callable[[], object]) -> None:
    """Call, and raise what the call raises. If it takes too long, raise OSError, and leave it to a
    thread of its own, which nobody waits for.
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # the library's panics are no Exception
            errors.append(error)

    thread = threading.Thread(target=run, name="a call of hdfs-native", daemon=True)
    thread.start()
    thread.join(_LONGEST_CALL_S)
    if thread.is_alive():
        raise OSError(errno.EIO, f"the data nodes did not answer within {_LONGEST_CALL_S} seconds")
    if errors:
        raise errors[0]


def _is_of_data_nodes(error: OSError) -> bool:
    """Whether another attempt may succeed: the data nodes failed, and not the name node refused."""
    return error.errno == errno.EIO


def _local_directory() -> str | None:
    """Return a directory of this machine's disk that Spark has set aside for its data, if it tells
    one; None for the system's own."""
    for name in ("LOCAL_DIRS", "SPARK_LOCAL_DIRS"):
        for directory in os.environ.get(name, "").split(","):
            if os.access(directory, os.W_OK):
                return directory
    return None
