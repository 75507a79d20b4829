"""Compaction without Spark."""

from __future__ import annotations

import pytest
from table_of_events import Warehouse

from acidsql.storage.checking import job
from acidsql.storage.event_records import Task
from acidsql.storage.folding import compact as compacting
from acidsql.storage.folding.fold import fold_bucket


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    """The folds of what would be a job run in this process, one after the other."""

    def run(_spark, folds, spec):
        return [r for n, one in enumerate(folds) for r in fold_bucket(one, spec, Task(n, n))]

    def checked(_spark, tasks, spec):
        return [found for works in tasks for found in job.check_task(works, spec)]

    monkeypatch.setattr(compacting, "_run_fold_job", run)
    monkeypatch.setattr(compacting, "_FEW_BYTES", -1)
    monkeypatch.setattr(job, "_run_check_job", checked)


@pytest.fixture
def warehouse(tmp_path):
    made = Warehouse(str(tmp_path))
    yield made
    made.close()


@pytest.fixture
def new_warehouse():
    return Warehouse
