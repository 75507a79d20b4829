"""The rows that a snapshot sees in a directory, by a plain loop over the listed files."""

from __future__ import annotations

from acidsql.acid.write_ids import ALL_TXNS, ValidTxnList, ValidWriteIdList
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events.event_reader import (
    plan_deletes,
    plan_reads,
    read_deletes,
    read_file,
)
from acidsql.storage.tables.listing import list_directory

Key = tuple[int, int, int]


def rows_on_disk(
    path: str, schema: RowSchema, seen: ValidWriteIdList, txns: ValidTxnList = ALL_TXNS
) -> dict[Key, str]:
    """The rows of a table with one column, by row id."""
    fs = filesystem_for(path)
    listing = list_directory(fs, path, "", seen, txns, history_is_kept=True)
    gone = {
        key[:3]
        for read in plan_deletes(listing, seen)
        for batch in read_deletes(read)
        for key in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    }
    rows: dict[Key, str] = {}
    for read in plan_reads([listing], seen):
        for batch in read_file(read, schema, schema.names):
            columns = [column.to_pylist() for column in batch.columns]
            for *key, _, value in zip(*columns, strict=True):
                assert tuple(key) not in rows, "a row came twice"
                rows[tuple(key)] = value
    return {key: value for key, value in rows.items() if key not in gone}
