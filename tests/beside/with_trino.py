"""acidsql, Trino and Hive in one database."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import trino_server
from both import Both
from trino_server import TrinoServer


class WithTrino:
    """Sessions of acidsql, Trino and Hive in a database of the test's own.

    Args:
        both: Sessions of acidsql and Hive in a database of the test's own.
        server: A running Trino, over Hive's metastore.
    """

    def __init__(self, both: Both, server: TrinoServer) -> None:
        self._both, self._server = both, server
        self.acid, self.hive = both.acid, both.hive
        self.trino = self.new_trino()

    def new_acid(self) -> Any:
        """One more session of acidsql."""
        return self._both.new_acid()

    def new_trino(self) -> trino_server.TrinoSession:
        """One more session of Trino."""
        return self._server.session(self._both.database)

    def directories(self, table: str) -> list[str]:
        """The names of a table's directories of files."""
        place = self._both.server.warehouse / f"{self._both.database}.db" / table
        return sorted(path.name for path in place.iterdir() if path.name[0] not in "._")

    def same_rows(self, query: str, for_trino: str | None = None) -> list[tuple[Any, ...]]:
        """The rows of a query, which must be the same for acidsql and Trino.

        Args:
            query: The query, in Spark's SQL.
            for_trino: The same in Trino's SQL, if that is another text.
        """
        ours = in_order(self.acid.sql(query).collect())
        theirs = in_order(self.trino.sql(for_trino or query))
        assert ours == theirs, f"{query}\nacidsql: {ours}\nTrino: {theirs}"
        return ours

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table, which must be the same for both; and so must their number, for which
        Trino reads no column."""
        rows = self.same_rows(f"SELECT * FROM {table}")
        assert self.same_rows(f"SELECT count(*) FROM {table}") == [(len(rows),)]
        return rows

    def rows_of_all(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table, which must be the same for acidsql, Trino and Hive."""
        rows = self.rows(table)
        theirs = in_order(self.hive.sql(f"SELECT * FROM {table}"))
        assert rows == theirs, f"acidsql and Trino: {rows}\nHive: {theirs}"
        return rows


def in_order(rows: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Rows of either side in a form and order in which they can be compared."""
    return sorted((tuple(_plain(value) for value in row) for row in rows), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)  # -0.0 is not 0.0
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dict):
        return tuple(sorted((_plain(pair) for pair in value.items()), key=repr))
    if isinstance(value, (list, tuple)):
        return tuple(_plain(part) for part in value)
    return value
