"""Tables of lists in real delta directories, read and written without Spark.

A row is a key and a list of numbers as text, ``3,17,4``. An append replaces the row: it is a delete
event and an insert event. They go through acidsql's ``TableWrite``, but the code of Spark's tasks
(``event_writer``) runs in this process. A read lists the files of a snapshot, and leaves out the
rows that delete events name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from acidsql.acid import event
from acidsql.acid.layout import DirectoryKind, bucket_id_of, parse_directory, parse_partition_name
from acidsql.acid.table import Column, Table, TableName
from acidsql.storage import event_records as er
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.reading.events.event_reader import FileRead, flat_schema, plan_reads, read_file
from acidsql.storage.reading.events.orc_reader import read_row_ids
from acidsql.storage.tables.listing import EventFile, Listing, list_table
from acidsql.storage.writing.delete_writer import write_deletes
from acidsql.storage.writing.event_writer import write_inserts, write_inserts_pass_deletes
from acidsql.txn import Snapshot

RowId = tuple[int, int, int]
_SORTED = [er.PARTITION, er.BUCKET_ID, er.WRITE_ID, er.BUCKET_PROPERTY, er.ROW_ID]
_EVERYTHING = 10**9  # above every write id


@dataclass(frozen=True)
class Row:
    """A live row: its row id, and its contents."""

    row_id: RowId
    partition: str
    key: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class Change:
    """A new list for a key. ``old`` is the row that it replaces, or None."""

    key: int
    values: tuple[int, ...]
    old: Row | None = None


def define(warehouse: Path) -> list[Table]:
    """Define two plain tables, and one with a partition for each key."""
    key, values = Column("key", "int"), Column("list", "string")
    plain = [
        Table(TableName("default", name), f"{warehouse}/{name}", (key, values)) for name in "ab"
    ]
    parted = TableName("default", "c")
    return [*plain, Table(parted, f"{warehouse}/c", (values,), partition_columns=(key,))]


def partition_of(table: Table, key: int) -> str:
    """The partition directory of a key's row."""
    return f"key={key}" if table.partition_columns else ""


# ── reading ──────────────────────────────────────────────────────────────────────────────────


class Reader:
    """Reads lists. A file is written once (I2), so each file is read once."""

    def __init__(self) -> None:
        self._read: dict[object, list[Any]] = {}

    def rows(self, table: Table, snapshot: Snapshot, partitions: Sequence[str]) -> list[Row]:
        """The live rows of a table in a snapshot.

        Args:
            table: The table.
            snapshot: The snapshot.
            partitions: The partition directories; empty for a plain table.
        """
        write_ids = snapshot.write_ids[table.name]
        places = partitions if table.partition_columns else [""]
        fs = filesystem_for(table.location)
        found = []
        for listing in list_table(fs, table.location, places, write_ids, snapshot.valid_txns):
            gone = {key for file in listing.deletes for key in self._deleted(file)}
            for read in plan_reads([listing], write_ids):
                found += [row for row in self._rows(table, listing, read) if row.row_id not in gone]
        return found

    def changed_a_common_row(
        self, table: Table, partition: str, their_write_id: int, ours: Sequence[str]
    ) -> bool:
        """Whether delete events of both transactions name a common row of a partition ("": of the
        table)."""
        place = f"{table.location}/{partition}".rstrip("/")
        found: dict[bool, set[RowId]] = {True: set(), False: set()}
        for entry in filesystem_for(place).list(place):
            kind = parse_directory(entry.name)
            is_ours = entry.path in ours
            if kind is None or kind.kind is not DirectoryKind.DELETE_DELTA:
                continue
            if is_ours or kind.min_write_id == their_write_id:
                for file in filesystem_for(place).list(entry.path):
                    if bucket_id_of(file.name) is not None:
                        event_file = EventFile(file.path, kind, file.size)
                        found[is_ours] |= {*self._deleted(event_file)}
        return not found[False] or bool(found[True] & found[False])

    def _rows(self, table: Table, listing: Listing, read: FileRead) -> list[Row]:
        if listing.needs_filter:
            return [*_live(table, read)]
        whole = replace(read, high_water_mark=_EVERYTHING, hidden=())
        return self._once(str(read.path), lambda: _live(table, whole))

    def _deleted(self, file: EventFile) -> list[RowId]:
        return self._once(file.path, lambda: _deleted(file))

    def _once(self, path: str, read: Callable[[], Iterator[Any]]) -> list[Any]:
        found = os.stat(path)
        key = (path, found.st_ino, found.st_size, found.st_mtime_ns)
        if key not in self._read:
            self._read[key] = [*read()]
        return self._read[key]


def _live(table: Table, read: FileRead) -> Iterator[Row]:
    names = [column.name for column in table.columns]
    for batch in read_file(read, flat_schema(table), names):
        for row in batch.to_pylist():
            row_id = (row[er.WRITE_ID], row[er.BUCKET_PROPERTY], row[er.ROW_ID])
            key = row["key"] if "key" in row else int(parse_partition_name(read.partition)[0][1])
            values = tuple(int(value) for value in row["list"].split(","))
            yield Row(row_id, read.partition, key, values)


def _deleted(file: EventFile) -> Iterator[RowId]:
    for batch in read_row_ids(file.path, file.length):
        assert set(batch.column(0).to_pylist()) <= {event.DELETE}
        yield from zip(*(batch.column(i).to_pylist() for i in (1, 2, 3)), strict=True)


# ── writing ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Events:
    """The events of a statement. It replaces the DataFrame that Spark would evaluate.

    Attributes:
        changes: The new lists. For an overwrite: all rows that stay.
        overwrites: No old row is deleted, because a base hides all old rows.
        task: The number of the task, which is the bucket id of new rows.
    """

    changes: Sequence[Change]
    overwrites: bool = False
    task: int = 0


def write_here(
    events: Events, table: Table, spec: er.WriteSpec, *, is_fast: bool = True
) -> list[er.Record]:
    """Replaces ``job.write_events``: both stages of the job, without Spark."""
    task, batch = er.Task(events.task, 0), _batch(table, events.changes)
    if events.overwrites or not any(change.old for change in events.changes):
        return [*write_inserts(spec, task, [batch.drop_columns(_OF_OLD_ROWS)])]
    passed = write_inserts_pass_deletes(spec, task, [batch])
    keys = pa.Table.from_batches([*passed], er.KEY_SCHEMA)
    ordered = keys.sort_by([(name, "ascending") for name in _SORTED])
    return [*write_deletes(spec, er.Task(0, 1), ordered.combine_chunks().to_batches())]


_OF_OLD_ROWS = [er.ACTION, er.PARTITION, er.WRITE_ID, er.BUCKET_PROPERTY, er.ROW_ID]


def _batch(table: Table, changes: Iterable[Change]) -> pa.RecordBatch:
    """The rows of an event query; new rows are sorted by partition."""
    rows = [
        {
            "key": change.key,
            "list": ",".join(map(str, change.values)),
            f"{er.VALUE}0": str(change.key),
            er.ACTION: er.INSERT | (er.DELETE if change.old else 0),
            er.PARTITION: change.old.partition if change.old else None,
            er.WRITE_ID: change.old.row_id[0] if change.old else None,
            er.BUCKET_PROPERTY: change.old.row_id[1] if change.old else None,
            er.ROW_ID: change.old.row_id[2] if change.old else None,
        }
        for change in sorted(changes, key=lambda change: change.key)
    ]
    fields = [("key", pa.int32()), ("list", pa.string()), (f"{er.VALUE}0", pa.string())]
    fields += [(name, er.KEY_SCHEMA.field(name).type) for name in _OF_OLD_ROWS]
    batch = pa.RecordBatch.from_pylist(rows, pa.schema(fields))
    return batch.drop_columns(["key"] if table.partition_columns else [f"{er.VALUE}0"])
