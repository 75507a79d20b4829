"""Delete events as bits, in pages: a page has one bit for each of 8192 rows.

Hive numbers the rows of a statement in each bucket from 0. So a row's number gives its page and its
bit, and only pages with a deleted row exist. Every task gets the pages as one array and an index
of the pages as another, in scalar subqueries over one local row. Spark's generated code finds a
row's bit by a few look-ups in these arrays: no job reads delete events, and there is no join.
Delete events with row ids far apart would need too many pages; ``deletes`` handles them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.storage.event_records import (
    BUCKET_PROPERTY,
    PARTITION_NUMBER,
    PREFIX,
    ROW_ID,
    WRITE_ID,
)
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.reading.events.deletes import SENT_MAX, event_count
from acidsql.storage.reading.events.event_reader import FileRead, plan_deletes, read_deletes
from acidsql.storage.spark.local_rows import local_rows
from acidsql.storage.spark.session import jvm
from acidsql.storage.tables.listing import Listing

PAGES_MAX = 16384  # pages of 1 KiB each
INDEX_MAX = 400_000  # numbers to find a page by
_MODULI = 500  # moduli to try
_LEAST_BITS = 7  # see ``_rounded_range``
_SMALL = 1 << 13  # indexes of numbers below begin at 0
_FILES = 16  # files in memory at a time
_SMALL_FILE = 2 * 1024  # bytes
_RUNS_MAX = _FILES * PAGES_MAX
_PAGE_BITS = 13  # the bits of a rowId that give the row's place in its page
_WORD_BITS = 6
_WORDS = 1 << (_PAGE_BITS - _WORD_BITS)  # words in a page

_STATEMENT_BITS = 16  # the low bits of a bucket property: Hive's statement id, or a bare bucket id
_STATEMENT_MASK = (1 << _STATEMENT_BITS) - 1
_SENT, _INDEX = f"{PREFIX}sent", f"{PREFIX}index"

_Ints = npt.NDArray[np.int64]
# Partition number, write id, bucket property, page number.
_Page = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Index:
    """How tasks find a row's page.

    Attributes:
        numbers: For each part of a page's number an index, then the places of the pages. A row
            looks up one number in each index. Their sum is the position of the page's place.
        is_alive: SQL that looks up a row's bit, and is true if the row is not deleted.
    """

    numbers: npt.NDArray[np.int32]
    is_alive: str


@dataclass(frozen=True, slots=True)
class DeletionVectors:
    """The bits of a scan's delete events, and how to find them.

    Attributes:
        pages: One column for each page: partition number, write id, bucket property, page number.
        words: One row for each page: words of 64 rows each; the lowest bit is the first row's.
        index: How tasks find a row's page; None if an index would be too large, or is not needed.
    """

    pages: _Ints
    words: _Ints
    index: _Index | None

    def remove_deleted(self, events: DataFrame) -> DataFrame:
        """Return the insert events whose rows are not deleted, lazily. ``events``: insert events
        with row ids and PARTITION_NUMBER. The vectors must have an index, or no pages.
        """
        if not len(self.words):
            return events
        assert self.index is not None, "the caller joins"
        words = np.concatenate([np.zeros(_WORDS, np.int64), self.words.reshape(-1)])
        broadcast_tables = {_INDEX: _single_row(self.index.numbers), _SENT: _single_row(words)}
        bits = local_rows(events.sparkSession, pa.table(broadcast_tables))
        # As columns first: so Spark plans each subquery once, however often the condition names
        # the column. PySpark's withColumns sends the JVM six messages for each, withColumn one.
        rows_and_bits = events
        for name in broadcast_tables:
            rows_and_bits = rows_and_bits.withColumn(name, jvm.select(bits, name).scalar())
        return jvm.drop(rows_and_bits.where(self.index.is_alive), *broadcast_tables)

    def are_deleted(self, keys: Sequence[_Ints]) -> npt.NDArray[np.bool_]:
        """Return for each of these row ids whether its row is deleted.

        Args:
            keys: Four arrays of one length: partition numbers, write ids, bucket properties, row
                ids.
        """
        places = self._places([*keys[:3], keys[3] >> _PAGE_BITS])
        deleted = places >= 0
        rows = keys[3][deleted]
        words = self.words[places[deleted], rows >> _WORD_BITS & (_WORDS - 1)]
        deleted[deleted] = words >> (rows & 63) & 1 == 1
        return deleted

    def _places(self, pages: Sequence[_Ints]) -> _Ints:
        """Return the index of each of these pages in ``self.pages``; -1 if the page does not exist.

        ``pages``: four arrays of one length: partition numbers, write ids, bucket properties, page
        numbers.
        """
        if not len(self.words):
            return np.full(len(pages[0]), -1, np.int64)
        own_codes, page_codes = (
            np.zeros(len(self.words), np.int64),
            np.zeros(len(pages[0]), np.int64),
        )
        has_code = np.ones(len(pages[0]), np.bool_)
        for own_part, asked_part in zip(self.pages, pages, strict=True):
            values = np.unique(own_part)
            at = np.minimum(np.searchsorted(values, asked_part), len(values) - 1)
            has_code &= values[at] == asked_part
            own_codes = own_codes * len(values) + np.searchsorted(values, own_part)
            page_codes = page_codes * len(values) + at
        order = np.argsort(own_codes)
        at = np.minimum(np.searchsorted(own_codes, page_codes, sorter=order), len(own_codes) - 1)
        places: _Ints = np.where(has_code & (own_codes[order[at]] == page_codes), order[at], -1)
        return places


def deletion_vectors(
    listings: Sequence[Listing], write_ids: ValidWriteIdList, numbers: Mapping[str, int]
) -> DeletionVectors | None:
    """Read the delete events of some partitions now, in threads of the driver.

    Args:
        listings: The partitions.
        write_ids: The valid write ids of the snapshot.
        numbers: The ``PARTITION_NUMBER`` of insert events, by partition directory.

    Returns:
        The bits; None if there are too many events (SENT_MAX) or pages (PAGES_MAX), or if an event
        has a null. They have no index if it would be too large.

    Raises:
        SnapshotTooOldError: A file is gone.
        FormatError: A file is damaged.
    """
    reads = [
        (numbers[listing.partition], read)
        for listing in listings
        for read in plan_deletes(listing, write_ids)
    ]
    vectors = deletion_vectors_of_files(reads)
    if vectors is None:
        return None
    modulus = _modulus(np.unique(np.array([0, *numbers.values()], np.int64)))
    return replace(vectors, index=_page_index(vectors.pages, modulus))


def deletion_vectors_of_files(reads: Sequence[tuple[int, FileRead]]) -> DeletionVectors | None:
    """Read the delete events of some files now, in threads. ``reads``: the files, each after the
    number of its partition.

    Returns:
        The bits, or None, as ``deletion_vectors``. They have no index, which only a scan needs.

    Raises:
        SnapshotTooOldError: A file is gone.
        FormatError: A file is damaged.
    """
    # A small file is not opened only for its count.
    if _count([read for _, read in reads if not 0 < read.size <= _SMALL_FILE]) > SENT_MAX:
        return None
    bits, count = _Bits(), 0
    # Some files at a time: their events stay in memory until their bits are set.
    for start in range(0, len(reads), _FILES):
        batch = reads[start : start + _FILES]
        keys_by_file = run_in_threads(
            lambda numbered_read: _delete_keys_of_file(*numbered_read), batch
        )
        keys = [file_keys for file_keys in keys_by_file if file_keys is not None]
        count += sum(len(file_keys[0]) for file_keys in keys)
        if len(keys) < len(keys_by_file) or count > SENT_MAX:
            return None
        if not bits.set([np.concatenate(column) for column in zip(*keys, strict=True)]):
            return None
    pages = np.array(list(bits.slots), np.int64).reshape(-1, 4).T
    return DeletionVectors(pages, bits.words[: len(bits.slots)], None)


def _modulus(numbers: _Ints) -> int | None:
    """Return a modulus by which these numbers (sorted, from 0 on) have different remainders; None
    if none was found.

    The numbers of many partitions are checksums, which are too large for an index.
    """
    if numbers[-1] < INDEX_MAX:
        return int(numbers[-1]) + 1
    # Of random numbers, one in fifty moduli of this size tells all of them apart.
    least = len(numbers) ** 2 // 8 + 2
    for modulus in range(least, min(least + _MODULI, INDEX_MAX)):
        if len(np.unique(numbers % modulus)) == len(numbers):
            return modulus
    return None


def _count(reads: Sequence[FileRead]) -> int:
    """Return the number of events in all these files together. Threads read the footers."""
    return sum(run_in_threads(lambda read: event_count(read.file, read.length), reads))


def _delete_keys_of_file(number: int, read: FileRead) -> tuple[_Ints, ...] | None:
    """Return partition number (``number`` each time), write id, bucket property and row id of each
    visible delete event of a file, as four columns.

    None if there are nulls, which Hive does not write. Raises SnapshotTooOldError if the file is
    gone.
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
        """Set the bits of the rows that some delete events name; pages are added as needed. Return
        True; or False, without setting bits, if there would be too many pages, or the keys change
        their page too often. After False the pages in ``slots`` may have no words.

        ``keys``: partition numbers, write ids, bucket properties and row ids; sorted within a file.
        """
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
        """Return the index in ``words`` of each page; new pages are added. None if there are too
        many pages; even then the new ones are in ``slots``. ``pages``: each column is a page.
        """
        unique, inverse = np.unique(pages, axis=1, return_inverse=True)
        slots = [self.slots.setdefault(tuple(page), len(self.slots)) for page in unique.T.tolist()]
        if len(self.slots) > PAGES_MAX:
            return None
        if len(self.slots) > len(self.words):
            more = np.zeros((2 * len(self.slots) - len(self.words), _WORDS), np.int64)
            self.words = np.concatenate([self.words, more])
        return np.array(slots, np.int64)[inverse.reshape(-1)]


# SQL of the numbers that identify a row's page, as in ``_parts``. The first excludes the most rows
# where few rows are deleted. None is ever null: without nulls Spark evaluates the condition in half
# the time.
_PROPERTY = f"coalesce(CAST({BUCKET_PROPERTY} AS BIGINT), -1L)"
_NUMBER = f"coalesce({ROW_ID}, {2**63 - 1}L)"
_PARTS = (
    f"shiftright({_NUMBER}, {_PAGE_BITS})",
    f"coalesce({WRITE_ID}, -1L)",
    f"(coalesce(CAST({PARTITION_NUMBER} AS BIGINT), -1L) % {{modulus}}L)",
    f"shiftright({_PROPERTY}, {_STATEMENT_BITS})",
    f"({_PROPERTY} & {_STATEMENT_MASK}L)",
)
_WORD = f"(shiftright({_NUMBER}, {_WORD_BITS}) & {_WORDS - 1}L)"
_BIT = f"CAST({_NUMBER} & 63L AS INT)"


def _single_row(numbers: npt.NDArray[Any]) -> pa.Array:
    """Return an Arrow column with one row: an array of all these numbers."""
    values = pa.array(numbers)
    kind = pa.list_(pa.field("element", values.type, nullable=False))
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values, type=kind)


@dataclass(frozen=True, slots=True)
class _PageNumberPart:
    """A part of a page's number.

    Attributes:
        sql: SQL of the number of a row, which is in the window for all rows: the numbers at its
            ends are those of no page.
        low: The lowest number of the window.
        width: How many numbers the window has.
        numbers: The number of each page.
    """

    sql: str
    low: int
    width: int
    numbers: _Ints

    @classmethod
    def from_sql(cls, sql: str, numbers: _Ints) -> _PageNumberPart:
        """Make the part that an expression computes. ``numbers``: its value for each page."""
        low, width = _rounded_range(int(numbers.min()), int(numbers.max()))
        clamped = f"least(greatest({sql}, {low - 1}L), {low + width}L)"
        return cls(clamped, low - 1, width + 2, numbers)

    def combined(self, lower_part: _PageNumberPart) -> _PageNumberPart:
        """Return one part for this part and ``lower_part``: different pairs of their numbers give
        different numbers, in the SQL as for the pages. ``lower_part`` gives the lower digit.
        """
        return _PageNumberPart(
            f"(({self.sql} - {self.low}L) * {lower_part.width}L + {lower_part.sql})",
            lower_part.low,
            self.width * lower_part.width,
            (self.numbers - self.low) * lower_part.width + lower_part.numbers,
        )


def _parts(pages: _Ints, modulus: int) -> list[_PageNumberPart]:
    """Return the parts that identify a page, one for each SQL of ``_PARTS``: page number, write id,
    partition number modulo ``modulus``, bucket and statement; each with its SQL for a row, and
    its number for each of these pages.
    """
    partition, write_id, bucket_property, page = pages
    bucket, statement = bucket_property >> _STATEMENT_BITS, bucket_property & _STATEMENT_MASK
    numbers = [page, write_id, partition % modulus, bucket, statement]
    return [
        _PageNumberPart.from_sql(sql.format(modulus=modulus), of_pages)
        for sql, of_pages in zip(_PARTS, numbers, strict=True)
    ]


def _page_index(pages: _Ints, modulus: int | None) -> _Index | None:
    """Return the index of these pages; None if it would have too many numbers, or there is no
    modulus. Without pages it has no numbers, and its SQL is ``true``.

    A part that no page has leads to a page without bits, which is the first one. Spark sends an
    array anew for each time that the SQL names it, so the SQL names the words once. Most rows need
    the first look-up only. OR makes this possible, and without OR Spark would compute terms that
    occur twice first, in an order that differs between scans, and would compile other code.
    """
    if modulus is None:
        return None
    if not pages.size:
        return _Index(np.zeros(0, np.int32), "true")
    page, write_id, *other_parts = parts = _parts(pages, modulus)
    index = _index_of_number_parts(parts)
    if index is not None or page.width * write_id.width > INDEX_MAX:
        return index
    # In a table with many changes, each write id has its own few pages.
    return _index_of_number_parts([page.combined(write_id), *other_parts])


def _index_of_number_parts(parts: Sequence[_PageNumberPart]) -> _Index | None:
    """Return the index of these parts: an entry for each combination of their numbers; None if it
    would have more than INDEX_MAX numbers.
    """
    values = [np.unique(part.numbers, return_inverse=True) for part in parts]
    missing, pages = (
        _power_of_two_above(math.prod(len(unique) for unique, _ in values)),
        len(values[0][1]),
    )
    if sum(part.width for part in parts) + missing + 1 > INDEX_MAX:
        return None
    indexes, entry, size, begin, terms = [], np.zeros(pages, np.int64), 1, 0, list[str]()
    for part, (unique, at) in zip(parts, values, strict=True):
        index = np.full(part.width, missing, np.int32)
        index[unique - part.low] = np.arange(len(unique)) * size
        terms.append(f"{_INDEX}[{part.sql} - {part.low - begin}L]")
        indexes.append(index)
        entry += at.reshape(-1) * size
        size *= len(unique)
        begin += len(index)
    places = np.zeros(missing + 1, np.int32)
    places[entry] = _WORDS * np.arange(1, pages + 1)
    place = f"{_INDEX}[least({' + '.join(terms)}, {missing}) + {begin}]"
    is_dead = f"shiftright({_SENT}[{place} + {_WORD}], {_BIT}) & 1L = 1L"
    return _Index(
        np.concatenate([*indexes, places]), f"({terms[0]} = {missing} OR NOT ({is_dead}))"
    )


def _rounded_range(low: int, high: int) -> tuple[int, int]:
    """Return the lowest number, and the count of numbers, of a range that has both of these
    numbers. The range is rounded to powers of two: so it is seldom another for the next scan, and
    Spark seldom has to compile the condition again.
    """
    if 0 <= low and high < _SMALL:
        return 0, _power_of_two_above(high)
    bits = max((high - low).bit_length(), _LEAST_BITS)
    return low >> bits << bits, 2 << bits


def _power_of_two_above(number: int) -> int:
    """Return the least power of two above the number, but at least 128."""
    return 1 << max(number.bit_length(), _LEAST_BITS)
