"""What all tests share: one Spark, a fresh warehouse for each test, the fast tests first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_spark import small_spark

from acidsql.java import use_java


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whatever uses the fixture ``spark``, and run it after all the rest.

    ``tryfirst``: ``-m spark`` must see the marks.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    items.sort(key=lambda item: item.get_closest_marker("spark") is not None)


@pytest.fixture(scope="session")
def java_home() -> str:
    """A Java that PySpark runs on; without one the run stops and says what to do."""
    return str(use_java().home)


@pytest.fixture(scope="session")
def spark(java_home: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session of two threads that all tests share. Leave its conf as you found it."""
    warehouse = tmp_path_factory.mktemp("spark-warehouse")
    session = small_spark(warehouse, threads=2, memory="2g", java_options="-Duser.timezone=UTC")
    yield session
    session.stop()


@pytest.fixture
def acid(spark: Any, tmp_path: Path) -> Iterator[Any]:
    """A session on a warehouse of the test's own."""
    import acidsql

    with acidsql.connect(spark, warehouse=str(tmp_path / "warehouse")) as session:
        yield session
