"""ORC files of events: the writer, what a file says about itself, and a reader of last resort.

Rows are written by pyarrow's ORC writer, which is fast and runs in Spark's Python workers. What
it cannot do is added to the footer on the way out (``orc_footer``), in one pass. Reading is
Spark's own business; only files that Spark cannot read rightly come through ``read_events``
(a streaming file whose end is not its size) and ``originals.read_originals``. They are read by
pyarrow; stripes with a timestamp outside 1677…2262, which it cannot hold, by pyorc, row by row.

Sources: Hive ``OrcRecordUpdater``; ``reference`` sections 3 and 12 of hive-format.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc

from acidsql.acid import event
from acidsql.errors import FormatError, UnsupportedError, WriteError
from acidsql.storage.file_info import (
    FileInfo,
    info_of,
    read_file_info,
    read_stripe_rows,
    read_user_metadata,
)
from acidsql.storage.filesystem import filesystem_for
from acidsql.storage.orc_options import DEFAULT, OrcOptions
from acidsql.storage.orc_writer import BATCH_ROWS, FileStats, OrcWriter
from acidsql.storage.row_schema import (
    RowSchema,
    array_of_rows,
    arrow_type,
    conform,
    is_finer_than_micros,
)

__all__ = [
    "EventFileWriter", "FileInfo", "FileStats", "RowSchema", "arrow_type", "read_events",
    "read_file_info", "read_stripe_rows", "read_user_metadata",
]  # fmt: skip

# Before 25, pyarrow gives a wrong value for a timestamp that it cannot hold, and no error.
_ARROW_SEES_OVERFLOW = int(pa.__version__.partition(".")[0]) >= 25

_Int64s = npt.NDArray[np.int64]


class EventFileWriter:
    """Writes one file of events; give it events in ascending order of row id (I4).

    Args:
        file: What ``FileSystem.open_output`` gave; the writer closes it.
        schema: The table's data columns.
        options: What the table's ``orc.…`` properties say.
        batch_rows: Rows that are collected before they go to the ORC writer.
    """

    def __init__(
        self,
        file: BinaryIO,
        schema: RowSchema,
        options: OrcOptions = DEFAULT,
        *,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._schema, self._batch_rows = schema, batch_rows
        self._event_schema = event_schema(schema)
        event_type = schema.event_type()
        # Five columns stand before the user's, and the root before them.
        bloom_filters = options.bloom_filter_ids(schema.hive, len(event_type.children))
        self._orc = OrcWriter(file, self._event_schema, event_type, options, bloom_filters)
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._keys = _StripeKeys()
        self._counts = {event.INSERT: 0, event.DELETE: 0}

    def write_inserts(
        self, batch: pa.RecordBatch, write_id: int, bucket_property: int, first_row_id: int
    ) -> None:
        """Add insert events.

        Args:
            batch: The user's columns, by position.
            write_id: Of the statement: both write ids of each event.
            bucket_property: The same for all.
            first_row_id: The first row's; the others count on from it.
        """
        rows = batch.num_rows
        row_ids = np.arange(first_row_id, first_row_id + rows, dtype=np.int64)
        write_ids = np.full(rows, write_id, dtype=np.int64)
        buckets = np.full(rows, bucket_property, dtype=np.int32)
        self.rewrite_inserts(batch, write_ids, buckets, row_ids)

    def rewrite_inserts(
        self,
        batch: pa.RecordBatch,
        write_ids: npt.ArrayLike,
        bucket_properties: npt.ArrayLike,
        row_ids: npt.ArrayLike,
    ) -> None:
        """Add insert events that keep their row ids; the user's columns by position."""
        columns = self._schema.conform_for_writing(batch.columns)
        row = pa.StructArray.from_arrays(columns, fields=list(self._schema.arrow))
        writes = np.asarray(write_ids, dtype=np.int64)
        buckets = np.asarray(bucket_properties, dtype=np.int32)
        self._add(event.INSERT, writes, buckets, np.asarray(row_ids, np.int64), writes, row)

    def write_deletes(
        self,
        original_write_ids: pa.Array | npt.ArrayLike,
        bucket_properties: pa.Array | npt.ArrayLike,
        row_ids: pa.Array | npt.ArrayLike,
        write_id: int | npt.ArrayLike,
    ) -> None:
        """Add delete events.

        Args:
            original_write_ids: Of the rows to delete; with the next two, their row ids.
            bucket_properties: In full, as they stand in the rows' own files.
            row_ids: Ordinals.
            write_id: Of the deleting statement; of several, one for each row.
        """
        writes = np.asarray(original_write_ids, dtype=np.int64)
        buckets = np.asarray(bucket_properties, dtype=np.int32)
        ordinals = np.asarray(row_ids, dtype=np.int64)
        # Hive wants a null struct of the whole type: a reader then skips the children (I4, I5).
        row = pa.nulls(len(ordinals), self._event_schema.field(event.ROW).type)
        deleting = np.broadcast_to(np.asarray(write_id, dtype=np.int64), len(ordinals))
        self._add(event.DELETE, writes, buckets, ordinals, deleting, row)

    def close(self) -> FileStats:
        """Write what is left, complete the footer, and close (and sync) the file."""
        self._flush()
        inserts, deletes = self._counts[event.INSERT], self._counts[event.DELETE]

        def metadata(stripe_rows: tuple[int, ...]) -> dict[str, str]:
            return event.footer_metadata(self._keys.last_keys(stripe_rows), inserts, deletes)

        written, stripes = self._orc.close(metadata)
        return FileStats(inserts, deletes, written, stripes)

    def abort(self) -> None:
        """Close the file as it is; what lies there is no ORC file and must be deleted."""
        self._orc.abort()

    def _add(
        self,
        operation: int,
        writes: _Int64s,
        buckets: npt.NDArray[np.int32],
        row_ids: _Int64s,
        current: _Int64s,
        row: pa.Array,
    ) -> None:
        rows = len(row_ids)
        columns = [
            pa.array(np.full(rows, operation, dtype=np.int32)),
            pa.array(writes),
            pa.array(buckets),
            pa.array(row_ids),
            pa.array(current),
            row,
        ]
        self._counts[operation] += rows
        self._pending.append(pa.RecordBatch.from_arrays(columns, schema=self._event_schema))
        self._pending_rows += rows
        if self._pending_rows >= self._batch_rows:
            self._flush()

    def _flush(self) -> None:
        if not self._pending_rows:
            return
        table = pa.Table.from_batches(self._pending).combine_chunks()
        self._keys.add(table, a_stripe_ended=self._orc.write(table))
        self._pending, self._pending_rows = [], 0


class _StripeKeys:
    """The row ids that a stripe may end with.

    Only the footer tells where stripes end. But a stripe reaches the file when it ends, so the
    keys of batches during which nothing was written need not be kept.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._kept: list[tuple[int, pa.Table]] = []
        self._last: tuple[int, pa.Table] | None = None

    def add(self, table: pa.Table, a_stripe_ended: bool) -> None:
        keys = table.select(event.ROW_ID_COLUMNS)
        self._last = (self._rows, keys)
        if a_stripe_ended:
            self._kept.append(self._last)
        self._rows += table.num_rows

    def last_keys(self, stripe_rows: tuple[int, ...]) -> list[event.RowId]:
        """The row id of each stripe's last event.

        Raises:
            WriteError: The writer ended a stripe unseen; the file must not be used.
        """
        if sum(stripe_rows) != self._rows:
            raise WriteError("the ORC writer lost rows: its stripes do not hold what it was given")
        candidates = [*self._kept, self._last] if self._last else []
        return [self._key_at(int(end) - 1, candidates) for end in np.cumsum(stripe_rows)]

    def _key_at(self, row: int, candidates: list[Any]) -> event.RowId:
        for first, keys in candidates:
            if first <= row < first + keys.num_rows:
                found = keys.slice(row - first, 1).to_pylist()[0]
                return tuple(found.values())
        raise WriteError(f"the ORC writer ended a stripe at row {row}, which was not kept")


def event_schema(schema: RowSchema) -> pa.Schema:
    """The Arrow schema of an event file."""
    types = (pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64(), pa.struct(schema.arrow))
    return pa.schema(list(zip(event.EVENT_COLUMNS, types, strict=True)))


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def read_events(
    path: str,
    schema: RowSchema,
    length: int | None = None,
    operation: int = event.INSERT,
    *,
    exact: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Read a file of events, flat.

    Args:
        path: Of the file.
        schema: The table's data columns; the file's are matched with them by position.
        length: Where the file ends, in bytes, if not at its size (``_flush_length``).
        operation: Events of which kind; others are left out.
        exact: As for ``read_batches``.

    Yields:
        originalTransaction, bucket, rowId, currentTransaction, then the columns of ``schema``
        under its names (so a caller chooses names that do not clash with these four).

    Raises:
        FormatError: It is no event file.
    """
    for batch, info in read_batches(path, length, exact=exact):
        if not info.is_acid:
            raise FormatError(f"'{path}' is no file of ACID events", path=path)
        kept = only(batch, pc.equal(batch.column(0), operation))
        row = cast(pa.StructArray, kept.column(5))
        users = conform(row, schema.struct, info.calendar)
        columns = [kept.column(i) for i in (1, 2, 3, 4)] + users.flatten()
        yield pa.RecordBatch.from_arrays(columns, names=flat_names(schema))


def only(batch: pa.RecordBatch, chosen: pa.Array) -> pa.RecordBatch:
    """The chosen rows; mostly that is all of them, and to filter copies what it keeps."""
    return batch if chosen.true_count == batch.num_rows else batch.filter(chosen)


def flat_names(schema: RowSchema) -> list[str]:
    """The columns of what ``read_events`` and ``read_originals`` give."""
    return [*event.EVENT_COLUMNS[1:5], *schema.names]


def read_batches(
    path: str, length: int | None = None, *, exact: bool = False
) -> Iterator[tuple[pa.RecordBatch, FileInfo]]:
    """The rows of any ORC file, each batch with the file's footer; timestamps in ns or in us.

    Args:
        path: Of the file.
        length: Where it ends, if not at its size.
        exact: What is read is to be written again: refuse timestamps that would be cut.

    Raises:
        UnsupportedError: A timestamp is finer than a microsecond.
    """
    files = filesystem_for(path)
    end = files.size(path) if length is None else length
    with files.open_input(path) as file:
        info = info_of(file, end)
        if not info.rows:
            return
        head = _Head(file, end)
        reader = orc.ORCFile(pa.PythonFile(cast(Any, head), mode="r"))
        for stripe in range(reader.nstripes):
            for batch in _read_stripe(reader, head, stripe, path):
                if exact and any(map(is_finer_than_micros, batch.columns)):
                    raise _finer(path)
                yield batch, info


def _finer(path: str) -> UnsupportedError:
    return UnsupportedError(
        f"'{path}' holds timestamps finer than a microsecond, which would be cut if the file were "
        "written anew. Let Hive compact this table.",
        condition="UNSUPPORTED_FEATURE.NANOSECONDS",
        path=path,
    )


def _read_stripe(
    reader: orc.ORCFile, head: _Head, stripe: int, path: str
) -> Iterator[pa.RecordBatch]:
    """One stripe, by pyarrow; by pyorc, row by row, if it holds a timestamp outside 1677…2262."""
    old = not _ARROW_SEES_OVERFLOW and "timestamp" in str(reader.schema)
    try:
        if not old:
            yield reader.read_stripe(stripe)
            return
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if "nanosecond resolution" not in str(error):
            raise FormatError(f"'{path}' cannot be read: {error}", path=path) from error
    rows = _open_rows(head, path).read_stripe(stripe)
    row_type = pa.struct(list(reader.schema))
    while values := rows.read(BATCH_ROWS):
        yield pa.RecordBatch.from_struct_array(array_of_rows(values, row_type))


def _open_rows(head: _Head, path: str) -> Any:
    try:
        import pyorc
    except ImportError:
        raise FormatError(
            f"'{path}' holds timestamps outside 1677…2262, which only pyorc can read: install "
            "pyorc in the Python of the executors",
            path=path,
        ) from None
    kinds = pyorc.TypeKind
    converters: Any = {kinds.TIMESTAMP: _Micros, kinds.DATE: _Days}
    return pyorc.Reader(cast(BinaryIO, head), converters=converters)


class _Micros:
    """pyorc's timestamps as microseconds since 1970; what is finer is cut."""

    @staticmethod
    def from_orc(seconds: int, nanoseconds: int, _: object) -> int:
        return seconds * 1_000_000 + nanoseconds // 1000

    to_orc = None  # pyorc looks it up, even to read


class _Days:
    """pyorc's dates as days since 1970."""

    @staticmethod
    def from_orc(days: int) -> int:
        return days

    to_orc = None


class _Head(io.RawIOBase):
    """The first ``length`` bytes of a file, as a file."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file, self._length, self._at = file, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._length - self._at)
        wanted = left if size is None or size < 0 else min(size, left)
        self._file.seek(self._at)
        data = self._file.read(wanted)
        self._at += len(data)
        return data
