"""The documented stream source in an ordinary environment: no variable names a Python, and another
``python3`` is the first one on the path, as when a program is started by ``venv/bin/python``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """
import sys
from pathlib import Path

import acidsql
from pyspark.sql import SparkSession

place, other_python_ran = Path(sys.argv[1]), Path(sys.argv[2])
spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.sql.shuffle.partitions", "2").getOrCreate()
)
acid = acidsql.connect(spark, warehouse=place, compactor="off")
print("another Python ran:", other_python_ran.exists())
acid.sql("CREATE TABLE t (id INT)")
acid.sql("INSERT INTO t SELECT id FROM range(5000)")  # so many rows are written by workers

stream = spark.readStream.format("acidsql").option("table", "default.t")
stream = stream.option("warehouse", str(place)).load()
query = stream.writeStream.format("memory").queryName("seen").trigger(availableNow=True).start()
query.awaitTermination()
print("rows:", spark.table("seen").count())
for refused in (
    lambda: spark.read.format("acidsql").load("t"),
    lambda: spark.range(1).write.format("acidsql").mode("append").save(),
):
    try:
        refused()
    except Exception as error:
        print("refused:", str(error).replace("\\n", " "))
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
def test_a_table_is_a_stream_where_another_python_is_the_first_on_the_path(java_home, tmp_path):
    other_python_ran, binaries = tmp_path / "ran", tmp_path / "bin"
    binaries.mkdir()
    other_python = binaries / "python3"  # one without pyspark
    other_python.write_text(f"#!/bin/sh\necho ran >> {other_python_ran}\nexit 1\n")
    other_python.chmod(0o755)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYSPARK", "SPARK"))
    }
    environment |= {"PATH": f"{binaries}{os.pathsep}{environment['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "warehouse"), str(other_python_ran)],
        capture_output=True, text=True, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["another Python ran: False", "rows: 5000"]
    assert "Read a directory by acidsql.read(spark, path)" in lines[2]
    assert "Write acid.insert_into('db.t', df)" in lines[3]
