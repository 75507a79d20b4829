"""Programs under ``spark-submit``, and clusters that run them."""

from __future__ import annotations

import os
import socket
import subprocess
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy
import pyarrow
import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
SECONDS_TO_RUN = 400
# Two hosts on one machine: Spark runs no second attempt of a task on the host of the first one.
HOSTS = ["127.0.0.2", "127.0.0.3"]


def spark_submit(
    program: Path,
    *arguments: object,
    master: str,
    mode: str = "client",
    conf: Mapping[str, str],
    environment: Mapping[str, str],
) -> subprocess.CompletedProcess[str]:
    """Run a Python program by ``spark-submit``, and wait for its end.

    Args:
        program: The program.
        arguments: Its arguments.
        master: Spark's master.
        mode: ``client`` runs the driver in a process that this one starts, ``cluster`` in one that
            the cluster starts.
        conf: Settings of Spark.
        environment: What this process's environment lacks, such as ``JAVA_HOME``.
    """
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", **conf}
    return subprocess.run(
        [
            SPARK_HOME / "bin" / "spark-submit",
            "--master", master, "--deploy-mode", mode,
            *(word for setting in settings.items() for word in ("--conf", "=".join(setting))),
            program, *map(str, arguments),
        ],
        env={**os.environ, "SPARK_HOME": os.fspath(SPARK_HOME), **environment},
        capture_output=True, text=True, timeout=SECONDS_TO_RUN, check=False,
    )  # fmt: skip


def bare_python(directory: Path) -> Path:
    """Make a Python in a directory that has pyarrow and numpy, and nothing else: no acidsql, and no
    client for HDFS. Returns the program.
    """
    venv.create(directory, symlinks=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    for module in (pyarrow, numpy):
        package = Path(module.__file__).parent
        for folder in (package, package.with_name(f"{package.name}.libs")):
            if folder.is_dir():
                (packages / folder.name).symlink_to(folder)
    return directory / "bin" / "python"


@contextmanager
def standalone_cluster(directory: str | Path) -> Iterator[str]:
    """Start Spark's own cluster, with an executor on each of two addresses of this machine.

    Yields:
        The URL of the master.
    """
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
            [SPARK_HOME / "bin" / "spark-class", *command, "--webui-port", "0"],
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
