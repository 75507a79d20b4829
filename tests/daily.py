"""Which tests run: those of the day, or all.

``make test`` runs the tests of the day. ``make test-all`` runs all tests. Marks say what the day
leaves out:

- ``rare``: long, and each kind of fault that it finds is found by a shorter test, too
  (``make mutants`` proves it).
- ``rotating(n)``: one of many like it, such as a death after each call of a statement. Each day
  runs one in ``n`` of a module's rotating tests, so that all have run after ``n`` days.
- ``every_day``: it is neither, although its class or module is.

A test whose file is named on the command line always runs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest

DAY = "ACIDSQL_TEST_DAY"
MARKS = (
    "rare: left out of the tests of the day",
    "rotating(n): each day runs one in n of a module's rotating tests",
    "every_day: a test of the day, although its class or module is rare or rotating",
)


def add_option(parser: pytest.Parser) -> None:
    """Add ``--tests`` to pytest's options."""
    parser.addoption(
        "--tests",
        choices=("day", "all"),
        help="the tests of the day, or all. Default: of the files that are named all, "
        "of directories those of the day",
    )


def set_day(config: pytest.Config) -> None:
    """Register the marks, and fix the day for all processes of a run, which may pass midnight."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    os.environ.setdefault(DAY, str(date.today().toordinal()))


def describe_choice(config: pytest.Config) -> str:
    """Return a line for pytest's header: which tests run, and how to choose the same ones again."""
    if config.getoption("tests") == "all":
        return "tests: all"
    return f"tests: those of day {os.environ[DAY]} ({DAY}={os.environ[DAY]} chooses the same)"


def choose_tests(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove the tests that the day leaves out from ``items``."""
    choice = config.getoption("tests")
    if choice == "all":
        return
    named_files = set() if choice == "day" else _named_files(config.args)
    day = int(os.environ[DAY])
    rotating_tests: Counter[tuple[Path, int]] = Counter()
    chosen, left_out = [], []
    for item in items:
        is_chosen = item.path in named_files or item.get_closest_marker("every_day") is not None
        if not is_chosen and item.get_closest_marker("rare") is None:
            rotation = item.get_closest_marker("rotating")
            days = 1 if rotation is None else rotation.args[0]
            group = (item.path, days)
            is_chosen = (rotating_tests[group] + day) % days == 0
            rotating_tests[group] += 1
        (chosen if is_chosen else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = chosen


def _named_files(arguments: Iterable[str]) -> set[Path]:
    """The files among the command line's arguments: ``tests/a.py``, ``tests/a.py::test_b``."""
    paths = (Path(argument.split("::")[0]) for argument in arguments)
    return {path.resolve() for path in paths if path.is_file()}
