"""Work on many files in threads: list directories, read footers, move files."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from acidsql.costs import recorded_in_threads

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

THREADS = 16
_AHEAD = 8
_PATIENCE_S = 0.02  # shorter waits do not count: a thread may also wait for a processor


def map_ahead(work: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
    """Yield the results of ``work`` for the items, in order. While the caller uses a result,
    eight threads work on the next eight items. An error of ``work`` is raised at its item, and ends
    the iteration. Items are taken only as they are needed.
    """
    work = recorded_in_threads(work)
    with ThreadPoolExecutor(_AHEAD) as pool:
        working = deque[Future[_Result]]()
        for item in items:
            working.append(pool.submit(work, item))
            if len(working) > _AHEAD:
                yield working.popleft().result()
        while working:
            yield working.popleft().result()


def run_in_threads(work: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """Call ``work`` for each item, and return the results in order. If ``work`` waits, up to 16
    threads share the items.

    Threads take turns at the interpreter. Work that never waits (because the file system has all
    data in memory) takes three times as long in several threads. So the work begins in the calling
    thread. It goes into threads once it has waited for more than four fifths of the time, and for
    more than 20 ms, if at least two items are left. (In a busy process, half of the time may be
    waiting for the interpreter or a processor.)

    Raises:
        Exception: The error of the first item that failed. ``work`` may have run for other items.
    """
    todo, results = deque(items), list[_Result]()
    began, busy = time.perf_counter(), time.thread_time()
    while todo:
        results.append(work(todo.popleft()))
        elapsed_s = time.perf_counter() - began
        waited = elapsed_s - (time.thread_time() - busy)
        if len(todo) > 1 and waited > max(0.8 * elapsed_s, _PATIENCE_S):
            with ThreadPoolExecutor(min(THREADS, len(todo))) as pool:
                return [*results, *pool.map(recorded_in_threads(work), todo)]
    return results
