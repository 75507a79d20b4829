"""The result of a statement: counts as a DataFrame, and a receipt as text and HTML."""

from __future__ import annotations

import html
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from acidsql.acid.table import Table
from acidsql.storage.files.sizes import size
from acidsql.storage.spark.views import queried
from acidsql.storage.writing.publish import Published

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
    """The number of rows that a statement, or a branch of a multi-insert, changed in one table.

    Attributes:
        table: ``database.table``.
        inserted: The number of new rows.
        updated: The number of rows with new values.
        deleted: The number of deleted rows.
        write_id: The write id; None if nothing changed, because then nothing is published.
    """

    table: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    write_id: int | None = None

    @property
    def affected(self) -> int:
        """The number of rows that were inserted, updated or deleted."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receipt of a statement that changed something.

    Attributes:
        statement: The statement's text.
        counts: The numbers of changed rows for each table, or for each branch of a multi-insert.
        txn_id: The id of the transaction.
        seconds: The time of each phase, in order: say, hold, do, keep (see ``acidsql``).
        files: The number of files written.
        bytes: The size of these files.
        directories: The published directories, as paths below their tables.
        notes: Other facts for the user.
        compaction: Why the compactor compacts the changed tables, or why not. The compactor checks
            them after the statement, so these lines may come later.
        returns_rows: The statement has RETURNING.
        in_block: How many statements of the transaction have changed something so far, if BEGIN
            opened the transaction; else 0.
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
    returns_rows: bool = False
    in_block: int = 0

    @property
    def write_ids(self) -> dict[str, int]:
        """The write id of each table that changed."""
        return {c.table: c.write_id for c in self.counts if c.write_id is not None}

    def with_note(self, note: str | None) -> Receipt:
        """The same with one more note. None: there is none."""
        return self if note is None else replace(self, notes=(*self.notes, note))

    def __str__(self) -> str:
        return " · ".join(self._facts())

    def _repr_html_(self) -> str:
        facts = html.escape(str(self))
        tip = html.escape(self.statement, quote=True)
        return f'<div class="acidsql-receipt" title="{tip}"><code>{facts}</code></div>'

    def _facts(self) -> list[str]:
        facts = [_rows(counts) for counts in self.counts] or ["done"]
        if self.in_block:
            plural = "s" * (self.in_block > 1)
            facts.append(f"in txn {self.txn_id}, {self.in_block} statement{plural}")
        elif self.txn_id is not None:
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
    """Measures the seconds spent in each phase of a statement."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[phase] = round(self.seconds.get(phase, 0.0) + spent, 3)


def receipt(
    statement: str,
    txn_id: int,
    published: Sequence[tuple[Table, Published]],
    seconds: Mapping[str, float],
    compaction: Sequence[str] = (),
    *,
    returns: bool = False,
    in_block: int = 0,
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
        returns_rows=returns,
        in_block=in_block,
    )


def counts_frame(spark: SparkSession, receipt: Receipt) -> DataFrame:
    """One row for each table or branch, as ``Session.sql`` promises; no job runs for it."""
    rows = (
        (c.affected, c.inserted, c.updated, c.deleted, receipt.txn_id, c.write_id)
        for c in receipt.counts
    )
    return showing(numbers_frame(spark, COUNT_COLUMNS, rows), receipt)


def numbers_frame(
    spark: SparkSession, names: Iterable[str], rows: Iterable[Sequence[int | None]]
) -> DataFrame:
    """A DataFrame of rows of BIGINTs, made by one message to the JVM."""
    values = ", ".join(f"({', '.join(map(_bigint, row))})" for row in rows)
    text = f"VALUES {values} AS t({', '.join(names)})"
    with queried(spark, text, {}) as numbers:  # they are the same whenever Spark analyses them
        return numbers


class Shown(Protocol):
    """What a person sees in the place of a DataFrame."""

    def __str__(self) -> str: ...

    def _repr_html_(self) -> str: ...


def showing(frame: DataFrame, shown: Shown) -> DataFrame:
    """The same DataFrame, which Python's prompt and notebooks show as the receipt, for example."""
    kind: Any = type(frame)
    frame.__class__ = _shows(kind)
    frame._acidsql_shown = shown  # type: ignore[attr-defined]
    return frame


@cache
def _shows(kind: Any) -> type[DataFrame]:
    """A class of DataFrames like ``kind``. PySpark has one for each kind of session."""

    def text(frame: Any) -> str:
        return str(frame._acidsql_shown)

    def as_html(frame: Any) -> str:
        return str(frame._acidsql_shown._repr_html_())

    def missing(frame: Any, name: str) -> Any:
        # A DataFrame of Spark Connect takes any name for a column's. IPython shows no HTML of an
        # object that has whatever method IPython asks for.
        if name.startswith(("_ipython_", "_repr_")):
            raise AttributeError(name)
        return kind.__getattr__(frame, name)

    methods = {"__repr__": text, "_repr_html_": as_html, "__getattr__": missing}
    return type("DataFrame", (kind,), methods)


def rows_frame(spark: SparkSession, schema: str, rows: Iterable[Sequence[Any]]) -> DataFrame:
    """A DataFrame of these rows, as SHOW, DESCRIBE and EXPLAIN return them."""
    return spark.createDataFrame([tuple(row) for row in rows], schema)


def nothing(spark: SparkSession) -> DataFrame:
    """A DataFrame without rows and columns, as Spark returns it for a command."""
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
