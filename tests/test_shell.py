"""The shell: typed by a program, in this process and in a terminal of its own."""

from __future__ import annotations

import os
import stat
import sys
import termios

import pexpect
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from acidsql.api.names import NameLists
from acidsql.terminal import shell
from acidsql.terminal.background import BackgroundAnswers
from acidsql.terminal.completion import StatementCompleter
from acidsql.terminal.shell import Shell, history_path, is_complete

TAB, ENTER, CTRL_C, CTRL_D = "\t", "\r", "\x03", "\x04"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", True),
        ("  \n", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- the end", True),
        ("SELECT 1; SELECT 2", False),
        ("SELECT ';", False),
        ("SELECT `a;", False),
        ("SELECT 1 /* ;", False),
        ("SELECT 1 -- ;", False),
        ("-- only a comment", True),
        ("SELECT $$;", True),
        (r"\d t", True),
        ("quit", True),
        ("exit;", True),
        (";", True),
    ],
)
def test_enter_runs_a_text_that_ends_with_a_semicolon(text, whole):
    assert is_complete(text) is whole


def test_only_their_user_reads_what_was_typed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = history_path()
    assert path == tmp_path / "acidsql" / "history"
    shell._history(path).store_string("SELECT 1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(shell._history(path).load_history_strings()) == ["SELECT 1"]
    path.parent.chmod(0)
    try:
        shell._history(path / "below").store_string("SELECT 2")  # kept in memory
    finally:
        path.parent.chmod(0o700)


@pytest.fixture
def typed(acid, capsys):
    """Types keys and gives what the shell has printed and the errors that it has shown."""

    def typed(*lines):
        keys = "".join(line if line.endswith(CTRL_D) else line + ENTER for line in lines)
        with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
            pipe.send_text(keys if keys.endswith(CTRL_D) else keys + CTRL_D)
            Shell(acid, limit=2).run()
        return capsys.readouterr()

    return typed


def test_statements_and_shortcuts(acid, typed, tmp_path):
    script = tmp_path / "a script.sql"
    script.write_text("INSERT INTO t VALUES (3); INSERT INTO t VALUES (4);")
    told = typed(
        "CREATE TABLE t (id INT);",
        "INSERT INTO t", "  VALUES (1), (2);",
        r"\timing",
        f"\\i {script}",
        "UPDATE t SET id = 0 WHERE id = 1; SELECT * FROM t ORDER BY id;",
        r"\limit 10", "SELECT count(*) AS n FROM t;",
        r"\d", r"\d t", r"\l", r"\?",
        "EXPLAIN DELETE FROM t;",
    )  # fmt: skip
    assert not told.err
    out = told.out
    assert "default.t: 2 inserted · txn" in out and "default.t: 1 updated" in out
    assert out.count("Time: ") == 2 and "Timing is off." in out
    assert "the first 2 rows; there are more" in out and "at most 10 rows" in out
    assert "use a database" in out and "== Physical Plan ==" in out
    assert sorted(row.id for row in acid.table("t").collect()) == [0, 2, 3, 4]


def test_rows_are_shown_in_the_mode_that_was_chosen_here_or_in_a_file(acid, typed, tmp_path):
    file = tmp_path / "some rows.csv"
    shown = typed(
        "CREATE TABLE t (id INT, v STRING); INSERT INTO t VALUES (1, NULL), (2, 'b');",
        r"\x", "SELECT * FROM t ORDER BY id;", r"\x",
        r"\mode markdown", "SELECT * FROM t ORDER BY id;",
        r"\mode CSV", f"\\o {file}", "SELECT * FROM t ORDER BY id;", "DELETE FROM t WHERE id = 1;",
        r"\o", "SELECT count(*) AS n FROM t;", r"\mode", r"\mode html", r"\o /no/such/place/x",
    )  # fmt: skip
    assert "─[ row 1 ]" in shown.out and "\nv  | NULL\n" in shown.out
    assert "| 1 | NULL |\n| 2 | b |\n" in shown.out
    assert file.read_text() == "id,v\n1,\n2,b\n"
    assert "1 deleted" in shown.out + shown.err and "\nn\n1\n" in shown.out
    assert "Rows are shown as csv." in shown.out
    assert "The mode is table, csv, json or markdown, not 'html'." in shown.err
    assert "No such file" in shown.err


def test_help_has_psqls_names_too(typed):
    assert typed(r"\help").out.count("show each column on a line of its own") == 1
    assert "show each column" in typed(r"\h").out


def test_a_file_of_statements_names_its_line_in_an_error(acid, typed, tmp_path):
    script = tmp_path / "two.sql"
    script.write_text("SELECT 1;\n\nDELETE FROM\n;")
    assert "two.sql, line 3, statement 2 of 2: [PARSE_SYNTAX_ERROR]" in typed(f"\\i {script}").err


def test_an_error_has_a_caret_and_ends_the_line_not_the_shell(acid, typed):
    told = typed(
        "CREATE TABLE t (id INT); INSERT INTO t VALUES ('x'); INSERT INTO t VALUES (1);",
        "DELETE FROM t WERE id = 1;",
        r"\nonsense", r"\i /no/such/file", r"\d nosuch",
        "INSERT INTO t VALUES (2);",
        "quit", "INSERT INTO t VALUES (3);",
    )  # fmt: skip
    assert [row.id for row in acid.table("t").collect()] == [2]
    assert "^" in told.err and "There is no shortcut \\nonsense" in told.err
    assert "No such file" in told.err and "[TABLE_OR_VIEW_NOT_FOUND]" in told.err
    assert "Traceback" not in told.err


def test_whatever_fails_neither_the_shell_nor_the_transaction_ends(acid, typed, tmp_path):
    latin = tmp_path / "latin1.sql"
    latin.write_bytes("SELECT 'é';".encode("latin-1"))
    told = typed(
        "CREATE TABLE t (id INT);", "BEGIN;", "INSERT INTO t VALUES (1);",
        "SELECT $$;", f"\\i {latin}", r"\i ~nosuchuser/x.sql", r"\d `", "SELECT * FROM ``;",
        "-- only a comment",
        r"\limit 3000000000", "SELECT * FROM t;", "COMMIT;",
        "SELECT decode(unhex('411B5B324A42'), 'utf-8') AS odd;",
    )  # fmt: skip
    assert "1 row" in told.out and "rolled back" not in told.out
    assert "A\\x1b[2JB" in told.out and "\x1b[2J" not in told.out
    assert "UnicodeDecodeError" in told.err and "$" in told.err and "RuntimeError" in told.err
    assert [row.id for row in acid.table("t").collect()] == [1]


@pytest.mark.parametrize("done", [False, True])
def test_an_interrupt_after_the_commit_does_not_say_that_the_statement_is_undone(
    acid, typed, monkeypatch, done
):
    def interrupted(session, text, **_):
        if done:
            session.sql(text)
        raise KeyboardInterrupt

    acid.sql("CREATE TABLE t (id INT)")
    monkeypatch.setattr(shell, "run", interrupted)
    told = typed("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2);")
    assert ("The statement was done before." in told.err) is done
    assert ("undone, unless its COMMIT had begun" in told.err) is not done
    assert acid.table("t").count() == int(done)


def test_the_prompt_names_the_database_and_the_transaction(acid, typed, monkeypatch):
    prompts = []
    monkeypatch.setattr(
        Shell,
        "_prompt_text",
        lambda self, own=Shell._prompt_text: prompts.append(own(self)) or prompts[-1],
    )
    told = typed(
        "CREATE DATABASE d;", r"\c d", "CREATE TABLE t (id INT);", "BEGIN;",
        "INSERT INTO t VALUES (1);", "INSERT INTO nosuch VALUES (1);", "SELECT * FROM t;",
    )  # fmt: skip
    assert prompts[:4] == ["default> ", "default> ", "d> ", "d> "]
    assert len({*prompts[4:]}) == 1 and prompts[4].startswith("d (txn ")
    assert "in txn" in told.out and "1 row" in told.out
    assert told.out.endswith("BEGIN without COMMIT: its changes are rolled back.\n")
    acid.sql("ROLLBACK")
    acid.sql("USE default")
    acid.sql("DROP DATABASE d CASCADE")


def test_words_are_completed(acid, spark):
    acid.sql("CREATE TABLE planes (tailnum STRING, seats INT) PARTITIONED BY (`the year` INT)")
    acid.sql("CREATE TABLE places (name STRING)")
    acid.sql("CREATE VIEW plain AS SELECT seats AS chairs FROM planes")
    complete = StatementCompleter(NameLists(acid), BackgroundAnswers(wait_s=60))

    def words(text):
        before, _, after = text.partition("|")
        start, found = complete.completions(before + after, len(before))
        assert before[start:].isidentifier() or before[start:] == ""
        return found

    assert words("SELECT * FROM pl|") == ["places", "plain", "planes"]
    assert words("update PLAN|") == ["planes"]
    assert words("SELECT * FROM default.pla|") == ["places", "plain", "planes"]
    assert "seats" in words("SELECT sea| FROM planes")
    assert words("SELECT p.| FROM planes AS p, places WHERE") == ["`the year`", "seats", "tailnum"]
    assert words("SELECT p.the| FROM planes p") == ["`the year`"]
    assert words("SELECT x FROM default.planes p JOIN places q ON p.tailnum = q.|") == ["name"]
    assert words("SELECT plain.| FROM plain") == ["chairs"]
    assert words("MERGE INTO planes t USING places s ON t.sea|") == ["seats"]
    assert "WHERE" in words("DELETE FROM planes WH|")
    assert "RETURNING" in words("DELETE FROM planes RET|")
    assert words("USE def|") == ["default"]
    quoted = "SELECT `th|` FROM planes", "SELECT x FROM `PL|", "SELECT planes.`| FROM planes"
    places = [text.partition("|") for text in quoted]
    found = [complete.completions(before + after, len(before)) for before, _, after in places]
    assert found[0] == (7, ["`the year"])
    assert found[1] == (14, ["`places`", "`plain`", "`planes`"])
    assert found[2] == (14, ["`seats`", "`tailnum`", "`the year`"])
    assert words("SELECT 'it`s FROM pl|") == words("SELECT 1 -- `pl|") == []
    # Nothing in strings and comments, and nothing of another statement.
    assert words("SELECT 'FROM pl|") == words("SELECT * FROM planes -- se|") == []
    assert "seats" not in words("SELECT * FROM planes; SELECT sea|")
    assert "seats" in words("SELECT * FROM planes WHERE sea| = 'open")
    assert words("SELECT nosuch.| FROM nosuch") == words("SELECT * FROM nosuch.|") == []


@pytest.mark.slow
@pytest.mark.classic
def test_in_a_terminal_tab_completes_names_and_ctrl_c_undoes_a_statement(acid, tmp_path):
    """The shell is a process of its own, and its terminal sends a real signal."""
    acid.sql("CREATE TABLE planes (id BIGINT)")
    environment = {
        **os.environ, "JAVA_TOOL_OPTIONS": "-Xlog:disable", "PYSPARK_PYTHON": sys.executable,
        "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "PAGER": "cat", "NO_COLOR": "1",
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }  # fmt: skip
    words = ["-m", "acidsql", "--master", "local[1]", "--warehouse", acid.warehouse]
    with pexpect.spawn(
        sys.executable, words, env=environment, encoding="utf-8", dimensions=(9, 100), timeout=120
    ) as terminal:
        terminal.expect("default>")
        terminal.send(f"INSERT INTO planes VALUES (1);{ENTER}")
        terminal.expect("1 inserted")
        terminal.expect("default>")
        terminal.send(f"INSERT INTO planes SELECT sum(id) FROM range(1000000000000);{ENTER}")
        while not any("sum(id)" in txn.agent_info for txn in acid.metastore.show_txns()):
            assert terminal.isalive()
        terminal.send(CTRL_C)
        terminal.expect("Interrupted. The statement is undone")
        terminal.expect("default>")
        terminal.send(f"UPDATE plan{TAB}")
        while terminal.expect(["es", pexpect.TIMEOUT], timeout=5):  # a busy machine
            terminal.send(TAB)
        terminal.send(f" SET id = 5;{ENTER}")  # no lock is left
        terminal.expect("1 updated")
        terminal.send(f"SELECT id FROM planes LATERAL VIEW explode(sequence(1, 10)) e;{ENTER}")
        terminal.expect("10 rows")  # more lines than the terminal has: the pager shows them
        terminal.expect("default>")
        terminal.send(f"SELEC{CTRL_C}quit{ENTER}")
        terminal.expect(pexpect.EOF)
    assert terminal.wait() == 0
    assert [row.id for row in acid.table("planes").collect()] == [5]


# The shell, over a store that takes ten minutes to list tables.
SLOW_STORE = """
import time
from acidsql.api.names import NameLists
from acidsql.terminal.cli import main
NameLists.acid_tables = lambda self, database=None: time.sleep(600) or []
main()
"""


def _echo(terminal) -> bool:
    """Whether the terminal itself shows what is typed. At a prompt it does not: the prompt does."""
    return bool(termios.tcgetattr(terminal.child_fd)[3] & termios.ECHO)


@pytest.mark.slow
@pytest.mark.classic
def test_ctrl_c_gives_a_clean_prompt_wherever_it_is_typed(acid, spark, tmp_path):
    acid.sql("CREATE TABLE planes (id BIGINT)")
    acid.sql("INSERT INTO planes VALUES (1)")
    program = tmp_path / "slow.py"
    program.write_text(SLOW_STORE)
    environment = {
        **os.environ, "PYSPARK_PYTHON": sys.executable, "XDG_STATE_HOME": str(tmp_path),
        "TERM": "xterm", "PAGER": "cat", "NO_COLOR": "1", "PROMPT_TOOLKIT_NO_CPR": "1",
    }  # fmt: skip
    words = [str(program), "--master", "local[1]", "--warehouse", acid.warehouse]

    with pexpect.spawn(
        sys.executable, words, env=environment, encoding="utf-8", dimensions=(30, 100), timeout=120
    ) as terminal:
        assert _echo(terminal)
        terminal.expect("Each statement ends with")  # Spark has started
        assert "WARN" not in terminal.before and "log4j" not in terminal.before

        def expect_prompt(number: int) -> None:
            """A prompt comes long before the store answers, and the next statement is run."""
            terminal.expect("default>")
            terminal.send(f"SELECT {number} + 1000 AS n;{ENTER}")
            terminal.expect(f" {number + 1000} ")
            terminal.expect("default>")
            assert not _echo(terminal)

        expect_prompt(1)
        terminal.send(f"SELEC{TAB}")
        terminal.expect("SELECT")  # keywords need no store
        terminal.send(f" * FROM pla{TAB}")
        terminal.send(CTRL_C)
        expect_prompt(2)
        terminal.send(f"DELETE FROM planes{CTRL_C}")
        expect_prompt(3)
        terminal.send(f"SELECT * FROM pla{TAB}{TAB}nes;{ENTER}")  # a late answer holds up nothing
        terminal.expect("1 row")
        terminal.send(f"SELECT sum(id) FROM range(1000000000000);{ENTER}")
        terminal.expect("tasks are done")
        terminal.send(CTRL_C)
        terminal.expect("Interrupted")
        expect_prompt(4)
        with acid.transaction():
            acid.sql("UPDATE planes SET id = 2")
            terminal.send(f"UPDATE planes SET id = 3;{ENTER}")
            terminal.expect("has waited for")
            terminal.send(CTRL_C)
            terminal.expect("Interrupted. The statement is undone")
            expect_prompt(5)
        terminal.send(f"UPDATE planes SET id = id + 1;{ENTER}")
        terminal.expect("1 updated")
        terminal.expect("default>")
        terminal.send(f"quit{ENTER}")
        terminal.expect(pexpect.EOF)
        assert _echo(terminal)
    assert terminal.wait() == 0
    assert [row.id for row in acid.table("planes").collect()] == [3]
