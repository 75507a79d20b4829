"""The command line, by click's runner; it uses the tests' Spark."""

from __future__ import annotations

import csv
import io
import json
import sys
import threading

import click
import pytest
from click.testing import CliRunner

from acidsql.terminal import cli
from acidsql.terminal.cli import main
from acidsql.terminal.render import FORMS


def test_help_says_what_there_is():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for word in (
        "sql",
        "tables",
        "txns",
        "files",
        "events",
        "check",
        "repair",
        "health",
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
    assert as_csv.stdout == "n,s\n1,[x]\n2,\n"  # NULL is an empty field

    script = tmp_path / "s.sql"
    script.write_text(
        "UPDATE c SET s = :s WHERE n = 2 RETURNING old.s, n; SELECT * FROM c ORDER BY n"
    )
    as_json = run("sql", "--format", "json", "--param", "s=new", "--file", str(script))
    assert [json.loads(line) for line in as_json.stdout.splitlines()] == [
        {"s": None, "n": 2},
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
    checked = run("check", "c", "--level", "rows")
    assert (checked.exit_code, checked.stdout) == (0, "c is sound.\n")
    with open(bucket, "ab") as file:
        file.write(b"x")
    checked = run("check", "c")
    assert checked.exit_code == 1
    assert "UNREADABLE_FILE" in checked.stdout and bucket in checked.stdout
    dead = tmp_path / "wh/c/_tmp_0000001_0000_dead"
    dead.mkdir()
    assert "It would be deleted." in run("repair", "c").stdout and dead.exists()
    assert "It was deleted." in run("repair", "c", "--yes").stdout and not dead.exists()
    assert run("repair", "c").stdout == "There is nothing to repair in c.\n"
    assert "c" in run("tables").stdout
    assert run("txns").exit_code == 0
    every, one = run("health"), run("health", "c", "--format", "json")
    assert "default.c" in every.stdout and "(" not in every.stdout.split("default.c")[0]
    told = json.loads(one.stdout)
    assert (told["table"], told["partition"], told["deltas"]) == ("default.c", "", 2)
    assert told["rows"] is None and bucket in told["problem"]  # it is damaged
    assert "c is not partitioned" in run("health", "c", "--partition", "p=1").output


def test_without_a_command_standard_input_is_a_script(run):
    done = run(input="CREATE TABLE c (n INT); INSERT INTO c VALUES (7);\nSELECT n + 1 AS m FROM c")
    assert done.exit_code == 0, done.output
    assert "1 inserted" in done.stdout and "8" in done.stdout
    assert run(input="SELEC").exit_code == 1


def test_the_shell_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    monkeypatch.delitem(sys.modules, "acidsql.terminal.shell", raising=False)
    with pytest.raises(click.ClickException, match=r"needs prompt_toolkit: pip install 'acidsql"):
        cli._run_shell({})


def test_a_server_that_does_not_answer_is_told(monkeypatch):
    told = threading.Event()
    monkeypatch.setattr(cli, "_LATE_S", 0)
    monkeypatch.setattr(cli, "_spark_session", lambda _: told.wait(60) and sys.exit(3))
    monkeypatch.setattr(click, "echo", lambda text, **_: "not answered" in text and told.set())
    assert CliRunner().invoke(main, ["--remote", "sc://nobody", "tables"]).exit_code == 3
    assert told.is_set()


def test_an_error_is_a_message(run):
    result = run("sql", "DELETE FROM nowhere; SELECT 1")
    assert result.exit_code == 1
    assert "Error: line 1, statement 1 of 2: [" in result.stderr
    assert "Traceback" not in result.output


def test_an_error_of_a_file_names_the_file_the_line_and_the_statement(run, tmp_path):
    script = tmp_path / "nightly.sql"
    script.write_text(
        "CREATE TABLE c (n INT);\n\nSELECT 1;\nDELETE FROM c\nWERE n = 1;\nSELECT 2;\n"
    )
    result = run("sql", "-f", str(script))
    assert result.exit_code == 1
    assert "Error: nightly.sql, line 5, statement 3 of 4: [PARSE_SYNTAX_ERROR]" in result.stderr
    assert "\n  WERE n = 1;\n  ^^^^\n" in result.stderr
    script.write_text("SELECT 1;\nDELETE FROM nix")
    assert "nightly.sql, line 2, statement 2 of 2: [" in run("sql", "-f", str(script)).stderr
    assert "Error: line 2, statement 2 of 2: [" in run(input=script.read_text()).stderr
    assert "Error: [" in run("sql", "SELEC").stderr


def test_ctrl_c_tells_what_became_of_its_statement(run, monkeypatch):
    def interrupted(session, text, *_, **__):
        if "INSERT" not in text:
            session.sql(text)
            return
        raise KeyboardInterrupt

    monkeypatch.setattr("acidsql.terminal.terminal.run", interrupted)
    result = run("sql", "CREATE TABLE c (n INT);\nINSERT INTO c VALUES (1); SELECT 1")
    assert result.exit_code == 1
    assert "Error: line 2, statement 2 of 3: Interrupted. The statement is undone" in result.stderr


def test_null_is_shown_one_way_in_every_form(run):
    query = "SELECT NULL AS n, '' AS e"
    shown = {form: run("sql", "--format", form, query).stdout for form in FORMS}
    assert "│ NULL │" in shown["table"]
    assert shown["csv"] == 'n,e\n,""\n'
    assert shown["json"] == '{"n":null,"e":""}\n'
    assert shown["markdown"] == "| n | e |\n| --- | --- |\n| NULL |  |\n"


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


# ── what is printed can be read back ─────────────────────────────────────────────────────────

# Some values of each type, among them unusual ones.
VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127"],
    "SMALLINT": ["-32768"],
    "INT": ["-2147483648"],
    "BIGINT": ["9223372036854775807"],
    "FLOAT": ["float('0.1')", "float('NaN')", "float('-Infinity')", "float('1.17549435E-38')"],
    "DOUBLE": ["0.1D", "1e23D", "double('NaN')", "double('Infinity')", "4.9E-324D"],
    "DECIMAL(38,18)": ["0", "-12345678901234567890.123456789012345678"],
    "STRING": ["''", "'NULL'", "'a\\rb'", "'a\\nb'", "'a\\r\\nb'", "'\"q\", ''x'''", "' x '",
               "'\\uFEFFx'", "'\\u2028\\u0085'", "'é😀'", "'\\\\'", "'\\t'"],
    "VARCHAR(5)": ["'ab'"],
    "CHAR(5)": ["'ab'"],
    "BINARY": ["X'00ff'", "X''"],
    "DATE": ["DATE'0001-01-01'", "DATE'9999-12-31'", "DATE'+12345-06-07'"],
    "TIMESTAMP_NTZ": ["TIMESTAMP_NTZ'2020-01-02 03:04:05.123456'",
                      "TIMESTAMP_NTZ'0001-01-01 00:00:00'", "TIMESTAMP_NTZ'1969-12-31 23:59:59.9'"],
    "TIMESTAMP_LTZ": ["TIMESTAMP'2020-10-25 00:30:00.000001Z'", "TIMESTAMP'2020-10-25 01:30:00Z'",
                      "TIMESTAMP'1800-01-01 00:00:00.123456Z'"],
    "ARRAY<TIMESTAMP_NTZ>": ["array(TIMESTAMP_NTZ'2020-01-02 03:04:05.123456', NULL)", "array()"],
    "ARRAY<STRING>": ["array('a, b', NULL, '[x]', '')"],
    "STRUCT<`a b`: TIMESTAMP_LTZ, s: STRING, b: BINARY>": [
        "named_struct('a b', TIMESTAMP'2020-01-02 03:04:05.000001Z', 's', 'x', 'b', X'80')"],
    "MAP<STRING, ARRAY<DOUBLE>>": ["map('k', array(double('NaN'), 0.1D))", "map()"],
}  # fmt: skip


@pytest.fixture
def of_every_type(spark, monkeypatch):
    """(type, rows as Spark has them, the query for them), in a time zone with unusual offsets."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Amsterdam")
    texts = {}
    for kind, values in VALUES.items():
        plain = "STRING" if "CHAR(" in kind else kind
        shown = ", ".join(f"({value})" for value in [*values, "NULL"])
        texts[kind] = f"SELECT CAST(v AS {plain}) AS v FROM VALUES {shown} AS t(v)"
    yield texts
    spark.conf.set("spark.sql.session.timeZone", before)


def exact(spark, query):
    """A query's rows in a form that can be compared, also for NaN and for values that Python does
    not have."""
    kind = spark.sql(query).schema[0].dataType.simpleString()
    own = "hex(v)" if kind == "binary" else "to_json(named_struct('v', v))"
    if kind.startswith("timestamp") and "ntz" not in kind:
        own = "string(unix_micros(v))"
    return [row[0] for row in spark.sql(f"SELECT {own} FROM ({query})").collect()]


def as_query(cells, parsed):
    """A query that gives the printed rows again, parsed by Spark."""
    texts = ["NULL" if c is None else f"CAST(X'{c.encode().hex()}' AS STRING)" for c in cells]
    return f"SELECT {parsed} AS v FROM (SELECT explode(array({', '.join(texts)})) AS c)"


def read_csv(text):
    """Read a CSV with one column: a field in quotes is never NULL."""
    assert text.startswith("v\n")
    cells, rest = [], text[2:]
    while rest:
        if rest.startswith("\n"):
            cells.append(None)
            rest = rest[1:]
            continue
        end = rest.index("\n") if rest[0] != '"' else None
        if end is None:
            at = 1
            while rest[at] != '"' or rest[at + 1] == '"':
                at += 2 if rest[at] == '"' else 1
            end = at + 1
        assert rest[end] == "\n"
        ((cell,),) = csv.reader(io.StringIO(rest[:end], newline=""))
        cells.append(cell)
        rest = rest[end + 1 :]
    return cells


def test_csv_can_be_read_back(spark, run, of_every_type):
    for kind, query in of_every_type.items():
        cells = read_csv(run("sql", "--format", "csv", query).stdout_bytes.decode())
        parsed = f"CAST(c AS {kind})"
        if "<" in kind:
            parsed = f"from_json(c, '{kind}')"
        elif kind == "BINARY":
            parsed = "unhex(substr(c, 3))"
        elif "CHAR" in kind:
            parsed = "c"
        assert exact(spark, as_query(cells, parsed)) == exact(spark, query), kind


def test_json_can_be_read_back(spark, run, of_every_type):
    for kind, query in of_every_type.items():
        lines = run("sql", "--format", "json", query).stdout.removesuffix("\n").split("\n")
        assert all(set(json.loads(line)) == {"v"} for line in lines), kind
        plain = "STRING" if "CHAR(" in kind else kind
        parsed = f"from_json(c, 'v {plain}').v"
        assert exact(spark, as_query(lines, parsed)) == exact(spark, query), kind


def test_keys_of_maps_are_text_that_can_be_read(run):
    query = ("SELECT map(TIMESTAMP_NTZ'2020-01-02 03:04:05.000006', 1) AS t, "
             "map(X'00ff', 2) AS b, map(DATE'2020-01-01', map(1.5BD, 3)) AS d, "
             "array(map(array(1, 2), 4)) AS a, "
             "named_struct('m', map(named_struct('x', DATE'2020-01-01'), 5), 'n', 1) AS s"
             )  # fmt: skip
    shown = {
        "t": {"2020-01-02 03:04:05.000006": 1},
        "b": {"0x00FF": 2},
        "d": {"2020-01-01": {"1.5": 3}},
        "a": [{"[1,2]": 4}],
        "s": {"m": {'{"x":"2020-01-01"}': 5}, "n": 1},
    }
    assert json.loads(run("sql", "--format", "json", query).stdout) == shown
    (row,) = csv.DictReader(io.StringIO(run("sql", "--format", "csv", query).stdout))
    assert {name: json.loads(cell) for name, cell in row.items()} == shown


def test_two_columns_of_one_name_are_printed_both(run):
    assert run("sql", "--format", "json", "SELECT 1 AS a, 2 AS a").stdout == '{"a":1,"a":2}\n'
    assert run("sql", "--format", "csv", "SELECT 1 AS a, 2 AS a").stdout == "a,a\n1,2\n"


# ── what is read, and where it is printed ────────────────────────────────────────────────────


def test_a_script_may_begin_with_a_mark_of_its_encoding(run, tmp_path):
    script = tmp_path / "s.sql"
    script.write_bytes("SELECT 'é' AS e".encode("utf-8-sig"))
    assert run("sql", "--format", "csv", "-f", str(script)).stdout == "e\né\n"


def test_a_script_that_is_not_utf_8_is_refused(run, tmp_path):
    script = tmp_path / "s.sql"
    script.write_bytes("SELECT 'é'".encode("latin-1"))
    for done in (run("sql", "-f", str(script)), run("sql", input=script.read_bytes())):
        assert done.exit_code == 2
        assert "not UTF-8: byte 0xe9 at offset 8" in done.stderr


def test_text_and_a_file_are_not_taken_both(run, tmp_path):
    script = tmp_path / "s.sql"
    script.write_text("SELECT 1")
    done = run("sql", "SELECT 2", "-f", str(script))
    assert done.exit_code == 2
    assert "not both" in done.stderr


@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_a_poor_locale_ends_nothing_half_way(spark, tmp_path, monkeypatch, form):
    class Poor(io.TextIOWrapper):
        """A terminal that can show ASCII only."""

    out = Poor(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    words = ["--warehouse", str(tmp_path), "sql", "--format", form, "SELECT 'é😀' AS e"]
    main(words, standalone_mode=False)
    out.flush()
    printed = out.buffer.getvalue()
    assert ("é😀".encode() if form != "table" else b"\\xe9\\U0001f600") in printed
