"""A statement is cut into tokens once: its readers share the tokens."""

from __future__ import annotations

import copy
import pickle

import pytest

from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.values.types import parse_type
from acidsql.errors import SqlError
from acidsql.plan.rewrite import plan_dml
from acidsql.plan.rows.event_query import value_name
from acidsql.plan.values.assignment import Policy
from acidsql.sql.parsed.statements import Dml
from acidsql.sql.parser import parse
from acidsql.sql.text import tokens
from acidsql.sql.text.frames import frame_argument, need_relations
from acidsql.sql.text.tokens import Span, SqlText, tokenize
from acidsql.statements.context.result import Receipt
from acidsql.statements.context.statement_text import new_statement_text

COLUMNS = (Column("id", "int"), Column("v", "string"), Column("p", "int"))
TABLES = {name: Table(TableName("default", name), "/t", COLUMNS) for name in ("t", "s")}


@pytest.fixture
def texts_cut(monkeypatch):
    texts, cut = [], tokens.cut_into_tokens

    def cut_and_note(text):
        texts.append(text)
        return cut(text)

    monkeypatch.setattr(tokens, "cut_into_tokens", cut_and_note)
    return texts


def plan(text):
    """Parse, bind and rewrite a statement, with types in the place of Spark's analysis."""
    types = ["int", "string", "int"]
    fields = [(column.name, parse_type(kind)) for column, kind in zip(COLUMNS, types, strict=True)]
    values = [(value_name(number), parse_type(types[number % 3])) for number in range(6)]
    analysed = fields if text.startswith("INSERT") else fields + values
    text = SqlText(text)
    statement = parse(text, is_ours=lambda parts: parts[-1] in TABLES)
    assert isinstance(statement, Dml)
    return plan_dml(
        text, statement, lambda parts: TABLES.get(parts[-1]), lambda *_: analysed,
        double_quoted=False, policy=Policy.ANSI,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "MERGE INTO t USING s ON t.id = s.id AND t.p > 0 "
        "WHEN MATCHED AND hash(t.*) <> hash(s.*) THEN UPDATE SET id = s.id, v = s.v, p = t.p + 1 "
        "WHEN MATCHED AND s.v = 'x' AND s.p IN (SELECT p FROM t) THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, default.s.v, ? + 3) "
        "RETURNING merge_action(), t.* EXCEPT (p)",
        "MERGE INTO t USING (SELECT * FROM s VERSION AS OF 3 WHERE p = 1) x ON t.id = x.id "
        "WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (x.id, x.v, row__id.rowid)",
        "UPDATE t SET id = id + 1, v = concat(v, 'x'), p = ? WHERE p = 1 AND id < 5 "
        "RETURNING old.v, *",
        "DELETE FROM t WHERE p = 2 AND id IN (SELECT id FROM table_changes('s', 1))",
        "INSERT INTO t SELECT s.*, 'x', row__id.rowid FROM s JOIN t ON s.id = t.id",
        "INSERT INTO t VALUES (1 + 1, 'a', 2), (?, 'b', 3)",
    ],
)
def test_a_statement_is_cut_into_tokens_once_to_be_parsed_bound_and_rewritten(text, texts_cut):
    plan(text)
    assert texts_cut == [text]


def test_a_text_is_cut_when_its_tokens_are_first_needed(texts_cut):
    text = SqlText("a + 1")
    assert texts_cut == []
    assert tokenize(text) == tokenize(text)
    assert texts_cut == ["a + 1"]


def test_a_statement_keeps_the_text_that_has_the_tokens(texts_cut):
    text = SqlText("SELECT * FROM {df}, t")
    frames = {frame_argument("df"): "view"}
    statement_text = new_statement_text(None, text, frames)
    need_relations(statement_text.text, {14})
    assert statement_text.text is text
    assert texts_cut == [text]


def test_the_tokens_of_a_slice_have_their_places_in_the_whole_text():
    text = "SELECT /*+ HINT */ a, (b) FROM {df} -- end"
    for span in (Span(0, 6), Span(6, 21), Span(22, 25), Span(25, len(text)), Span(7, 7)):
        (*shown,) = ((token.text, token.span.slice(text)) for token in tokenize(text, span))
        assert all(token_text == place for token_text, place in shown)
        own = [token.text for token in tokenize(span.slice(text))]
        assert [token_text for token_text, _ in shown] == own


def test_double_quotes_are_read_as_each_reader_asks(texts_cut):
    text = SqlText("\"a\" 'b'")
    names = tokenize(text, Span(0, 3), double_quoted_identifiers=True)
    assert [token.is_name for token in names] == [True]
    assert [token.is_name for token in tokenize(text)] == [False, False]
    assert len(texts_cut) == 1


def test_a_text_is_the_same_object_as_its_text_and_a_plain_str_to_others():
    text = SqlText("SELECT 1")
    assert SqlText(text) is text
    tokenize(text)
    copies = [copy.copy(text), copy.deepcopy(text), pickle.loads(pickle.dumps(text)), str(text)]
    assert [type(made) for made in copies] == [str] * 4
    assert copies == ["SELECT 1"] * 4


def test_whoever_keeps_a_receipt_or_an_error_keeps_a_plain_text():
    text = SqlText("SELEC 1")
    assert type(Receipt(text).statement) is str
    assert type(SqlError("no", text, 0, 5).text) is str


def test_a_text_that_is_shown_in_another_way_is_read_by_its_characters():
    class Query(str):
        def __str__(self):
            return "Query.ALL"

    assert SqlText(Query("SELECT * FROM t")) == "SELECT * FROM t"
