"""Merge the events of many sorted files, and find row ids in a set of row ids.

This module runs in workers: it imports neither pyspark nor modules of the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acidsql.storage.event_records import BUCKET_PROPERTY, ROW_ID, WRITE_ID
from acidsql.storage.orc.damage import misplaced_events_error

KEYS = (WRITE_ID, BUCKET_PROPERTY, ROW_ID)
LEAST = (-(2**63), -(2**31), -(2**63))
_MOST_BYTES = 64 * 1024 * 1024  # bytes that are sorted, and so copied, at once
_ODD = np.uint64(0x9E3779B97F4A7C15)  # spreads numbers over 64 bits

Key = tuple[int, int, int]
Int64s = npt.NDArray[np.int64]


class EventSource:
    """A file's events, in order. The file is opened when its first event may be the next one.

    Args:
        read: Gives the batches.
        least: A lower bound of the keys in the file.
        path: The file's path, for errors.

    Attributes:
        head: The key of the next event; the lower bound if the file is not open yet.
    """

    def __init__(self, read: Callable[[], Iterator[pa.RecordBatch]], least: Key, path: str) -> None:
        """Begin before the first event. The file is not open yet."""
        self._read, self.head, self._path = read, least, path
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._batch: pa.RecordBatch | None = None
        self._keys: list[npt.NDArray[Any]] = []
        self._at = 0

    @property
    def is_open(self) -> bool:
        """The file is open: ``head`` is the key of an event, not only a bound."""
        return self._batches is not None

    @property
    def last(self) -> Key:
        """The last key of the current batch."""
        return self._key(-1)

    def advance(self) -> bool:
        """Go to the first or the next batch with events; return False at the end. Opens the file.

        Raises:
            FormatError: The file is not sorted.
        """
        if self._batches is None:
            self._batches = self._read()
        last = self.last if self._batch is not None else None
        self._batch = next((batch for batch in self._batches if batch.num_rows), None)
        if self._batch is None:
            return False
        self._keys = [self._batch.column(name).to_numpy() for name in KEYS]
        self._at = 0
        self.head = self._key(0)
        _refuse_unsorted(self._keys, last, self._path)
        return True

    def take_through(self, bound: Key) -> pa.RecordBatch:
        """Return the events of this batch whose keys are at most ``bound``, and move behind
        them.
        """
        part = self.peek_through(bound)
        self._at += part.num_rows
        if not self.is_spent:
            self.head = self._key(self._at)
        return part

    def peek_through(self, bound: Key) -> pa.RecordBatch:
        """Return the events of this batch whose keys are at most ``bound``, without moving."""
        assert self._batch is not None
        return self._batch.slice(self._at, self._end(bound) - self._at)

    def middle_key_through(self, bound: Key) -> Key:
        """Return the key of the middle one of the events of this batch whose keys are at most
        ``bound``.
        """
        return self._key((self._at + self._end(bound) - 1) // 2)

    @property
    def is_spent(self) -> bool:
        """The current batch has no more events."""
        return self._batch is not None and self._at == self._batch.num_rows

    def _end(self, bound: Key) -> int:
        """Return the place behind the last event of this batch whose key is at most ``bound``."""
        assert self._batch is not None
        high: int = self._batch.num_rows
        low = self._at  # the first key above the bound is in low..high
        if self.last <= bound:
            return high
        while low < high:
            middle = (low + high) // 2
            if self._key(middle) <= bound:
                low = middle + 1
            else:
                high = middle
        return low

    def _key(self, at: int) -> Key:
        return key_at(self._keys, at)


def merge_events(sources: Iterable[EventSource]) -> Iterator[pa.RecordBatch]:
    """Merge the events of all sources into one order, ascending by row id, and yield them in
    batches, none empty.

    Each step finds the batch with the lowest last key, and takes the events up to this key from all
    sources. Only sources with such events are open. If these events have too many bytes, the step
    takes fewer events from each source.

    Raises:
        FormatError: A source is not sorted.
    """
    remaining_sources = list(sources)
    while remaining_sources:
        bound = _open_needed_sources(remaining_sources)
        if bound is None:
            return
        bound = _limited_bound(bound, [source for source in remaining_sources if source.is_open])
        parts = [source.take_through(bound) for source in remaining_sources if source.is_open]
        remaining_sources = [
            source for source in remaining_sources if not source.is_spent or source.advance()
        ]
        yield _sort_events([part for part in parts if part.num_rows])


def _open_needed_sources(remaining_sources: list[EventSource]) -> Key | None:
    """Open all sources that may have events up to the lowest last key of an open source's batch;
    return this key, or None if no source has events. Sources without events are removed from the
    list.
    """
    while remaining_sources:
        bound = min((source.last for source in remaining_sources if source.is_open), default=None)
        closed = [source for source in remaining_sources if not source.is_open]
        if bound is None:
            first = [min(closed, key=lambda source: source.head)]
        else:
            first = [source for source in closed if source.head <= bound]
        if not first:
            return bound
        for source in first:
            if not source.advance():
                remaining_sources.remove(source)
    return None


def _limited_bound(bound: Key, sources: Sequence[EventSource]) -> Key:
    """Return ``bound``, or a lower key if the events up to it come from several sources and have
    more than 64 MiB: only then are they copied. Some events are always at or below the result.
    """
    while True:
        parts = [source.peek_through(bound) for source in sources]
        if sum(bool(part.num_rows) for part in parts) < 2:
            return bound  # events of one source are in order, so nothing is copied
        longest = max(range(len(parts)), key=lambda i: parts[i].num_rows)
        size_before = sources[longest].middle_key_through(bound)
        if size_before == bound or sum(part.nbytes for part in parts) <= _MOST_BYTES:
            return bound
        bound = size_before


def _sort_events(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Join these events into one batch in ascending order of row id. One part alone is not
    copied.
    """
    if len(parts) == 1:
        return parts[0]
    (batch,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
    keys = keys_of(batch)
    order = np.lexsort(keys[::-1])
    return batch if (order[1:] > order[:-1]).all() else batch.take(pa.array(order))


def _refuse_unsorted(keys: Sequence[npt.NDArray[Any]], previous_key: Key | None, path: str) -> None:
    """Raise FormatError if a row id of the file ``path`` is lower than the one before it: such a
    file would be merged wrong, and nobody would notice. The first is compared with
    ``previous_key``, the last of the batch before (None: there is none). Equal row ids are allowed.
    """
    rises, repeats = compare_neighbours(keys)
    # Hive writes a key twice if hive.merge.cardinality.check is off. A repeated key does no harm.
    if not (rises | repeats).all() or (previous_key is not None and key_at(keys, 0) < previous_key):
        raise misplaced_events_error(path, "its events are not sorted by row id")


def compare_neighbours(
    keys: Sequence[npt.NDArray[Any]],
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return two arrays with a flag for each key but the first: whether it is above the one before
    it, and whether it equals that one.
    """
    rises = np.zeros(len(keys[0]) - 1, dtype=bool)
    repeats = np.ones(len(keys[0]) - 1, dtype=bool)
    for column in keys:
        rises |= repeats & (column[1:] > column[:-1])
        repeats &= column[1:] == column[:-1]
    return rises, repeats


def compare_with_bound(
    keys: Sequence[Int64s], bound: Key
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return two arrays with a flag for each key: whether it is below a bound, and whether it
    equals the bound. Keys compare as tuples do. ``keys``: an array for each part of a key.
    """
    is_below = np.zeros(len(keys[0]), dtype=bool)
    is_equal = np.ones(len(keys[0]), dtype=bool)
    for column, value in zip(keys, bound, strict=True):
        is_below |= is_equal & (column < value)
        is_equal &= column == value
    return is_below, is_equal


def key_at(keys: Sequence[npt.NDArray[Any]], at: int) -> Key:
    """Return the row id at a place, from the columns of row ids."""
    return int(keys[0][at]), int(keys[1][at]), int(keys[2][at])


def keys_of(batch: pa.RecordBatch) -> list[Int64s]:
    """Return the three columns of the row ids of events, each as 64-bit integers."""
    return [batch.column(name).to_numpy().astype(np.int64) for name in KEYS]


def are_among(keys: Sequence[Int64s], candidates: Sequence[Int64s]) -> npt.NDArray[np.bool_]:
    """Return for each of ``keys`` whether it is among ``candidates``."""
    return places_in(keys, candidates) >= 0


def places_in(keys: Sequence[Int64s], candidates: Sequence[Int64s]) -> npt.NDArray[np.intp]:
    """Return for each of ``keys`` its place in ``candidates``; -1: it is not there. Both are
    columns of row ids, in any order.

    The numbers of a row id are mixed into one number. Row ids with the same mixed number are then
    compared in full.
    """
    mixed_candidates, mixed_keys = _mixed_keys(candidates), _mixed_keys(keys)
    if not len(mixed_candidates):
        return np.full(len(mixed_keys), -1, dtype=np.intp)
    order = np.argsort(mixed_candidates, kind="stable")
    mixed_candidates, sorted_ = mixed_candidates[order], [column[order] for column in candidates]
    at = np.searchsorted(mixed_candidates, mixed_keys)
    places = np.full(len(mixed_keys), -1, dtype=np.intp)
    while True:
        clipped_places = np.minimum(at, len(mixed_candidates) - 1)
        meets = (
            (at < len(mixed_candidates))
            & (mixed_candidates[clipped_places] == mixed_keys)
            & (places < 0)
        )
        if not meets.any():
            return places
        equal = meets.copy()
        for column, candidate_column in zip(keys, sorted_, strict=True):
            equal &= column == candidate_column[clipped_places]
        places[equal] = order[clipped_places[equal]]
        at = np.where(meets, at + 1, len(mixed_candidates))


def _mixed_keys(keys: Sequence[Int64s]) -> npt.NDArray[np.uint64]:
    """Return one hash for each key. Different keys may have the same one."""
    hashes = np.zeros(len(keys[0]), dtype=np.uint64)
    for column in keys:
        hashes = (hashes ^ column.astype(np.uint64)) * _ODD
        hashes ^= hashes >> np.uint64(32)
    return hashes
