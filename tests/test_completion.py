"""Words of statements are completed without Spark, and a slow store never stops who types."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from acidsql.api.names import NameLists
from acidsql.terminal.background import BackgroundAnswers
from acidsql.terminal.completion import StatementCompleter
from acidsql.terminal.keywords import KEYWORDS
from acidsql.terminal.shell import _PromptCompleter

GRAMMAR = Path(__file__).parent.parent / "grammar" / "dml.ebnf"
NO_WORDS = re.compile(r"\(\*.*?\*\)|\?.*?\?|'[^']*'", re.S)  # comments, prose, symbols


class PaperNames:
    """Names without a store. ``busy``: an answer waits for it."""

    def __init__(self) -> None:
        self.busy, self.calls = threading.Event(), 0
        self.busy.set()

    def acid_databases(self) -> list[str]:
        return ["default"]

    def spark_databases(self) -> list[str]:
        raise ConnectionError("Spark was stopped")

    def spark_tables(self, database: str | None = None) -> list[str]:
        raise ConnectionError("Spark was stopped")

    def acid_tables(self, database: str | None = None) -> list[str]:
        self.calls += 1
        self.busy.wait()
        return ["planes", "the places"]

    def columns(self, parts: tuple[str, ...]) -> list[str]:
        return ["seats", "date"] if parts[-1] == "planes" else []


def words(completer: StatementCompleter, text: str) -> list[str]:
    """The words for the place of ``|`` in a text."""
    before, _, after = text.partition("|")
    return completer.completions(before + after, len(before))[1]


def test_every_word_of_the_grammar_is_a_keyword():
    text = NO_WORDS.sub("", GRAMMAR.read_text())
    grammar_words = set(re.findall(r"\b[A-Z][A-Z_]+\b", text))
    assert len(grammar_words) > 100
    assert grammar_words <= KEYWORDS


def test_sparks_own_keywords_are_all_known(spark):
    rows = spark.sql("SELECT keyword FROM sql_keywords()").collect()
    assert len(rows) > 300
    assert {row.keyword for row in rows} - {"X"} <= KEYWORDS  # X begins a literal


def test_keywords_need_no_names():
    names = PaperNames()
    names.busy.clear()
    completer = StatementCompleter(names)
    assert words(completer, "SELEC|") == ["SELECT"]
    assert words(completer, "delete from planes retur|")[0] == "RETURN"
    assert names.calls == 0


def test_a_store_that_does_not_answer_is_asked_once_and_its_answer_comes_later():
    names = PaperNames()
    names.busy.clear()
    completer = StatementCompleter(names, BackgroundAnswers(wait_s=0.01))
    assert words(completer, "SELECT * FROM pl|") == []
    assert words(completer, "SELECT * FROM |") == ["default"]  # others are not held up
    assert names.calls == 1
    names.busy.set()
    patient = StatementCompleter(names, BackgroundAnswers(wait_s=60))
    assert words(patient, "SELECT * FROM |") == ["`the places`", "default", "planes"]


def test_the_last_answer_counts_until_a_new_one_comes():
    names = PaperNames()
    background = BackgroundAnswers(wait_s=60)
    completer = StatementCompleter(names, background)
    assert words(completer, "SELECT * FROM pl|") == ["planes"]
    names.busy.clear()
    background._wait_s = 0.01
    assert words(completer, "SELECT * FROM pl|") == ["planes"]
    names.busy.set()


def test_names_that_were_prepared_are_there_though_the_store_does_not_answer_any_more():
    names = PaperNames()
    completer = StatementCompleter(names, BackgroundAnswers(wait_s=60))
    completer.prepare()
    assert words(completer, "SELECT * FROM pl|") == ["planes"]  # waits for the first answers
    names.busy.clear()
    completer.background._wait_s = 0.01
    assert words(completer, "SELECT * FROM |") == ["`the places`", "default", "planes"]
    names.busy.set()


def test_a_question_that_fails_is_no_answer_and_is_asked_again():
    background, answers = BackgroundAnswers(wait_s=60), [ValueError("the session is closed")]

    def ask() -> list[str]:
        if answers:
            raise answers.pop()
        return ["t"]

    assert background.answers({("tables",): ask}) == []
    assert background.answers({("tables",): ask}) == ["t"]
    answers.append(ValueError("again"))
    assert background.answers({("tables",): ask}) == ["t"]  # the last answer


def test_a_column_with_a_keywords_name_is_completed_in_back_quotes():
    completer = StatementCompleter(PaperNames(), BackgroundAnswers(wait_s=60))
    assert words(completer, "SELECT `da|") == []
    assert words(completer, "SELECT `da| FROM planes") == ["`date`"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"\d pla|", [("planes", -3)]),
        (r"\d+ `the|", [("`the places`", -4)]),
        (r"\c |", [("default", 0)]),
        (r"\li|", [(r"\limit", -3)]),
        (r"\d|", [(r"\d", -2), (r"\d+", -2), (r"\dv", -2)]),
        ("\\d planes|;", [("planes", -6)]),
        ("SELECT seats FROM pla|", [("planes", -3)]),
        ("|", None),
    ],
)
def test_shortcuts_and_the_names_behind_them_are_completed(text, shown):
    before, _, after = text.partition("|")
    names = StatementCompleter(PaperNames(), BackgroundAnswers(wait_s=60))
    completions = _PromptCompleter(names).get_completions(
        Document(before + after, len(before)), CompleteEvent()
    )
    words = [(completion.text, completion.start_position) for completion in completions]
    assert words == shown if shown is not None else ("SELECT", 0) in words


@pytest.fixture
def complete(acid):
    """Gives the words for the place of ``|`` in a text, however long the store takes."""
    completer = StatementCompleter(NameLists(acid), BackgroundAnswers(wait_s=60))
    return lambda text: words(completer, text)


def test_names_are_completed_in_a_transaction_and_of_temporary_tables(acid, spark, complete):
    acid.sql("CREATE TABLE planes (tailnum STRING)")
    acid.sql("CREATE TEMPORARY TABLE planets (radius INT)")
    spark.range(1).createTempView("plain_view")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO planes VALUES ('N1')")
    assert complete("SELECT * FROM pla|") == ["plain_view", "planes", "planets"]
    assert complete("UPDATE planes SET tai|") == ["tailnum"]
    assert complete("SELECT planets.| FROM planets") == ["radius"]
    assert complete("SELECT plain_view.| FROM plain_view") == ["id"]
    acid.sql("ROLLBACK")


def test_no_lock_of_the_session_holds_up_a_completion(acid, complete):
    acid.sql("CREATE TABLE planes (tailnum STRING)")
    with acid._lock:  # as while a statement runs
        assert complete("SELECT * FROM pla|") == ["planes"]
