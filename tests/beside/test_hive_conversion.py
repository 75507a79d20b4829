"""A plain table of Hive's becomes an ACID table, for Hive and for acidsql alike."""

from __future__ import annotations

import pytest

from acidsql.errors import AcidSqlError, UnsupportedError

CONVERT = "ALTER TABLE t CONVERT TO ACID"


def test_a_plain_table_becomes_an_acid_table_with_the_same_row_ids_for_both(both):
    both.hive.sql("CREATE TABLE t (id INT, v STRING) STORED AS ORC")
    both.hive.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    both.hive.sql("INSERT INTO t VALUES (3, 'c')")  # 000000_0_copy_1
    both.acid.sql(CONVERT)
    both.acid.sql("INSERT INTO t VALUES (4, 'd')")
    ids = {row[1]: row[0] for row in both.rows_with_ids("t")}
    assert [ids[id] for id in (1, 2, 3)] == [(0, 536870912, n) for n in range(3)]
    assert ids[4][0] == 10_000_001
    both.acid.sql("UPDATE t SET v = 'z' WHERE id IN (2, 4)")
    both.hive.sql("DELETE FROM t WHERE id = 1")
    assert both.rows("t") == [(2, "z"), (3, "c"), (4, "z")]
    both.compact_by_hive("t", "major")
    both.rows_with_ids("t")
    assert both.rows("t") == [(2, "z"), (3, "c"), (4, "z")]
    with pytest.raises(UnsupportedError, match="is an ACID table already"):
        both.acid.sql(CONVERT)


def test_partitions_with_files_of_sparks_become_those_of_an_acid_table(both):
    both.hive.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT) STORED AS ORC")
    both.hive.sql("INSERT INTO t PARTITION (p = 1) VALUES (1, 'a')")
    store = both.acid.metastore
    found = store.with_partitions(store.find(name(both)))
    files = both.acid.spark.range(10, 12).selectExpr("CAST(id AS INT) id", "'s' v")
    (place,) = (one.location for one in found.partitions)
    files.coalesce(1).write.mode("append").orc(place)
    files.write.orc(f"{found.table.location}/p=2")
    with pytest.raises(AcidSqlError, match="p=2' is not both a directory"):
        both.acid.sql(CONVERT)
    both.hive.sql("ALTER TABLE t ADD PARTITION (p = 2)")
    both.acid.sql("ALTER TABLE t SET TBLPROPERTIES ('EXTERNAL'='FALSE', 'transactional'='true')")
    assert "renamed" in str(both.acid.last)
    both.acid.sql("UPDATE t SET v = 'u' WHERE id = 11")
    both.hive.sql("DELETE FROM t WHERE p = 2 AND id = 10")
    both.rows_with_ids("t")
    both.compact_by_hive("t PARTITION (p = 1)", "major")
    both.hive.sql("INSERT INTO t PARTITION (p = 1) VALUES (2, 'b')")
    assert both.rows("t") == [
        (1, "a", 1), (10, "s", 1), (11, "u", 1), (11, "u", 2), (2, "b", 1)
    ]  # fmt: skip


def name(both):
    from acidsql.acid.table import TableName

    return TableName(both.database, "t")
