"""The rules about the row ids of one bucket: no row twice, no delete twice, no delete of no row.

The visible events of all files are merged in blocks, as a compaction merges them, so a bucket may
have any number of rows. Only row ids are read. This module runs in workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from acidsql.acid.findings import Finding
from acidsql.storage.checking.contents import EventFaults
from acidsql.storage.folding.event_merge import (
    LEAST,
    EventSource,
    Int64s,
    Key,
    are_among,
    compare_neighbours,
    compare_with_bound,
    key_at,
    keys_of,
    merge_events,
)
from acidsql.storage.folding.fold import BucketFold, least_key
from acidsql.storage.reading.events.event_reader import (
    DELETING_WRITE_ID,
    read_deletes,
    read_insert_ids,
)

_NONE = [np.empty(0, np.int64) for _ in range(3)]


def check_deletes(bucket: BucketFold, place: str) -> list[Finding]:
    """Return what is wrong with the row ids of a bucket, whose files are all sound by themselves: a
    row id of two rows (DUPLICATE_ROW_ID), a row deleted by two write ids (TWIN_DELETE) or twice by
    one (REPEATED_DELETE), and a delete of no row (DELETE_OF_NO_ROW). Each of these gives at most
    one finding, with the first row id and their number.

    Args:
        bucket: The visible files of the bucket.
        place: The path of the table's or partition's directory, for findings.

    Raises:
        FormatError, OSError: A file cannot be read.
        SnapshotTooOldError: A file is gone.
    """
    findings = EventFaults()
    deletes = _Deletes(bucket, findings)
    twice = _message(bucket, "two rows have the {}")
    orphan = _message(bucket, "{} is deleted, and there is no such row")
    last: Key | None = None
    for batch in merge_events(
        EventSource(partial(read_insert_ids, read), least_key(read), read.file)
        for read in bucket.inserts
    ):
        keys = keys_of(batch)
        findings.note("DUPLICATE_ROW_ID", _is_repeated(keys, last), keys, twice)
        last = key_at(keys, -1)
        findings.add("DELETE_OF_NO_ROW", deletes.unmatched_deletes(keys, last), orphan)
    for keys in deletes.remaining_deletes():
        findings.add("DELETE_OF_NO_ROW", keys, orphan)
    return [*findings.findings(place)]


def _message(bucket: BucketFold, fault: str) -> str:
    """Return the sentence that a bucket has a fault."""
    return f"In bucket {bucket.bucket_id}, {fault}."


class _Deletes:
    """The delete events of a bucket, read along with its rows. Repeated ones are noted in
    ``noted``.
    """

    def __init__(self, bucket: BucketFold, noted: EventFaults) -> None:
        """Begin before the first delete event. Nothing is read yet."""
        self._noted = noted
        self._twin_message = _message(bucket, "{{}} is deleted by two write ids, {} and {}")
        self._repeated_message = _message(bucket, "{} is deleted twice by one write id")
        self._events = merge_events(
            EventSource(partial(read_deletes, read), LEAST, read.file) for read in bucket.deletes
        )
        self._open = _NONE  # row ids whose rows have not come yet, ascending
        self._reached, self._last_by = LEAST, -1
        self._is_done = False

    def unmatched_deletes(self, rows: Sequence[Int64s], last: Key) -> list[Int64s]:
        """Return the deleted row ids, as three columns, up to ``last``, which is the highest of
        these rows' ids, that match none of these rows and no earlier row. Each is returned once, by
        the first call that reaches it. Delete events are read up to ``last``; calls must come in
        ascending order.
        """
        while not self._is_done and self._reached <= last:
            self._read_next_deletes()
        missing = ~are_among(self._open, rows) if len(self._open[0]) else np.zeros(0, dtype=bool)
        self._open = [column[missing] for column in self._open]
        is_below, is_equal = compare_with_bound(self._open, last)
        orphan_count = int((is_below | is_equal).sum())  # they ascend
        orphans = [column[:orphan_count] for column in self._open]
        self._open = [column[orphan_count:] for column in self._open]
        return orphans

    def remaining_deletes(self) -> Iterator[list[Int64s]]:
        """Read the delete events to the end, and yield, batch by batch, the deleted row ids that no
        call of ``unmatched_deletes`` has returned or matched, as three columns, which may be empty.
        All are greater than the last row's id.
        """
        yield self._open
        while not self._is_done:
            self._open = _NONE
            self._read_next_deletes()
            yield self._open

    def _read_next_deletes(self) -> None:
        """Read the next batch of delete events, note the repeated ones (TWIN_DELETE if the event
        before is of another write id, else REPEATED_DELETE), and append the other row ids to the
        open ones. Without another batch, only remember that all are read.
        """
        batch = next(self._events, None)
        if batch is None:
            self._is_done = True
            return
        keys, deleting_ids = keys_of(batch), batch.column(DELETING_WRITE_ID).to_numpy()
        repeated = _is_repeated(keys, self._reached)
        earlier_ids = np.concatenate([[self._last_by], deleting_ids[:-1]])
        is_same = earlier_ids == deleting_ids
        is_twin = repeated & ~is_same
        if is_twin.any():
            pair = sorted((int(earlier_ids[is_twin][0]), int(deleting_ids[is_twin][0])))
            self._noted.note("TWIN_DELETE", is_twin, keys, self._twin_message.format(*pair))
        self._noted.note("REPEATED_DELETE", repeated & is_same, keys, self._repeated_message)
        self._reached, self._last_by = key_at(keys, -1), int(deleting_ids[-1])
        self._open = [
            np.concatenate([open_column, column[~repeated]])
            for open_column, column in zip(self._open, keys, strict=True)
        ]


def _is_repeated(keys: Sequence[Int64s], last: Key | None) -> npt.NDArray[np.bool_]:
    """Return for each key whether it equals the previous event's key.

    ``last``: the key of the event before the first one; None: there is none.
    """
    _, repeats = compare_neighbours(keys)
    return np.concatenate([[last is not None and key_at(keys, 0) == last], repeats])
