"""The recorder of a statement's costs: blocks, threads, statements that fail."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from acidsql.costs import (
    Costs,
    FastPath,
    note_fast_path,
    note_listed_directories,
    note_metastore_call,
    note_opened_file,
    note_write_job,
    recorded_costs,
    recorded_in_threads,
)
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.statements.context.result import Receipt
from acidsql.storage.files.parallel import map_ahead
from acidsql.streams.auto_cdc import combined_receipt


def test_outside_of_a_statement_nothing_is_noted():
    note_fast_path(FastPath.KEYS_ALONE)
    with recorded_costs() as recorder:
        pass
    note_write_job()
    assert recorder.costs == Costs()


def test_each_kind_of_cost_is_added_up():
    with recorded_costs() as recorder:
        for _ in range(2):
            note_fast_path(FastPath.KEYS_ALONE)
            note_write_job()
            note_listed_directories(3)
            note_opened_file()
            note_metastore_call()
        earlier_costs = recorder.costs
        note_fast_path(FastPath.BUCKET_SQL)
    assert earlier_costs == Costs(frozenset({FastPath.KEYS_ALONE}), 2, 6, 2, 2)
    assert recorder.costs.fast_paths == {"keys alone", "bucket sql"}


def test_the_costs_of_a_statement_inside_another_count_for_both():
    with recorded_costs() as outer:
        note_write_job()
        with recorded_costs() as inner:
            note_metastore_call()
        note_write_job()
    assert inner.costs == Costs(metastore_calls=1)
    assert outer.costs == Costs(write_jobs=2, metastore_calls=1)


def test_a_statement_that_fails_has_costs_and_ends_its_recording():
    with pytest.raises(KeyboardInterrupt), recorded_costs() as recorder:
        note_write_job()
        raise KeyboardInterrupt
    note_write_job()
    assert recorder.costs == Costs(write_jobs=1)


def test_threads_that_the_statement_gives_work_to_count():
    note = recorded_in_threads(lambda _: note_metastore_call())  # before the statement
    with recorded_costs() as recorder, ThreadPoolExecutor(8) as pool:
        list(pool.map(note, range(10)))
        list(pool.map(lambda _: note_metastore_call(), range(10)))  # work of somebody else
        list(pool.map(recorded_in_threads(note_listed_directories), [1] * 1000))
        list(map_ahead(lambda _: note_write_job(), range(20)))
        list(pool.map(lambda _: note_metastore_call(), range(10)))  # the pool's threads forget it
    assert recorder.costs == Costs(write_jobs=20, listed_directories=1000)


def test_statements_of_two_threads_have_costs_of_their_own():
    meeting, costs = threading.Barrier(2), {}

    def run(number):
        with recorded_costs() as recorder:
            meeting.wait(10)
            note_listed_directories(number)
            meeting.wait(10)
        costs[number] = recorder.costs.listed_directories

    threads = [threading.Thread(target=run, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert costs == {1: 1, 2: 2}


def test_the_store_counts_its_sql_statements(tmp_path):
    store = EmbeddedMetastore(sqlite_url(tmp_path / "s.db"), warehouse="/wh")
    with recorded_costs() as recorder:
        store.txn_state(1)
    store.close()
    assert recorder.costs == Costs(metastore_calls=2)  # BEGIN is one of them


def test_a_receipt_of_several_statements_has_the_costs_of_all():
    receipts = [
        Receipt("a", costs=Costs(frozenset({FastPath.FEW_ROWS}), metastore_calls=3)),
        None,
        Receipt("b", costs=Costs(write_jobs=1, metastore_calls=4)),
    ]
    assert combined_receipt(receipts, 7).costs == Costs(
        frozenset({FastPath.FEW_ROWS}), write_jobs=1, metastore_calls=7
    )
