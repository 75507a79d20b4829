"""Compares acidsql with the recorded answers."""

from __future__ import annotations

from typing import Any

import pytest

from suite import ours, recording
from suite.answers import kind_of
from suite.case import Case
from suite.differences import answers
from suite.topics import cases_of


def params(*topics: str) -> list[Any]:
    """The parameters of a test: a topic, a case, and a layout of its target. Each day replays one
    in six.
    """
    return [
        pytest.param(
            topic,
            case,
            layout,
            id=f"{topic}: {case.name}" + _suffix(layout),
            marks=pytest.mark.rotating(6),
        )
        for topic in topics
        for case in cases_of(topic)
        for layout in case.layouts
    ]


def _suffix(layout: str) -> str:
    return "" if layout == "plain" else f" [{layout}]"


def replay(acid: Any, topic: str, case: Case, layout: str) -> None:
    """Check that acidsql answers as the oracle does, or as the list of differences says."""
    answer, oracle = ours.ask(acid, case, layout), recording.load(topic)[case.name]
    own = answers().get(f"{topic}: {case.name}")
    _compare(answer, oracle if own is None else own)
    if own is not None:
        with pytest.raises(AssertionError):  # else there is no difference any more
            _compare(answer, oracle)


def _compare(answer: dict[str, Any], right: dict[str, Any] | str) -> None:
    """Check an answer. ``right``: the right one, or the kind of error that is right."""
    assert _kind(answer) == _kind(right), answer
    if isinstance(right, str):
        return
    for part in ("columns", "rows"):
        assert answer.get(part, right.get(part)) == right.get(part, answer.get(part))
    counts, right_counts = answer.get("counts", {}), right.get("counts", {})
    both = counts.keys() & right_counts.keys()
    assert {name: counts[name] for name in both} == {name: right_counts[name] for name in both}


def _kind(answer: dict[str, Any] | str) -> str | None:
    if isinstance(answer, str):
        return answer
    condition = answer.get("error")
    return None if condition is None else kind_of(condition) or condition
