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
from acidsql.costs import Costs
from acidsql.storage.files.sizes import size_text
from acidsql.storage.spark.views import query_over_views
from acidsql.storage.writing.publish import PublishedWrite

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
        costs: The fast paths that the statement took, and the work that it caused.
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
    costs: Costs = field(default=Costs(), compare=False)

    def __post_init__(self) -> None:
        # A SqlText would keep its tokens, and is no str to Spark's pickler.
        object.__setattr__(self, "statement", str(self.statement))

    @property
    def write_ids(self) -> dict[str, int]:
        """The write id of each table that changed, by ``database.table``."""
        return {
            counts.table: counts.write_id for counts in self.counts if counts.write_id is not None
        }

    def with_note(self, note: str | None) -> Receipt:
        """Return a copy of the receipt with one more note; for None, the receipt itself."""
        return self if note is None else replace(self, notes=(*self.notes, note))

    def __str__(self) -> str:
        return " · ".join(self._fact_texts())

    def _repr_html_(self) -> str:
        facts = html.escape(str(self))
        tip = html.escape(self.statement, quote=True)
        return f'<div class="acidsql-receipt" title="{tip}"><code>{facts}</code></div>'

    def _fact_texts(self) -> list[str]:
        """Return the parts of the text that a person sees of the receipt: counts (or ``done``),
        transaction, write ids, files, times, notes, and the compactor's messages. Facts that the
        receipt does not have are left out."""
        facts = [_counts_text(counts) for counts in self.counts] or ["done"]
        if self.in_block:
            plural = "s" * (self.in_block > 1)
            facts.append(f"in txn {self.txn_id}, {self.in_block} statement{plural}")
        elif self.txn_id is not None:
            facts.append(f"txn {self.txn_id}")
        facts += [f"write id {number}" for number in dict.fromkeys(self.write_ids.values())]
        if self.files:
            facts.append(f"{self.files} file{'s' * (self.files > 1)}, {size_text(self.bytes)}")
        if self.seconds:
            phases = ", ".join(f"{name} {value:.2f}" for name, value in self.seconds.items())
            facts.append(f"{sum(self.seconds.values()):.2f} s ({phases})")
        return [*facts, *self.notes, *self.compaction]


@dataclass(frozen=True, slots=True)
class ReceiptWithRows:
    """The receipt of a statement that is no query, and rows that say what it did or refused."""

    receipt: Receipt
    rows: DataFrame


@dataclass(slots=True)
class Clock:
    """Measures the seconds spent in each phase of a statement: ``with clock("say"): …``."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Add the seconds that the block takes, also if it fails, to those of the phase in
        ``seconds``, and round the sum to milliseconds."""
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[phase] = round(self.seconds.get(phase, 0.0) + spent, 3)


def receipt(
    statement: str,
    txn_id: int,
    published: Sequence[tuple[Table, PublishedWrite]],
    seconds: Mapping[str, float],
    compaction: Sequence[str] = (),
    *,
    returns_rows: bool = False,
    in_block: int = 0,
) -> Receipt:
    """Make the receipt of a statement from what it published in each table: one ``Counts`` for each
    pair in ``published``, the sums of their files and bytes, and all of their directories. The
    receipt has no notes."""
    return Receipt(
        statement,
        tuple(
            Counts(
                str(table.name),
                publication.inserted,
                publication.updated,
                publication.deleted,
                publication.write_id,
            )
            for table, publication in published
        ),
        txn_id,
        seconds,
        sum(publication.files for _, publication in published),
        sum(publication.bytes for _, publication in published),
        tuple(path for _, publication in published for path in publication.directories),
        compaction=compaction,
        returns_rows=returns_rows,
        in_block=in_block,
    )


def counts_frame(spark: SparkSession, receipt: Receipt) -> DataFrame:
    """Return the counts of a receipt, one row for each table or branch of a multi-insert, in the
    columns ``COUNT_COLUMNS``. No job runs. A person sees the receipt in the place of the rows."""
    rows = (
        (
            counts.affected,
            counts.inserted,
            counts.updated,
            counts.deleted,
            receipt.txn_id,
            counts.write_id,
        )
        for counts in receipt.counts
    )
    return with_display(bigint_frame(spark, COUNT_COLUMNS, rows), receipt)


def bigint_frame(
    spark: SparkSession, names: Iterable[str], rows: Iterable[Sequence[int | None]]
) -> DataFrame:
    """Make a DataFrame of BIGINT columns from at least one row, by one message to the JVM; no job
    runs. None is NULL."""
    values = ", ".join(f"({', '.join(map(_bigint_literal, row))})" for row in rows)
    text = f"VALUES {values} AS t({', '.join(names)})"
    with query_over_views(
        spark, text, {}
    ) as numbers:  # a new analysis by Spark gives the same rows
        return numbers


class Display(Protocol):
    """The text and HTML that a person sees in the place of a DataFrame; "" shows nothing."""

    def __str__(self) -> str: ...

    def _repr_html_(self) -> str | None: ...


# The columns of results whose rows are long texts, most of several lines: of EXPLAIN, of SHOW
# CREATE TABLE, of DESCRIBE FUNCTION and of DESCRIBE … AS JSON. Such a result has no other column.
_TEXT_COLUMNS = frozenset({"plan", "createtab_stmt", "function_desc", "json_metadata"})


def are_of_text(columns: Sequence[str]) -> bool:
    """Whether rows in these columns are a long text, which is shown as it is."""
    return len(columns) == 1 and columns[0] in _TEXT_COLUMNS


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text of several lines, or "" for a result that has nothing to show."""

    text: str = ""

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Return the text as a block in which blanks and line breaks count; "" for ""."""
        style = "text-align: left; overflow-x: auto"
        lines = html.escape(self.text)
        return f'<pre class="acidsql-text" style="{style}">{lines}</pre>' if lines else ""


@dataclass(frozen=True, slots=True)
class _SparkDisplay:
    """What a person sees of a statement of Spark's that is no query: its text, if it has one;
    nothing, if it has no columns; else what PySpark shows. Spark is asked only when it is shown."""

    frame: DataFrame
    frame_class: Any

    def _text(self) -> ShownText | None:
        """Return the text of the rows, or an empty one; None for other rows."""
        columns = self.frame.columns
        if columns and not are_of_text(columns):
            return None
        rows = self.frame.collect() if columns else []
        return ShownText("\n".join("NULL" if row[0] is None else row[0] for row in rows))

    def __str__(self) -> str:
        text = self._text()
        return str(self.frame_class.__repr__(self.frame) if text is None else text)

    def _repr_html_(self) -> str | None:
        text = self._text()
        shown: str | None = self.frame_class._repr_html_(self.frame) if text is None else None
        return shown if text is None else text._repr_html_()


def with_display(frame: DataFrame, display: Display) -> DataFrame:
    """Return the same DataFrame, changed: Python's prompt and notebooks show ``display`` in its
    place, or in that of an earlier display. Without columns, ``show`` prints it, too."""
    frame_class: Any = type(frame)
    if not _has_display(frame):
        frame.__class__ = _displaying_class(frame_class)
    frame._acidsql_shown = display  # type: ignore[attr-defined]
    return frame


def _has_display(frame: DataFrame) -> bool:
    return "_acidsql_shown" in vars(frame)


def as_spark_shows(frame: DataFrame) -> DataFrame:
    """Return the same DataFrame, the result of a statement of Spark's that is no query, changed: a
    person sees the text of EXPLAIN and the like whole, and nothing of a result without columns. A
    DataFrame that has a display keeps it."""
    if _has_display(frame):
        return frame
    return with_display(frame, _SparkDisplay(frame, type(frame)))


@cache
def _displaying_class(frame_class: Any) -> type[DataFrame]:
    """Return a subclass of a class of DataFrames, whose objects show their ``_acidsql_shown`` to a
    person. PySpark has one class of DataFrames for each kind of session."""

    def as_text(frame: Any) -> str:
        return str(frame._acidsql_shown)

    def as_html(frame: Any) -> Any:
        return frame._acidsql_shown._repr_html_()

    def show_nothing(frame: Any) -> None:
        """Show nothing in a notebook, if there is nothing to show; else let IPython go on."""
        if str(frame._acidsql_shown):
            raise NotImplementedError

    def show(frame: Any, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> None:
        """Print rows as PySpark does; without columns, what a person sees of the statement."""
        if frame.columns:
            frame_class.show(frame, n, truncate, vertical)
        elif text := str(frame._acidsql_shown):
            print(text)

    def missing_attribute(frame: Any, name: str) -> Any:
        # A DataFrame of Spark Connect takes any attribute's name for a column's. IPython shows no
        # HTML of an object that seems to have every method for which IPython asks.
        if name.startswith(("_ipython_", "_repr_")):
            raise AttributeError(name)
        return frame_class.__getattr__(frame, name)

    methods = {
        "__repr__": as_text, "_repr_html_": as_html, "_ipython_display_": show_nothing,
        "show": show, "__getattr__": missing_attribute,
    }  # fmt: skip
    return type("DataFrame", (frame_class,), methods)


def text_frame(spark: SparkSession, column: str, texts: Sequence[str]) -> DataFrame:
    """Return a DataFrame of one column of texts, as EXPLAIN returns it; a person sees the texts
    whole, one below another."""
    rows = rows_frame(spark, f"{column} string", [(text,) for text in texts])
    return with_display(rows, ShownText("\n".join(texts)))


def rows_frame(spark: SparkSession, schema: str, rows: Iterable[Sequence[Any]]) -> DataFrame:
    """Return a DataFrame of rows that the driver has, as SHOW and EXPLAIN return it. ``schema``: in
    Spark's DDL."""
    return spark.createDataFrame([tuple(row) for row in rows], schema)


def empty_frame(spark: SparkSession) -> DataFrame:
    """Return a DataFrame without rows and columns, as Spark returns it for a command; a person sees
    nothing of it."""
    return with_display(spark.range(0).select(), ShownText())


def _bigint_literal(number: int | None) -> str:
    return "CAST(NULL AS BIGINT)" if number is None else f"{number}L"


def _counts_text(counts: Counts) -> str:
    """Return counts as ``db.t: 3,000 inserted, 1 deleted``, without those that are 0; if all are:
    ``db.t: nothing changed``."""
    parts = [
        f"{number:,} {verb}"
        for number, verb in (
            (counts.inserted, "inserted"),
            (counts.updated, "updated"),
            (counts.deleted, "deleted"),
        )
        if number
    ]
    return f"{counts.table}: {', '.join(parts) or 'nothing changed'}"
