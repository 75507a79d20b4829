"""Work on many files: listing directories, looking into footers, moving what was written."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

THREADS = 16
_PATIENCE_S = 0.02  # a thread may wait for a processor, too


def in_threads(work: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """What ``work`` gives for each item, in their order; in several threads where it waits.

    Threads take turns at the interpreter: work that never waits, as where the file system has all
    of it in memory, takes three times as long in several of them. So it begins here, and goes into
    threads as soon as it has waited for more than half of the time.

    Raises:
        Exception: What the first item raised that failed. Others may have been worked on.
    """
    todo, found = deque(items), list[_Result]()
    began, busy = time.perf_counter(), time.thread_time()
    while todo:
        found.append(work(todo.popleft()))
        passed = time.perf_counter() - began
        waited = passed - (time.thread_time() - busy)
        if len(todo) > 1 and waited > max(passed / 2, _PATIENCE_S):
            with ThreadPoolExecutor(min(THREADS, len(todo))) as pool:
                return [*found, *pool.map(work, todo)]
    return found
