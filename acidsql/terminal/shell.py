"""``acidsql`` without a command: a shell that runs statements by ``Session.sql``."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from acidsql import __version__
from acidsql.api.names import NameLists
from acidsql.api.session import Session
from acidsql.errors import AcidSqlError, SqlSyntaxError
from acidsql.plan.analysis.lower import no_log
from acidsql.sql.text.given_names import table_parts
from acidsql.sql.text.tokens import tokenize
from acidsql.storage.columns import quote, quoted_path
from acidsql.terminal.completion import StatementCompleter
from acidsql.terminal.progress import interruption_message
from acidsql.terminal.render import FORMS
from acidsql.terminal.script import Script
from acidsql.terminal.terminal import Output, print_error, print_rows, run

_PAGER = "-RSX"  # for less: colours, no folded lines, and the rows stay on the screen
_MORE = "-> "


class Shell:
    """Reads statements from a terminal and runs them.

    Args:
        session: Runs the statements.
        limit: How many rows a table shows at most.
        history: The file of the lines that were typed before; None: they are not kept.
    """

    def __init__(self, session: Session, *, limit: int = 100, history: Path | None = None) -> None:
        """Make the prompt, with history, colours, and completion by Tab. Nothing is read or run
        yet."""
        self._session, self._timing, self._ended = session, True, False
        self._output = Output(limit=limit, is_paged=True)
        self._completer = StatementCompleter(NameLists(session))
        self._prompt: PromptSession[str] = PromptSession(
            history=_history(history),
            completer=_PromptCompleter(self._completer),
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
                self._completer.prepare()  # a statement may have made tables
                self.run_input(self._prompt.prompt(self._prompt_text()))
            except KeyboardInterrupt:  # Ctrl-C takes the line back
                continue
            except EOFError:
                break
        self._close_file()
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
        current database comes first. If Spark does not tell it, ``acidsql`` stands there."""
        database, txn_id = "acidsql", self._session.txn_id
        with suppress(Exception):  # Spark was stopped, or Ctrl-C has broken the connection to it
            database = self._session.spark.catalog.currentDatabase()
        return f"{database}> " if txn_id is None else f"{database} (txn {txn_id})> "

    def _run_statements(self, text: str, file_name: str = "") -> None:
        """Run the statements of a text, one after another, and print their results and, if timing
        is on, their times. Ctrl-C or an error ends them, but not the shell, and is told. The later
        ones are not run then. ``file_name``: the file that has the text; "": it was typed."""
        script = Script(text, file_name)
        try:
            statements = script.statements()
        except AcidSqlError as error:
            print_error(script.error_text(error))
            return
        for statement in statements:
            start, before = time.perf_counter(), self._session.last
            try:
                run(self._session, statement.text, output=self._output)
            except KeyboardInterrupt:
                print_error(interruption_message(self._session, before))
                return
            except (AcidSqlError, PySparkException) as error:
                print_error(statement.error_text(error))
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

    def _show_info(self) -> None:
        """Print versions, settings and the last error, without secrets."""
        print(self._session.info())

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
        path = Path(argument).expanduser()
        self._run_statements(path.read_text(encoding="utf-8-sig"), path.name)

    def _toggle_timing(self, argument: str) -> None:
        self._timing = not self._timing
        print(f"Timing is {'on' if self._timing else 'off'}.")

    def _set_limit(self, argument: str) -> None:
        """Set how many rows a query shows at most, if the argument is a whole number, and print
        it."""
        if argument.isdecimal():
            self._output = replace(self._output, limit=int(argument))
        print(f"A query shows at most {self._output.limit:,} rows.")

    def _set_mode(self, argument: str) -> None:
        """Set the form of rows, if the argument is one, and print it. Any other argument is an
        error that is printed."""
        form = argument.lower() or self._output.form
        if form not in FORMS:
            print_error(f"The mode is {', '.join(FORMS[:-1])} or {FORMS[-1]}, not '{argument}'.")
            return
        self._output = replace(self._output, form=form)
        print(f"Rows are shown as {form}.")

    def _toggle_expanded(self, argument: str) -> None:
        is_expanded = not self._output.is_expanded
        self._output = replace(self._output, is_expanded=is_expanded)
        print(f"Expanded tables are {'on' if is_expanded else 'off'}.")

    def _write_to_file(self, argument: str) -> None:
        """Let later rows go to the file of this name, which becomes empty now; without a name, to
        the terminal again. A file of before is closed."""
        path = Path(argument).expanduser() if argument else None
        file = None if path is None else path.open("wb")  # an error leaves the file of before
        self._close_file()
        self._output = replace(self._output, file=file)
        print("Rows are shown here." if path is None else f"Rows go to {path}; \\o ends this.")

    def _close_file(self) -> None:
        r"""Close the file of ``\o``, if there is one."""
        if (file := self._output.file) is not None:
            self._output = replace(self._output, file=None)
            file.close()


@dataclass(frozen=True, slots=True)
class _Shortcut:
    """A shortcut: its argument's name, what it does, and the function that runs it."""

    argument: str
    description: str
    run: Callable[[Shell, str], None]


# The names are those of psql.
_SHORTCUTS = {
    r"\?": _Shortcut("", r"list the shortcuts, as \help and \h do", Shell._help),
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
    r"\info": _Shortcut("", "what to send with a question", lambda shell, _: shell._show_info()),
    r"\timing": _Shortcut("", "show the time of each statement, or do not", Shell._toggle_timing),
    r"\limit": _Shortcut("[N]", "how many rows a table shows at most", Shell._set_limit),
    r"\mode": _Shortcut(f"[{'|'.join(FORMS)}]", "in which form rows are shown", Shell._set_mode),
    r"\x": _Shortcut(
        "", "show each column on a line of its own, or do not", Shell._toggle_expanded
    ),
    r"\o": _Shortcut("[FILE]", "write rows to a file, or show them again", Shell._write_to_file),
}
_SHORTCUTS |= dict.fromkeys((r"\help", r"\h"), _Shortcut("", "", Shell._help))
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


# The statements that run for shortcuts, up to the name that follows.
_STATEMENTS_OF_SHORTCUTS = {"d": "DESCRIBE ", "d+": "DESCRIBE ", "c": "USE "}
_BEFORE_NAME = re.compile(r"\s*\\(d\+?|c)\s+")


class _PromptCompleter(Completer):
    """The words of ``acidsql.terminal.completion`` for prompt_toolkit."""

    def __init__(self, statement_completer: StatementCompleter) -> None:
        self._statement_completer = statement_completer

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Any]:
        """Yield the words that may replace the word at the cursor, for prompt_toolkit, in their
        order, each with the distance of the word's start from the cursor (negative). A shortcut is
        completed, too, and the name of a table or database behind it."""
        text, at = document.text, document.cursor_position
        if text.startswith("\\") and not re.search(r"\s", text[:at]):
            for shortcut in sorted(_SHORTCUTS):
                if shortcut.startswith(text[:at]):
                    yield Completion(shortcut, -at)
            return
        if match := _BEFORE_NAME.match(text[:at]):
            statement = _STATEMENTS_OF_SHORTCUTS[match[1]] + text[match.end() :]
            at += len(statement) - len(text)
            text = statement
        start, words = self._statement_completer.completions(text, at)
        for word in words:
            yield Completion(word, start - at)

    async def get_completions_async(
        self, document: Document, event: CompleteEvent
    ) -> AsyncGenerator[Any, None]:
        """Yield the same words, which another thread finds. Typing goes on meanwhile, and Ctrl-C
        does not wait for the thread."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Any]] = loop.create_future()

        def give(completions: list[Any]) -> None:
            """Hand the words over, unless nobody waits any more."""
            if not answer.done():
                answer.set_result(completions)

        def find() -> None:
            completions = list(self.get_completions(document, event))
            with suppress(RuntimeError):  # the prompt has ended
                loop.call_soon_threadsafe(give, completions)

        threading.Thread(target=find, name="acidsql completion", daemon=True).start()
        for completion in await answer:
            yield completion
