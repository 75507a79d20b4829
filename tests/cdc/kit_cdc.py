"""Records of changes, and the table that they must give, as plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st

from acidsql.storage.reading.events import point_search

COLUMNS = "id INT, v STRING, p STRING, ts INT, batch INT, op STRING"


@dataclass(frozen=True)
class Change:
    """One record. Its order value is (``ts``, ``batch``)."""

    id: int | None
    v: str | None
    ts: int | None
    batch: int | None = 0
    p: str | None = "x"
    op: str | None = "u"

    @property
    def row(self) -> tuple[Any, ...]:
        """Its values, in the order of ``COLUMNS``."""
        return (self.id, self.v, self.p, self.ts, self.batch, self.op)


@dataclass
class Model:
    """What the records give: each key's newest order value, and the row of each live key.

    ``floor`` is the order value of the newest truncation. ``came`` tells the day of each record in
    ``newest``; records come at ``day``.
    """

    floor: tuple[int, int] | None = None
    newest: dict[int, tuple[int, int]] = field(default_factory=dict)
    rows: dict[int, tuple[str | None, str | None]] = field(default_factory=dict)
    came: dict[int, int] = field(default_factory=dict)
    day: int = 0

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply records, one after another, in any order."""
        for one in changes:
            order = (one.ts, one.batch)
            if self.floor is not None and order <= self.floor:
                continue
            if one.op == "t":
                self.floor = order
                self.newest = {key: at for key, at in self.newest.items() if at > order}
                self.rows = {key: row for key, row in self.rows.items() if key in self.newest}
                continue
            if one.id in self.newest and order <= self.newest[one.id]:
                continue
            self.newest[one.id], self.came[one.id] = order, self.day
            self.rows.pop(one.id, None)
            if one.op != "d":
                self.rows[one.id] = (one.v, one.p)

    def forget(self, days: int) -> None:
        """Forget the deleted keys whose records came more than so many days ago."""
        for key in self.newest.keys() - self.rows.keys():
            if self.came[key] < self.day - days:
                del self.newest[key]


class Calendar:
    """Stands in for ``datetime`` where state tables note the time. It is noon of ``day``."""

    day = 0

    def now(self, _: object) -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(days=self.day)


# After how many days deletes are forgotten, and how many days after the one before a batch comes.
retentions = st.sampled_from([None, 2])
days = st.lists(st.integers(0, 2), min_size=4, max_size=4)


def keep_deletes(acid: Any, retention: int | None, table: str = "t") -> None:
    """Let a table keep deletes for so many days. None: for ever."""
    if retention is not None:
        kept = f"'acidsql.cdc.tombstone.retention' = '{retention}d'"
        acid.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({kept})")


def put(acid: Any, name: str, changes: Iterable[Change]) -> None:
    """A temporary view with these records."""
    rows = [one.row for one in changes]
    acid.spark.createDataFrame(rows, COLUMNS).createOrReplaceTempView(name)


def live(acid: Any, table: str = "t") -> dict[int, tuple[str | None, str | None]]:
    """The rows of a table, by key."""
    found = acid.sql(f"SELECT id, v, p FROM {table}").collect()
    assert len({row.id for row in found}) == len(found), "a key came twice"
    return {row.id: (row.v, row.p) for row in found}


def deleted(acid: Any, table: str = "t") -> set[int]:
    """The deleted keys that the state table knows."""
    state = f"{table}__acidsql_cdc"
    found = acid.sql(f"SELECT id FROM {state} WHERE deleted AND id IS NOT NULL").collect()
    return {row.id for row in found}


@contextmanager
def one_way(acid: Any, number: int) -> Iterator[None]:
    """Apply records in one of the ways, which must give the same: all by jobs; few records in the
    driver, which also finds the rows of their keys; or these rows by a scan."""
    acid.sql(f"SET acidsql.driver.max.rows = {1000 if number % 3 else 0}")
    with pytest.MonkeyPatch.context() as patch:
        if number % 3 == 2:
            patch.setattr(point_search, "BYTES_MAX", -1)
        yield
    acid.sql("RESET acidsql.driver.max.rows")
