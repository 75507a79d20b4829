"""The cases, the recorded answers, the list of differences and its page belong together."""

from pathlib import Path

import pytest
from suite import recording
from suite.answers import kind_of
from suite.differences import DIFFERENCES
from suite.topics import cases_of, topics

PAGE = Path(__file__).parents[2] / "docs" / "comparison.md"
HEADING = "## Where the answers differ"


def test_there_are_six_hundred_cases_that_another_engine_answers():
    assert sum(len(cases_of(topic)) for topic in topics()) >= 600


@pytest.mark.parametrize("topic", topics())
def test_a_name_stands_for_one_case(topic):
    names = [case.name for case in cases_of(topic)]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("topic", topics())
def test_each_answer_is_to_the_question_of_its_case(topic):
    """If this fails, ``make test-peers ARGS="--record --new"`` asks for what is missing."""
    recorded = {name: answer["of"] for name, answer in recording.load(topic).items()}
    assert recorded == {case.name: case.digest() for case in cases_of(topic)}


@pytest.mark.parametrize("topic", topics())
def test_each_recorded_error_is_of_a_kind(topic):
    conditions = {answer["error"] for answer in recording.load(topic).values() if "error" in answer}
    assert [name for name in sorted(conditions) if kind_of(name) is None] == []


def test_a_difference_is_of_a_case_and_has_one_reason():
    names = [name for difference in DIFFERENCES for name in difference.cases]
    assert len(set(names)) == len(names)
    assert set(names) <= {f"{topic}: {case.name}" for topic in topics() for case in cases_of(topic)}


def test_the_page_has_the_reasons_of_the_differences():
    section = PAGE.read_text("utf-8").split(HEADING)[1].split("\n## ")[0]
    items = section.replace("\n  ", " ").split("\n- ")[1:]
    reasons = [item.split("\n\n")[0].strip() for item in items]
    assert reasons == [difference.reason for difference in DIFFERENCES]
