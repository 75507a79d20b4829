"""The Spark job that writes a statement's events and returns records to the driver.

This module is the driver's part: it brings each row to the right task. A delete key is the row id
of a deleted or matched row, with its partition directory and action; a record tells of a written
file or an ended task. ``event_writer`` describes the two stages. The workers' part is in
``event_writer`` and ``delete_writer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]
from pyspark.sql.types import IntegerType

from acidsql.acid import bucket_codec
from acidsql.acid.layout import BUCKET_ID_MAX, DEFAULT_PARTITION
from acidsql.acid.table import Table
from acidsql.costs import FastPath, note_fast_path, note_write_job
from acidsql.storage import event_records as ew
from acidsql.storage.columns import quote
from acidsql.storage.orc.row_schema import arrow_type
from acidsql.storage.spark.local_rows import local_rows
from acidsql.storage.spark.repeatable import repeatable_query
from acidsql.storage.spark.session.jvm import METHODS_THAT_JAVA_COMPILES, changed_conf
from acidsql.storage.spark.session.task import current_task
from acidsql.storage.spark.session.worker_process import spare_later_tasks
from acidsql.storage.writing import delete_writer, event_writer
from acidsql.storage.writing.batches import (
    Batches,
    is_long_row,
    measured_batches,
    unmeasured_batches,
)
from acidsql.storage.writing.buckets.bucket_sql import bucket_sql
from acidsql.storage.writing.buckets.bucketing import bucket_ids

_KEYS_DDL = (
    f"{ew.PARTITION} string, {ew.BUCKET_ID} int, {ew.WRITE_ID} bigint, "
    f"{ew.BUCKET_PROPERTY} int, {ew.ROW_ID} bigint, {ew.ACTION} int, "
    f"{ew.SOURCE_TASK} int, {ew.SOURCE_ATTEMPT} bigint, {ew.RECORD} string"
)
_KEY_ORDER = (ew.PARTITION, ew.BUCKET_ID, ew.WRITE_ID, ew.BUCKET_PROPERTY, ew.ROW_ID)
_RECORD_DDL = f"{ew.RECORD} string"
# Whether a bucket property has Hive 3's encoding; any other one is the bare bucket id.
_IS_CODED = (
    f"{ew.BUCKET_PROPERTY} BETWEEN {bucket_codec.VERSION_1} AND {2 * bucket_codec.VERSION_1 - 1}"
)

# Values that mean the default partition, as NULL does. They become NULL, so that all rows of that
# partition meet in one task.
_NULLS = ["", DEFAULT_PARTITION]

# Locations of tables that got a long row in this process. The next statement into such a table
# uses measured batches at once.
_HAVE_LONG_ROWS: set[str] = set()

_TaskFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def write_events(
    events: DataFrame, table: Table, spec: ew.WriteSpec, *, is_fast: bool = True
) -> list[ew.Record]:
    """Run the Spark job that writes a statement's events into files of the staging directory.

    A table that got a row too long for unmeasured batches is remembered in this process, and its
    job runs again with measured batches, as the next statements do.

    Args:
        events: One row for each event or match, with the columns that ``event_records`` names.
        table: The target.
        spec: The facts that the tasks need.
        is_fast: False: measure all batches, compute buckets in Python, and run both stages even for
            a statement that only deletes.

    Returns:
        The records of both stages: mainly one for each written file and each seen task; no rows
        (I7).

    Raises:
        TransientTxnError: A file of the source was changed meanwhile.
    """
    is_measured = not is_fast or table.location in _HAVE_LONG_ROWS
    batches = None if is_measured else unmeasured_batches(events)
    if batches is not None:
        try:
            records = _write_batches(batches, table, spec, is_fast=is_fast)
        except Exception as error:
            if not is_long_row(error):
                raise
            _HAVE_LONG_ROWS.add(table.location)
        else:
            note_fast_path(FastPath.UNMEASURED_BATCHES)
            return records
    return _write_batches(measured_batches(events), table, spec, is_fast=is_fast)


def _write_batches(
    batches: Batches, table: Table, spec: ew.WriteSpec, *, is_fast: bool
) -> list[ew.Record]:
    """Run the job over these batches, and return its records. With ``is_fast``, SQL may compute the
    buckets, and events that can only delete, of a repeatable query, run the delete stage alone.
    Only then is TransientTxnError raised, after the job, if a file that the query reads outside the
    table's directory was changed meanwhile."""
    events = batches.rows
    # A statement that only deletes has no rows to write, so it needs no insert stage. Without the
    # records of that stage the driver would not see a task that ran twice. This is safe if the
    # query is repeatable: the keys are the same each time.
    may_skip = is_fast and ew.are_keys_alone(events.columns)
    keys_alone = repeatable_query(events) if may_skip else None
    note_write_job()
    if keys_alone is not None:
        note_fast_path(FastPath.KEYS_ALONE)
        records = _records_of_deletes(_delete_keys(events), spec)
    else:
        records = _records_of_inserts(
            _arrange_rows(_null_default_partitions(events), table, spec, may_use_sql=is_fast), spec
        )
    settings = METHODS_THAT_JAVA_COMPILES | batches.settings
    with changed_conf(events.sparkSession, settings):
        written_records = [ew.Record.from_json(row[0]) for row in records.collect()]
    if keys_alone is not None:
        keys_alone.refuse_changed(events.sparkSession, but_below=table.location)
    return written_records


def _records_of_inserts(placed: DataFrame, spec: ew.WriteSpec) -> DataFrame:
    """Return a DataFrame whose evaluation runs the insert stage, and the delete stage if the rows
    have an ACTION, and gives their records, one JSON text in each row. ``placed``: the rows in
    their tasks.
    """
    names = placed.columns
    # mapInArrow looks up columns by name, and treats dots and back-quotes in names as syntax.
    placed = placed.toDF(*(f"{ew.PREFIX}{i}" for i in range(len(names))))
    if ew.ACTION not in names:
        return placed.mapInArrow(_insert_function(spec, names), _RECORD_DDL)
    return _records_of_deletes(
        placed.mapInArrow(_insert_function_with_deletes(spec, names), _KEYS_DDL), spec
    )


def _records_of_deletes(keys: DataFrame, spec: ew.WriteSpec) -> DataFrame:
    """Return a DataFrame whose evaluation runs the delete stage, and gives the records of both
    stages, one JSON text in each row. ``keys``: rows of KEY_SCHEMA, in any order.
    """
    return _arrange_keys(keys).mapInArrow(_delete_function(spec), _RECORD_DDL)


def _arrange_keys(keys: DataFrame) -> DataFrame:
    """Bring the keys of a file (of a partition and bucket id) into one task, sorted, lazily; of
    equal keys the one that deletes comes first, because ``delete_writer`` keeps the first.
    """
    return keys.repartition(ew.PARTITION, ew.BUCKET_ID).sortWithinPartitions(
        *_KEY_ORDER, F.col(ew.ACTION).bitwiseAND(ew.DELETE).desc()
    )


def _delete_keys(events: DataFrame) -> DataFrame:
    """Return the delete keys of events, in rows of KEY_SCHEMA, lazily, without those that only
    insert. Keys that only matched stay. The insert stage would make the same keys, but these are
    made by SQL: they name no task, and there are no records among them.
    """
    # The SQL calls no functions: in Spark 4.1 a session may redefine functions of Spark's.
    mask, unit = bucket_codec.BUCKET_ID_MASK, 1 << bucket_codec.BUCKET_SHIFT
    coded = f"CAST(({ew.BUCKET_PROPERTY} & {mask}) DIV {unit} AS INT)"
    key_sql = {
        ew.BUCKET_ID: f"CASE WHEN {_IS_CODED} THEN {coded} ELSE {ew.BUCKET_PROPERTY} END",
        ew.SOURCE_TASK: "CAST(NULL AS INT)",
        ew.SOURCE_ATTEMPT: "CAST(NULL AS BIGINT)",
        ew.RECORD: "CAST(NULL AS STRING)",
    }
    columns = (f"{key_sql.get(name, name)} AS {name}" for name in ew.KEY_SCHEMA.names)
    return events.where(f"{ew.ACTION} >= {ew.DELETE}").selectExpr(*columns)


def write_rows(rows: pa.Table, table: Table, spec: ew.WriteSpec) -> list[ew.Record]:
    """Write a few events in the driver into files of the staging directory: both stages as one
    task, without a Spark job. Return the records. The rows are not sorted by SORTED BY. "" and
    ``__HIVE_DEFAULT_PARTITION__`` as partition values count as NULL.

    Raises:
        WriteError: A value cannot be stored.
    """
    for name in _grouping_columns(rows.column_names):
        values = rows.column(name)
        empty = pc.is_in(values, pa.array(_NULLS))
        values = pc.if_else(empty, pa.scalar(None, pa.string()), values)
        rows = rows.set_column(rows.column_names.index(name), name, values)
    if spec.is_bucketed and set(table.bucket_columns) <= set(rows.column_names):
        rows = rows.append_column(ew.BUCKET, _bucket_ids(rows, table))
    if order := _grouping_columns(rows.column_names):
        rows = rows.sort_by([(name, "ascending") for name in order])
    task, batches = ew.Task(0, 0), rows.combine_chunks().to_batches()
    if ew.ACTION not in rows.column_names:
        return list(event_writer.write_inserts(spec, task, batches))
    passed_deletes = list(event_writer.write_inserts_pass_deletes(spec, task, batches))
    keys = _sort_delete_keys(pa.Table.from_batches(passed_deletes, ew.KEY_SCHEMA))
    return list(delete_writer.write_deletes(spec, task, keys.to_batches()))


def _sort_delete_keys(keys_and_records: pa.Table) -> pa.Table:
    """Return the keys by partition, bucket id, write id, bucket property and row id, as
    ``write_deletes`` needs them; of equal keys the one that deletes comes first. Rows that carry
    a record of the insert stage (a written file, an ended task) have no key and come last.
    """
    acts = pc.bit_wise_and(keys_and_records.column(ew.ACTION), ew.DELETE)
    order = [(name, "ascending") for name in _KEY_ORDER]
    order_of_rows = pc.sort_indices(
        keys_and_records.append_column("acts", acts), [*order, ("acts", "descending")]
    )
    return keys_and_records.take(order_of_rows).combine_chunks()


def _null_default_partitions(events: DataFrame) -> DataFrame:
    """Return the events, lazily, with NULL in place of every partition value that means the default
    partition ("" and ``__HIVE_DEFAULT_PARTITION__``).
    """
    values = _grouping_columns(events.columns)
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


def _arrange_rows(
    events: DataFrame, table: Table, spec: ew.WriteSpec, *, may_use_sql: bool
) -> DataFrame:
    """Bring rows into the task and into the order that their files need, lazily. Rows of a bucketed
    table, if its bucket columns are among them, get the column BUCKET, and those of a file go into
    one task. Others go into at most 4096 tasks, without a shuffle. In a task, the rows of a file
    come together, in the order of SORTED BY. ``may_use_sql``: SQL may compute the buckets.
    """
    # Events that only delete have no values from which to compute a bucket.
    if spec.is_bucketed and set(table.bucket_columns) <= set(events.columns):
        # Rows of one bucket in one partition make one file, so they must meet in one task.
        bucket = _bucket_expression(events.sparkSession, table, may_use_sql=may_use_sql)
        events = events.select("*", bucket.alias(ew.BUCKET))
        events = events.repartition(*_grouping_columns(events.columns))
    else:
        # Each task writes its rows under its own number as bucket id; there are 4096 bucket ids.
        events = events.coalesce(BUCKET_ID_MAX + 1)
    sort_expressions = [*_grouping_sort_key(_grouping_columns(events.columns)), *_sort_order(table)]
    return events.sortWithinPartitions(*sort_expressions) if sort_expressions else events


def _grouping_sort_key(names: Sequence[str]) -> list[Column]:
    """Return the sort key that brings the rows of each file together: one Column, or none if
    ``names`` is empty. The order of the files is free.

    The key is one number, so Spark sorts without comparing rows. The comparison of partition values
    would be slow, because their first letters are mostly the same.
    """
    texts = (f"coalesce({name}, '')" if name != ew.BUCKET else name for name in names)
    return [F.expr(f"xxhash64({', '.join(texts)})")] if names else []


def _sort_order(table: Table) -> list[Column]:
    """Return the sort keys of SORTED BY, an empty list without it. As in Hive, nulls are the
    smallest values.
    """
    return [
        F.col(quote(sort_column.name)).desc_nulls_last()
        if sort_column.descending
        else F.col(quote(sort_column.name)).asc_nulls_first()
        for sort_column in table.sort_columns
    ]


def _grouping_columns(names: Sequence[str]) -> list[str]:
    """Return those of the names that say which rows make one file: the columns of partition values,
    then BUCKET if it is there.
    """
    values = [name for name in names if name.startswith(ew.VALUE) and name != ew.PARTITION]
    return [*values, ew.BUCKET] if ew.BUCKET in names else values


def _bucket_expression(spark: SparkSession, table: Table, *, may_use_sql: bool) -> Column:
    """Return a Column that computes a row's bucket id by Hive's hash: as SQL if ``may_use_sql``,
    SQL can hash all bucket columns' types, and the session gives the right ids for test values
    (no job runs); else as a Python function over Arrow.
    """
    types, version = _bucket_types(table), table.bucketing_version
    buckets = table.num_buckets
    sql = None
    if may_use_sql:
        sql = bucket_sql(list(map(quote, table.bucket_columns)), types, buckets, version)
    if sql is not None and _knows_buckets(spark, types, buckets, version):
        note_fast_path(FastPath.BUCKET_SQL)
        return F.expr(sql)

    def compute(*columns: pa.Array) -> pa.Array:
        return pa.array(bucket_ids(list(columns), types, buckets, version), pa.int32())

    function = arrow_udf(compute, IntegerType())
    bucket: Column = function(*(F.col(quote(name)) for name in table.bucket_columns))
    return bucket


def _knows_buckets(spark: SparkSession, types: Sequence[str], buckets: int, version: int) -> bool:
    """Whether Spark's SQL computes the right buckets for test values. No job runs.

    A session may have redefined the functions that the SQL calls.
    """
    values = pa.array([None, -2, -1, 0, 1, 100], pa.int8())
    # Arrow casts 32-bit integers to dates, but not 8-bit integers.
    columns = [values.cast(pa.int32()).cast(arrow_type(kind)) for kind in types]
    names = [f"{ew.PREFIX}{i}" for i in range(len(types))]
    rows = local_rows(spark, pa.table(dict(zip(names, columns, strict=True))))
    sql = bucket_sql(names, types, buckets, version)
    computed = [row[0] for row in rows.selectExpr(f"{sql} AS {ew.BUCKET}").collect()]
    expected: list[int] = bucket_ids(columns, types, buckets, version).tolist()
    return computed == expected


def _bucket_ids(rows: pa.Table, table: Table) -> pa.Array:
    """Return the bucket id of each row of a table in memory."""
    columns = [rows.column(name).combine_chunks() for name in table.bucket_columns]
    bucket_numbers = bucket_ids(
        columns, _bucket_types(table), table.num_buckets, table.bucketing_version
    )
    return pa.array(bucket_numbers, pa.int32())


def _bucket_types(table: Table) -> list[str]:
    """Return the types of the CLUSTERED BY columns, in order."""
    types = {column.name: column.type for column in table.columns}
    return [types[name] for name in table.bucket_columns]


def _insert_function(spec: ew.WriteSpec, names: list[str]) -> _TaskFunction:
    """Return the function of the Python tasks: rows → one batch of records as JSON (RECORD_SCHEMA).
    A task also makes later tasks of its worker cheaper. ``names``: the columns' names, because the
    batches have others.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_later_tasks()
        named_batches = (pa.RecordBatch.from_arrays(batch.columns, names) for batch in batches)
        yield event_writer.to_batch(event_writer.write_inserts(spec, current_task(), named_batches))

    return run


def _insert_function_with_deletes(spec: ew.WriteSpec, names: list[str]) -> _TaskFunction:
    """Return the function of the Python tasks: rows → delete keys, last the records as rows of the
    same columns (KEY_SCHEMA). A task also makes later tasks of its worker cheaper. ``names``: the
    columns' names, because the batches have others.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_later_tasks()
        named_batches = (pa.RecordBatch.from_arrays(batch.columns, names) for batch in batches)
        yield from event_writer.write_inserts_pass_deletes(spec, current_task(), named_batches)

    return run


def _delete_function(spec: ew.WriteSpec) -> _TaskFunction:
    """Return the function of the Python tasks: sorted delete keys, with the insert stage's records
    among them → one batch of the records of both stages as JSON (RECORD_SCHEMA). A task also makes
    later tasks of its worker cheaper.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_later_tasks()
        yield event_writer.to_batch(delete_writer.write_deletes(spec, current_task(), batches))

    return run
