"""``acidsql.fast.paths = false``: the same results, by Spark jobs, joins and full scans alone."""

from __future__ import annotations

import pytest
from kit import ordered, rows, table

from acidsql.statements.queries import filler, statement_demands
from acidsql.storage.reading import read as reading
from acidsql.storage.reading import scan
from acidsql.storage.writing import job, save

pytestmark = pytest.mark.spark

FASTER = [
    (scan, "deletion_vectors"),
    (scan, "search"),
    (reading, "prune_buckets"),
    (statement_demands, "source_predicate"),
    (filler, "hide_constants"),
    (job, "unmeasured_batches"),
    (job, "bucket_sql"),
    (save, "plain_rows"),
    (save, "collect_rows"),
    (save, "collect_events_if_few"),
]
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


def note(monkeypatch, used):
    """Note the names of the functions that are called."""
    for place, name in FASTER:
        usual = getattr(place, name)

        def noted(*args, _usual=usual, _name=name, **options):
            used.add(_name)
            return _usual(*args, **options)

        monkeypatch.setattr(place, name, noted)


def test_the_reference_path_takes_no_faster_way(acid, monkeypatch):
    used: set[str] = set()
    note(monkeypatch, used)
    acid.sql("SET acidsql.fast.paths = false")
    assert run(acid) == ordered(EXPECTED)
    assert used == set()


def test_the_faster_ways_are_taken_otherwise(acid, monkeypatch):
    used: set[str] = set()
    note(monkeypatch, used)
    assert run(acid) == ordered(EXPECTED)
    assert used >= {"deletion_vectors", "plain_rows", "collect_events_if_few"}
