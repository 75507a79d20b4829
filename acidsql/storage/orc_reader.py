"""The reader of ORC files where it is not Spark's own.

That is where Spark cannot read rightly (a streaming file whose end is not its size, files without
event columns), where files become other files (compaction), and of delete events, which hold row
ids alone. pyarrow reads them; stripes with a timestamp outside 1677…2262, which it cannot hold,
pyorc, row by row.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc

from acidsql.acid import event
from acidsql.errors import FormatError, UnsupportedError
from acidsql.storage import orc_footer
from acidsql.storage.damage import damaged, naming_damage
from acidsql.storage.file_info import FileInfo, info_of, is_acid
from acidsql.storage.filesystem import filesystem_for
from acidsql.storage.orc_writer import BATCH_ROWS
from acidsql.storage.row_schema import RowSchema, array_of_rows, conform, is_finer_than_micros

_ID_TYPES = (pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64())
# Bytes. ORC reads a file in many small pieces, each of which would come back to Python.
_READ_WHOLE = 1 << 20
# Before 25, pyarrow gives a wrong value for a timestamp that it cannot hold, and no error.
ARROW_SEES_OVERFLOW = int(pa.__version__.partition(".")[0]) >= 25


def read_events(
    path: str,
    schema: RowSchema,
    length: int | None = None,
    *,
    exact: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Read the insert events of a file, flat.

    Args:
        path: The file's path.
        schema: The table's data columns; they are matched with the file's columns by position.
        length: The committed length in bytes, if it is not the whole file (``_flush_length``).
        exact: As for ``read_batches``.

    Yields:
        originalTransaction, bucket, rowId, currentTransaction, then the columns of ``schema``
        under its names. The caller must choose names that differ from these four.

    Raises:
        FormatError: It is no event file.
    """
    with naming_damage(path):
        for batch, info in read_batches(path, length, exact=exact):
            need_events(batch, path)
            kept = only(batch, pc.equal(batch.column(0), event.INSERT))
            row = cast(pa.StructArray, kept.column(5))
            users = conform(row, schema.struct, info.calendar)
            columns = [kept.column(i) for i in (1, 2, 3, 4)] + users.flatten()
            yield pa.RecordBatch.from_arrays(columns, names=flat_names(schema))


def read_row_ids(path: str, length: int | None = None) -> Iterator[pa.RecordBatch]:
    """The event columns of a file except ``row``, under Hive's names, for events of all kinds.

    Args:
        path: The file's path.
        length: The committed length in bytes, if it is not the whole file.

    Raises:
        FormatError: It is no event file.
    """
    with opened(path, length) as reader:
        if reader is None:
            return
        names = event_names(reader, path)
        for stripe in range(reader.nstripes):
            batch = reader.read_stripe(stripe, columns=names[:5])
            need_events(batch, path)
            yield pa.RecordBatch.from_arrays(batch.columns, event.EVENT_COLUMNS[:5])


def need_events(batch: pa.RecordBatch, path: str) -> None:
    """Check that a batch begins with the event columns, and that no row id is NULL.

    Raises:
        FormatError: It does not, or a row id is NULL.
    """
    names, ids = batch.schema.names, batch.columns[: len(_ID_TYPES)]
    expected = event.EVENT_COLUMNS[: len(names)]
    if [name.lower() for name in names] != [name.lower() for name in expected]:
        raise FormatError(f"'{path}' is no file of ACID events", path=path)
    if tuple(column.type for column in ids) != _ID_TYPES or any(c.null_count for c in ids):
        raise damaged(path, "its events have no row ids")
    if len(names) > len(_ID_TYPES) and not pa.types.is_struct(batch.schema.types[-1]):
        raise damaged(path, "its events have no rows")


def row_count(path: str, length: int | None = None) -> int:
    """The number of rows in a file. Raises FormatError if it is no ORC file."""
    with opened(path, length) as reader:
        return int(reader.nrows) if reader else 0


def event_names(reader: orc.ORCFile, path: str) -> list[str]:
    """The names that a file of events has for its columns.

    Raises:
        FormatError: It is no event file.
    """
    names: list[str] = list(reader.schema.names)
    if not is_acid(names):
        raise FormatError(f"'{path}' is no file of ACID events", path=path)
    return names


@contextmanager
def opened(path: str, length: int | None) -> Iterator[orc.ORCFile | None]:
    """Open a file. None for an empty file, which ORC itself reads as a file without rows."""
    files = filesystem_for(path)
    with naming_damage(path), files.open_input(path) as file:
        end = files.size(path) if length is None else length
        if not end:
            yield None
            return
        orc_footer.read_footer(file, end)  # refuses what ORC's C++ would not survive
        yield orc.ORCFile(_head(file, end))


def only(batch: pa.RecordBatch, chosen: pa.Array) -> pa.RecordBatch:
    """The chosen rows. Mostly all rows are chosen; then nothing is copied."""
    return batch if chosen.true_count == batch.num_rows else batch.filter(chosen)


def flat_names(schema: RowSchema) -> list[str]:
    """The names of the columns that ``read_events`` and ``read_originals`` give."""
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
        FormatError: The file is damaged.
        UnsupportedError: A timestamp is finer than a microsecond.
    """
    files = filesystem_for(path)
    end = files.size(path) if length is None else length
    with naming_damage(path), files.open_input(path) as file:
        info = info_of(file, end)
        if not info.rows:
            return
        head = _head(file, end)
        reader = orc.ORCFile(head)
        for stripe in range(reader.nstripes):
            for batch in map(_with_read_names, _read_stripe(reader, head, stripe, path)):
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
    reader: orc.ORCFile, head: pa.NativeFile, stripe: int, path: str
) -> Iterator[pa.RecordBatch]:
    """One stripe, by pyarrow; by pyorc, row by row, if it holds a timestamp outside 1677…2262."""
    old = not ARROW_SEES_OVERFLOW and "timestamp" in str(reader.schema)
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


def _with_read_names(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose columns and fields are called as Java reads their names."""
    stored = pa.struct(list(batch.schema))
    read = _with_names(stored)
    if read.equals(stored):
        return batch
    return pa.RecordBatch.from_struct_array(batch.to_struct_array().view(read))


def _with_names(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.StructType):
        return pa.struct([(orc_footer.read_name(f.name), _with_names(f.type)) for f in kind])
    if isinstance(kind, pa.ListType):
        return pa.list_(_with_names(kind.value_type))
    if isinstance(kind, pa.MapType):
        return pa.map_(_with_names(kind.key_type), _with_names(kind.item_type))
    return kind


def _open_rows(head: pa.NativeFile, path: str) -> Any:
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


def _head(file: BinaryIO, length: int) -> pa.NativeFile:
    """The first ``length`` bytes of a file, as a file of Arrow's."""
    if length <= _READ_WHOLE:
        file.seek(0)
        data = file.read(length)
        if len(data) < length:
            raise FormatError("the ORC file ends before the length that was committed")
        return pa.BufferReader(data)
    return pa.PythonFile(cast(Any, _Head(file, length)), mode="r")


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
