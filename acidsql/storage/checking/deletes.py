"""The rules about the row ids of one bucket: no row twice, no delete twice, no delete of no row.

The visible events of all files are merged in blocks, as a compaction merges them, so a bucket may
have any number of rows. Only row ids are read. This module runs in workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acidsql.acid.findings import Finding
from acidsql.storage.checking.contents import shown
from acidsql.storage.folding.event_merge import (
    LEAST,
    Int64s,
    Key,
    Source,
    among,
    keys_of,
    merged,
    steps,
)
from acidsql.storage.folding.fold import Fold, least_key
from acidsql.storage.reading.event_reader import (
    DELETING_WRITE_ID,
    FileRead,
    read_deletes,
    read_insert_ids,
)

_NONE = [np.empty(0, np.int64) for _ in range(3)]


def check_deletes(what: Fold, place: str) -> list[Finding]:
    """What is wrong with the row ids of a bucket, whose files are all sound by themselves.

    Args:
        what: The visible files of the bucket.
        place: The path of the table's or partition's directory, for findings.

    Raises:
        FormatError, OSError: A file cannot be read.
    """
    found, deletes = _Noted(), _Deletes(what)
    last: Key | None = None
    for batch in merged(
        _source(read, partial(read_insert_ids, read), least_key(read)) for read in what.inserts
    ):
        keys = keys_of(batch)
        found.note("DUPLICATE_ROW_ID", _repeated(keys, last), keys)
        last = _key(keys, -1)
        found.add("DELETE_OF_NO_ROW", deletes.without_row(keys, last))
    for keys in deletes.left():
        found.add("DELETE_OF_NO_ROW", keys)
    return [*found.findings(what, place), *deletes.twins.findings(what, place)]


_MESSAGES = {
    "DUPLICATE_ROW_ID": "two rows have the {}",
    "DELETE_OF_NO_ROW": "{} is deleted, and there is no such row",
    "TWIN_DELETE": "{} is deleted by two write ids",
    "REPEATED_DELETE": "{} is deleted twice by one write id",
}


@dataclass(slots=True)
class _Noted:
    """How often each condition was found, and the first key."""

    _seen: dict[str, tuple[int, Key]] = field(default_factory=dict)

    def note(self, condition: str, wrong: npt.NDArray[np.bool_], keys: Sequence[Int64s]) -> None:
        self.add(condition, [column[wrong] for column in keys])

    def add(self, condition: str, keys: Sequence[Int64s]) -> None:
        if len(keys[0]):
            count, first = self._seen.get(condition, (0, _key(keys, 0)))
            self._seen[condition] = (count + len(keys[0]), first)

    def findings(self, what: Fold, place: str) -> Iterator[Finding]:
        for condition, (count, first) in self._seen.items():
            message = _MESSAGES[condition].format(shown(first))
            more = f" There are {count} of this kind." if count > 1 else ""
            yield Finding(place, condition, f"In bucket {what.bucket_id}, {message}.{more}")


class _Deletes:
    """The delete events of a bucket, read along with its rows."""

    def __init__(self, what: Fold) -> None:
        self._events = merged(
            _source(read, partial(read_deletes, read), LEAST) for read in what.deletes
        )
        self._open = _NONE  # row ids whose rows have not come yet, ascending
        self._reached, self._last_by = LEAST, -1
        self._is_done = False
        self.twins = _Noted()

    def without_row(self, rows: Sequence[Int64s], last: Key) -> list[Int64s]:
        """The deleted row ids up to a key that are not among these rows, nor among earlier ones."""
        while not self._is_done and self._reached <= last:
            self._pull()
        missing = ~among(self._open, rows) if len(self._open[0]) else np.zeros(0, dtype=bool)
        self._open = [column[missing] for column in self._open]
        passed = _count_to(self._open, last)
        gone = [column[:passed] for column in self._open]
        self._open = [column[passed:] for column in self._open]
        return gone

    def left(self) -> Iterator[list[Int64s]]:
        """All deleted row ids behind the last row."""
        yield self._open
        while not self._is_done:
            self._open = _NONE
            self._pull()
            yield self._open

    def _pull(self) -> None:
        batch = next(self._events, None)
        if batch is None:
            self._is_done = True
            return
        keys, by = keys_of(batch), batch.column(DELETING_WRITE_ID).to_numpy()
        again = _repeated(keys, self._reached)
        is_same = np.concatenate([[self._last_by], by[:-1]]) == by
        self.twins.note("TWIN_DELETE", again & ~is_same, keys)
        self.twins.note("REPEATED_DELETE", again & is_same, keys)
        self._reached, self._last_by = _key(keys, -1), int(by[-1])
        self._open = [
            np.concatenate([before, column[~again]])
            for before, column in zip(self._open, keys, strict=True)
        ]


def _source(read: FileRead, batches: partial[Iterator[pa.RecordBatch]], first: Key) -> Source:
    path = read.original.path if read.original is not None else str(read.path)
    return Source(batches, first, path)


def _repeated(keys: Sequence[Int64s], last: Key | None) -> npt.NDArray[np.bool_]:
    """Tell for each key whether it is that of the event before; ``last``: that before the first."""
    _, same = steps(keys)
    return np.concatenate([[last is not None and _key(keys, 0) == last], same])


def _count_to(keys: Sequence[Int64s], bound: Key) -> int:
    """How many of these ascending keys are not above a key."""
    below = np.zeros(len(keys[0]), dtype=bool)
    same = np.ones(len(keys[0]), dtype=bool)
    for column, value in zip(keys, bound, strict=True):
        below |= same & (column < value)
        same &= column == value
    return int((below | same).sum())


def _key(keys: Sequence[Int64s], at: int) -> Key:
    return int(keys[0][at]), int(keys[1][at]), int(keys[2][at])
