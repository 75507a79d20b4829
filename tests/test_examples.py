"""The examples run unchanged, on little data."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from small_spark import JAVA_OPTIONS, loaded_classes

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_flights(spark, tmp_path, capsys):
    flights = load("flights")
    flights.main(["--rows", "2000", "--warehouse", str(tmp_path / "wh")])
    out = capsys.readouterr().out
    for fact in (
        r"planes: 3,322 inserted",
        r"flights: 2,000 inserted",
        r"planes: 2 inserted · txn",
        r"flights: [\d,]+ updated",
        r"planes: 400 updated",
        r"flights: [\d,]+ deleted",
        r"planes: 2 inserted, 3 updated, 2 deleted",
        r"month=1/",
        r"delete_delta_0000002_0000002",
        r"United Air Lines Inc\.\s+│\s+\d+ │ +[-\d.]+ │ +\d+ │",
        r"clear\s+│ +\d+ │",
        r"N103US  │  1999 │ AIRBUS +│ +184 │",
        r"N00001  │  2013 │ NULL +│ +150 │",
        r"│ +3 │ +\d+ │ DELETE +│",  # the history: version, transaction, operation
    ):
        assert re.search(fact, out), f"{fact}\n{out}"


@pytest.mark.classic
def test_first_steps(spark, tmp_path):
    assert load("first_steps").main(str(tmp_path)) == [
        (1, "nut", 7), (2, "bolt", 25), (4, "gear", 7),
    ]  # fmt: skip


@pytest.mark.classic
def test_streaming(spark, tmp_path):
    assert load("streaming").main(str(tmp_path)) == [(s, 5, 4) for s in range(3)]


@pytest.mark.slow
@pytest.mark.classic
def test_replication(spark, tmp_path, monkeypatch, capsys):
    """The stream's process is killed. The reader ends the program at the first difference.

    ACIDSQL_KILLS=50 kills it fifty times, which takes from twenty minutes on.
    """
    archive = f"-XX:SharedArchiveFile={loaded_classes()} -Xlog:disable"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{JAVA_OPTIONS} {archive}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    kills = int(os.environ.get("ACIDSQL_KILLS", "1"))
    times = ["--seconds", f"{12 * kills if kills > 1 else 4}", "--kills", f"{kills}"]
    monkeypatch.syspath_prepend(EXAMPLES)
    result = importlib.import_module("replication").main([*times, "--directory", str(tmp_path)])
    assert len(result.killed) == kills and result.transactions > 20 and result.batches > 1
    assert result.sights[-1].changes > 100 and result.sights[-1].lag == 0
    assert "all were equal" in capsys.readouterr().out
    assert (tmp_path / "lag.svg").read_text().count("<path") == kills


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
def test_submit(java_home, tmp_path):
    """Twice, in two processes: the second run finds what the first one wrote."""
    submit = Path(sys.executable).with_name("spark-submit")
    store = tmp_path / "store.db"
    command = [
        str(submit), "--master", "local[2]", "--conf", "spark.ui.enabled=false",
        "--driver-java-options", JAVA_OPTIONS,
        "--conf", f"spark.acidsql.warehouse={tmp_path / 'wh'}",
        "--conf", f"spark.acidsql.metastore=sqlite:///{store}",
        "--conf", "spark.acidsql.hive.txn.timeout=120s",
        str(EXAMPLES / "submit.py"),
    ]  # fmt: skip
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    for receipt in ("1 inserted", "1 updated"):
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr[-3000:]
        assert f"default.runs: {receipt}" in done.stdout
    assert re.search(r"submit.py\|\s+2\|", done.stdout)
    assert store.exists()
    assert (tmp_path / "wh" / "runs").is_dir()


def run_notebook(name: str) -> None:
    """Cell by cell. A cell with the tag raises-exception must fail."""
    notebook = json.loads((EXAMPLES / name).read_text())
    shell = InteractiveShell.instance()
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        result = shell.run_cell("".join(cell["source"]))
        if "raises-exception" in cell["metadata"].get("tags", ()):
            assert isinstance(result.error_in_exec, UsageError)
        else:
            assert result.success, cell["source"]


def test_notebook(spark, capsys):
    run_notebook("notebook.ipynb")
    out, err = capsys.readouterr()
    assert "default.stock: 1 updated · txn" in out
    assert "would be 3 updated" in out
    assert "update_preimage" in out
    assert "(2, 3)" in out
    assert (
        "3 rows, 9 deleted" in out and "3 rows, 0 deleted" in out
    )  # before and after the compaction
    assert "Traceback" not in out + err


@pytest.mark.classic
def test_notebook_of_replication(spark, capsys, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    run_notebook("replication.ipynb")
    out, err = capsys.readouterr()
    assert out.count(" changes, equal ") == 3
    assert "Traceback" not in out + err
