"""Small faults, each of which the tests must notice: ``make mutants`` tries them.

``python tests/mutants/mutants.py`` applies each mutant of the lists beside this file (``*.toml``)
to a copy of the package, runs the tests that are named for the mutant until the first failure, and
prints which test killed it, after how many seconds; a mutant that no test kills has *survived*.

    --only WORD   the mutants whose file or sentence contains the word
    --fast        only mutants whose tests need no Spark
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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


def try_mutant(mutant: Mutant) -> tuple[str, float]:
    """Run a mutant's tests over a copy with the fault.

    Returns:
        The test that failed first, or ``SURVIVED``; and the seconds that it took.
    """
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory:
        for name in COPIED:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, Path(directory) / name)
        path = Path(directory) / mutant.file
        path.write_text(path.read_text().replace(mutant.old, mutant.new))
        marks = [] if mutant.needs_spark else ["-m", "not spark"]
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *marks]
        environment = {**os.environ, "PYTHONPATH": directory}
        try:
            ended = subprocess.run(
                [*command, *mutant.tests], cwd=directory, env=environment, check=False,
                capture_output=True, text=True, timeout=TIME_LIMIT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "(it waited for ever)", time.monotonic() - start
    seconds = time.monotonic() - start
    if ended.returncode == 0:
        return "SURVIVED", seconds
    failed = _FAILED.search(ended.stdout)
    return failed[1] if failed else f"(pytest ended with {ended.returncode})", seconds


def main() -> None:
    """Try the mutants that the arguments choose, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--at-once", type=int, default=2)
    options = parser.parse_args()
    chosen = [
        mutant
        for mutant in all_mutants()
        if options.only.lower() in f"{mutant.file} {mutant.breaks}".lower()
        and not (options.fast and mutant.needs_spark)
    ]
    survivors = 0
    with ThreadPoolExecutor(options.at_once) as pool:
        for mutant, (killer, seconds) in zip(chosen, pool.map(try_mutant, chosen), strict=True):
            survivors += killer == "SURVIVED"
            print(
                f"{seconds:6.1f} s  {killer}\n          {mutant.file}: {mutant.breaks}", flush=True
            )
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants were killed")
    sys.exit(survivors > 0)


if __name__ == "__main__":
    main()
