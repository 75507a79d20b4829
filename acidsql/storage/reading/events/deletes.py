"""Insert events joined with delete events: the live rows, or the deleted ones.

For live rows, the join is used if ``deletion_vectors`` would take too much memory. Spark joins
fastest by one BIGINT. A row id is three numbers, and the number of its partition belongs to them,
because Hive numbers rows anew in each partition. So these numbers are mixed into one BIGINT for the
join, and the join condition also compares them in full. If two row ids mix to the same BIGINT, the
result is still right.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.storage.columns import quote
from acidsql.storage.event_records import (
    BUCKET_PROPERTY,
    PARTITION_NUMBER,
    PREFIX,
    ROW_ID,
    VERSION,
    WRITE_ID,
)
from acidsql.storage.files.gone import naming_missing
from acidsql.storage.files.parallel import run_in_threads
from acidsql.storage.reading.events.orc_reader import row_count
from acidsql.storage.spark.session import jvm
from acidsql.storage.tables.listing import EventFile

# At most so many delete events are broadcast (an event takes some 60 bytes of a task's memory);
# more events are shuffled. Spark itself would decide by the bytes on disk, which may be very few.
SENT_MAX = 3_000_000
_SURELY_FEW_BYTES = 64 * 1024
_DELETED = f"{PREFIX}deleted_"
_MIXED = f"{PREFIX}mixed"


def key_columns(partitions: int) -> list[str]:
    """Return the names of the columns, all numbers, that identify a row among the rows of so many
    partitions: a row id, and with several partitions PARTITION_NUMBER.
    """
    # Hive numbers rows anew in each partition, so a row id is unique in one partition only.
    keys = [WRITE_ID, BUCKET_PROPERTY, ROW_ID]
    return [*keys, PARTITION_NUMBER] if partitions > 1 else keys


def remove_deleted(events: DataFrame, deletes: DataFrame, files: Sequence[EventFile]) -> DataFrame:
    """Return the insert events that no delete event names, lazily.

    Args:
        events: Insert events, with ``key_columns``.
        deletes: The row ids that delete events name, as ``key_columns``.
        files: The files of these delete events. By their size Spark gets a hint how to join.
    """
    return _join_deletes(events, deletes, files, "left_anti")


def join_deleted_rows(
    events: DataFrame, deletes: DataFrame, files: Sequence[EventFile]
) -> DataFrame:
    """Return the insert events that delete events name, lazily; a row comes once for each event
    that names it. The columns of ``deletes`` are added, all but VERSION under other names.

    Args:
        events: Insert events, with ``key_columns``.
        deletes: The row ids that delete events name, as ``key_columns``, perhaps with VERSION.
        files: The files of these delete events. By their size Spark gets a hint how to join.
    """
    return _join_deletes(events, deletes, files, "inner")


def mark_deleted(events: DataFrame, deletes: DataFrame, files: Sequence[EventFile]) -> DataFrame:
    """Return all insert events, lazily, with VERSION as a last column: the write id under which a
    row was deleted, or NULL if it is live.

    Args:
        events: Insert events, with ``key_columns``.
        deletes: The row ids that delete events name, as ``key_columns``, and VERSION. If several
            events name a row, the lowest write id counts.
        files: The files of these delete events. By their size Spark gets a hint how to join.
    """
    keys = [key for key in deletes.columns if key != VERSION]
    once = deletes.groupBy(*keys).agg(F.min(VERSION).alias(VERSION))
    return jvm.select(
        _join_deletes(events, once, files, "left_outer"), *map(quote, events.columns), VERSION
    )


def _join_deletes(
    events: DataFrame, deletes: DataFrame, files: Sequence[EventFile], how: str
) -> DataFrame:
    """Join insert events with delete events by row id (and partition number, if ``deletes`` has
    it), lazily. ``how``: Spark's type of the join. The result has the columns of ``deletes`` too if
    the type keeps them, all but VERSION under other names. ``files``: the files of the delete
    events.
    """
    keys = [key for key in deletes.columns if key != VERSION]
    version_columns = [VERSION] if VERSION in deletes.columns else []
    renamed_deletes = deletes.selectExpr(
        f"{_mixed_key_sql(keys)} AS {_MIXED}",
        *(f"{key} AS {_DELETED}{key}" for key in keys),
        *version_columns,
    )
    # The keys are not compared by "=": Spark would join by every column that "=" compares.
    differing = " | ".join(
        f"(CAST({key} AS BIGINT) ^ CAST({_DELETED}{key} AS BIGINT))" for key in keys
    )
    condition = F.expr(f"{_mixed_key_sql(keys)} = {_MIXED} AND ({differing}) = 0L")
    return events.join(_hint_join(renamed_deletes, files), condition, how)


def _mixed_key_sql(keys: Sequence[str]) -> str:
    """Return SQL of the BIGINT into which a row id is mixed for the join; with PARTITION_NUMBER
    among ``keys``, this number too.
    """
    numbers = (
        f"shiftleft({WRITE_ID}, 48) ^ shiftleft(CAST({BUCKET_PROPERTY} AS BIGINT), 20) ^ {ROW_ID}"
    )
    if PARTITION_NUMBER in keys:
        # The cast matters: another type gives another hash.
        numbers += f" ^ xxhash64(CAST({PARTITION_NUMBER} AS BIGINT))"
    return f"({numbers})"


def _hint_join(deletes: DataFrame, files: Sequence[EventFile]) -> DataFrame:
    """Return the delete events with a hint to Spark to broadcast them, or to sort and merge if they
    are more than SENT_MAX. No hint if they are few, but the session has switched broadcasts off.
    """
    if _are_too_many_to_broadcast(files):
        return deletes.hint("merge")
    threshold = deletes.sparkSession.conf.get("spark.sql.autoBroadcastJoinThreshold")
    return deletes if str(threshold).startswith("-") else deletes.hint("broadcast")


def _are_too_many_to_broadcast(files: Sequence[EventFile]) -> bool:
    """Whether these files have more than SENT_MAX delete events. Reads the footers of large
    files.
    """
    if sum(file.size for file in files) <= _SURELY_FEW_BYTES:
        return False
    large = [file for file in files if file.size > _SURELY_FEW_BYTES // len(files)]
    return sum(run_in_threads(lambda file: event_count(file.path, file.length), large)) > SENT_MAX


def event_count(path: str, length: int | None) -> int:
    """Return the number of events in a file, from its footer; 0 for an empty file. ``length``: the
    committed bytes; None for the whole file. Raises SnapshotTooOldError if the file is gone, and
    FormatError if it is no ORC file.
    """
    with naming_missing(path):
        return row_count(path, length)
