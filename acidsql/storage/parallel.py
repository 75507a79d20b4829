"""Work that waits for the file system: listing directories, looking into footers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

THREADS = 16  # they wait, and need no processor


def in_threads(work: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """What ``work`` gives for each item, in their order.

    Raises:
        Exception: What the first item raised that failed.
    """
    todo = list(items)
    if len(todo) < 2:
        return [work(item) for item in todo]
    with ThreadPoolExecutor(min(THREADS, len(todo))) as pool:
        return list(pool.map(work, todo))
