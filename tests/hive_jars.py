"""Hive, Trino, Kafka and S3A from their Maven artifacts, and small programs of our own over them.

Maven fetches the jars and javac compiles the programs when they are first asked for; both stay in
``build``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from made_once import BUILD, made_once

LEAST_JDK = 17
SECONDS_TO_FETCH = 900


class UnavailableError(Exception):
    """Hive, Trino, Kafka or S3A cannot be had here; the message says what is missing."""


def built(
    name: str, sources: Path, fetch: Callable[[str], None], *needed: Path, jdk: int = LEAST_JDK
) -> Path:
    """The folder with the jars and the classes, made unless these sources have one.

    Args:
        name: The folder's name in ``build``.
        sources: A folder with Java's sources and all that the result is made from.
        fetch: Fetches the jars into the directory ``jars`` of the directory it is given.
        needed: Folders with more classes that the sources need.
        jdk: The oldest JDK whose compiler reads the jars; the classes need a Java of this version.
    """
    files = sorted(file for file in sources.rglob("*") if file.is_file())
    programs = [file for file in files if file.suffix == ".java"]
    compiler = javac(jdk) if programs else None
    parts = [*(file.read_bytes() for file in files), *(str(one).encode() for one in needed)]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
    place = BUILD / name / digest[:12]

    def make() -> Path:
        shutil.rmtree(BUILD / name, ignore_errors=True)  # of other sources
        (BUILD / name).mkdir()
        unfinished = tempfile.mkdtemp(dir=BUILD / name)
        fetch(unfinished)
        if compiler is not None:
            subprocess.run(
                [
                    compiler, "--release", str(jdk), "-proc:none", "-encoding", "UTF-8",
                    "-cp", ":".join([f"{unfinished}/jars/*", *map(str, needed)]),
                    "-d", f"{unfinished}/classes", *programs,
                ],
                check=True,
            )  # fmt: skip
        return Path(unfinished)

    return made_once(place, make)


def missing(what: str, build: Callable[[], object]) -> str | None:
    """Why this cannot be had here, as the message of a skipped test; None if it can."""
    try:
        build()
    except UnavailableError as error:
        return f"no {what} for tests: {error}"
    return None


def maven(pom: Path, goal: str, directory: str) -> None:
    """Let Maven run a goal of its dependency plug-in, with this output directory."""
    if shutil.which("mvn") is None:
        raise UnavailableError("the jars are fetched by Maven, and there is no mvn here")
    command = ["mvn", "-B", "-f", pom, f"dependency:{goal}", f"-DoutputDirectory={directory}"]
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=SECONDS_TO_FETCH
        )
    except subprocess.SubprocessError as error:
        said = str(getattr(error, "stdout", None) or error)
        raise UnavailableError(f"Maven could not fetch the jars: {said[-400:]}") from error


def javac(least: int = LEAST_JDK) -> Path:
    """JAVA_HOME's compiler, or the path's, or an installed one: a Java that runs PySpark need not
    have one.

    Args:
        least: The oldest JDK that will do.
    """
    homes = [os.environ.get("JAVA_HOME", ""), *sorted(map(str, Path("/usr/lib/jvm").glob("*")))]
    own, *installed = (f"{home}/bin" for home in homes)
    for place in (own, os.environ.get("PATH"), *installed):
        found = shutil.which("javac", path=place)
        if found is not None and _version(found) >= least:
            return Path(found)
    raise UnavailableError(f"programs over the jars need JDK {least} or newer, and none is here")


def _version(compiler: str) -> int:
    said = subprocess.run([compiler, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r"javac (\d+)", said.stdout + said.stderr)
    return int(version[1]) if version else 0
