"""The language as data: every case of ``grammar/``, and sentences made from its EBNF."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from grammar_cases import Case, cases, productions, sentences, spans
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acidsql.errors import SqlError, SqlSyntaxError
from acidsql.sql.parsed.statements import SparkStatement, Statement
from acidsql.sql.parser import parse
from acidsql.sql.queries.references import mentioned_tables, references
from acidsql.sql.text.tokens import tokenize

Read = Callable[..., Statement]
ACCEPT, REJECT = cases("accept"), cases("reject")


def every_name(parts: tuple[str, ...]) -> bool:
    """A catalog in which every name is an ACID table."""
    return True


def every_setting(name: str) -> str:
    """Every name is a setting of acidsql."""
    return name


@pytest.mark.parametrize("case", ACCEPT, ids=lambda case: case.label)
def test_an_accepted_case_is_a_statement_of_ours(case: Case, read: Read) -> None:
    statement = read(case.text)
    assert not isinstance(statement, SparkStatement)


@pytest.mark.parametrize("case", REJECT, ids=lambda case: case.label)
def test_a_rejected_case_fails_where_and_as_it_says(case: Case, read: Read) -> None:
    header = re.fullmatch(r"([\w.]+) at (\d+)-(\d+): (.*)", case.header)
    assert header is not None, "a header is `-- case CONDITION at START-END: words of the message`"
    with pytest.raises(SqlError) as caught:
        read(case.text)
    error = caught.value
    condition, start, end, words = header.groups()
    assert words in error.message
    assert (error.condition, error.start, error.end) == (condition, int(start), int(end))


def test_every_production_is_named_by_an_accepted_case() -> None:
    named = {name.strip() for case in ACCEPT for name in case.header.partition(":")[0].split(",")}
    assert named == set(productions())


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(sentences("statement"))
def test_what_the_ebnf_derives_is_parsed(text: str) -> None:
    try:
        statement = parse(text, is_ours=every_name, setting_name=every_setting)
    except SqlError as raised:
        error = raised
    else:
        error = None
    if error is not None:
        # Rules that the EBNF says in words only: lengths agree, constraints need new columns,
        # PARQUET is for insert-only tables only.
        allowed = (
            "takes names only",
            "Expected one",
            "number of buckets",
            "This row has",
            "Expected the columns",
            "LIKE takes",
            "STORED AS PARQUET",
            "constraints needs the columns",
        )
        assert any(words in error.message for words in allowed), text
        return
    if isinstance(statement, SparkStatement):  # a table that is not transactional is Spark's
        assert re.search(r"STORED AS PARQUET\b", text), text
        return
    for span in spans(statement):
        assert 0 <= span.start < span.end <= len(text)
        tokenize(span.slice(text))


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(sentences("statement"), st.sampled_from([c.text for c in ACCEPT])), st.data())
def test_a_damaged_statement_parses_or_raises_a_sql_error(text: str, data: st.DataObject) -> None:
    tokens = tokenize(text)
    words = [token.text for token in tokens]
    at = data.draw(st.integers(0, len(words) - 1))
    damage = data.draw(st.sampled_from(["delete", "double", "swap", "insert", "cut"]))
    if damage == "delete":
        del words[at]
    elif damage == "double":
        words.insert(at, words[at])
    elif damage == "swap":
        words[at - 1], words[at] = words[at], words[at - 1]
    elif damage == "insert":
        words.insert(at, data.draw(st.sampled_from(_JUNK)))
    damaged = " ".join(words) if damage != "cut" else text[: tokens[at].end - 1]
    _parses_or_raises(damaged)


_JUNK = [
    "(",
    ")",
    ",",
    ".",
    "WHERE",
    "SELECT",
    "CASE",
    "END",
    "WHEN",
    "THEN",
    "AS",
    "FROM",
    "*",
    "TABLE",
    "VALUES",
    "PARTITION",
    ";",
    "'",
    '"',
    "`",
    "/*",
    "--",
    "[",
    "<",
    "=",
    "1",
    "|>",
]


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("abtSE =;()[]{}'\"`\\/*-+$#?:.,\n\u00a0é😀1_"), max_size=40))
def test_any_text_parses_or_raises_a_sql_error(text: str) -> None:
    _parses_or_raises(text)
    _parses_or_raises("UPDATE t SET " + text)
    _parses_or_raises("SELECT " + text)


def _parses_or_raises(text: str) -> None:
    try:
        statement = parse(text, is_ours=every_name, setting_name=every_setting)
    except SqlError as raised:
        error = raised
    else:
        error = None
    if error is not None:
        assert error.text == text
        assert 0 <= error.start <= error.end <= len(text)
        return
    for span in spans(statement):
        assert 0 <= span.start <= span.end <= len(text)
    if not re.match(r"\s*(SET|RESET|ADD|LIST|DFS)\b", text, re.IGNORECASE):
        try:
            references(text)
            mentioned_tables(text)
        except SqlSyntaxError:
            pass


@pytest.mark.parametrize("case", ACCEPT, ids=lambda case: case.label)
def test_no_token_of_an_accepted_case_can_be_lost_unseen(case: Case, read: Read) -> None:
    """Without one token the text gives an error or another statement, never the same statement."""
    tokens = tokenize(case.text)
    whole = read(case.text)
    for gone in tokens:
        if gone.upper in _WITHOUT_MEANING:
            continue
        text = case.text[: gone.start] + " " * len(gone.text) + case.text[gone.end :]
        try:
            less = read(text)
        except SqlError:
            continue
        assert less != whole or any(
            s.start < gone.end and gone.start < s.end for s in spans(whole)
        ), text


_WITHOUT_MEANING = {
    "", ";", "TABLE", "AS", "PURGE", "TARGET", "LIKE", "DATABASE", "INTO", "TO", "WORK",
    "TRANSACTION", "SAVEPOINT", "COLUMN", "CASCADE", "RESTRICT", "MANAGED", "ALL",
}  # fmt: skip
