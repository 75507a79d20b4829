"""``acidsql top``: without Spark, printed once and in a terminal of its own."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing

import pexpect
import pytest
from click.testing import CliRunner

from acidsql.acid.table import TableName
from acidsql.api.opening import open_metastore
from acidsql.errors import MetastoreError
from acidsql.metastore.compaction_queue import CompactionRequest, CompactionType
from acidsql.metastore.interface import LockComponent, LockType
from acidsql.settings import Settings
from acidsql.terminal.cli import main
from acidsql.terminal.terminal import show_sections, watch_sections
from acidsql.terminal.top import Mark, Section, sections

TERMINAL = {"TERM": "xterm-256color"}
SHOWN = {**TERMINAL, "FORCE_COLOR": "1"}  # as if standard output were a terminal
NAME = TableName("default", "t")


@pytest.fixture
def store(tmp_path):
    with closing(open_metastore(None, str(tmp_path / "wh"), Settings())) as store:
        yield store


@pytest.fixture
def waiting(store):
    """Two transactions: the second one waits for the first one's lock."""

    def ask(statement):
        txn_id = store.open_txn(user="me", host="here", agent_info=statement)
        component = LockComponent(LockType.EXCL_WRITE, NAME.database, NAME.name, "p=1")
        store.lock(txn_id, [component], agent_info=statement)
        return txn_id

    return ask("UPDATE t\n SET a = 1"), ask("DELETE FROM t\x1b[31m")


def lines(section):
    return [dict(zip(section.columns, cells, strict=True)) for _, cells in section.lines]


def test_who_waits_for_whom_is_told(store, waiting):
    holder, waiter = map(str, waiting)
    txns, locks, _ = sections(store)
    first, second = lines(txns)  # who waits comes first
    assert (first["txn"], first["waits for"], first["holds up"]) == (waiter, holder, "")
    assert (second["txn"], second["waits for"], second["holds up"]) == (holder, "", waiter)
    assert second["statement"] == "UPDATE t SET a = 1" and second["user"] == "me@here"
    assert [mark for mark, _ in txns.lines] == [Mark.WAITS, Mark.PLAIN]
    found = [(one["state"], one["on"], one["waits for txn"]) for one in lines(locks)]
    assert found == [
        ("waiting", "default.t/p=1", holder),
        ("acquired", "default.t/p=1", ""),
    ]
    store.abort_txn(waiting[0])
    txns, locks, _ = sections(store)  # the waiter has not looked since
    (left,) = lines(txns)
    assert (left["txn"], left["waits for"]) == (waiter, "a lock")
    assert "(aborted: 1)" in txns.title and "(waiting: 1)" in locks.title


def test_a_compaction_without_a_living_worker_is_told(store):
    number = store.compact(CompactionRequest(NAME, "p=1", CompactionType.MINOR, "me", why="x")).id
    (queued,) = lines(sections(store)[2])
    assert (queued["state"], queued["last sign"], queued["why"]) == ("initiated", "", "x")
    worker = store.open_txn(user="me", host="here")
    store.take_next(worker, "here-9", only=number)
    *_, last = sections(store)
    assert lines(last)[0]["last sign"].endswith(" s") and last.lines[0][0] is Mark.WORKS
    store.note_progress(number, worker, "merge 1/2, 1 run, 3.1 MB")
    assert lines(sections(store)[2])[0]["progress"] == "merge 1/2, 1 run, 3.1 MB"
    store.abort_txn(worker)
    assert lines(sections(store)[2])[0]["last sign"] == "gone"


def test_once_prints_whole_lines_and_no_commands_for_the_terminal(tmp_path, store, waiting):
    asked = ["--warehouse", str(tmp_path / "wh"), "top"]
    for words in (asked, [*asked, "--once"]):
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        assert "DELETE FROM t\\x1b[31m" in done.stdout and "\x1b" not in done.stdout


def test_a_place_without_a_metastore_is_refused_and_nothing_is_made(tmp_path):
    done = CliRunner().invoke(main, ["--warehouse", str(tmp_path / "no"), "top"])
    assert done.exit_code == 1 and "no metastore in the warehouse" in done.output
    assert list(tmp_path.iterdir()) == []
    done = CliRunner().invoke(main, ["top"])
    assert done.exit_code == 1 and "Give the warehouse or the metastore" in done.output


def ignore_ctrl_c():
    """As a process that a script has started in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize("end", ["q", "\x03"], ids=["q", "Ctrl-C"])
def test_a_terminal_is_as_before_when_top_ends(tmp_path, store, waiting, end):
    words = ["-m", "acidsql", "--warehouse", str(tmp_path / "wh"), "top", "--interval", "0.1"]
    shown = pexpect.spawn(
        sys.executable, words, env={**os.environ, **TERMINAL}, encoding="utf-8", timeout=60,
        dimensions=(40, 150), preexec_fn=ignore_ctrl_c,
    )  # fmt: skip
    shown.expect_exact("\x1b[?1049h")  # the other screen
    shown.expect("waits for")
    store.abort_txn(waiting[0])
    shown.expect(r"aborted: 1")  # it looks again
    assert not shown.getecho()
    shown.send(end)
    shown.expect_exact("\x1b[?1049l")
    shown.expect(pexpect.EOF)
    assert shown.getecho()
    shown.close()
    assert shown.exitstatus == 0


def test_an_error_is_shown_until_the_metastore_answers_again(monkeypatch, capsys):
    seen = iter(
        [MetastoreError("away\x1b[2J"), [Section("found it", ("a",), [])], KeyboardInterrupt]
    )

    def look():
        one = next(seen)
        if isinstance(one, list):
            return one
        raise one

    for name, value in SHOWN.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(KeyboardInterrupt):
        watch_sections("here", look, 0.0, MetastoreError)
    out = capsys.readouterr().out
    assert "away\\x1b[2J" in out and "found it" in out


def test_a_screen_is_never_too_small_for_what_is_most_interesting(monkeypatch, capsys):
    texts = [(Mark.PLAIN, (str(n), f"line {n} " + "x" * 200)) for n in range(90)]
    found = [Section(f"title {n}", ("number", "text"), texts) for n in range(3)]
    for name, value in {**SHOWN, "LINES": "31", "COLUMNS": "50"}.items():
        monkeypatch.setenv(name, value)
    looks = iter([found, KeyboardInterrupt()])

    def look():
        if isinstance(one := next(looks), list):
            return one
        raise one

    with pytest.raises(KeyboardInterrupt):
        watch_sections("here", look, 0.0, MetastoreError)
    out = capsys.readouterr().out
    shown = [line for line in out.splitlines() if "line 0" in line or "line 1 " in line]
    assert all(f"title {n}" in out for n in range(3)) and out.count("and 87 more") == 3
    assert "line 3" not in out and all("…" in line for line in shown) and len(shown) == 6
    show_sections(found)
    assert "line 89 " + "x" * 20 in capsys.readouterr().out
