"""``acidsql.driver.max.rows``: few changed rows are written by the driver, as a job would."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from kit import counts, rows

from acidsql.storage import save

ALL = (
    "CREATE TABLE t (id INT, s STRING, c CHAR(5), d DATE, ts TIMESTAMP, n DECIMAL(10, 2), "
    "b BINARY, a ARRAY<INT>, m MAP<STRING, INT>, r STRUCT<x: INT, y: STRING>) "
)


@pytest.fixture
def jobs(monkeypatch):
    """The jobs that write events."""
    found, write = [], save.write_events

    def note(*args):
        found.append(args)
        return write(*args)

    monkeypatch.setattr(save, "write_events", note)
    return found


@pytest.mark.parametrize(
    "layout", ["", "PARTITIONED BY (p STRING)", "CLUSTERED BY (id) INTO 3 BUCKETS"]
)
def test_few_rows_of_all_types_are_changed_without_a_writing_job(acid, jobs, layout):
    acid.sql("SET acidsql.driver.max.rows = 10")
    acid.sql(ALL + layout)
    last = ", CAST(id % 2 AS STRING)" if "p STRING" in layout else ""
    acid.sql(
        "INSERT INTO t SELECT CAST(id AS INT), 'é', 'x', DATE'2024-02-29', "
        "TIMESTAMP_NTZ'2024-01-01 12:34:56.789', 1.50, X'00FF', array(1, NULL), map('k', 1), "
        f"named_struct('x', 1, 'y', 'z'){last} FROM range(0, 20, 1, 3)"
    )
    jobs.clear()
    assert counts(acid, "UPDATE t SET s = concat(s, '!') WHERE id IN (3, 4, 11)") == (0, 3, 0)
    assert counts(acid, "DELETE FROM t WHERE id = 4 OR id > 17") == (0, 0, 3)
    assert counts(acid, "DELETE FROM t WHERE id = 1000") == (0, 0, 0)
    assert jobs == []
    found = rows(acid, "SELECT id, s, c, d, ts, n, b, a, m, r FROM t WHERE id IN (3, 4, 11)")
    rest = (
        "é!", "x    ", date(2024, 2, 29), datetime(2024, 1, 1, 12, 34, 56, 789000), Decimal("1.50"),
        bytearray(b"\x00\xff"), [1, None], {"k": 1}, (1, "z"),
    )  # fmt: skip
    assert sorted(found) == [(3, *rest), (11, *rest)]
    assert rows(acid, "SELECT count(*), count(DISTINCT row__id) FROM t") == [(17, 17)]


def test_more_rows_are_written_by_a_job(acid, jobs):
    acid.sql("SET acidsql.driver.max.rows = 2")
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1), (2), (3)")
    assert counts(acid, "UPDATE t SET id = id + 10 WHERE id > 0") == (0, 3, 0)
    assert len(jobs) == 1
    assert rows(acid, "SELECT * FROM t") == [(11,), (12,), (13,)]


def test_what_python_cannot_hold_and_what_has_no_condition_is_left_to_a_job(acid, jobs):
    acid.sql("SET acidsql.driver.max.rows = 10")
    acid.sql("CREATE TABLE t (id INT, m MAP<ARRAY<INT>, INT>)")
    acid.sql("INSERT INTO t SELECT 1, map(array(1), 2)")
    jobs.clear()
    acid.sql("UPDATE t SET id = 2 WHERE id = 1")
    acid.sql("DELETE FROM t")
    assert len(jobs) == 2
    assert rows(acid, "SELECT id FROM t") == []
