"""A real Kafka: one broker in KRaft mode, from Maven artifacts. Its sources are in ``kafka``.

The broker lives as long as its object, at most as long as the process that started it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

import hive_jars
from hive_jars import built, javac, maven
from java_program import JavaProgram

SOURCES = Path(__file__).with_name("kafka")


class KafkaBroker(JavaProgram):
    """A running broker. Topics are made when they are first written to, with two partitions.

    Args:
        work: An empty directory.
    """

    def __init__(self, work: Path) -> None:
        place = build()
        command = [
            javac().with_name("java"), "-Xmx256m", "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1", "-cp", f"{place / 'classes'}:{place / 'jars'}/*",
            "kafkabroker.Broker", str(work / "log"),
        ]  # fmt: skip
        self._start(command, work / "errors")
        self.address = f"127.0.0.1:{self._read_line()}"

    def send(self, topic: str, records: Iterable[tuple[str, str | None]]) -> None:
        """Send keys with values, and wait until they are stored. None: a tombstone."""
        for key, value in records:
            parts = [topic, key] if value is None else [topic, key, value]
            self._send("\t".join(parts))
        self._send("")
        assert self._read_line() == "."


@functools.cache
def missing() -> str | None:
    """Why there can be no broker here; None if there can be one."""
    return hive_jars.missing("Kafka", build)


def spark_jars() -> list[Path]:
    """The jars of Spark's connector for Kafka."""
    return sorted((build() / "spark").glob("*.jar"))


def build() -> Path:
    """The folder with the jars and the classes."""
    return built("kafka-broker", SOURCES, _fetch)


def _fetch(directory: str) -> None:
    maven(SOURCES / "pom.xml", "copy", f"{directory}/jars")
    maven(SOURCES / "spark.xml", "copy", f"{directory}/spark")
