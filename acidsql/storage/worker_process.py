"""A Spark Python worker that runs many short tasks: spare it what PySpark does before each of them.

Before every task PySpark calls ``importlib.invalidate_caches``, on which Python before 3.13 reads
the directories of ``pyspark.zip`` and of py4j's archive again (python/cpython#103200); after every
task it collects garbage, among all objects of the libraries that are loaded. Together they cost
0.1 to 0.2 seconds, which is more than a task that changes one row.

This module runs in workers: it imports neither pyspark nor anything of the driver's.
"""

from __future__ import annotations

import gc
import re
import sys
import zipimport
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_ARCHIVES = re.compile(r"/(pyspark|py4j-[\w.]+-src)\.zip(/|$)")


class _Archive:
    """The finder of an archive that does not change while the process lives."""

    def __init__(self, finder: zipimport.zipimporter) -> None:
        self._finder = finder

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        return self._finder.find_spec(name, target)

    def __getattr__(self, name: str) -> Any:
        if name == "invalidate_caches":
            raise AttributeError(name)
        return getattr(self._finder, name)


def spare_later_tasks() -> None:
    """Call it at a task's start: Spark's own archives are looked into once, and what is loaded
    by now is no longer searched for garbage."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter) and _ARCHIVES.search(path):
            sys.path_importer_cache[path] = _Archive(finder)
    if not gc.get_freeze_count():
        gc.freeze()
