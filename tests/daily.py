"""Which tests run: those of the day, or all.

``make test`` runs the tests of the day. ``make test-all`` runs all tests. Marks say what the day
leaves out:

- ``rare``: long, and each kind of fault that it finds is found by a shorter test, too
  (``make mutants`` proves it).
- ``rotating(n)``: one of many like it, such as a death after each call of a statement. Each day
  runs one in ``n`` of a module's rotating tests, so that all have run after ``n`` days.
- ``rotating(n, whole=True)``: its module needs something that takes long to start, such as a
  server. All its rotating tests run on one day in ``n``.
- ``every_day``: it does not rotate, although its class or module does, but not as a whole.

A test that a mutant of ``tests/mutants`` names by itself (``file::test``) runs every day. If a
mutant names a file only, the tests of a day may miss it.

``TURNS`` and ``WHOLE`` have modules all of whose tests rotate. A test whose file is named on the
command line always runs.
"""

from __future__ import annotations

import os
import tomllib
import zlib
from collections import Counter
from collections.abc import Iterable
from datetime import date
from fnmatch import fnmatch
from pathlib import Path

import pytest

DAY = "ACIDSQL_TEST_DAY"
HERE = Path(__file__).parent
# Modules whose tests take turns, by their paths (the first pattern that fits counts): each day runs
# one test in so many of the module. So ``make test`` takes a quarter of an hour on two cores.
TURNS = (
    ("extension/test_*.py", 3),
    ("faults/test_processes.py", 5),
    ("faults/test_transaction_faults.py", 4),
    ("faults/test_*.py", 6),
    ("cdc/test_*.py", 6),
    ("compaction/test_size_tiered.py", 3),
    ("compaction/test_living_snapshots.py", 3),
    ("dml/test_insert.py", 2),
    ("dml/test_update_delete.py", 2),
    ("dml/test_merge.py", 2),
    ("dml/test_transactions.py", 2),
    ("dml/test_*.py", 5),
    ("history/test_history.py", 5),
    ("metastore/test_embedded_store.py", 4),
    ("metastore/test_migrations.py", 4),
    ("metastore/test_snapshot_model.py", 3),
    ("sql/test_against_spark.py", 3),
    ("streams/test_*.py", 4),
    ("test_browser.py", 3),
    ("test_examples.py", 4),
    ("test_golden.py", 3),
    ("test_magic.py", 3),
    ("test_quiet_spark.py", 3),
    ("test_shell.py", 3),
    ("test_scan_traps.py", 3),
    ("txn/test_*interleavings.py", 4),
)
# Modules that take turns as a whole, because they start a server, or have one long test: all their
# tests run on one day in so many.
WHOLE = (
    ("beside/test_*.py", 6),
    ("dml/test_hive*.py", 6),
    ("faults/test_hive_*.py", 6),
    ("hdfs/test_*.py", 5),
    ("history/test_history_spark.py", 4),
    ("metastore/test_hive*.py", 5),
    ("test_cluster.py", 5),
    ("test_hive_reader.py", 5),
    ("test_site.py", 3),
    ("test_spark_connect.py", 3),
    ("test_wheel.py", 3),
)
MARKS = (
    "rare: left out of the tests of the day",
    "rotating(n, whole=False): each day runs one in n of a module's rotating tests; "
    "whole: one day in n runs them all",
    "every_day: it does not rotate, although its class or module does",
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
    killers, numbers = _killers(), Counter[Path]()
    chosen, left_out = [], []
    for item in items:
        names = {(item.path, item.name), (item.path, getattr(item, "originalname", ""))}
        is_chosen = (
            item.path in named_files
            or not killers.isdisjoint(names)
            or (item.get_closest_marker("rare") is None and _is_turn_of(item, numbers))
        )
        (chosen if is_chosen else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = chosen


def _killers() -> set[tuple[Path, str]]:
    """The tests that mutants name by themselves: file, and function with or without ``[case]``."""
    names = (
        name.split("::")
        for path in HERE.glob("mutants/*.toml")
        for mutant in tomllib.loads(path.read_text())["mutant"]
        for name in mutant["tests"]
    )
    return {(HERE.parent / file, function) for file, *rest in names for function in rest[-1:]}


def _is_turn_of(item: pytest.Item, numbers: Counter[Path]) -> bool:
    """Whether it is a test's day. ``numbers``: how many rotating tests of each module came before;
    a rotating test is counted."""
    days, is_whole = _rotation(item)
    if not is_whole and item.get_closest_marker("every_day") is not None:
        return True
    # Modules begin with different days, so that all days have about as much to do.
    number = zlib.crc32(item.path.name.encode()) + int(os.environ[DAY])
    if not is_whole:
        number += numbers[item.path]
        numbers[item.path] += 1
    return number % days == 0


def _rotation(item: pytest.Item) -> tuple[int, bool]:
    """Return by how many days a test rotates (1: it runs each day), and whether its module rotates
    as a whole."""
    if (mark := item.get_closest_marker("rotating")) is not None:
        (days,) = mark.args
        return days, mark.kwargs.get("whole", False)
    name = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
    for pattern, days in WHOLE:
        if fnmatch(name, pattern):
            return days, True
    return next((days for pattern, days in TURNS if fnmatch(name, pattern)), 1), False


def _named_files(arguments: Iterable[str]) -> set[Path]:
    """The files among the command line's arguments: ``tests/a.py``, ``tests/a.py::test_b``."""
    paths = (Path(argument.split("::")[0]) for argument in arguments)
    return {path.resolve() for path in paths if path.is_file()}
