"""Spark's Python workers must run a Python that can run our code, and find that code."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import SettingError
from acidsql.storage.jvm import spark_context

# Cheap: pyarrow is looked for, not imported.
_PROBE = (
    "import importlib.util as u, sys; "
    "print('.'.join(map(str, sys.version_info[:2])), u.find_spec('pyarrow') is not None)"
)

_prepared: WeakSet[Any] = WeakSet()  # Spark contexts


def prepare_workers(spark: SparkSession) -> None:
    """See that Spark's Python workers can run our code.

    Where nobody chose a Python, PySpark takes whatever ``python3`` is first on the path: not the
    virtual environment's. On one machine the driver's own is right. On a cluster the path is
    another machine's, and Spark's own message about a wrong one must do.

    Raises:
        SettingError: PYSPARK_PYTHON names one of another version, or without pyarrow.
    """
    context = spark_context(spark)
    if context is None or context in _prepared:
        return
    is_local = str(context.master).startswith("local")
    if is_local and not os.environ.get("PYSPARK_PYTHON"):
        context.pythonExec = sys.executable
    if is_local and _is_ours(context.pythonExec):
        _lend_our_path(context)
    else:
        if is_local:
            _need_our_version(context.pythonExec)
        _ship_package(context)
    _prepared.add(context)


def _is_ours(python: str) -> bool:
    found = shutil.which(python)
    return found is not None and os.path.abspath(found) == os.path.abspath(sys.executable)


def _need_our_version(python: str) -> None:
    chosen = shutil.which(python)
    if chosen is None:
        return  # Spark says so itself
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    asked = subprocess.run([chosen, "-c", _PROBE], capture_output=True, text=True, check=False)
    if asked.stdout.strip() != f"{version} True":
        raise SettingError(
            f"Spark's Python workers would run '{chosen}', which is not Python {version} with "
            "pyarrow. Set the environment variable PYSPARK_PYTHON to "
            f"'{sys.executable}' before Spark starts.",
            python=chosen,
        )


def _lend_our_path(context: Any) -> None:
    """Our Python finds what is installed; not what a program has put on its own ``sys.path``."""
    place = str(Path(acidsql.__file__).parent.parent)
    if place in {*site.getsitepackages(), site.getusersitepackages()}:
        return
    others = context.environment.get("PYTHONPATH")
    context.environment["PYTHONPATH"] = os.pathsep.join([place, *([others] if others else [])])


def _ship_package(context: Any) -> None:
    """Send our code: another Python, here or on a cluster, may have none, or another version's."""
    root = Path(acidsql.__file__).parent
    archive = Path(tempfile.mkdtemp(prefix="acidsql-")) / "acidsql.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(root.rglob("*.py")):
            file.write(path, path.relative_to(root.parent))
    context.addPyFile(str(archive))
