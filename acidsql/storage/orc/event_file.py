"""The writer of ORC files of events.

pyarrow's ORC writer writes the rows: it is fast, and runs in Spark's Python workers. In the same
pass, ``writer`` completes the footer with the things that pyarrow cannot write.

Sources: Hive ``OrcRecordUpdater``; ``reference`` sections 3 and 12 of hive-format.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acidsql.acid import event
from acidsql.errors import WriteError
from acidsql.storage.orc.options import DEFAULT, OrcOptions
from acidsql.storage.orc.pending_rows import PendingRows
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.orc.writer import BATCH_BYTES, BATCH_ROWS, FileStats, OrcWriter

_Int64s = npt.NDArray[np.int64]


class EventFileWriter:
    """Writes one file of events. The events must come in ascending order of row id: original write
    id, bucket property, ``rowId``.

    Args:
        file: The result of ``FileSystem.open_output``; the writer closes it.
        schema: The table's data columns.
        options: The options that the table's ``orc.…`` properties set.
        batch_rows: The greatest number of rows that are collected for the ORC writer.
    """

    def __init__(
        self,
        file: BinaryIO,
        schema: RowSchema,
        options: OrcOptions = DEFAULT,
        *,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._schema = schema
        self._event_schema = event_schema(schema)
        event_type = schema.event_type()
        # Five columns stand before the user's, and the root before them.
        bloom_filters = options.bloom_filter_ids(schema.hive, len(event_type.children))
        self._orc = OrcWriter(file, self._event_schema, event_type, options, bloom_filters)
        self._pending = PendingRows(self._write, batch_rows, BATCH_BYTES)
        self._keys = _StripeKeys()
        self._counts = {event.INSERT: 0, event.DELETE: 0}

    def write_inserts(
        self, batch: pa.RecordBatch, write_id: int, bucket_property: int, first_row_id: int
    ) -> None:
        """Add insert events with new row ids. Values are cast to the types of the table's columns.

        Args:
            batch: The user's columns, by position.
            write_id: The statement's write id. Both write ids of each event are this one.
            bucket_property: The bucket property of all rows.
            first_row_id: The ``rowId`` of the first row; the other rows count on from it.

        Raises:
            WriteError: The number of columns is wrong, or a value cannot be stored.
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
        """Add insert events that keep their row ids. Values are cast to the types of the table's
        columns.

        Args:
            batch: The user's columns, by position.
            write_ids: For each event its write id, the original and the current one.
            bucket_properties: For each event its bucket property.
            row_ids: For each event its ordinal (``rowId``).

        Raises:
            WriteError: The number of columns is wrong, or a value cannot be stored.
        """
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
        """Add delete events. Their ``row``, the user's columns, is NULL.

        Args:
            original_write_ids: The write ids of the row ids to delete.
            bucket_properties: The bucket properties of these row ids, as in the rows' own files.
            row_ids: The ordinals (``rowId``) of these row ids.
            write_id: The write id of the deleting statement; for several statements, one for each
                event.
        """
        writes = np.asarray(original_write_ids, dtype=np.int64)
        buckets = np.asarray(bucket_properties, dtype=np.int32)
        ordinals = np.asarray(row_ids, dtype=np.int64)
        # Hive wants a null struct of the whole type: readers then skip its fields (I4, I5).
        row = pa.nulls(len(ordinals), self._event_schema.field(event.ROW).type)
        deleting = np.broadcast_to(np.asarray(write_id, dtype=np.int64), len(ordinals))
        self._add(event.DELETE, writes, buckets, ordinals, deleting, row)

    def close(self) -> FileStats:
        """Write the remaining events, complete the footer, and close (and sync) the file. Return
        the numbers of its events, bytes and stripes. The footer's user metadata gets the row id of
        each stripe's last event and the numbers of events, as Hive wants them.

        Raises:
            WriteError: A value cannot be stored, or ORC's writer lost rows or ended a stripe
                unnoticed.
        """
        self._pending.flush()
        inserts, deletes = self._counts[event.INSERT], self._counts[event.DELETE]

        def metadata(stripe_rows: tuple[int, ...]) -> dict[str, str]:
            return event.footer_metadata(self._keys.last_keys(stripe_rows), inserts, deletes)

        written, stripes = self._orc.close(metadata)
        return FileStats(inserts, deletes, written, stripes)

    def abort(self) -> None:
        """Close the file as it is. It is no valid ORC file, so the caller must delete it."""
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
        """Add events of one kind to the pending rows, which may write them, and count them.

        Args:
            operation: ``event.INSERT`` or ``event.DELETE``.
            writes: The original write ids.
            buckets: The bucket properties.
            row_ids: The ordinals of the row ids.
            current: The write ids of the events themselves.
            row: The user's columns as a struct.
        """
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
        self._pending.add(pa.RecordBatch.from_arrays(columns, schema=self._event_schema))

    def _write(self, table: pa.Table) -> None:
        """Write events to the file, and keep their row ids if a stripe may have ended."""
        self._keys.add(table, a_stripe_ended=self._orc.write(table))


class _StripeKeys:
    """The row ids of events that may be the last ones of a stripe.

    Only the footer says where stripes end. But the ORC writer writes to the file when a stripe
    ends, so only batches during which something was written are kept.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._stripe_ends: list[tuple[int, pa.Table]] = []
        self._last: tuple[int, pa.Table] | None = None

    def add(self, table: pa.Table, a_stripe_ended: bool) -> None:
        """Keep a batch's row ids if a stripe may have ended in it; the last batch's are always
        kept.
        """
        keys = table.select(event.ROW_ID_COLUMNS)
        self._last = (self._rows, keys)
        if a_stripe_ended:
            self._stripe_ends.append(self._last)
        self._rows += table.num_rows

    def last_keys(self, stripe_rows: tuple[int, ...]) -> list[event.RowId]:
        """Return the row id of each stripe's last event, in the order of the stripes.

        ``stripe_rows``: the number of events in each stripe, from the footer.

        Raises:
            WriteError: The writer ended a stripe unnoticed, or lost rows. The file must not be
                used.
        """
        if sum(stripe_rows) != self._rows:
            raise WriteError("the ORC writer lost rows: its stripes do not hold what it was given")
        candidates = [*self._stripe_ends, self._last] if self._last else []
        return [self._key_at(int(end) - 1, candidates) for end in np.cumsum(stripe_rows)]

    def _key_at(self, row: int, candidates: list[Any]) -> event.RowId:
        """Return the row id of the event at a position in the file. Raises WriteError if it was not
        kept.

        ``candidates``: pairs of a batch's first position and its row ids.
        """
        for first, keys in candidates:
            if first <= row < first + keys.num_rows:
                row_id = keys.slice(row - first, 1).to_pylist()[0]
                return tuple(row_id.values())
        raise WriteError(f"the ORC writer ended a stripe at row {row}, which was not kept")


def event_schema(schema: RowSchema) -> pa.Schema:
    """Return the Arrow schema of an event file with these user columns."""
    types = (pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64(), pa.struct(schema.arrow))
    return pa.schema(list(zip(event.EVENT_COLUMNS, types, strict=True)))
