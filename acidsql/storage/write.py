"""The job that writes a statement's events: one Spark job, records back to the driver.

The workers' part is in ``event_writer``; this is the driver's: how rows reach the right task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import IntegerType

from acidsql.acid.layout import BUCKET_ID_MAX
from acidsql.acid.table import Table
from acidsql.storage import event_writer as ew
from acidsql.storage.bucketing import bucket_ids
from acidsql.storage.columns import quote

_KEYS_DDL = (
    f"{ew.PARTITION} string, {ew.BUCKET_ID} int, {ew.WRITE_ID} bigint, "
    f"{ew.BUCKET_PROPERTY} int, {ew.ROW_ID} bigint, {ew.ACTION} int, "
    f"{ew.SOURCE_TASK} int, {ew.SOURCE_ATTEMPT} bigint, {ew.RECORD} string"
)
_RECORD_DDL = f"{ew.RECORD} string"

_Step = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def write_events(events: DataFrame, table: Table, spec: ew.WriteSpec) -> list[ew.Record]:
    """Run the job.

    Args:
        events: One row for each event or match; the columns that ``event_writer`` names.
        table: The target.
        spec: What the tasks must know.

    Returns:
        One record for each file written and each task seen; no rows (I7).
    """
    placed = _placed(events, table, spec)
    if ew.ACTION in placed.columns:
        keys = placed.mapInArrow(_inserts_pass_deletes(spec), _KEYS_DDL)
        order = [ew.PARTITION, ew.BUCKET_ID, ew.WRITE_ID, ew.BUCKET_PROPERTY, ew.ROW_ID]
        # Among equal keys the one that acts comes first, so that dropping repeats keeps it.
        deletes = keys.repartition(ew.PARTITION, ew.BUCKET_ID).sortWithinPartitions(
            *order, F.col(ew.ACTION).bitwiseAND(ew.DELETE).desc()
        )
        records = deletes.mapInArrow(_deletes(spec), _RECORD_DDL)
    else:
        records = placed.mapInArrow(_inserts(spec), _RECORD_DDL)
    return [ew.Record.from_json(row[0]) for row in records.collect()]


def write_rows(rows: pa.Table, table: Table, spec: ew.WriteSpec) -> list[ew.Record]:
    """Write a few new rows here in the driver, without a Spark job (literal VALUES)."""
    if spec.is_bucketed:
        rows = rows.append_column(ew.BUCKET, _bucket_ids(rows, table))
    if order := _order(rows.column_names):
        rows = rows.sort_by([(name, "ascending") for name in order])
    task = ew.Task(0, 0)
    return list(ew.write_inserts(spec, task, rows.combine_chunks().to_batches()))


def _placed(events: DataFrame, table: Table, spec: ew.WriteSpec) -> DataFrame:
    """Rows in the task, and in the order, that their files need."""
    # Events that only delete have no values to bucket by.
    if spec.is_bucketed and set(table.bucket_columns) <= set(events.columns):
        # Rows of one bucket of one partition make one file, so they must meet in one task.
        events = events.withColumn(ew.BUCKET, _bucket_expression(table))
        events = events.repartition(*_order(events.columns))
    else:
        # Each task writes its own bucket id, where its rows are; there are 4096 of them.
        events = events.coalesce(BUCKET_ID_MAX + 1)
    order = _order(events.columns)
    return events.sortWithinPartitions(*order) if order else events


def _order(names: Sequence[str]) -> list[str]:
    values = [name for name in names if name.startswith(ew.VALUE) and name != ew.PARTITION]
    return [*values, ew.BUCKET] if ew.BUCKET in names else values


def _bucket_expression(table: Table) -> Column:
    types, version = _bucket_types(table), table.bucketing_version
    buckets = table.num_buckets

    def compute(*columns: pa.Array) -> pa.Array:
        return pa.array(bucket_ids(list(columns), types, buckets, version), pa.int32())

    function = arrow_udf(compute, IntegerType())
    return function(*(F.col(quote(name)) for name in table.bucket_columns))


def _bucket_ids(rows: pa.Table, table: Table) -> pa.Array:
    columns = [rows.column(name).combine_chunks() for name in table.bucket_columns]
    found = bucket_ids(columns, _bucket_types(table), table.num_buckets, table.bucketing_version)
    return pa.array(found, pa.int32())


def _bucket_types(table: Table) -> list[str]:
    types = {column.name: column.type for column in table.columns}
    return [types[name] for name in table.bucket_columns]


def _inserts(spec: ew.WriteSpec) -> _Step:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield ew.to_batch(ew.write_inserts(spec, _task(), batches))

    return run


def _inserts_pass_deletes(spec: ew.WriteSpec) -> _Step:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from ew.write_inserts_pass_deletes(spec, _task(), batches)

    return run


def _deletes(spec: ew.WriteSpec) -> _Step:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield ew.to_batch(ew.write_deletes(spec, _task(), batches))

    return run


def _task() -> ew.Task:
    context = TaskContext.get()
    assert context is not None, "runs in a Spark task"
    return ew.Task(context.partitionId(), context.taskAttemptId())
