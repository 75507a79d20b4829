"""Fixtures of the tests of AUTO CDC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kit_cdc import Calendar
from over_hive import OVER_HIVE, session_over_hive

import acidsql
from acidsql.plan.cdc import state


@pytest.fixture
def calendar(monkeypatch: pytest.MonkeyPatch) -> Calendar:
    """The day that state tables note. A test may change it."""
    found = Calendar()
    monkeypatch.setattr(state, "datetime", found)
    return found


@pytest.fixture(autouse=True)
def no_view_stays(spark: Any) -> Iterator[None]:
    """Drop views: all tests share one Spark session, and others create tables of these names."""
    yield
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)


# On a Hive Metastore, all tests share one database, so what is left is dropped after each of them.
@pytest.fixture(scope="function" if OVER_HIVE else "module")
def acid_of_all(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Any]:
    """A session that all examples of a property share."""
    if OVER_HIVE:
        with session_over_hive(spark, request) as acid:
            yield acid
        return
    warehouse = tmp_path_factory.mktemp("warehouse")
    with acidsql.connect(spark, warehouse=str(warehouse), compactor="off") as acid:
        yield acid
