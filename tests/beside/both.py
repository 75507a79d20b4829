"""acidsql and Hive, side by side in one database.

Tests marked ``LONG`` run only with ``ACIDSQL_HIVE_TURNS=n`` (see ``test_hive_turns.py``).
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

import acidsql

IS_LONG = bool(os.environ.get("ACIDSQL_HIVE_TURNS"))
LONG = pytest.mark.skipif(not IS_LONG, reason="long: say ACIDSQL_HIVE_TURNS=4")


class Both:
    """Sessions of acidsql and of Hive in a database of the test's own.

    Args:
        spark: The Spark session.
        server: A running Hive, which has a metastore.
        database: The database's name; it is made.
    """

    def __init__(self, spark: Any, server: Any, database: str) -> None:
        self._spark, self.server, self.database = spark, server, database
        self._opened: list[Any] = []
        self.said: list[str] = []
        server.session().sql(f"CREATE DATABASE {database}")
        self.acid, self.hive = self.new_acid(), self.new_hive()

    def new_acid(self, **settings: str) -> Any:
        """One more session of acidsql."""
        self._opened.append(
            acidsql.connect(self._spark, metastore=self.server.url, settings=settings)
        )
        self._opened[-1].sql(f"USE {self.database}")
        return self._opened[-1]

    def new_hive(self) -> Any:
        """One more session of Hive."""
        self._opened.append(self.server.session(self.database))
        return self._opened[-1]

    def run(self, who: str, statement: str) -> None:
        """Let ``acidsql`` or ``hive`` run a statement."""
        self.said.append(f"{who}: {statement}")
        if who == "hive":
            self.hive.sql(statement)
        else:
            self.acid.sql(statement)

    def compact_by_hive(self, what: str, kind: str) -> None:
        """Let Hive's own worker compact a table, or a partition: ``t``, ``t PARTITION (p = 1)``."""
        self.run("hive", f"ALTER TABLE {what} COMPACT '{kind}'")
        self.run("hive", "!worker")

    def close(self) -> None:
        """Close all sessions, and drop the database."""
        self._spark.catalog.setCurrentDatabase("default")
        for one in self._opened:
            one.close()
        self.server.session().sql(f"DROP DATABASE {self.database} CASCADE")

    # ── what both see ────────────────────────────────────────────────────────────────────────

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """The rows, which must be the same for both; and so must their number, which Hive may take
        from statistics."""
        ours = _sorted(map(tuple, self.acid.sql(f"SELECT * FROM {table}").collect()))
        theirs = _sorted(map(tuple, self.hive.sql(f"SELECT * FROM {table}")))
        self._same(ours, theirs)
        ((counted,),) = self.acid.sql(f"SELECT count(*) FROM {table}").collect()
        self._same([counted], self.hive.sql(f"SELECT count(*) FROM {table}")[0])
        assert counted == len(ours)
        return ours

    def rows_with_ids(self, table: str) -> list[tuple[Any, ...]]:
        """The rows with their ids, which must be the same for both."""
        query = f"SELECT row__id, * FROM {table}"
        ours = _sorted((tuple(one[0]), *tuple(one)[1:]) for one in self.acid.sql(query).collect())
        theirs = _sorted((_row_id(one[0]), *one[1:]) for one in self.hive.sql(query))
        self._same(ours, theirs)
        return ours

    def _same(self, ours: list[Any], theirs: list[Any]) -> None:
        said = "\n".join(self.said)
        assert ours == theirs, f"acidsql: {ours}\nHive: {theirs}\nafter\n{said}"


def _row_id(text: str) -> tuple[int, int, int]:
    found = json.loads(text)
    return found["writeid"], found["bucketid"], found["rowid"]


def _sorted(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)
