"""Collects rows so that they are written together. Runs in workers."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa


class PendingRows:
    """Collects batches and writes them as one table, because writing few rows at a time is slow.

    The collected batches never have more than ``most_bytes``, unless there is a single batch. A
    single batch is not copied.

    Args:
        write: Writes a table.
        most_rows: The batches are written as soon as they have this many rows.
        most_bytes: The batches are written before they have more than this many bytes.
    """

    def __init__(self, write: Callable[[pa.Table], None], most_rows: int, most_bytes: int) -> None:
        self._write, self._most_rows, self._most_bytes = write, most_rows, most_bytes
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    @property
    def waiting(self) -> int:
        """The number of bytes of the collected batches."""
        return self._bytes

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch. The batches collected before are written first if they would have more than
        ``most_bytes`` together with the new one. Then all that wait, the new one included, are
        written if they have ``most_rows`` or ``most_bytes``, or more.
        """
        size = batch.nbytes
        if self._bytes + size > self._most_bytes:
            self.flush()
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += size
        if self._rows >= self._most_rows or self._bytes >= self._most_bytes:
            self.flush()

    def flush(self) -> None:
        """Write the collected batches as one table, each column in one chunk; nothing if they have
        no rows. Afterwards no batch waits.
        """
        batches, rows = self._batches, self._rows
        self._batches, self._rows, self._bytes = [], 0, 0
        if rows:
            self._write(pa.Table.from_batches(batches).combine_chunks())
