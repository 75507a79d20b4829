"""Tokens follow Spark's lexical rules, even where sqlglot's lexer has others."""

from __future__ import annotations

import pytest

from acidsql.errors import SqlError, SqlSyntaxError
from acidsql.sql.text.tokens import Span, SqlText, TokenKind, split_statements, tokenize


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.kind.name, token.text) for token in tokenize(text)]


def test_words_are_never_keywords_and_numbers_may_look_like_words() -> None:
    assert kinds("ORDER BY 1abc 1L 1.5BD .5") == [
        ("WORD", "ORDER"),
        ("WORD", "BY"),
        ("WORD", "1abc"),
        ("NUMBER", "1L"),
        ("NUMBER", "1.5BD"),
        ("SYMBOL", "."),
        ("NUMBER", "5"),
    ]


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it''s'", "it's"),
        ('"a""b"', 'a"b'),
        ("'a\"\"b'", 'a""b'),
        (r"'a\'b\n\t\\'", "a'b\n\t\\"),
        (r"'\u00e9\U0001F600\101\%\_\q'", r"é😀A\%\_q"),
        (r"r'\d'", r"\d"),
        ('R"a\'"', "a'"),
        ("''", ""),
    ],
)
def test_a_string_says_what_spark_says(literal: str, value: str) -> None:
    (token,) = tokenize(literal)
    assert (token.kind, token.value) == (TokenKind.STRING, value)


def test_quoted_names_keep_their_case_and_double_quotes_follow_the_session() -> None:
    (back,) = tokenize("`My``t`")
    assert (back.is_name, back.value, back.upper) == (True, "My`t", "")
    (double,) = tokenize('"My""t"', double_quoted_identifiers=True)
    assert (double.is_name, double.value) == (True, 'My"t')
    assert not tokenize('"My t"')[0].is_name
    assert not tokenize("``")[0].is_name


def test_comments_vanish_and_hints_are_tokens() -> None:
    assert kinds("a /* b /* c */ ; */ -- ' d\n/*+ h('*') */ e") == [
        ("WORD", "a"),
        ("HINT", "/*+ h('*') */"),
        ("WORD", "e"),
    ]


@pytest.mark.parametrize(
    ("text", "start", "words"),
    [
        ("a = 'b", 4, "string is not closed"),
        ("-- it's\n'a\\'", 8, "string is not closed"),
        ("r'a' \"b", 5, "string is not closed"),
        ("a `b", 2, "quoted name is not closed"),
        ("DELETE FROM t /* WHERE", 14, "comment is not closed"),
        ("a /* b /* c */", 2, "comment is not closed"),
        ("a {# b #} c", 2, "Unexpected"),
        ("a $$b;c$$", 2, "Dollar-quoted"),
        ("a -- b \\\nc", 7, "continued with a backslash"),
        ("a /* b /*+ c */ */", 2, "cannot hold a hint"),
    ],
)
def test_what_has_no_end_is_shown_where_it_begins(text: str, start: int, words: str) -> None:
    with pytest.raises(SqlError) as caught:
        tokenize(text)
    assert words in caught.value.message
    assert caught.value.start == start


def test_spans_count_code_points_and_exclude_their_end() -> None:
    text = "😀 'é' x"
    spans = [token.span for token in tokenize(text)]
    assert [span.slice(text) for span in spans] == ["😀", "'é'", "x"]
    assert spans[1] == Span(2, 5)


def test_a_cell_is_split_at_semicolons_that_are_semicolons() -> None:
    cell = "SELECT ';' ; -- a; b\nDELETE FROM `;` /* ; */; ;\n  ; -- the end"
    assert [span.slice(cell) for span in split_statements(cell)] == [
        "SELECT ';'",
        "DELETE FROM `;`",
    ]
    assert split_statements(" -- nothing") == []


def test_what_is_done_with_a_texts_tokens_does_not_reach_the_next_who_asks():
    text = SqlText("d.t.id + 1")
    tokenize(text).clear()
    assert [token.text for token in tokenize(text)][:3] == ["d", ".", "t"]
    with pytest.raises(AttributeError):
        tokenize(text)[0].start = 7


@pytest.mark.parametrize("text", ["x > 1e-3OR y = 2", "x > 1.5E+2AND y", "1e-3BETWEEN"])
def test_a_number_that_ends_before_a_keyword_is_refused_because_spark_reads_two_words(
    text: str,
) -> None:
    with pytest.raises(SqlSyntaxError, match="put a blank there") as error:
        tokenize(text)
    assert text[error.value.start] == "1"
    assert [token.text for token in tokenize("1e-3 OR 2.5E+2L")] == ["1e-3", "OR", "2.5E+2L"]
