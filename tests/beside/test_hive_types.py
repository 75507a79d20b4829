"""Columns whose type was changed, by acidsql or by Hive: both read the old files alike."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


def test_both_read_old_files_after_either_changed_a_type(both):
    acid, hive = both.acid, both.hive
    acid.sql(
        "CREATE TABLE t (id INT, n INT, d DECIMAL(6,2), day DATE, s STRING) PARTITIONED BY (p INT)"
    )
    acid.sql("INSERT INTO t VALUES (1, 10, 1.50, DATE'2024-02-29', 'abcdef', 1), "
             "(2, NULL, 2, NULL, 'x', 2)")  # fmt: skip
    acid.sql("ALTER TABLE t ALTER COLUMN n TYPE STRING, s TYPE VARCHAR(3)")
    hive.sql("ALTER TABLE t CHANGE day day STRING CASCADE")
    hive.sql("INSERT INTO t PARTITION (p = 2) VALUES (3, '30', 3, 'today', 'yz')")
    expected = [
        (1, "10", "1.50", "2024-02-29", "abc"), (2, None, "2.00", None, "x"),
        (3, "30", "3.00", "today", "yz"),
    ]  # fmt: skip
    query = "SELECT id, n, CAST(d AS STRING) AS d, day, CAST(s AS STRING) AS s FROM t"
    assert sorted(map(tuple, acid.sql(query).collect())) == expected
    theirs = [tuple(row) for row in hive.sql(query)]
    assert sorted((int(row[0]), row[1], row[3], row[4]) for row in theirs) == [
        (row[0], row[1], row[3], row[4]) for row in expected
    ]
    assert len(hive.sql("SELECT id FROM t WHERE n = '10' AND day > '2024'")) == 1
    assert acid.sql("SELECT id FROM t WHERE n = '10' AND day > '2024'").count() == 1
    acid.sql("ALTER TABLE t ALTER COLUMN d TYPE DOUBLE")
    for session in (acid.sql("SELECT d FROM t").collect(), hive.sql("SELECT d FROM t")):
        assert sorted(float(row[0]) for row in session) == [1.5, 2.0, 3.0]
