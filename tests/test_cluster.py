"""A cluster: executors in processes of their own, some of which are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.classic]


def run(program, java_home, directory):
    """Run a program beside this file. Returns the ended process, and the JSON of its last line."""
    ended = subprocess.run(
        [sys.executable, Path(__file__).with_name(program), directory],
        env={**os.environ, "JAVA_HOME": java_home},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended, json.loads(ended.stdout.splitlines()[-1])


def test_rows_are_neither_lost_nor_doubled_when_an_executor_is_killed(java_home, tmp_path):
    ended, rows = run("cluster_program.py", java_home, tmp_path)
    assert (tmp_path / "killed").exists() and "Lost executor" in ended.stderr
    expected = {id: ("updated" if id % 3 == 1 else "inserted", id % 3) for id in range(10, 1000)}
    expected |= {id: ("merged", id % 3) for id in range(990, 1000)}
    expected |= dict.fromkeys(range(1000, 1010), ("new", 0))
    assert rows == [[id, *values] for id, values in sorted(expected.items())]


def test_rows_are_neither_lost_nor_doubled_when_slow_tasks_run_twice(java_home, tmp_path):
    _, results = run("speculation_program.py", java_home, tmp_path)
    expected = {id: ("updated" if id % 3 == 1 else "inserted", id % 3) for id in range(10, 100)}
    expected |= {id: ("merged", id % 3) for id in range(40, 50)}
    expected |= dict.fromkeys(range(110, 120), ("new", 0))
    assert results["rows"] == [[id, *values] for id, values in sorted(expected.items())]
    assert results["statements_with_second_attempts"] == ["0", "1", "2", "3"]
