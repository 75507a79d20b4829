"""Columns that one of Hive and acidsql renames, and what names them for the other."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.spark

SORTED = (
    "CREATE TABLE {} (k INT, v STRING) CLUSTERED BY (k) SORTED BY (v DESC, k) INTO 2 BUCKETS "
    "STORED AS ORC TBLPROPERTIES ('transactional'='true', "
    "'transactional_properties'='insert_only')"
)


def created(both, name):
    return " ".join(row[0].strip() for row in both.hive.sql(f"SHOW CREATE TABLE {name}"))


def test_hive_finds_the_new_names_of_clustered_by_sorted_by_and_no_old_statistics(both):
    both.run("hive", SORTED.format("t"))
    both.run("hive", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    both.run("hive", "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS")
    both.run("acidsql", "ALTER TABLE t RENAME COLUMN v TO w")
    both.run("acidsql", "ALTER TABLE t CHANGE COLUMN k number INT")
    made = created(both, "t")
    assert "CLUSTERED BY ( `number`)" in made and "SORTED BY ( `w` DESC, `number` ASC)" in made
    described = str(both.hive.sql("DESCRIBE FORMATTED t"))
    assert '\\"k\\"' not in described and '\\"v\\"' not in described
    for who in ("hive", "acidsql"):
        both.run(who, f"INSERT INTO t VALUES (3, '{who}')")
    assert both.rows("t") == [(1, "a"), (2, "b"), (3, "acidsql"), (3, "hive")]


def test_columns_change_beside_statistics_of_hive_also_in_partitions(both):
    both.run("hive", "CREATE TABLE t (k INT, v INT) PARTITIONED BY (p INT) STORED AS ORC "
             "TBLPROPERTIES ('transactional'='true')")  # fmt: skip
    for change in ("RENAME COLUMN v TO w", "CHANGE COLUMN w w BIGINT", "ADD COLUMN z INT"):
        both.run("hive", "INSERT INTO t PARTITION (p = 1) VALUES (1, 2)")
        both.run("hive", "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS")
        both.run("acidsql", f"ALTER TABLE t {change}")
    assert both.rows("t") == [(1, 2, None, 1)] * 3
    assert both.hive.sql("SELECT count(*), max(w) FROM t") == [[3, 2]]


def test_a_column_that_hive_renamed_in_a_sorted_table_keeps_nobody_from_inserting(both):
    both.run("hive", SORTED.format("t"))
    both.run("hive", "ALTER TABLE t CHANGE COLUMN v w STRING")
    assert "SORTED BY ( `v` DESC, `k` ASC)" in created(both, "t")  # Hive's own fault
    for who in ("hive", "acidsql"):
        both.run(who, f"INSERT INTO t VALUES (3, '{who}')")
    assert both.rows("t") == [(3, "acidsql"), (3, "hive")]
    both.run("acidsql", "ALTER TABLE t RENAME COLUMN k TO number")
    both.run("hive", "INSERT INTO t VALUES (4, 'x')")
    assert both.rows("t")[-1] == (4, "x")


def test_a_view_of_hive_keeps_its_columns_names(both):
    both.run("hive", "CREATE TABLE t (k INT, v STRING) STORED AS ORC "
             "TBLPROPERTIES ('transactional'='true')")  # fmt: skip
    both.run("hive", "CREATE VIEW w AS SELECT v FROM t WHERE k > 0")
    for column in ("k", "v"):
        with pytest.raises(Exception, match=f"the view {both.database}.w names it"):
            both.acid.sql(f"ALTER TABLE t RENAME COLUMN {column} TO other")
    both.run("hive", "DROP VIEW w")
    both.run("acidsql", "ALTER TABLE t RENAME COLUMN k TO other")
