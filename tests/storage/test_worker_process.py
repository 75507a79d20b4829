"""Work that a Python worker does once, and not again for its later tasks."""

from __future__ import annotations

import importlib
import sys
import zipfile
import zipimport

from acidsql.storage.spark.session.worker_process import spare_later_tasks


def test_sparks_archive_is_not_read_again_and_still_found(tmp_path, monkeypatch):
    archive = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("of_the_archive.py", "VALUE = 7\n")
        file.writestr("another_of_it.py", "VALUE = 8\n")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.import_module("of_the_archive").VALUE == 7
    monkeypatch.setattr("gc.freeze", lambda: None)
    spare_later_tasks()
    monkeypatch.setattr(zipimport.zipimporter, "invalidate_caches", lambda self: 1 / 0)
    for path, finder in sys.path_importer_cache.items():
        if path == str(archive):
            assert not hasattr(finder, "invalidate_caches")
    importlib.invalidate_caches()  # PySpark's worker calls these before each task
    importlib.import_module("another_of_it")
    assert sys.modules["another_of_it"].VALUE == 8
