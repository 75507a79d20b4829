"""Which Python Spark's workers run; with a Spark context made of paper."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from acidsql.errors import SettingError
from acidsql.storage.jvm import match_worker_python


@pytest.fixture
def paper(monkeypatch):
    """Nobody chose a Python for this one."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return SimpleNamespace(_sc=SimpleNamespace(master="local[2]", pythonExec="python3"))


def python(tmp_path, monkeypatch, answer: str) -> str:
    """A Python that somebody chose, and what it answers."""
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\necho '{answer}'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(script))
    return str(script)


def test_the_drivers_own_where_nobody_chose(paper):
    match_worker_python(paper)
    assert paper._sc.pythonExec == sys.executable


def test_a_chosen_one_is_kept(paper, tmp_path, monkeypatch):
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    paper._sc.pythonExec = chosen = python(tmp_path, monkeypatch, f"{version} True")
    match_worker_python(paper)
    assert paper._sc.pythonExec == chosen


@pytest.mark.parametrize("answer", ["2.7 True", f"3.{sys.version_info.minor} False", ""])
def test_one_that_cannot_run_our_code_is_refused(paper, tmp_path, monkeypatch, answer):
    paper._sc.pythonExec = python(tmp_path, monkeypatch, answer)
    with pytest.raises(SettingError, match="PYSPARK_PYTHON") as error:
        match_worker_python(paper)
    assert sys.executable in str(error.value)


def test_a_clusters_is_its_own(paper):
    paper._sc.master = "yarn"
    match_worker_python(paper)
    assert paper._sc.pythonExec == "python3"


def test_spark_connect_has_none():
    match_worker_python(SimpleNamespace())
