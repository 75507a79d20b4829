"""Fixtures of the tests of DML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from acidsql.costs import CostRecorder, recorded_costs


@pytest.fixture
def conf(spark: Any) -> Iterator[Callable[[str, str], None]]:
    """Sets a conf of the shared Spark session until the test ends."""
    before: dict[str, str | None] = {}

    def change(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.fixture
def by_jobs(acid: Any) -> None:
    """Spark's jobs write everything but VALUES, even few rows."""
    acid.sql("SET acidsql.driver.max.rows = 0")


@pytest.fixture
def spent() -> Iterator[CostRecorder]:
    """What all statements of the test cost together."""
    with recorded_costs() as recorder:
        yield recorder
