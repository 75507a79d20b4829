"""The columns of a scan: ``row__id``, ``KEYS``, the table's columns, other virtual columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table
from acidsql.acid.virtual_columns import FILE_NAME, IS_DELETED, ROW__ID, TYPES
from acidsql.storage.columns import quote, shown_type
from acidsql.storage.event_records import BUCKET_PROPERTY, ROW_ID, WRITE_ID
from acidsql.storage.reading.pruning.partition_columns import PATH
from acidsql.storage.reading.python_rows import KEY_TYPES
from acidsql.storage.spark.char_columns import mark_char_columns
from acidsql.storage.spark.session import jvm


def select_scan_columns(events: DataFrame, table: Table, virtual: Collection[str]) -> DataFrame:
    """Return insert events with the columns of a scan, in the order of ``scan``: ``row__id`` is
    made of its fields, and CHAR columns are marked for Spark.
    """
    rows = jvm.select(events, f"{row_id_sql()} AS {ROW__ID}", *_column_names(table, virtual)[1:])
    return mark_char_columns(rows, table)


def row_id_sql(prefix: str = "") -> str:
    """Return SQL of ``row__id``, from the fields of a row id under names with this prefix."""
    parts = (("writeid", WRITE_ID), ("bucketid", BUCKET_PROPERTY), ("rowid", ROW_ID))
    fields = ", ".join(f"'{name}', {prefix}{column}" for name, column in parts)
    return f"named_struct({fields})"


def needed_file_columns(of_file: Sequence[str], virtual: Collection[str]) -> list[str]:
    """Return the names of the columns about a row's file that a read must add, each once: those in
    ``of_file``, and PATH if the virtual column of the file's name is shown.
    """
    return [*dict.fromkeys([*of_file, *([PATH] if FILE_NAME in virtual else [])])]


def row_virtual_columns(virtual: Collection[str]) -> list[str]:
    """Return SQL of those virtual columns of a live row that are in ``virtual``, each under its
    name: whether the row is deleted (false), and its file's name. ``row__id`` is not among them.
    """
    # Spark shows a local file as file:/a in some places, and as file:///a in others.
    sql_by_name = {
        IS_DELETED: "false",
        FILE_NAME: f"regexp_replace({PATH}, '^file:/+', 'file:///')",
    }
    return [f"{sql} AS {name}" for name, sql in sql_by_name.items() if name in virtual]


def empty_scan(spark: SparkSession, table: Table, virtual: Collection[str] = ()) -> DataFrame:
    """Return no rows, with the columns of a scan: a stand-in of the table, with which Spark
    analyses a statement before the files are known.
    """
    columns = (
        f"CAST(NULL AS {kind}) AS {name}" for name, kind in _columns_with_types(table, virtual)
    )
    return mark_char_columns(jvm.select(spark.range(0), *columns), table)


def unread_scan(
    spark: SparkSession, table: Table, virtual: Collection[str], marker: str
) -> DataFrame:
    """Return no rows, with the columns of a scan, read from an empty list of files.

    Spark's optimiser does not know that the list is empty, so its plan keeps the conditions above
    this relation. The relation has one more column, ``marker``, which is not in the result.
    """
    kinds = [*_columns_with_types(table, virtual), (quote(marker), "int")]
    ddl = ", ".join(f"{name} {kind}" for name, kind in kinds)
    rows = spark.read.schema(ddl).format("orc").load([])
    return mark_char_columns(jvm.select(rows, *_column_names(table, virtual)), table)


def _columns_with_types(table: Table, virtual: Collection[str]) -> list[tuple[str, str]]:
    """Return the columns of a scan: name (quoted if needed) and Spark's type, in order:
    ``row__id``, ``KEYS``, the table's and partition columns, the other virtual columns.
    """
    return [
        (ROW__ID, TYPES[ROW__ID]),
        *KEY_TYPES.items(),
        *((quote(column.name), shown_type(column.type)) for column in table.all_columns),
        *((name, TYPES[name]) for name in virtual if name != ROW__ID),
    ]


def _column_names(table: Table, virtual: Collection[str]) -> list[str]:
    return [name for name, _ in _columns_with_types(table, virtual)]
