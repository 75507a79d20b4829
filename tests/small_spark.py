"""Small Spark sessions for tests: the shared one, and those of processes of their own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

# Statements here are short, and hardly any two are alike. So optimising code for later, and
# collecting garbage in parallel, would only cost time: a third of it all.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def small_spark(
    warehouse: str | Path,
    *,
    threads: int = 1,
    memory: str = "1g",
    java_options: str = "",
    master: str | None = None,
) -> Any:
    """Start a session that logs errors only.

    Args:
        warehouse: Spark's own warehouse.
        threads: The number of threads, and of partitions of a shuffle.
        memory: The memory of the JVM.
        java_options: Further options for Java.
        master: Spark's master, if Spark shall not run in this process.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master(master or f"local[{threads}]")
        .appName("acidsql-tests")
        .config("spark.driver.memory", memory)
        .config("spark.driver.extraJavaOptions", f"{JAVA_OPTIONS} {java_options}")
        .config("spark.ui.enabled", "false")
        # Tests count jobs, and most of them need no worker.
        .config("spark.acidsql.warm.workers", "off")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(threads))
        .config("spark.sql.warehouse.dir", str(warehouse))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
