"""Files of an insert-only table: they have the user's columns and nothing else.

The directory's and the file's names replace the event columns: ``delta_N_N_S/000003_0`` has rows of
bucket id 3 that write id N inserted. This module runs in workers.
"""

from __future__ import annotations

from typing import BinaryIO, Protocol

import pyarrow as pa

from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.orc.options import DEFAULT, OrcOptions
from acidsql.storage.orc.pending_rows import PendingRows
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.orc.writer import BATCH_BYTES, BATCH_ROWS, FileStats, OrcWriter


class InsertWriter(Protocol):
    """A writer of new rows."""

    def write_inserts(
        self, batch: pa.RecordBatch, write_id: int, bucket_property: int, first_row_id: int
    ) -> None:
        """Add rows; the user's columns by position. A plain file stores no row ids."""

    def close(self) -> FileStats:
        """Write what is left, complete the footer, close (and sync) the file, and return its
        counts.
        """

    def abort(self) -> None:
        """Close the file as it is. It is not valid, so the caller must delete it."""


class PlainFileWriter:
    """Writes one plain file.

    Args:
        file: The result of ``FileSystem.open_output``; the writer closes it.
        schema: The table's data columns.
        options: The options that the table's ``orc.…`` properties set.
    """

    def __init__(self, file: BinaryIO, schema: RowSchema, options: OrcOptions = DEFAULT) -> None:
        """Begin the ORC file, with the Bloom filters that the options name."""
        self._schema = schema
        bloom_filters = options.bloom_filter_ids(schema.hive)
        self._orc = OrcWriter(file, schema.arrow, schema.hive, options, bloom_filters)
        self._pending = PendingRows(self._write, BATCH_ROWS, BATCH_BYTES)
        self._rows = 0

    def write_inserts(
        self, batch: pa.RecordBatch, write_id: int, bucket_property: int, first_row_id: int
    ) -> None:
        """Add rows; the user's columns by position. Rows wait until there are enough for a batch.
        The other arguments are not stored. Raises WriteError if a value cannot be stored.
        """
        columns = self._schema.conform_for_writing(batch.columns)
        self._pending.add(pa.RecordBatch.from_arrays(columns, schema=self._schema.arrow))

    def close(self) -> FileStats:
        """Write what is left, complete the footer, close (and sync) the file, and return its
        counts: rows as inserts, no deletes, bytes and stripes.
        """
        self._pending.flush()
        written, stripes = self._orc.close(lambda _: {})
        return FileStats(self._rows, 0, written, stripes)

    def abort(self) -> None:
        """Close the file as it is. It is no valid ORC file, so the caller must delete it."""
        self._orc.abort()

    def _write(self, table: pa.Table) -> None:
        """Write these rows, and count them."""
        self._orc.write(table)
        self._rows += table.num_rows


class HowToWrite(Protocol):
    """The facts about table and statement that the writers need; see ``WriteSpec``."""

    @property
    def staging(self) -> str: ...
    @property
    def row(self) -> RowSchema: ...
    @property
    def orc(self) -> OrcOptions: ...
    @property
    def insert_only(self) -> bool: ...
    @property
    def parquet(self) -> str | None: ...


def insert_writer(file: BinaryIO, how: HowToWrite) -> InsertWriter:
    """Return a writer for new rows of a table: of Parquet with ``parquet``, else of plain ORC with
    ``insert_only``, else of events. It closes ``file``.
    """
    if how.parquet is not None:
        # Few tables are Parquet, so only their tasks import the library.
        from acidsql.storage.tables.parquet import ParquetFileWriter

        return ParquetFileWriter(file, how.row, how.parquet)
    make = PlainFileWriter if how.insert_only else EventFileWriter
    return make(file, how.row, how.orc)
