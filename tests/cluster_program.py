"""Statements on a cluster with two executors, one of which is killed in the middle of an UPDATE.

``spark-submit cluster_program.py <directory>`` writes into the directory, which all machines see:

- ``rows.json``: the table's rows.
- ``packages.json``: which of acidsql and its client for HDFS the executors' Python has before
  acidsql connects.
- ``killed``: an empty file, when an executor has been killed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import acidsql


def main(directory: str) -> None:
    """Run the statements on two executors."""
    spark = SparkSession.builder.appName("acidsql on a cluster").getOrCreate()
    spark.udf.register("kill_once", _kill_once, "INT")
    spark.udf.register("packages", _installed_packages, "STRING")
    packages = spark.sql("SELECT packages(id) FROM range(1)").head()[0]
    Path(directory, "packages.json").write_text(packages)
    with acidsql.connect(spark, compactor="off") as acid:
        acid.sql("DROP TABLE IF EXISTS t")
        acid.sql(
            "CREATE TABLE t (id INT, name STRING) PARTITIONED BY (p INT) "
            "CLUSTERED BY (id) INTO 2 BUCKETS"
        )
        acid.sql(
            "INSERT INTO t SELECT CAST(id AS INT), 'inserted', CAST(id % 3 AS INT) "
            "FROM range(0, 1000, 1, 4)"
        )
        acid.sql(
            "UPDATE t SET name = 'updated' "
            "WHERE p = 1 AND kill_once(id, :file) = id",
            {"file": f"{directory}/killed"},
        )  # fmt: skip
        acid.sql("DELETE FROM t WHERE id < 10")
        acid.sql(
            "MERGE INTO t USING (SELECT CAST(id AS INT) AS id FROM range(990, 1010, 1, 4)) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'merged' "
            "WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, 'new', 0)"
        )
        acid.sql("ALTER TABLE t PARTITION (p = 1) COMPACT 'major' AND WAIT")
        rows = [tuple(row) for row in acid.sql("SELECT * FROM t ORDER BY id").collect()]
    Path(directory, "rows.json").write_text(json.dumps(rows))
    spark.stop()


def _installed_packages(id: int) -> str:
    names = ["acidsql", "hdfs_native"]
    return json.dumps([name for name in names if importlib.util.find_spec(name) is not None])


def _kill_once(id: int, file: str) -> int:
    """Kill the executor that first asks for a row in the middle of its work."""
    if id > 500:
        try:
            Path(file).touch(exist_ok=False)
        except FileExistsError:
            return id
        daemon = os.getppid()  # the process that starts Python's workers; the executor started it
        os.kill(_parent(daemon), signal.SIGKILL)
    return id


def _parent(process: int) -> int:
    status = Path(f"/proc/{process}/status")
    if status.exists():
        return int(status.read_text().split("PPid:")[1].split()[0])
    return int(subprocess.check_output(["ps", "-o", "ppid=", "-p", str(process)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
