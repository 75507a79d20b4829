"""Delete events as bits: one bit for each row that a statement wrote into a bucket.

Hive numbers the rows of a statement in each bucket from 0. So the bits lie in pages of 65,536 rows,
and only pages with a deleted row exist. Spark broadcasts the pages to every task. There a row finds
its page by one number, and its bit by its row number. So no job reads delete events, and there is
no join by row id. Delete events with row ids far apart would need too many pages; ``deletes``
handles them.

The driver reads the files of delete events, because they hold row ids and no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.storage.event_records import (
    BUCKET_PROPERTY,
    PARTITION_NUMBER,
    PREFIX,
    ROW_ID,
    WRITE_ID,
)
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.files.listing import Listing
from acidsql.storage.files.parallel import in_threads
from acidsql.storage.reading.deletes import SENT_MAX, event_count
from acidsql.storage.reading.event_reader import FileRead, plan_deletes, read_deletes
from acidsql.storage.spark import jvm
from acidsql.storage.spark.local_rows import local_rows

PAGES_MAX = 4096  # pages of 8 KiB each
_FILES = 16  # files in memory at a time
_RUNS_MAX = _FILES * PAGES_MAX
_PAGE_BITS = 16  # the bits of a rowId that give the row's place in its page
_WORD_BITS = 6
_WORDS = 1 << (_PAGE_BITS - _WORD_BITS)  # words in a page

_SENT = f"{PREFIX}sent_"
_OWN = f"{PREFIX}own_"
_OF_PAGE = ("partition", "write_id", "property", "page")

_Ints = npt.NDArray[np.int64]
# Partition number, write id, bucket property, page number.
_Page = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class DeletionVectors:
    """The bits of a scan's delete events, and how to find them.

    Attributes:
        pages: One column for each page: partition number, write id, bucket property, page number.
        words: One row for each page: words of 64 rows each; the lowest bit is the first row's.
    """

    pages: _Ints
    words: _Ints

    def without_deleted(self, events: DataFrame) -> DataFrame:
        """Leave out deleted rows. ``events``: insert events with the columns of a row id."""
        if not len(self.words):
            return events
        sent = dict(zip(_OF_PAGE, map(pa.array, self.pages), strict=True))
        begins = np.arange(0, self.words.size + 1, _WORDS, dtype=np.int32)
        words = pa.field("element", pa.int64(), nullable=False)
        sent["words"] = pa.ListArray.from_arrays(
            pa.array(begins), pa.array(self.words.reshape(-1)), type=pa.list_(words)
        )
        fields = [pa.field(f"{_SENT}{k}", v.type, nullable=False) for k, v in sent.items()]
        pages = local_rows(
            events.sparkSession, pa.table(list(sent.values()), schema=pa.schema(fields))
        )
        keyed = pages.selectExpr("*", f"{_key(_SENT)} AS {_SENT}key")
        own = (f"{sql} AS {_OWN}{name}" for name, sql in _COUNTED.items())
        counted = jvm.select(events, "*", *own)
        # Only the key is compared by "=": Spark would join by every column that "=" compares.
        condition = f"{_key(_OWN)} = {_SENT}key AND {_IS_SAME_PAGE} AND {_IS_SET}"
        left = counted.join(F.broadcast(keyed), F.expr(condition), "left_anti")
        return left.drop(*(f"{_OWN}{name}" for name in _COUNTED))

    def are_deleted(self, keys: Sequence[_Ints]) -> npt.NDArray[np.bool_]:
        """Tell for each of these row ids whether its row is deleted.

        Args:
            keys: Partition numbers, write ids, bucket properties and row ids.
        """
        places = self._places([*keys[:3], keys[3] >> _PAGE_BITS])
        deleted = places >= 0
        rows = keys[3][deleted]
        words = self.words[places[deleted], rows >> _WORD_BITS & (_WORDS - 1)]
        deleted[deleted] = words >> (rows & 63) & 1 == 1
        return deleted

    def _places(self, pages: Sequence[_Ints]) -> _Ints:
        """The index of each of these pages in ``self.pages``; -1 if the page does not exist."""
        if not len(self.words):
            return np.full(len(pages[0]), -1, np.int64)
        own, asked = np.zeros(len(self.words), np.int64), np.zeros(len(pages[0]), np.int64)
        is_known = np.ones(len(pages[0]), np.bool_)
        for mine, theirs in zip(self.pages, pages, strict=True):
            values = np.unique(mine)
            at = np.minimum(np.searchsorted(values, theirs), len(values) - 1)
            is_known &= values[at] == theirs
            own = own * len(values) + np.searchsorted(values, mine)
            asked = asked * len(values) + at
        order = np.argsort(own)
        at = np.minimum(np.searchsorted(own, asked, sorter=order), len(own) - 1)
        places: _Ints = np.where(is_known & (own[order[at]] == asked), order[at], -1)
        return places


def deletion_vectors(
    listings: Sequence[Listing], write_ids: ValidWriteIdList, numbers: Mapping[str, int]
) -> DeletionVectors | None:
    """Read the delete events of some partitions.

    Args:
        listings: The partitions.
        write_ids: The valid write ids of the snapshot.
        numbers: The ``PARTITION_NUMBER`` of insert events, by partition directory.

    Returns:
        The bits; None if there are too many events or pages, or if an event has a null.

    Raises:
        SnapshotTooOldError: A file is gone.
    """
    reads = [
        (numbers[one.partition], read) for one in listings for read in plan_deletes(one, write_ids)
    ]
    if _count(reads) > SENT_MAX:
        return None
    bits = _Bits()
    # Some files at a time: their events stay in memory until their bits are set.
    for start in range(0, len(reads), _FILES):
        some = reads[start : start + _FILES]
        found = in_threads(lambda one: _keys(*one), some)
        keys = [of_file for of_file in found if of_file is not None]
        if len(keys) < len(found):
            return None
        if not bits.set([np.concatenate(column) for column in zip(*keys, strict=True)]):
            return None
    pages = np.array(list(bits.slots), np.int64).reshape(-1, len(_OF_PAGE)).T
    return DeletionVectors(pages, bits.words[: len(bits.slots)])


def _count(reads: Sequence[tuple[int, FileRead]]) -> int:
    return sum(in_threads(lambda one: event_count(str(one[1].path), one[1].length), reads))


def _keys(number: int, read: FileRead) -> tuple[_Ints, ...] | None:
    """Partition number, write id, bucket property and row number of each event, as columns.

    None if there are nulls, which Hive does not write.
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
        slots: The index of each page in ``words``.
        words: The words of these pages, with space for more pages.
    """

    def __init__(self) -> None:
        self.slots: dict[_Page, int] = {}
        self.words = np.zeros((1, _WORDS), np.int64)

    def set(self, keys: Sequence[_Ints]) -> bool:
        """Set the bits of the events of some files; False if there are too many pages."""
        pages = np.stack([*keys[:3], keys[3] >> _PAGE_BITS])
        # The events of a file are sorted, so the events of one page stand together.
        begins = np.flatnonzero(np.r_[True, np.any(np.diff(pages) != 0, axis=0)][: pages.shape[1]])
        slots = self._slots_of(pages[:, begins]) if len(begins) <= _RUNS_MAX else None
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


# The columns that give a row's page and bit. None of them is ever null: without nulls Spark
# evaluates the condition in half the time.
_NUMBER = f"coalesce({ROW_ID}, {2**63 - 1}L)"
_COUNTED = {
    "partition": f"coalesce(CAST({PARTITION_NUMBER} AS BIGINT), -1L)",
    "write_id": f"coalesce({WRITE_ID}, -1L)",
    "property": f"coalesce(CAST({BUCKET_PROPERTY} AS BIGINT), -1L)",
    "page": f"shiftright({_NUMBER}, {_PAGE_BITS})",
    "word": f"CAST(shiftright({_NUMBER}, {_WORD_BITS}) & {_WORDS - 1} AS INT)",
    "bit": f"CAST({_NUMBER} & 63 AS INT)",
}


def _key(prefix: str) -> str:
    """SQL of one number for each page.

    Two pages seldom have the same number, because their values differ in few bits.
    """
    return (
        f"(shiftleft({prefix}write_id, 50) ^ shiftleft({prefix}partition, 40) "
        f"^ shiftleft({prefix}property, 10) ^ {prefix}page)"
    )


_DIFFERING = " | ".join(f"({_OWN}{name} ^ {_SENT}{name})" for name in _OF_PAGE)
_IS_SAME_PAGE = f"({_DIFFERING}) = 0L"
_IS_SET = f"shiftright(get({_SENT}words, {_OWN}word), {_OWN}bit) & 1L = 1L"
