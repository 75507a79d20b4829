"""Fixtures of the tests of AUTO CDC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def no_view_stays(spark: Any) -> Iterator[None]:
    """Drop views: all tests share one Spark session, and others create tables of these names."""
    yield
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
