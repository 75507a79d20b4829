"""Reads ORC files without Spark's reader, in three cases.

Spark would read the file wrongly (a streaming file whose committed length is not its size, or a
file without event columns). A compaction writes the rows again. Or the file has delete events,
which have row ids only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc

from acidsql.acid import event
from acidsql.errors import FormatError
from acidsql.storage.files.filesystem import filesystem_for, length_of
from acidsql.storage.orc.batches import FileHead, OrcBatches
from acidsql.storage.orc.damage import (
    damaged_file_error,
    finer_timestamps_error,
    naming_damage,
)
from acidsql.storage.orc.encoding import footer as orc_footer
from acidsql.storage.orc.row_schema import RowSchema, conform
from acidsql.storage.orc.soundness import check_stripes
from acidsql.storage.tables.file_info import FileInfo, footer_facts, is_acid

_ID_TYPES = (pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64())


def read_events(
    path: str,
    schema: RowSchema,
    length: int | None = None,
    *,
    exact: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the insert events of a file as flat rows.

    Args:
        path: The file's path.
        schema: The table's data columns; they are matched with the file's columns by position.
        length: The committed length in bytes, if it is not the whole file (``_flush_length``).
        exact: Refuse timestamps finer than a microsecond, because the rows will be written again.

    Yields:
        originalTransaction, bucket, rowId, currentTransaction, then the columns of ``schema`` under
        its names. The caller must choose names that differ from these four.

    Raises:
        FormatError: It is no event file, or it is damaged.
        UnsupportedError: With ``exact``: a timestamp is finer than a microsecond.
    """
    with naming_damage(path):
        for batch, info in read_batches(path, length, exact=exact):
            need_events(batch, path)
            inserts = chosen_rows(batch, pc.equal(batch.column(0), event.INSERT))
            row = cast(pa.StructArray, inserts.column(5))
            users = conform(row, schema, info.calendar, info.row_types)
            columns = [inserts.column(i) for i in (1, 2, 3, 4)] + users.flatten()
            yield pa.RecordBatch.from_arrays(columns, names=flat_names(schema))


def read_row_ids(path: str, length: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the event columns of a file except ``row``, under Hive's names, for events of all
    kinds, one batch for each stripe.

    Args:
        path: The file's path.
        length: The committed length in bytes, if it is not the whole file.

    Raises:
        FormatError: It is no event file, or it is damaged.
    """
    with open_orc(path, length) as opened_file:
        if opened_file is None:
            return
        reader, _ = opened_file
        names = event_names(reader, path)
        for stripe in range(reader.nstripes):
            batch = reader.read_stripe(stripe, columns=names[:5])
            need_events(batch, path)
            yield pa.RecordBatch.from_arrays(batch.columns, event.EVENT_COLUMNS[:5])


def need_events(batch: pa.RecordBatch, path: str) -> None:
    """Check that a batch begins with the event columns (case does not count), that these have
    Hive's types and none is NULL (``row`` aside), and that ``row``, if it is there, is a struct.

    Raises:
        FormatError: One of these does not hold.
    """
    names, ids = batch.schema.names, batch.columns[: len(_ID_TYPES)]
    expected = event.EVENT_COLUMNS[: len(names)]
    if [name.lower() for name in names] != [name.lower() for name in expected]:
        raise FormatError(f"'{path}' is no file of ACID events", path=path)
    if tuple(column.type for column in ids) != _ID_TYPES or any(c.null_count for c in ids):
        raise damaged_file_error(path, "its events have no row ids")
    if len(names) > len(_ID_TYPES) and not pa.types.is_struct(batch.schema.types[-1]):
        raise damaged_file_error(path, "its events have no rows")


def row_count(path: str, length: int | None = None) -> int:
    """Return the number of rows in a file, from its footer; 0 for an empty file.

    ``length``: the committed bytes; None for the whole file. Raises FormatError if it is no ORC
    file.
    """
    with naming_damage(path), filesystem_for(path).open_input(path) as file:
        end = length_of(file) if length is None else length
        return orc_footer.read_footer(file, end).rows if end else 0  # an empty file has no rows


def time_zones(path: str, length: int | None = None) -> set[str]:
    """Return the time zones in which a file's stripes were written; "" for a stripe that names
    none. Raises FormatError if the file is damaged, or empty.
    """
    with naming_damage(path), filesystem_for(path).open_input(path) as file:
        end = length_of(file) if length is None else length
        return {footer.zone for footer in OrcBatches(file, end).stripe_footers()}


def event_names(reader: orc.ORCFile, path: str) -> list[str]:
    """Return the names that a file of events has for the six event columns; they may differ from
    Hive's in case.

    Raises:
        FormatError: The file is not an event file.
    """
    names: list[str] = list(reader.schema.names)
    if not is_acid(names):
        raise FormatError(f"'{path}' is no file of ACID events", path=path)
    return names


@contextmanager
def open_orc(path: str, length: int | None) -> Iterator[tuple[orc.ORCFile, FileInfo] | None]:
    """Open a file for the block, check its stripes, and give its reader and the facts of its
    footer. Give None for an empty file, which ORC itself reads as a file without rows.

    ``length``: the committed bytes; None for the whole file. Raises FormatError for damage, also
    for errors of decoding in the block.
    """
    with naming_damage(path), filesystem_for(path).open_input(path) as file:
        end = length_of(file) if length is None else length
        if not end:
            yield None
            return
        footer, _, script = orc_footer.read_checked_footer(file, end)
        head = FileHead(file, end)
        check_stripes(head.read_at, footer, script)
        yield orc.ORCFile(head.native()), footer_facts(footer)


def chosen_rows(batch: pa.RecordBatch, chosen: pa.Array) -> pa.RecordBatch:
    """Return the rows for which ``chosen``, a boolean for each row, is true; the batch itself if
    these are all.
    """
    return batch if chosen.true_count == batch.num_rows else batch.filter(chosen)


def flat_names(schema: RowSchema) -> list[str]:
    """Return the names of the columns that ``read_events`` and ``read_originals`` give."""
    return [*event.EVENT_COLUMNS[1:5], *schema.names]


def read_batches(
    path: str, length: int | None = None, *, exact: bool = False
) -> Iterator[tuple[pa.RecordBatch, FileInfo]]:
    """Yield the rows of any ORC file, each batch with facts of the file's footer; timestamps in
    microseconds. An empty file has no batches.

    Args:
        path: The file's path.
        length: The committed length in bytes, if it is not the whole file.
        exact: The rows will be written again, so refuse timestamps finer than a microsecond: they
            would be cut.

    Raises:
        FormatError: The file is damaged.
        UnsupportedError: With ``exact``: a timestamp is finer than a microsecond.
    """
    with naming_damage(path), filesystem_for(path).open_input(path) as file:
        end = length_of(file) if length is None else length
        if not end:  # ORC itself reads an empty file as a file without rows
            return
        batches = OrcBatches(file, end)
        info = footer_facts(batches.footer)
        for batch in batches:
            if exact and batches.is_cut:
                raise finer_timestamps_error(path)
            yield batch, info
