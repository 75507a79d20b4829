"""Parquet files of an insert-only table: write them, inspect them, read them for a compaction.

Parquet files name their columns, and Hive, Spark and Trino match columns by name. We store a
TIMESTAMP as a wall clock (``isAdjustedToUTC=false``): Spark reads it as TIMESTAMP_NTZ, Hive 4 and
Trino as TIMESTAMP. Hive 3 and old versions of Spark write INT96 instead: an instant in a time zone
that the file need not name. We refuse INT96. This module runs in workers.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from acidsql.acid.table import PARQUET, Table
from acidsql.errors import FormatError, SettingError
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.orc.damage import naming_damage
from acidsql.storage.orc.encoding.footer import CALENDAR_PROLEPTIC
from acidsql.storage.orc.pending_rows import PendingRows
from acidsql.storage.orc.row_schema import (
    CALENDAR_JULIAN_DATES,
    RowSchema,
    conform,
    places_of_fields,
)
from acidsql.storage.orc.writer import FileStats
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
_FIRST_GREGORIAN = datetime.date(1582, 10, 15)


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


def read_parquet(path: str, schema: RowSchema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with the table's current columns, as Spark's reader shows them.
    Columns that the file lacks are NULL.

    Raises:
        FormatError: It is no Parquet file; a column does not fit the table's type, timestamps are
            no wall clocks, or days are of a calendar that the file tells Hive's readers only.
    """
    with _open_parquet(path) as reader:
        _need_readable(path, reader, schema)
        kinds = pa.schema(
            [field.with_type(plain_type(field.type)) for field in reader.schema_arrow]
        )
        calendar = CALENDAR_JULIAN_DATES if _has_old_days(reader) else CALENDAR_PROLEPTIC
        for batch in reader.iter_batches(_BATCH_ROWS):
            yield _conform_batch(batch.cast(kinds), schema, calendar)


def need_readable(paths: Sequence[str], schema: RowSchema) -> None:
    """Check, by the footers, that Spark's reader shows the columns of files as they are.

    Raises:
        FormatError: A file is no Parquet file, a column does not fit the table's type, timestamps
            are no wall clocks in microseconds or coarser, or days may be of a calendar that the
            file tells Hive's readers only.
    """
    run_in_threads(
        lambda path: _inspect(path, lambda reader: _need_readable(path, reader, schema)), paths
    )


def need_wall_clocks(paths: Sequence[str]) -> None:
    """Check that all timestamps in files are wall clocks, which Spark's reader shows unchanged.

    Raises:
        FormatError: A file is no Parquet file, or has timestamps that are no wall clocks in
            microseconds or coarser.
    """
    run_in_threads(lambda path: _inspect(path, partial(_refuse_instants, path)), paths)


def _inspect(path: str, look: Callable[[pq.ParquetFile], None]) -> None:
    """Call a function with the reader of a file. Raises FormatError if it is no Parquet file."""
    with _open_parquet(path) as reader:
        look(reader)


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
def _open_parquet(path: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file for the block, and give its reader. Raises FormatError for damage, also
    for errors of decoding in the block.
    """
    with naming_damage(path), filesystem_for(path).open_input(path) as file:
        yield pq.ParquetFile(pa.PythonFile(file, mode="r"))


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
    """Raise FormatError if a file's timestamps are no wall clocks, its columns do not fit the
    table, or Hive noted the hybrid calendar and its days may be before 1582-10-15.
    """
    _refuse_instants(path, reader)
    if fault := parquet_misfit(reader.schema_arrow, schema):
        raise FormatError(f"'{path}' does not fit the table: {fault}.", path=path)
    if (reader.metadata.metadata or {}).get(_HIVES_CALENDAR) == b"false":
        _refuse_days_of_hives(path, reader)


def _has_old_days(reader: pq.ParquetFile) -> bool:
    """Whether Spark's reader takes the dates of a file for days of the hybrid calendar, by what
    Spark noted in the footer: a version before 3, or that it wrote old dates. False without Spark's
    version.
    """
    keys = reader.metadata.metadata or {}
    version = keys.get(_SPARK)
    return version is not None and (_OLD_SPARK in keys or version < b"3.")


def _refuse_days_of_hives(path: str, reader: pq.ParquetFile) -> None:
    """Raise FormatError if a DATE column, also one inside of a nested type, has days before
    1582-10-15, or a row group without a minimum and maximum of it, as where all values are NULL.
    Also raise it if a row group has another physical type than the schema. Called if only Hive's
    own key says that the days are of the hybrid calendar.
    """
    footer = reader.metadata
    for i in range(footer.num_columns):
        if str(reader.schema.column(i).logical_type) != "Date":
            continue
        for group in range(footer.num_row_groups):
            chunk = footer.row_group(group).column(i)
            if chunk.physical_type != reader.schema.column(i).physical_type:
                # Arrow's C++ ends the process if it is asked for the statistics.
                raise FormatError("the types of a Parquet file's footer contradict each other")
            statistics = chunk.statistics
            if (
                statistics is None
                or not statistics.has_min_max
                or statistics.min < _FIRST_GREGORIAN
            ):
                raise FormatError(
                    f"Column '{footer.schema.column(i).path}' of '{path}' may hold days before "
                    "1582-10-15, which Hive wrote in the hybrid calendar: Spark would show others. "
                    "Write the file anew with hive.parquet.date.proleptic.gregorian=true.",
                    path=path,
                )


def _refuse_instants(path: str, reader: pq.ParquetFile) -> None:
    """Raise FormatError for timestamps that are no wall clocks, or finer than Spark can read."""
    for i in range(len(reader.schema)):
        column = reader.schema.column(i)
        kind = str(column.logical_type)
        is_instant = column.physical_type == "INT96" or "isAdjustedToUTC=true" in kind
        if is_instant or "timeUnit=nanoseconds" in kind:
            raise FormatError(
                f"Column '{column.path}' of '{path}' is no wall clock in microseconds, as a "
                "TIMESTAMP of Hive's must be here: it is an instant (INT96, or adjusted to UTC) "
                "or counts nanoseconds. Write the file again with TIMESTAMP_NTZ.",
                path=path,
            )


def _hive_type(path: str, kind: pa.DataType) -> str:
    """Return Hive's type for a column of a file. Raises FormatError if Hive has no such type."""
    type_name = hive_type(plain_type(kind))
    if type_name is None:
        raise FormatError(f"'{path}' has a column of type {kind}, which is not in Hive", path=path)
    return type_name
