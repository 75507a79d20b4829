"""A query's rows, written aside: for a source that must not be evaluated twice (I9)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from acidsql.storage.filesystem import filesystem_for
from acidsql.storage.publish import discard


@contextmanager
def staged(rows: DataFrame, location: str, txn_id: int) -> Iterator[DataFrame]:
    """The same rows, read from files that nobody else changes; they are gone afterwards.

    Args:
        rows: What to write; column names must differ.
        location: A table's directory, below which a hidden one is made.
        txn_id: For a person who finds the directory after a crash.
    """
    path = f"{location}/_tmp_source_{txn_id:07d}_{uuid.uuid4().hex[:12]}"
    try:
        rows.write.parquet(path)
        yield rows.sparkSession.read.schema(rows.schema).parquet(path)
    finally:
        discard(filesystem_for(location), [path])
