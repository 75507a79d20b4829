"""A real Hive 4.0.1 that reads tables' directories. Its sources are in the folder ``hive``.

Only Hive's readers run: no metastore, no server.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hive_jars import UnavailableError, built, javac, maven

__all__ = ["HiveReader", "UnavailableError"]

SOURCES = Path(__file__).with_name("hive")

Columns = Iterable[tuple[str, str]]


class HiveReader:
    """A JVM with Hive's readers.

    Args:
        scratch: An empty directory for its scratch files and its output.
    """

    def __init__(self, scratch: Path) -> None:
        place = built("hive-reader", SOURCES, _fetch)
        self._said = scratch / "said"
        with self._said.open("wb") as said:
            self._jvm = subprocess.Popen(
                [
                    javac().with_name("java"), f"@{SOURCES / 'jvm.options'}",
                    "-cp", f"{place / 'classes'}:{place / 'jars'}/*",
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


def _fetch(directory: str) -> None:
    maven(SOURCES / "pom.xml", "copy", f"{directory}/jars")
