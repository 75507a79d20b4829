"""A real Hive 4.0.1 with its SQL, its compactor and a metastore, in one JVM; its sources are in the
folder ``hive_sql``.

Hive's SQL asks the metastore by Thrift, as acidsql does.
"""

from __future__ import annotations

import functools
import json
import socket
from pathlib import Path
from typing import Any

import hive_jars
import hive_metastore
from hive_jars import built, maven

SOURCES = Path(__file__).with_name("hive_sql")
PATIENCE_S = 300


class HiveError(Exception):
    """Hive's own exception, with its trace."""


class Hive(hive_metastore.HiveMetastoreServer):
    """A running Hive. The arguments are those of ``HiveMetastoreServer``."""

    main, memory = "hivesql.Hive", "1500m"

    def classpath(self) -> list[Path]:
        programs = hive_metastore.build() / "classes"  # last: it has stand-ins for Hive's classes
        configuration = [SOURCES / "conf", hive_metastore.SOURCES / "conf"]
        return [build() / "classes", *configuration, build() / "jars" / "*", programs]

    def _read_port(self) -> int:
        self._sql_port = super()._read_port()
        return super()._read_port()

    def session(self, database: str | None = None) -> HiveSession:
        """A new session, which uses this database."""
        made = HiveSession(self._sql_port)
        if database is not None:
            made.sql(f"USE {database}")
        return made


class HiveSession:
    """A session of Hive; one thread may use it."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._answers = self._socket.makefile(encoding="utf-8")

    def sql(self, statement: str) -> list[Any]:
        """Run a statement of HiveQL, or a pass of ``!worker``, ``!cleaner``, ``!initiator`` or
        ``!housekeeper``.

        Returns:
            The rows, if there are any.

        Raises:
            HiveError: Hive refuses, or the statement fails.
        """
        self._socket.sendall(" ".join(statement.split("\n")).encode() + b"\n")
        answer = json.loads(self._answers.readline())
        if "error" in answer:
            raise HiveError(f"{statement}: {answer['error']}")
        return answer["rows"]

    def close(self) -> None:
        """End it."""
        self._answers.close()
        self._socket.close()


@functools.cache
def missing() -> str | None:
    """Why there can be no Hive here; None if there can be one."""
    return hive_metastore.missing() or hive_jars.missing("Hive", build)


def build() -> Path:
    """The folder with the jars and the classes."""
    return built("hive-sql", SOURCES, _fetch, hive_metastore.build() / "classes")


def _fetch(directory: str) -> None:
    maven(SOURCES / "pom.xml", "copy-dependencies", f"{directory}/jars")
