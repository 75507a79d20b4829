"""A real Hive Metastore 4.0.1 over Derby; its sources are in the folder ``hms``.

The server lives as long as its object, at most as long as the process that started it.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import hive_jars
from hive_jars import UnavailableError, built, javac, maven
from hive_reader import SOURCES as READER
from java_program import JavaProgram

__all__ = ["HiveMetastoreServer", "UnavailableError"]

SOURCES = Path(__file__).with_name("hms")
SCHEMA = "hive-schema-4.0.0.derby.sql"
OPENS = [line for line in (READER / "jvm.options").read_text().splitlines() if "-opens" in line]


class HiveMetastoreServer(JavaProgram):
    """A running server.

    Attributes:
        main: The program.
        memory: How much memory the JVM may use.
        defaults: Settings of all servers of a version.

    Args:
        work: An empty directory; no name on its path may begin with ``.`` or ``_``. A second server
            in the same directory has the first one's database.
        warehouse: The directory of its tables. None: a directory in ``work``.
        port: 0 takes a free one.
        settings: Hive's settings that differ from ``hms/conf/metastore-site.xml``.
        options: More options of the JVM.
        before: Entries of the class path that come first.
    """

    main, memory = "hms.Server", "512m"
    defaults: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        work: Path,
        *,
        warehouse: Path | None = None,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        before: Sequence[Path] = (),
    ) -> None:
        self.work, self.warehouse = work, warehouse or work / "warehouse"
        self.warehouse.mkdir(parents=True, exist_ok=True)
        given = {
            "hms.work": work, "hms.db": work / "db",
            "metastore.warehouse.dir": f"file://{self.warehouse}", "java.io.tmpdir": work,
            "derby.stream.error.file": work / "derby.log", "derby.system.durability": "test",
            "user.timezone": "UTC", **self.defaults, **(settings or {}),
        }  # fmt: skip
        command = [
            self.java(), *OPENS, f"-Xmx{self.memory}", "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1", *options,
            *(f"-D{key}={value}" for key, value in given.items()),
            "-cp", ":".join(map(str, [*before, *self.classpath()])),
            self.main, str(port), str(self.schema()),
        ]  # fmt: skip
        self._start(command, work / "errors")
        self.port = self._read_port()

    def java(self) -> Path:
        """The Java that runs it."""
        return javac().with_name("java")

    def schema(self) -> Path:
        """The SQL that makes its database."""
        return build() / "jars" / SCHEMA

    def classpath(self) -> list[Path]:
        """Where the JVM finds its classes."""
        return [build() / "classes", SOURCES / "conf", build() / "jars" / "*"]

    def _read_port(self) -> int:
        return int(self._read_line())

    @property
    def url(self) -> str:
        """Its address."""
        return f"thrift://127.0.0.1:{self.port}"

    def query(self, sql: str) -> list[list[str | None]]:
        """Ask the server's own database."""
        self._send(" ".join(sql.split()))
        rows = []
        for line in self._read_lines():
            if line == ".":
                return rows
            assert line[0] == "=", line
            rows.append([None if one == "NULL" else one for one in line[1:].split("\t")])


@functools.cache
def missing() -> str | None:
    """Why there can be no server here; None if there can be one."""
    try:
        import thrift  # noqa: F401
    except ImportError:
        return "no Hive Metastore for tests: pip install 'acidsql[hive]'"
    return hive_jars.missing("Hive Metastore", build)


def build() -> Path:
    """The folder with the jars and the classes."""
    return built("hive-metastore", SOURCES, functools.partial(fetch, SOURCES, SCHEMA))


def fetch(sources: Path, schema: str, directory: str) -> None:
    """Let Maven fetch a server's jars, and the SQL of its database, into ``directory``."""
    jars = Path(directory, "jars")
    maven(sources / "pom.xml", "copy", str(jars))
    unpacked = Path(directory, "schema")
    maven(sources / "schema.xml", "unpack", str(unpacked))
    (found,) = unpacked.rglob(schema)
    found.rename(jars / schema)
    shutil.rmtree(unpacked)
