"""The job that writes a statement's events: one Spark job, records back to the driver.

The workers' part is in ``event_writer``; this is the driver's: how rows reach the right task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]
from pyspark.sql.types import IntegerType

from acidsql.acid.layout import BUCKET_ID_MAX, DEFAULT_PARTITION
from acidsql.acid.table import Table
from acidsql.storage import event_records as ew
from acidsql.storage import event_writer
from acidsql.storage.bucketing import bucket_ids
from acidsql.storage.columns import quote
from acidsql.storage.jvm import changed_conf
from acidsql.storage.orc_writer import BATCH_ROWS
from acidsql.storage.worker_process import spare_later_tasks

_KEYS_DDL = (
    f"{ew.PARTITION} string, {ew.BUCKET_ID} int, {ew.WRITE_ID} bigint, "
    f"{ew.BUCKET_PROPERTY} int, {ew.ROW_ID} bigint, {ew.ACTION} int, "
    f"{ew.SOURCE_TASK} int, {ew.SOURCE_ATTEMPT} bigint, {ew.RECORD} string"
)
_KEY_ORDER = (ew.PARTITION, ew.BUCKET_ID, ew.WRITE_ID, ew.BUCKET_PROPERTY, ew.ROW_ID)
_RECORD_DDL = f"{ew.RECORD} string"

# Partition values that share a directory; as one value they also meet in one task.
_NULLS = ["", DEFAULT_PARTITION]

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
    placed = _placed(_one_null(events), table, spec)
    names = placed.columns
    # mapInArrow looks columns up by name, and takes dots and back-quotes in names for syntax.
    placed = placed.toDF(*(f"{ew.PREFIX}{i}" for i in range(len(names))))
    if ew.ACTION in names:
        keys = placed.mapInArrow(_inserts_pass_deletes(spec, names), _KEYS_DDL)
        # Among equal keys the one that acts comes first, so that dropping repeats keeps it.
        deletes = keys.repartition(ew.PARTITION, ew.BUCKET_ID).sortWithinPartitions(
            *_KEY_ORDER, F.col(ew.ACTION).bitwiseAND(ew.DELETE).desc()
        )
        records = deletes.mapInArrow(_deletes(spec), _RECORD_DDL)
    else:
        records = placed.mapInArrow(_inserts(spec, names), _RECORD_DDL)
    with changed_conf(records.sparkSession, _large_batches(records.sparkSession)):
        return [ew.Record.from_json(row[0]) for row in records.collect()]


def _large_batches(spark: SparkSession) -> dict[str, str]:
    """Hand rows to Python by more than 10,000, unless somebody has chosen their number.

    That is an eighth faster. A batch's bytes are bounded by Spark too (maxBytesPerBatch).
    """
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    return {name: str(BATCH_ROWS)} if spark.conf.get(name) == "10000" else {}


def write_rows(rows: pa.Table, table: Table, spec: ew.WriteSpec) -> list[ew.Record]:
    """Write a few events here in the driver, without a Spark job: both steps, one task."""
    for name in _order(rows.column_names):
        values = rows.column(name)
        empty = pc.is_in(values, pa.array(_NULLS))
        values = pc.if_else(empty, pa.scalar(None, pa.string()), values)
        rows = rows.set_column(rows.column_names.index(name), name, values)
    if spec.is_bucketed and set(table.bucket_columns) <= set(rows.column_names):
        rows = rows.append_column(ew.BUCKET, _bucket_ids(rows, table))
    if order := _order(rows.column_names):
        rows = rows.sort_by([(name, "ascending") for name in order])
    task, batches = ew.Task(0, 0), rows.combine_chunks().to_batches()
    if ew.ACTION not in rows.column_names:
        return list(event_writer.write_inserts(spec, task, batches))
    passed = list(event_writer.write_inserts_pass_deletes(spec, task, batches))
    keys = _sorted_keys(pa.Table.from_batches(passed, ew.KEY_SCHEMA))
    return list(event_writer.write_deletes(spec, task, keys.to_batches()))


def _sorted_keys(keys: pa.Table) -> pa.Table:
    """As ``write_events`` has Spark sort them; the records of step 1, which have no keys, last."""
    acts = pc.bit_wise_and(keys.column(ew.ACTION), ew.DELETE)
    order = [(name, "ascending") for name in _KEY_ORDER]
    by = pc.sort_indices(keys.append_column("acts", acts), [*order, ("acts", "descending")])
    return keys.take(by).combine_chunks()


def _one_null(events: DataFrame) -> DataFrame:
    """NULL for every partition value that means the default partition."""
    values = _order(events.columns)
    if not values:
        return events
    # Not withColumns: it fails where another column's name holds a back-quote.
    return events.select(
        *(
            F.when(F.col(name).isin(_NULLS), F.lit(None)).otherwise(F.col(name)).alias(name)
            if name in values
            else F.col(quote(name))
            for name in events.columns
        )
    )


def _placed(events: DataFrame, table: Table, spec: ew.WriteSpec) -> DataFrame:
    """Rows in the task, and in the order, that their files need."""
    # Events that only delete have no values to bucket by.
    if spec.is_bucketed and set(table.bucket_columns) <= set(events.columns):
        # Rows of one bucket of one partition make one file, so they must meet in one task.
        events = events.select("*", _bucket_expression(table).alias(ew.BUCKET))
        events = events.repartition(*_order(events.columns))
    else:
        # Each task writes its own bucket id, where its rows are; there are 4096 of them.
        events = events.coalesce(BUCKET_ID_MAX + 1)
    order = [*map(F.col, _order(events.columns)), *_sorting(table)]
    return events.sortWithinPartitions(*order) if order else events


def _sorting(table: Table) -> list[Column]:
    """SORTED BY, as Hive sorts: nulls are the smallest values."""
    return [
        F.col(quote(by.name)).desc_nulls_last()
        if by.descending
        else F.col(quote(by.name)).asc_nulls_first()
        for by in table.sort_columns
    ]


def _order(names: Sequence[str]) -> list[str]:
    values = [name for name in names if name.startswith(ew.VALUE) and name != ew.PARTITION]
    return [*values, ew.BUCKET] if ew.BUCKET in names else values


def _bucket_expression(table: Table) -> Column:
    types, version = _bucket_types(table), table.bucketing_version
    buckets = table.num_buckets

    def compute(*columns: pa.Array) -> pa.Array:
        return pa.array(bucket_ids(list(columns), types, buckets, version), pa.int32())

    function = arrow_udf(compute, IntegerType())
    bucket: Column = function(*(F.col(quote(name)) for name in table.bucket_columns))
    return bucket


def _bucket_ids(rows: pa.Table, table: Table) -> pa.Array:
    columns = [rows.column(name).combine_chunks() for name in table.bucket_columns]
    found = bucket_ids(columns, _bucket_types(table), table.num_buckets, table.bucketing_version)
    return pa.array(found, pa.int32())


def _bucket_types(table: Table) -> list[str]:
    types = {column.name: column.type for column in table.columns}
    return [types[name] for name in table.bucket_columns]


def _inserts(spec: ew.WriteSpec, names: list[str]) -> _Step:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_later_tasks()
        named = (pa.RecordBatch.from_arrays(batch.columns, names) for batch in batches)
        yield event_writer.to_batch(event_writer.write_inserts(spec, _task(), named))

    return run


def _inserts_pass_deletes(spec: ew.WriteSpec, names: list[str]) -> _Step:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_later_tasks()
        named = (pa.RecordBatch.from_arrays(batch.columns, names) for batch in batches)
        yield from event_writer.write_inserts_pass_deletes(spec, _task(), named)

    return run


def _deletes(spec: ew.WriteSpec) -> _Step:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_later_tasks()
        yield event_writer.to_batch(event_writer.write_deletes(spec, _task(), batches))

    return run


def _task() -> ew.Task:
    context = TaskContext.get()
    assert context is not None, "runs in a Spark task"
    return ew.Task(context.partitionId(), context.taskAttemptId())
