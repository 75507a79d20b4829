"""The tests of the day: what they leave out, and that all have run after some days."""

from __future__ import annotations

import re
from pathlib import Path

import daily
import pytest

pytest_plugins = ["pytester"]
TESTS = """
import pytest

@pytest.mark.rare
def test_rare():
    pass

@pytest.mark.rotating(3)
@pytest.mark.parametrize("number", range(7))
def test_rotating(number):
    pass

@pytest.mark.rotating(3)
class TestClass:
    @pytest.mark.every_day
    def test_important(self):
        pass

@pytest.mark.rotating(3, whole=True)
@pytest.mark.parametrize("number", range(4))
def test_with_a_server(number):
    pass

def test_usual():
    pass
"""
CONFTEST = (
    "from daily import add_option as pytest_addoption, choose_tests, set_day as pytest_configure"
)
HOOK = "def pytest_collection_modifyitems(config, items): choose_tests(config, items)"
ROTATING = {f"test_rotating[{number}]" for number in range(7)}
WHOLE = {f"test_with_a_server[{number}]" for number in range(4)}
ALL = {"test_rare", "test_usual", "test_important", *ROTATING, *WHOLE}


@pytest.fixture
def names_of_run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """A function that runs pytest with these arguments on a day, and returns the tests that ran."""
    pytester.makeconftest(f"{CONFTEST}\n{HOOK}")
    directory = pytester.mkdir("directory")
    (directory / "test_it.py").write_text(TESTS)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))

    def run(*arguments: str, day: int = 0) -> set[str]:
        monkeypatch.setenv("ACIDSQL_TEST_DAY", str(day))
        ended = pytester.runpytest_subprocess("-v", "-p", "no:cacheprovider", *arguments)
        return set(re.findall(r"::(test_\S+) PASSED", str(ended.stdout)))

    return run


def test_a_day_runs_a_third_of_the_rotating_tests_and_three_days_all(names_of_run):
    days = [names_of_run("directory", day=day) for day in (739000, 739001, 739002)]
    assert all({"test_usual", "test_important"} <= names for names in days)
    assert all("test_rare" not in names for names in days)
    chosen = [names & ROTATING for names in days]
    assert {len(names) for names in chosen} == {2, 3}, chosen
    assert set.union(*chosen) == ROTATING and sum(map(len, chosen)) == len(ROTATING)
    assert sorted((names & WHOLE for names in days), key=len) == [set(), set(), WHOLE]


def test_all_tests_run_where_all_are_asked_for_or_their_file_is_named(names_of_run):
    assert names_of_run("--tests", "all") == ALL
    assert names_of_run("directory/test_it.py") == ALL
    assert names_of_run("directory/test_it.py::test_rare") == {"test_rare"}


def test_the_tests_of_the_day_can_be_asked_for_also_of_a_file_that_is_named(names_of_run):
    assert "test_rare" not in names_of_run("--tests", "day", "directory/test_it.py")


def test_each_pattern_of_modules_fits_one():
    here = Path(__file__).parent
    patterns = [pattern for pattern, _ in (*daily.TURNS, *daily.WHOLE)]
    assert [pattern for pattern in patterns if not any(here.glob(pattern))] == []
