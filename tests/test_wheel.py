"""What `pip install acidsql` installs."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Runs an example with what is installed in a directory, and not with the sources beside the tests.
RUN = """
import runpy, sys
import acidsql
assert acidsql.__file__.startswith(sys.argv[1]), acidsql.__file__
example = runpy.run_path(sys.argv[2])
print(example["main"](sys.argv[3]))
"""


def run(*words: str, **more: str) -> str:
    environment = {**os.environ, **more}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environment, cwd=more["HOME"]
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a wheel, which is built from the sdist beside it."""
    place = tmp_path_factory.mktemp("dist")
    build = ["-m", "hatchling", "build", "-d", str(place)]
    subprocess.run([sys.executable, *build, "-t", "sdist"], check=True, cwd=ROOT)
    (sdist,) = place.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(place / "sources", filter="data")
    (sources,) = (place / "sources").iterdir()
    subprocess.run([sys.executable, *build, "-t", "wheel"], check=True, cwd=sources)
    return place


def test_the_wheel_has_all_files_of_the_packages_and_nothing_else(dist):
    (wheel,) = dist.glob("*.whl")
    found = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {
        str(path.relative_to(ROOT))
        for package in ("acidsql", "pyspark_acidsql")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert found == wanted
    assert "acidsql/py.typed" in found


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
def test_an_installed_wheel_runs_the_first_steps(dist, java_home, tmp_path):
    (wheel,) = dist.glob("*.whl")
    installed, warehouse = tmp_path / "installed", tmp_path / "warehouse"
    run("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(installed), str(wheel),
        HOME=str(tmp_path))  # fmt: skip
    example = str(ROOT / "examples" / "first_steps.py")
    places = {"PYTHONPATH": str(installed), "PYSPARK_PYTHON": sys.executable, "HOME": str(tmp_path)}
    told = run("-c", RUN, str(installed), example, str(warehouse), **places)
    assert "[(1, 'nut', 7), (2, 'bolt', 25), (4, 'gear', 7)]" in told
    told = run("-m", "acidsql", "--version", **places)
    assert told.startswith("acidsql, version ")
