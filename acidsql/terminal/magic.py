"""``%acidsql`` and ``%%acidsql``: run statements in a notebook by ``Session.sql``.

::

    %load_ext acidsql

    %%acidsql --limit 10
    UPDATE planes SET seats = 180 WHERE tailnum = :tail;     -- :tail is a variable of the notebook
    busy << SELECT origin, count(*) AS n FROM flights GROUP BY origin;
    SELECT * FROM planes

Options stand before the text:

* ``-o NAME`` or ``--out NAME`` keeps the last query's DataFrame in the variable NAME;
* ``--limit N`` shows at most N rows;
* ``--quiet`` shows nothing;
* ``--format pandas|arrow|spark`` gives all rows of a query (or N) as a pandas DataFrame, an Arrow
  table or a lazy Spark DataFrame, instead of showing the first ones;
* ``-s NAME`` or ``--session NAME`` uses the session in the variable NAME instead of the newest one;
* ``--connect URL`` uses a session with the metastore of this URL, and opens one if there is none;
* ``--preview`` runs nothing: it shows what the statements would change (``Session.preview``);
* ``--health`` shows the health of the table whose name follows, or of all tables
  (``Session.health``);
* ``--quiet-spark`` lets a Spark that the notebook has started log errors only, and show no bars, in
  all sessions of this process;
* ``--param name=value`` gives ``:name`` a value.

``name << SELECT …`` keeps a query's DataFrame in the variable ``name`` and shows nothing; with
``--preview``, the DataFrame of the changes.

A cell stops at its first error, which is shown without a traceback, with its line in the cell and
the number of its statement. The statements before the error stay done. Tab completes keywords and
the names of tables and columns.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import HTML, display
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from acidsql.api.names import NameLists
from acidsql.api.session import Session, connect, newest_session
from acidsql.errors import AcidSqlError
from acidsql.plan.analysis.lower import no_log
from acidsql.sql.text.parameters import is_value, python_value
from acidsql.sql.text.tokens import tokenize
from acidsql.statements.context.result import Receipt
from acidsql.storage.spark.session.quiet import is_noisy, quiet_spark
from acidsql.terminal.completion import StatementCompleter
from acidsql.terminal.progress import interruption_message, show_progress
from acidsql.terminal.render import FirstChanges, first_changes, first_rows, with_times
from acidsql.terminal.script import Script, ScriptStatement
from acidsql.terminal.terminal import progress

DEFAULT_LIMIT = 20
_FORMS: dict[str, Callable[[DataFrame], Any]] = {
    "pandas": lambda frame: frame.toPandas(),
    "arrow": lambda frame: frame.toArrow(),
    "spark": lambda frame: frame,
}
_FLAGS = {
    "--quiet": "quiet", "-q": "quiet", "--preview": "preview", "--health": "health",
    "--quiet-spark": "quiet_spark",
}  # fmt: skip
_FLAG = re.compile(r"\s*(--quiet-spark|--quiet|-q|--preview|--health)(?=\s|$)")
_HINT = (
    "Spark writes its progress bars and warnings into this notebook. `%acidsql --quiet-spark` "
    "stops it."
)
_OPTION = re.compile(
    r"\s*(--out|-o|--limit|--param|--format|--session|-s|--connect)"
    r"""(?:=|\s+)((?:"[^"]*"|'[^']*'|[^\s"'])+)"""
)
_UNKNOWN = re.compile(r"\s*(--?\w[\w-]*)")
_MAGIC = re.compile(r"\s*%%?acidsql(?=\s)")
_ASSIGN = re.compile(r"\s*([A-Za-z_]\w*)\s*<<\s*")


@dataclass(slots=True)
class _Options:
    """The options of a line of the magic, by the names that the module's docstring explains."""

    out: str | None = None
    limit: int | None = None
    form: str | None = None
    session: str | None = None
    connect: str | None = None
    quiet: bool = False
    preview: bool = False
    health: bool = False
    quiet_spark: bool = False
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows are shown."""
        return DEFAULT_LIMIT if self.limit is None else self.limit


@magics_class
class AcidSqlMagics(Magics):
    """The magics; ``load_ipython_extension`` registers them."""

    shell: Any

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._connected: dict[str, Session] = {}
        self._has_hinted = False

    @line_cell_magic
    def acidsql(self, line: str, cell: str | None = None) -> Any:
        """Run SQL: ``%acidsql [-o NAME] [--limit N] [--format FORM] [--quiet] [--preview]
        [--health] [--quiet-spark] [--param name=value] [--session NAME] [--connect URL]
        statement; …``.

        Returns:
            The last statement's rows or receipt. Those of earlier statements are displayed.

        Raises:
            UsageError: A statement failed or was interrupted, or an option is wrong.
        """
        options, start = _parse_options(line)
        text = start if cell is None else f"{start}\n{cell}"
        outcome, place = None, cast("Script | ScriptStatement", Script(text))
        try:
            if options.health:
                return self._health(text.strip().removesuffix(";").rstrip(), options)
            statements = Script(text).statements()
            session = self._chosen_session(options)
            self._quiet_spark_or_hint(session, options)
            for statement in statements:
                if outcome is not None:
                    display(outcome)  # type: ignore[no-untyped-call]
                assigned = _ASSIGN.match(statement.text)
                place = statement = statement.behind(assigned.end()) if assigned else statement
                before = session.last
                try:
                    with no_log():  # the error is shown below
                        outcome = self._run_statement(
                            session, statement.text, options, assigned[1] if assigned else None
                        )
                except KeyboardInterrupt:
                    message = interruption_message(session, before)
                    raise UsageError(statement.placed_text(message)) from None
        except (AcidSqlError, PySparkException) as error:
            # IPython shows a UsageError without a traceback. The cell fails, so "run all" stops.
            raise UsageError(place.error_text(error)) from None
        return outcome

    def _chosen_session(self, options: _Options) -> Session:
        """Return the session of ``--connect``, which this object opened for this URL before, or a
        new one; or else that of ``--session``; or else the newest one of this process
        (`newest_session`), or a new one. Raise UsageError if the variable of ``--session`` holds no
        session."""
        if options.connect is not None:
            connected = self._connected.get(options.connect)
            if connected is None or connected.closed:
                connected = self._connected[options.connect] = connect(metastore=options.connect)
            return connected
        if options.session is None:
            return newest_session() or connect()
        named = self.shell.user_ns.get(options.session)
        if not isinstance(named, Session):
            raise UsageError(f"--session: the variable '{options.session}' holds no session")
        return named

    def _quiet_spark_or_hint(self, session: Session, options: _Options) -> None:
        """Make Spark quiet, if the options say so. In a notebook whose Spark writes bars into
        cells, display a hint, once."""
        if options.quiet_spark:
            quiet_spark(session.spark)
        elif hasattr(self.shell, "kernel") and not self._has_hinted and is_noisy(session.spark):
            self._has_hinted = True
            display(HTML(f"<small>{html.escape(_HINT)}</small>"))  # type: ignore[no-untyped-call]

    def _run_statement(
        self, session: Session, text: str, options: _Options, variable: str | None
    ) -> Any:
        """Run one statement, or preview it. Return what the notebook is to show: a receipt of a
        change; rows in the form of the options; None with ``--quiet``, for rows that ``variable``
        gets, and for a statement without columns that changed nothing. The variable of ``<<``,
        which is ``variable``, gets the DataFrame; that of ``--out`` does if it has rows (a query,
        RETURNING). A receipt beside rows is displayed here."""
        if options.preview:
            return self._preview(session, text, options, variable)
        before = session.last
        with self._progress(session):
            frame = session.sql(text, self._arguments(text, options.params) or None)
        if variable is not None:
            self.shell.user_ns[variable] = frame
        receipt = None if session.last is before else session.last
        if receipt is not None and not receipt.returns_rows:
            return None if options.quiet else receipt
        if receipt is not None and not options.quiet:
            display(receipt)  # type: ignore[no-untyped-call]
        if frame.columns and options.out is not None:
            self.shell.user_ns[options.out] = frame
        if variable is not None or options.quiet or not frame.columns:
            return None
        with self._progress(session):
            return _formatted_rows(frame, text, options)

    def _progress(self, session: Session) -> AbstractContextManager[None]:
        """Show, in the block, what a statement does: in a notebook as a line of the cell's output,
        else on the terminal; nothing if standard error is no terminal."""
        if hasattr(self.shell, "kernel"):
            return show_progress(session, _Line().show)
        return progress(session)

    def _preview(
        self, session: Session, text: str, options: _Options, variable: str | None
    ) -> FirstChanges | None:
        """Return the first changes that a statement would make, for display; None with ``--quiet``,
        and after ``name <<``. This name's variable and ``--out``'s get the DataFrame of all.
        Nothing is written."""
        frame = session.preview(text, self._arguments(text, options.params) or None)
        self.shell.user_ns |= {name: frame for name in (variable, options.out) if name is not None}
        if options.quiet or variable is not None:
            return None
        with self._progress(session):
            return first_changes(frame, options.rows)

    def _health(self, table: str, options: _Options) -> Any:
        """Return the health of a table, or of all tables for "", in the form that the options say;
        None with ``--quiet`` and no ``--format``. ``--out``'s variable gets the DataFrame."""
        frame = self._chosen_session(options).health(table or None)
        if options.out is not None:
            self.shell.user_ns[options.out] = frame
        if options.form is not None:
            return _FORMS[options.form](frame)
        return None if options.quiet else frame

    def _arguments(self, text: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the values of the text's ``:names``: those of --param first, then notebook
        variables that can be values. Other names are left out, so Spark will miss them. ``v:name``
        is none: it is a path into a VARIANT."""
        values, variables = {}, self.shell.user_ns
        for colon, word in itertools.pairwise(tokenize(text)):
            # `v:name`, without a blank before the colon, is Spark's path into a VARIANT.
            before = text[colon.start - 1 : colon.start]
            if colon.text != ":" or word.start != colon.end or re.match(r"[\w`\])]", before):
                continue
            if word.text in params:
                values[word.text] = params[word.text]
            elif word.text in variables and is_value(variables[word.text]):
                values[word.text] = variables[word.text]
        return values


class _Line:
    """A line of a notebook's output whose text changes."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, line: str | None) -> None:
        """Show a line in the place of the last one, as text, small; None takes it away. Before the
        first line None does nothing."""
        text = "" if line is None else f"<small>{html.escape(line)}</small>"
        if self._handle is not None:
            self._handle.update(HTML(text))  # type: ignore[no-untyped-call]
        elif line is not None:
            self._handle = display(HTML(text), display_id=True)  # type: ignore[no-untyped-call]


def _formatted_rows(frame: DataFrame, text: str, options: _Options) -> Any:
    """Return the rows of a statement: the first ones (`FirstRows`), to show, with times as text for
    SHOW TRANSACTIONS and the like; or with ``--format`` all of them, or as many as ``--limit``
    says, in that form."""
    if options.form is not None:
        rows = frame if options.limit is None else frame.limit(options.limit)
        return _FORMS[options.form](rows)
    frame = with_times(frame) if _has_times(text) else frame
    return first_rows(frame, options.rows)


def _parse_options(line: str) -> tuple[_Options, str]:
    """Return the options at the start of a line, and the text behind them, with its leading blanks.
    A value may stand behind ``=`` or a blank, and in quotes; of an option given twice the last
    counts (each --param adds a value). Raise UsageError for an unknown option, or a missing or
    wrong value."""
    options = _Options()
    while match := _FLAG.match(line) or _OPTION.match(line):
        line = line[match.end() :]
        if match.re is _FLAG:
            setattr(options, _FLAGS[match[1]], True)
        else:
            _set_option(options, match[1], _unquoted(match[2]))
    if unknown := _UNKNOWN.match(line):
        raise UsageError(f"%acidsql: no option '{unknown[1]}', or no value for it")
    return options, line


def _set_option(options: _Options, name: str, value: str) -> None:
    """Set one option that has a value. Raise UsageError for a wrong value."""
    if name == "--limit":
        if not value.isdecimal():
            raise UsageError(f"--limit must be a whole number, not '{value}'")
        options.limit = int(value)
    elif name == "--format":
        if value not in _FORMS:
            raise UsageError(f"--format must be one of {', '.join(_FORMS)}, not '{value}'")
        options.form = value
    elif name in ("--session", "-s"):
        options.session = value
    elif name == "--connect":
        options.connect = value
    elif name == "--param":
        parameter, equals, text = value.partition("=")
        if not equals:
            raise UsageError(f"--param must be name=value, not '{value}'")
        options.params[parameter] = python_value(text)
    else:
        options.out = value


def _unquoted(value: str) -> str:
    """Return a value without the quotes around all of it. Quotes of a part, as in
    ``name='5'``, stay: they make a string of a parameter's value."""
    is_quoted = len(value) > 1 and value[0] in "'\"" and value.find(value[0], 1) == len(value) - 1
    return value[1:-1] if is_quoted else value


def _has_times(text: str) -> bool:
    """Whether a statement is SHOW TRANSACTIONS, LOCKS or COMPACTIONS, whose rows have times in
    milliseconds."""
    words = [token.upper for token in tokenize(text)[:2]]
    return words in (["SHOW", "TRANSACTIONS"], ["SHOW", "LOCKS"], ["SHOW", "COMPACTIONS"])


@context_matcher()  # type: ignore[untyped-decorator]
def complete(context: CompletionContext) -> dict[str, Any]:
    """Return, for IPython, the completions of a word in a cell of ``%%acidsql`` or in a line of
    ``%acidsql``, by the newest session, and keep IPython's own ones away; ``{"completions": []}``
    elsewhere, or without a session."""
    lines = context.full_text.split("\n")
    if context.full_text.startswith("%%acidsql"):
        before = sum(len(line) + 1 for line in lines[: context.cursor_line])
        text, at = context.full_text, before + context.cursor_position
    else:
        text, at = lines[context.cursor_line], context.cursor_position
    match, session = _MAGIC.match(text), newest_session()
    if match is None or session is None or at < match.end():
        return {"completions": []}
    start, words = _completer(session).completions(text[match.end() :], at - match.end())
    return {
        "completions": [SimpleCompletion(word) for word in words],
        "matched_fragment": text[match.end() + start : at],
        "suppress": True,
    }


@lru_cache(maxsize=1)
def _completer(session: Session) -> StatementCompleter:
    """Return the completer of a session. It is kept until another session is the newest one,
    because it knows names that came too late for a call."""
    return StatementCompleter(NameLists(session))


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics, their completion (once), and the text of receipts, in the shell;
    ``%load_ext acidsql`` calls this function."""
    shell.register_magics(AcidSqlMagics)
    completer: Any = shell.Completer
    if complete not in completer.custom_matchers:
        completer.custom_matchers.append(complete)
    plain: Any = shell.display_formatter.formatters["text/plain"]  # type: ignore[union-attr]
    plain.for_type(Receipt, lambda receipt, printer, cycle: printer.text(str(receipt)))
