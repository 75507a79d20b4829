"""Events → files, in a Spark task (or in the driver, for few rows).

A delete key is the row id of a row that the statement deletes or only matches, with its partition
directory and its action (``event_records``). One Spark job with two stages writes a statement's
events::

    insert stage   rows of the query ────┬─► insert files
                                         └─► delete keys and match marks ─► shuffle by bucket id
    delete stage   delete keys, sorted ────► delete files

In a table with CLUSTERED BY, an earlier shuffle brings the rows of one bucket into one task of the
insert stage. In other tables each task writes the rows that it has.

Both stages report one record for each file they wrote and each task they saw. The records travel
with the keys through the shuffle; the driver gets nothing else (I7). A record names the task
attempt that made it. The driver refuses a statement if the records name two attempts of one task
(see ``publish``), so the files of a retried or speculative task are never published beside those of
the other attempt. If a query only deletes, and gives the same rows each time, there is no insert
stage: Spark makes the delete keys. If a statement only inserts, there is no delete stage.

The delete stage is in ``delete_writer``. Both modules run in workers: they import neither pyspark
nor modules of the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidsql.acid import bucket_codec
from acidsql.acid.layout import BUCKET_ID_MAX
from acidsql.errors import WriteError
from acidsql.storage.event_records import (
    ACTION,
    BUCKET,
    BUCKET_PROPERTY,
    DELETE,
    INSERT,
    KEY_SCHEMA,
    MOVED,
    PARTITION,
    RECORD_SCHEMA,
    ROW_ID,
    VALUE,
    WRITE_ID,
    Record,
    Task,
    WriteSpec,
)
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.tables.replaced import replaced_rows, replaced_writer
from acidsql.storage.writing.calendar_gap import refuse_unreadable_days
from acidsql.storage.writing.plain_file import InsertWriter, insert_writer
from acidsql.storage.writing.staged_file import (
    Group,
    OpenFiles,
    StagedFile,
    abort_on_error,
    runs,
    staged_path,
)


def write_inserts(
    spec: WriteSpec, task: Task, batches: Iterable[pa.RecordBatch]
) -> Iterator[Record]:
    """Run the insert stage of a statement that only inserts: write all rows into files of the
    staging directory, then yield the records of the files, and one of kind ``null`` for each NOT
    NULL column that got nulls. Nothing is yielded before all batches are read.

    Raises:
        WriteError: A value cannot be stored, or there are too many writers.
    """
    with abort_on_error(_InsertWriter(spec, task)) as writer:
        for batch in batches:
            if batch.num_rows:
                writer.write(batch)
        yield from writer.close()


def write_inserts_pass_deletes(
    spec: WriteSpec, task: Task, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run the insert stage: write the new rows into files of the staging directory, and yield for
    each batch the keys of its deleted or matched rows; last, in rows of the same columns
    (KEY_SCHEMA), the records of ``write_inserts``, and ``done`` for the task.

    Raises:
        WriteError: A value cannot be stored, or there are too many writers.
    """
    with abort_on_error(_InsertWriter(spec, task)) as writer:
        for batch in batches:
            if not batch.num_rows:
                continue
            action = batch.column(ACTION)
            inserted = batch.filter(pc.equal(pc.bit_wise_and(action, INSERT), INSERT))
            if inserted.num_rows:
                writer.write(inserted)
            keys = batch.filter(pc.greater_equal(action, DELETE))
            if keys.num_rows:
                yield _delete_key_rows(keys, task)
        yield _carry_records([*writer.close(), Record("done", task.number, task.attempt)])


def to_batch(records: Iterable[Record]) -> pa.RecordBatch:
    """Return records as one batch of RECORD_SCHEMA."""
    return pa.record_batch([pa.array([r.to_json() for r in records], pa.string())], RECORD_SCHEMA)


class _InsertFile(StagedFile[InsertWriter]):
    """A file of new rows, and perhaps the file that says which rows these replace."""

    replaced: StagedFile[InsertWriter] | None = None

    def abort(self) -> None:
        """Close both files as they are."""
        super().abort()
        if self.replaced is not None:
            self.replaced.abort()


class _InsertWriter:
    """Writes new rows. Rows of one file come together, so few files are open at a time.

    The row numbers of a task go on from one file to the next. So they are unique within (write id,
    bucket property), even across partitions (I3).
    """

    def __init__(self, spec: WriteSpec, task: Task) -> None:
        """Begin without rows. No file is opened yet."""
        self._spec, self._task = spec, task
        self._fs = filesystem_for(spec.staging)
        self._names = list(spec.row.names)
        self._nulls: dict[str, int] = {}
        self._next_row_id: dict[int, int] = {}
        self._records: list[Record] = []
        self._files = OpenFiles(self._open, self._finish)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch into their files, and count the nulls of NOT NULL columns.
        Raises WriteError for a day that Spark would show as another, and for a value that cannot be
        stored.
        """
        self._count_nulls(batch)
        refuse_unreadable_days(batch.select(self._names))
        for group, rows in self._rows_by_file(batch):
            self._append(self._files.get(group), rows, group[1])

    def close(self) -> list[Record]:
        """Close all files, and return their records, and a record for each NOT NULL column that got
        nulls.
        """
        self._files.close()
        task = self._task
        violations = [
            Record("null", task.number, task.attempt, rows=rows, detail=name)
            for name, rows in self._nulls.items()
        ]
        return self._records + violations

    def abort(self) -> None:
        """Close the open files as they are."""
        self._files.abort()

    def _open(self) -> _InsertFile:
        """Open a new file of new rows in the staging directory."""
        path = staged_path(self._spec.staging, "insert", self._task)
        return _InsertFile(self._fs, path, lambda file: insert_writer(file, self._spec))

    def _finish(self, group: Group, file: _InsertFile) -> None:
        """Close a file of new rows, and its file of replaced rows, and keep their records."""
        with abort_on_error(file):
            self._records.append(file.close_and_record("insert", self._task, *group))
            if file.replaced is not None:
                self._records.append(file.replaced.close_and_record("replaced", self._task, *group))

    def _append(self, file: _InsertFile, rows: pa.RecordBatch, bucket_id: int) -> None:
        """Write rows into a file under the next row ids of their bucket id; count new versions of
        rows, and note which rows they replace if the statement wants it.
        """
        first_row_id = self._next_row_id.get(bucket_id, 0)
        file.writer.write_inserts(
            rows.select(self._names),
            write_id=self._spec.write_id,
            bucket_property=bucket_codec.encode(bucket_id, self._spec.insert_statement_id),
            first_row_id=first_row_id,
        )
        self._next_row_id[bucket_id] = first_row_id + rows.num_rows
        if ACTION in rows.schema.names:
            updates = pc.equal(pc.bit_wise_and(rows.column(ACTION), DELETE), DELETE)
            file.updated += pc.sum(updates).as_py() or 0
            if self._spec.notes_replaced:
                self._note_replaced(
                    file, rows.filter(updates), pc.indices_nonzero(updates), first_row_id
                )

    def _note_replaced(
        self, file: _InsertFile, rows: pa.RecordBatch, places: pa.Array, first_row_id: int
    ) -> None:
        """Write the new and the old row id of each updated row into the file beside the bucket
        file. ``rows``: the new versions, with the row ids of the old ones; ``places``: their
        positions in the written batch, whose first row got the row id ``first_row_id``."""
        if file.replaced is None:
            path = staged_path(self._spec.staging, "replaced", self._task)
            file.replaced = StagedFile(self._fs, path, replaced_writer)
        row_ids = pc.add(places.cast(pa.int64()), first_row_id)
        file.replaced.writer.write_inserts(replaced_rows(rows, row_ids), 0, 0, 0)

    def _count_nulls(self, batch: pa.RecordBatch) -> None:
        """Count the nulls of NOT NULL columns, for ``close``."""
        for column, name in self._spec.not_null:
            if nulls := batch.column(column).null_count:
                self._nulls[name] = self._nulls.get(name, 0) + nulls

    def _rows_by_file(self, batch: pa.RecordBatch) -> Iterator[tuple[Group, pa.RecordBatch]]:
        """Yield runs of rows for one file, each with the file's partition directory and bucket id;
        a file may come several times. A task's rows come sorted, so the runs are long.
        """
        partitions = _row_partitions(self._spec, batch)
        buckets = self._buckets(batch)
        if partitions is None and buckets is None:
            yield (self._spec.static_partition or "", self._writer_id()), batch
            return
        columns = [column for column in (partitions, buckets) if column is not None]
        for start, end in runs(batch.num_rows, columns):
            partition = self._spec.static_partition or ""
            if partitions is not None:
                partition = partitions[start].as_py()
            bucket = self._writer_id() if buckets is None else buckets[start].as_py()
            yield (partition, bucket), batch.slice(start, end - start)

    def _buckets(self, batch: pa.RecordBatch) -> pa.Array | None:
        """Return the bucket id of each row, which has come with the row; None without
        CLUSTERED BY.
        """
        return batch.column(BUCKET) if self._spec.is_bucketed else None

    def _writer_id(self) -> int:
        """Return the task's number, which is the bucket id of its rows in a table without buckets.
        Raises WriteError above 4095.
        """
        if self._task.number > BUCKET_ID_MAX:
            raise WriteError(
                f"Task {self._task.number} cannot write: a statement has at most "
                f"{BUCKET_ID_MAX + 1} writers. Coalesce the source to fewer tasks."
            )
        return self._task.number


def _delete_key_rows(batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
    """Return the delete keys of events: rows of KEY_SCHEMA without a record."""
    properties = batch.column(BUCKET_PROPERTY)
    numbers = bucket_ids(properties.to_numpy())
    rows = batch.num_rows
    return pa.record_batch(
        [
            batch.column(PARTITION),
            pa.array(numbers, pa.int32()),
            batch.column(WRITE_ID),
            properties,
            batch.column(ROW_ID),
            batch.column(ACTION),
            pa.array(np.full(rows, task.number, np.int32)),
            pa.array(np.full(rows, task.attempt, np.int64)),
            pa.nulls(rows, pa.string()),
        ],
        schema=KEY_SCHEMA,
    )


def bucket_ids(properties: np.ndarray) -> np.ndarray:
    """Return the bucket id that is in each of these bucket properties.

    In version 0 the bucket property is the bare bucket id.
    """
    encoded = (properties & bucket_codec.BUCKET_ID_MASK) >> bucket_codec.BUCKET_SHIFT
    return np.where(properties >> bucket_codec.VERSION_SHIFT == 1, encoded, properties)


def _carry_records(records: list[Record]) -> pa.RecordBatch:
    """Return records as rows of KEY_SCHEMA, so that they travel through the shuffle with the
    keys.
    """
    columns = [pa.nulls(len(records), field.type) for field in KEY_SCHEMA]
    columns[-1] = pa.array([record.to_json() for record in records], pa.string())
    return pa.record_batch(columns, schema=KEY_SCHEMA)


def _row_partitions(spec: WriteSpec, batch: pa.RecordBatch) -> pa.Array | None:
    """Return the partition directory of each row: that of the replaced row, or one made of the
    row's values, for rows that replace none, or that move. None if all rows go into one directory:
    the table has no partition columns, or the statement names the partition.
    """
    if not spec.partitions.columns or spec.static_partition is not None:
        return None
    replaced = batch.column(PARTITION) if PARTITION in batch.schema.names else None
    if replaced is not None:
        is_moved = pc.greater_equal(batch.column(ACTION), MOVED)
        replaced = pc.if_else(is_moved, pa.scalar(None, replaced.type), replaced)
    if replaced is not None and not replaced.null_count:
        return replaced
    new_partitions = _directories_of_values(spec, batch)
    return new_partitions if replaced is None else pc.coalesce(replaced, new_partitions)


def _directories_of_values(spec: WriteSpec, batch: pa.RecordBatch) -> pa.Array:
    """Return the directory for each row's partition values: the first existing one with these
    values, else the canonical name.
    """
    ordinals = range(len(spec.partitions.columns))
    table = pa.table({str(i): batch.column(f"{VALUE}{i}") for i in ordinals})
    names: dict[tuple[str | None, ...], str] = {}
    for row in table.group_by(list(table.column_names)).aggregate([]).to_pylist():
        values = tuple(row[str(i)] for i in ordinals)
        names[values] = spec.partitions.directories(values)[0]
    if len(names) == 1:
        return pa.array([next(iter(names.values()))] * batch.num_rows, pa.string())
    rows = zip(*(table.column(i).to_pylist() for i in ordinals), strict=True)
    return pa.array([names[values] for values in rows], pa.string())
