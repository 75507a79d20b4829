"""The files of a table that moves to another metastore.

The table keeps its write ids in the new metastore, but transaction ids lose their meaning. So files
that depend on an aborted write id, or on the id of a compaction's transaction, must be cleaned up
first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acidsql.acid.layout import (
    COMPACTED_METADATA,
    METADATA_FILE,
    AcidDirectory,
    DirectoryKind,
    is_hidden,
    parse_directory,
)
from acidsql.acid.paths import directory_of
from acidsql.acid.table import ORC, Partition, Table, TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.errors import UnsupportedError
from acidsql.storage.files.entries import visible_entries
from acidsql.storage.files.filesystem import Entry, filesystem_for
from acidsql.storage.orc.damage import naming_damage
from acidsql.storage.orc.encoding.footer import ZSTD, read_tail
from acidsql.storage.tables.listing import list_table
from acidsql.txn import Snapshot


def snapshot_files(
    table: Table, partitions: Sequence[Partition], snapshot: Snapshot, name: TableName
) -> list[tuple[str, str]]:
    """Return the path and the kind of each file that a snapshot reads, sorted by path. Kinds: data,
    deletes and original (a file that is in no base or delta). Directories of newer events, which
    the snapshot does not see, are there, too: their names with the kind newer. ``name``: the
    table's name in the snapshot's metastore."""
    listings = list_table(
        filesystem_for(table.location), table.location, _partition_names(table, partitions),
        snapshot.write_ids[name], snapshot.valid_txns, plain=table.is_insert_only,
    )  # fmt: skip
    files = []
    for listing in listings:
        files += [(file.path, "data") for file in listing.data]
        files += [(file.path, "deletes") for file in listing.deletes]
        files += [(path, "original") for group in listing.originals for path in group.paths]
        files += [(name, "newer") for name in listing.state.newer]
    return sorted(files)


def require_settled_files(
    table: Table, partitions: Sequence[Partition], snapshot: Snapshot, *, for_hive: bool
) -> None:
    """Check that no file depends on what the new metastore will not know.

    Args:
        table: The table.
        partitions: The table's partitions.
        snapshot: The snapshot that a reader gets now.
        for_hive: Programs other than acidsql will read the files, also those that a half compaction
            has left.

    Raises:
        UnsupportedError: A write id is open or was never given out, a directory may have rows of an
            aborted write id, or is of an aborted compaction; ``for_hive`` also a compaction that
            did not end.
    """
    write_ids = snapshot.write_ids[table.name]
    if write_ids.open:
        raise _move_refusal(
            table,
            f"its write id {write_ids.open[0]} is open: a transaction writes to it",
            "Wait for the transaction, or end it with ABORT TRANSACTIONS.",
        )
    for entry, directory in _acid_directories(table, partitions):
        _require_settled_directory(table, entry, directory, write_ids)
        if snapshot.valid_txns.is_aborted(directory.visibility_txn_id):
            raise _move_refusal(
                table, f"'{entry.path}' is of a compaction that was aborted", _CLEAN
            )
    if for_hive:
        _refuse_half_compactions(table, partitions)


def refuse_zstd(table: Table, partitions: Sequence[Partition], snapshot: Snapshot) -> None:
    """Raise UnsupportedError if a snapshot reads an ORC file in ZSTD, which Hive 3 does not. This
    opens each file's footer; files of 0 bytes are passed over. A table of another format is not
    checked."""
    if table.file_format != ORC:
        return
    fs = filesystem_for(table.location)
    for path, kind in snapshot_files(table, partitions, snapshot, table.name):
        size = 0 if kind == "newer" else fs.size(path)
        if not size:
            continue  # no file, or one without rows
        with naming_damage(path), fs.open_input(path) as file:
            _, script = read_tail(file, size)
        if script.compression == ZSTD:
            raise UnsupportedError(
                f"{table.name} cannot move to a metastore of Hive 3, which does not read ZSTD, as "
                f"in '{path}'. Set 'orc.compress'='ZLIB', and write its rows anew by INSERT "
                "OVERWRITE first.",
                condition="UNSUPPORTED_FEATURE.MOVE",
            )


_CLEAN = "Let it be deleted first: by acid.clean(), or by Hive's cleaner after a major compaction."


def _require_settled_directory(
    table: Table, entry: Entry, directory: AcidDirectory, write_ids: ValidWriteIdList
) -> None:
    """Raise UnsupportedError if a base or delta has a write id that the metastore never gave out,
    or may have rows of an aborted one. A compacted directory has no such rows, nor has a base,
    unless its own write id was aborted."""
    min_write_id, max_write_id = directory.min_write_id, directory.max_write_id
    if max_write_id > write_ids.high_water_mark:
        raise _move_refusal(
            table, f"'{entry.path}' has a write id that the metastore never gave out", _CLEAN
        )
    # A compaction leaves out the rows of aborted write ids, and a base has none of them.
    is_compacted = directory.visibility_txn_id > 0
    if is_compacted or (
        directory.kind is DirectoryKind.BASE and not write_ids.is_aborted(max_write_id)
    ):
        return
    aborted_write_ids = [
        write_id for write_id in write_ids.exceptions if min_write_id <= write_id <= max_write_id
    ]
    if aborted_write_ids:
        raise _move_refusal(
            table,
            f"'{entry.path}' may have rows of write id {aborted_write_ids[0]}, which was aborted",
            _CLEAN,
        )


def _refuse_half_compactions(table: Table, partitions: Sequence[Partition]) -> None:
    """Raise UnsupportedError if a directory is of a compaction that did not end: acidsql passes it
    over, but Hive would read it."""
    fs = filesystem_for(table.location)
    for location in _partition_locations(table, partitions):
        listed = {entry.name for entry in fs.list(location) if not is_hidden(entry.name)}
        visible = {entry.name for entry in visible_entries(fs, location)[0]}
        for name in sorted(listed - visible):
            raise _move_refusal(
                table, f"'{location}/{name}' is half of a compaction that did not end, and Hive "
                "would read it", "Compact the table again.",
            )  # fmt: skip


def strip_visibility_txns(
    table: Table, partitions: Sequence[Partition], snapshot: Snapshot, new_valid_txns: ValidTxnList
) -> None:
    """Rename the table's directories that a compaction made visible: remove the number of its
    transaction from their names.

    ``base_0000005_v0000017`` becomes ``base_0000005``. A base without a metadata file also gets
    Hive 3.1's mark of a compacted base. A directory keeps its name if the snapshot does not see
    the transaction, or if the new metastore knows the transaction as committed. A reader that has
    listed a renamed directory before fails loudly.

    Args:
        table: The table.
        partitions: The table's partitions.
        snapshot: The snapshot in the old metastore.
        new_valid_txns: The transactions that are valid in the new metastore.

    Raises:
        UnsupportedError: The files are on an object store, which cannot rename, or both names
            exist.
    """
    fs = filesystem_for(table.location)
    for entry, directory in list(_acid_directories(table, partitions)):
        visibility_txn_id = directory.visibility_txn_id
        is_visible_in_new_store = (
            visibility_txn_id <= new_valid_txns.high_water_mark
            and new_valid_txns.is_valid(visibility_txn_id)
        )
        if (
            not visibility_txn_id
            or is_visible_in_new_store
            or not snapshot.valid_txns.is_valid(visibility_txn_id)
        ):
            continue
        if not fs.has_directories:
            raise _move_refusal(
                table,
                f"'{entry.path}' has a transaction of this metastore in its name, and an "
                "object store cannot rename it",
                "CREATE TABLE … AS SELECT copies the rows into a table of the other metastore.",
            )
        target = entry.path[: entry.path.rindex("_v")]
        if fs.exists(target):
            raise _move_refusal(table, f"'{target}' and '{entry.path}' are both there", _CLEAN)
        marker = f"{entry.path}/{METADATA_FILE}"
        if directory.kind is DirectoryKind.BASE and not fs.exists(marker):
            fs.write_file(marker, COMPACTED_METADATA)
            fs.sync_directory(entry.path)
        fs.rename(entry.path, target)
        fs.sync_directory(directory_of(target))


def _acid_directories(
    table: Table, partitions: Sequence[Partition]
) -> Iterator[tuple[Entry, AcidDirectory]]:
    """Yield all bases and deltas of a table, whether a reader sees them or not: the entry of the
    listing, and its parsed name."""
    fs = filesystem_for(table.location)
    for location in _partition_locations(table, partitions):
        for entry in fs.list(location):
            directory = parse_directory(entry.name) if entry.is_dir else None
            if directory is not None:
                yield entry, directory


def _partition_locations(table: Table, partitions: Sequence[Partition]) -> list[str]:
    """Return the directories of the partitions; that of the table if it is unpartitioned."""
    if not table.partition_columns:
        return [table.location]
    return [partition.location for partition in partitions]


def _partition_names(table: Table, partitions: Sequence[Partition]) -> list[str]:
    """Return the names of the partitions, like ``p1=a/p2=1``, in their order; [""] for an
    unpartitioned table."""
    if not table.partition_columns:
        return [""]
    return table.directory_names(partitions)


def _move_refusal(table: Table, reason: str, advice: str) -> UnsupportedError:
    """Return the error of a table that cannot be moved, with the reason and advice."""
    return UnsupportedError(
        f"{table.name} cannot be moved, because {reason}. {advice}",
        condition="UNSUPPORTED_FEATURE.MOVE",
    )
