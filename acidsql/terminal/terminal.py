"""Shows the results of statements in a terminal, or writes them for programs."""

from __future__ import annotations

import io
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from pyspark.sql import DataFrame
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from acidsql.api.session import Session
from acidsql.terminal.progress import show_progress
from acidsql.terminal.render import (
    FirstRows,
    as_csv,
    as_json,
    csv_line,
    expanded_text,
    first_rows,
    markdown_text,
    shorten_text,
)
from acidsql.terminal.top import Mark, Section

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STYLES = {Mark.PLAIN: "", Mark.WAITS: "yellow", Mark.WORKS: "green", Mark.FAILED: "red"}
_SHARE = 8  # of the width: no column of `top` but the last one gets more
_WIDEST = 10_000  # columns of a text that is not folded


@dataclass(frozen=True, slots=True)
class Output:
    """How the rows of queries are written, and where.

    Attributes:
        form: ``table``, ``csv``, ``json`` or ``markdown``.
        limit: The greatest number of rows of a table, also in Markdown; csv and json give all.
        is_expanded: With ``table``: each row is a table of its own, with a line for each column.
        is_paged: A table that is higher or wider than the terminal is shown in a pager.
        file: The file that gets the rows, in UTF-8; None: standard output.
    """

    form: str = "table"
    limit: int = 100
    is_expanded: bool = False
    is_paged: bool = False
    file: BinaryIO | None = None

    @property
    def is_for_programs(self) -> bool:
        """Whether standard output is to have nothing but rows, which a program reads."""
        return self.form in ("csv", "json") and self.file is None


def run(
    session: Session, text: str, args: Mapping[str, Any] | None = None, *, output: Output
) -> None:
    """Run a statement, and print its receipt, if it has one, and then its rows. Of a statement with
    a receipt, rows are printed only with RETURNING; a result without columns is not printed. The
    errors of ``Session.sql`` are raised. Progress is shown meanwhile.

    Args:
        session: The session.
        text: The statement.
        args: Values of its parameters.
        output: Where the rows go, and in which form. If standard output is for programs, receipts
            go to standard error.
    """
    before = session.last
    with progress(session):
        frame = session.sql(text, args)
        receipt = None if session.last is before else session.last
        has_rows = receipt.returns_rows if receipt else bool(frame.columns)
        is_whole = output.form in ("csv", "json")
        rows = first_rows(frame, output.limit) if has_rows and not is_whole else None
    if receipt is not None:
        print(receipt, file=sys.stderr if output.is_for_programs else sys.stdout)
    if rows is not None:
        _write_rows(rows, output)
    elif has_rows:
        _write_frame(frame, output)


@contextmanager
def progress(session: Session) -> Iterator[None]:
    """Show on standard error what a statement does, while the block runs it, from its third second
    on; nothing if standard error is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    status = console.status("")

    def show(line: str | None) -> None:
        """Show the line, dim, behind a spinner; None takes it away."""
        if line is None:
            status.stop()
        else:
            status.update(Text(line, style="dim"))
            status.start()

    with show_progress(session, show):
        yield


def print_frame(frame: DataFrame, *, form: str = "table", limit: int) -> None:
    """Print a DataFrame to standard output, without a pager: a table of at most ``limit`` rows,
    perhaps in Markdown, or all rows with ``form`` csv or json."""
    output = Output(form, limit)
    if form in ("csv", "json"):
        _write_frame(frame, output)
    else:
        _write_rows(first_rows(frame, limit), output)


def _write_rows(rows: FirstRows, output: Output) -> None:
    """Write the first rows of a query as a table, as Markdown, or each row as a table of its
    own; the text of a plan as it is."""
    if output.form == "markdown":
        _write([markdown_text(rows)], output.file)
    elif output.is_expanded and not rows.is_text:
        _write([expanded_text(rows, _escape_controls)], output.file)
    elif output.file is not None:
        _write([str(rows)], output.file)
    else:
        _print_table(rows, output.is_paged)


def _write_frame(frame: DataFrame, output: Output) -> None:
    """Write all rows, fetched partition by partition, as CSV with a head, or else as lines of
    JSON."""
    if output.form == "csv":
        _write(map(csv_line, [frame.columns]), output.file)
        _write(map(csv_line, as_csv(frame).toLocalIterator()), output.file)
    else:
        _write((row[0] for row in as_json(frame).toLocalIterator()), output.file)


def print_error(text: str) -> None:
    """Show an error, in red, on standard error."""
    Console(stderr=True, soft_wrap=True).print(Text(text, style="red"))


def print_rows(columns: Iterable[str], rows: Sequence[tuple[str, ...]]) -> None:
    """Print a table of texts, in which control characters are shown as escapes; nothing, not even
    the heads, if there are no rows."""
    if not rows:
        return
    table = Table()
    for name in columns:
        table.add_column(_plain_text(name), overflow="fold")
    for row in rows:
        table.add_row(*map(_plain_text, row))
    _console().print(table)


def show_sections(sections: Iterable[Section]) -> None:
    """Print tables, whole, to standard output."""
    console = _console()
    for section in sections:
        console.print(_section_group(section, len(section.lines), console.width), end="")


def watch_sections(
    head: str, look: Callable[[], Sequence[Section]], interval_s: float, errors: type[Exception]
) -> None:
    """Show tables on the whole terminal, again and again, until q or Q is typed, or the terminal
    has gone. An error of ``look`` that is none of ``errors`` is raised. Lines that do not fit are
    left out, in each table alike.

    Args:
        head: The line above the tables.
        look: Gives the tables. If it fails, the error is shown in their place, until it succeeds
            again.
        interval_s: The time between two looks.
        errors: The class of the errors that are shown.
    """
    console = Console()
    with _key_reader() as key_in, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            title = Text.assemble(_plain_text(head), (f" · every {interval_s:g} s · q ends", "dim"))
            try:
                sections = look()
                # Besides its lines, a table has a title, heads, a rule, two empty lines, and a line
                # that says what is left out.
                room = max(1, (console.height - 1) // max(1, len(sections)) - 7)
                shown: list[RenderableType] = [
                    _section_group(section, room, console.width) for section in sections
                ]
            except errors as error:
                shown = [Text(_escape_controls(str(error)), style="red")]
            live.update(Group(title, *shown), refresh=True)
            if key_in(interval_s) in ("q", "Q"):
                return


@contextmanager
def _key_reader() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits at most so many seconds for a key, and returns its first byte as
    text, or "" if none came; "q" if the terminal has gone. Until the block ends, the terminal hands
    over each key without Enter, and Ctrl-C raises KeyboardInterrupt. Without a terminal the
    function only waits, and returns ""."""
    if not sys.stdin.isatty():
        yield _wait_without_keys
        return
    import termios  # not on every system
    import tty

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)

    def key(seconds: float) -> str:
        """Return the next byte of the terminal as text; "" after ``seconds``, "q" at its end."""
        ready, _, _ = select.select([number], [], [], seconds)
        if not ready:
            return ""
        return os.read(number, 1).decode(errors="replace") or "q"  # the terminal has gone

    # A program that was started in the background of a script ignores Ctrl-C.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        tty.setcbreak(number)
        yield key
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
        signal.signal(signal.SIGINT, handler)


def _wait_without_keys(seconds: float) -> str:
    """Wait, and return "": no key."""
    time.sleep(seconds)
    return ""


def _section_group(section: Section, max_lines: int, width: int) -> Group:
    """Return a section for the console: the title, at most ``max_lines`` lines, cut to ``width``,
    and how many lines are left out, if any; last an empty line. Without lines it has no heads."""
    hidden_count = len(section.lines) - max_lines
    parts: list[RenderableType] = [Text(_escape_controls(section.title), style="bold")]
    if section.lines:
        parts.append(_section_table(section, max_lines, width))
    if hidden_count > 0:
        parts.append(Text(f"and {hidden_count:,} more", style="dim italic"))
    return Group(*parts, "")


def _section_table(section: Section, max_lines: int, width: int) -> Table:
    """Return the heads and the first ``max_lines`` lines of a section, which has some, as a table,
    coloured by their marks. Columns but the last get at most an eighth of the width, the last one
    the room that is left; longer texts are cut, and control characters escaped in the lines."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    shown = [
        section.columns,
        *(map(_escape_controls, cells) for _, cells in section.lines[:max_lines]),
    ]
    # The last column has the long texts, and all the room that is left.
    *narrow_columns, last = zip(*shown, strict=True)
    room = width - 2 * len(section.columns)
    widest_allowed = width // _SHARE
    columns = []
    for column in narrow_columns:
        widest = min(max(map(len, column)), widest_allowed)
        columns.append([shorten_text(text, widest) for text in column])
        room -= widest
    columns.append([shorten_text(text, max(room, 1)) for text in last])
    heads, *lines = zip(*columns, strict=True)
    for head in heads:
        table.add_column(Text(head), no_wrap=True)
    for (mark, _), cells in zip(section.lines, lines, strict=False):
        table.add_row(*map(Text, cells), style=_STYLES[mark])
    return table


def _print_table(shown_rows: FirstRows, use_pager: bool) -> None:
    """Print rows as a table with their summary below; control characters are shown as escapes. The
    text of a plan is printed as it is. With ``use_pager``, a table that is higher or wider than the
    terminal goes to the pager; a plan does not."""
    if shown_rows.is_text:
        print(shown_rows)
        return
    table = Table()
    for name, number in zip(shown_rows.columns, shown_rows.numeric, strict=True):
        table.add_column(_plain_text(name), justify="right" if number else "left", overflow="fold")
    for row in shown_rows.rows:
        table.add_row(*(Text("NULL", style="dim") if v is None else _plain_text(v) for v in row))
    console, summary = _console(), Text(shown_rows.summary, style="dim italic")
    if use_pager and not _fits_on_terminal(table, console):
        # The pager gets lines that are not folded; it scrolls sideways.
        with console.pager():
            console.print(table, summary, width=_WIDEST, crop=False, no_wrap=True)
    else:
        console.print(table, summary)


def _plain_text(text: str) -> Text:
    """Return a text for the console, whose control characters are shown as escapes, so that it
    gives the terminal no commands."""
    return Text(_escape_controls(text))


def _escape_controls(text: str) -> str:
    r"""Return a text with escapes (``\x1b``) for control characters, except tab and newline."""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def _fits_on_terminal(table: Table, console: Console) -> bool:
    """Whether a table, with no cell folded, is no wider than the terminal and has fewer lines: one
    stays free for the summary."""
    wide = Console(file=io.StringIO(), width=_WIDEST)
    wide.print(table)
    lines = wide.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return len(lines) < console.height and max(map(len, lines)) <= console.width


def _console() -> Console:
    """Return a console on standard output: as wide as the terminal, or 10,000 columns in a pipe."""
    # Lines in a pipe stay whole: rich would fold them to 80 columns.
    return Console(width=None if sys.stdout.isatty() else _WIDEST)


def _write(lines: Iterable[str], file: BinaryIO | None = None) -> None:
    """Write each line, with a newline, to a file or standard output, in UTF-8 whatever the
    locale."""
    sys.stdout.flush()
    stream = sys.stdout.buffer if file is None else file
    for line in lines:
        stream.write(line.encode() + b"\n")
    stream.flush()
