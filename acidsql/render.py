"""The first rows of a DataFrame as text and as HTML: what notebooks and terminals show."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.types import BinaryType, DataType, NumericType

WIDEST_CELL = 60


@dataclass(frozen=True, slots=True)
class Rows:
    """The first rows of a query, as Spark writes their values.

    Attributes:
        frame: The DataFrame they come from, lazy and whole.
        columns: The columns' names.
        rows: The values; None is NULL.
        more: Whether there are more rows than these.
        numeric: Which columns hold numbers, to be set flush right.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: bool
    numeric: tuple[bool, ...]

    @property
    def summary(self) -> str:
        """How many rows these are."""
        number = len(self.rows)
        if self.more:
            return f"the first {number:,} rows; there are more"
        return f"{number:,} row{'s' * (number != 1)}"

    def __str__(self) -> str:
        table = [self.columns, *(tuple(map(_short, row)) for row in self.rows)]
        widths = [max(len(row[i]) for row in table) for i in range(len(self.columns))]
        lines = [self._line(row, widths) for row in table]
        rule = "  ".join("─" * width for width in widths)
        return "\n".join([lines[0], rule, *lines[1:], f"({self.summary})"])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(f"<tr>{''.join(map(_cell, row, self.numeric))}</tr>" for row in self.rows)
        return (
            f'<table class="acidsql-rows"><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
            f"</table><small>{html.escape(self.summary)}</small>"
        )

    def _line(self, row: tuple[str, ...], widths: list[int]) -> str:
        cells = zip(row, widths, self.numeric, strict=True)
        return "  ".join(
            text.rjust(width) if number else text.ljust(width) for text, width, number in cells
        ).rstrip()


def first_rows(frame: DataFrame, limit: int) -> Rows:
    """Fetch at most ``limit`` rows of a DataFrame.

    Args:
        frame: Any DataFrame, with columns of any names and types.
        limit: How many rows come to the driver at most (and one more, to know if there are more).
    """
    # Spark makes the text: it has values that Python cannot hold, such as dates before year 1.
    got = as_text(frame).limit(limit + 1).collect()
    kinds = [field.dataType for field in frame.schema.fields]
    return Rows(
        frame,
        tuple(frame.columns),
        tuple(tuple(row) for row in got[:limit]),
        len(got) > limit,
        tuple(isinstance(kind, NumericType) for kind in kinds),
    )


def as_text(frame: DataFrame) -> DataFrame:
    """All columns as strings, named c0, c1 …, because a query may name two alike."""
    names = [f"c{number}" for number in range(len(frame.columns))]
    plain = frame.toDF(*names)
    kinds = [field.dataType for field in frame.schema.fields]
    return plain.select([_text(plain[name], kind) for name, kind in zip(names, kinds, strict=True)])


def as_json(frame: DataFrame) -> DataFrame:
    """One JSON object for each row, NULLs included, in a column of strings."""
    options = {"ignoreNullFields": "false"}
    return frame.select(F.to_json(F.struct("*"), options).alias("json"))


def _text(column: Column, kind: DataType) -> Column:
    if isinstance(kind, BinaryType):
        return F.concat(F.lit("0x"), F.hex(column))
    return column.cast("string")


def _short(value: str | None) -> str:
    if value is None:
        return "NULL"
    line = " ".join(value.splitlines()) if "\n" in value else value
    return line if len(line) <= WIDEST_CELL else line[: WIDEST_CELL - 1] + "…"


def _cell(value: Any, number: bool) -> str:
    if value is None:
        return "<td><i>NULL</i></td>"
    align = ' style="text-align:right"' if number else ""
    return f"<td{align}>{html.escape(value)}</td>"
