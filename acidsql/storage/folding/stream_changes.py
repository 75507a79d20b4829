"""The changes of a stream's micro-batch, as ``acid.changes`` shows them.

A deleted row and a new row of one key may be in any two files. So with keys, a task reads the keys
of all files of the batch, then the rows of its own files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T  # noqa: N812 - PySpark's own convention

from acidsql.acid.table import Column, Table
from acidsql.acid.values.types import parse_type
from acidsql.acid.virtual_columns import ROW__ID, ROW__ID_TYPE
from acidsql.errors import ConstraintError, UnsupportedError
from acidsql.storage.folding.event_merge import KEYS, Int64s
from acidsql.storage.folding.stream_reads import (
    StreamRead,
    stream_events,
    stream_schema,
    to_shown_columns,
)
from acidsql.storage.reading.change_columns import (
    ADDED,
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    DELETE,
    INSERT,
    POSTIMAGE,
    PREIMAGE,
    TXN_ID,
    same_key_message,
)
from acidsql.storage.spark.shown_schema import shown_schema

_TASK_BYTES = 64 * 1024 * 1024  # of files, that one task reads, if there are keys
_KINDS = [INSERT, DELETE, POSTIMAGE, PREIMAGE]
_IMAGE = 2  # from a kind to the kind of a pair
_ROW_ID = [
    pa.field(name, kind)
    for name, kind in (("writeid", pa.int64()), ("bucketid", pa.int32()), ("rowid", pa.int64()))
]


@dataclass(frozen=True, slots=True)
class FeedRead:
    """One task's work.

    Attributes:
        own_reads: The files whose changes it gives.
        other_reads: The files of the other tasks; empty if there are no keys.
        keys: The columns that make a deleted row and a new row the same row.
        commits: The time of the commit (in milliseconds), and the transaction, of each version.
    """

    own_reads: tuple[StreamRead, ...]
    other_reads: tuple[StreamRead, ...]
    keys: tuple[str, ...]
    commits: Mapping[int, tuple[int, int]]


def feed_schema(table: Table, keys: Sequence[str]) -> T.StructType:
    """Return the schema of the change rows: the table's columns, then kind of change, version,
    time, transaction and row id.

    Raises:
        UnsupportedError: The table has no row ids, or a type that a stream cannot show; or a key is
            a struct, a list or a map.
    """
    nested = [
        column
        for column in table.all_columns
        if column.name in keys and parse_type(column.type).children
    ]
    if nested:
        raise UnsupportedError(
            f"The changes of {table.name} cannot be read as a stream with the key "
            f"{nested[0].name}: it has parts.",
            condition="UNSUPPORTED_FEATURE.STREAM_SOURCE",
        )
    row_id = shown_schema([Column(ROW__ID, ROW__ID_TYPE)]).fields
    added_types = [T.StringType(), T.LongType(), T.TimestampType(), T.LongType()]
    names = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP, TXN_ID)
    added = [T.StructField(name, kind) for name, kind in zip(names, added_types, strict=True)]
    return T.StructType([*stream_schema(table).fields, *added, *row_id])


def feed_reads(
    reads: Sequence[StreamRead], keys: Sequence[str], commits: Mapping[int, tuple[int, int]]
) -> list[FeedRead]:
    """Divide the files of a batch into tasks.

    Without keys every file has its own task. With keys there are as few tasks as the files' size
    allows, and each also knows the files of the others, because a deleted row and its new version
    may be in any two. ``commits``: for each version (a write id), the time of the commit (in
    milliseconds) and the transaction.
    """
    if not keys:
        return [FeedRead((read,), (), (), commits) for read in reads]
    count = min(len(reads), 1 + sum(read.size for read in reads) // _TASK_BYTES)
    parts = [tuple(reads[i::count]) for i in range(count)]
    return [
        FeedRead(
            own,
            tuple(read for j, part in enumerate(parts) if j != i for read in part),
            tuple(keys),
            commits,
        )
        for i, own in enumerate(parts)
    ]


def feed_rows(feed_read: FeedRead, table: Table) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a task, with the columns of ``feed_schema``. With keys, a deletion and
    an insertion of one version and key are the two images of an update; without, all are deletions
    and insertions.

    Raises:
        ConstraintError: Two changes of one kind and version have the same key.
        SnapshotTooOldError: A file is gone.
    """
    kinds = _change_kinds(feed_read, table) if feed_read.keys else None
    names, at = pa.array(_KINDS), 0
    for read in feed_read.own_reads:
        for batch, versions in stream_events(read, table):
            count = batch.num_rows
            if kinds is None:
                kind = np.full(count, int(read.is_deletion))
            else:
                kind = kinds[at : at + count]
                at += count
            shown_batch = to_shown_columns(batch, table, read.read.partition)
            columns = [
                *shown_batch.columns,
                names.take(pa.array(kind)),
                pa.array(versions),
                *_commit_columns(versions, feed_read.commits),
                pa.StructArray.from_arrays([batch.column(key) for key in KEYS], fields=_ROW_ID),
            ]
            yield pa.RecordBatch.from_arrays(columns, names=[*shown_batch.schema.names, *ADDED])


def _commit_columns(
    versions: Int64s, commits: Mapping[int, tuple[int, int]]
) -> tuple[pa.Array, pa.Array]:
    """Return the commit's timestamp (in UTC) and transaction of each version, as two arrays; NULL
    if unknown. ``commits``: version → milliseconds since 1970, and transaction.
    """
    distinct, places = np.unique(versions, return_inverse=True)
    commits_found = [commits.get(int(number)) for number in distinct]
    micros = pa.array(
        [None if commit is None else commit[0] * 1000 for commit in commits_found], pa.int64()
    )
    txns = pa.array([None if commit is None else commit[1] for commit in commits_found], pa.int64())
    times = micros.cast(pa.timestamp("us", "UTC"))
    return times.take(pa.array(places)), txns.take(pa.array(places))


def _change_kinds(feed_read: FeedRead, table: Table) -> npt.NDArray[np.int64]:
    """Return the kind of each change of the task's own files, as a place in ``_KINDS``: insert,
    delete, new or old image of an update. The other tasks' files are read, too. As in
    ``acid.changes``, a deletion and an insertion of one version and key are the two images of an
    update; a key with NULL in a column pairs nothing. Raises ConstraintError if two changes of
    one kind and version have the same key.
    """
    is_deletion: list[npt.NDArray[np.bool_]] = []
    versions: list[Int64s] = []
    keys: list[list[pa.Array]] = []
    own_count = 0
    for i, read in enumerate((*feed_read.own_reads, *feed_read.other_reads)):
        for batch, numbers in stream_events(read, table):
            shown_batch = to_shown_columns(batch, table, read.read.partition)
            keys.append([shown_batch.column(name) for name in feed_read.keys])
            versions.append(numbers)
            is_deletion.append(np.full(len(numbers), read.is_deletion))
            own_count += len(numbers) if i < len(feed_read.own_reads) else 0
    if not versions:
        return np.zeros(0, dtype=np.int64)
    codes = [_equality_codes(parts) for parts in zip(*keys, strict=True)]
    deletion = np.concatenate(is_deletion)
    has_key = np.all([code >= 0 for code in codes], axis=0)
    kinds = deletion.astype(np.int64)
    groups = np.stack([np.concatenate(versions), *codes], axis=1)[has_key]
    _, group = np.unique(groups, axis=0, return_inverse=True)
    deleted, inserted = (
        np.bincount(group, weights=part[has_key]) for part in (deletion, ~deletion)
    )
    if (deleted > 1).any() or (inserted > 1).any():
        raise ConstraintError(same_key_message(table, feed_read.keys))
    kinds[has_key] += _IMAGE * ((deleted > 0) & (inserted > 0))[group]
    return kinds[:own_count]


def _equality_codes(parts: Sequence[pa.Array]) -> Int64s:
    """Return a number for each value of these arrays, one array after the other: the same number
    for equal values, -1 for NULL.
    """
    values = pa.chunked_array(parts)
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # -0.0 is 0.0 in Spark
    chunks = values.dictionary_encode().chunks
    return np.concatenate(
        [chunk.indices.fill_null(-1).to_numpy().astype(np.int64) for chunk in chunks]
    )
