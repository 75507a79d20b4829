"""The magics, in IPython's own shell. A fake session is used where Spark does not matter."""

from __future__ import annotations

import logging
import re
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from pyspark.sql import DataFrame

import acidsql
from acidsql.api.names import NameLists
from acidsql.errors import SqlSyntaxError
from acidsql.plan.analysis.lower import no_log
from acidsql.statements.context.result import Counts, Receipt
from acidsql.terminal import magic
from acidsql.terminal.background import BackgroundAnswers
from acidsql.terminal.completion import StatementCompleter
from acidsql.terminal.render import FirstRows


class PaperFrame:
    columns = ("n",)


class PaperSession:
    """Notes its calls. INSERT leaves a receipt, a query returns a frame."""

    def __init__(self) -> None:
        self.last: Receipt | None = None
        self.told: list[tuple[str, Any]] = []

    def sql(self, text: str, args: Any = None) -> PaperFrame:
        self.told.append((text, args))
        if text.startswith("BAD"):
            raise SqlSyntaxError("Not SQL.", text, 0, 3)
        if text.startswith("LONG"):
            raise KeyboardInterrupt
        if text.startswith("INSERT"):
            counts = (Counts("default.t", inserted=1),)
            returns = "RETURNING" in text
            self.last = Receipt(text, counts, txn_id=len(self.told), returns_rows=returns)
        return PaperFrame()


@pytest.fixture(scope="module")
def shell() -> InteractiveShell:
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "acidsql")
    return shell


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> PaperSession:
    session = PaperSession()
    monkeypatch.setattr(magic, "newest_session", lambda: session)

    def two_rows(frame: PaperFrame, limit: int) -> FirstRows:
        return FirstRows(frame, ("n",), (("1",),) * min(limit, 2), False, (True,))

    monkeypatch.setattr(magic, "first_rows", two_rows)
    return session


def test_returned_rows_are_shown_below_their_receipt(shell, paper, capsys):
    shown = shell.run_cell_magic("acidsql", "", "INSERT INTO t VALUES (1) RETURNING n")
    assert isinstance(shown, FirstRows)
    assert "1 inserted" in capsys.readouterr().out


def test_a_preview_shows_old_and_new_values_and_changes_nothing(shell, acid):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("INSERT INTO t VALUES (1, '<b>'), (2, NULL)")
    cell = "UPDATE t SET v = 'x' WHERE id < :most; DELETE FROM t WHERE id = 9"
    shell.user_ns["most"] = 2
    nothing = shell.run_cell_magic("acidsql", "--preview -o frame", cell)
    assert str(nothing) == "(nothing would change)"
    assert shell.user_ns["frame"].count() == 0
    update = shell.run_line_magic("acidsql", "--preview UPDATE t SET v = 'x'")
    assert update.counts == {"inserted": 0, "updated": 2, "deleted": 0}
    assert "update  1   <b> → x" in str(update)
    assert "update  2   NULL → x" in str(update)
    assert "<del>&lt;b&gt;</del> <b>x</b>" in update._repr_html_()
    first = shell.run_line_magic("acidsql", "--preview --limit 1 DELETE FROM t")
    assert str(first).endswith("(would be 2 deleted; the first 1 changes are shown)")
    assert acid.table("t").count() == 2
    assert shell.run_line_magic("acidsql", "--preview kept << DELETE FROM t") is None
    assert shell.user_ns["kept"].count() == 2
    with pytest.raises(UsageError, match="EXPLAIN|Expected INSERT"):
        shell.run_line_magic("acidsql", "--preview SELECT 1")


def test_the_health_of_a_table_is_a_picture_and_a_frame(shell, acid):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1), (2)")
    result = shell.run_cell("%acidsql --health -o found t;").result
    data, _ = shell.display_formatter.format(result)
    assert data["text/html"].startswith("<svg") and data["text/plain"].startswith(
        "default.t: 2 rows"
    )
    assert shell.user_ns["found"] is result and result.where("deltas = 1").count() == 1
    every = shell.run_line_magic("acidsql", "--health --format pandas")
    assert every["table"].tolist() == ["default.t"]
    assert shell.run_line_magic("acidsql", "--health --quiet t") is None
    with pytest.raises(UsageError, match="no ACID table"):
        shell.run_line_magic("acidsql", "--health nobody")


def test_a_cell_runs_its_statements_in_turn(shell, paper, capsys):
    last = shell.run_cell_magic(
        "acidsql", "", "INSERT INTO t VALUES ('a;b'); -- ;\nSELECT n\nFROM t;\n"
    )
    assert [text for text, _ in paper.told] == ["INSERT INTO t VALUES ('a;b')", "SELECT n\nFROM t"]
    assert "1 inserted · txn 1" in capsys.readouterr().out
    assert isinstance(last, FirstRows)


def test_the_last_outcome_is_the_cells_value(shell, paper):
    result = shell.run_cell("%acidsql INSERT INTO t VALUES (1)")
    assert isinstance(result.result, Receipt)
    assert shell.run_line_magic("acidsql", "--limit 1 SELECT n FROM t").rows == (("1",),)


def test_the_quotes_around_an_option_are_no_part_of_its_value(shell, paper):
    line = """-o "kept" --limit '1' --param 'note=two words' --param n='5' SELECT :note, :n"""
    assert shell.run_line_magic("acidsql", line).rows == (("1",),)
    assert isinstance(shell.user_ns["kept"], PaperFrame)
    assert paper.told[0][1] == {"note": "two words", "n": "5"}


def test_a_parameter_that_looks_like_a_dict_and_is_none_stays_a_text(shell, paper):
    shell.run_line_magic("acidsql", "--param n={[]:1} SELECT :n")
    assert paper.told[0][1] == {"n": "{[]:1}"}


@pytest.mark.parametrize("line", ["x << SELECT 1", "-o x SELECT 1", "--out=x --quiet SELECT 1"])
def test_a_frame_is_kept_under_a_name(shell, paper, line):
    shell.user_ns.pop("x", None)
    shown = shell.run_line_magic("acidsql", line)
    assert isinstance(shell.user_ns["x"], PaperFrame)
    assert (shown is None) == (not line.startswith("-o"))
    assert paper.told == [("SELECT 1", None)]


def test_a_name_before_any_statement_of_a_cell(shell, paper):
    shell.run_cell_magic("acidsql", "a << SELECT 1;", "b << SELECT 2; SELECT 3")
    assert {"a", "b"} <= set(shell.user_ns)
    assert [text.strip() for text, _ in paper.told] == ["SELECT 1", "SELECT 2", "SELECT 3"]


def test_names_are_bound(shell, paper):
    shell.user_ns.update(n=5, day="mine", frame=PaperFrame())
    shell.run_line_magic(
        "acidsql",
        "--param day=2013-01-01 --param note='two words' "
        "SELECT :n, :day, :note, v:n, ':n', :frame, x::int",
    )
    assert paper.told[0][1] == {"n": 5, "day": "2013-01-01", "note": "two words"}


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (np.int64(5), "int", "5"),
        (np.float32(0.5), "double", "0.5"),
        (np.bool_(True), "boolean", "true"),
        (np.str_("x"), "string", "x"),
        (np.datetime64("2020-01-02"), "date", "2020-01-02"),
        (np.datetime64("2020-01-02T03:04:05.123456789"), None, "2020-01-02 03:04:05.123456"),
        (np.datetime64("NaT"), "void", None),
        (pd.Timestamp("2020-01-02 03:04:05.123456"), None, "2020-01-02 03:04:05.123456"),
        (pd.NaT, "void", None),
        (pd.NA, "void", None),
        (None, "void", None),
        (2**70, "decimal", str(2**70)),
        (-(2**63), "bigint", str(-(2**63))),
        ([np.int64(1)], "array<", "[1]"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_python_programs_have(shell, acid, value, kind, shown):
    shell.user_ns["value"] = value
    rows = shell.run_line_magic("acidsql", "SELECT :value AS v, typeof(:value) AS t")
    ((text, found),) = rows.rows
    assert text == shown
    assert kind is None or found.startswith(kind)
    assert acid.sql("SELECT string(?) AS v", [value]).collect()[0].v == shown


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("-Infinity"), 10**38])
def test_a_value_that_sql_has_not_is_refused_by_name(shell, acid, value):
    shell.user_ns["value"] = value
    with pytest.raises(UsageError, match=r"INVALID_SQL_ARG.*No type of SQL's has the value"):
        shell.run_line_magic("acidsql", "SELECT :value AS v")


def test_a_notebook_keeps_the_completer_of_the_newest_session(monkeypatch):
    """It knows the answers that came too late for the last Tab."""
    first, second = PaperSession(), PaperSession()
    assert magic._completer(first) is magic._completer(first)
    assert magic._completer(second) is not magic._completer(first)


def test_a_noisy_spark_of_others_is_told_once_and_made_quiet_only_if_asked(
    shell, paper, monkeypatch
):
    shown, quieted = [], []
    paper.spark = "Spark"
    monkeypatch.setattr(magic, "display", lambda content: shown.append(content.data))
    monkeypatch.setattr(magic, "is_noisy", lambda spark: not quieted)
    monkeypatch.setattr(magic, "quiet_spark", quieted.append)
    monkeypatch.setattr(magic, "show_progress", lambda *_: nullcontext())
    magics = magic.AcidSqlMagics(shell)
    magics.acidsql("--quiet INSERT INTO t VALUES (1)")
    assert shown == []  # IPython in a terminal
    monkeypatch.setattr(shell, "kernel", object(), raising=False)
    for _ in range(2):
        magics.acidsql("--quiet INSERT INTO t VALUES (1)")
    (hint,) = shown
    assert "%acidsql --quiet-spark" in hint and quieted == []
    assert magics.acidsql("--quiet-spark") is None
    assert quieted == ["Spark"] and len(paper.told) == 3


def test_quiet_shows_nothing(shell, paper, capsys):
    assert shell.run_cell_magic("acidsql", "--quiet", "INSERT INTO t VALUES (1); SELECT 1") is None
    assert capsys.readouterr().out == ""


def test_an_error_has_no_traceback_and_stops_the_cell(shell, paper, capsys):
    result = shell.run_cell("%%acidsql\nINSERT INTO t VALUES (1); BAD; INSERT INTO t VALUES (2)")
    assert isinstance(result.error_in_exec, UsageError)
    assert len(paper.told) == 2
    out, err = capsys.readouterr()
    place = "line 2, statement 2 of 3: [PARSE_SYNTAX_ERROR] Not SQL. (line 2, column 27)"
    assert place in err
    assert "1 inserted" in out
    assert "Traceback" not in out + err


def test_an_interrupt_has_no_traceback_and_tells_what_became_of_its_statement(
    shell, paper, capsys, caplog
):
    result = shell.run_cell("%%acidsql\nINSERT INTO t VALUES (1); LONG; INSERT INTO t VALUES (2)")
    assert isinstance(result.error_in_exec, UsageError) and len(paper.told) == 2
    out, err = capsys.readouterr()
    assert "line 2, statement 2 of 3: Interrupted. The statement is undone, unless" in err
    assert "1 inserted" in out and "Traceback" not in out + err
    with no_log():
        logging.getLogger().error("KeyboardInterrupt while sending command.")  # as py4j does
        logging.getLogger("py4j.clientserver").error("another error")
    assert [one.message for one in caplog.records] == ["another error"]


@pytest.mark.parametrize(
    "line", ["--lmit 3 SELECT 1", "--limit x SELECT 1", "--param x SELECT 1", "--format x SELECT 1"]
)
def test_a_wrong_option_is_refused(shell, paper, line):
    with pytest.raises(UsageError):
        shell.run_line_magic("acidsql", line)
    assert paper.told == []


def test_rows_as_text_and_html():
    rows = FirstRows(None, ("name", "n"), (("a<b", "1"), (None, "22")), True, (False, True))
    assert str(rows).splitlines() == [
        "name   n", "────  ──", "a<b    1", "NULL  22", "(the first 2 rows; there are more)",
    ]  # fmt: skip
    assert '<td style="text-align: left; white-space: nowrap">a&lt;b</td>' in rows._repr_html_()
    assert '<td style="text-align: right; white-space: nowrap">22</td>' in rows._repr_html_()
    assert '<th style="text-align: right">n</th>' in rows._repr_html_()
    assert "<i>NULL</i>" in rows._repr_html_()


def test_a_text_of_several_lines_is_shown_as_it_is():
    plan = "== Plan ==\n  Scan <t>" + " " * 100 + "wide"
    shown = FirstRows(None, ("plan",), ((plan,),), False, (False,))
    assert str(shown) == plan
    assert "  Scan &lt;t&gt;" + " " * 100 + "wide</pre>" in shown._repr_html_()
    notes = FirstRows(None, ("note",), (("a\nb",), ("",), (None,)), True, (False,))
    assert str(notes).splitlines() == [
        "note", "────", "a b", "", "NULL", "(the first 3 rows; there are more)",
    ]  # fmt: skip


def test_a_statement_at_the_end_of_a_cell_is_shown_as_its_receipt(shell, acid, capsys):
    made = acid.sql("CREATE TABLE t (id INT)")
    assert str(acid.last) == repr(made)
    assert made.columns == []
    with acid.transaction():
        acid.sql("INSERT INTO t VALUES (1), (2)")
        shell.user_ns["done"] = acid.sql("UPDATE t SET id = 3 WHERE id = 2")
        number = acid.last.txn_id
        assert repr(acid).endswith(f"in txn {number})")
        shell.run_cell("done")
    shown = capsys.readouterr().out
    assert f"default.t: 1 updated · in txn {number}, 2 statements" in shown
    done = shell.user_ns["done"]
    assert "1 updated" in done._repr_html_()
    assert [tuple(row)[:3] for row in done.collect()] == [(1, 0, 1)]
    assert "receipt" not in repr(done.select("txn_id"))  # a DataFrame as any other
    assert repr(acid) == f"Session({acid.warehouse}, {acid.metastore.url}, Spark " + (
        f"{acid.spark.version})"
    )


TEXTS = (
    "EXPLAIN UPDATE t SET id = 2", "EXPLAIN SELECT * FROM t", "EXPLAIN SELECT 1",
    "SHOW CREATE TABLE t", "EXPLAIN ALTER TABLE t COMPACT 'major'", "DESCRIBE FUNCTION upper",
)  # fmt: skip


@pytest.mark.parametrize("statement", TEXTS)
def test_a_text_of_several_lines_is_shown_whole_and_is_a_frame(acid, statement):
    acid.sql("CREATE TABLE t (id INT)")
    frame = acid.sql(statement)
    texts = [row[0] for row in frame.collect()]
    assert repr(frame) == "\n".join(texts) and "\n" in repr(frame)
    assert frame._repr_html_().startswith('<pre class="acidsql-text"')
    assert isinstance(frame, DataFrame) and frame.count() == len(texts)
    assert "\n" not in repr(frame.limit(1))  # a new DataFrame is PySpark's own


def test_the_json_of_a_table_of_sparks_is_shown_whole(acid, spark):
    spark.sql("CREATE TABLE plain_json (id INT) USING parquet")
    try:
        frame = acid.sql("DESCRIBE TABLE EXTENDED plain_json AS JSON")
        ((text,),) = frame.collect()
        assert repr(frame) == text and text.startswith('{"table_name":"plain_json"')
    finally:
        spark.sql("DROP TABLE plain_json")


SILENT = (
    "USE default", "CREATE TEMPORARY VIEW quiet_view AS SELECT 1 AS n",
    "CREATE TEMPORARY VIEW other_quiet_view AS SELECT * FROM t", "BEGIN", "ROLLBACK",
)  # fmt: skip


def test_a_statement_without_rows_and_columns_shows_nothing_but_its_receipt(shell, acid, capsys):
    acid.sql("CREATE TABLE t (id INT)").show()
    assert capsys.readouterr().out == f"{acid.last}\n"
    for statement in SILENT:
        frame = acid.sql(statement)
        frame.show()
        assert (repr(frame), frame._repr_html_(), frame.columns) == ("", "", [])
        shell.user_ns["frame"] = frame
        shell.run_cell("frame", silent=False)
        assert "+" not in capsys.readouterr().out
    acid.sql("SHOW TABLES").show()
    assert "tableName" in capsys.readouterr().out
    assert "key" in repr(acid.sql("SET spark.sql.shuffle.partitions"))  # it has columns


def test_times_are_shown_as_times(shell, acid):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    with acid.transaction():
        acid.sql("INSERT INTO t VALUES (2)")
        for statement in ("SHOW TRANSACTIONS", "show locks t", "SHOW COMPACTIONS"):
            shown = shell.run_line_magic("acidsql", statement)
            values = [value or "" for row in shown.rows for value in row]
            assert any(re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d", one) for one in values)
            assert not any(re.fullmatch(r"\d{13}", one) for one in values)


def test_with_a_real_session(shell, acid, capfd):
    assert acidsql.api.session.newest_session() is acid
    shell.user_ns["least"] = 2
    rows = shell.run_cell_magic(
        "acidsql",
        "--limit 1",
        """CREATE TABLE m (n INT, b BINARY, d DATE);
           INSERT INTO m VALUES (1, X'00ff', DATE'0001-01-01'), (2, NULL, NULL), (3, NULL, NULL);
           big << SELECT n FROM m WHERE n >= :least;
           SELECT n, n, b, d FROM m ORDER BY n""",
    )
    assert rows.rows == (("1", "1", "0x00FF", "0001-01-01"),)
    assert rows.more
    assert sorted(row.n for row in shell.user_ns["big"].collect()) == [2, 3]
    with pytest.raises(UsageError, match="TABLE_OR_VIEW_NOT_FOUND"):
        shell.run_line_magic("acidsql", "SELECT * FROM nowhere")
    assert "SQLQueryContextLogger" not in capfd.readouterr().err  # Spark's log of the same error


def test_rows_in_other_forms(shell, acid):
    acid.sql("CREATE TABLE t (id INT, s STRING)")
    acid.sql("INSERT INTO t VALUES (1, 'a'), (2, NULL), (3, 'c')")
    query = "SELECT * FROM t ORDER BY id"
    shown = shell.run_line_magic("acidsql", f"--format pandas {query}")
    assert list(shown["id"]) == [1, 2, 3] and shown["s"][1] is None
    shown = shell.run_line_magic("acidsql", f"--format=arrow --limit 2 {query}")
    assert shown.to_pylist() == [{"id": 1, "s": "a"}, {"id": 2, "s": None}]
    assert shell.run_line_magic("acidsql", f"--format spark {query}").count() == 3
    receipt = shell.run_line_magic("acidsql", "--format arrow DELETE FROM t WHERE id = 3")
    assert "1 deleted" in str(receipt)
    returned = shell.run_line_magic("acidsql", "--format arrow DELETE FROM t RETURNING id")
    assert sorted(returned.to_pydict()["id"]) == [1, 2]


def test_a_cell_chooses_its_session(shell, acid, spark, tmp_path):
    acid.sql("CREATE TABLE t (id INT)")
    url = f"sqlite:///{tmp_path / 'other.db'}"
    with acidsql.connect(spark, warehouse=str(tmp_path / "other"), metastore=url) as other:
        shell.user_ns |= {"first": acid, "number": 5}
        for option in ("-s first", "--session=first"):
            shown = shell.run_line_magic("acidsql", f"{option} SHOW TABLES")
            assert [row[1] for row in shown.rows] == ["t"]
        assert shell.run_line_magic("acidsql", "SHOW TABLES").rows == ()
        for name in ("number", "nobody"):
            with pytest.raises(UsageError, match=f"the variable '{name}' holds no session"):
                shell.run_line_magic("acidsql", f"-s {name} SELECT 1")
        assert other.metastore.tables("default") == []


def test_a_cell_connects_to_a_metastore_once(shell, monkeypatch):
    opened = []

    class Session(PaperSession):
        closed = False

    def connect(metastore):
        opened.append((metastore, Session()))
        return opened[-1][1]

    monkeypatch.setattr(magic, "connect", connect)
    for word in ("SET a=1", "SET b=2"):
        shell.run_line_magic("acidsql", f"--quiet --connect 'thrift://h1:9083,h2:9083' {word}")
    ((url, session),) = opened
    assert url == "thrift://h1:9083,h2:9083" and len(session.told) == 2
    session.closed = True
    shell.run_line_magic("acidsql", "--quiet --connect thrift://h1:9083,h2:9083 SET a=1")
    assert len(opened) == 2


def completions(shell, code, at=None):
    with provisionalcompleter():
        found = list(shell.Completer.completions(code, len(code) if at is None else at))
    return [code[: one.start] + one.text for one in found]


@pytest.mark.parametrize("uses_jedi", [True, False])
def test_methods_and_their_arguments_are_completed(shell, acid, monkeypatch, uses_jedi):
    monkeypatch.setattr(shell.Completer, "use_jedi", uses_jedi)
    monkeypatch.setitem(shell.user_ns, "acid", acid)
    monkeypatch.setitem(shell.user_ns, "acidsql", acidsql)
    assert {"acid.sql", "acid.merge_into", "acid.health"} <= {*completions(shell, "acid.")}
    assert completions(shell, "acid.merge_i") == ["acid.merge_into"]
    assert "acid.insert_into(overwrite=" in completions(shell, "acid.insert_into(over")
    assert {f"acidsql.{name}" for name in acidsql.__all__ if not name.startswith("_")} <= {
        *completions(shell, "acidsql.")
    }


def test_words_of_a_cell_are_completed(shell, acid, monkeypatch):
    acid.sql("CREATE TABLE planes (tailnum STRING, seats INT)")
    patient = StatementCompleter(NameLists(acid), BackgroundAnswers(wait_s=60))
    monkeypatch.setattr(magic, "_completer", lambda session: patient)

    def completed(code, at=None):
        return completions(shell, code, at)

    cell = "%%acidsql --limit 3\nSELECT *\nFROM pla"
    assert completed(cell) == [cell + "nes"]
    cell = "%%acidsql\nSELECT sea\nFROM planes"
    assert completed(cell, cell.index("\nFROM")) == ["%%acidsql\nSELECT seats"]
    assert completed("x = 1\n%acidsql DELETE FROM planes WHERE tail") == [
        "x = 1\n%acidsql DELETE FROM planes WHERE tailnum"
    ]
    assert all("planes" not in one for one in completed("pla"))
