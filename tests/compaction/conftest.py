"""Compaction without Spark."""

from __future__ import annotations

import pytest
from table_of_events import Warehouse

from acidsql.storage.event_records import Task
from acidsql.storage.folding import compact as compacting
from acidsql.storage.folding.fold import fold


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    """The folds run in this process, one after the other."""

    def run(_spark, folds, spec):
        return [r for n, one in enumerate(folds) for r in fold(one, spec, Task(n, n))]

    monkeypatch.setattr(compacting, "_run", run)


@pytest.fixture
def warehouse(tmp_path):
    made = Warehouse(str(tmp_path))
    yield made
    made.close()


@pytest.fixture
def new_warehouse():
    return Warehouse
