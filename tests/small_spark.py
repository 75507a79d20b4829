"""Small Spark sessions for tests: the shared one, and those of processes of their own."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from made_once import BUILD, made_once

# Statements here are short, and hardly any two are alike. So optimising code for later, and
# collecting garbage in parallel, would only cost time: a third of it all.
# Spark makes classes for each query. In Java's default of 48 MB for compiled code, a session of
# many hundred tests spends a quarter of its time on making room (Java's thread "Sweeper").
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m -XX:MetaspaceSize=512m"
)


def small_spark(
    warehouse: str | Path,
    *,
    threads: int = 1,
    memory: str = "1g",
    java_options: str = "",
    master: str | None = None,
    class_path: str = "",
    python: str = sys.executable,
    conf: Mapping[str, str] | None = None,
) -> Any:
    """Start a session that logs errors only.

    Args:
        warehouse: Spark's own warehouse.
        threads: The number of threads, and of partitions of a shuffle.
        memory: The memory of the JVM.
        java_options: Further options for Java.
        master: Spark's master, if Spark shall not run in this process.
        class_path: What the driver's class path begins with.
        python: The Python of the workers.
        conf: Further settings.
    """
    os.environ["PYSPARK_PYTHON"] = python
    archive = f"-XX:SharedArchiveFile={loaded_classes(class_path)} -Xlog:disable"
    options = f"{JAVA_OPTIONS} {archive} {java_options}"
    return _session(warehouse, threads, memory, options, master, class_path, conf or {})


def loaded_classes(class_path: str = "") -> Path:
    """Java's archive of Spark's loaded classes (class data sharing), made once.

    A third of the work of a new JVM is to load and verify some 15,000 classes. Java ignores an
    archive that does not fit, for example one of another class path.
    """
    import pyspark

    key = f"{pyspark.__file__} {pyspark.__version__} {os.environ.get('JAVA_HOME')} {class_path}"
    place = BUILD / "java-classes" / f"{hashlib.sha256(key.encode()).hexdigest()[:12]}.jsa"

    def make() -> Path:
        place.parent.mkdir(exist_ok=True)
        unfinished = place.with_suffix(".unfinished")
        subprocess.run([sys.executable, __file__, str(unfinished), class_path], check=True)
        return unfinished

    return made_once(place, make)


def _session(
    warehouse: str | Path,
    threads: int,
    memory: str,
    java_options: str,
    master: str | None,
    class_path: str,
    conf: Mapping[str, str],
) -> Any:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(master or f"local[{threads}]")
        .appName("acidsql-tests")
        .config("spark.driver.memory", memory)
        .config("spark.driver.extraJavaOptions", java_options)
        .config("spark.driver.extraClassPath", class_path)
        .config("spark.ui.enabled", "false")
        # Tests count jobs, and most of them need no worker.
        .config("spark.acidsql.warm.workers", "off")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(threads))
        .config("spark.sql.warehouse.dir", str(warehouse))
        # Each join, sort and aggregation takes at least one page, and Java fills it with zeros.
        # Spark's default is up to 64 MiB. Tables here are small; a long row gets a longer page.
        .config("spark.buffer.pageSize", "1m")
        # Spark compiles a class for each shape of a query, and by default keeps the newest hundred.
        # Many tests come back to a shape that many others have followed: a fifth of all CPU.
        .config("spark.sql.codegen.cache.maxEntries", "3000")
    )
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _archive_classes(archive: str, class_path: str) -> None:
    """Run some statements. Java writes the archive when it ends."""
    with tempfile.TemporaryDirectory() as directory:
        options = f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={archive} -Xlog:disable"
        spark = _session(directory, 2, "1g", options, None, class_path, {})
        spark.range(9).selectExpr("id", "id % 3 AS k").write.orc(f"{directory}/t")
        spark.read.orc(f"{directory}/t").createOrReplaceTempView("t")
        spark.sql("SELECT k, count(*) FROM t JOIN t s USING (k) GROUP BY k ORDER BY k").collect()
        java = spark.sparkContext._gateway.proc
        spark.stop()
        java.stdin.close()  # PySpark's JVM lives until its standard input ends
        java.wait()


if __name__ == "__main__":
    _archive_classes(*sys.argv[1:])
