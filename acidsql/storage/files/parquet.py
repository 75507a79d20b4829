"""Parquet files of an insert-only table: write them, inspect them, read them for a compaction.

Parquet files name their columns, and Hive, Spark and Trino match columns by name. We store a
TIMESTAMP as a wall clock (``isAdjustedToUTC=false``): Spark reads it as TIMESTAMP_NTZ, Hive 4 and
Trino as TIMESTAMP. Hive 3 and old versions of Spark write INT96 instead: an instant in a time zone
that the file need not name. We refuse INT96. This module runs in workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from acidsql.acid.table import PARQUET, Table
from acidsql.errors import FormatError, SettingError
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.parallel import in_threads
from acidsql.storage.orc.footer import CALENDAR_PROLEPTIC
from acidsql.storage.orc.pending_rows import PendingRows
from acidsql.storage.orc.row_schema import RowSchema, conform, places_of_fields
from acidsql.storage.orc.writer import FileStats

COMPRESSION = "parquet.compression"  # the property's name in Hive and Spark
_COMPRESSIONS = ("snappy", "gzip", "zstd", "uncompressed")
_ROW_GROUP_BYTES = 64 * 1024 * 1024  # in memory, before encoding
_ROW_GROUP_ROWS = 1_000_000
_BATCH_ROWS = 1024  # few, because the file does not say how many bytes a row has

_HIVE_TYPES = {
    pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int",
    pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double", pa.string(): "string",
    pa.binary(): "binary", pa.date32(): "date",
    pa.timestamp("us"): "timestamp", pa.timestamp("ms"): "timestamp",
}  # fmt: skip


def compression_of(properties: Mapping[str, str]) -> str:
    """The value of a table's ``parquet.compression``; by default SNAPPY, as in Spark.

    Raises:
        SettingError: Hive, Spark and Trino do not all read this compression.
    """
    for key, value in properties.items():
        if key.lower() == COMPRESSION:
            if value.lower() not in _COMPRESSIONS:
                known = ", ".join(_COMPRESSIONS).upper()
                raise SettingError(f"'{key}' is one of {known}, not '{value}'.", key=key)
            return value.lower()
    return _COMPRESSIONS[0]


def parquet_of(table: Table) -> str | None:
    """The compression of a table's Parquet files; None for an ORC table. Raises SettingError."""
    return compression_of(table.properties) if table.file_format == PARQUET else None


class ParquetFileWriter:
    """Writes one file of plain rows.

    Args:
        file: The result of ``FileSystem.open_output``; the writer closes it.
        schema: The table's data columns.
        compression: The result of ``compression_of``.
    """

    def __init__(self, file: BinaryIO, schema: RowSchema, compression: str) -> None:
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
        columns = self._schema.conform_for_writing(batch.columns)
        self._pending.add(pa.RecordBatch.from_arrays(columns, schema=self._schema.arrow))

    def close(self) -> FileStats:
        self._pending.flush()
        self._parquet.close()
        written = self._file.tell()
        self._file.close()
        return FileStats(self._rows, 0, written, self._groups)

    def _write(self, rows: pa.Table) -> None:
        self._parquet.write_table(rows, row_group_size=rows.num_rows)
        self._rows += rows.num_rows
        self._groups += 1


def read_parquet(path: str, schema: RowSchema) -> Iterator[pa.RecordBatch]:
    """The rows of a file with the table's current columns; columns that the file lacks are NULL.

    Raises:
        FormatError: The file is not Parquet, a column does not fit the table's type, or timestamps
            are no wall clocks.
    """
    with _opened(path) as reader:
        _refuse_instants(path, reader)
        for batch in reader.iter_batches(_BATCH_ROWS):
            yield _as_the_tables(batch, schema)


def need_wall_clocks(paths: Sequence[str]) -> None:
    """Check that all timestamps in files are wall clocks, which Spark's reader shows unchanged.

    Raises:
        FormatError: A file has timestamps that are no wall clocks.
    """
    in_threads(_need_wall_clocks, paths)


def _need_wall_clocks(path: str) -> None:
    with _opened(path) as reader:
        _refuse_instants(path, reader)


def columns_of_parquet(path: str) -> list[tuple[str, str]]:
    """The names and Hive types of a file's columns.

    Raises:
        FormatError: The file is not Parquet, a column's type does not exist in Hive, or timestamps
            are no wall clocks.
    """
    with _opened(path) as reader:
        _refuse_instants(path, reader)
        return [(field.name, _hive_type(path, field.type)) for field in reader.schema_arrow]


def rows_of_parquet(path: str) -> int:
    """The number of rows in a file's footer. Raises FormatError if it is no Parquet file."""
    with _opened(path) as reader:
        return int(reader.metadata.num_rows)


@contextmanager
def _opened(path: str) -> Iterator[pq.ParquetFile]:
    with filesystem_for(path).open_input(path) as file:
        try:
            yield pq.ParquetFile(pa.PythonFile(file, mode="r"))
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise FormatError(f"'{path}' cannot be read as Parquet: {error}", path=path) from error


def _as_the_tables(batch: pa.RecordBatch, schema: RowSchema) -> pa.RecordBatch:
    columns = [*batch.columns, pa.nulls(batch.num_rows)]  # the last one is for missing columns
    places = places_of_fields(schema.names, batch.schema.names)
    chosen = [columns[-1 if place is None else place] for place in places]
    rows = pa.StructArray.from_arrays(chosen, names=list(schema.names))
    return pa.RecordBatch.from_struct_array(conform(rows, schema.struct, CALENDAR_PROLEPTIC))


def _refuse_instants(path: str, reader: pq.ParquetFile) -> None:
    """Refuse timestamps that are no wall clocks, or finer than Spark can read."""
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
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{_hive_type(path, kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_hive_type(path, kind.key_type)},{_hive_type(path, kind.item_type)}>"
    if pa.types.is_struct(kind):
        fields = (f"{field.name}:{_hive_type(path, field.type)}" for field in kind)
        return f"struct<{','.join(fields)}>"
    if kind not in _HIVE_TYPES:
        raise FormatError(f"'{path}' has a column of type {kind}, which is not in Hive", path=path)
    return _HIVE_TYPES[kind]
