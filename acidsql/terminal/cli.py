"""``acidsql …``: runs statements from the command line by ``Session.sql`` and prints results."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, BinaryIO

import click

from acidsql import __version__
from acidsql.errors import AcidSqlError
from acidsql.java import use_java
from acidsql.sql.text.parameters import python_value

_ALL_ROWS = 1_000_000  # for lists of tables, transactions or files
_LATE_S = 5.0
_FORMATS = click.Choice(["table", "csv", "json", "markdown"])


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="acidsql")
@click.option("--warehouse", metavar="DIR", help="The tables' place. Default: Spark's warehouse.")
@click.option("--metastore", metavar="URL", help="Default: an SQLite file in the warehouse.")
@click.option("--master", metavar="URL", help="Spark's master, such as local[4].")
@click.option(
    "--remote", metavar="URL", envvar="SPARK_REMOTE", show_envvar=True,
    help="A server of Spark Connect, such as sc://host:15002.",
)  # fmt: skip
@click.option(
    "--conf", "confs", multiple=True, metavar="KEY=VALUE", help="A Spark conf; may be repeated."
)
@click.pass_context
def main(context: click.Context, /, confs: tuple[str, ...], **options: str | None) -> None:
    """SQL DML for PySpark over Hive ACID tables: INSERT, UPDATE, DELETE and MERGE.

    Without a command, acidsql opens a shell. If standard input is no terminal, acidsql runs the
    statements that standard input has, as `acidsql sql` does.
    """
    _print_any_character()
    context.obj = {
        **options,
        "confs": dict(_split_name_and_value(conf, "--conf") for conf in confs),
    }
    if context.invoked_subcommand is None:
        if sys.stdin.isatty():
            _run_shell(context.obj)
        else:
            context.invoke(sql_command)


@main.command("sql")
@click.argument("text", required=False)
@click.option("-f", "--file", type=click.File("rb"), help="The statements' file; - is stdin.")
@click.option("--format", "form", type=_FORMATS, default="table", show_default=True)
@click.option("--limit", default=100, show_default=True, help="Rows that a table shows at most.")
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A value for :NAME.")
@click.pass_obj
def sql_command(
    options: dict[str, Any],
    text: str | None,
    file: BinaryIO | None,
    form: str,
    limit: int,
    params: tuple[str, ...],
) -> None:
    """Run one or more statements, separated by `;`.

    The statements are TEXT, or come from a file or from standard input, in UTF-8. Each statement is
    a transaction of its own, except between BEGIN and COMMIT. The first statement that fails ends
    the command. A transaction that is open at the end is rolled back, and the command fails.
    Results go to standard output. Receipts go there too, but with csv and json they go to standard
    error. The message of an error names the file, the line and the statement.

    csv and json give all rows, in UTF-8, and lose nothing. In csv, NULL is an empty field, the
    empty string is "", nested values are JSON, and binary values are 0x and hexadecimal digits. In
    json, binary values are base64, and the keys of maps are strings.
    """
    from acidsql.terminal.progress import interruption_message
    from acidsql.terminal.script import Script
    from acidsql.terminal.terminal import Output, run

    path = str(getattr(file, "name", "-"))  # standard input has another name, or none
    name = "" if path in ("-", "<stdin>") else os.path.basename(path)
    script = Script(_statements_text(text, file), name)
    values = dict(_split_name_and_value(param, "--param") for param in params)
    args = {name: python_value(value) for name, value in values.items()} or None
    # The process ends with the last statement, so a compaction in the background would not end.
    with _session(options, compactor="inline") as session:
        with _errors_told_by(script):
            statements = script.statements()
        for statement in statements:
            before = session.last
            try:
                with _errors_told_by(statement):
                    run(session, statement.text, args, output=Output(form, limit))
            except KeyboardInterrupt:
                message = statement.placed_text(interruption_message(session, before))
                raise click.ClickException(message) from None
        if session.in_transaction:
            raise click.ClickException("BEGIN without COMMIT: its changes were rolled back.")


@contextmanager
def _errors_told_by(place: Any) -> Iterator[None]:
    """Turn the errors of acidsql and Spark in the block into click's, with the text that ``place``
    gives them: a ``Script`` or one of its statements."""
    from pyspark.errors import PySparkException

    try:
        yield
    except (AcidSqlError, PySparkException) as error:
        raise click.ClickException(place.error_text(error)) from None


def _run_shell(options: dict[str, Any]) -> None:
    """Run the interactive shell until the user ends it. Show a click error if its packages are not
    installed."""
    try:
        from acidsql.terminal.shell import Shell, history_path
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"The shell needs {error.name}: pip install 'acidsql[shell]'. `acidsql sql` works "
            "without it."
        ) from None
    with _session(options, compactor="background") as session:
        Shell(session, history=history_path()).run()


@main.command()
@click.argument("database", required=False)
@click.pass_obj
def tables(options: dict[str, Any], database: str | None) -> None:
    """List the tables (of DATABASE, default: default)."""
    from acidsql.terminal.terminal import Output, run

    with _session(options) as session:
        text = "SHOW TABLES" + (f" IN `{database.replace('`', '``')}`" if database else "")
        run(session, text, output=Output(limit=_ALL_ROWS))


@main.command()
@click.pass_obj
def txns(options: dict[str, Any]) -> None:
    """List the open and the aborted transactions."""
    from acidsql.terminal.terminal import Output, run

    with _session(options) as session:
        run(session, "SHOW TRANSACTIONS", output=Output(limit=_ALL_ROWS))


@main.command()
@click.argument("table")
@click.pass_obj
def files(options: dict[str, Any], table: str) -> None:
    """List the files of TABLE: directory, kind, write ids, rows, bytes and state."""
    from acidsql.terminal.terminal import print_frame

    with _session(options) as session:
        print_frame(session.files(table), limit=_ALL_ROWS)


@main.command()
@click.argument("table")
@click.option("--level", type=click.Choice(["files", "rows"]), default="files", show_default=True)
@click.pass_obj
def check(options: dict[str, Any], table: str, level: str) -> None:
    """Look for damage in TABLE, and for what does not belong there. Nothing is changed.

    The level `files` looks at directories and at the footers of files, `rows` also at each row.

    Exit status: 0, there is no error (perhaps warnings). 1, there are errors.
    """
    from acidsql.terminal.terminal import print_rows

    with _session(options) as session:
        findings = session.check(table, level).collect()
    print_rows(("", "finding", "path", "what is wrong", "what to do"), _finding_cells(findings))
    if not findings:
        click.echo(f"{table} is sound.")
    sys.exit(int(any(finding.severity == "error" for finding in findings)))


@main.command()
@click.argument("table")
@click.option("--yes", is_flag=True, help="Do it. Without this, only say what would be done.")
@click.pass_obj
def repair(options: dict[str, Any], table: str, yes: bool) -> None:
    """Mend what `check` finds in TABLE, as far as that needs no guess.

    What dead statements and aborted transactions left is deleted. Partitions without a directory
    leave the catalog, directories with rows of unknown partitions come into it.
    """
    from acidsql.terminal.terminal import print_rows

    with _session(options) as session:
        findings = session.repair(table, dry_run=not yes).collect()
    print_rows(("", "finding", "path", "what is wrong", "what was done"), _finding_cells(findings))
    if not findings:
        click.echo(f"There is nothing to repair in {table}.")


@main.command()
@click.argument("table", required=False)
@click.option("--partition", metavar="NAME", help="Only this partition, such as p1=a/p2=1.")
@click.option("--format", "form", type=_FORMATS, default="table", show_default=True)
@click.pass_obj
def health(options: dict[str, Any], table: str | None, partition: str | None, form: str) -> None:
    """Say what the files of TABLE are, what holds old ones, and what the compactor will do next.

    One line for each partition; without TABLE, one line for each table. csv and json give all
    columns. The footers of files are read, and no rows.
    """
    from acidsql.api.picture import CELLS, health_cells
    from acidsql.terminal.terminal import print_frame, print_rows

    with _session(options) as session:
        frame = session.health(table, partition)
        if form == "table":
            print_rows(CELLS, [health_cells(row) for row in frame.collect()])
        else:
            print_frame(frame, form=form, limit=_ALL_ROWS)


def _finding_cells(findings: Any) -> list[tuple[str, ...]]:
    """Return findings, rows of ``Session.check``, as the cells of a table: severity, finding, path,
    message, advice."""
    return [
        (finding.severity, finding.finding, finding.path, finding.message, finding.advice)
        for finding in findings
    ]


@main.command()
@click.argument("path")
@click.option("--format", "form", type=_FORMATS, default="table", show_default=True)
@click.option("--limit", default=100, show_default=True, help="Rows that a table shows at most.")
@click.pass_obj
def events(options: dict[str, Any], path: str, form: str, limit: int) -> None:
    """Show the events of a file, or of all files of a base, delta or delete_delta, at PATH.

    All events are shown, also deleted and invisible rows. `acidsql files` lists the paths.
    """
    from acidsql.terminal.terminal import print_frame

    with _session(options) as session:
        print_frame(session.events(path), form=form, limit=limit)


@main.command()
@click.option(
    "--interval",
    default=2.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="The time between two looks.",
)
@click.option("--once", is_flag=True, help="Print what goes on now, and end.")
@click.pass_obj
def top(options: dict[str, Any], interval: float, once: bool) -> None:
    """Show open transactions, locks and compactions, and who waits for whom; q ends it.

    The command does not start Spark, so it needs --warehouse or --metastore. It opens no
    transaction. If standard output is no terminal, it prints what goes on now, and ends.
    """
    from acidsql.api.opening import open_metastore_without_spark
    from acidsql.terminal.terminal import show_sections, watch_sections
    from acidsql.terminal.top import sections

    try:
        with closing(
            open_metastore_without_spark(options["metastore"], options["warehouse"])
        ) as store:
            if once or not sys.stdout.isatty():
                show_sections(sections(store))
                return
            with _end_on_sigterm():
                watch_sections(store.url, lambda: sections(store), interval, AcidSqlError)
    except AcidSqlError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        return


@main.command()
@click.option("--once", is_flag=True, help="Check all tables once, compact, clean, and end.")
@click.option("--pool", metavar="NAME", help="Compact only entries of this pool.")
@click.pass_obj
def compactor(options: dict[str, Any], once: bool, pool: str | None) -> None:
    """Compact and clean all tables, again and again, until the command is stopped.

    The command is initiator, worker, cleaner and housekeeper in one. Several may run at once, on
    one machine or on many. If the command is stopped while it compacts, the compaction is queued
    again.
    """
    with _session(options) as session:
        try:
            with _end_on_sigterm():
                session.run_compactor(once=once, pool=pool, tell=click.echo)
        except KeyboardInterrupt:
            click.echo("stopped")


@main.command()
@click.pass_obj
def info(options: dict[str, Any]) -> None:
    """Print what to send with a question: versions, kinds of stores, and confs. No secrets.

    The command does not start Spark. With --warehouse or --metastore it looks at the metastore.
    """
    from acidsql.api.info import installation_info

    click.echo(installation_info(options["metastore"], options["warehouse"], options["confs"]))


@main.command("hive-check")
@click.option("--metastore", "url", metavar="URL", help="thrift://host:9083")
@click.option("--database", "databases", multiple=True, metavar="NAME", help="Only this database.")
@click.option("--executors", is_flag=True, help="Try the directories from executors, too.")
@click.pass_obj
def hive_check(
    options: dict[str, Any], url: str | None, databases: tuple[str, ...], executors: bool
) -> None:
    """Say what acidsql can do with a Hive Metastore and with each of its tables.

    The check only reads: it opens no transaction and takes no lock. A password is not an option: it
    is read from the environment variable ACIDSQL_METASTORE_PASSWORD.

    Exit status: 0, all is well. 1, something needs attention; it is marked with a !. 2, acidsql
    cannot use the metastore, or a word of the command is wrong.
    """
    from acidsql.terminal.hive_check import Fact, Level, Verdict, check
    from acidsql.terminal.terminal import print_rows

    url = url or options["metastore"]
    if url is None:
        raise click.UsageError("Give the metastore: acidsql hive-check --metastore thrift://host.")
    if executors and not os.environ.get("SPARK_HOME"):
        use_java()
    reports = list(check(url, databases, (lambda: _spark_session(options)) if executors else None))
    marks = {Level.FINE: "", Level.WARNING: "!", Level.ERROR: "✗"}
    print_rows(
        ("", "about", "fact", "what to do"),
        [
            (marks[fact.level], fact.about, fact.message, fact.advice)
            for fact in reports
            if isinstance(fact, Fact)
        ],
    )
    print_rows(
        ("", "table", "kind", "format", "acidsql"),
        [
            (marks[verdict.level], verdict.table, verdict.kind, verdict.format, verdict.message)
            for verdict in reports
            if isinstance(verdict, Verdict)
        ],
    )
    sys.exit(max(report.level for report in reports))


def _statements_text(text: str | None, file: BinaryIO | None) -> str:
    """Return the statements, decoded from UTF-8, without a byte order mark: ``text`` or, without
    it, what the file or else standard input has, read to its end. Raise UsageError if both are
    given, or the statements are not UTF-8."""
    if text is None:
        raw_text = (file or sys.stdin.buffer).read()
    elif file is None:
        raw_text = text.encode(errors="surrogateescape")
    else:
        raise click.UsageError("Give TEXT or --file, not both.")
    try:
        return raw_text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = raw_text[error.start]
        raise click.UsageError(
            f"The statements are not UTF-8: byte 0x{byte:02x} at offset {error.start}."
        ) from None


def _print_any_character() -> None:
    """Let standard output and standard error write a character that the locale lacks as an escape,
    instead of raising UnicodeEncodeError half-way."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def _end_on_sigterm() -> Iterator[None]:
    """In the block, let SIGTERM raise KeyboardInterrupt, as Ctrl-C does. The handler from before
    comes back at the end."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _session(options: dict[str, Any], compactor: str = "off") -> Iterator[Any]:
    """Yield a new session of acidsql with the options' warehouse, metastore and Spark session, and
    close it after the block; Spark is not stopped. Errors of acidsql and Spark become click's,
    without a traceback. If the server of the option ``remote`` does not answer for five seconds, a
    warning is printed on standard error."""
    if not os.environ.get("SPARK_HOME") and not (options["remote"] or "").startswith("sc:"):
        use_java()
    # Imported here: pyspark takes half a second to import, and --help should not wait for it.
    from pyspark.errors import PySparkException

    import acidsql

    places = {name: options[name] for name in ("warehouse", "metastore")}
    warning_args = (f"{options['remote']} has not answered yet; PySpark goes on trying.",)
    late_warning = threading.Timer(_LATE_S, click.echo, warning_args, {"err": True})
    if options["remote"]:  # PySpark tries for minutes, and says nothing
        late_warning.start()
    try:
        opened = acidsql.connect(_spark_session(options), compactor=compactor, **places)
        late_warning.cancel()
        with opened as session:
            yield session
    except (AcidSqlError, PySparkException) as error:
        raise click.ClickException(str(error)) from None
    finally:
        late_warning.cancel()


def _spark_session(options: dict[str, Any]) -> Any:
    """Return a Spark session with the options ``master``, ``remote`` and ``confs``. Without
    ``remote``, it is a quiet one (``new_spark``), and Spark's UI is off unless a conf says
    otherwise. If a session runs already, return it, with the confs set."""
    from acidsql.storage.spark.session.quiet import new_spark

    confs = {"spark.app.name": "acidsql"}
    if options["master"]:
        confs["spark.master"] = options["master"]
    if options["remote"]:
        confs["spark.remote"] = options["remote"]
    else:
        confs["spark.ui.enabled"] = "false"  # a server has its own
    return new_spark({**confs, **options["confs"]})


def _split_name_and_value(text: str, option: str) -> tuple[str, str]:
    """Split ``NAME=VALUE`` at its first ``=``. Raise BadParameter, for the option, if there is
    none."""
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"'{text}' is not NAME=VALUE", param_hint=option)
    return name, value


if __name__ == "__main__":
    main()
