"""acidsql and Hive change the same rows at the same time."""

from __future__ import annotations

import threading
import time

import pytest
from both import IS_LONG, LONG

TURNS = 3 if IS_LONG else 2
IN_HIVE = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


class Threads:
    """Threads whose errors the test sees."""

    def __init__(self):
        self._threads, self._errors = [], []

    def start(self, work, *arguments):
        def run():
            try:
                work(*arguments)
            except BaseException as error:
                self._errors.append(error)

        self._threads.append(threading.Thread(target=run))
        self._threads[-1].start()

    def join(self):
        for one in self._threads:
            one.join(240)
            assert not one.is_alive()
        if self._errors:
            raise self._errors[0]


@pytest.fixture
def threads():
    return Threads()


def add(session, statement, times):
    for _ in range(times):
        session.sql(statement)


@pytest.mark.parametrize("tables", ["plain", pytest.param("partitioned", marks=LONG)])
def test_no_update_is_lost(both, threads, tables):
    layout = " PARTITIONED BY (p INT)" if tables == "partitioned" else ""
    both.hive.sql(f"CREATE TABLE t (id INT, n INT{'' if layout else ', p INT'}){layout} {IN_HIVE}")
    both.hive.sql("INSERT INTO t VALUES (1, 0, 1)")
    one_more = "UPDATE t SET n = n + 1 WHERE id = 1"
    for session in (both.acid, both.new_acid(), both.hive):
        threads.start(add, session, one_more, TURNS)
    threads.join()
    assert both.rows("t") == [(1, 3 * TURNS, 1)]
    both.rows_with_ids("t")


@LONG
def test_an_insert_that_hive_overwrites_at_the_same_time_is_before_it_or_after_it(both, threads):
    both.acid.sql("CREATE TABLE t (id INT, n INT)")
    threads.start(add, both.acid, "INSERT INTO t VALUES (1, 1)", TURNS)
    threads.start(add, both.hive, "INSERT OVERWRITE TABLE t VALUES (0, 0)", TURNS)
    threads.join()
    found = both.rows("t")
    assert found.count((0, 0)) == 1 and len(found) <= 1 + TURNS


@LONG
def test_rows_that_are_inserted_during_an_update_stay(both, threads):
    both.acid.sql("CREATE TABLE t (id INT, n INT)")
    both.acid.sql("INSERT INTO t VALUES (0, 0)")
    threads.start(add, both.acid, "INSERT INTO t VALUES (1, 100)", TURNS)
    threads.start(add, both.new_acid(), "UPDATE t SET n = n + 1 WHERE id = 0", TURNS)
    threads.start(add, both.hive, "INSERT INTO t VALUES (2, 200)", TURNS)
    threads.start(add, both.new_hive(), "UPDATE t SET n = n + 1 WHERE id = 0", TURNS)
    threads.join()
    assert both.rows("t") == sorted([(0, 2 * TURNS), *[(1, 100), (2, 200)] * TURNS], key=repr)
    both.rows_with_ids("t")


@LONG
def test_nobody_sees_half_a_statement(both, threads):
    """Each statement moves an amount from one row to the other, so the sum stays."""
    both.acid.sql("CREATE TABLE t (id INT, n INT) PARTITIONED BY (p INT)")
    both.acid.sql("INSERT INTO t VALUES (1, 100, 1), (2, 100, 2)")
    ended, sums = threading.Event(), set()
    move = "UPDATE t SET n = n + CASE WHEN id = 1 THEN -1 ELSE 1 END"

    def read(session):
        while not ended.is_set():
            found = session.sql("SELECT sum(n), count(DISTINCT p) FROM t")
            sums.add(tuple(found[0] if isinstance(found, list) else found.collect()[0]))

    readers = Threads()
    readers.start(read, both.new_acid())
    readers.start(read, both.new_hive())
    threads.start(add, both.acid, move, TURNS)
    threads.start(add, both.hive, move, TURNS)
    try:
        threads.join()
    finally:
        ended.set()
        readers.join()
    assert sums == {(200, 2)}
    assert both.rows("t") == [(1, 100 - 2 * TURNS, 1), (2, 100 + 2 * TURNS, 2)]


def test_who_waits_for_acidsql_is_let_in(both, threads):
    both.acid.sql("CREATE TABLE t (id INT, n INT)")
    both.acid.sql("INSERT INTO t VALUES (1, 1)")
    both.acid.sql("BEGIN")
    both.acid.sql("UPDATE t SET n = 10")
    threads.start(add, both.hive, "UPDATE t SET n = n + 1", 1)
    wait_for_a_waiter(both)
    both.acid.sql("COMMIT")
    threads.join()
    assert both.rows("t") == [(1, 11)]


def wait_for_a_waiter(both):
    for _ in range(600):
        if any(one.lock_state == "WAITING" for one in both.acid.sql("SHOW LOCKS").collect()):
            return
        time.sleep(0.1)
    raise AssertionError("nobody waits")
