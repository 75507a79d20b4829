"""Rows that wait to be written together. Runs in workers."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa


class PendingRows:
    """Batches that go to a file's writer as one, as few rows at once are slow to write.

    What waits has never more than so many bytes, and what is handed on is no more, unless it is one
    batch: what is large is not copied to be one.

    Args:
        write: Gets them.
        most_rows: As soon as there are so many, they are written.
        most_bytes: And before there are more than that.
    """

    def __init__(self, write: Callable[[pa.Table], None], most_rows: int, most_bytes: int) -> None:
        self._write, self._most_rows, self._most_bytes = write, most_rows, most_bytes
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    @property
    def waiting(self) -> int:
        """Bytes of what waits."""
        return self._bytes

    def add(self, batch: pa.RecordBatch) -> None:
        """One more; it may be written at once."""
        size = batch.nbytes
        if self._bytes + size > self._most_bytes:
            self.flush()
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += size
        if self._rows >= self._most_rows or self._bytes >= self._most_bytes:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        batches, rows = self._batches, self._rows
        self._batches, self._rows, self._bytes = [], 0, 0
        if rows:
            self._write(pa.Table.from_batches(batches).combine_chunks())
