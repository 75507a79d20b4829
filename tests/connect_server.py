"""A server of Spark Connect in a process of its own: one process has one kind of session.

Its Python workers have no acidsql of their own.
"""

from __future__ import annotations

import os
import site
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# As start-connect-server.sh starts one.
CONF = (
    "spark.plugins=org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.sql.artifact.isolation.enabled=true",
    "spark.sql.artifact.isolation.alwaysApplyClassloader=true",
)
# Without the module site, Python does not read the .pth files, and so does not find this project.
WORKER = """#!/bin/sh
PYTHONPATH="$PYTHONPATH:{packages}" exec {python} -S "$@"
"""


class ConnectServer:
    """A running server. ``url`` is for ``SparkSession.builder.remote``.

    ``hadoop``: Hadoop's settings.
    """

    def __init__(self, directory: Path, hadoop: Mapping[str, str] | None = None) -> None:
        python = directory / "python"
        python.write_text(
            WORKER.format(packages=":".join(site.getsitepackages()), python=sys.executable)
        )
        python.chmod(0o755)
        with socket.create_server(("localhost", 0)) as free:
            port = free.getsockname()[1]
        own = (f"spark.hadoop.{name}={value}" for name, value in (hadoop or {}).items())
        confs = [*CONF, f"spark.connect.grpc.binding.port={port}", *own]
        options = " ".join([*(f"--conf {conf}" for conf in confs), "pyspark-shell"])
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(directory), str(python)],
            # Python looks for modules in its current directory and in PYTHONPATH first.
            cwd=directory, env={**os.environ, "PYSPARK_SUBMIT_ARGS": options, "PYTHONPATH": ""},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        if ready != "ready\n":
            self._process.kill()
            raise RuntimeError("The server of Spark Connect did not start.")
        self.url = f"sc://localhost:{port}"

    def close(self) -> None:
        """End the server."""
        self._process.communicate()  # closes its standard input
        assert self._process.returncode == 0


def serve(directory: str, python: str) -> None:
    """Serve until the standard input ends."""
    import s3a_jars
    from small_spark import small_spark

    spark: Any = small_spark(
        f"{directory}/spark",
        threads=2,
        memory="2g",
        java_options="-Duser.timezone=UTC",
        python=python,
        class_path=s3a_jars.class_path(),
    )
    print("ready", flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    serve(*sys.argv[1:])
