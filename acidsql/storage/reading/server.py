"""Tries, when a session opens, whether the server of Spark Connect can do the work.

Its Python workers must run our code, and it must see the files that this process writes. A classic
session with a local master runs on this machine, so nothing is tried there.
"""

from __future__ import annotations

import errno
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import acidsql
from acidsql.acid.paths import is_local
from acidsql.errors import SettingError
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.reading.orc_scan import path_pattern
from acidsql.storage.spark.session.jvm import is_remote
from acidsql.storage.spark.session.python_workers import prepare_workers
from acidsql.storage.spark.session.store_conf import need_classes

_OLDEST_PYARROW = 18
_DDL = "acidsql string, pyarrow string, seen string"
# The last line of a Python traceback, in the text of Spark's error.
_CAUSE = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception): .+)$", re.MULTILINE)
# Hadoop's words, of any object store.
_REFUSAL = re.compile(r"AccessDenied|NoAuth|Forbidden|Unauthorized|status code: 40[13]", re.I)


def need_workers(spark: SparkSession, warehouse: str) -> None:
    """Make sure that Spark and its Python workers can do our work in a warehouse. The workers get
    our code.

    With Spark Connect a small file is written into the warehouse, read by a worker, and deleted. If
    this process may only read, that is not tried.

    Raises:
        SettingError: The JVM lacks our classes, or its Python workers cannot run our code. Or the
            server of Spark Connect has another Python, lacks pyarrow, or does not see this
            warehouse; or this process does not reach it.
    """
    need_classes(spark, warehouse)
    prepare_workers(spark)
    if not is_remote(spark):
        return
    files, directory = filesystem_for(warehouse), f"{warehouse}/_acidsql_probe_{uuid4().hex}"
    path = f"{directory}/{uuid4().hex}"
    try:
        files.create_directory(directory)
        files.write_file(path, path.encode())
        _try_worker(spark, warehouse, path)
    except OSError as error:
        if _may_only_read(error):  # a session that may only read
            return
        raise SettingError(
            f"This program itself must reach the warehouse '{warehouse}', also with Spark Connect: "
            f"{error}",
            name="warehouse",
        ) from error
    finally:
        with suppress(OSError):
            files.delete_directory(directory)


def _may_only_read(error: OSError) -> bool:
    return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) or "ACCESS_DENIED" in str(error)


def _try_worker(spark: SparkSession, warehouse: str, path: str) -> None:
    """Run a job in which the server and one of its workers read a file that has its own path in it.

    Raises SettingError if one of them does not see the file or may not read it, or if the worker
    cannot run our code: with another acidsql, an old pyarrow, or another error.
    """
    rows = spark.read.schema("value string").text(path_pattern(path), wholetext=True)
    try:
        rows_there = rows.mapInArrow(_worker_probe(path), _DDL).collect()
    except AnalysisException as error:
        raise _warehouse_not_seen_error(warehouse, "the server") from error
    except PySparkException as error:
        message = str(error).partition("JVM stacktrace:")[0].strip()
        if _REFUSAL.search(message):
            raise SettingError(
                f"The server of Spark Connect may not read the warehouse '{warehouse}': {message} "
                "The server needs keys for this store, too, in its configuration or environment.",
                name="warehouse",
            ) from error
        causes = _CAUSE.findall(message)
        raise _unfit_workers_error(causes[-1] if causes else message) from error
    if not rows_there:
        raise _warehouse_not_seen_error(warehouse, "the server")
    (worker,) = rows_there
    if int(worker.pyarrow.partition(".")[0]) < _OLDEST_PYARROW:
        raise _unfit_workers_error(f"they have pyarrow {worker.pyarrow}")
    if worker.acidsql != acidsql.__version__:
        raise _unfit_workers_error(
            f"they have acidsql {worker.acidsql}, and this is {acidsql.__version__}"
        )
    if worker.seen != path:
        raise _warehouse_not_seen_error(warehouse, f"a Python worker of the server ({worker.seen})")


def _worker_probe(path: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that reports what a Python worker can do. For each batch
    it yields one row: the worker's versions of acidsql and pyarrow, and the file's text or the
    error of reading it. Without a batch, because the server sees no file, it yields nothing."""

    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield, for each batch, a row with the versions and with the file's text, or the error."""
        for _ in batches:
            try:
                with filesystem_for(path).open_input(path) as file:
                    content = file.read().decode()
            except Exception as error:
                content = f"{type(error).__name__}: {error}"
            row = {"acidsql": [acidsql.__version__], "pyarrow": [pa.__version__], "seen": [content]}
            yield pa.RecordBatch.from_pydict(row)

    return probe


def _unfit_workers_error(cause: str) -> SettingError:
    """Return the error for workers that cannot run our code; it says what they need."""
    python = platform.python_version()
    return SettingError(
        f"The Python workers of Spark Connect's server cannot run acidsql: {cause}. They need "
        f"Python {python.rpartition('.')[0]}, as here, with numpy and pyarrow {_OLDEST_PYARROW} or "
        "newer. Start the server with the environment variable PYSPARK_PYTHON set to such a Python."
    )


def _warehouse_not_seen_error(warehouse: str, reader: str) -> SettingError:
    """Return the error for a warehouse that ``reader`` (``the server`` …) does not see."""
    where = "is on this machine: name one that both reach" if is_local(warehouse) else "must be one"
    return SettingError(
        f"This program wrote a file into the warehouse '{warehouse}', and {reader} does not see "
        f"it. With Spark Connect, the program, the server and its executors all read and write "
        f"files there. This warehouse {where}, as on hdfs: or s3a:, or start the server on this "
        "machine.",
        name="warehouse",
    )
