"""A Spark for tests: the one that they share, and those of processes of their own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

# Statements here are short, and hardly two are alike: what a JVM spends on optimising code for
# later, and on collecting garbage beside the work, costs a third of all.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def small_spark(
    warehouse: str | Path,
    *,
    threads: int = 1,
    memory: str = "1g",
    java_options: str = "",
    master: str | None = None,
) -> Any:
    """Start one that logs errors only.

    Args:
        warehouse: Spark's own.
        threads: As many partitions has a shuffle.
        memory: Of the JVM.
        java_options: Besides ours.
        master: Spark's, if it is not to run in this process.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master(master or f"local[{threads}]")
        .appName("acidsql-tests")
        .config("spark.driver.memory", memory)
        .config("spark.driver.extraJavaOptions", f"{JAVA_OPTIONS} {java_options}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(threads))
        .config("spark.sql.warehouse.dir", str(warehouse))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
