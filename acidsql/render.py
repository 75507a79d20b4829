"""Rows as text: for a person who looks at the first of them, and for programs that read all."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    NumericType,
    StringType,
    StructType,
    TimestampType,
    VariantType,
)

WIDEST_CELL = 60
_NESTED = (ArrayType, MapType, StructType, VariantType)
# To the microsecond; of an instant the offset from UTC, whose seconds matter before about 1900.
_INSTANT, _WALL_CLOCK = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": _INSTANT,
    "timestampNTZFormat": _WALL_CLOCK,
}


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
    plain, columns = _numbered(frame)
    return plain.select([_text(column, kind).alias(name) for name, column, kind in columns])


def as_csv(frame: DataFrame) -> DataFrame:
    """The same, each value in a form that can be read back.

    What is nested is JSON; an instant has its offset from UTC.
    """
    plain, columns = _numbered(frame)
    return plain.select([_exact(column, kind).alias(name) for name, column, kind in columns])


def csv_line(values: Iterable[str | None]) -> str:
    """A line of CSV as RFC 4180 has it; NULL is nothing, the empty string is ``""``."""
    return ",".join(map(_csv_field, values))


def as_json(frame: DataFrame) -> DataFrame:
    """One JSON object for each row, NULLs included, in a column of strings."""
    plain, columns = _numbered(frame)
    parts = [
        _for_json(column, kind).alias(name)
        for name, (_, column, kind) in zip(frame.columns, columns, strict=True)
    ]
    return plain.select(F.to_json(F.struct(*parts), _JSON).alias("json"))


def _numbered(frame: DataFrame) -> tuple[DataFrame, list[tuple[str, Column, DataType]]]:
    names = [f"c{number}" for number in range(len(frame.columns))]
    plain, fields = frame.toDF(*names), frame.schema.fields
    pairs = zip(names, fields, strict=True)
    return plain, [(name, plain[name], field.dataType) for name, field in pairs]


def _exact(column: Column, kind: DataType) -> Column:
    if isinstance(kind, _NESTED):
        return F.to_json(_for_json(column, kind), _JSON)
    if isinstance(kind, TimestampType):
        return F.date_format(column, _INSTANT)
    return _text(column, kind)


def _for_json(column: Column, kind: DataType) -> Column:
    """The same where all keys of maps are strings: of others JSON shows what Spark has inside."""
    if not _has_other_keys(kind):
        return column
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.transform(column, lambda value: _for_json(value, element))
    if isinstance(kind, StructType):
        parts = [_for_json(column.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
        return F.when(column.isNotNull(), F.struct(*parts))
    assert isinstance(kind, MapType)
    key, item = kind.keyType, kind.valueType
    values = F.transform_values(column, lambda _, value: _for_json(value, item))
    return F.transform_keys(values, lambda own, _: _exact(own, key))


def _has_other_keys(kind: DataType) -> bool:
    """Whether there is a map in it whose keys are no strings."""
    if isinstance(kind, ArrayType):
        return _has_other_keys(kind.elementType)
    if isinstance(kind, StructType):
        return any(_has_other_keys(field.dataType) for field in kind.fields)
    if isinstance(kind, MapType):
        return not isinstance(kind.keyType, StringType) or _has_other_keys(kind.valueType)
    return False


def _csv_field(value: str | None) -> str:
    if value is None:
        return ""
    is_plain = value.isprintable() and value.strip() == value and not set(value) & {",", '"'}
    return value if is_plain and value else '"' + value.replace('"', '""') + '"'


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
