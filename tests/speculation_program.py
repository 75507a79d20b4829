"""Statements on a cluster that runs slow tasks a second time beside themselves.

``python speculation_program.py <directory>`` prints the table's rows, and how many tasks ran twice,
as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark import TaskContext
from small_spark import small_spark
from spark_cluster import standalone_cluster

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
WAIT_S = 60  # the longest time for which a first attempt waits for the second one
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
    with standalone_cluster(directory) as master:
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


def _wait_in_first_attempt(id: int, file: str) -> int:
    """Wait in the first attempt of one task, until a second one runs beside it."""
    context = TaskContext.get()
    if context is not None and id == 49:
        second_attempt = Path(f"{file}.{context.stageId()}.second_attempt")
        if context.attemptNumber() > 0:
            second_attempt.touch()
        deadline = time.monotonic() + WAIT_S
        while not second_attempt.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    return id


if __name__ == "__main__":
    main(sys.argv[1])
