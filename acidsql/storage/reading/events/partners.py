"""Which files can have the rows that some delete events name.

A row id has the write id and the bucket id of its row. So the row can only be in a file of this
bucket id, in a directory with this write id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from acidsql.acid.bucket_codec import decode
from acidsql.acid.layout import DirectoryKind, bucket_id_of
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.storage.event_records import (
    BUCKET_PROPERTY,
    PARTITION_NUMBER,
    ROW_ID,
    VERSION,
    WRITE_ID,
)
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.reading.events.deletes import event_count
from acidsql.storage.reading.events.event_reader import FileRead, plan_deletes, read_deletes
from acidsql.storage.tables.listing import EventFile, Listing

READ_MAX = 100_000  # delete events that the driver reads; for more, all files are read
FEW_BYTES = 64 * 1024  # of files of delete events that no job need scan
_COLUMNS = [WRITE_ID, BUCKET_PROPERTY, ROW_ID, VERSION, PARTITION_NUMBER]

_Named = set[tuple[int, int]]  # write ids and bucket ids


def keep_files_with_named_rows(listing: Listing, write_ids: ValidWriteIdList) -> Listing:
    """Return the listing with only those files of insert events that may have a row which the
    delete events name. The delete events are read now; if there are more than READ_MAX, only their
    footers, and all files are kept.

    Args:
        listing: The files of insert events, and the delete events, of one partition.
        write_ids: The visible write ids.

    Raises:
        SnapshotTooOldError: A file is gone.
    """
    reads = plan_deletes(listing, write_ids)
    if sum(run_in_threads(lambda read: event_count(str(read.path), read.length), reads)) > READ_MAX:
        return listing
    named_buckets: _Named = set().union(*run_in_threads(_named_buckets, reads))
    write_ids_named = {write_id for write_id, _ in named_buckets}
    return replace(
        listing,
        data=tuple(file for file in listing.data if _may_have_named_row(file, named_buckets)),
        originals=tuple(group for group in listing.originals if group.write_id in write_ids_named),
    )


def read_few_delete_keys(
    listings: Sequence[Listing], write_ids: ValidWriteIdList, numbers: Mapping[str, int]
) -> pa.Table | None:
    """Read the row ids that the delete events name now, in the driver, if their files have at most
    64 KiB together.

    Args:
        listings: The delete events.
        write_ids: The visible write ids.
        numbers: The ``PARTITION_NUMBER`` of each partition.

    Returns:
        WRITE_ID, BUCKET_PROPERTY, ROW_ID, VERSION and PARTITION_NUMBER, all BIGINT; None if the
        files are larger, or a number is NULL, which Hive does not write.

    Raises:
        SnapshotTooOldError: A file is gone.
    """
    if sum(file.size for listing in listings for file in listing.deletes) > FEW_BYTES:
        return None
    reads = [read for listing in listings for read in plan_deletes(listing, write_ids)]

    def key_tables(read: FileRead) -> list[pa.Table]:
        """Return the delete events of a file as tables with ``_COLUMNS``."""
        with naming_missing(str(read.path)):
            parts = [pa.table([*batch.columns], _COLUMNS[:4]) for batch in read_deletes(read)]
        number = pa.scalar(numbers[read.partition], pa.int64())
        return [part.append_column(_COLUMNS[4], pa.repeat(number, len(part))) for part in parts]

    schema = pa.schema([(name, pa.int64()) for name in _COLUMNS])
    parts = [part for file_parts in run_in_threads(key_tables, reads) for part in file_parts]
    keys = pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])
    return None if any(column.null_count for column in keys.columns) else keys


def _named_buckets(read: FileRead) -> _Named:
    """Return the pairs of write id and bucket id of the rows that a file's visible delete events
    name. Raises SnapshotTooOldError if the file is gone.
    """
    named_buckets: _Named = set()
    with naming_missing(str(read.path)):
        for batch in read_deletes(read):
            ids = batch.column(WRITE_ID).to_pylist()
            buckets = batch.column(BUCKET_PROPERTY).to_pylist()
            named_buckets.update(zip(ids, buckets, strict=True))
    # A NULL, which Hive does not write, names no row.
    return {
        (write_id, decode(bucket).bucket_id)
        for write_id, bucket in named_buckets
        if None not in (write_id, bucket)
    }


def _may_have_named_row(file: EventFile, named_buckets: _Named) -> bool:
    """Whether a file may have a row of one of these write ids and bucket ids, by its directory and
    name.
    """
    directory = file.directory
    is_base = directory.kind is DirectoryKind.BASE
    first = 0 if is_base else directory.min_write_id
    # Rows of a converted table have the write id 0, and their base may have a number below 0.
    last = max(directory.max_write_id, 0) if is_base else directory.max_write_id
    bucket_id = bucket_id_of(file.path.rpartition("/")[2])
    return any(
        first <= write_id <= last and bucket == bucket_id for write_id, bucket in named_buckets
    )
