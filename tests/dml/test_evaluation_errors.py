"""An expression that fails for a row: the error shows the user's own text."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

import pytest
from kit import fill, table
from pyspark.errors import PySparkException, QueryContextType

from acidsql.errors import EvaluationError
from acidsql.plan.analysis.composed_texts import remember_text, users_place
from acidsql.plan.values.sqltext import Text
from acidsql.sql.text.tokens import Span, SqlText, tokenize


@pytest.fixture
def t(acid, conf):
    conf("spark.sql.ansi.enabled", "true")
    fill(acid, "t (id INT, v STRING, n INT)", "1, 'one', 10")
    fill(acid, "s (id INT, v STRING)", "1, 'two'")
    return acid


CAST, CAST_OF_SOURCE = "CAST(v AS INT)", "CAST(s.v AS INT)"


@pytest.mark.spark
@pytest.mark.parametrize("fast_paths", ["true", "false"])
@pytest.mark.parametrize(
    ("statement", "condition", "at"),
    [
        (f"UPDATE t SET n = {CAST}", "CAST_INVALID_INPUT", CAST),
        (f"UPDATE t\n  SET n = n +\n {CAST} WHERE id = 1", "CAST_INVALID_INPUT", CAST),
        (f"UPDATE t SET n = {CAST} RETURNING id", "CAST_INVALID_INPUT", CAST),
        (f"UPDATE t SET n = 1 RETURNING {CAST}", "CAST_INVALID_INPUT", CAST),
        (f"DELETE FROM t WHERE {CAST} = 1", "CAST_INVALID_INPUT", CAST),
        ("UPDATE t SET n = n / 0", "DIVIDE_BY_ZERO", "n / 0"),
        (f"INSERT INTO t SELECT id, v, {CAST} FROM s", "CAST_INVALID_INPUT", CAST),
        (
            "MERGE INTO t USING s ON t.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET n = {CAST_OF_SOURCE}",
            "CAST_INVALID_INPUT", CAST_OF_SOURCE,
        ),
        (
            f"MERGE INTO t USING (SELECT id, {CAST} AS n FROM s) x ON t.id = x.id "
            "WHEN MATCHED THEN UPDATE SET n = x.n",
            "CAST_INVALID_INPUT", CAST,
        ),
        (f"CREATE TABLE new AS SELECT {CAST} AS n FROM t", "CAST_INVALID_INPUT", CAST),
    ],
)  # fmt: skip
def test_a_failed_expression_of_a_change_is_shown_in_the_users_text(
    t, statement, condition, at, fast_paths
):
    t.sql(f"SET acidsql.fast.paths = {fast_paths}")
    with pytest.raises(EvaluationError) as caught:
        t.sql(statement).collect()
    error = caught.value
    assert error.text == statement and error.text[error.start : error.end] == at
    assert error.condition == condition and len(error.sqlstate) == 5
    assert "__acidsql" not in str(error) and "== SQL" not in str(error)
    if "RETURNING CAST" not in statement:
        assert table(t) == [(1, "one", 10)]


@pytest.mark.spark
def test_a_failed_expression_of_a_query_is_shown_when_its_dataframe_is_read(t, capfd):
    rows = t.sql(f"SELECT id, {CAST} AS n FROM t").where("n > 0").select("id")
    with pytest.raises(EvaluationError) as caught:
        rows.collect()
    error = caught.value
    assert error.text[error.start : error.end] == CAST and "FROM t (line" not in str(error)
    assert f"SELECT id, {CAST} AS n FROM t\n" in str(error)
    assert "SQLQueryContextLogger" not in capfd.readouterr().err


@pytest.mark.spark
def test_an_error_of_sparks_own_text_stays_sparks(t, spark):
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        spark.sql("SELECT id / 0 FROM range(1)").collect()
    with pytest.raises(PySparkException, match="mine"):
        t.table("t").selectExpr("raise_error('mine')").collect()


@pytest.mark.spark
@pytest.mark.parametrize("words", ["hive|acidsql|delta", "acidsql|a|b|c|d"])
def test_an_error_with_words_that_begin_as_our_own_stays_sparks(t, spark, words):
    with pytest.raises(PySparkException, match="USER_RAISED_EXCEPTION"):
        spark.sql(f"SELECT raise_error('{words}')").collect()
    with pytest.raises(PySparkException, match="USER_RAISED_EXCEPTION"):
        t.sql(f"UPDATE t SET n = raise_error('{words}')")
    assert table(t) == [(1, "one", 10)]


def place_in(text):
    """The place that an error at the first character of a composed text is about; None if the text
    is not remembered."""
    whole = SimpleNamespace(isDefined=lambda: True, get=lambda: text.sql)
    place = SimpleNamespace(
        _q=SimpleNamespace(sqlText=lambda: whole),
        contextType=lambda: QueryContextType.SQL,
        startIndex=lambda: 0,
        stopIndex=lambda: 0,
    )
    return users_place(SimpleNamespace(getQueryContext=lambda: [place]))


def test_long_texts_are_forgotten_before_they_take_much_memory():
    texts = []
    for number in range(12):
        statement = f"SELECT {number} -- {'x' * (1 << 20)}"
        texts.append(Text(statement).verbatim(Span(0, len(statement))))
        remember_text(texts[-1])
    remembered = [place_in(text) is not None for text in texts]
    assert remembered[0] is False and remembered[-5:] == [True] * 5
    longest = Text("y" * (9 << 20)).verbatim(Span(0, 9 << 20))
    remember_text(longest)
    assert place_in(longest) is not None
    remember_text(texts[0])
    assert place_in(longest) is None


def test_a_remembered_text_keeps_no_tokens():
    statement = SqlText("SELECT a / 0 FROM t")
    assert tokenize(statement)  # now it has its tokens
    kept_statement = weakref.ref(statement)
    composed = Text(statement).verbatim(Span(0, len(statement)))
    remember_text(composed)
    text = SimpleNamespace(sql=composed.sql)
    del statement, composed
    gc.collect()
    assert kept_statement() is None
    assert place_in(text).statement == "SELECT a / 0 FROM t"


def context(text, start, stop, summary):
    """A query context as Spark Connect gives it."""
    return SimpleNamespace(
        _q=SimpleNamespace(fragment=text[start : stop + 1]),
        contextType=lambda: QueryContextType.SQL,
        startIndex=lambda: start,
        stopIndex=lambda: stop,
        fragment=lambda: text[start : stop + 1],
        summary=lambda: summary,
    )


def test_without_a_jvm_the_fragment_and_its_line_tell_the_text():
    statement = "SELECT a / 0 FROM t"
    for view in ("__acidsql_one", "__acidsql_two"):
        composed = Text(f"{statement} -- {view}").raw("/* 😀 */ ").verbatim(Span(0, 18))
        composed.raw(f" AS {view}")
        remember_text(composed)
    sql = composed.sql.replace("two", "one")
    start = sql.index("a / 0")
    error = SimpleNamespace(
        getQueryContext=lambda: [
            context(sql, start, start + 4, f"== SQL (line 1) ==\n...{sql[9:]}\n   ^^^^^\n")
        ]
    )
    place = users_place(error)
    assert place.statement == f"{statement} -- __acidsql_one"
    assert place.statement[place.span.start : place.span.end] == "a / 0"
    other = context("SELECT b / 0", 7, 11, "== SQL ==\nSELECT b / 0\n")
    assert users_place(SimpleNamespace(getQueryContext=lambda: [other])) is None
