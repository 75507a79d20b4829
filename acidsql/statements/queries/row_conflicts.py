"""The comparison of rows when COMMIT finds a change of the same partition by others."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from acidsql.metastore.foreign import acid_table
from acidsql.metastore.interface import Catalog, WriteConflict
from acidsql.storage.reading.row_conflicts import changed_a_common_row


def is_row_conflict(
    spark: SparkSession, catalog: Catalog, conflict: WriteConflict, own_directories: Sequence[str]
) -> bool:
    """Whether another transaction updated or deleted a row that this transaction changed, too, by
    the row ids in both transactions' delete events. Also True if nobody can tell, as when the table
    is gone. ``own_directories``: what this transaction has published."""
    table, partition = acid_table(catalog.find(conflict.table)), conflict.partition
    if table is None or conflict.write_id is None:
        return True
    if table.partition_columns and partition is None:
        return True
    return changed_a_common_row(spark, table, partition or "", conflict.write_id, own_directories)
