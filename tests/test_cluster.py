"""Clusters: executors in processes of their own, some of which are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import hive_metastore
import pytest
from mini_yarn import MiniYarn
from running_server import running_server
from small_spark import JAVA_OPTIONS
from spark_cluster import SPARK_HOME, bare_python, spark_submit, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.classic]

PROGRAM = Path(__file__).with_name("cluster_program.py")


def run(java_home, directory, *, master, conf, mode="client", environment):
    """Run the program, and check the rows that it read. Returns its standard error."""
    ended = spark_submit(
        PROGRAM, directory, master=master, mode=mode,
        conf={"spark.driver.extraJavaOptions": JAVA_OPTIONS, **conf},
        # Executors would get PYTHONPATH, too. The driver's Python has acidsql installed.
        environment={"JAVA_HOME": java_home, "PYTHONPATH": "", **environment},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert (directory / "killed").exists()
    expected = {id: ("updated" if id % 3 == 1 else "inserted", id % 3) for id in range(10, 1000)}
    expected |= {id: ("merged", id % 3) for id in range(990, 1000)}
    expected |= dict.fromkeys(range(1000, 1010), ("new", 0))
    rows = json.loads((directory / "rows.json").read_text())
    assert rows == [[id, *values] for id, values in sorted(expected.items())]
    return ended.stderr


@pytest.fixture(scope="module")
def yarn(mini_hdfs, tmp_path_factory):
    work = tmp_path_factory.mktemp("yarn")
    yield from running_server(None, lambda: MiniYarn(work, mini_hdfs))


@pytest.fixture(scope="module")
def hive_on_hdfs(mini_hdfs, tmp_path_factory):
    """A Hive Metastore whose warehouse is on the HDFS."""
    work = tmp_path_factory.mktemp("hms")
    settings = {
        "metastore.warehouse.dir": f"{mini_hdfs.root}/hive",
        "metastore.warehouse.external.dir": f"{mini_hdfs.root}/hive-external",
    }
    yield from running_server(
        hive_metastore.missing(),
        lambda: hive_metastore.HiveMetastoreServer(work, settings=settings),
    )


def test_no_row_is_lost_or_doubled_when_an_executor_is_killed(java_home, tmp_path):
    errors = run(
        java_home, tmp_path,
        master="local-cluster[2,1,1024]",
        conf={"spark.acidsql.warehouse": f"{tmp_path}/warehouse"},
        environment={"PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert "Lost executor" in errors


@pytest.fixture
def python_of_workers(tmp_path):
    """A Python that has neither acidsql nor its client for HDFS."""
    return os.fspath(bare_python(tmp_path / "bare"))


def test_workers_of_sparks_own_cluster_get_acidsql_and_its_client_for_hdfs(
    python_of_workers, hdfs, java_home, tmp_path
):
    with standalone_cluster(tmp_path) as master:
        run(
            java_home, tmp_path, master=master,
            conf={
                "spark.driver.host": "127.0.0.1", "spark.executor.memory": "600m",
                "spark.acidsql.warehouse": f"{hdfs}/warehouse",
                "spark.acidsql.metastore": f"sqlite:///{tmp_path}/metastore.db",
            },
            environment={
                "PYSPARK_PYTHON": python_of_workers, "PYSPARK_DRIVER_PYTHON": sys.executable,
            },
        )  # fmt: skip
    assert installed_packages(tmp_path) == []


@pytest.mark.parametrize("mode", ["client", pytest.param("cluster", marks=pytest.mark.rare)])
def test_containers_of_yarn_get_acidsql_and_its_client_for_hdfs(
    python_of_workers, yarn, hive_on_hdfs, java_home, tmp_path, mode
):
    pythons = {"PYSPARK_PYTHON": python_of_workers, "PYSPARK_DRIVER_PYTHON": sys.executable}
    conf = {
        "spark.yarn.jars": f"local:{SPARK_HOME}/jars/*",
        "spark.executor.instances": "2", "spark.executor.memory": "512m",
        "spark.driver.memory": "700m", "spark.yarn.maxAppAttempts": "1",
        "spark.acidsql.metastore": hive_on_hdfs.url,
    }  # fmt: skip
    if mode == "cluster":
        conf |= {f"spark.yarn.appMasterEnv.{name}": python for name, python in pythons.items()}
    try:
        run(
            java_home, tmp_path, master="yarn", mode=mode, conf=conf,
            environment={"HADOOP_CONF_DIR": os.fspath(yarn.conf), **pythons},
        )  # fmt: skip
    except AssertionError:
        print(yarn.container_logs()[-20_000:])
        raise
    assert installed_packages(tmp_path) == []


def installed_packages(directory):
    """Which packages of acidsql's the executors' Python had before acidsql connected."""
    return json.loads((directory / "packages.json").read_text())


def test_no_row_is_lost_or_doubled_when_slow_tasks_run_twice(java_home, tmp_path):
    ended = subprocess.run(
        [sys.executable, PROGRAM.with_name("speculation_program.py"), tmp_path],
        env={**os.environ, "JAVA_HOME": java_home},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
    results = json.loads(ended.stdout.splitlines()[-1])
    expected = {id: ("updated" if id % 3 == 1 else "inserted", id % 3) for id in range(10, 100)}
    expected |= {id: ("merged", id % 3) for id in range(40, 50)}
    expected |= dict.fromkeys(range(110, 120), ("new", 0))
    assert results["rows"] == [[id, *values] for id, values in sorted(expected.items())]
    assert results["statements_with_second_attempts"] == ["0", "1", "2", "3"]
