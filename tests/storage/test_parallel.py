"""Threads are used only for work that waits."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from acidsql.storage.files import parallel
from acidsql.storage.files.parallel import THREADS, in_threads


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until the test moves it."""
    now = SimpleNamespace(passed=0.0, busy=0.0)
    fake = SimpleNamespace(perf_counter=lambda: now.passed, thread_time=lambda: now.busy)
    monkeypatch.setattr(parallel, "time", fake)
    return now


def test_what_never_waits_stays_in_one_thread(clock):
    def compute(number):
        clock.passed += 0.002
        clock.busy += 0.0015
        return number, threading.get_ident()

    assert in_threads(compute, range(100)) == [(n, threading.get_ident()) for n in range(100)]


def test_what_waits_does_so_together(clock):
    together = threading.Barrier(THREADS, timeout=60)

    def wait(number):
        if number > 20:
            together.wait()  # until as many calls wait as there are threads
        clock.passed += 0.001
        return number

    assert in_threads(wait, range(21 + THREADS)) == list(range(21 + THREADS))


@pytest.mark.parametrize("seconds", [0, 1])
def test_the_first_error_in_their_order_is_raised(clock, seconds):
    def fail(number):
        clock.passed += seconds
        if number in (3, 9):
            raise OSError(number)

    with pytest.raises(OSError, match="3"):
        in_threads(fail, range(12))


def test_of_nothing_comes_nothing():
    assert in_threads(str, []) == []
