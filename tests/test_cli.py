"""The command line, through click's runner; it joins the tests' Spark."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from acidsql.cli import main


def test_help_says_what_there_is():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for word in (
        "sql",
        "tables",
        "txns",
        "files",
        "events",
        "compactor",
        "--warehouse",
        "--metastore",
        "--conf",
    ):
        assert word in result.output


@pytest.mark.parametrize(
    "words", [["--conf", "x", "tables"], ["sql", "SELECT 1", "--param", "x"], ["nonsense"]]
)
def test_wrong_words_are_refused(words):
    assert CliRunner().invoke(main, words).exit_code == 2


@pytest.fixture
def run(spark, tmp_path):
    def run(*words, **keywords):
        return CliRunner().invoke(main, ["--warehouse", str(tmp_path / "wh"), *words], **keywords)

    return run


def test_statements_and_what_they_say(run, tmp_path):
    text = "CREATE TABLE c (n INT, s STRING); INSERT INTO c VALUES (1, '[x]'), (2, NULL)"
    done = run("sql", text)
    assert done.exit_code == 0, done.output
    assert "default.c: 2 inserted · txn" in done.stdout

    shown = run("sql", "SELECT * FROM c ORDER BY n")
    assert "[x]" in shown.stdout
    assert "NULL" in shown.stdout
    assert "2 rows" in shown.stdout

    as_csv = run("sql", "--format", "csv", "-f", "-", input="SELECT * FROM c ORDER BY n;")
    assert as_csv.stdout == "n,s\n1,[x]\n2,\n"

    script = tmp_path / "s.sql"
    script.write_text("UPDATE c SET s = :s WHERE n = 2; SELECT * FROM c ORDER BY n")
    as_json = run("sql", "--format", "json", "--param", "s=new", "--file", str(script))
    assert [json.loads(line) for line in as_json.stdout.splitlines()] == [
        {"n": 1, "s": "[x]"},
        {"n": 2, "s": "new"},
    ]
    assert "1 updated" in as_json.stderr

    assert "delta_0000001_0000001_0000" in run("files", "c").stdout
    bucket = str(tmp_path / "wh/c/delta_0000001_0000001_0000/bucket_00000")
    assert "536870912" in run("events", bucket).stdout
    dumped = run("events", "--format", "json", bucket).stdout.splitlines()
    inserted = [{"n": 1, "s": "[x]"}, {"n": 2, "s": None}]
    assert [json.loads(line)["row"] for line in dumped] == inserted
    assert "[INVALID_ACID_FORMAT]" in run("events", str(tmp_path)).output
    assert "c" in run("tables").stdout
    assert run("txns").exit_code == 0


def test_an_error_is_a_message(run):
    result = run("sql", "DELETE FROM nowhere; SELECT 1")
    assert result.exit_code == 1
    assert "Error: [" in result.stderr
    assert "Traceback" not in result.output


def test_the_compactor_serves_the_queue_and_cleans(acid):
    for id in range(11):
        acid.sql("CREATE TABLE IF NOT EXISTS t (id INT)")
        acid.sql(f"INSERT INTO t VALUES ({id})")
    acid.close()
    words = ["--warehouse", acid.warehouse, "compactor", "--once"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].endswith("default.t: 11 deltas, more than 10, no base"), lines
    assert lines[1].startswith("compaction") and lines[1].endswith("is done")
    assert len(lines) == 13 and all("(obsolete" in line for line in lines[2:])
    assert CliRunner().invoke(main, words).stdout == ""
