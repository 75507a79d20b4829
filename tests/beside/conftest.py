"""A database that acidsql and a real Hive share, and sometimes a real Trino."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from both import Both
from running_server import running_server

_numbers = itertools.count(1)


@pytest.fixture
def both(spark: Any, hive: Any) -> Iterator[Any]:
    """Sessions of acidsql and of Hive in a database of the test's own."""
    pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")
    shared = Both(spark, hive, f"both{next(_numbers)}")
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def trino(hive: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real Trino over the metastore of ``hive``."""
    import trino_server

    work = tmp_path_factory.mktemp("trino")
    yield from running_server(
        trino_server.missing(), lambda: trino_server.TrinoServer(work, hive.url)
    )


@pytest.fixture
def beside_trino(both: Any, trino: Any) -> Any:
    """Sessions of acidsql, Trino and Hive in a database of the test's own."""
    from with_trino import WithTrino

    return WithTrino(both, trino)
