"""A real Hive 4.0.1 that reads tables' directories. Its sources are in the folder ``hive``.

Only Hive's readers run: no metastore, no server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hive_jars import UnavailableError, built, javac, maven
from java_program import JavaProgram

__all__ = ["HiveReader", "UnavailableError"]

SOURCES = Path(__file__).with_name("hive")

Columns = Iterable[tuple[str, str]]


class HiveReader(JavaProgram):
    """A JVM with Hive's readers.

    Args:
        scratch: An empty directory for its scratch files and its output.
    """

    def __init__(self, scratch: Path) -> None:
        place = built("hive-reader", SOURCES, _fetch)
        command = [
            javac().with_name("java"), f"@{SOURCES / 'jvm.options'}",
            "-cp", f"{place / 'classes'}:{place / 'jars'}/*",
            "hivereader.HiveReader", str(scratch),
        ]  # fmt: skip
        self._start(command, scratch / "errors")

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
        self._send("\t".join([str(directory), *listed, *flags]))
        rows = []
        for line in self._read_lines():
            answer = json.loads(line)
            if "done" in answer:
                return rows
            assert "error" not in answer, answer["error"]
            row_id = answer["row__id"]
            rows.append((row_id and tuple(row_id), answer["values"]))


def _fetch(directory: str) -> None:
    maven(SOURCES / "pom.xml", "copy", f"{directory}/jars")
