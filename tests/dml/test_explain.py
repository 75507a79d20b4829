"""EXPLAIN: the locks, the files to read, and Spark's plan. It changes nothing."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from kit import fill, table

import acidsql
from acidsql.statements.queries.explain import plan_section
from acidsql.storage.spark.session import zones

pytestmark = pytest.mark.spark


@pytest.fixture
def t(acid):
    fill(acid, "t (id INT, v STRING) PARTITIONED BY (p INT)", "1, 'a', 1", "2, 'b', 2", "3, 'c', 3")
    acid.sql("UPDATE t SET v = 'x' WHERE id <> 1")
    acid.sql("INSERT OVERWRITE t PARTITION (p = 3) SELECT 7, 'seven'")
    return acid


def explained(acid, text):
    (row,) = acid.sql(text).collect()
    return row[0]


@pytest.mark.classic
def test_a_query_is_explained_with_what_is_left_after_pruning(t):
    plan = explained(t, "EXPLAIN SELECT v FROM t WHERE p = 2")
    assert plan.startswith("== ACID Tables ==\n")
    assert "default.t: 3 of 5 files, 3 of 5 directories" in plan
    assert "  partitions: 1 of 3\n" in plan
    assert "  delete events: 1 in 1 file\n" in plan
    assert "  p=2/delete_delta_0000002_0000002_0000: 1 file, " in plan
    assert "p=1/" not in plan.partition("== Physical Plan ==")[0]
    assert "== Physical Plan ==" in plan
    assert "  snapshot: default.t up to write id 3\n" in plan
    assert "== Analyzed Logical Plan ==" in explained(t, "EXPLAIN EXTENDED SELECT * FROM t")


@pytest.mark.classic
def test_the_snapshot_names_the_write_ids_that_it_leaves_out(t, spark):
    with acidsql.connect(spark, warehouse=t.warehouse, metastore=t.metastore.url) as other:
        other.sql("BEGIN")
        other.sql("INSERT INTO t VALUES (8, 'eight', 1)")
        with suppress(ZeroDivisionError), t.transaction():
            t.sql("INSERT INTO t VALUES (9, 'nine', 1)")
            raise ZeroDivisionError
        plan = explained(t, "EXPLAIN SELECT v FROM t")
        other.sql("ROLLBACK")
    assert "  snapshot: default.t up to write id 5, without 4 (open), 5 (aborted)\n" in plan
    t.sql("CREATE TABLE fresh (id INT)")
    plan = explained(t, "EXPLAIN SELECT * FROM fresh")
    assert "  snapshot: default.fresh, of which nothing is written\n" in plan


@pytest.mark.classic
def test_what_no_condition_prunes_is_all_told_in_subqueries_too(t):
    plan = explained(
        t, "EXPLAIN SELECT id FROM VALUES (1) s(id) WHERE id = (SELECT max(id) FROM t)"
    )
    assert "default.t: 5 of 5 files" in plan
    assert "  partitions: 3 of 3\n" in plan
    plan = explained(t, "EXPLAIN WITH w AS (SELECT * FROM t WHERE p = 1) SELECT count(*) FROM w")
    assert "default.t: 1 of 5 files" in plan
    assert "delete events" not in plan


def test_a_query_is_explained_without_adaptive_execution(t, conf):
    conf("spark.sql.adaptive.enabled", "false")
    plan = explained(t, "EXPLAIN SELECT v FROM t")
    assert "default.t: 5 of 5 files" in plan
    assert "  delete events: 1 in 1 file\n" in plan


@pytest.mark.classic
def test_a_change_is_explained_with_its_locks_and_not_done(t):
    before = table(t)
    plan = explained(t, "EXPLAIN UPDATE t SET v = 'y' WHERE p = 1")
    assert plan.startswith("== Locks ==\nEXCL_WRITE on default.t partition p=1\n")
    assert "default.t: 1 of 5 files" in plan
    plan = explained(t, "EXPLAIN UPDATE t SET p = 5 WHERE p = 1")  # the rows move
    assert plan.startswith("== Locks ==\nEXCL_WRITE on default.t\n")
    plan = explained(t, "EXPLAIN FORMATTED DELETE FROM t WHERE id > 1")
    assert "EXCL_WRITE on default.t\n" in plan
    assert "default.t: 5 of 5 files" in plan
    assert table(t) == before
    assert t.sql("SHOW LOCKS").count() == 0


def test_a_lock_is_told_once_however_many_operations_it_is_for(t):
    plan = explained(
        t,
        "EXPLAIN MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'new', 1)",
    )
    assert plan.count("EXCL_WRITE on default.t\n") == 1


def test_of_long_lists_the_plan_shows_the_beginning(acid):
    acid.sql("CREATE TABLE t (v STRING) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t SELECT 'v', INT(id) FROM range(3)")
    numbers = ",".join(map(str, range(20)))
    query = f"SELECT v FROM t WHERE array_contains(array({numbers}), p)"
    for mode in ("", "EXTENDED", "FORMATTED"):
        plan = explained(acid, f"EXPLAIN {mode} {query}")
        assert re.search(r"[\[(](-?\d+,){8}… \d+ more", plan)
        assert not re.search(r"(-?\d+,){20}", plan)
        assert "[0,1,2,3,4,5,6,7,… 12 more]" in plan


def test_a_long_word_is_no_list():
    word = "x" * 1_000_000
    assert plan_section(f"a = {word}") == f"a = {word}"
    assert plan_section(f"[{word},{word}]") == f"[{word},{word}]"


def test_each_branch_and_each_source_is_explained(t):
    fill(t, "s (id INT, v STRING)", "9, 'nine'")
    plans = t.sql("EXPLAIN FROM s INSERT INTO s SELECT * INSERT INTO t SELECT id, v, 1").collect()
    assert len(plans) == 2
    assert all("default.s: 1 of 1 files" in plan[0] for plan in plans)
    plan = explained(t, "EXPLAIN INSERT INTO t VALUES (1, 'a', 1)")
    assert plan.startswith("== Locks ==\nSHARED_READ on default.t\n")
    assert "ACID Tables" not in plan
    merge = "EXPLAIN MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    plan = explained(t, merge)
    assert "default.t: 5 of 5" in plan
    assert "default.s: 1 of 1" in plan


@pytest.mark.classic
def test_files_that_python_tasks_read_are_told(acid, monkeypatch):
    fill(acid, "t (id INT)", "1")
    monkeypatch.setattr("acidsql.storage.reading.scan.has_timestamp", lambda types: True)
    monkeypatch.setattr(zones, "zone_offset_micros", lambda spark: None)
    plan = explained(acid, "EXPLAIN SELECT * FROM t")
    assert "default.t: 1 of 1 files" in plan
    assert "read by Python tasks" in plan


def test_explaining_a_command_of_sparks_does_not_run_it(t, spark):
    spark.sql("CREATE TABLE plain_of_spark (id INT) USING parquet")
    try:
        for text in (
            "EXPLAIN INSERT INTO plain_of_spark SELECT id FROM t",
            "EXPLAIN WITH w AS (SELECT id FROM t) INSERT INTO plain_of_spark SELECT * FROM w",
            "EXPLAIN FROM t INSERT INTO plain_of_spark SELECT id",
        ):
            assert "Execute InsertInto" in explained(t, text)
        assert spark.table("plain_of_spark").count() == 0
    finally:
        spark.sql("DROP TABLE plain_of_spark")
