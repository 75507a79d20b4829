"""Reads rows in Python tasks, from files that Spark's own ORC reader would read wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table
from acidsql.storage.columns import quote, shown, shown_type
from acidsql.storage.event_records import KEYS
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.event_reader import FileRead, flat_schema, read_for_query
from acidsql.storage.reading.partition_columns import PATH
from acidsql.storage.spark import jvm
from acidsql.storage.spark.worker_process import spare_later_tasks

KEY_TYPES = dict(zip(KEYS, ("bigint", "int", "bigint", "string"), strict=True))


def python_rows(
    spark: SparkSession, table: Table, reads: Sequence[FileRead], *, of_file: Sequence[str] = ()
) -> DataFrame:
    """Rows that Python tasks read: row id, partition directory, the user's columns.

    ``of_file``: the facts about a row's file to add as columns: ``PATH``.
    """
    schema = flat_schema(table)
    names = [column.name for column in table.columns]
    tasks = spark.range(0, len(reads), 1, max(1, len(reads)))
    own = [quote(name) for name in names]
    kinds = (column.type for column in table.columns)
    ddl = read_ddl([*zip(own, kinds, strict=True), *((name, "string") for name in of_file)])
    read = _reader(reads, schema, names, with_path=PATH in of_file)
    return padded(tasks.mapInArrow(read, ddl), table, own, of_file)


def read_ddl(columns: Iterable[tuple[str, str]]) -> str:
    """The DDL of rows that Python tasks read: row id, partition directory, then these columns."""
    read = (f"{name} {shown_type(kind)}" for name, kind in columns)
    ids = (f"{name} {kind}" for name, kind in KEY_TYPES.items())
    return ", ".join([*ids, *read])


def padded(
    events: DataFrame, table: Table, values: Sequence[str], of_file: Sequence[str] = ()
) -> DataFrame:
    """Rows that Python tasks have read, with the columns that the user sees.

    Args:
        events: The rows.
        table: The table.
        values: The SQL of each of the user's columns.
        of_file: The columns about a row's file.
    """
    columns = (
        f"{shown(value, c.type, zone_offset_micros=None)} AS {quote(c.name)}"
        for value, c in zip(values, table.columns, strict=True)
    )
    return jvm.select(events, *KEYS, *columns, *of_file)


def _reader(
    reads: Sequence[FileRead], schema: RowSchema, names: Sequence[str], *, with_path: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_later_tasks()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_for_query(reads[number], schema, names, with_path=with_path)

    return run
