"""Exactly these files, read by Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.acid import event
from acidsql.storage import jvm
from acidsql.storage.partition_columns import PATH, SIZE

_NO_OPTIONS: Mapping[str, str] = {}
_OF_FILE = {PATH: "_metadata.file_path", SIZE: "_metadata.file_size"}
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
    """Events under the names that they have, and then under Hive's (spark.sql.caseSensitive)."""
    kinds = ("int", "bigint", "int", "bigint", "bigint", row_type)
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    events = open_files(spark, paths, schema, by_position=False, of_file=of_file, options=options)
    if tuple(names) == event.EVENT_COLUMNS:
        return events
    hives = (f"{own} AS {name}" for own, name in zip(names, event.EVENT_COLUMNS, strict=True))
    return jvm.select(events, *hives, *of_file)


def kept_apart(rows: DataFrame, name: str) -> DataFrame:
    """The same rows, below which no condition is pushed.

    Where Spark joins by a subquery's ``<`` it reads the outer table once more, without the
    conditions that stand right above the subquery's. The scan's filter must not be one of them: it
    is what mentions all event columns (I8). ``name``: one that nothing else in the query has.
    """
    return rows.observe(name, F.count(F.lit(1)).alias("rows"))


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
    """Rows of exactly these files; ``of_file``: what of a row's file is told, ``PATH`` or ``SIZE``.

    ``by_position`` is right for top-level columns, whose places Spark knows, and for those alone:
    ORC matches what is within them by name.
    """
    reader = spark.read.schema(schema).options(
        **{"orc.force.positional.evolution": str(by_position).lower()},
        # Missing files are an error, never missing rows.
        ignoreMissingFiles="false",
        ignoreCorruptFiles="false",
        # They are files: Spark need not look for partition columns in each one's path.
        recursiveFileLookup="true",
        **options,
    )
    # A path is a name, not a pattern. Spark's own switch for that, __globPaths__=false, reads
    # files twice: of several paths, each that looks like a pattern stands for all of them.
    names = [_GLOB.sub(r"\\\g<0>", path) for path in paths]
    # Of many paths Spark would look at each in a job, ten times slower: we listed them already.
    threshold = "spark.sql.sources.parallelPartitionDiscovery.threshold"
    at_least = max(len(names), int(spark.conf.get(threshold) or 0))
    with jvm.changed_conf(spark, {threshold: str(at_least)}):
        rows = jvm.load(reader.format(file_format), spark, names)
    told = (f"{_OF_FILE[name]} AS {name}" for name in of_file)
    return jvm.select(rows, "*", *told) if of_file else rows
