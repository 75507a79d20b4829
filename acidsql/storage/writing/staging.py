"""Write a query's rows into temporary files, if the query must not be evaluated twice (I9)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.spark.jvm import METHODS_THAT_JAVA_COMPILES, changed_conf
from acidsql.storage.writing.publish import discard

# Whatever files the session otherwise writes, these give back the same rows.
_CONF = METHODS_THAT_JAVA_COMPILES | {
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
}


@contextmanager
def staged(rows: DataFrame, location: str, txn_id: int) -> Iterator[DataFrame]:
    """The same rows, read from temporary files that nobody else changes.

    The files are deleted when the block ends.

    Args:
        rows: The rows to write. Their column names must differ.
        location: A table's directory; the files lie in a hidden directory below it.
        txn_id: The transaction, for the directory's name: after a crash the cleaner finds it.
    """
    path = f"{location}/_tmp_source_{txn_id:07d}_{uuid.uuid4().hex[:12]}"
    try:
        with changed_conf(rows.sparkSession, _CONF):
            rows.write.parquet(path)
        yield rows.sparkSession.read.schema(rows.schema).parquet(path)
    finally:
        discard(filesystem_for(location), [path])
