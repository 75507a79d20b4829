"""Make sure that Spark's Python workers can find and run our code."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import logging
import os
import shutil
import site
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import SettingError
from acidsql.storage.files.options.hdfs_options import SHIPPED_CLIENT
from acidsql.storage.spark.session.jvm import is_on, spark_context

# find_spec is cheap: it does not import pyarrow.
_PROBE = (
    "import importlib.util as u, sys; "
    "print('.'.join(map(str, sys.version_info[:2])), u.find_spec('pyarrow') is not None)"
)

_ISOLATION = "spark.sql.artifact.isolation.enabled"
_log = logging.getLogger(__name__)
_prepared: WeakSet[Any] = WeakSet()  # Spark contexts, and sessions of Spark Connect


def prepare_workers(spark: SparkSession) -> None:
    """Make sure that Spark's Python workers can find our code, and with a local master, run it:
    set the context's Python and path, or send an archive of the code, and on a cluster another one
    of the client for HDFS, if the driver has it: a worker uses it if it has none itself. Later
    calls for the same Spark context, or session of Spark Connect, do nothing.

    If PYSPARK_PYTHON is not set, PySpark takes the first ``python3`` on the path, not the Python of
    the virtual environment. For a local master the driver's own Python is right. On a cluster the
    path belongs to another machine. If the Python there is wrong, Spark's own error says so. The
    server of Spark Connect has chosen its Python; it gets our code as an artifact of the session. A
    warning is logged if the server mixes the files of its sessions.

    Raises:
        SettingError: With a local master, PYSPARK_PYTHON names a Python of another version, or
            without pyarrow.
    """
    context = spark_context(spark)
    owner = spark if context is None else context
    if owner in _prepared:
        return
    if context is None:
        if not isolates_artifacts(spark):
            _log.warning(
                "This server of Spark Connect keeps the files of all sessions together, this "
                "session's copy of acidsql, too. After the session has ended, new executors wait "
                "for the file in vain, and the tasks of all sessions fail. Set %s=true on the "
                "server, as start-connect-server.sh does.",
                _ISOLATION,
            )
        spark.addArtifacts(_package(), pyfile=True)
        _prepared.add(spark)
        return
    is_local = str(context.master).startswith("local")
    if is_local and not os.environ.get("PYSPARK_PYTHON"):
        context.pythonExec = sys.executable
    if is_local and _is_ours(context.pythonExec):
        _lend_our_path(context)
    else:
        if is_local:
            _need_our_version(context.pythonExec)
        # Another Python may have no copy of our code, or another version.
        context.addPyFile(_package())
        if not is_local and (archive := _hdfs_client()) is not None:
            context.addArchive(f"{archive}#{SHIPPED_CLIENT}")
    _prepared.add(context)


def isolates_artifacts(spark: SparkSession) -> bool:
    """Whether a server of Spark Connect keeps the files of its sessions apart. One that runs as a
    plugin alone does not, unless its conf says so.
    """
    return is_on(spark, _ISOLATION)


def _is_ours(python: str) -> bool:
    """Whether a Python program, given by path or name, is the one that runs here."""
    found_path = shutil.which(python)
    return found_path is not None and os.path.abspath(found_path) == os.path.abspath(sys.executable)


def _need_our_version(python: str) -> None:
    """Run a Python program, and raise SettingError if it has another version than this one, or
    lacks pyarrow. Do nothing if there is no such program.
    """
    executable = shutil.which(python)
    if executable is None:
        return  # Spark itself will raise an error
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    probe = subprocess.run([executable, "-c", _PROBE], capture_output=True, text=True, check=False)
    if probe.stdout.strip() != f"{version} True":
        raise SettingError(
            f"Spark's Python workers would run '{executable}', which is not Python {version} with "
            "pyarrow. Set the environment variable PYSPARK_PYTHON to "
            f"'{sys.executable}' before Spark starts.",
            python=executable,
        )


def _lend_our_path(context: Any) -> None:
    """Put the directory that holds our package first into the workers' PYTHONPATH, unless it is one
    of the driver's directories of installed packages. ``context``: the SparkContext.

    A worker with the driver's Python finds installed packages, but not the entries that a program
    has added to its own ``sys.path``.
    """
    place = str(Path(acidsql.__file__).parent.parent)
    if place in {*site.getsitepackages(), site.getusersitepackages()}:
        return
    other_paths = context.environment.get("PYTHONPATH")
    context.environment["PYTHONPATH"] = os.pathsep.join(
        [place, *([other_paths] if other_paths else [])]
    )


@cache
def _package() -> str:
    """Return the path of a ``.zip`` of our code. The first call makes it, in a temporary directory.
    Other code gets another name: a server would refuse it under a name that it knows.
    """
    place = Path(acidsql.__file__).parent.parent
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for package in ("acidsql", "pyspark_acidsql"):  # the second one is the data source
            for path in sorted((place / package).rglob("*.py")):
                file.write(path, path.relative_to(place))
    name = f"acidsql-{hashlib.sha256(packed.getvalue()).hexdigest()[:16]}.zip"
    archive = Path(tempfile.mkdtemp(prefix="acidsql-")) / name
    archive.write_bytes(packed.getvalue())
    return str(archive)


@cache
def _hdfs_client() -> str | None:
    """Return the path of a ``.zip`` of the installed package hdfs-native and what it imports; None
    if it is not installed. The first call makes it, in a temporary directory. It holds for all
    Pythons, but only for this platform.
    """
    client = importlib.util.find_spec("hdfs_native")
    if client is None or client.origin is None:
        return None
    archive = Path(tempfile.mkdtemp(prefix="acidsql-")) / "hdfs-native.zip"
    package = Path(client.origin).parent
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(package.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                file.write(path, path.relative_to(package.parent))
        typing = importlib.util.find_spec("typing_extensions")
        if typing is not None and typing.origin is not None:
            file.write(typing.origin, "typing_extensions.py")
    return str(archive)
