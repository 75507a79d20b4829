"""What dead sessions and workers left: hidden directories, which no reader reads."""

from __future__ import annotations

from collections.abc import Iterable

from acidsql.acid.table import TableName
from acidsql.metastore.interface import Metastore
from acidsql.storage.files.filesystem import Entry
from acidsql.storage.folding.compact import staging_txn_id
from acidsql.storage.writing.publish import staged_write_id
from acidsql.txn import snapshot_of


def orphaned_directories(
    metastore: Metastore, table: TableName, entries: Iterable[Entry]
) -> list[Entry]:
    """Return those of ``entries`` that are hidden directories of a transaction or a write id (the
    name tells which) that is not open any more: nobody needs them. Nothing is deleted.

    Args:
        metastore: Knows the transactions.
        table: The table.
        entries: What was in the table's directory before this call. A directory that is made later
            may belong to a transaction that the metastore's answer does not have.
    """
    by_txn: dict[int, list[Entry]] = {}
    by_write: dict[int, list[Entry]] = {}
    for entry in entries:
        if not entry.is_dir:
            continue
        for entries_by_number, number in (
            (by_txn, staging_txn_id(entry.name)),
            (by_write, staged_write_id(entry.name)),
        ):
            if number is not None:
                entries_by_number.setdefault(number, []).append(entry)
    if not by_txn and not by_write:
        return []
    snapshot = snapshot_of(metastore, metastore.valid_txns(), [table])
    return [
        entry
        for entries_by_number, valid_ids in (
            (by_txn, snapshot.valid_txns),
            (by_write, snapshot.write_ids[table]),
        )
        for number, its_entries in entries_by_number.items()
        if not valid_ids.is_any_open(number, number)
        for entry in its_entries
    ]
