"""A process with a Spark of its own, or the test's Spark Connect. It runs statements, and may be
killed.

``python victim.py <warehouse> <where to die> <statement> …``. At the named point the process kills
itself with SIGKILL: a real death, after which no line of Python runs. The metastore of a warehouse
on HDFS is in ``ACIDSQL_METASTORE``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from small_spark import small_spark

import acidsql
from acidsql.errors import AcidSqlError
from acidsql.java import use_java
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.storage.files.filesystem import LocalFileSystem
from acidsql.storage.files.hdfs import HdfsFileSystem
from acidsql.storage.writing.save import TableWrite

_ON_HDFS = sys.argv[1].startswith("hdfs:")
_FileSystem: Any = HdfsFileSystem if _ON_HDFS else LocalFileSystem


def main(warehouse: str, where: str, *statements: str) -> None:
    """Run statements one after the other, and print how each ended, as one line of JSON."""
    use_java()
    spark = _spark(warehouse)
    with acidsql.connect(
        spark, warehouse=warehouse, metastore=os.environ.get("ACIDSQL_METASTORE"),
        settings=_settings(), compactor="off",
    ) as acid:  # fmt: skip
        print(json.dumps({"ready": os.getpid()}), flush=True)
        _wait_for(os.environ.get("ACIDSQL_VICTIM_STARTS"))
        if where != "nowhere":
            PLACES[where]()
        for text in statements:
            print(json.dumps(_run(acid, text)), flush=True)
    spark.stop()


def _spark(warehouse: str) -> Any:
    if "SPARK_REMOTE" in os.environ:
        return SparkSession.builder.getOrCreate()
    return small_spark(tempfile.mkdtemp() if _ON_HDFS else f"{warehouse}-spark")


def _run(acid: Any, text: str) -> dict[str, Any]:
    try:
        acid.sql(text)
    except AcidSqlError as error:
        return {"error": error.condition, "message": error.message}
    return {"done": acid.last.txn_id if acid.last else None}


def _settings() -> dict[str, str]:
    return json.loads(os.environ.get("ACIDSQL_VICTIM_SETTINGS", "{}"))


def _wait_for(path: str | None) -> None:
    """Wait until a file exists, so that two processes begin together."""
    while path and not Path(path).exists():
        time.sleep(0.01)


def _die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _after_open() -> None:
    opened = EmbeddedMetastore.open_txn
    EmbeddedMetastore.open_txn = lambda *a, **k: (opened(*a, **k), _die())  # type: ignore


def _in_the_job() -> None:
    """Die when the job's first file is in the staging directory."""
    made = _FileSystem.create_directory

    def watch(staging: str) -> None:
        while not any(path.is_file() for path in Path(staging).iterdir()):
            time.sleep(0.005)
        _die()

    def create_directory(self: Any, path: str) -> None:
        made(self, path)
        if "/_tmp_" in path:
            threading.Thread(target=watch, args=(path,), daemon=True).start()

    _FileSystem.create_directory = create_directory  # type: ignore[method-assign]


def _in_the_drivers_writing() -> None:
    """Die when this process, not a worker, has written one of two files and opened the other."""
    opened, seen = _FileSystem.open_output, []

    def die_at_the_second(self: Any, path: str) -> Any:
        file = opened(self, path)
        if "/_tmp_" in path:
            seen.append(path)
        return file if len(seen) < 2 else _die()

    _FileSystem.open_output = die_at_the_second  # type: ignore[method-assign]


def _between_renames() -> None:
    """Die when the first of two directories is in its place."""
    rename = _FileSystem.rename

    def die_after(self: Any, source: str, target: str) -> None:
        rename(self, source, target)
        if "delta_" in target.rpartition("/")[2]:
            _die()

    _FileSystem.rename = die_after  # type: ignore[method-assign]


def _after_the_first_statement() -> None:
    """Die when the second statement of a transaction is about to publish."""
    publish, seen = TableWrite.publish, []

    def die_at_the_second(self: Any) -> Any:
        seen.append(self)
        return publish(self) if len(seen) == 1 else _die()

    TableWrite.publish = die_at_the_second  # type: ignore[method-assign]


def _while_undoing() -> None:
    """Die when the first of the directories that ROLLBACK TO deletes is gone."""
    delete = _FileSystem.delete_directory

    def die_after(self: Any, path: str) -> None:
        delete(self, path)
        if "delta_" in path.rpartition("/")[2]:
            _die()

    _FileSystem.delete_directory = die_after  # type: ignore[method-assign]


def _before_commit() -> None:
    EmbeddedMetastore.commit_txn = _die  # type: ignore[method-assign]


def _after_commit() -> None:
    commit = EmbeddedMetastore.commit_txn
    EmbeddedMetastore.commit_txn = lambda *a, **k: (commit(*a, **k), _die())  # type: ignore


PLACES = {
    "after open_txn": _after_open,
    "in the job": _in_the_job,
    "in the driver's writing": _in_the_drivers_writing,
    "between two renames": _between_renames,
    "after the first statement": _after_the_first_statement,
    "while undoing": _while_undoing,
    "before commit": _before_commit,
    "after commit": _after_commit,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
