"""What `pip install acidsql` installs."""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ADAPTER = ROOT / "acidsql" / "dbt_adapter"  # the build maps what is in it to the top
USERS_SCRIPT = ROOT / "tests" / "users_script.py"
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
        str(path.relative_to(above))
        for above, package in ((ROOT, "acidsql"), (ROOT, "pyspark_acidsql"), (ADAPTER, "dbt"))
        for path in (above / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
        if above == ADAPTER or ADAPTER not in path.parents
    }
    assert found == wanted
    assert "acidsql/py.typed" in found
    # dbt's packages are shared: no wheel but dbt's own has these files.
    shared = {f"dbt/{package}__init__.py" for package in ("", "adapters/", "include/")}
    assert found.isdisjoint(shared) and "dbt/adapters/acidsql/__init__.py" in found


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


@pytest.fixture(scope="module")
def users_python(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a virtual environment in which the wheel is installed, and, from this
    environment, the packages that it needs."""
    place = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    (wheel,) = dist.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(packages)
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()))
    return place / "bin" / "python"


def types_by_mypy(python: Path, script: Path) -> tuple[dict[int, str], dict[int, str]]:
    """What mypy says of a script: line → revealed type, line → error. Types are without the names
    of modules."""
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--output=json", f"--python-executable={python}",
         "--config-file=", f"--cache-dir={script.parent / 'cache'}", str(script)],
        capture_output=True, text=True, cwd=script.parent, env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    revealed, errors = {}, {}
    for line in filter(None, done.stdout.splitlines()):
        report = json.loads(line)
        assert Path(report["file"]) == script or report["file"] == script.name, report
        if match := re.fullmatch(r'Revealed type is "(.*)"', report["message"]):
            revealed[report["line"]] = re.sub(r"(\w+\.)+", "", match[1])
        elif report["severity"] == "error":
            errors[report["line"]] = report["message"]
    assert revealed or errors, done.stderr
    return revealed, errors


def types_by_pyright(python: Path, script: Path) -> tuple[dict[int, str], dict[int, str]]:
    """What pyright says of a script, as ``types_by_mypy``."""
    if (pyright := shutil.which("pyright") or shutil.which("basedpyright")) is None:
        pytest.skip("pyright is not installed")
    (script.parent / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    done = subprocess.run(
        [pyright, "--outputjson", f"--pythonpath={python}", str(script)],
        capture_output=True, text=True, cwd=script.parent, env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    revealed, errors = {}, {}
    for report in json.loads(done.stdout)["generalDiagnostics"]:
        line = report["range"]["start"]["line"] + 1
        if report["severity"] == "information":
            revealed[line] = report["message"].rpartition(' is "')[2].removesuffix('"')
        elif report["severity"] == "error":
            errors[line] = report["message"]
    return revealed, errors


@pytest.mark.slow
@pytest.mark.parametrize("types_by", [types_by_mypy, types_by_pyright])
def test_a_type_checker_knows_the_types_of_the_installed_package(users_python, types_by, tmp_path):
    script = tmp_path / "users_script.py"
    script.write_text(USERS_SCRIPT.read_text())
    lines = dict(enumerate(script.read_text().splitlines(), 1))
    expected_types = {n: text.partition("  # reveals: ")[2] for n, text in lines.items()}
    expected_errors = {
        n: text.partition("  # error: ")[2].split("  #")[0] for n, text in lines.items()
    }
    revealed, errors = types_by(users_python, script)
    assert revealed == {n: text for n, text in expected_types.items() if text}
    assert errors.keys() == {n for n, text in expected_errors.items() if text}, errors
    for number, message in errors.items():
        assert expected_errors[number] in message
