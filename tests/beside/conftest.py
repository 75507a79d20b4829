"""A database that acidsql and a real Hive share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from both import Both

_numbers = itertools.count(1)


@pytest.fixture
def both(spark: Any, hive: Any) -> Iterator[Any]:
    """Sessions of acidsql and of Hive in a database of the test's own."""
    pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")
    shared = Both(spark, hive, f"both{next(_numbers)}")
    yield shared
    shared.close()
