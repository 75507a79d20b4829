"""Where in a file or a cell a statement failed."""

from __future__ import annotations

import pytest

from acidsql.errors import ConstraintError, SqlSyntaxError
from acidsql.terminal.script import Script

TEXT = """-- nightly
DELETE FROM t WHERE id = 1;

UPDATE t
SET id = ;
"""


def test_the_caret_is_in_the_files_own_line():
    first, second = Script(TEXT, "nightly.sql").statements()
    assert (first.text, second.text) == ("DELETE FROM t WHERE id = 1", "UPDATE t\nSET id =")
    end = len(second.text)
    error = SqlSyntaxError("Expected an expression.", second.text, end, end)
    assert second.error_text(error) == (
        "nightly.sql, line 5, statement 2 of 2: [PARSE_SYNTAX_ERROR] Expected an expression. "
        "(line 5, column 9)\n  SET id = ;\n          ^\n SQLSTATE: 42601"
    )


def test_an_error_without_a_place_names_the_line_where_its_statement_begins():
    _, second = Script(TEXT, "nightly.sql").statements()
    message = second.error_text(ConstraintError("A row breaks a rule."))
    assert message.startswith("nightly.sql, line 4, statement 2 of 2: [CONSTRAINT_VIOLATION]")


def test_an_error_about_another_text_keeps_its_own_place():
    (statement,) = Script("SELECT * FROM v", "q.sql").statements()
    error = SqlSyntaxError("Not SQL.", "SELECT 1\nFROM", 9, 13)  # as of a view's query
    message = statement.error_text(error)
    assert message.startswith("q.sql, line 1, statement 1 of 1: ")
    assert "(line 2, column 1)" in message


@pytest.mark.parametrize(
    "message",
    [
        "\n[NAME] A fault. SQLSTATE: 42601 (line 2, pos 4)\n\n== SQL ==\nSELECT\n1 + nix\n",
        "[NAME] A fault. SQLSTATE: 42601; line 2 pos 4;\n'Project ['nix]\n+- OneRowRelation\n",
    ],
)
def test_a_place_that_spark_tells_is_moved_into_the_file(message):
    statement = Script("SELECT 1;\n\nSELECT\n1 + nix", "q.sql").statements()[1]
    assert statement.error_text(ValueError(message)) == (
        "q.sql, line 4, statement 2 of 2: [NAME] A fault. SQLSTATE: 42601 (line 4, column 5)\n"
        "  1 + nix\n      ^^^\n"
    )


def test_a_text_that_cannot_be_cut_names_its_line():
    script = Script("SELECT 1;\nSELECT 'open", "q.sql")
    with pytest.raises(SqlSyntaxError) as raised:
        script.statements()
    assert script.error_text(raised.value).startswith("q.sql, line 2: [PARSE_SYNTAX_ERROR]")


def test_a_lone_statement_without_a_file_needs_no_number():
    (statement,) = Script("\nDELETE t").statements()
    error = SqlSyntaxError("Expected FROM.", statement.text, 7, 8)
    assert statement.error_text(error).startswith("[PARSE_SYNTAX_ERROR] Expected FROM. (line 2, ")


def test_a_statement_behind_a_name_of_a_notebook_keeps_its_place():
    statement = Script("x <<\n  SELEC 1; SELECT 2").statements()[0].behind(len("x <<\n  "))
    assert statement.text == "SELEC 1"
    error = SqlSyntaxError("Not SQL.", statement.text, 0, 5)
    assert "line 2, statement 1 of 2: " in statement.error_text(error)
    assert "(line 2, column 3)\n    SELEC 1; SELECT 2\n    ^^^^^\n" in statement.error_text(error)
