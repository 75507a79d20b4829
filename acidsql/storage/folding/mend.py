"""Mending: a major compaction of files that break rules which only compaction and Hive need.

A fold needs files that are sorted by row id (I4) and have events of one bucket id alone, the one in
their names (I5). A query of acidsql needs neither: it finds a row's delete event by the row id,
wherever the event is. Trino breaks both rules: in a table without buckets, it writes the
delete events of all bucket ids into one file, unsorted. Hive cannot read such a table at all.

So the live rows are read as a query reads them, and written into a base by the bucket ids and in
the order of their row ids. All readers can read the base. What a query would cut, a timestamp finer
than a microsecond, is refused, as by a fold.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from acidsql.acid.bucket_codec import BUCKET_SHIFT, MAX_BUCKET_ID, VERSION_SHIFT
from acidsql.storage.columns import quote
from acidsql.storage.event_records import BUCKET, BUCKET_PROPERTY, ROW_ID, WRITE_ID, Record
from acidsql.storage.folding.fold import FoldSpec
from acidsql.storage.folding.plan import CompactionPlan
from acidsql.storage.folding.rebalance import write_rows
from acidsql.storage.reading.scan import Scan, scan
from acidsql.storage.spark.session import jvm

_BUCKET_ID = (
    f"if(shiftrightunsigned({BUCKET_PROPERTY}, {VERSION_SHIFT}) = 0, {BUCKET_PROPERTY}, "
    f"shiftright({BUCKET_PROPERTY}, {BUCKET_SHIFT}) & {MAX_BUCKET_ID})"
)


def mend(spark: SparkSession, plan: CompactionPlan, spec: FoldSpec) -> list[Record]:
    """Write the live rows of a major compaction into files of the staging directory, by the bucket
    ids of their row ids, which they keep. Return a record for each file.

    Args:
        spark: The session.
        plan: The compaction: a major one of a full-ACID table that is not bucketed.
        spec: How to write the rows.

    Raises:
        SnapshotTooOldError: A file is gone.
        FormatError, UnsupportedError, WriteError: A file is damaged, or cannot be written; the
            error may come as Spark's own.
    """
    rows = scan(spark, Scan(plan.table, [plan.listing], plan.write_ids, exact=True))
    row_id = (WRITE_ID, BUCKET_PROPERTY, ROW_ID)
    columns = [quote(column.name) for column in plan.table.columns]
    by_bucket = jvm.select(rows, f"{_BUCKET_ID} AS {BUCKET}", *row_id, *columns)
    sorted_rows = by_bucket.repartition(max(1, len(plan.folds)), BUCKET).sortWithinPartitions(
        BUCKET, *row_id
    )
    return write_rows(sorted_rows.drop(BUCKET), spec, plan.partition)
