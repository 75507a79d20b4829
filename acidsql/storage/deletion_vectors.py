"""Delete events as bits, one for each row of what a statement wrote into a bucket.

Hive counts a statement's rows in each bucket from 0, so that the bit of a row is found by counting:
no job that reads delete events, and no join by a hash of row ids. The bits lie in pages, of which
only those exist where something was deleted, and travel to every task as one row. What would take
much memory that way (events far apart from each other) is left to a join (``deletes``).

The files are read in the driver: delete events hold row ids, and no rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid import bucket_codec
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.storage import jvm
from acidsql.storage.deletes import SENT_MAX, event_count
from acidsql.storage.event_reader import FileRead, plan_deletes, read_deletes
from acidsql.storage.event_records import (
    BUCKET_PROPERTY,
    PARTITION_NUMBER,
    PREFIX,
    ROW_ID,
    WRITE_ID,
)
from acidsql.storage.listing import Listing
from acidsql.storage.local_rows import local_rows
from acidsql.storage.missing_files import naming_missing
from acidsql.storage.parallel import THREADS, in_threads

PAGES_MAX = 4096  # of 8 KiB
PLACES_MAX = 1 << 22  # of 4 bytes
_PAGE_BITS = 16  # of a row id: its place in its page
_WORD_BITS = 6
_WORDS = 1 << (_PAGE_BITS - _WORD_BITS)  # of a page
_NO_PAGE = -_WORDS  # so far below the first word that none of its words is one

_SENT = f"{PREFIX}sent_"
_NUMBERS = bucket_codec.BUCKET_ID_MASK | bucket_codec.MAX_STATEMENT_ID

_Ints = npt.NDArray[np.int64]
# Partition number, write id, bucket property, page of a row id.
_Page = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class DeletionVectors:
    """The bits of a scan's delete events, and how to find them.

    Attributes:
        limits: ``first_write_id``, ``end_write_id`` (after the last), and how many ``partitions``,
            ``buckets``, ``statements`` and ``pages`` of each there are.
        places: For each partition, write id, bucket, statement and page, in that order, where the
            page's words begin.
        words: Of 64 rows each, the lowest bit for the first.
    """

    limits: Mapping[str, int]
    places: npt.NDArray[np.int32]
    words: _Ints

    def without_deleted(self, events: DataFrame) -> DataFrame:
        """Leave out what is deleted of insert events, which have the columns of a row id."""
        if not len(self.words):
            return events
        columns = {
            **{name: pa.array([number]) for name, number in self.limits.items()},
            "places": _one(self.places),
            "words": _one(self.words),
        }
        fields = [pa.field(f"{_SENT}{k}", v.type, nullable=False) for k, v in columns.items()]
        sent = pa.table(list(columns.values()), schema=pa.schema(fields))
        row = F.broadcast(local_rows(events.sparkSession, sent))
        counted = jvm.select(events, "*", *(f"{sql} AS {name}" for name, sql in _COUNTED.items()))
        return counted.join(row, F.expr(_IS_DELETED), "left_anti").drop(*_COUNTED)

    def are_deleted(self, keys: Sequence[_Ints]) -> npt.NDArray[np.bool_]:
        """The same of row ids at hand: of each whether it is deleted.

        Args:
            keys: Partition numbers, write ids, bucket properties and row ids.
        """
        deleted = np.zeros(len(keys[0]), np.bool_)
        if not len(self.words):
            return deleted
        known, rows = self.limits, keys[3]
        counted = _counted((*keys[:3], rows >> _PAGE_BITS), known["first_write_id"])
        sizes = np.array([known["partitions"], known["end_write_id"] - known["first_write_id"],
                          known["buckets"], known["statements"], known["pages"]])  # fmt: skip
        within = np.all((counted >= 0) & (counted < sizes[:, None]), axis=0) & _are_usual(keys[2])
        begins = self.places[np.ravel_multi_index(counted[:, within], sizes)].astype(np.int64)
        places = rows[within]
        words = np.maximum(begins, 0) + (places >> _WORD_BITS & (_WORDS - 1))
        bits = self.words[words] >> (places & 63) & 1
        deleted[within] = (begins != _NO_PAGE) & (bits == 1)
        return deleted


def _one(numbers: npt.NDArray[Any]) -> pa.Array:
    """A column of one row, which holds all of them."""
    values = pa.array(numbers)
    kind = pa.list_(pa.field("element", values.type, nullable=False))
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values, type=kind)


def deletion_vectors(
    listings: Sequence[Listing], write_ids: ValidWriteIdList, numbers: Mapping[str, int]
) -> DeletionVectors | None:
    """Read the delete events of some partitions.

    Args:
        listings: The partitions.
        write_ids: The snapshot's.
        numbers: What the insert events' ``PARTITION_NUMBER`` is, by directory.

    Returns:
        None if they take too much memory, or are of a kind that is not counted this way.

    Raises:
        SnapshotTooOldError: A file is gone.
    """
    reads = [
        (numbers[one.partition], read) for one in listings for read in plan_deletes(one, write_ids)
    ]
    # Of more than some hundred partitions the numbers are checksums.
    if any(number >= PLACES_MAX for number, _ in reads) or _count(reads) > SENT_MAX:
        return None
    bits = _Bits()
    # Some files at a time, because what they hold is in memory until its bits are set.
    for start in range(0, len(reads), THREADS):
        some = reads[start : start + THREADS]
        for keys in in_threads(lambda one: _keys(*one), some):
            if keys is None or not bits.set(keys):
                return None
    return _laid_out(bits)


def _count(reads: Sequence[tuple[int, FileRead]]) -> int:
    return sum(in_threads(lambda one: event_count(str(one[1].path), one[1].length), reads))


def _keys(number: int, read: FileRead) -> tuple[_Ints, ...] | None:
    """Partition number, write id, bucket property, row id of each event, as columns.

    None: there are nulls, which Hive does not write.
    """
    with naming_missing(str(read.path)):
        batches = list(read_deletes(read))
    names = (WRITE_ID, BUCKET_PROPERTY, ROW_ID)
    columns = [[batch.column(name) for batch in batches] for name in names]
    if any(part.null_count for column in columns for part in column):
        return None
    none = pa.array([], pa.int64())
    ids = [pa.concat_arrays(column or [none]).to_numpy().astype(np.int64) for column in columns]
    return np.full(len(ids[0]), number, np.int64), *ids


class _Bits:
    """Bits by page.

    Attributes:
        slots: Where in ``words`` a page is.
        words: Of so many pages, and of some more.
    """

    def __init__(self) -> None:
        self.slots: dict[_Page, int] = {}
        self.words = np.zeros((1, _WORDS), np.int64)

    def set(self, keys: tuple[_Ints, ...]) -> bool:
        """Set the bits of some events; False: they are of too many pages."""
        pages = np.stack([*keys[:3], keys[3] >> _PAGE_BITS])
        # Events are sorted, so that those of a page stand together.
        begins = np.flatnonzero(np.r_[True, np.any(np.diff(pages) != 0, axis=0)][: pages.shape[1]])
        slots = self._slots_of(pages[:, begins]) if len(begins) <= PAGES_MAX else None
        if slots is None:
            return False
        of_each = np.repeat(slots, np.diff(np.r_[begins, pages.shape[1]]))
        places = of_each << _PAGE_BITS | keys[3] & ((1 << _PAGE_BITS) - 1)
        np.bitwise_or.at(self.words.reshape(-1), places >> _WORD_BITS, np.int64(1) << (places & 63))
        return True

    def _slots_of(self, pages: _Ints) -> _Ints | None:
        unique, inverse = np.unique(pages, axis=1, return_inverse=True)
        found = [self.slots.setdefault(tuple(page), len(self.slots)) for page in unique.T.tolist()]
        if len(self.slots) > PAGES_MAX:
            return None
        if len(self.slots) > len(self.words):
            more = np.zeros((2 * len(self.slots) - len(self.words), _WORDS), np.int64)
            self.words = np.concatenate([self.words, more])
        return np.array(found, np.int64)[inverse.reshape(-1)]


def _laid_out(bits: _Bits) -> DeletionVectors | None:
    if not bits.slots:
        return DeletionVectors({}, np.zeros(0, np.int32), np.zeros(0, np.int64))
    keys = np.array(list(bits.slots), np.int64).T
    if not np.all(_are_usual(keys[2]) & (keys[3] >= 0)):
        return None
    first = keys[1].min()
    counted = _counted(keys, first)
    sizes = [int(column.max()) + 1 for column in counted]
    if math.prod(sizes) > PLACES_MAX:
        return None
    places = np.full(sizes, _NO_PAGE, np.int32)
    places[tuple(counted)] = np.arange(len(bits.slots)) * _WORDS
    limits = {
        "first_write_id": int(first),
        "end_write_id": int(first) + sizes[1],
        "partitions": sizes[0],
        "buckets": sizes[2],
        "statements": sizes[3],
        "pages": sizes[4],
    }
    return DeletionVectors(limits, places.ravel(), bits.words[: len(bits.slots)].ravel())


def _are_usual(properties: _Ints) -> npt.NDArray[np.bool_]:
    """Which bucket properties are of Hive 3's make, with nothing but a bucket and a statement."""
    usual: npt.NDArray[np.bool_] = np.equal(properties & ~_NUMBERS, bucket_codec.VERSION_1)
    return usual


def _counted(pages: Sequence[_Ints] | _Ints, first: int) -> _Ints:
    """Partition, write id, bucket, statement and page of each ``_Page``, as they are counted."""
    partitions, ids, properties, numbers = pages
    buckets = (properties & bucket_codec.BUCKET_ID_MASK) >> bucket_codec.BUCKET_SHIFT
    statements = properties & bucket_codec.MAX_STATEMENT_ID
    return np.stack([partitions, ids - first, buckets, statements, numbers])


# What a row id is counted by, in SQL. Columns of their own, none of them ever null: the condition
# takes half the time then.
_PROPERTY = f"coalesce({BUCKET_PROPERTY}, -1)"
_NUMBER = f"coalesce({ROW_ID}, {2**63 - 1}L)"
_OWN = f"{PREFIX}own_"
_COUNTED = {
    f"{_OWN}partition": f"coalesce({PARTITION_NUMBER}, -1)",
    f"{_OWN}write_id": f"coalesce({WRITE_ID}, -1L)",
    f"{_OWN}version": f"{_PROPERTY} & {~_NUMBERS}",
    f"{_OWN}bucket": f"shiftright({_PROPERTY}, {bucket_codec.BUCKET_SHIFT}) "
    f"& {bucket_codec.MAX_BUCKET_ID}",
    f"{_OWN}statement": f"{_PROPERTY} & {bucket_codec.MAX_STATEMENT_ID}",
    f"{_OWN}page": f"shiftrightunsigned({_NUMBER}, {_PAGE_BITS})",
    f"{_OWN}word": f"CAST(shiftright({_NUMBER}, {_WORD_BITS}) & {_WORDS - 1} AS INT)",
    f"{_OWN}bit": f"CAST({_NUMBER} & 63 AS INT)",
}


def _is_deleted() -> str:
    """SQL: the bit of an insert event is set. What it is counted by is in the row that is sent.

    So the text is always the same, and with it what Spark makes of it.
    """
    ids = f"({_SENT}end_write_id - {_SENT}first_write_id)"
    place = f"({_OWN}partition * {ids} + {_OWN}write_id - {_SENT}first_write_id)"
    for name in ("bucket", "statement", "page"):
        place = f"({place} * {_SENT}{name}s + {_OWN}{name})"
    begin = f"coalesce(get({_SENT}places, CAST({place} AS INT)), {_NO_PAGE})"
    word = f"coalesce(get({_SENT}words, {begin} + {_OWN}word), 0L)"
    # Nothing is looked up beyond what is there: where AND has decided it looks no further.
    return (
        f"{_OWN}version = {bucket_codec.VERSION_1} AND {_OWN}partition < {_SENT}partitions "
        f"AND {_OWN}write_id >= {_SENT}first_write_id AND {_OWN}write_id < {_SENT}end_write_id "
        f"AND {_OWN}bucket < {_SENT}buckets AND {_OWN}statement < {_SENT}statements "
        f"AND {_OWN}page < {_SENT}pages AND shiftright({word}, {_OWN}bit) & 1L = 1L"
    )


_IS_DELETED = _is_deleted()
