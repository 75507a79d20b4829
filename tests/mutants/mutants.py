"""Small faults, each of which the tests must notice: ``make mutants`` tries them.

``python tests/mutants/mutants.py`` applies each mutant of the lists beside this file (``*.toml``)
to a copy of the package, runs the tests that are named for the mutant until the first failure, and
prints which test killed it, after how many seconds; a mutant that no test kills has *survived*.
Before that, the tests must pass over a copy without a fault.

    --only WORD   the mutants whose file or sentence contains the word
    --fast        only mutants whose tests need no Spark
    --spark       only mutants whose tests need Spark
    --tests day   only with the tests of the day, as ``make test`` (default: all, as ``test-all``)
    --at-once N   so many at a time (default 2)
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("acidsql", "pyspark_acidsql", "tests", "grammar", "docs", "examples", "pyproject.toml")
TIME_LIMIT_S = 900  # a mutant that makes a test wait for ever is killed, too
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A small fault.

    Attributes:
        file: The file that has the fault, from the repository's root.
        old: The right code. It occurs once in the file.
        new: The wrong code in its place.
        breaks: What goes wrong, as a sentence.
        tests: The tests that should notice: files, or single tests (``file::test``).
        needs_spark: Whether these tests need Spark.
    """

    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    needs_spark: bool = False

    @property
    def is_applicable(self) -> bool:
        """Whether the right code occurs once in the file, so that the fault can be made."""
        path = ROOT / self.file
        return path.is_file() and path.read_text().count(self.old) == 1


def all_mutants() -> list[Mutant]:
    """All mutants of the lists, in the order of the lists."""
    mutants = []
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["mutant"]:
            mutants.append(Mutant(**{**entry, "tests": tuple(entry["tests"])}))
    return mutants


def run_tests(
    tests: Sequence[str], mutant: Mutant | None, *, needs_spark: bool, choice: str
) -> str:
    """Run tests over a copy of the project, with a fault or without one, until the first failure.

    ``choice``: "all", or "day" for those of the named tests that belong to the tests of the day.

    Returns:
        The test that failed; "" if all pass; else, in brackets, why nothing can be said.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory:
        for name in COPIED:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, Path(directory) / name)
        if mutant is not None:
            path = Path(directory) / mutant.file
            path.write_text(path.read_text().replace(mutant.old, mutant.new))
        marks = [] if needs_spark else ["-m", "not spark"]
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": directory}
        ended = subprocess.run(
            [*command, "--tests", choice, *marks, *tests],
            cwd=directory, env=environment, check=False, capture_output=True, text=True,
            timeout=None if mutant is None else TIME_LIMIT_S,
        )  # fmt: skip
    if ended.returncode == 0:
        return ""
    failed = _FAILED.search(ended.stdout)
    # Without a test that ran and failed, the fault was not noticed: the tests were not there.
    if ended.returncode != 1 or failed is None:
        return f"(pytest ended with {ended.returncode}: {ended.stdout.strip()[-200:]})"
    return failed[1]


def try_mutant(mutant: Mutant, choice: str) -> tuple[str, float]:
    """Run a mutant's tests over a copy with the fault. ``choice``: as for ``run_tests``.

    Returns:
        The test that failed first, ``SURVIVED``, or in brackets why it was not tried; and the
        seconds that it took.
    """
    start = time.monotonic()
    try:
        needs_spark = mutant.needs_spark
        killer = run_tests(mutant.tests, mutant, needs_spark=needs_spark, choice=choice)
    except subprocess.TimeoutExpired:
        killer = "a test that waited for ever"
    return killer or "SURVIVED", time.monotonic() - start


def first_failure_without_fault(mutants: Sequence[Mutant], choice: str) -> str:
    """Return the first of the mutants' tests that fails, or cannot run, over an unchanged copy: it
    proves nothing. "" if all pass."""
    for needs_spark in (False, True):
        tests = {
            test for mutant in mutants if mutant.needs_spark == needs_spark for test in mutant.tests
        }
        if not tests:
            continue
        if failure := run_tests(sorted(tests), None, needs_spark=needs_spark, choice=choice):
            return failure
    return ""


def main() -> None:
    """Try the mutants that the arguments choose, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--fast", action="store_true")
    kind.add_argument("--spark", action="store_true")
    parser.add_argument("--tests", choices=("day", "all"), default="all")
    parser.add_argument("--at-once", type=int, default=2)
    options = parser.parse_args()
    chosen = [
        mutant
        for mutant in all_mutants()
        if options.only.lower() in f"{mutant.file} {mutant.breaks}".lower()
        and not (options.fast and mutant.needs_spark)
        and not (options.spark and not mutant.needs_spark)
    ]
    if failure := first_failure_without_fault(chosen, options.tests):
        sys.exit(f"Without any fault, this fails already: {failure}")
    not_killed = 0
    with ThreadPoolExecutor(options.at_once) as pool:
        outcomes = pool.map(try_mutant, chosen, repeat(options.tests))
        for mutant, (killer, seconds) in zip(chosen, outcomes, strict=True):
            not_killed += killer == "SURVIVED" or killer.startswith("(")
            print(
                f"{seconds:6.1f} s  {killer}\n          {mutant.file}: {mutant.breaks}", flush=True
            )
    print(f"{len(chosen) - not_killed} of {len(chosen)} mutants were killed")
    sys.exit(not_killed > 0)


if __name__ == "__main__":
    main()
