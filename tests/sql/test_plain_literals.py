"""The short way to read INSERT of plain literals gives the same result as the grammar."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acidsql.errors import SqlError
from acidsql.sql.grammar.plain_values import LiteralRules, plain_insert
from acidsql.sql.parsed.statements import Insert, Values
from acidsql.sql.parser import parse
from acidsql.sql.text.tokens import Span

UTC = LiteralRules(100, lambda: True)
ROW = "(1, 'abc', -2, 1.5, NULL, true, DATE'2024-01-01', TIMESTAMP '2024-01-01 00:00:00.5')"


def literals(text: str, plain: LiteralRules = UTC) -> tuple[tuple[str, ...], ...] | None:
    found = plain_insert(text, plain)
    return None if found is None else found.source.columns


@pytest.mark.parametrize(
    "text",
    [
        f"INSERT INTO t VALUES {ROW}", f"insert into table db.t values{ROW},\n{ROW} ; ",
        f"\n INSERT\tINTO `my t` (`a`, B) VALUES {ROW} ,{ROW};", "INSERT INTO t VALUES (1);",
        "INSERT INTO t(a) VALUES ('it is \"so\" -- /* not */ ? :x ; ( , ä日𝄞\t\n')",
        "INSERT INTO t VALUES (00012, -0, 0.50, -0.0)", "INSERT INTO t VALUES (date '2024-13-77')",
        "INSERT INTO t VALUES (\n 1 ,\r\n'' )", "INSERT INTO t VALUES (1.5D, -2d, 0D)",
        "INSERT INTO t VALUES (CAST(1.50 AS DECIMAL(12,2)), cast( -1\tas\ndecimal ( 3 , 0 ) ))",
    ],
)  # fmt: skip
def test_plain_literals_are_read_as_the_grammar_reads_them(text):
    assert_same(text)
    assert literals(text) is not None


def assert_same(text: str) -> bool:
    """A statement that is read as plain is an INSERT of the same values into the same columns."""
    found = plain_insert(text, UTC)
    if found is None:
        return False
    grammar = parse(text, is_ours=lambda _: True)
    assert isinstance(grammar, Insert) and isinstance(grammar.source, Values)
    rows = [tuple(value.slice(text) for value in row) for row in grammar.source.rows]
    assert list(zip(*found.source.columns, strict=True)) == rows
    same = (found.target, found.columns, (), False, False, None)
    assert same == (grammar.target, grammar.columns, grammar.partition, grammar.overwrite,
                    grammar.by_name, grammar.ctes)  # fmt: skip
    assert isinstance(rows[0], tuple) and found.target.span.slice(text)
    return True


@pytest.mark.parametrize(
    "value",
    [
        "1L", "1S", "1Y", "1.5BD", "1.5F", "1DD", "CAST(1 AS DECIMAL(5))",
        "CAST('1' AS DECIMAL(5,1))", "1e3", "1.", ".5", "+1", "- 1", "--1", "1+1",
        "(1)", "''''", "'it''s'", "'a' 'b'", r"'a\n'", '"a"', "r'a'", "N'a'", "x'00'", "DEFAULT",
        "NaN", "nullx", "upper('a')", "a", "?", ":a", "${a}", "'${a}'", "'__acidsql_x'",
        "current_date", "DATE'2024-1-1'", "DATE'2024-01-01 '", "DATE 'now'", "INTERVAL '1' DAY",
        "TIMESTAMP'2024-01-01'", "TIMESTAMP'2024-01-01 24:00:00'", "TIMESTAMP_LTZ'2024-01-01'",
        "TIMESTAMP'2024-01-01 00:00:00Z'", "TIMESTAMP'2024-01-01 00:00:00.1234567'", "1 -- a\n",
        "/* a */ 1", "'a\0'", "'a\x0b'", "'\ud800'", "1" * 39, "١", "falſe", "",
        "1 AS a", "array(1)", "CAST(1 AS INT)", "NULL::INT", "1,", "1)", "(1",
    ],
)  # fmt: skip
def test_what_is_no_plain_literal_is_left_to_the_grammar(value):
    assert literals(f"INSERT INTO t VALUES ('x', {value})") is None
    assert literals(f"INSERT INTO t VALUES ({value}, 1), ({value}, 1)") is None


@pytest.mark.parametrize(
    "text",
    [
        "INSERT OVERWRITE t VALUES (1)", "INSERT INTO t SELECT 1", "INSERT INTO t VALUES 1, 2",
        "INSERT INTO t VALUES (1), (1, 2)", "INSERT INTO t VALUES (1) v", "INSERT INTO t VALUES ()",
        "INSERT INTO t VALUES (1),", "INSERT INTO t VALUES (1);;", "INSERT INTO tVALUES (1)",
        "INSERT INTO t PARTITION (a = 1) VALUES (1)", "INSERT INTO t BY NAME VALUES (1)",
        "INSERT INTO TABLE VALUES (1)", "INSERT INTO VALUES VALUES (1)", "INSERT INTOt VALUES (1)",
        "INSERT INTO identifier (a) VALUES (1)", "INSERT INTO a.b.c VALUES (1)",
        "INSERT INTO ä VALUES (1)", "INſERT INTO t VALUES (1)", "INSERT INTO t (a.b) VALUES (1)",
        "INSERT INTO t () VALUES (1)", "INSERT INTO t VALUES (1) UNION ALL VALUES (2)",
        "EXPLAIN INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1) -- end",
        "INSERT INTO t\u00a0VALUES (1)", "INSERT INTO `a``b` VALUES (1)",
        "INSERT INTO `` VALUES (1)",
    ],
)  # fmt: skip
def test_other_statements_are_left_to_the_grammar(text):
    assert literals(text) is None


def test_bounds_and_the_time_zone():
    text = "INSERT INTO t VALUES (1), (2)"
    assert literals(text, LiteralRules(2, lambda: True)) == (("1", "2"),)
    assert literals(text, LiteralRules(1, lambda: True)) is None
    assert literals(text, LiteralRules(0, lambda: True)) is None
    assert literals(f"INSERT INTO t VALUES ({', '.join(['1'] * 301)})") is None
    elsewhere = LiteralRules(9, lambda: False)
    assert literals("INSERT INTO t VALUES (TIMESTAMP'2024-01-01 00:00:00')", elsewhere) is None
    assert literals("INSERT INTO t VALUES (TIMESTAMP_NTZ'2024-01-01 00:00:00')", elsewhere)
    found = plain_insert("INSERT INTO db.`T` ( a , `b` ) VALUES (1, 2)", UTC)
    assert found.target.parts == ("db", "T") and found.target.span == Span(12, 18)
    assert [(name.parts, name.span) for name in found.columns] == [
        (("a",), Span(21, 22)), (("b",), Span(25, 28)),
    ]  # fmt: skip


PIECES = st.sampled_from(
    ["INSERT", "INTO", "TABLE", "t", "db", ".", "`a b`", "`", "(", ")", ",", "VALUES", ";", " ",
     "\n", "1", "-1", "1.5", "'a'", "'", "''", "\\", "NULL", "true", "DATE", "'2024-01-01'",
     "TIMESTAMP_NTZ", "'2024-01-01 00:00:00'", "--", "/*", "*/", "a", "AS", "OVERWRITE", "ä",
     "é'", '"', "PARTITION", "BY NAME", "$", "{", "#", "identifier"]
)  # fmt: skip
HEADS = st.sampled_from(
    ["INSERT INTO t VALUES (", "INSERT INTO TABLE t (a) VALUES (", "INSERT INTO "]
)


@settings(max_examples=1500, deadline=None, database=None, derandomize=True)
@given(HEADS, st.lists(PIECES, max_size=8), st.sampled_from(["", ")", " VALUES (1)"]))
@example("INSERT INTO ", ["`a b`", "(", "a", ",", "`a b`", ")"], " VALUES (1)")
def test_any_text_is_read_as_the_grammar_reads_it_or_left_to_it(head, pieces, tail):
    for glue in ("", " "):
        text = head + glue.join(pieces) + tail
        try:
            assert_same(text)
        except SqlError as error:
            raise AssertionError(f"the grammar refuses {text!r}") from error
