"""The warehouse of the fault tests, and Spark's answers to their statements."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_layer import Layer
from fault_replay import Memory, install
from fault_store import StoreOnDisk
from fault_world import World


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """A directory for copies of a warehouse."""
    return tmp_path


@pytest.fixture(scope="module", params=["on disk", "on an object store"])
def layer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Layer]:
    """Two tables and a session of the transaction layer, without Spark."""
    disk = None if request.param == "on disk" else StoreOnDisk.over
    with pytest.MonkeyPatch.context() as patch:
        # These tests have no power cut, so nothing must be synced.
        patch.setattr(os, "fsync", lambda _: None)
        found = Layer(tmp_path_factory.mktemp("layer"), disk)
        yield found
        found.let_go()


@pytest.fixture(scope="session")
def _kept() -> Iterator[dict[str, Any]]:
    """Objects that are shared by modules: the warehouse and Spark's remembered answers."""
    kept: dict[str, Any] = {"memory": Memory()}
    yield kept
    if "world" in kept:
        kept["world"].let_go()


@pytest.fixture(scope="module")
def world(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, _kept: dict[str, Any]
) -> Iterator[World]:
    """A warehouse for fault tests. Spark is asked each question once."""
    with pytest.MonkeyPatch.context() as patch:
        # These tests have no power cut, so nothing must be synced to the disk.
        patch.setattr(os, "fsync", lambda _: None)
        install(patch, _kept["memory"])
        if "world" not in _kept:
            _kept["world"] = World(spark, tmp_path_factory.mktemp("world"))
        yield _kept["world"]
