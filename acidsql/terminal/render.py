"""Rows as text: the first rows as a table for a person, or all rows as CSV or JSON for programs."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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

from acidsql.statements.context.result import ShownText, are_of_text

FORMS = ("table", "csv", "json", "markdown")
WIDEST_CELL = 60
_MOST_ROWS = 2**31 - 2  # Spark's LIMIT is an INT
_ALIGN_LEFT, _ALIGN_RIGHT = "text-align: left", "text-align: right"
_ON_ONE_LINE, _ON_SEVERAL = (
    "; white-space: nowrap",
    "; min-width: 40ch",
)  # else a wide table is tall
# The columns of SHOW TRANSACTIONS, LOCKS and COMPACTIONS with a time, as Hive shows it.
_MILLISECONDS = frozenset(
    {
        "startedtime", "lastheartbeattime", "last_heartbeat", "acquired_at", "enqueuetime",
        "starttime", "committime",
    }
)  # fmt: skip
_NESTED = (ArrayType, MapType, StructType, VariantType)
# Both to the microsecond. An instant has its offset from UTC, with seconds: before about 1900
# offsets need them.
_INSTANT, _WALL_CLOCK = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": _INSTANT,
    "timestampNTZFormat": _WALL_CLOCK,
}


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows of a query. The values are texts, as Spark writes them.

    Attributes:
        frame: The DataFrame of all rows; it is lazy.
        columns: The columns' names.
        rows: The values; None is NULL.
        more: Whether the DataFrame has more rows.
        numeric: For each column, whether it holds numbers, which are aligned to the right.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: bool
    numeric: tuple[bool, ...]

    @property
    def summary(self) -> str:
        """Return ``1 row``, ``1,204 rows``, or ``the first 20 rows; there are more``."""
        number = len(self.rows)
        if self.more:
            return f"the first {number:,} rows; there are more"
        return f"{number:,} row{'s' * (number != 1)}"

    @property
    def is_text(self) -> bool:
        """Whether the rows are all of the text of EXPLAIN, SHOW CREATE TABLE and the like."""
        return are_of_text(self.columns) and not self.more

    @property
    def _plan_text(self) -> str:
        return "\n".join("NULL" if row[0] is None else row[0] for row in self.rows)

    def __str__(self) -> str:
        """Return the rows as a table of text lines, its values cut to 60 characters, with the
        summary in brackets below; the text of a plan whole."""
        if self.is_text:
            return self._plan_text
        lines = _table_lines(
            self.columns, (tuple(map(_short_text, row)) for row in self.rows), self.numeric
        )
        return "\n".join([*lines, f"({self.summary})"])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the rows as an HTML table, or a plan as preformatted text."""
        if self.is_text:
            return ShownText(self._plan_text)._repr_html_()
        rows = ("".join(map(_html_cell, row, self.numeric)) for row in self.rows)
        return _table_html("acidsql-rows", self.columns, rows, self.summary, self.numeric)


_RowValues = tuple[str | None, ...]  # the values of a row


@dataclass(frozen=True, slots=True)
class FirstChanges:
    """The changes that a statement would make, old and new values side by side.

    Attributes:
        frame: The DataFrame of all changes; it is lazy.
        columns: The names of the table's columns.
        rows: The first changes: the old row and the new row, each None if there is none.
        counts: How many rows would be changed: the keys are inserted, updated and deleted.
        more: Whether there are more changes.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    rows: tuple[tuple[_RowValues | None, _RowValues | None], ...]
    counts: Mapping[str, int]
    more: bool

    @property
    def summary(self) -> str:
        """Return ``would be 2 inserted, 1 deleted``, without zeros, and how many changes are shown
        if there are more; ``nothing would change`` if all numbers are 0."""
        counts_text = ", ".join(f"{count:,} {verb}" for verb, count in self.counts.items() if count)
        shown = f"; the first {len(self.rows):,} changes are shown" if self.more else ""
        return f"would be {counts_text}{shown}" if counts_text else "nothing would change"

    def __str__(self) -> str:
        """Return the changes as a table of text lines: the kind of change, then ``old → new`` or
        the value for each column; the summary in brackets below. Without changes, the summary
        alone."""
        rows = [
            (
                _change_kind(old, new),
                *(_value_change_text(*pair) for pair in _old_and_new_values(old, new)),
            )
            for old, new in self.rows
        ]
        numeric = [False] * (len(self.columns) + 1)
        lines = _table_lines(("", *self.columns), rows, numeric) if rows else []
        return "\n".join([*lines, f"({self.summary})"])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the changes as an HTML table: a changed value has the old one struck out before
        it."""
        rows = (
            f'<td style="{_ALIGN_LEFT}">{_change_kind(old, new)}</td>'
            + f"{''.join(map(_marked_cell, _old_and_new_values(old, new)))}"
            for old, new in self.rows
        )
        return _table_html("acidsql-changes", ("", *self.columns), rows, self.summary)


def first_changes(frame: DataFrame, limit: int) -> FirstChanges:
    """Fetch at most ``limit`` changes of a preview, as texts, in the order in which Spark gives
    them, and count all of them. This runs two jobs. ``row__id`` and ``_change_type`` are not among
    the columns. An update's two images must follow one another.

    Args:
        frame: The result of ``Session.preview``.
        limit: The greatest number of changes; an update is one.
    """
    counted = {row[0]: row[1] for row in frame.groupBy("_change_type").count().collect()}
    kinds = {"inserted": "insert", "updated": "update_postimage", "deleted": "delete"}
    counts = {verb: counted.get(kind, 0) for verb, kind in kinds.items()}
    kind, last = frame.columns.index("_change_type"), len(frame.columns) - 2
    rows: list[tuple[_RowValues | None, _RowValues | None]] = []
    before: _RowValues | None = None
    # The two images of an update follow one another: both are made of one row.
    for row in as_text(frame).limit(2 * limit).collect():
        values = tuple(row[:last])
        match row[kind]:
            case "update_preimage":
                before = values
            case "update_postimage":
                rows.append((before, values))
            case "delete":
                rows.append((values, None))
            case _:
                rows.append((None, values))
    shown = tuple(rows[:limit])
    more = sum(counts.values()) > len(shown)
    return FirstChanges(frame, tuple(frame.columns[:last]), shown, counts, more)


def _old_and_new_values(
    old: _RowValues | None, new: _RowValues | None
) -> list[tuple[str | None, str | None]]:
    """Return a pair of the old and the new value for each column. Without an old row, or without a
    new one, both are the value of the row that there is."""
    if old is None or new is None:
        return [(value, value) for value in (new if old is None else old) or ()]
    return list(zip(old, new, strict=True))


def _change_kind(old: _RowValues | None, new: _RowValues | None) -> str:
    """Return ``insert``, ``delete`` or ``update``."""
    return "insert" if old is None else "delete" if new is None else "update"


def _value_change_text(old: str | None, new: str | None) -> str:
    """Return a cell of text: ``old → new``, or only the value if both are equal."""
    return _short_text(new) if old == new else f"{_short_text(old)} → {_short_text(new)}"


def _marked_cell(pair: tuple[str | None, str | None]) -> str:
    """Return an HTML cell of an old and a new value, each escaped and cut to 60 characters: both if
    they differ, the old one struck out and the new one bold; otherwise the value."""
    old, new = (html.escape(_short_text(value)) for value in pair)
    shown = new if pair[0] == pair[1] else f"<del>{old}</del> <b>{new}</b>"
    return f'<td style="{_ALIGN_LEFT}">{shown}</td>'


def _table_html(
    css_class: str,
    columns: Sequence[str],
    rows: Iterable[str],
    summary: str,
    numeric: Sequence[bool] = (),
) -> str:
    """Return a table as HTML, with the summary below. ``css_class``: that of the table.
    ``columns``: the heads, which are escaped here. ``rows``: the cells of each row, as HTML.
    ``numeric``: for each column, whether its head is aligned to the right; empty: none is."""
    sides = [_ALIGN_RIGHT if number else _ALIGN_LEFT for number in numeric] or [_ALIGN_LEFT] * len(
        columns
    )
    pairs = zip(columns, sides, strict=True)
    head = "".join(f'<th style="{side}">{html.escape(name)}</th>' for name, side in pairs)
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    return (
        f'<table class="{css_class}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
        f"</table><small>{html.escape(summary)}</small>"
    )


def _table_lines(
    head: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool]
) -> list[str]:
    """Return a table as lines of text: the heads, a rule, and the rows, in columns as wide as their
    longest cell, with two blanks between them. ``numeric``: for each column, whether it is aligned
    to the right."""
    table = [head, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        """Return the cells of a row as one line, without blanks at its end."""
        cells = zip(row, widths, numeric, strict=True)
        return "  ".join(
            text.rjust(width) if number else text.ljust(width) for text, width, number in cells
        ).rstrip()

    head_line, *row_lines = map(line, table)
    return [head_line, "  ".join("─" * width for width in widths), *row_lines]


_MARKDOWN = re.compile(r"[\\`*<>|~\[\]]|(?<![^\W_])_|_(?![^\W_])")


def markdown_text(rows: FirstRows) -> str:
    """Return rows as a table of Markdown (GitHub's), its values whole, with the summary below if
    there are more rows; the text of a plan as a block of code. NULL is ``NULL``."""
    if rows.is_text:
        return f"```\n{rows}\n```"
    sides = ("---:" if number else "---" for number in rows.numeric)
    lines = [map(_markdown_cell, rows.columns), sides]
    lines += [map(_markdown_cell, row) for row in rows.rows]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{text}\n\n*{rows.summary}*" if rows.more else text


def _markdown_cell(value: str | None) -> str:
    """Return a value as a cell of Markdown: what would be a mark has a backslash before it, and a
    line break is ``<br>``."""
    text = _MARKDOWN.sub(r"\\\g<0>", "NULL" if value is None else value)
    return "<br>".join(text.splitlines()) if "\n" in text else text


def expanded_text(rows: FirstRows, escape: Callable[[str], str]) -> str:
    """Return rows one below another: a rule with the row's number, then a line ``name | value`` for
    each column, and the summary in brackets at the end. Values are whole; the later lines of a
    value stand below its first. ``escape``: makes a text harmless for the terminal."""
    names = [escape(name) for name in rows.columns]
    width = max(map(len, names), default=0)
    lines = []
    for number, row in enumerate(rows.rows, 1):
        lines.append(f"─[ row {number} ]".ljust(width + 20, "─"))
        for name, value in zip(names, row, strict=True):
            first, *later = ("NULL" if value is None else escape(value)).split("\n")
            lines.append(f"{name.ljust(width)} | {first}".rstrip())
            lines += [f"{' ' * width} | {line}".rstrip() for line in later]
    return "\n".join([*lines, f"({rows.summary})"])


def with_times(frame: DataFrame) -> DataFrame:
    """Return the rows of SHOW TRANSACTIONS, LOCKS or COMPACTIONS with times as text, in the
    session's time zone, instead of milliseconds, lazily. The columns are found by their names.
    Other columns stay as they are."""
    columns = (field.name for field in frame.schema.fields)
    return frame.select(
        [_time_column(name) if name in _MILLISECONDS else F.col(name) for name in columns]
    )


def _time_column(name: str) -> Column:
    """Return a column of milliseconds, or texts of such, as texts ``yyyy-MM-dd HH:mm:ss``; a value
    that is no number above 0 stays as it is, as text."""
    millis = F.col(name).try_cast("bigint")
    time = F.date_format(F.timestamp_millis(millis), "yyyy-MM-dd HH:mm:ss")
    return F.when(millis > 0, time).otherwise(F.col(name).cast("string")).alias(name)


def first_rows(frame: DataFrame, limit: int) -> FirstRows:
    """Fetch the first rows of a DataFrame, at most ``limit``, as texts, in a job.

    Args:
        frame: Any DataFrame, with columns of any names and types.
        limit: The greatest number of rows. One more comes to the driver, which shows whether there
            are more.
    """
    # Spark makes the texts: it has values that Python cannot hold, such as dates before year 1.
    fetched = as_text(frame).limit(min(limit, _MOST_ROWS) + 1).collect()
    kinds = [field.dataType for field in frame.schema.fields]
    return FirstRows(
        frame,
        tuple(frame.columns),
        tuple(tuple(row) for row in fetched[:limit]),
        len(fetched) > limit,
        tuple(isinstance(kind, NumericType) for kind in kinds),
    )


def as_text(frame: DataFrame) -> DataFrame:
    """Return all columns as strings, as Spark writes them, lazily; bytes as ``0x…``. They are named
    c0, c1 …: two columns of a query may have one name."""
    plain, columns = _with_distinct_names(frame)
    return plain.select([_text_column(column, kind).alias(name) for name, column, kind in columns])


def as_csv(frame: DataFrame) -> DataFrame:
    """Return all columns as strings that can be read back, lazily. They are named c0, c1 …. Quotes
    are added by `csv_line`, not here.

    Nested values are JSON. An instant has its offset from UTC. Bytes are ``0x…``. NULL stays NULL.
    """
    plain, columns = _with_distinct_names(frame)
    return plain.select([_csv_column(column, kind).alias(name) for name, column, kind in columns])


def csv_line(values: Iterable[str | None]) -> str:
    """Return a line of CSV by RFC 4180, without a line break at its end. NULL is an empty field,
    the empty string is ``""``."""
    return ",".join(map(_csv_field, values))


def as_json(frame: DataFrame) -> DataFrame:
    """Return one JSON object for each row, NULLs included, in a column ``json`` of strings, lazily.
    Its keys are the columns' names, in order, also twice; keys of maps become strings; an instant
    has its offset from UTC."""
    plain, columns = _with_distinct_names(frame)
    parts = [
        _json_column(column, kind).alias(name)
        for name, (_, column, kind) in zip(frame.columns, columns, strict=True)
    ]
    return plain.select(F.to_json(F.struct(*parts), _JSON).alias("json"))


def _with_distinct_names(frame: DataFrame) -> tuple[DataFrame, list[tuple[str, Column, DataType]]]:
    """Return the DataFrame with its columns renamed c0, c1 …; and for each its new name, its Column
    and its type. Two columns of a query may have one name."""
    names = [f"c{number}" for number in range(len(frame.columns))]
    plain, fields = frame.toDF(*names), frame.schema.fields
    pairs = zip(names, fields, strict=True)
    return plain, [(name, plain[name], field.dataType) for name, field in pairs]


def _csv_column(column: Column, data_type: DataType) -> Column:
    """Return a column as strings: nested values as JSON, instants (TIMESTAMP) with their offset
    from UTC, bytes as ``0x…``. NULL stays NULL."""
    if isinstance(data_type, _NESTED):
        return F.to_json(_json_column(column, data_type), _JSON)
    if isinstance(data_type, TimestampType):
        return F.date_format(column, _INSTANT)
    return _text_column(column, data_type)


def _json_column(column: Column, data_type: DataType) -> Column:
    """Return the column with all keys of its maps, at any depth of values, as strings, as
    ``as_csv`` writes them: other keys would get Spark's internal form in JSON. Without such maps it
    is the column itself."""
    if not _has_non_string_keys(data_type):
        return column
    if isinstance(data_type, ArrayType):
        element = data_type.elementType
        return F.transform(column, lambda value: _json_column(value, element))
    if isinstance(data_type, StructType):
        parts = [
            _json_column(column.getField(f.name), f.dataType).alias(f.name)
            for f in data_type.fields
        ]
        return F.when(column.isNotNull(), F.struct(*parts))
    assert isinstance(data_type, MapType)
    key, item = data_type.keyType, data_type.valueType
    values = F.transform_values(column, lambda _, value: _json_column(value, item))
    return F.transform_keys(values, lambda map_key, _: _csv_column(map_key, key))


def _has_non_string_keys(data_type: DataType) -> bool:
    """Whether the type has a map whose keys are not strings, in itself, in elements, fields or
    values of maps. Keys are not looked into."""
    if isinstance(data_type, ArrayType):
        return _has_non_string_keys(data_type.elementType)
    if isinstance(data_type, StructType):
        return any(_has_non_string_keys(field.dataType) for field in data_type.fields)
    if isinstance(data_type, MapType):
        return not isinstance(data_type.keyType, StringType) or _has_non_string_keys(
            data_type.valueType
        )
    return False


def _csv_field(value: str | None) -> str:
    """Return a value as a field of CSV. It is in quotes, with quotes inside doubled, if it has a
    comma, a quote, blanks around it, or a character that is not printable. NULL is empty, the empty
    string is ``""``."""
    if value is None:
        return ""
    is_plain = value.isprintable() and value.strip() == value and not set(value) & {",", '"'}
    return value if is_plain and value else '"' + value.replace('"', '""') + '"'


def _text_column(column: Column, data_type: DataType) -> Column:
    """Return a column as strings, as Spark writes them; bytes as ``0x`` and hexadecimal digits."""
    if isinstance(data_type, BinaryType):
        return F.concat(F.lit("0x"), F.hex(column))
    return column.cast("string")


def _short_text(value: str | None) -> str:
    """Return a value on one line (line breaks become blanks), cut to 60 characters with a ``…`` at
    the end; ``NULL`` for None."""
    if value is None:
        return "NULL"
    return shorten_text(" ".join(value.splitlines()) if "\n" in value else value, WIDEST_CELL)


def shorten_text(text: str, width: int) -> str:
    """Return a text of at most ``width`` characters; if it is longer, ``…`` stands for its end."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _html_cell(value: Any, numeric: bool) -> str:
    """Return a cell of an HTML table, whose value is escaped and whole; ``NULL`` in italics for
    None. A value of at most 60 characters stays on one line. ``numeric``: it is aligned to the
    right."""
    if value is None:
        return f'<td style="{_ALIGN_RIGHT if numeric else _ALIGN_LEFT}"><i>NULL</i></td>'
    breaks = _ON_ONE_LINE if len(value) <= WIDEST_CELL else _ON_SEVERAL
    return (
        f'<td style="{_ALIGN_RIGHT if numeric else _ALIGN_LEFT}{breaks}">{html.escape(value)}</td>'
    )
