"""Which Python Spark's workers run, and how it finds acidsql's code."""

from __future__ import annotations

import importlib.util
import os
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import acidsql
from acidsql.errors import SettingError
from acidsql.storage.spark.session import python_workers
from acidsql.storage.spark.session.python_workers import prepare_workers

HERE = Path(acidsql.__file__).parent.parent


class PaperContext:
    """The parts of a Spark context that are used."""

    def __init__(self):
        self.master, self.pythonExec = "local[2]", "python3"
        self.environment, self.sent, self.archives = {}, [], []

    def addPyFile(self, path):  # noqa: N802
        self.sent.append(path)

    def addArchive(self, path):  # noqa: N802
        self.archives.append(path)


@pytest.fixture
def context(monkeypatch):
    """A context for which no Python was chosen."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return PaperContext()


def prepare(context):
    prepare_workers(SimpleNamespace(_sc=context))


def python(tmp_path, monkeypatch, answer: str) -> str:
    """A Python that the user has chosen, and its answer."""
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\necho '{answer}'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(script))
    return str(script)


def test_the_drivers_own_where_nobody_chose(context):
    prepare(context)
    assert context.pythonExec == sys.executable


def test_a_chosen_one_is_kept(context, tmp_path, monkeypatch):
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    context.pythonExec = chosen = python(tmp_path, monkeypatch, f"{version} True")
    prepare(context)
    assert context.pythonExec == chosen


@pytest.mark.parametrize("answer", ["2.7 True", f"3.{sys.version_info.minor} False", ""])
def test_one_that_cannot_run_our_code_is_refused(context, tmp_path, monkeypatch, answer):
    context.pythonExec = python(tmp_path, monkeypatch, answer)
    with pytest.raises(SettingError, match="PYSPARK_PYTHON") as error:
        prepare(context)
    assert sys.executable in str(error.value)


def test_a_clusters_is_its_own(context):
    context.master = "yarn"
    prepare(context)
    assert context.pythonExec == "python3"


class PaperSession:
    """The part of a session of Spark Connect that is used."""

    def __init__(self):
        self.sent, self.conf = [], {python_workers._ISOLATION: "true"}

    def addArtifacts(self, path, *, pyfile):  # noqa: N802
        assert pyfile
        self.sent.append(path)


def test_a_session_of_spark_connect_gets_our_code_once():
    session = PaperSession()
    prepare_workers(session)
    prepare_workers(session)
    (archive,) = session.sent
    assert "acidsql/storage/writing/event_writer.py" in zipfile.ZipFile(archive).namelist()


def test_the_drivers_own_python_is_told_where_the_driver_found_our_code(context, monkeypatch):
    """A program may have put the code on its own sys.path only, and another version may be
    installed."""
    context.environment["PYTHONPATH"] = "/theirs"
    prepare(context)
    prepare(context)
    assert context.environment["PYTHONPATH"] == f"{HERE}{os.pathsep}/theirs"
    assert context.sent == []


def test_installed_code_is_found_by_the_drivers_own_python(context, monkeypatch):
    monkeypatch.setattr(python_workers.site, "getsitepackages", lambda: [str(HERE)])
    prepare(context)
    assert context.environment == {} and context.sent == []


@pytest.mark.parametrize("master", ["yarn", "local[2]"])
def test_another_python_is_sent_our_code_once(context, tmp_path, monkeypatch, master):
    context.master = master
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    context.pythonExec = python(tmp_path, monkeypatch, f"{version} True")
    prepare(context)
    prepare(context)
    [archive] = context.sent
    assert "acidsql/storage/writing/event_writer.py" in zipfile.ZipFile(archive).namelist()
    has_client = importlib.util.find_spec("hdfs_native") is not None
    assert len(context.archives) == (master == "yarn" and has_client)


@pytest.mark.classic
def test_workers_see_the_path_that_they_were_told(acid, spark):
    def paths(batches):
        import pyarrow as pa

        list(batches)
        yield pa.RecordBatch.from_pydict({"path": [os.environ.get("PYTHONPATH", "")]})

    [row] = spark.range(1, numPartitions=1).mapInArrow(paths, "path STRING").collect()
    assert str(HERE) in row.path.split(os.pathsep)
