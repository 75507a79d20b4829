"""The files that a task writes into the staging directory of its statement.

This module runs in workers: it imports neither pyspark nor modules of the driver.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import BinaryIO, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from acidsql.storage.event_records import Record, Task
from acidsql.storage.files.filesystem import FileSystem
from acidsql.storage.writing.plain_file import InsertWriter

_OPEN_FILES_MAX = 8  # each open file keeps a stripe in memory

_Writer = TypeVar("_Writer", bound=InsertWriter)


class Abortable(Protocol):
    """Something that holds files open."""

    def abort(self) -> None:
        """Close the files as they are."""


_File = TypeVar("_File", bound=Abortable)

Group = tuple[str, int]  # partition directory, bucket id: the rows of one file


class StagedFile(Generic[_Writer]):
    """One new file in the staging directory, under a name that no other attempt uses. It is open
    from the beginning.

    Args:
        fs: The file system.
        path: The file's path.
        make_writer: Makes the writer of the opened file.

    Attributes:
        updated: How many of the rows are new versions of rows; the user of the file counts them.
    """

    def __init__(
        self, fs: FileSystem, path: str, make_writer: Callable[[BinaryIO], _Writer]
    ) -> None:
        self.path = path
        self.writer = make_writer(fs.open_output(path))
        self.updated = 0

    def close_and_record(self, kind: str, task: Task, partition: str, bucket_id: int) -> Record:
        """Close the file, and return its record. After an error the file is closed as it is."""
        with abort_on_error(self):
            stats = self.writer.close()
        return Record(
            kind, task.number, task.attempt, partition, bucket_id, self.path,
            stats.rows, self.updated, stats.bytes,
        )  # fmt: skip

    def abort(self) -> None:
        """Close the file as it is. It is deleted together with the staging directory."""
        self.writer.abort()


@contextmanager
def abort_on_error(files: _File) -> Iterator[_File]:
    """Call ``abort`` of these files if the block fails, and raise the error again: a Python worker
    lives on, and would keep the files open.
    """
    try:
        yield files
    except BaseException:
        files.abort()
        raise


def staged_path(staging: str, kind: str, task: Task) -> str:
    """Return a path for a new file in the staging directory, which no other attempt uses."""
    return f"{staging}/{kind}-{task.number}-{task.attempt}-{uuid.uuid4().hex}"


class OpenFiles(Generic[_File]):
    """The files that still get rows. Only a few are open at a time.

    If a file is closed too early, its group gets a second file. Publishing then refuses the
    statement, because two records name one bucket id.

    Args:
        make: Makes a file.
        finish: Called with a file and its group when no more rows are expected.
    """

    def __init__(self, make: Callable[[], _File], finish: Callable[[Group, _File], None]) -> None:
        self._make, self._finish = make, finish
        self._open: OrderedDict[Group, _File] = OrderedDict()  # least recently used first

    def get(self, group: Group) -> _File:
        """Return the open file of these rows; make it if there is none, and finish the one that was
        used longest ago if eight are open.
        """
        if group not in self._open:
            if len(self._open) == _OPEN_FILES_MAX:
                self._finish(*self._open.popitem(last=False))
            self._open[group] = self._make()
        self._open.move_to_end(group)
        return self._open[group]

    def close(self) -> None:
        """Finish all files that are still open."""
        while self._open:
            self._finish(*self._open.popitem(last=False))

    def abort(self) -> None:
        """Close all files that are still open as they are."""
        for file in self._open.values():
            file.abort()


def runs(rows: int, columns: Sequence[pa.Array]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each run of rows with equal values in all columns; the end is not
    part of the run. A null equals nothing. Without rows there is one run, (0, 0).
    """
    changed = np.zeros(rows, dtype=bool)
    for column in columns:
        codes = column.dictionary_encode().indices.to_numpy(zero_copy_only=False)
        changed[1:] |= codes[1:] != codes[:-1]
    yield from pairwise([0, *np.flatnonzero(changed).tolist(), rows])
