"""The delete stage of a statement's job (see ``event_writer``): delete keys → delete files.

This module runs in workers: it imports neither pyspark nor modules of the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from acidsql.errors import WriteError
from acidsql.storage.event_records import (
    ACTION,
    BUCKET_ID,
    BUCKET_PROPERTY,
    DELETE,
    EXAMPLES,
    PARTITION,
    RECORD,
    ROW_ID,
    SOURCE_ATTEMPT,
    SOURCE_TASK,
    WRITE_ID,
    Record,
    RowKey,
    Task,
    WriteMode,
    WriteSpec,
    keys_as_text,
)
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.orc.event_file import EventFileWriter
from acidsql.storage.writing.staged_file import (
    Group,
    OpenFiles,
    StagedFile,
    abort_on_error,
    runs,
    staged_path,
)


def write_deletes(
    spec: WriteSpec, task: Task, batches: Iterable[pa.RecordBatch]
) -> Iterator[Record]:
    """Run the delete stage: write sorted delete keys into files of the staging directory, and yield
    the records of both stages: those of the insert stage at once as they come among the keys; at
    the end those of this task's files, ``matched`` and ``duplicate`` with numbers of rows if these
    are not 0, and one ``seen`` for each attempt of a task that keys came from.

    Raises:
        WriteError: The keys are not sorted.
    """
    source_tasks: set[tuple[int, int]] = set()
    with abort_on_error(_DeleteWriter(spec, task)) as writer:
        for batch in batches:
            carried = batch.column(RECORD)
            for text in carried.drop_null().to_pylist():
                yield Record.from_json(text)
            keys = batch.filter(carried.is_null())
            if keys.num_rows:
                source_tasks |= _source_tasks(keys)
                writer.write(keys)
        yield from writer.close()
    for number, attempt in sorted(source_tasks):
        yield Record("seen", number, attempt)


class _DeleteWriter:
    """Writes delete keys into one file for each (partition, bucket id). The keys of a file
    ascend."""

    def __init__(self, spec: WriteSpec, task: Task) -> None:
        """Begin without keys. No file is opened yet."""
        self._spec, self._task = spec, task
        self._fs = filesystem_for(spec.staging)
        self._matched = self._duplicates = 0
        self._examples: list[RowKey] = []
        self._records: list[Record] = []
        self._files = OpenFiles(_DeleteFile, self._finish)

    def write(self, keys: pa.RecordBatch) -> None:
        """Write the delete events of these keys into their files. Raises WriteError if the keys of
        a file do not ascend.
        """
        names = (PARTITION, BUCKET_ID)
        for start, end in runs(keys.num_rows, [keys.column(name) for name in names]):
            partition, bucket_id = (keys.column(name)[start].as_py() for name in names)
            file = self._files.get((partition, bucket_id))
            self._append(file, keys.slice(start, end - start), partition)

    def close(self) -> list[Record]:
        """Close all files, and return their records; and a record for the number of rows that were
        matched without a deletion, and for that of rows that were matched twice, if there are any.
        """
        self._files.close()
        number, attempt = self._task.number, self._task.attempt
        if self._matched:
            self._records.append(Record("matched", number, attempt, rows=self._matched))
        if self._duplicates:
            examples = keys_as_text(self._examples)
            self._records.append(
                Record("duplicate", number, attempt, rows=self._duplicates, detail=examples)
            )
        return self._records

    def abort(self) -> None:
        """Close the open files as they are."""
        self._files.abort()

    def _append(self, file: _DeleteFile, keys: pa.RecordBatch, partition: str) -> None:
        """Write delete events for the keys that delete, each once. Count repeated keys as
        duplicates (unless they are allowed), and keys that only matched. Raises WriteError if
        the keys do not ascend. ``partition``: the partition's directory.
        """
        triple = [keys.column(name).to_numpy() for name in (WRITE_ID, BUCKET_PROPERTY, ROW_ID)]
        repeated = file.repeats(triple)
        if self._spec.mode is not WriteMode.MERGE_WITH_REPEATS:
            self._duplicates += int(repeated.sum())
            self._note_examples(partition, triple, repeated)
        deletes = (keys.column(ACTION).to_numpy() & DELETE) == DELETE
        self._matched += int((~deletes).sum())
        keep = deletes & ~repeated
        if not keep.any():
            return
        if file.staged is None:
            path = staged_path(self._spec.staging, "delete", self._task)
            file.staged = StagedFile(
                self._fs, path, lambda out: EventFileWriter(out, self._spec.row, self._spec.orc)
            )
        write_ids, properties, row_ids = (column[keep] for column in triple)
        file.staged.writer.write_deletes(
            write_ids, properties, row_ids, write_id=self._spec.write_id
        )

    def _note_examples(
        self, partition: str, triple: list[np.ndarray], repeated: np.ndarray
    ) -> None:
        """Note the first different keys that are repeated, as many as ``EXAMPLES``."""
        if len(self._examples) == EXAMPLES or not repeated.any():
            return
        # One key may be repeated a million times.
        is_new = repeated.copy()
        is_new[1:] &= ~repeated[:-1] | np.logical_or.reduce(
            [column[1:] != column[:-1] for column in triple]
        )
        for index in np.flatnonzero(is_new)[: EXAMPLES + 1]:
            if len(self._examples) == EXAMPLES:
                return
            write_id, bucket_property, row_id = (int(column[index]) for column in triple)
            key = RowKey(partition, write_id, bucket_property, row_id)
            if key not in self._examples[-1:]:  # equal keys come one after another
                self._examples.append(key)

    def _finish(self, group: Group, file: _DeleteFile) -> None:
        """Close a file, if it was opened, and keep its record."""
        if file.staged is not None:
            self._records.append(file.staged.close_and_record("delete", self._task, *group))


class _DeleteFile:
    """A file of delete events, and the last key that came for it.

    The file is opened for its first delete event. Keys that only matched open no file.
    """

    def __init__(self) -> None:
        self.staged: StagedFile[EventFileWriter] | None = None
        self._last: tuple[int, int, int] | None = None

    def abort(self) -> None:
        """Close the file as it is, if it was opened."""
        if self.staged is not None:
            self.staged.abort()

    def repeats(self, triple: list[np.ndarray]) -> np.ndarray:
        """Return for each key whether it equals the key before it, in this batch or the last one;
        and remember the last key for the next call. ``triple``: the columns of the row ids.

        Raises:
            WriteError: The keys do not ascend, so a repeated key could stay unseen (I4).
        """
        previous_key = self._last or tuple(int(column[0]) for column in triple)
        repeats = np.ones(len(triple[0]), dtype=bool)
        falls = np.zeros(len(triple[0]), dtype=bool)
        for column, last in zip(triple, previous_key, strict=True):
            previous = np.concatenate(([last], column[:-1]))
            falls |= repeats & (column < previous)
            repeats &= column == previous
        if falls.any():
            raise WriteError("The keys of deleted rows did not come sorted. Nothing was changed.")
        if self._last is None:
            repeats[0] = False
        self._last = tuple(int(column[-1]) for column in triple)  # type: ignore[assignment]
        return repeats


def _source_tasks(keys: pa.RecordBatch) -> set[tuple[int, int]]:
    """Return number and attempt of the tasks of the insert stage that made these keys; empty if
    there was no such stage.
    """
    pairs = pa.Table.from_batches([keys.select([SOURCE_TASK, SOURCE_ATTEMPT])]).drop_null()
    different = pairs.group_by(pairs.column_names, use_threads=False).aggregate([])
    return set(zip(*different.to_pydict().values(), strict=True))
