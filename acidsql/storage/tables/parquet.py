"""Parquet files of an insert-only table: write them, inspect them, read them for a compaction.

Parquet files name their columns, and Hive, Spark and Trino match columns by name. We store a
TIMESTAMP as a wall clock (``isAdjustedToUTC=false``): Spark reads it as TIMESTAMP_NTZ, Hive 4 and
Trino as TIMESTAMP. Hive and Trino write INT96 instead (``parquet_clocks``). This module runs in
workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import BinaryIO, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from acidsql.acid.table import PARQUET, Table
from acidsql.errors import FormatError, SettingError
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.orc.damage import finer_timestamps_error, naming_damage
from acidsql.storage.orc.encoding.footer import CALENDAR_PROLEPTIC
from acidsql.storage.orc.pending_rows import PendingRows
from acidsql.storage.orc.row_schema import (
    CALENDAR_JULIAN_DATES,
    FIRST_GREGORIAN,
    RowSchema,
    conform,
    places_of_fields,
)
from acidsql.storage.orc.writer import FileStats
from acidsql.storage.tables.parquet_clocks import Int96Clock, has_nanoseconds, int96_clock
from acidsql.storage.tables.parquet_types import hive_type, parquet_misfit, plain_type

MAGIC = b"PAR1"  # a Parquet file's first bytes, and its last
COMPRESSION = "parquet.compression"  # the property's name in Hive and Spark
_COMPRESSIONS = ("snappy", "gzip", "zstd", "uncompressed")
_ROW_GROUP_BYTES = 64 * 1024 * 1024  # in memory, before encoding
_ROW_GROUP_ROWS = 1_000_000
_BATCH_ROWS = 1024  # few, because the file does not say how many bytes a row has
_FEW_ROWS = 64  # of a batch of ``read_few_parquet_rows``

# Keys of the footers of Spark and Hive.
_SPARK, _OLD_SPARK = b"org.apache.spark.version", b"org.apache.spark.legacyDateTime"
_HIVES_CALENDAR = b"writer.date.proleptic"
_INT96 = "INT96"  # a physical type
_Answer = TypeVar("_Answer")


def compression_of(properties: Mapping[str, str]) -> str:
    """Return a table's ``parquet.compression``, in lower case; by default ``snappy``, as in Spark.
    The property's name may be in upper or lower case.

    Raises:
        SettingError: Hive, Spark and Trino do not all read this compression.
    """
    for key, value in properties.items():
        if key.lower() == COMPRESSION:
            if value.lower() not in _COMPRESSIONS:
                compressions = ", ".join(_COMPRESSIONS).upper()
                raise SettingError(f"'{key}' is one of {compressions}, not '{value}'.", key=key)
            return value.lower()
    return _COMPRESSIONS[0]


def parquet_compression(table: Table) -> str | None:
    """Return the compression of a table's Parquet files; None for a table of another format. Raises
    SettingError.
    """
    return compression_of(table.properties) if table.file_format == PARQUET else None


class ParquetFileWriter:
    """Writes one file of plain rows.

    Args:
        file: The result of ``FileSystem.open_output``; the writer closes it.
        schema: The table's data columns.
        compression: The result of ``compression_of``.
    """

    def __init__(self, file: BinaryIO, schema: RowSchema, compression: str) -> None:
        """Begin the Parquet file. Arrow's own schema is not stored in its footer."""
        self._file, self._schema = file, schema
        codec = "none" if compression == "uncompressed" else compression
        self._parquet = pq.ParquetWriter(
            pa.PythonFile(file, mode="w"), schema.arrow, compression=codec, store_schema=False
        )
        self._pending = PendingRows(self._write, _ROW_GROUP_ROWS, _ROW_GROUP_BYTES)
        self._rows = self._groups = 0

    def write_inserts(
        self, batch: pa.RecordBatch, write_id: int, bucket_property: int, first_row_id: int
    ) -> None:
        """Add rows, columns by position. Rows wait until they fill a row group of 64 MiB or a
        million rows. The write id, bucket property and row id have no meaning here.

        Raises:
            WriteError: The number of columns is wrong, or a value cannot be stored.
        """
        columns = self._schema.conform_for_writing(batch.columns)
        self._pending.add(pa.RecordBatch.from_arrays(columns, schema=self._schema.arrow))

    def close(self) -> FileStats:
        """Write the remaining rows, close (and sync) the file, and return its counts: rows as
        inserts, no deletes, bytes, and row groups as stripes.
        """
        self._pending.flush()
        self._parquet.close()
        written = self._file.tell()
        self._file.close()
        return FileStats(self._rows, 0, written, self._groups)

    def abort(self) -> None:
        """Close the file as it is. It is of no use, so the caller must delete it."""
        with suppress(Exception):  # pyarrow's writer may have failed; it must not try again later
            self._parquet.close()
        with suppress(OSError):
            self._file.close()

    def _write(self, rows: pa.Table) -> None:
        """Write these rows as one row group."""
        self._parquet.write_table(rows, row_group_size=rows.num_rows)
        self._rows += rows.num_rows
        self._groups += 1


def read_parquet(path: str, schema: RowSchema, *, exact: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with the table's current columns, as the file's writer means them.
    Columns that the file lacks are NULL.

    ``exact``: refuse timestamps finer than a microsecond, because the rows will be written again.

    Raises:
        FormatError: It is no Parquet file; a column does not fit the table's type, or the file does
            not tell which wall clocks the timestamps are.
        UnsupportedError: With ``exact``: a timestamp is finer than a microsecond.
    """
    with _open_parquet(path) as reader:
        _need_readable(path, reader, schema)
        kinds = pa.schema(
            [field.with_type(plain_type(field.type)) for field in reader.schema_arrow]
        )
        is_hybrid = _has_old_days(reader) or _has_hives_old_days(reader)
        calendar = CALENDAR_JULIAN_DATES if is_hybrid else CALENDAR_PROLEPTIC
        clock = _int96_clock(path, reader)
        if exact and clock is not None:
            _refuse_nanoseconds(path, reader)
        for batch in reader.iter_batches(_BATCH_ROWS):
            rows = batch.cast(kinds)
            if clock is not None:
                rows = clock.wall_clocks(rows)
            yield _conform_batch(rows, schema, calendar)


def need_readable(paths: Sequence[str], schema: RowSchema) -> None:
    """Check, by the footers, that the columns of files can be read as those of the table.

    Raises:
        FormatError: A file is no Parquet file, a column does not fit the table's type, or the file
            does not tell which wall clocks the timestamps are.
    """
    run_in_threads(
        lambda path: _inspect(path, lambda reader: _need_readable(path, reader, schema)), paths
    )


def misread_by_spark(paths: Sequence[str]) -> frozenset[str]:
    """Return those of the files whose timestamps or days Spark's reader would show as others, by
    their footers: INT96, and days that Hive wrote in the hybrid calendar. ``read_parquet`` reads
    them right.

    Raises:
        FormatError: A file is no Parquet file, or does not tell which wall clocks its timestamps
            are.
    """
    are_misread = run_in_threads(lambda path: _inspect(path, partial(_is_misread, path)), paths)
    return frozenset(
        path for path, is_misread in zip(paths, are_misread, strict=True) if is_misread
    )


def _inspect(path: str, look: Callable[[pq.ParquetFile], _Answer]) -> _Answer:
    """Call a function with the reader of a file, and return what it returns. Raises FormatError if
    it is no Parquet file.
    """
    with _open_parquet(path) as reader:
        return look(reader)


def _is_misread(path: str, reader: pq.ParquetFile) -> bool:
    """Whether Spark's reader would show timestamps or days of a file as others. Raises FormatError
    if the file does not tell which wall clocks its timestamps are.
    """
    _refuse_instants(path, reader)
    return _int96_clock(path, reader) is not None or _has_hives_old_days(reader)


def columns_of_parquet(path: str) -> list[tuple[str, str]]:
    """Return the names and Hive type texts of a file's columns.

    Raises:
        FormatError: The file is not Parquet, a column's type does not exist in Hive, or timestamps
            are no wall clocks in microseconds or coarser.
    """
    with _open_parquet(path) as reader:
        _refuse_instants(path, reader)
        return [(field.name, _hive_type(path, field.type)) for field in reader.schema_arrow]


def rows_of_parquet(path: str) -> int:
    """Return the number of rows in a file's footer. Raises FormatError if it is no Parquet
    file.
    """
    with _open_parquet(path) as reader:
        return int(reader.metadata.num_rows)


def read_few_parquet_rows(paths: Sequence[str], limit: int, bytes_max: int) -> pa.Table | None:
    """Return all rows of files of one schema, as they are. None if there are more than ``limit``
    rows, or more than ``bytes_max`` bytes of decoded rows. Raises FormatError if a file is no
    Parquet file, or is damaged.
    """
    parts, count, size = list[pa.Table](), 0, 0
    for path in paths:
        with _open_parquet(path) as reader:
            count += reader.metadata.num_rows
            if count > limit:
                return None
            parts.append(reader.schema_arrow.empty_table())
            # The footer does not say it: a file has a value once that many rows have.
            for batch in reader.iter_batches(_FEW_ROWS):
                parts.append(pa.Table.from_batches([batch], reader.schema_arrow))
                size += batch.nbytes
                if size > bytes_max:
                    return None
    return pa.concat_tables(parts)


@contextmanager
def _open_parquet(path: str, int96_unit: str = "us") -> Iterator[pq.ParquetFile]:
    """Open a Parquet file for the block, and give its reader. Raises FormatError for damage, also
    for errors of decoding in the block. ``int96_unit``: the unit in which INT96 is read.
    """
    with naming_damage(path), filesystem_for(path).open_input(path) as file:
        source = pa.PythonFile(file, mode="r")
        yield pq.ParquetFile(source, coerce_int96_timestamp_unit=int96_unit)


def _conform_batch(batch: pa.RecordBatch, schema: RowSchema, calendar: int) -> pa.RecordBatch:
    """Return a batch with the table's columns and types. Columns are matched by name, ignoring
    case; missing ones are NULL. Raises FormatError if a value or name does not fit.
    """
    columns = [*batch.columns, pa.nulls(batch.num_rows)]  # the last one is for missing columns
    places = places_of_fields(schema.names, batch.schema.names)
    chosen_columns = [columns[-1 if place is None else place] for place in places]
    rows = pa.StructArray.from_arrays(chosen_columns, names=list(schema.names))
    return pa.RecordBatch.from_struct_array(conform(rows, schema, calendar))


def _need_readable(path: str, reader: pq.ParquetFile, schema: RowSchema) -> None:
    """Raise FormatError if a file does not tell which wall clocks its timestamps are, or its
    columns do not fit the table.
    """
    _refuse_instants(path, reader)
    _int96_clock(path, reader)
    if fault := parquet_misfit(reader.schema_arrow, schema):
        raise FormatError(f"'{path}' does not fit the table: {fault}.", path=path)


def _has_old_days(reader: pq.ParquetFile) -> bool:
    """Whether Spark's reader takes the dates of a file for days of the hybrid calendar, by what
    Spark noted in the footer: a version before 3, or that it wrote old dates. False without Spark's
    version.
    """
    keys = reader.metadata.metadata or {}
    version = keys.get(_SPARK)
    return version is not None and (_OLD_SPARK in keys or version < b"3.")


def _has_hives_old_days(reader: pq.ParquetFile) -> bool:
    """Whether Hive noted the hybrid calendar, and a DATE column, also one inside of a nested type,
    may have days before 1582-10-15: a row group has some, or no minimum and maximum, as where all
    values are NULL. Spark's reader does not know Hive's key.

    Raises:
        FormatError: A row group has another physical type than the schema.
    """
    footer = reader.metadata
    if (footer.metadata or {}).get(_HIVES_CALENDAR) != b"false":
        return False
    return any(
        _may_have_old_days(footer.row_group(group).column(i), reader.schema.column(i).physical_type)
        for i in range(footer.num_columns)
        if str(reader.schema.column(i).logical_type) == "Date"
        for group in range(footer.num_row_groups)
    )


def _may_have_old_days(chunk: pq.ColumnChunkMetaData, physical_type: str) -> bool:
    """Whether a row group's column of days may have some before 1582-10-15. Raises FormatError if
    it is not of the schema's physical type.
    """
    if chunk.physical_type != physical_type:
        # Arrow's C++ ends the process if it is asked for the statistics.
        raise FormatError("the types of a Parquet file's footer contradict each other")
    statistics = chunk.statistics
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.min_raw < FIRST_GREGORIAN)  # Python has no dates before the year 1


def _refuse_instants(path: str, reader: pq.ParquetFile) -> None:
    """Raise FormatError for timestamps of INT64 that are no wall clocks, or finer than Spark can
    read.
    """
    for i in range(len(reader.schema)):
        column = reader.schema.column(i)
        kind = str(column.logical_type)
        if "isAdjustedToUTC=true" in kind or "timeUnit=nanoseconds" in kind:
            raise FormatError(
                f"Column '{column.path}' of '{path}' is no wall clock in microseconds, as a "
                "TIMESTAMP of Hive's must be here: it is an instant (adjusted to UTC) or counts "
                "nanoseconds. Write the file again with TIMESTAMP_NTZ.",
                path=path,
            )


def _int96_clock(path: str, reader: pq.ParquetFile) -> Int96Clock | None:
    """Return what the INT96 timestamps of a file mean; None if it has none.

    Raises:
        FormatError: The file does not tell it, or has timestamps of another kind, too.
    """
    columns = [reader.schema.column(i) for i in range(len(reader.schema))]
    int96_columns = [column for column in columns if column.physical_type == _INT96]
    if not int96_columns:
        return None
    if any(str(column.logical_type).startswith("Timestamp") for column in columns):
        raise FormatError(f"'{path}' has timestamps in INT96 and in INT64.", path=path)
    footer = reader.metadata
    return int96_clock(path, int96_columns[0].path, footer.created_by or "", footer.metadata or {})


def _refuse_nanoseconds(path: str, reader: pq.ParquetFile) -> None:
    """Raise UnsupportedError if a file has a timestamp finer than a microsecond in INT96. All these
    timestamps are read, because no footer tells.
    """
    columns = [reader.schema.column(i) for i in range(len(reader.schema))]
    names = sorted(
        {column.path.split(".")[0] for column in columns if column.physical_type == _INT96}
    )
    with _open_parquet(path) as in_micros, _open_parquet(path, "ns") as in_nanos:
        batches = (file.iter_batches(_BATCH_ROWS, columns=names) for file in (in_micros, in_nanos))
        if has_nanoseconds(*batches):
            raise finer_timestamps_error(path)


def _hive_type(path: str, kind: pa.DataType) -> str:
    """Return Hive's type for a column of a file. Raises FormatError if Hive has no such type."""
    type_name = hive_type(plain_type(kind))
    if type_name is None:
        raise FormatError(f"'{path}' has a column of type {kind}, which is not in Hive", path=path)
    return type_name
