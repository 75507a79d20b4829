"""``acidsql.fast.paths = false``: the same results, by Spark jobs, joins and full scans alone."""

from __future__ import annotations

import pytest
from kit import ordered, rows, table

from acidsql.costs import FastPath
from acidsql.errors import SqlError

pytestmark = pytest.mark.spark

STATEMENTS = [
    "INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y'), (3, NULL, NULL)",
    "INSERT INTO t SELECT CAST(id AS INT), CAST(id AS STRING), 'z' FROM range(4, 9)",
    "UPDATE t SET v = upper(v) WHERE id < 3",
    "DELETE FROM t WHERE p = 'y'",
    "MERGE INTO t USING (SELECT 5 AS id, 'z' AS p) s ON t.id = s.id AND t.p = s.p "
    "WHEN MATCHED THEN UPDATE SET v = 'five' "
    "WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'new', s.p)",
]
LAYOUT = "(id INT, v STRING) PARTITIONED BY (p STRING) CLUSTERED BY (id) INTO 2 BUCKETS"
EXPECTED = [
    (1, "A", "x"), (3, None, None), (4, "4", "z"), (5, "five", "z"), (6, "6", "z"), (7, "7", "z"),
    (8, "8", "z"),
]  # fmt: skip


def run(acid):
    acid.sql(f"CREATE TABLE t {LAYOUT}")
    for statement in STATEMENTS:
        acid.sql(statement)
    acid.sql("CREATE TABLE plain (id INT)")
    acid.sql("INSERT INTO plain VALUES (1), (2)")
    assert table(acid, "plain") == [(1,), (2,)]
    only = "TBLPROPERTIES ('transactional_properties'='insert_only')"
    acid.sql(f"CREATE TABLE only (id INT) PARTITIONED BY (p INT) {only}")
    acid.sql("INSERT INTO only SELECT id, id DIV 900 FROM range(0, 1000, 1, 1)")
    assert rows(acid, "SELECT p, count(*) FROM only GROUP BY p") == [(0, 900), (1, 100)]
    return table(acid, "t")


def test_the_reference_path_takes_no_faster_way(acid, spent):
    acid.sql("SET acidsql.fast.paths = false")
    assert run(acid) == ordered(EXPECTED)
    assert spent.costs.fast_paths == set()


def test_the_faster_ways_are_taken_otherwise(acid, spent):
    assert run(acid) == ordered(EXPECTED)
    assert spent.costs.fast_paths >= {
        FastPath.DELETION_BITS, FastPath.PLAIN_LITERALS, FastPath.FEW_ROWS
    }  # fmt: skip


@pytest.mark.classic  # without a JVM, each row is measured
def test_a_session_tells_the_costs_of_its_last_statement(acid):
    acid.sql("CREATE TABLE t (id INT, v INT) CLUSTERED BY (id) INTO 2 BUCKETS")
    assert acid.costs.metastore_calls > 0
    acid.sql("SET acidsql.driver.max.rows = 0")
    acid.sql("INSERT INTO t SELECT INT(id), INT(id) FROM range(9)")
    inserted = acid.costs
    assert inserted.fast_paths == {"bucket sql", "unmeasured batches"}
    assert (inserted.write_jobs, inserted.listed_directories) == (1, 0)
    assert acid.last.costs == inserted
    assert acid.sql("SELECT * FROM t WHERE id = 3").count() == 1
    assert (acid.costs.write_jobs, acid.costs.listed_directories) == (0, 1)
    assert acid.costs.opened_files == 1
    assert acid.last.costs == inserted  # a query has no receipt
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        acid.sql("UPDATE t SET v = 1 / v WHERE id >= 0")
    assert (acid.costs.write_jobs, acid.costs.listed_directories) == (1, 1)
    assert acid.last.costs == inserted
    with pytest.raises(SqlError):
        acid.sql("UPDATE t SET")
    assert acid.costs.listed_directories == 0
