"""Compaction in a task: fold the events of one bucket id from many files into one file each.

All files are sorted by row id (I4), so they are merged while they are read, in long runs: mostly
all rows of one file come before the rows of the next one. A *major* fold applies the delete events
and writes the live rows, which keep their row ids. A *minor* fold keeps insert and delete events.
But if a transaction deleted its own row again, the fold leaves out both events: no snapshot sees
only one of them, and Hive's vectorised reader does not apply a compacted delete event to a row of
the same write id.

This module runs in workers: it imports neither pyspark nor modules of the driver.

Source: Hive ``CompactorMR``, ``OrcRawRecordMerger``; hive-format, "Compaction and cleaning".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from acidsql.acid import bucket_codec
from acidsql.storage.event_records import (
    BUCKET_PROPERTY,
    PARTITION,
    Record,
    Task,
)
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.folding.event_merge import (
    KEYS,
    LEAST,
    EventSource,
    Int64s,
    Key,
    are_among,
    compare_with_bound,
    key_at,
    keys_of,
    merge_events,
)
from acidsql.storage.orc.damage import misplaced_events_error, naming_damage
from acidsql.storage.orc.options import OrcOptions
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events.event_reader import (
    DELETE_COLUMNS,
    DELETING_WRITE_ID,
    FileRead,
    read_deletes,
    read_file,
)
from acidsql.storage.writing.calendar_gap import refuse_unreadable_days
from acidsql.storage.writing.event_writer import bucket_ids
from acidsql.storage.writing.plain_file import insert_writer
from acidsql.storage.writing.staged_file import StagedFile, abort_on_error, staged_path

_FIRST_COLUMN = 4  # of the user's, behind the row id and the partition


@dataclass(frozen=True, slots=True)
class BucketFold:
    """One task's work.

    Attributes:
        partition: The directory below the table's.
        bucket_id: The bucket id of all these files, and of the files that are written.
        inserts: Files of insert events, or of plain rows.
        deletes: Files of delete events.
        major: Delete events are applied, and not kept.
    """

    partition: str
    bucket_id: int
    inserts: tuple[FileRead, ...]
    deletes: tuple[FileRead, ...]
    major: bool


@dataclass(frozen=True, slots=True)
class FoldSpec:
    """What all tasks of a compaction must know.

    Attributes:
        staging: The compaction's hidden directory.
        row: The data columns.
        orc: How ORC files are written.
        insert_only: Files are plain: rows have no row ids, and there are no delete events.
        parquet: As in ``WriteSpec``.
    """

    staging: str
    row: RowSchema
    orc: OrcOptions
    insert_only: bool = False
    parquet: str | None = None


def fold_bucket(bucket_fold: BucketFold, spec: FoldSpec, task: Task) -> list[Record]:
    """Merge the files of a fold, write the events that remain into new files of the staging
    directory, and return a record for each: at most one of kind ``insert`` and one of kind
    ``delete``, which only a minor fold writes; an empty list if no events remain. After an error
    the files are only closed: whoever removes the staging directory deletes them.

    Raises:
        FormatError: The files break Hive's rules: they are not sorted, or have rows of another
            bucket id.
        UnsupportedError: The files have values that would change when they are written again.
        WriteError: The files have days that would be read as others from a file of ours.
    """
    with abort_on_error(_Output(bucket_fold, spec, task)) as output:
        if spec.insert_only:
            for read in bucket_fold.inserts:
                for batch in _plain_rows(read, spec):
                    output.write_rows(batch)
        else:
            for live in _remaining_inserts(bucket_fold, spec.row, output.write_deletes):
                columns = live.select(range(_FIRST_COLUMN, live.num_columns))
                output.write_inserts([live.column(name) for name in KEYS], columns)
        return output.close()


def _plain_rows(read: FileRead, spec: FoldSpec) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of an insert-only table: only the data columns, by the table's
    types.
    """
    if spec.parquet is not None:
        assert read.original is not None
        from acidsql.storage.tables.parquet import read_parquet  # see plain_file.insert_writer

        yield from read_parquet(read.original.path, spec.row, exact=True)
        return
    schema = _flat(spec.row)
    for batch in read_file(read, schema, schema.names, exact=True):
        yield batch.select(range(_FIRST_COLUMN, batch.num_columns))


def live_rows(bucket_fold: BucketFold, row: RowSchema) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a fold, which must be a major one, would write, in order of row id: row
    id, then the columns ``c0``, ``c1``, ….

    Raises:
        FormatError: The files break Hive's rules: they are not sorted, or have rows of another
            bucket id.
        UnsupportedError: The files have values that would change when they are written again.
    """
    for batch in _remaining_inserts(bucket_fold, row, lambda _: None):
        yield batch.drop_columns([PARTITION])


def _remaining_inserts(
    bucket_fold: BucketFold, row: RowSchema, keep_deletes: Callable[[pa.RecordBatch], None]
) -> Iterator[pa.RecordBatch]:
    """Yield the insert events that a fold keeps, in order of row id: row id, partition, then the
    columns ``c0``, ``c1``, …. A major fold leaves out deleted rows; a minor one only rows that
    their own write id deleted, and hands all other delete events to ``keep_deletes``. Raises
    FormatError if the files break Hive's rules, and UnsupportedError for values that would change
    when they are written again.
    """
    schema = _flat(row)
    deleted = _DeleteEvents(bucket_fold, keep_deletes)
    inserts = [
        _event_source(
            bucket_fold,
            read,
            partial(read_file, read, schema, schema.names, exact=True),
            least_key(read),
        )
        for read in bucket_fold.inserts
    ]
    for batch in merge_events(inserts):
        live = deleted.without(batch)
        if live.num_rows:
            yield live
    deleted.drain()


def _event_source(
    bucket_fold: BucketFold,
    read: FileRead,
    batches: Callable[[], Iterator[pa.RecordBatch]],
    least: Key,
) -> EventSource:
    """Return the events of a file as a source for ``merge_events``. Reading raises FormatError for
    a row of another bucket id. ``least``: a lower bound of the row ids in the file.
    """

    def checked_batches() -> Iterator[pa.RecordBatch]:
        """Yield the file's batches, each after the check of its bucket ids."""
        with naming_damage(read.file):
            for batch in batches():
                _need_bucket(bucket_fold, batch, read.file)
                yield batch

    return EventSource(checked_batches, least, read.file)


def least_key(read: FileRead) -> Key:
    """Return a lower bound of the row ids in a file of insert events."""
    return (read.least_write_id, -(2**31), -(2**63))


def _need_bucket(bucket_fold: BucketFold, batch: pa.RecordBatch, path: str) -> None:
    """Raise FormatError if a batch of the file ``path`` has rows of another bucket id (I5): this
    fold does not read the delete events of other buckets' rows.
    """
    properties = np.unique(batch.column(BUCKET_PROPERTY).to_numpy())
    is_foreign = bucket_ids(properties) != bucket_fold.bucket_id
    if is_foreign.any():
        stranger = bucket_codec.decode(int(properties[is_foreign][0]))
        raise misplaced_events_error(
            path,
            f"as a file of bucket {bucket_fold.bucket_id} it holds rows of bucket "
            f"{stranger.bucket_id}",
        )


def _flat(row: RowSchema) -> RowSchema:
    """Return the columns under the names ``c0``, ``c1``, …."""
    return RowSchema.from_fields((f"c{i}", kind) for i, kind in enumerate(row.types))


def write_sorted_rows(
    batches: Iterable[pa.RecordBatch], spec: FoldSpec, partition: str, task: Task
) -> list[Record]:
    """Write rows under given row ids into files of the staging directory, one for each bucket id,
    and return their records. After an error the files are only closed: whoever removes the staging
    directory deletes them.

    Args:
        batches: The rows, sorted by bucket id, then by row id. The columns are the row id (write
            id, bucket property, ``rowId``), then the user's columns.
        spec: How to write the rows.
        partition: The directory below the table's.
        task: The task, for the names of the files.

    Raises:
        WriteError: A value cannot be stored, or a day would be read as another from a file of ours.
    """
    records: list[Record] = []
    with abort_on_error(_Output(_placed_fold(partition, 0), spec, task)) as output:
        for batch in batches:
            buckets = bucket_ids(batch.column(1).to_numpy())
            for bucket in np.unique(buckets).tolist():
                if output.bucket_fold.bucket_id != bucket:
                    records += output.close()
                    output.bucket_fold = _placed_fold(partition, bucket)
                rows = batch.filter(pa.array(buckets == bucket))
                output.write_inserts(rows.columns[: len(KEYS)], rows.select(_columns_behind(rows)))
        return records + output.close()


def _columns_behind(rows: pa.RecordBatch) -> range:
    """Return the numbers of the columns behind the row id."""
    return range(len(KEYS), rows.num_columns)


def _placed_fold(partition: str, bucket_id: int) -> BucketFold:
    """Return a fold without files to read, which gives the written files their partition and bucket
    id.
    """
    return BucketFold(partition, bucket_id, (), (), major=True)


class _Output:
    """The files that a fold writes, each begun with its first event."""

    def __init__(self, bucket_fold: BucketFold, spec: FoldSpec, task: Task) -> None:
        self.bucket_fold, self._spec, self._task = bucket_fold, spec, task
        self._fs = filesystem_for(spec.staging)
        self._files: dict[str, StagedFile[Any]] = {}

    def write_rows(self, batch: pa.RecordBatch) -> None:
        """Write rows of an insert-only table; columns are matched by position. Raises
        WriteError.
        """
        self._file("insert").writer.write_inserts(self._readable(batch), 0, 0, 0)

    def write_inserts(self, row_id: Sequence[pa.Array], columns: pa.RecordBatch) -> None:
        """Write insert events. ``row_id``: the write ids, bucket properties and ordinals that the
        rows have. ``columns``: the user's. Raises WriteError.
        """
        self._file("insert").writer.rewrite_inserts(self._readable(columns), *row_id)

    def write_deletes(self, batch: pa.RecordBatch) -> None:
        """Write delete events, which have DELETE_COLUMNS."""
        columns = [batch.column(name) for name in DELETE_COLUMNS]
        self._file("delete").writer.write_deletes(*columns)

    def close(self) -> list[Record]:
        """Close the files that were begun, and return their records. Further events begin new
        files.
        """
        bucket_fold, task = self.bucket_fold, self._task
        records = [
            file.close_and_record(kind, task, bucket_fold.partition, bucket_fold.bucket_id)
            for kind, file in self._files.items()
        ]
        self._files.clear()
        return records

    def abort(self) -> None:
        """Close the files as they are; none gets a record."""
        for file in self._files.values():
            file.abort()

    def _readable(self, user_columns: pa.RecordBatch) -> pa.RecordBatch:
        """Check columns of the user's by ``refuse_unreadable_days`` (not for Parquet), and return
        them as they are: readers read our ORC files by Spark, which shows some days as others.

        Raises:
            WriteError: There is a day that Spark would show as another.
        """
        if self._spec.parquet is None:
            refuse_unreadable_days(user_columns.rename_columns(list(self._spec.row.names)))
        return user_columns

    def _file(self, kind: str) -> StagedFile[Any]:
        """Return the file of a kind (``insert`` or ``delete``); it is begun here if it is the first
        use.
        """
        if kind not in self._files:
            path = staged_path(self._spec.staging, kind, self._task)
            self._files[kind] = StagedFile(
                self._fs, path, lambda file: insert_writer(file, self._spec)
            )
        return self._files[kind]


# ── deleting ─────────────────────────────────────────────────────────────────────────────────


class _DeleteEvents:
    """The delete events of a bucket id, read along with the inserts. The window has the row ids to
    leave out that the inserts have not passed yet.

    Args:
        bucket_fold: The fold.
        keep: Receives the delete events that a minor fold keeps.
    """

    def __init__(self, bucket_fold: BucketFold, keep: Callable[[pa.RecordBatch], None]) -> None:
        """Begin before the first delete event, with an empty window. Nothing is read yet."""
        self._bucket_fold, self._keep = bucket_fold, keep
        self._events = merge_events(
            _event_source(bucket_fold, read, partial(read_deletes, read), LEAST)
            for read in bucket_fold.deletes
        )
        self._reached: Key = LEAST
        self._is_done = False
        empty = [np.empty(0, np.int64) for _ in range(3)]
        self._window: list[Int64s] = empty  # row ids that are to be left out, from here on

    def without(self, inserts: pa.RecordBatch) -> pa.RecordBatch:
        """Return the insert events that a fold keeps: those whose row ids are not in the window
        (see ``_read_next_deletes``). Delete events are read up to the last insert event. Calls must
        give batches in ascending order.
        """
        keys = keys_of(inserts)
        last = key_at(keys, -1)
        while not self._is_done and self._reached <= last:
            self._read_next_deletes()
        self._forget_before(key_at(keys, 0))
        if not len(self._window[0]):
            return inserts
        is_deleted = are_among(keys, self._window)
        return inserts.filter(pa.array(~is_deleted)) if is_deleted.any() else inserts

    def drain(self) -> None:
        """Read the delete events that are left, so that a minor fold hands them to ``keep``,
        although no row follows. The window is empty afterwards.
        """
        while not self._is_done:
            self._read_next_deletes()
            self._window = [column[:0] for column in self._window]

    def _read_next_deletes(self) -> None:
        """Read the next batch of delete events. In a major fold all go into the window of row ids
        to leave out. In a minor fold, only those by the row's own write id do; the others are
        handed to ``keep``. At the end of the events, note that all are read.
        """
        batch = next(self._events, None)
        if batch is None:
            self._is_done = True
            return
        keys = keys_of(batch)
        self._reached = key_at(keys, -1)
        if not self._bucket_fold.major:
            is_own_delete = batch.column(DELETING_WRITE_ID).to_numpy() == keys[0]
            if not is_own_delete.all():
                self._keep(batch.filter(pa.array(~is_own_delete)) if is_own_delete.any() else batch)
            keys = [column[is_own_delete] for column in keys]
        pairs = zip(self._window, keys, strict=True)
        self._window = [np.concatenate(pair) for pair in pairs]

    def _forget_before(self, first: Key) -> None:
        """Drop the row ids before a key from the window."""
        is_before, _ = compare_with_bound(self._window, first)
        passed_count = int(is_before.sum())  # they are sorted
        if passed_count:
            self._window = [column[passed_count:] for column in self._window]
