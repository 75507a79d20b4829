"""Statements on a cluster that runs slow tasks a second time beside themselves.

``python speculation_program.py <directory>`` prints the table's rows, and how many tasks ran twice,
as JSON.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark import TaskContext
from small_spark import small_spark

import acidsql
from acidsql.java import use_java

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.task.duration.threshold": "500ms",  # for a stage with a single task
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "600m",
}
# Spark runs no second attempt on the host of the first one.
HOSTS = ["127.0.0.2", "127.0.0.3"]
SLOW_S = 4  # seconds for which the first attempt of a task waits in the middle of its rows
STATEMENTS = [
    "INSERT INTO t SELECT slow_once(CAST(id AS INT), :file), 'inserted', CAST(id % 3 AS INT) AS p "
    "FROM range(0, 100, 1, 2)",
    "UPDATE t SET name = 'updated' WHERE p = 1 AND slow_once(id, :file) = id",
    "DELETE FROM t WHERE slow_once(id, :file) < 10",
    "MERGE INTO t USING (SELECT slow_once(CAST(id AS INT), :file) + IF(id < 50, 0, 60) AS id "
    "FROM range(40, 60, 1, 2)) s "
    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'merged' "
    "WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, 'new', 0)",
]


def main(directory: str) -> None:
    """Run the statements on two executors."""
    use_java()
    with cluster(directory) as master:
        spark = small_spark(f"{directory}/spark", threads=4, master=master, conf=SPECULATION)
        spark.udf.register("slow_once", _wait_in_first_attempt, "INT")
        with acidsql.connect(spark, warehouse=f"{directory}/warehouse", compactor="off") as acid:
            acid.sql("CREATE TABLE t (id INT, name STRING) PARTITIONED BY (p INT)")
            for number, statement in enumerate(STATEMENTS):
                acid.sql(statement, {"file": f"{directory}/{number}"})
            rows = [tuple(row) for row in acid.sql("SELECT * FROM t ORDER BY id").collect()]
        spark.stop()
    twice = sorted(path.name.split(".")[0] for path in Path(directory).glob("*.second_attempt"))
    print(json.dumps({"rows": rows, "statements_with_second_attempts": twice}))


@contextmanager
def cluster(directory: str) -> Iterator[str]:
    """Start Spark's own cluster, with an executor on each of two addresses of this machine.

    Yields:
        The URL of the master.
    """
    start = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    deploy, url = "org.apache.spark.deploy", f"spark://127.0.0.1:{port}"
    commands = [[f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port)]]
    for host in HOSTS:
        worker = f"{deploy}.worker.Worker --host {host} --cores 1 --memory 1g"
        commands.append([*worker.split(), "--work-dir", f"{directory}/{host}", url])
    environment = {**os.environ, "SPARK_DAEMON_MEMORY": "256m"}
    processes = [
        subprocess.Popen(
            [start, *command, "--webui-port", "0"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for command in commands
    ]  # fmt: skip
    try:
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def _wait_in_first_attempt(id: int, file: str) -> int:
    """Wait in the first attempt of one task, until a second one has run beside it."""
    context = TaskContext.get()
    if context is not None and id == 49:
        if context.attemptNumber() > 0:
            Path(f"{file}.{context.stageId()}.second_attempt").touch()
        else:
            time.sleep(SLOW_S)
    return id


if __name__ == "__main__":
    main(sys.argv[1])
