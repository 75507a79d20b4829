"""Insert events without those that a delete event names, where that is a join.

It is one where ``deletion_vectors`` would take too much memory. Spark joins fastest by one BIGINT.
A row id is three numbers (and its partition's, where Hive counts anew in each), so they are mixed
into one, by which rows meet; whether they are the same row is then looked at. Two row ids may mix
to the same number: that costs time, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid.layout import STATEMENT_ID_MAX, AcidDirectory, Kind
from acidsql.storage.event_records import (
    BUCKET_PROPERTY,
    PARTITION_NUMBER,
    PREFIX,
    ROW_ID,
    WRITE_ID,
)
from acidsql.storage.gone import naming_missing
from acidsql.storage.listing import EventFile, Listing
from acidsql.storage.orc_reader import row_count
from acidsql.storage.parallel import in_threads

# So many delete events are sent to every task (some 60 bytes each in its memory); of more, each
# task gets its share. Spark itself would go by bytes on disk, and an event may take hardly any.
SENT_MAX = 3_000_000
_SURELY_FEW_BYTES = 64 * 1024
MUCH_LATER = 16 * 1024 * 1024  # bytes of files; for fewer another scan is not worth its while
_DELETED = f"{PREFIX}deleted_"
_MIXED = f"{PREFIX}mixed"


def parted(listings: Sequence[Listing], *, by_time: bool) -> tuple[list[Listing], list[Listing]]:
    """What delete events may name rows of, with those events; and what none names a row of.

    ``by_time``: statements that came after all delete events wrote none of the rows that those
    name. Where that is much, it is read by a scan of its own, without the join.
    """
    changed = [listing for listing in listings if listing.deletes]
    unchanged = [listing for listing in listings if not listing.deletes]
    if not by_time:
        return changed, unchanged
    later = [replace(one, data=_later(one), deletes=(), originals=()) for one in changed]
    if sum(file.size for listing in later for file in listing.data) < MUCH_LATER:
        return changed, unchanged
    found = {file for listing in later for file in listing.data}
    earlier = [
        replace(one, data=tuple(file for file in one.data if file not in found)) for one in changed
    ]
    return earlier, unchanged + [listing for listing in later if listing.data]


def _later(listing: Listing) -> tuple[EventFile, ...]:
    """The files of statements that came after all that deleted something.

    A base has rows of all write ids up to its own, a range of write ids those of many statements.
    """
    last = max(
        (file.directory.max_write_id, _statement(file.directory, STATEMENT_ID_MAX))
        for file in listing.deletes
    )
    return tuple(
        file
        for file in listing.data
        if file.directory.kind is not Kind.BASE
        and (file.directory.min_write_id, _statement(file.directory, -1)) > last
    )


def _statement(directory: AcidDirectory, otherwise: int) -> int:
    return otherwise if directory.statement_id is None else directory.statement_id


def key_columns(partitions: int) -> list[str]:
    """What tells one row from all others of so many partitions, all of them numbers."""
    # Hive numbers rows anew in each partition, so of several a row id alone is not unique.
    keys = [WRITE_ID, BUCKET_PROPERTY, ROW_ID]
    return [*keys, PARTITION_NUMBER] if partitions > 1 else keys


def without_deleted(events: DataFrame, deletes: DataFrame, files: Sequence[EventFile]) -> DataFrame:
    """Leave out what is deleted.

    Args:
        events: Insert events, with ``key_columns``.
        deletes: The row ids that delete events name; columns as ``key_columns``.
        files: What those are read from.
    """
    keys = deletes.columns
    named = deletes.selectExpr(
        f"{_mixed(keys)} AS {_MIXED}", *(f"{key} AS {_DELETED}{key}" for key in keys)
    )
    # Not by "=", which Spark would take for more columns to join by.
    differing = " | ".join(
        f"(CAST({key} AS BIGINT) ^ CAST({_DELETED}{key} AS BIGINT))" for key in keys
    )
    condition = F.expr(f"{_mixed(keys)} = {_MIXED} AND ({differing}) = 0L")
    return events.join(_hinted(named, files), condition, "left_anti")


def _mixed(keys: Sequence[str]) -> str:
    """SQL of the number that rows meet by."""
    numbers = (
        f"shiftleft({WRITE_ID}, 48) ^ shiftleft(CAST({BUCKET_PROPERTY} AS BIGINT), 20) ^ {ROW_ID}"
    )
    if PARTITION_NUMBER in keys:
        # The cast matters: a hash is another one of another type.
        numbers += f" ^ xxhash64(CAST({PARTITION_NUMBER} AS BIGINT))"
    return f"({numbers})"


def _hinted(deletes: DataFrame, files: Sequence[EventFile]) -> DataFrame:
    """Tell Spark whether to send them all to every task."""
    if _are_many(files):
        return deletes.hint("merge")
    threshold = deletes.sparkSession.conf.get("spark.sql.autoBroadcastJoinThreshold")
    return deletes if str(threshold).startswith("-") else deletes.hint("broadcast")


def _are_many(files: Sequence[EventFile]) -> bool:
    if sum(file.size for file in files) <= _SURELY_FEW_BYTES:
        return False
    large = [file for file in files if file.size > _SURELY_FEW_BYTES // len(files)]
    return sum(in_threads(lambda file: event_count(file.path, file.length), large)) > SENT_MAX


def event_count(path: str, length: int | None) -> int:
    """How many events a file has. Raises SnapshotTooOldError if it is gone."""
    with naming_missing(path):
        return row_count(path, length)
