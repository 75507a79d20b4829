"""The Spark session of a benchmark: two cores of this machine."""

from __future__ import annotations

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
