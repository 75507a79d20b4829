"""Parquet files of an insert-only table: written, looked into, and read again by a compaction.

Parquet names its columns, and Hive, Spark and Trino match them by name. A TIMESTAMP is stored as a
wall clock (``isAdjustedToUTC=false``): Spark reads it as TIMESTAMP_NTZ, Hive 4 and Trino as
TIMESTAMP. What Hive 3 and old Sparks write instead (INT96) is an instant of a time zone that the
file need not tell, so it is refused. Runs in workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from acidsql.acid.table import PARQUET, Table
from acidsql.errors import FormatError, SettingError
from acidsql.storage.filesystem import filesystem_for
from acidsql.storage.orc_footer import CALENDAR_PROLEPTIC
from acidsql.storage.orc_writer import FileStats
from acidsql.storage.parallel import in_threads
from acidsql.storage.row_schema import RowSchema, conform, places_of_fields

COMPRESSION = "parquet.compression"  # the property, as Hive and Spark call it
_COMPRESSIONS = ("snappy", "gzip", "zstd", "uncompressed")
_ROW_GROUP_BYTES = 64 * 1024 * 1024  # in memory, before encoding
_ROW_GROUP_ROWS = 1_000_000
_BATCH_ROWS = 8192

_HIVE_TYPES = {
    pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int",
    pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double", pa.string(): "string",
    pa.binary(): "binary", pa.date32(): "date",
    pa.timestamp("us"): "timestamp", pa.timestamp("ms"): "timestamp",
}  # fmt: skip


def compression_of(properties: Mapping[str, str]) -> str:
    """What a table's ``parquet.compression`` says; SNAPPY by default, as Spark has it.

    Raises:
        SettingError: It is none of those that Hive, Spark and Trino all read.
    """
    for key, value in properties.items():
        if key.lower() == COMPRESSION:
            if value.lower() not in _COMPRESSIONS:
                known = ", ".join(_COMPRESSIONS).upper()
                raise SettingError(f"'{key}' is one of {known}, not '{value}'.", key=key)
            return value.lower()
    return _COMPRESSIONS[0]


def parquet_of(table: Table) -> str | None:
    """The compression of a table's Parquet files; None of an ORC table. Raises SettingError."""
    return compression_of(table.properties) if table.file_format == PARQUET else None


class ParquetFileWriter:
    """Writes one file of plain rows.

    Args:
        file: What ``FileSystem.open_output`` gave; the writer closes it.
        schema: The table's data columns.
        compression: As ``compression_of`` gives it.
    """

    def __init__(self, file: BinaryIO, schema: RowSchema, compression: str) -> None:
        self._file, self._schema = file, schema
        codec = "none" if compression == "uncompressed" else compression
        self._parquet = pq.ParquetWriter(
            pa.PythonFile(file, mode="w"), schema.arrow, compression=codec, store_schema=False
        )
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._pending_bytes = self._rows = self._groups = 0

    def write_inserts(
        self, batch: pa.RecordBatch, write_id: int, bucket_property: int, first_row_id: int
    ) -> None:
        """Add rows; the user's columns by position. Their ids are stored nowhere."""
        columns = self._schema.conform_for_writing(batch.columns)
        self._pending.append(pa.RecordBatch.from_arrays(columns, schema=self._schema.arrow))
        self._pending_rows += batch.num_rows
        self._pending_bytes += batch.nbytes
        if self._pending_rows >= _ROW_GROUP_ROWS or self._pending_bytes >= _ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> FileStats:
        """Write what is left and the footer, and close (and sync) the file."""
        self._flush()
        self._parquet.close()
        written = self._file.tell()
        self._file.close()
        return FileStats(self._rows, 0, written, self._groups)

    def _flush(self) -> None:
        if self._pending_rows:
            rows = pa.Table.from_batches(self._pending)
            self._parquet.write_table(rows, row_group_size=rows.num_rows)
            self._rows += self._pending_rows
            self._groups += 1
            self._pending, self._pending_rows, self._pending_bytes = [], 0, 0


def read_parquet(path: str, schema: RowSchema) -> Iterator[pa.RecordBatch]:
    """The rows of a file as the table has them now; a column that the file lacks is NULL.

    Raises:
        FormatError: It is no Parquet file, or a column has another type than the table's.
    """
    with _opened(path) as reader:
        _refuse_instants(path, reader)
        for batch in reader.iter_batches(_BATCH_ROWS):
            yield _as_the_tables(batch, schema)


def need_wall_clocks(paths: Sequence[str]) -> None:
    """See that Spark's reader shows the files' timestamps as the wall clocks that they are.

    Raises:
        FormatError: A file holds timestamps that are none.
    """
    in_threads(_need_wall_clocks, paths)


def _need_wall_clocks(path: str) -> None:
    with _opened(path) as reader:
        _refuse_instants(path, reader)


def columns_of_parquet(path: str) -> list[tuple[str, str]]:
    """The names of a file's columns, and Hive's types for them.

    Raises:
        FormatError: It is no Parquet file, or has a type that Hive has not.
    """
    with _opened(path) as reader:
        _refuse_instants(path, reader)
        return [(field.name, _hive_type(path, field.type)) for field in reader.schema_arrow]


def rows_of_parquet(path: str) -> int:
    """How many rows a file's footer tells of. Raises FormatError: it is no Parquet file."""
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
    columns = [*batch.columns, pa.nulls(batch.num_rows)]  # the last one stands for what is missing
    places = places_of_fields(schema.names, batch.schema.names)
    chosen = [columns[-1 if place is None else place] for place in places]
    rows = pa.StructArray.from_arrays(chosen, names=list(schema.names))
    return pa.RecordBatch.from_struct_array(conform(rows, schema.struct, CALENDAR_PROLEPTIC))


def _refuse_instants(path: str, reader: pq.ParquetFile) -> None:
    """No column may hold timestamps that are no wall clocks, or finer than Spark can read."""
    for i in range(len(reader.schema)):
        column = reader.schema.column(i)
        kind = str(column.logical_type)
        is_instant = column.physical_type == "INT96" or "isAdjustedToUTC=true" in kind
        if is_instant or "timeUnit=nanoseconds" in kind:
            raise FormatError(
                f"Column '{column.path}' of '{path}' is no wall clock in microseconds, as a "
                "TIMESTAMP of Hive's must be here: it is an instant (INT96, or adjusted to UTC) "
                "or counts nanoseconds. Write the file anew with TIMESTAMP_NTZ.",
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
        raise FormatError(f"'{path}' has a column of type {kind}, which Hive has not", path=path)
    return _HIVE_TYPES[kind]
