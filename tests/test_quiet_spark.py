"""What Spark writes on standard error beside acidsql's own lines: programs of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from acidsql.storage.spark.session import quiet

pytestmark = pytest.mark.classic

# Statements that fail in tasks, in the driver and in Spark's analysis. Each fails with an error.
PROGRAM = """
import acidsql

acid = acidsql.connect(warehouse="wh", compactor="off")
acid.sql("CREATE TABLE t (id INT NOT NULL, v STRING, CHECK (id < 100))")
acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
rows = acid.spark.range(10).selectExpr("CAST(id % 2 + 1 AS INT) AS id")
acid.spark.udf.register("fails", lambda value: 1 // 0, "int")
for text in (
    "INSERT INTO t SELECT 100 + id, 'x' FROM range(5)",
    "INSERT INTO t SELECT NULL, 'x' FROM range(3)",
    "INSERT INTO t SELECT id * 10000000000, 'x' FROM range(3)",
    "UPDATE t SET id = CAST(v AS INT)",
    "UPDATE t SET id = fails(id)",
    "MERGE INTO t USING {rows} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'z'",
    "SELECT assert_true(id > 1) FROM t",
    "SELECT nix FROM t",
    "DELETE FROM t WHERE",
):
    try:
        acid.sql(text, **({"rows": rows} if "{rows}" in text else {})).collect()
    except Exception as error:
        print(type(error).__name__)
print(sorted(tuple(row) for row in acid.table("t").collect()))
acid.close()
"""
WORDS = (
    "ConstraintError ConstraintError ConstraintError EvaluationError PythonException "
    "MergeCardinalityError SparkRuntimeException AnalysisError SqlSyntaxError"
)


def run_program(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these words, in a new directory."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    return subprocess.run(
        [sys.executable, *words], cwd=directory, env=environment, text=True, check=False,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=300,
    )  # fmt: skip


@pytest.mark.slow
def test_errors_of_a_program_leave_nothing_on_standard_error(java_home, tmp_path):
    done = run_program(tmp_path, "-c", PROGRAM)
    *errors, rows = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert " ".join(errors) == WORDS
    assert rows == "[(1, 'a'), (2, 'b')]"


@pytest.mark.slow
def test_the_command_line_starts_without_a_line_of_sparks(java_home, tmp_path):
    done = run_program(tmp_path, "-m", "acidsql", "sql", "SELECT 6 * 7 AS n; SELECT nix")
    assert done.returncode == 1
    assert "42" in done.stdout
    (line,) = done.stderr.split("SQLSTATE")[0].splitlines()
    assert line.startswith("Error: line 1, statement 2 of 2: [UNRESOLVED_COLUMN")


@pytest.mark.slow
def test_a_log_level_that_was_chosen_stays(java_home, tmp_path):
    words = ("-m", "acidsql", "--conf", "spark.log.level=WARN", "sql", "SELECT 1")
    assert "Using Spark's default log4j profile" in run_program(tmp_path, *words).stderr


def test_only_the_greeting_of_a_jvm_is_left_out(capfd):
    texts = [
        b"WARNING: Using incubator modules: jdk.incubator.vector\n26/11/29 16:13:31 WARN Utils: ",
        b"Your hostname\nJava says something\n",
    ]
    shown = ""
    with quiet._Filter() as filter_:
        jvm = os.dup(filter_.input)
        for text in texts:
            os.write(jvm, text)
        while "something" not in shown:
            shown += capfd.readouterr().err
    assert shown == "Java says something\n"
    os.write(jvm, b"26/11/29 16:13:31 WARN TaskSetManager: x\r[Stage 0:>")  # no line's end
    while "Stage" not in shown:
        shown += capfd.readouterr().err
    assert shown.endswith("WARN TaskSetManager: x\r[Stage 0:>")
    os.close(jvm)


@pytest.mark.parametrize(
    ("confs", "file", "is_told"),
    [
        ({}, None, False),
        ({"spark.log.level": "INFO"}, None, True),
        ({"spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile=x"}, None, True),
        ({}, "log4j2.properties", True),
        ({}, "spark-defaults.conf", True),
        ({}, "log4j2.properties.template", False),
        ({"spark.executor.memory": "1g"}, "spark-env.sh", False),
    ],
)
def test_who_decides_how_spark_logs(confs, file, is_told, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    if file is not None:
        (tmp_path / file).write_text("spark.log.level INFO")
    assert quiet._has_own_logging(confs) is is_told
    (tmp_path / "spark-defaults.conf").write_text("  # spark.log.level INFO")
    assert quiet._has_own_logging(confs) is (is_told and file != "spark-defaults.conf")


def test_a_running_spark_is_made_quiet_and_goes_on(spark):
    level = spark._jvm.org.apache.logging.log4j.LogManager.getLogger
    name = "org.apache.spark.executor.Executor"
    before = str(spark._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel())
    quiet.quiet_spark(spark)
    try:
        assert str(level(name).getLevel()) == "OFF"
        assert not quiet.is_noisy(spark)
        assert spark.range(3).count() == 3
    finally:
        spark.sparkContext.setLogLevel(before)
