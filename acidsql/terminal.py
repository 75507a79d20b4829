"""Shows the results of statements in a terminal, or writes them for programs."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table
from rich.text import Text

from acidsql.progress import shown
from acidsql.render import Rows, as_csv, as_json, csv_line, first_rows
from acidsql.session import Session

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WIDEST = 10_000  # columns of a text that is not folded


def run(
    session: Session,
    text: str,
    args: Mapping[str, Any] | None = None,
    *,
    form: str = "table",
    limit: int,
    paged: bool = False,
) -> None:
    """Run a statement and show its receipt and its rows.

    Args:
        session: The session.
        text: The statement.
        args: Values of its parameters.
        form: ``table``, ``csv`` or ``json``. With the last two, receipts go to standard error.
        limit: The greatest number of rows that a table shows.
        paged: Show a table that is larger than the terminal in a pager.
    """
    before = session.last
    with progress(session, text):
        frame = session.sql(text, args)
        receipt = None if session.last is before else session.last
        has_rows = receipt.returns_rows if receipt else bool(frame.columns)
        rows = first_rows(frame, limit) if has_rows and form == "table" else None
    if receipt is not None:
        print(receipt, file=sys.stdout if form == "table" else sys.stderr)
    if rows is not None:
        _print_table(rows, paged)
    elif has_rows:
        _write_frame(frame, form)


@contextmanager
def progress(session: Session, text: str) -> Iterator[None]:
    """Show what a statement does while it runs; nothing if standard error is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    status = console.status("")

    def show(line: str | None) -> None:
        if line is None:
            status.stop()
        else:
            status.update(Text(line, style="dim"))
            status.start()

    with shown(session, text, show):
        yield


def print_frame(frame: DataFrame, *, form: str = "table", limit: int) -> None:
    """Show a DataFrame; see ``run``."""
    if form == "table":
        _print_table(first_rows(frame, limit), paged=False)
    else:
        _write_frame(frame, form)


def _write_frame(frame: DataFrame, form: str) -> None:
    if form == "csv":
        _write(map(csv_line, [frame.columns]))
        _write(map(csv_line, as_csv(frame).toLocalIterator()))
    else:
        _write(row[0] for row in as_json(frame).toLocalIterator())


def print_error(text: str) -> None:
    """Show an error, in red, on standard error."""
    Console(stderr=True, soft_wrap=True).print(Text(text, style="red"))


def print_rows(columns: Iterable[str], rows: Sequence[tuple[str, ...]]) -> None:
    """Show a table of texts; nothing if there are no rows."""
    if not rows:
        return
    table = Table()
    for name in columns:
        table.add_column(_plain(name), overflow="fold")
    for row in rows:
        table.add_row(*map(_plain, row))
    _console().print(table)


def _print_table(rows: Rows, paged: bool) -> None:
    if rows.is_text:
        print(rows)
        return
    table = Table()
    for name, number in zip(rows.columns, rows.numeric, strict=True):
        table.add_column(_plain(name), justify="right" if number else "left", overflow="fold")
    for row in rows.rows:
        table.add_row(*(Text("NULL", style="dim") if v is None else _plain(v) for v in row))
    console, summary = _console(), Text(rows.summary, style="dim italic")
    if paged and not _fits(table, console):
        # The pager gets lines that are not folded; it scrolls sideways.
        with console.pager():
            console.print(table, summary, width=_WIDEST, crop=False, no_wrap=True)
    else:
        console.print(table, summary)


def _plain(text: str) -> Text:
    """A text that gives the terminal no commands: control characters are shown as escapes."""
    return Text(_CONTROL.sub(lambda found: repr(found[0])[1:-1], text))


def _fits(table: Table, console: Console) -> bool:
    """Whether a table is neither wider nor longer than the terminal."""
    wide = Console(file=io.StringIO(), width=_WIDEST)
    wide.print(table)
    lines = wide.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return len(lines) < console.height and max(map(len, lines)) <= console.width


def _console() -> Console:
    # Lines in a pipe stay whole: rich would fold them to 80 columns.
    return Console(width=None if sys.stdout.isatty() else _WIDEST)


def _write(lines: Iterable[str]) -> None:
    """Write lines for programs: in UTF-8, whatever the locale."""
    sys.stdout.flush()
    for line in lines:
        sys.stdout.buffer.write(line.encode() + b"\n")
    sys.stdout.buffer.flush()
