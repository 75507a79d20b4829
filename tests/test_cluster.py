"""A cluster: executors in processes of their own, some of which are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.classic]

PROGRAM = Path(__file__).with_name("cluster_program.py")


def test_rows_are_neither_lost_nor_doubled_when_an_executor_is_killed(java_home, tmp_path):
    ended = subprocess.run(
        [sys.executable, PROGRAM, tmp_path],
        env={**os.environ, "JAVA_HOME": java_home},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert (tmp_path / "killed").exists() and "Lost executor" in ended.stderr
    expected = {id: ("updated" if id % 3 == 1 else "inserted", id % 3) for id in range(10, 1000)}
    expected |= {id: ("merged", id % 3) for id in range(990, 1000)}
    expected |= dict.fromkeys(range(1000, 1010), ("new", 0))
    assert json.loads(ended.stdout.splitlines()[-1]) == [
        [id, *values] for id, values in sorted(expected.items())
    ]
