"""Statements on a cluster with executors in processes of their own, one of which is killed.

``python cluster_program.py <directory>`` prints the table's rows as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from small_spark import small_spark

import acidsql
from acidsql.java import use_java

EXECUTORS = "local-cluster[2,1,1024]"  # two, each of one core and 1024 MB


def main(directory: str) -> None:
    """Run the statements on two executors."""
    use_java()
    spark = small_spark(f"{directory}/spark", threads=4, master=EXECUTORS)
    spark.udf.register("kill_once", _kill_once, "INT")
    with acidsql.connect(spark, warehouse=f"{directory}/warehouse", compactor="off") as acid:
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
        print(json.dumps([tuple(row) for row in acid.sql("SELECT * FROM t ORDER BY id").collect()]))
    spark.stop()


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
