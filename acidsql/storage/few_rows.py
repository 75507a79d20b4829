"""A few rows of a query, brought to the driver: what they become needs no Python worker to write.

They come by Arrow, the same to the bit as a task would get them. What would take much memory is
left to a job: 1,000 rows may be a gigabyte.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from acidsql.acid.table import Table
from acidsql.storage.event_records import are_keys_alone
from acidsql.storage.jvm import changed_conf, estimated_bytes
from acidsql.storage.literal_rows import FITS, marked, texts_of

_BYTES_MAX = 16 * 1024 * 1024  # of all that is looked for
KEYS_FOR_A_ROW = 10  # a row id is 20 bytes
_SMALL_SOURCE = 1024 * 1024
_CONF = {"spark.sql.execution.arrow.useLargeVarTypes": "false"}


def collect_few(
    rows: DataFrame, table: Table, limit: int, *, if_small: bool = False
) -> pa.Table | None:
    """Collect the events of a query if they are few, and small; else None.

    Args:
        rows: The events.
        table: The target.
        limit: So many rows at most, or ten times as many row ids without rows.
        if_small: Do not look at all if Spark estimates that the query gives more than 1 MiB.
    """
    if are_keys_alone(rows.columns):
        limit *= KEYS_FOR_A_ROW
    found = _bounded(rows, table, _BYTES_MAX // limit).limit(limit + 1)
    if if_small and estimated_bytes(found) > _SMALL_SOURCE:
        return None
    with changed_conf(rows.sparkSession, _CONF):
        try:
            collected = found.toArrow()
        except pa.ArrowException:
            # PySpark builds some nested nulls so that Arrow refuses them; a task gets them well.
            return None
        except Exception as error:
            if "spark.driver.maxResultSize" in str(error):
                return None
            raise
    if collected.num_rows > limit or not pc.all(collected[FITS], min_count=0).as_py():
        return None
    return collected.drop_columns([FITS])


def _bounded(rows: DataFrame, table: Table, bytes_max: int) -> DataFrame:
    """The rows, and whether each is no longer than that; of those that are, no text."""
    texts = texts_of(rows, table)
    sizes = (f"coalesce(octet_length({text}), 0)" for text in texts.values())
    return marked(rows, texts, f"{' + '.join(['0L', *sizes])} <= {bytes_max}")
