"""Rebalancing: spread a table's rows evenly over bucket ids, with new row ids.

The rules are Hive 4's. Rows are numbered from 0 in the order of their row ids, or in the order that
the user asks for. Row ``i`` of ``n`` goes to bucket ``i DIV CEIL(n / buckets)``, and its ``rowId``
is ``i``. A row keeps its write id. With the user's own order, every row gets the highest write id
of all rows, because the rows of a file must ascend by write id.

Source: Hive ``RebalanceQueryCompactor``; hive-format 9.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.bucket_codec import BUCKET_SHIFT, VERSION_1
from acidsql.acid.table import Table
from acidsql.storage.columns import quote, shown_type
from acidsql.storage.event_records import (
    BUCKET_PROPERTY,
    RECORD,
    ROW_ID,
    WRITE_ID,
    Record,
)
from acidsql.storage.folding.fold import BucketFold, FoldSpec, live_rows, write_sorted_rows
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.spark.session.task import current_task
from acidsql.storage.spark.session.worker_process import spare_later_tasks

_NUMBER = "__acidsql_number"


def rebalance(
    spark: SparkSession,
    table: Table,
    folds: Sequence[BucketFold],
    spec: FoldSpec,
    max_buckets: int,
    order_by: str | None = None,
) -> list[Record]:
    """Spread the live rows evenly over bucket ids, number them anew from 0 (see the module), and
    write them into files of the staging directory.

    Rows keep their write ids; with ``order_by`` every row gets the highest one. A first job counts
    the rows, a second one writes them. One task numbers all rows, because all rows are in one
    order.

    Args:
        spark: The session.
        table: The table: full ACID and not bucketed.
        folds: The folds that read the table's rows; at least one, all of one partition.
        spec: How to write the rows.
        max_buckets: The number of bucket ids; a few rows may get fewer.
        order_by: SQL of an order, over the table's columns; None: the order of the row ids.

    Returns:
        A record for each written file.

    Raises:
        FormatError, UnsupportedError, WriteError: The files cannot be folded; the error may come as
            Spark's own.
    """
    rows = _live_rows(spark, table, folds)
    total, last = rows.selectExpr("count(*)", f"coalesce(max({WRITE_ID}), 0)").collect()[0]
    rows_per_bucket = max(1, -(-total // max_buckets))
    # The order is unique, so a task that runs again numbers the rows in the same way.
    row_id = f"{WRITE_ID}, {BUCKET_PROPERTY}, {ROW_ID}"
    order = row_id if order_by is None else f"{order_by}, {row_id}"
    numbered = rows.selectExpr("*", f"row_number() OVER (ORDER BY {order}) - 1L AS {_NUMBER}")
    write_id = WRITE_ID if order_by is None else f"{last}L AS {WRITE_ID}"
    bucket = f"CAST({_NUMBER} DIV {rows_per_bucket} AS INT)"
    placed_rows = numbered.selectExpr(
        write_id,
        f"{VERSION_1} + shiftleft({bucket}, {BUCKET_SHIFT}) AS {BUCKET_PROPERTY}",
        f"CAST({_NUMBER} AS BIGINT) AS {ROW_ID}",
        *(quote(column.name) for column in table.columns),
    )
    sorted_ = placed_rows.repartition(max_buckets, BUCKET_PROPERTY).sortWithinPartitions(
        BUCKET_PROPERTY, ROW_ID
    )
    return write_rows(sorted_, spec, folds[0].partition)


def write_rows(rows: DataFrame, spec: FoldSpec, partition: str) -> list[Record]:
    """Write rows into files of the staging directory in a Spark job, and return a record for each.

    Args:
        rows: The row id (write id, bucket property, ``rowId``), then the table's columns. One task
            has all rows of a bucket id, sorted by bucket id, then by row id.
        spec: How to write the rows.
        partition: The directory below the table's.

    Raises:
        WriteError: A value cannot be stored; the error may come as Spark's own.
    """
    # mapInArrow treats dots and back-quotes in names as syntax.
    plain = rows.toDF(*(f"c{i}" for i in range(len(rows.columns))))
    records = plain.mapInArrow(_write_function(spec, partition), f"{RECORD} string").collect()
    return [Record.from_json(row[0]) for row in records]


def _live_rows(spark: SparkSession, table: Table, folds: Sequence[BucketFold]) -> DataFrame:
    """Return the live rows of these folds, lazily: the row id, then the table's columns. Python
    tasks merge the events, one fold a task.
    """
    columns = [(quote(column.name), shown_type(column.type)) for column in table.columns]
    keys = f"{WRITE_ID} bigint, {BUCKET_PROPERTY} int, {ROW_ID} bigint"
    flat = ", ".join([keys, *(f"c{i} {kind}" for i, (_, kind) in enumerate(columns))])
    tasks = spark.range(0, len(folds), 1, max(1, len(folds)))
    read = tasks.mapInArrow(_read_function(folds, table), flat)
    named_columns = (f"c{i} AS {name}" for i, (name, _) in enumerate(columns))
    return read.selectExpr(WRITE_ID, BUCKET_PROPERTY, ROW_ID, *named_columns)


def _read_function(
    folds: Sequence[BucketFold], table: Table
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of the Python tasks: numbers of folds → their live rows, as ``live_rows``
    gives them.
    """
    row = RowSchema.from_fields((column.name, column.type) for column in table.columns)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the live rows of the folds with these numbers."""
        spare_later_tasks()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from live_rows(folds[number], row)

    return run


def _write_function(
    spec: FoldSpec, partition: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of the Python tasks: rows → one batch with the records of the written
    files as JSON.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows, and yield one batch with the records of all files."""
        spare_later_tasks()
        task = current_task()
        records = write_sorted_rows(batches, spec, partition, task)
        yield pa.record_batch([[record.to_json() for record in records]], [RECORD])

    return run
