"""A real Hive 4.0.1 that reads tables' directories. Its sources are in the folder ``hive``.

At the first use, Maven fetches Hive's jars and javac compiles the reader. Both are kept in
``build``. Only Hive's readers run: no metastore, no server.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).with_name("hive")
BUILT = Path(__file__).resolve().parents[1] / "build" / "hive-reader"
LEAST_JDK = 17
SECONDS_TO_FETCH = 900

Columns = Iterable[tuple[str, str]]


class UnavailableError(Exception):
    """Hive's readers cannot run here; the message says what is missing."""


class HiveReader:
    """A JVM with Hive's readers.

    Args:
        scratch: An empty directory for its scratch files and its output.
    """

    def __init__(self, scratch: Path) -> None:
        javac = _javac()
        built = _built(javac)
        self._said = scratch / "said"
        with self._said.open("wb") as said:
            self._jvm = subprocess.Popen(
                [
                    javac.with_name("java"), f"@{SOURCES / 'jvm.options'}",
                    "-cp", f"{built / 'classes'}:{built / 'jars'}/*",
                    "hivereader.HiveReader", str(scratch),
                ],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, encoding="utf-8",
            )  # fmt: skip

    def rows(
        self,
        directory: str | Path,
        columns: Columns,
        partition_columns: Columns = (),
        *,
        vectorized: bool = False,
        insert_only: bool = False,
    ) -> list[tuple[tuple[int, int, int] | None, list[Any]]]:
        """Row ids and values, partition columns last, in no order."""
        listed = [
            ",".join(f"{name}:{kind}" for name, kind in some)
            for some in (columns, partition_columns)
        ]
        flags = [str(flag).lower() for flag in (vectorized, insert_only)]
        self._jvm.stdin.write("\t".join([str(directory), *listed, *flags]) + "\n")
        self._jvm.stdin.flush()
        rows = []
        for line in self._jvm.stdout:
            answer = json.loads(line)
            if "done" in answer:
                return rows
            assert "error" not in answer, answer["error"]
            row_id = answer["row__id"]
            rows.append((row_id and tuple(row_id), answer["values"]))
        raise AssertionError(f"Hive's reader ended: {self._said.read_text()[-2000:]}")

    def close(self) -> None:
        """End the JVM."""
        self._jvm.stdin.close()
        self._jvm.wait(30)
        self._jvm.stdout.close()


def _built(javac: Path) -> Path:
    """The folder with Hive's jars and the reader's classes. It is made, unless it exists for these
    sources."""
    files = sorted(file for file in SOURCES.rglob("*") if file.is_file())
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
    built = BUILT / digest[:12]
    if not built.exists():
        shutil.rmtree(BUILT, ignore_errors=True)  # a folder of older sources
        BUILT.mkdir(parents=True)
        unfinished = tempfile.mkdtemp(dir=BUILT)
        _fetch_jars(f"{unfinished}/jars")
        subprocess.run(
            [
                javac, "--release", str(LEAST_JDK), "-proc:none", "-encoding", "UTF-8",
                "-cp", f"{unfinished}/jars/*", "-d", f"{unfinished}/classes",
                *(file for file in files if file.suffix == ".java"),
            ],
            check=True,
        )  # fmt: skip
        os.rename(unfinished, built)
    return built


def _fetch_jars(directory: str) -> None:
    if shutil.which("mvn") is None:
        raise UnavailableError("Hive's jars are fetched by Maven, and there is no mvn here")
    command = ["mvn", "-B", "-f", SOURCES / "pom.xml", "dependency:copy"]
    try:
        subprocess.run(
            [*command, f"-DoutputDirectory={directory}"],
            check=True, capture_output=True, text=True, timeout=SECONDS_TO_FETCH,
        )  # fmt: skip
    except subprocess.SubprocessError as error:
        said = str(getattr(error, "stdout", None) or error)
        raise UnavailableError(f"Maven could not fetch Hive's jars: {said[-400:]}") from error


def _javac() -> Path:
    """The compiler of JAVA_HOME or of the path: a Java that runs PySpark may have no compiler."""
    for place in (f"{os.environ.get('JAVA_HOME', '')}/bin", os.environ.get("PATH")):
        javac = shutil.which("javac", path=place)
        if javac is not None and _version(javac) >= LEAST_JDK:
            return Path(javac)
    raise UnavailableError(f"Hive's reader is compiled with JDK {LEAST_JDK} or newer; none is here")


def _version(javac: str) -> int:
    said = subprocess.run([javac, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r"javac (\d+)", said.stdout + said.stderr)
    return int(version[1]) if version else 0
