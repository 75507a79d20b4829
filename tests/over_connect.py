"""Tests that run over Spark Connect, too: ``ACIDSQL_CONNECT=1``.

A test that asks Spark's JVM itself, or for a stream into a table, is skipped there.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkAttributeError

from acidsql.errors import UnsupportedError

OVER_CONNECT = bool(os.environ.get("ACIDSQL_CONNECT"))


def session(directory: Path, hadoop: Mapping[str, str]) -> Iterator[Any]:
    """For a fixture: a session, and its server in a process of its own. ``hadoop``: the settings
    of the object store of the warehouse. The server tells nobody the keys."""
    import object_store
    from connect_server import ConnectServer
    from pyspark.sql import SparkSession

    server = ConnectServer(directory, hadoop)
    if hadoop:
        os.environ.update(object_store.environment(hadoop))
    os.environ["SPARK_REMOTE"] = server.url  # for programs, too
    remote = SparkSession.builder.getOrCreate()
    yield remote
    remote.stop()
    server.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is about a classic session."""
    for item in items:
        if item.get_closest_marker("classic"):
            item.add_marker(pytest.mark.skip(reason="about a classic session of Spark"))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    return (yield from _skipping())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    return (yield from _skipping())


def _skipping() -> Generator[None, Any, Any]:
    try:
        return (yield)
    except UnsupportedError as error:
        if error.condition != "UNSUPPORTED_FEATURE.STREAMS_OVER_CONNECT":
            raise
        pytest.skip("asks for a stream into a table")
    except PySparkAttributeError as error:
        # acidsql itself must not ask.
        if error.getCondition() != "JVM_ATTRIBUTE_NOT_SUPPORTED" or _asked_by_acidsql(error):
            raise
        pytest.skip(f"asks Spark's JVM: {error.getMessageParameters()}")


def _asked_by_acidsql(error: BaseException) -> bool:
    places = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    ours = [place for place in places if f"{os.sep}pyspark{os.sep}" not in place]
    return f"{os.sep}acidsql{os.sep}" in ours[-1].removesuffix("conftest.py")
