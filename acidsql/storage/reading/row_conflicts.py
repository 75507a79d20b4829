"""Whether two transactions changed a common row. Their delete events name the changed rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.layout import DirectoryKind, is_hidden, parse_directory
from acidsql.acid.table import Table
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import SnapshotTooOldError
from acidsql.storage.files.filesystem import FileSystem, filesystem_for
from acidsql.storage.reading.events.deletes import key_columns
from acidsql.storage.reading.scan import Scan, delete_keys
from acidsql.storage.tables.listing import EventFile, Listing


def changed_a_common_row(
    spark: SparkSession,
    table: Table,
    partition: str,
    their_write_id: int,
    own_directories: Sequence[str],
) -> bool:
    """Compare two transactions' delete events in one partition, in a Spark job.

    Args:
        spark: The session that runs the job.
        table: The table that both changed.
        partition: The directory below the table's; "" if unpartitioned.
        their_write_id: The write id of the other transaction, which updated or deleted rows there.
        own_directories: The directories that this transaction published, of any table.

    Returns:
        True if both deleted or updated a common row. Also True if this is unknown, because files of
        either are gone, or the other has no delete delta of this write id there any more. False if
        this transaction published no delete events in the partition.
    """
    try:
        return _changed_a_common_row(spark, table, partition, their_write_id, own_directories)
    except (FileNotFoundError, SnapshotTooOldError):
        return True


def _changed_a_common_row(
    spark: SparkSession,
    table: Table,
    partition: str,
    their_write_id: int,
    own_directories: Sequence[str],
) -> bool:
    """Whether both transactions' delete events name a common row. True if the other one has no
    delete events there, because they may be gone; False if only ``own_directories`` have none.
    Raises FileNotFoundError or SnapshotTooOldError if files of either are gone."""
    fs = filesystem_for(table.location)
    place = f"{table.location}/{partition}".rstrip("/")
    their_paths = [
        entry.path
        for entry in fs.list(place)
        if entry.is_dir and _is_delete_delta(entry.path, their_write_id)
    ]
    if not their_paths:
        return True
    own_delete_deltas = [
        path
        for path in own_directories
        if path.rpartition("/")[0] == place and _is_delete_delta(path)
    ]
    if not own_delete_deltas:
        return False
    keys = key_columns(partitions=1)
    common = _keys_in_delete_deltas(spark, fs, table, partition, their_paths).join(
        _keys_in_delete_deltas(spark, fs, table, partition, own_delete_deltas), keys, "left_semi"
    )
    return not common.isEmpty()


def _is_delete_delta(path: str, write_id: int | None = None) -> bool:
    """Whether a path is that of a delete delta, by its name; with ``write_id``, of one of this
    write id alone.
    """
    directory = parse_directory(path.rpartition("/")[2])
    if directory is None or directory.kind is not DirectoryKind.DELETE_DELTA:
        return False
    return write_id is None or (directory.min_write_id, directory.max_write_id) == (
        write_id,
        write_id,
    )


def _keys_in_delete_deltas(
    spark: SparkSession, fs: FileSystem, table: Table, partition: str, directories: Sequence[str]
) -> DataFrame:
    """Return the row ids that the delete events in these delete deltas of a partition name, lazily,
    with ``key_columns``. Events of any write id count. Directories are listed now.
    """
    files = tuple(_event_files(fs, directories))
    listing = Listing(partition, deletes=files)
    return delete_keys(spark, Scan(table, [listing], ValidWriteIdList(0)))


def _event_files(fs: FileSystem, acid_directories: Sequence[str]) -> Iterator[EventFile]:
    """Yield the files, all but hidden ones, in these base, delta or delete delta directories. A
    directory with another name fails an assertion.
    """
    for path in acid_directories:
        directory = parse_directory(path.rpartition("/")[2])
        assert directory is not None
        for entry in fs.list(path):
            if not is_hidden(entry.name):
                yield EventFile(entry.path, directory, entry.size)
