"""Hive answers ``count(*)`` from statistics: they must be right after whatever acidsql did."""

from __future__ import annotations

import threading

import pytest
from both import LONG

from acidsql.errors import AcidSqlError

PLAIN = "CREATE TABLE t (id INT, v INT)"
PARTITIONED = "CREATE TABLE t (id INT, v INT) PARTITIONED BY (p INT)"
KNOWN = (
    "SELECT PARAM_VALUE FROM {0} JOIN DBS ON TBLS.DB_ID = DBS.DB_ID "
    "WHERE NAME = '{1}' AND TBL_NAME = '{2}' AND PARAM_KEY = 'numRows'"
)
OF_TABLE = "TABLE_PARAMS JOIN TBLS ON TABLE_PARAMS.TBL_ID = TBLS.TBL_ID"
OF_PARTITIONS = (
    "PARTITION_PARAMS JOIN PARTITIONS ON PARTITION_PARAMS.PART_ID = PARTITIONS.PART_ID "
    "JOIN TBLS ON PARTITIONS.TBL_ID = TBLS.TBL_ID"
)


def numbers(both, table="t", *, of=OF_TABLE):
    """The numbers of rows that the server keeps."""
    found = both.server.query(KNOWN.format(of, both.database, table))
    return sorted(int(one) for (one,) in found)


def test_the_server_knows_the_number_of_rows_after_each_statement(both):
    both.acid.sql(PLAIN)
    for statement, expected in [
        ("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)", 3),
        ("UPDATE t SET v = 9 WHERE id < 3", 3),
        ("DELETE FROM t WHERE id = 1", 2),
        (
            "MERGE INTO t USING (SELECT 2 id UNION ALL SELECT 7 UNION ALL SELECT 8) s "
            "ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0)",
            3,
        ),
        ("INSERT OVERWRITE TABLE t VALUES (5, 5)", 1),
        ("INSERT INTO t SELECT * FROM t", 2),
        ("TRUNCATE TABLE t", 0),
        ("INSERT INTO t VALUES (6, 6)", 1),
    ]:
        both.acid.sql(statement)
        assert numbers(both) == [expected], statement
        assert len(both.rows("t")) == expected, statement
    both.acid.sql("CREATE TABLE c AS SELECT * FROM t")
    assert numbers(both, "c") == [1] and len(both.rows("c")) == 1


def test_the_server_knows_the_number_of_rows_of_each_partition(both):
    both.acid.sql(PARTITIONED)
    for statement, expected in [
        ("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 2)", [1, 2]),
        ("DELETE FROM t WHERE id = 3", [1, 1]),
        ("INSERT OVERWRITE TABLE t PARTITION (p = 1) VALUES (4, 4), (5, 5), (6, 6)", [1, 3]),
        ("TRUNCATE TABLE t PARTITION (p = 1)", [0, 1]),
        ("ALTER TABLE t DROP PARTITION (p = 1)", [1]),
        ("INSERT INTO t VALUES (7, 7, 1)", [1, 1]),
    ]:
        both.acid.sql(statement)
        assert numbers(both, of=OF_PARTITIONS) == expected, statement
        both.rows("t")


def test_hive_measures_the_files_again_after_a_change(both):
    """By a table's size Hive decides which table of a join fits into memory."""
    both.hive.sql(f"{PLAIN} STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    both.hive.sql("INSERT INTO t VALUES (1, 1)")
    small = sizes(both)
    both.acid.sql("INSERT INTO t SELECT id, id * 7919 FROM range(20000)")
    plan = "\n".join(map(str, both.hive.sql("EXPLAIN SELECT id FROM t WHERE v > 0")))
    assert sizes(both) == {} and "Num rows: 20001" in plan
    both.hive.sql("INSERT INTO t VALUES (2, 2)")
    large = sizes(both)
    assert large["numFiles"] > small["numFiles"] + 1  # those of acidsql, too
    assert large["totalSize"] > 2 * small["totalSize"]


def sizes(both):
    """What the server says about the files of ``t``."""
    found = both.server.query(
        f"SELECT PARAM_KEY, PARAM_VALUE FROM {OF_TABLE} JOIN DBS ON TBLS.DB_ID = DBS.DB_ID "
        f"WHERE NAME = '{both.database}' AND PARAM_KEY IN ('numFiles', 'totalSize')"
    )
    return {key: int(value) for key, value in found}


@LONG
def test_the_rows_of_loaded_files_are_counted(both, tmp_path):
    both.acid.sql(PLAIN)
    both.acid.sql("INSERT INTO t VALUES (1, 1)")
    both.acid.spark.range(3).selectExpr("cast(id as int) id", "1 v").write.orc(f"{tmp_path}/new")
    both.acid.sql(f"LOAD DATA INPATH '{tmp_path}/new' INTO TABLE t")
    assert numbers(both) == [4] and len(both.rows("t")) == 4


def test_what_was_undone_is_not_counted(both):
    both.acid.sql(PLAIN)
    both.acid.sql("INSERT INTO t VALUES (1, 1)")
    both.acid.sql("BEGIN")
    both.acid.sql("INSERT INTO t VALUES (2, 2)")
    both.acid.sql("ROLLBACK")
    both.acid.sql("BEGIN")
    both.acid.sql("INSERT INTO t VALUES (3, 3)")
    both.acid.sql("SAVEPOINT s")
    both.acid.sql("DELETE FROM t")
    both.acid.sql("ROLLBACK TO s")
    both.acid.sql("INSERT INTO t VALUES (4, 4)")
    both.acid.sql("COMMIT")
    assert numbers(both) == [3] and len(both.rows("t")) == 3


def test_a_commit_that_fails_takes_its_rows_back(both):
    both.acid.sql(PLAIN)
    both.acid.sql("INSERT INTO t VALUES (1, 1)")
    optimistic = {"hive.txn.xlock.write": "false"}
    one, two = both.new_acid(**optimistic), both.new_acid(**optimistic)
    for session in (one, two):
        session.sql("BEGIN")
        session.sql("UPDATE t SET v = v + 1")
        session.sql("INSERT INTO t VALUES (2, 2)")
    one.sql("COMMIT")
    with pytest.raises(AcidSqlError):
        two.sql("COMMIT")
    assert numbers(both) == [2] and len(both.rows("t")) == 2


def test_sessions_that_insert_at_once_lose_no_count(both):
    both.acid.sql(PLAIN)

    def insert(session, number):
        for turn in range(4):
            session.sql(f"INSERT INTO t VALUES ({number}, {turn})")

    threads = [
        threading.Thread(target=insert, args=(both.new_acid(), number)) for number in range(3)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert numbers(both) == [12] and len(both.rows("t")) == 12


@pytest.mark.parametrize(
    "late", [True, pytest.param(False, marks=LONG)], ids=["insert-later", "insert-before"]
)
def test_hive_counts_right_after_its_compaction_and_its_own_insert(both, late):
    """A compaction of Hive calls the number of rows right without counting. And Hive's INSERT adds
    to any number."""
    both.hive.sql(f"{PLAIN} STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    both.hive.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    both.acid.sql("DELETE FROM t WHERE id = 1")
    if not late:
        both.hive.sql("INSERT INTO t VALUES (4, 4)")
    both.compact_by_hive("t", "major")
    if late:
        both.hive.sql("INSERT INTO t VALUES (4, 4)")
    assert len(both.rows("t")) == 3
