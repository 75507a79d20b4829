"""The check without Spark."""

from __future__ import annotations

import pytest
from checked import Files

from acidsql.storage.checking import job


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    """The tasks run in this process, one after the other."""

    def run(_spark, tasks, spec):
        return [found for works in tasks for found in job.check_task(works, spec)]

    monkeypatch.setattr(job, "_run_check_job", run)


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path / "t")
