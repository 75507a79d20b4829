"""Write a query's rows into temporary files, if the query must not be evaluated twice (I9).

Few rows stay in the driver instead, as a DataFrame of their values, so "evaluated" rows are in
files or in the driver.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812 - PySpark's own convention

from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.spark.few_rows import collect_rows_if_few
from acidsql.storage.spark.local_rows import PLANNED_MAX, local_rows
from acidsql.storage.spark.session.jvm import METHODS_THAT_JAVA_COMPILES, changed_conf
from acidsql.storage.tables.parquet import read_few_parquet_rows
from acidsql.storage.writing.publish import discard

_FEW_BYTES = 1024 * 1024  # of files that the driver reads
_DECODED_MAX = 16 * 1024 * 1024  # bytes of their rows

# Arrow brings values of these types back as they are.
_PLAIN = (T.BooleanType, T.NumericType, T.DateType, T.TimestampNTZType, T.BinaryType)
# Whatever files the session otherwise writes, these give back the same rows.
_CONF = METHODS_THAT_JAVA_COMPILES | {
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
}


@dataclass(frozen=True, slots=True)
class EvaluatedRows:
    """Rows that were evaluated once.

    Attributes:
        rows: The rows.
        few: Their number, if the driver has them; None: they are in files.
    """

    rows: DataFrame
    few: int | None = None


@contextmanager
def stage_rows(rows: DataFrame, location: str, txn_id: int, few: int = 0) -> Iterator[DataFrame]:
    """Give the block the same rows, from temporary files that nobody else changes, or in the
    driver.

    The query is evaluated before the block begins. The files are deleted when the block ends.

    Args:
        rows: The rows to write. Their column names must differ.
        location: A table's directory; the files lie in a hidden directory below it.
        txn_id: The transaction, for the directory's name: after a crash the cleaner finds it.
        few: The driver itself has up to so many rows, if they are small. Then Spark's plans name
            them, and columns of them need no job.
    """
    with evaluate(rows, location, txn_id, few) as evaluated_rows:
        yield evaluated_rows.rows


@contextmanager
def evaluate(
    rows: DataFrame, location: str, txn_id: int, few: int = 0, *, may_repeat: bool = False
) -> Iterator[EvaluatedRows]:
    """Evaluate a query, and give the block the same rows, with their number if they are few.

    The rows are in the driver, or in temporary files, which are deleted when the block ends. If
    Spark estimates that the rows are small, files are only needed if there are too many. Then the
    query is evaluated anew, and nothing is left of the first evaluation.

    Args:
        rows: The rows to write. Their column names must differ.
        location: A table's directory; the files lie in a hidden directory below it.
        txn_id: The transaction, for the directory's name: after a crash the cleaner finds it.
        few: The driver itself has up to so many rows, if they are small, but at most
            ``PLANNED_MAX``. 0: files, always; so is it if Arrow would change values of a column's
            type.
        may_repeat: The query may be evaluated twice: collect the rows first, whatever Spark
            estimates.
    """
    few = min(few, PLANNED_MAX) if all(_is_plain(field.dataType) for field in rows.schema) else 0
    if few:
        collected = collect_rows_if_few(rows, few, if_small=not may_repeat)
        small_rows = None if collected is None else _driver_rows(rows, collected)
        if small_rows is not None:
            yield small_rows
            return
    path = f"{location}/_tmp_source_{txn_id:07d}_{uuid.uuid4().hex[:12]}"
    try:
        with changed_conf(rows.sparkSession, _CONF):
            rows.write.parquet(path)
        yield _few_staged_rows(rows, path, few) or EvaluatedRows(
            rows.sparkSession.read.schema(rows.schema).parquet(path)
        )
    finally:
        discard(filesystem_for(location), [path])


def _is_plain(kind: T.DataType) -> bool:
    """Whether Arrow brings values of a type, with all its parts, back as they are: booleans,
    numbers, days, wall clocks, binaries, texts without a collation, and nested types of these.
    """
    if isinstance(kind, T.StructType):
        return all(_is_plain(field.dataType) for field in kind)
    if isinstance(kind, T.MapType):
        return _is_plain(kind.keyType) and _is_plain(kind.valueType)
    if isinstance(kind, T.ArrayType):
        return _is_plain(kind.elementType)
    if type(kind) is T.StringType:
        return kind.collation == T.StringType().collation
    return isinstance(kind, _PLAIN)


def _few_staged_rows(rows: DataFrame, path: str, limit: int) -> EvaluatedRows | None:
    """Read a directory's Parquet files, and return their rows as a DataFrame in the driver, with
    the columns of ``rows``. None if the files have more than 1 MiB (16 MiB decoded) or ``limit``
    rows, ``limit`` is 0, there is no file, or Arrow refuses them.
    """
    if not limit:
        return None
    fs = filesystem_for(path)
    files = [entry for entry in fs.list(path) if entry.name.endswith(".parquet")]
    if not files or sum(file.size for file in files) > _FEW_BYTES:
        return None
    few_rows = read_few_parquet_rows([file.path for file in files], limit, _DECODED_MAX)
    return None if few_rows is None else _driver_rows(rows, few_rows)


def _driver_rows(rows: DataFrame, collected: pa.Table) -> EvaluatedRows | None:
    """Return rows in the driver as a DataFrame with the columns of ``rows``; None if Arrow refuses
    them.
    """
    schema = rows.schema.toNullable()  # as of a file
    try:
        return EvaluatedRows(local_rows(rows.sparkSession, collected, schema), collected.num_rows)
    except pa.ArrowException:
        return None
