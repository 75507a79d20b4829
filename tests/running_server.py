"""A fixture's server: the test is skipped if this machine lacks what the server needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest


def running_server(missing: str | None, start: Callable[[], Any]) -> Iterator[Any]:
    """Yield a server that runs until the last test that uses it has ended.

    Args:
        missing: What the machine lacks. None: nothing.
        start: Starts the server, and returns it.
    """
    if missing is not None:
        pytest.skip(missing)
    server = start()
    yield server
    server.close()
