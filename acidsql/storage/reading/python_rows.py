"""Reads rows in Python tasks, from files that Spark's own readers read wrongly, or slowly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.paths import is_local
from acidsql.acid.table import Table
from acidsql.storage.columns import quote, shown_sql, shown_type
from acidsql.storage.event_records import KEYS
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events.event_reader import FileRead, flat_schema, read_for_query
from acidsql.storage.reading.pruning.partition_columns import PATH
from acidsql.storage.spark.repeatable import READER
from acidsql.storage.spark.session import jvm
from acidsql.storage.spark.session.jobs import task_slots
from acidsql.storage.spark.session.store_conf import give_thread_store_settings
from acidsql.storage.spark.session.worker_process import spare_later_tasks

# Spark's own readers give a task as much (spark.sql.files.maxPartitionBytes, openCostInBytes).
_TASK_BYTES, _OPENING_BYTES = 128 << 20, 4 << 20
KEY_TYPES = dict(zip(KEYS, ("bigint", "int", "bigint", "string"), strict=True))


def python_rows(
    spark: SparkSession,
    table: Table,
    reads: Sequence[FileRead],
    *,
    of_file: Sequence[str] = (),
    may_change: bool = False,
    exact: bool = False,
) -> DataFrame:
    """Return rows that Python tasks read, lazily: ``KEYS`` (row id and partition directory), the
    table's data columns as the user sees them, then those of ``of_file``. If a file is not local,
    this thread's later jobs carry the session's settings of object stores.

    Args:
        spark: The session.
        table: The table.
        reads: The files.
        of_file: The columns about a row's file to add: only ``PATH``, the file's URL.
        may_change: Others may overwrite the files: they are not a transactional table's. Then the
            rows do not count as repeatable.
        exact: The tasks refuse timestamps finer than a microsecond (``read_file``).
    """
    schema = flat_schema(table)
    names = [column.name for column in table.columns]
    dealt = sorted(reads, key=lambda read: read.size, reverse=True)
    column_list = [quote(name) for name in names]
    kinds = (column.type for column in table.columns)
    ddl = python_rows_ddl(
        [*zip(column_list, kinds, strict=True), *((name, "string") for name in of_file)]
    )
    if not all(is_local(read.file) for read in reads):
        give_thread_store_settings(spark)
    read = _read_function(dealt, schema, names, with_path=PATH in of_file, exact=exact)
    if not may_change:
        read.__name__ = READER
    tasks = _tasks(spark, len(reads), sum(read.size for read in reads))
    return select_shown_columns(tasks.mapInArrow(read, ddl), table, column_list, of_file)


def _tasks(spark: SparkSession, count: int, size: int) -> DataFrame:
    """Return a DataFrame with one column, ``id``: the numbers from 0 to ``count`` - 1, in as many
    Spark partitions as Spark would make of so many files of ``size`` bytes together. The numbers
    are dealt to the partitions in turn: if the files are sorted by size, each gets some large and
    some small ones.

    Spark takes a plan for as large as the range that it begins with, and sends a small one to each
    task of a join. So the range has a number for each 8 bytes, and one for each file is kept.
    """
    tasks_by_size = -(-(size + count * _OPENING_BYTES) // _TASK_BYTES)
    parts = max(1, min(count, max(tasks_by_size, task_slots(spark))))
    tasks_per_part = max(1, -(-count // parts))
    bits = (size // (8 * parts * tasks_per_part)).bit_length()
    numbers = spark.range(0, parts * tasks_per_part << bits, 1, parts)
    place = f"shiftright(id, {bits})"
    tasks = jvm.select(
        numbers.where(f"id & {(1 << bits) - 1} = 0"),
        f"{place} % {tasks_per_part} * {parts} + {place} div {tasks_per_part} AS id",
    )
    return tasks.where(f"id < {count}")


def python_rows_ddl(columns: Iterable[tuple[str, str]]) -> str:
    """Return the DDL of rows that Python tasks read: row id, partition directory, then these
    columns, given as name (quoted if needed) and Hive's type.
    """
    read = (f"{name} {shown_type(kind)}" for name, kind in columns)
    ids = (f"{name} {kind}" for name, kind in KEY_TYPES.items())
    return ", ".join([*ids, *read])


def select_shown_columns(
    events: DataFrame, table: Table, values: Sequence[str], of_file: Sequence[str] = ()
) -> DataFrame:
    """Select, from rows that Python tasks have read, ``KEYS``, the table's data columns as the user
    sees them, and the columns in ``of_file``.

    Args:
        events: The rows.
        table: The table.
        values: SQL of the stored value of each data column.
        of_file: The columns about a row's file.
    """
    columns = (
        f"{shown_sql(value, c.type, zone_offset_micros=None)} AS {quote(c.name)}"
        for value, c in zip(values, table.columns, strict=True)
    )
    return jvm.select(events, *KEYS, *columns, *of_file)


def _read_function(
    reads: Sequence[FileRead],
    schema: RowSchema,
    names: Sequence[str],
    *,
    with_path: bool,
    exact: bool,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of the Python tasks: numbers of files → the visible rows of these files,
    as ``read_for_query`` gives them. A task also makes later tasks of its worker cheaper.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_later_tasks()
        own_reads = [reads[number] for batch in batches for number in batch.column(0).to_pylist()]
        yield from read_for_query(own_reads, schema, names, with_path=with_path, exact=exact)

    return run
