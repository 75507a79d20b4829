"""A real Trino 483 over a Hive Metastore; its sources are in the folder ``trino``.

It needs Java 25. The server lives as long as its object, at most as long as the process that
started it.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hive_jars
from hive_jars import built, javac, maven
from java_program import JavaProgram

SOURCES = Path(__file__).with_name("trino")
JAVA = 25
# With several writers, two of them make one file of a table that has buckets.
ONE_WRITER = {"task_min_writer_count": "1", "task_max_writer_count": "1", "task_concurrency": "1"}


class TrinoServer(JavaProgram):
    """A running coordinator. Its catalog ``hive`` has the metastore's tables.

    Args:
        work: An empty directory.
        metastore: The address of a Hive Metastore.
        settings: Settings of the catalog.
    """

    def __init__(self, work: Path, metastore: str, **settings: str) -> None:
        command = [
            javac(JAVA).with_name("java"), "-Xmx1400m", "-XX:+UseSerialGC",
            "-Duser.timezone=UTC", "--add-modules", "jdk.incubator.vector",
            "--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow",
            "-cp", f"{build() / 'classes'}:{build() / 'jars'}/*",  # ours before Trino's
            "trinobeside.Server", work, metastore,
            *(f"{name}={value}" for name, value in settings.items()),
        ]  # fmt: skip
        self._start(command, work / "errors")
        self._address = urlsplit(self._read_line().strip())

    def session(self, database: str) -> TrinoSession:
        """A new session, which uses this database."""
        return TrinoSession(self._address.hostname, self._address.port, database)


class TrinoSession:
    """A session of Trino; each statement is a transaction of its own."""

    def __init__(self, host: str, port: int, database: str) -> None:
        import trino

        self._connection = trino.dbapi.connect(
            host=host, port=port, user="ann", catalog="hive", schema=database,
            session_properties=ONE_WRITER,
        )  # fmt: skip

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows.

        Raises:
            trino.exceptions.TrinoQueryError: Trino refuses, or the statement fails.
        """
        cursor = self._connection.cursor()
        cursor.execute(statement)
        return [tuple(row) for row in cursor.fetchall()]

    def close(self) -> None:
        """End it."""
        self._connection.close()


@functools.cache
def missing() -> str | None:
    """Why there can be no Trino here; None if there can be one."""
    try:
        import trino  # noqa: F401
    except ImportError:
        return "no Trino for tests: its client is missing; `make test-trino` installs it"
    return hive_jars.missing("Trino", build)


def build() -> Path:
    """The folder with the jars and the classes."""
    return built("trino", SOURCES, _fetch, jdk=JAVA)


def _fetch(directory: str) -> None:
    maven(SOURCES / "pom.xml", "copy-dependencies", f"{directory}/jars")
