"""The Spark session of a benchmark: two cores of this machine."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession


@contextmanager
def local_spark(**settings: str) -> Iterator[tuple[SparkSession, Path]]:
    """A Spark session, and a directory that is deleted with it.

    ``settings``: settings of Spark, with ``_`` for each dot.
    """
    with tempfile.TemporaryDirectory(prefix="acidsql-", ignore_cleanup_errors=True) as place:
        builder = (
            SparkSession.builder.master("local[2]")
            .config("spark.driver.memory", "4g")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", f"{place}/spark")
        )
        for name, value in settings.items():
            builder = builder.config(name.replace("_", "."), value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark, Path(place)
        finally:
            spark.stop()


def resident_mib() -> float:
    """The memory of this Python process, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def heap_mib(spark: SparkSession) -> float:
    """What the JVM's heap holds after a collection, in MiB."""
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    return (runtime.totalMemory() - runtime.freeMemory()) / 2**20
