"""What a statement did, dressed for a person: counts as a DataFrame, a receipt as text and HTML."""

from __future__ import annotations

import html
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table
from acidsql.storage.publish import Published

COUNT_COLUMNS = (
    "num_affected_rows",
    "num_inserted_rows",
    "num_updated_rows",
    "num_deleted_rows",
    "txn_id",
    "write_id",
)


@dataclass(frozen=True, slots=True)
class Counts:
    """What one statement (of a multi-insert, one branch) did to one table.

    Attributes:
        table: ``database.table``.
        inserted: New rows.
        updated: Rows that have new values.
        deleted: Rows that are gone.
        write_id: None if nothing changed, and so nothing was published.
    """

    table: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    write_id: int | None = None

    @property
    def affected(self) -> int:
        """Rows inserted, updated or deleted."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the last statement that changed something did.

    Attributes:
        statement: Its text.
        counts: By table, or by branch of a multi-insert.
        txn_id: Its transaction.
        seconds: Of each phase, in order: say, hold, do, keep (see ``acidsql``).
        files: Files written.
        bytes: Their bytes.
        directories: The directories that it published, below their tables.
        notes: What a person should know besides.
        compaction: What the compactor has found out about what was written: why it compacts, or
            does not. It looks when the statement is over, so this is filled in later.
    """

    statement: str
    counts: tuple[Counts, ...] = ()
    txn_id: int | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    files: int = 0
    bytes: int = 0
    directories: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    compaction: Sequence[str] = ()

    @property
    def write_ids(self) -> dict[str, int]:
        """Write ids by table; tables that did not change are not among them."""
        return {c.table: c.write_id for c in self.counts if c.write_id is not None}

    def __str__(self) -> str:
        return " · ".join(self._facts())

    def _repr_html_(self) -> str:
        facts = html.escape(str(self))
        tip = html.escape(self.statement, quote=True)
        return f'<div class="acidsql-receipt" title="{tip}"><code>{facts}</code></div>'

    def _facts(self) -> list[str]:
        facts = [_rows(counts) for counts in self.counts] or ["done"]
        if self.txn_id is not None:
            facts.append(f"txn {self.txn_id}")
        facts += [f"write id {number}" for number in dict.fromkeys(self.write_ids.values())]
        if self.files:
            facts.append(f"{self.files} file{'s' * (self.files > 1)}, {size(self.bytes)}")
        if self.seconds:
            phases = ", ".join(f"{name} {value:.2f}" for name, value in self.seconds.items())
            facts.append(f"{sum(self.seconds.values()):.2f} s ({phases})")
        return [*facts, *self.notes, *self.compaction]


@dataclass(slots=True)
class Clock:
    """Seconds spent in each phase."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[phase] = round(self.seconds.get(phase, 0.0) + spent, 3)


class Family(Protocol):
    """Statements without events, of one kind."""

    def knows(self, statement: Any) -> bool:
        """True if it is one of these."""

    def run(self, statement: Any, text: str) -> Receipt | None:
        """Run one statement; a receipt if something changed."""


def receipt(
    statement: str,
    txn_id: int,
    published: Sequence[tuple[Table, Published]],
    seconds: Mapping[str, float],
    compaction: Sequence[str] = (),
) -> Receipt:
    """The receipt of what was published, table by table."""
    return Receipt(
        statement,
        tuple(
            Counts(str(table.name), done.inserted, done.updated, done.deleted, done.write_id)
            for table, done in published
        ),
        txn_id,
        seconds,
        sum(done.files for _, done in published),
        sum(done.bytes for _, done in published),
        tuple(path for _, done in published for path in done.directories),
        compaction=compaction,
    )


def size(number: int) -> str:
    """Bytes for a person."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def counts_frame(spark: SparkSession, receipt: Receipt) -> DataFrame:
    """One row for each table or branch, as ``Session.sql`` promises; no job runs for it."""
    rows = (
        (c.affected, c.inserted, c.updated, c.deleted, receipt.txn_id, c.write_id)
        for c in receipt.counts
    )
    values = ", ".join(f"({', '.join(map(_bigint, row))})" for row in rows)
    return spark.sql(f"VALUES {values} AS t({', '.join(COUNT_COLUMNS)})")


def rows_frame(spark: SparkSession, schema: str, rows: Iterable[Sequence[Any]]) -> DataFrame:
    """What SHOW and DESCRIBE answer."""
    return spark.createDataFrame([tuple(row) for row in rows], schema)


def nothing(spark: SparkSession) -> DataFrame:
    """No rows and no columns: Spark's answer to a command."""
    return spark.range(0).select()


def _bigint(number: int | None) -> str:
    return "CAST(NULL AS BIGINT)" if number is None else f"{number}L"


def _rows(counts: Counts) -> str:
    parts = [
        f"{number:,} {what}"
        for number, what in (
            (counts.inserted, "inserted"),
            (counts.updated, "updated"),
            (counts.deleted, "deleted"),
        )
        if number
    ]
    return f"{counts.table}: {', '.join(parts) or 'nothing changed'}"
