"""``acidsql`` without a command: a shell that runs statements by ``Session.sql``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from acidsql import __version__
from acidsql.api.session import Session
from acidsql.errors import AcidSqlError, SqlSyntaxError
from acidsql.plan.analysis.lower import no_log
from acidsql.sql.text.given_names import table_parts
from acidsql.sql.text.tokens import split_statements, tokenize
from acidsql.storage.columns import quote, quoted_path
from acidsql.terminal.completion import StatementCompleter
from acidsql.terminal.progress import interruption_message
from acidsql.terminal.terminal import print_error, print_rows, run

_PAGER = "-RSX"  # for less: colours, no folded lines, and the rows stay on the screen
_MORE = "-> "


class Shell:
    """Reads statements from a terminal and runs them.

    Args:
        session: Runs the statements.
        limit: How many rows a query shows at most.
        history: The file of the lines that were typed before; None: they are not kept.
    """

    def __init__(self, session: Session, *, limit: int = 100, history: Path | None = None) -> None:
        """Make the prompt, with history, colours, and completion by Tab. Nothing is read or run
        yet."""
        self._session, self._limit, self._timing = session, limit, True
        self._ended = False
        self._prompt: PromptSession[str] = PromptSession(
            history=_history(history),
            completer=ThreadedCompleter(_PromptCompleter(StatementCompleter(session.sql))),
            complete_while_typing=False,
            multiline=True,
            key_bindings=_key_bindings(),
            lexer=PygmentsLexer(SqlLexer),
            prompt_continuation=lambda width, *_: _MORE.rjust(width),
        )

    def run(self) -> None:
        r"""Print a greeting, then read and run statements until ``\q`` or Ctrl-D; Ctrl-C takes the
        typed text back. An open transaction is only announced at the end: closing the session rolls
        it back. Options of the pager ``less`` are set in this process unless LESS is set."""
        os.environ.setdefault("LESS", _PAGER)
        session = self._session
        print(f"acidsql {__version__}, Spark {session.spark.version}, {session.warehouse}")
        print(r"Each statement ends with ; and \? lists the shortcuts.")
        while not self._ended:
            try:
                text = self._prompt.prompt(self._prompt_text())
            except KeyboardInterrupt:  # Ctrl-C takes the line back
                continue
            except EOFError:
                break
            self.run_input(text)
        if session.in_transaction:
            print("BEGIN without COMMIT: its changes are rolled back.")

    def run_input(self, text: str) -> None:
        """Run a text that a person typed: a shortcut or statements. The first error or Ctrl-C ends
        the run; it is printed, not raised."""
        try:
            with no_log():  # the error is shown below
                if (shortcut := _shortcut_text(text)) is None:
                    self._run_statements(text)
                else:
                    self._run_shortcut(shortcut)
        except KeyboardInterrupt:
            print_error("Interrupted.")
        except (AcidSqlError, PySparkException, OSError) as error:
            print_error(str(error))
        except Exception as error:  # an open transaction must not end with the shell
            print_error(f"{type(error).__name__}: {error}")

    def _prompt_text(self) -> str:
        """Return the prompt, ``default> `` or with an open transaction ``default (txn 7)> ``: the
        current database comes first."""
        database, txn_id = self._session.spark.catalog.currentDatabase(), self._session.txn_id
        return f"{database}> " if txn_id is None else f"{database} (txn {txn_id})> "

    def _run_statements(self, text: str) -> None:
        """Run the statements of a text, one after another, and print their results and, if timing
        is on, their times. Ctrl-C ends them, but not the shell; an error is raised. In both cases
        the later ones are not run."""
        for span in split_statements(text):
            start, before = time.perf_counter(), self._session.last
            try:
                run(self._session, span.slice(text), limit=self._limit, paged=True)
            except KeyboardInterrupt:
                print_error(interruption_message(self._session, before))
                return
            if self._timing:
                print(f"Time: {time.perf_counter() - start:.3f} s")

    def _run_shortcut(self, text: str) -> None:
        """Run a shortcut by its first word, with the rest as its argument. An unknown one is an
        error that is printed."""
        word, _, argument = text.partition(" ")
        shortcut = _SHORTCUTS.get(word)
        if shortcut is None:
            print_error(rf"There is no shortcut {word}. \? lists the shortcuts.")
        else:
            shortcut.run(self, argument.strip())

    def _help(self, argument: str) -> None:
        """Print all shortcuts with what they do, except ``exit`` and ``quit``. The argument is
        ignored."""
        print_rows(
            ("", ""),
            [
                (f"{word} {shortcut.argument}", shortcut.description)
                for word, shortcut in _SHORTCUTS.items()
                if shortcut.description
            ],
        )

    def _end(self, argument: str) -> None:
        """Let ``run`` end after this shortcut."""
        self._ended = True

    def _describe(self, argument: str, extended: str = "") -> None:
        """Print the columns of a table, or the list of tables if the argument is "". ``extended``:
        "EXTENDED " prints all facts about the table."""
        table = quoted_path(table_parts(argument)) if argument else ""
        self._run_statements(f"DESCRIBE TABLE {extended}{table}" if table else "SHOW TABLES")

    def _use_database(self, argument: str) -> None:
        self._run_statements(f"USE {quote(argument)}")

    def _run_file(self, argument: str) -> None:
        self._run_statements(Path(argument).expanduser().read_text(encoding="utf-8-sig"))

    def _toggle_timing(self, argument: str) -> None:
        self._timing = not self._timing
        print(f"Timing is {'on' if self._timing else 'off'}.")

    def _set_limit(self, argument: str) -> None:
        """Set how many rows a query shows at most, if the argument is a whole number, and print
        it."""
        if argument.isdecimal():
            self._limit = int(argument)
        print(f"A query shows at most {self._limit:,} rows.")


@dataclass(frozen=True, slots=True)
class _Shortcut:
    """A shortcut: its argument's name, what it does, and the function that runs it."""

    argument: str
    description: str
    run: Callable[[Shell, str], None]


# The names are those of psql.
_SHORTCUTS = {
    r"\?": _Shortcut("", "list the shortcuts", Shell._help),
    r"\q": _Shortcut("", "end the shell", Shell._end),
    r"\l": _Shortcut(
        "", "list the databases", lambda shell, _: shell._run_statements("SHOW DATABASES")
    ),
    r"\c": _Shortcut("DATABASE", "use a database", Shell._use_database),
    r"\d": _Shortcut("[TABLE]", "list the tables, or the columns of one", Shell._describe),
    r"\d+": _Shortcut(
        "TABLE", "all that is known of a table", lambda shell, t: shell._describe(t, "EXTENDED ")
    ),
    r"\dv": _Shortcut("", "list the views", lambda shell, _: shell._run_statements("SHOW VIEWS")),
    r"\i": _Shortcut("FILE", "run the statements of a file", Shell._run_file),
    r"\timing": _Shortcut("", "show the time of each statement, or do not", Shell._toggle_timing),
    r"\limit": _Shortcut("[N]", "how many rows a query shows at most", Shell._set_limit),
}
_SHORTCUTS |= dict.fromkeys(("exit", "quit"), _Shortcut("", "", Shell._end))


def _shortcut_text(text: str) -> str | None:
    """Return a text that is a shortcut, with its argument, without blanks and ``;`` around it; None
    if the text is no shortcut."""
    text = text.strip().rstrip(";").rstrip()
    return text if text.startswith("\\") or text in _SHORTCUTS else None


def is_complete(text: str) -> bool:
    """Whether Enter runs a text: a shortcut, blanks and comments alone, statements with a ``;`` at
    the end, or a text with an error that is no syntax error. An open string, quoted name or comment
    is not complete."""
    if not text.strip() or _shortcut_text(text) is not None:
        return True
    try:
        tokens = tokenize(text)
    except SqlSyntaxError:  # a string, a quoted name or a comment is open
        return False
    except AcidSqlError:  # this text fails however it goes on
        return True
    return not tokens or tokens[-1].text == ";"


def _key_bindings() -> KeyBindings:
    """Return the keys of the prompt: Enter takes the completion that is shown; else it runs a
    complete text (`is_complete`), and otherwise begins a new line."""
    keys = KeyBindings()

    @keys.add("enter")
    def enter(event: KeyPressEvent) -> None:
        """Take the completion that is shown, run a complete text, or begin a new line."""
        buffer = event.current_buffer
        if buffer.complete_state is not None:
            buffer.complete_state = None  # takes the completion that is shown
        elif is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def _history(path: Path | None) -> History:
    """Return the history of typed lines, which is kept in the file ``path``. The file and its
    directories are made; a new file can be read by its user only. Without a path, or if the file
    cannot be made, the lines are kept in memory only."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def history_path() -> Path:
    """Return the path of the file in which the shell keeps typed lines: ``acidsql/history`` below
    $XDG_STATE_HOME, by default ``~/.local/state``. Nothing is created."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "acidsql" / "history"


class _PromptCompleter(Completer):
    """The words of ``acidsql.terminal.completion`` for prompt_toolkit."""

    def __init__(self, statement_completer: StatementCompleter) -> None:
        self._statement_completer = statement_completer

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Any]:
        """Yield the words that may replace the word at the cursor, for prompt_toolkit, in their
        order, each with the distance of the word's start from the cursor (negative)."""
        at = document.cursor_position
        start, words = self._statement_completer.completions(document.text, at)
        for word in words:
            yield Completion(word, start - at)
