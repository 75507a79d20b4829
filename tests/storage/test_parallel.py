"""Threads are used only for work that waits, and do not decode more than is soon needed."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pyarrow as pa
import pytest

from acidsql.storage.files import parallel
from acidsql.storage.files.parallel import THREADS, run_in_threads
from acidsql.storage.orc.row_schema import RowSchema
from acidsql.storage.reading.events import event_reader
from acidsql.storage.reading.events.event_reader import plain_reads, read_for_query


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

    assert run_in_threads(compute, range(100)) == [(n, threading.get_ident()) for n in range(100)]


def test_what_waits_does_so_together(clock):
    together = threading.Barrier(THREADS, timeout=60)

    def wait(number):
        if number > 20:
            together.wait()  # until as many calls wait as there are threads
        clock.passed += 0.001
        return number

    assert run_in_threads(wait, range(21 + THREADS)) == list(range(21 + THREADS))


@pytest.mark.parametrize("seconds", [0, 1])
def test_the_first_error_in_their_order_is_raised(clock, seconds):
    def fail(number):
        clock.passed += seconds
        if number in (3, 9):
            raise OSError(number)

    with pytest.raises(OSError, match="3"):
        run_in_threads(fail, range(12))


def test_of_nothing_comes_nothing():
    assert run_in_threads(str, []) == []


def test_of_files_that_are_read_ahead_only_the_first_batch_is_decoded(monkeypatch):
    """A few kilobytes may hold a million rows, if these are alike."""
    decoded, files, batches = [], 30, 5

    def read_file(read, schema, names, *, exact):
        for number in range(batches):
            decoded.append((read.file, number))
            yield pa.record_batch({"name": [read.file], "number": [number]})

    monkeypatch.setattr(event_reader, "read_file", read_file)
    monkeypatch.setattr(event_reader, "_is_tiny", lambda read: True)
    reads = plain_reads({"": [f"/w/{number:06}_0" for number in range(files)]})
    found = read_for_query(reads, RowSchema.from_fields([]), [])
    rows = next(found).to_pylist()
    assert {number for _, number in decoded} == {0} and len(decoded) < files
    rows += [row for batch in found for row in batch.to_pylist()]
    assert [tuple(row.values()) for row in rows] == sorted(decoded)
    assert len(rows) == files * batches
