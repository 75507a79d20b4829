"""Read exactly the given files with Spark's own readers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid import event
from acidsql.acid.paths import local_path_of
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.gone import file_gone_error
from acidsql.storage.reading.pruning.partition_columns import PATH
from acidsql.storage.spark.session import jvm
from acidsql.storage.spark.views import settle

_NO_OPTIONS: Mapping[str, str] = {}
_OF_FILE = {PATH: "_metadata.file_path"}
_GLOB = re.compile(r"[{}\[\]*?\\]")


def read_orc(
    spark: SparkSession,
    paths: Sequence[str],
    names: Sequence[str],
    row_type: str,
    *,
    of_file: Sequence[str],
    options: Mapping[str, str] = _NO_OPTIONS,
) -> DataFrame:
    """Return the events of files as stored, of all kinds, lazily: the six event columns under
    Hive's names, then the columns in ``of_file``.

    Args:
        spark: The session.
        paths: The files.
        names: The files' own names of the event columns. They may differ from Hive's in case, which
            matters if ``spark.sql.caseSensitive`` is true.
        row_type: Spark's DDL of the column ``row``.
        of_file: The columns about a row's file to add: only ``PATH``, the file's URL.
        options: Further options of Spark's reader.

    Raises:
        SnapshotTooOldError: A file is gone.
    """
    kinds = ("int", "bigint", "int", "bigint", "bigint", row_type)
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    events = open_files(spark, paths, schema, by_position=False, of_file=of_file, options=options)
    if tuple(names) == event.EVENT_COLUMNS:
        return events
    hives = (
        f"{file_name} AS {name}" for file_name, name in zip(names, event.EVENT_COLUMNS, strict=True)
    )
    return jvm.select(events, *hives, *of_file)


def block_pushdown(rows: DataFrame, name: str) -> DataFrame:
    """Return the same rows, in a form in which Spark pushes no condition below them. ``name``: a
    name that no other observation of the query has.

    For a subquery that is correlated by ``<`` Spark joins, and reads the outer table again without
    the conditions directly above the table. The scan's filter must not be among these conditions,
    because it references all event columns (I8).
    """
    return rows.observe(name, F.count(F.lit(1)).alias("rows"))


def path_pattern(path: str) -> str:
    """Return the pattern that matches only this path, since Spark takes each path for a pattern.

    Spark's switch for this, __globPaths__=false, reads files twice: with several paths, each path
    that looks like a pattern stands for all paths.
    """
    return _GLOB.sub(r"\\\g<0>", path)


def _load_rows(
    reader: DataFrameReader, spark: SparkSession, names: Sequence[str], file_columns: Sequence[str]
) -> DataFrame:
    """Return the rows of the files that these patterns match, lazily and settled (``views``), with
    ``file_columns`` (SQL with names) after their own columns. Raises SnapshotTooOldError if Spark
    finds no file.
    """
    try:
        rows = jvm.load(reader, spark, names)
        return settle(jvm.select(rows, "*", *file_columns) if file_columns else rows)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        path = (error.getMessageParameters() or {}).get("path", "")
        raise file_gone_error(local_path_of(path) if path.startswith("file:") else path) from error


def _driver_listing_settings(spark: SparkSession, paths: Sequence[str]) -> dict[str, str]:
    """Return Spark settings with which the driver, not a job, looks at so many paths; empty if none
    are needed, as for few paths or on an object store.

    A job is ten times slower, and we have listed the files already. But an object store answers
    each question slowly, so there the tasks of a job ask at the same time.
    """
    if paths and not filesystem_for(paths[0]).has_directories:
        return {}
    threshold = "spark.sql.sources.parallelPartitionDiscovery.threshold"
    return {threshold: str(len(paths))} if len(paths) > int(spark.conf.get(threshold) or 0) else {}


def open_files(
    spark: SparkSession,
    paths: Sequence[str],
    schema: str,
    file_format: str = "orc",
    *,
    of_file: Sequence[str],
    by_position: bool = True,
    options: Mapping[str, str] = _NO_OPTIONS,
) -> DataFrame:
    """Return the rows of exactly these files, by Spark's reader, lazily. A missing or damaged file
    is an error, now or when the rows are read.

    Args:
        spark: The session. A setting of it may change for the time of this call.
        paths: The files.
        schema: The DDL of the columns.
        file_format: Spark's name of the format.
        of_file: The columns about a row's file to add: only ``PATH``, the file's URL.
        by_position: Match top-level columns of ORC files by position. Nested fields match by name.
        options: Further options of Spark's reader.

    Raises:
        SnapshotTooOldError: A file is gone.
    """
    reader = spark.read.schema(schema).options(
        **{"orc.force.positional.evolution": str(by_position).lower()},
        # A missing file must be an error: otherwise rows would be missing.
        ignoreMissingFiles="false",
        ignoreCorruptFiles="false",
        # With this Spark does not look for partition columns in the paths.
        recursiveFileLookup="true",
        **options,
    )
    names = list(map(path_pattern, paths))
    file_columns = [f"{_OF_FILE[name]} AS {name}" for name in of_file]
    with jvm.changed_conf(spark, _driver_listing_settings(spark, paths)):
        return _load_rows(reader.format(file_format), spark, names, file_columns)
