"""Tables on a real HDFS."""

from __future__ import annotations

import pytest

import acidsql
from acidsql.errors import WriteError
from acidsql.storage.files.hdfs import HdfsFileSystem

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def acid(spark, hdfs, tmp_path):
    metastore = f"sqlite:///{tmp_path}/metastore.db"
    with acidsql.connect(
        spark, warehouse=f"{hdfs}/warehouse", metastore=metastore, compactor="off"
    ) as session:
        yield session


def rows(acid, query):
    return sorted((tuple(row) for row in acid.sql(query).collect()), key=repr)


def test_all_kinds_of_statement_and_compaction(acid):
    acid.sql(
        "CREATE TABLE t (id INT, name STRING) PARTITIONED BY (p STRING) "
        "CLUSTERED BY (id) INTO 2 BUCKETS"
    )
    parts = ["x:y/z", None, "ä b"]
    expected = {id: (f"n{id}", parts[id % 3]) for id in range(30)}
    acid.sql(
        "INSERT INTO t SELECT CAST(id AS INT), concat('n', id), "
        "CASE id % 3 WHEN 0 THEN 'x:y/z' WHEN 2 THEN 'ä b' END FROM range(30)"
    )
    acid.sql("UPDATE t SET name = upper(name) WHERE p = 'x:y/z' AND id > 10")
    acid.sql("DELETE FROM t WHERE id IN (0, 1, 2)")
    acid.sql(
        "MERGE INTO t USING (SELECT CAST(id AS INT) AS id FROM range(28, 33)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, 'new', 'x:y/z')"
    )
    for id in (0, 1, 2):
        del expected[id]
    for id, (name, p) in expected.items():
        expected[id] = (name.upper() if p == "x:y/z" and id > 10 else name, p)
    for id in range(28, 33):
        name, p = ("merged", expected[id][1]) if id in expected else ("new", "x:y/z")
        expected[id] = (name, p)
    wanted = sorted(
        ((id, name, p) for id, (name, p) in expected.items()),
        key=repr,
    )
    assert rows(acid, "SELECT * FROM t") == wanted
    acid.sql("ALTER TABLE t PARTITION (p = 'x:y/z') COMPACT 'minor' AND WAIT")
    acid.sql("ALTER TABLE t PARTITION (p = 'ä b') COMPACT 'major' AND WAIT")
    assert rows(acid, "SELECT * FROM t") == wanted


def test_a_transaction_that_is_rolled_back_leaves_nothing(acid):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    with acid.transaction() as transaction:
        acid.sql("INSERT INTO t VALUES (2)")
        acid.sql("UPDATE t SET id = id + 10")
        assert rows(acid, "SELECT * FROM t") == [(11,), (12,)]
        transaction.rollback()
    assert rows(acid, "SELECT * FROM t") == [(1,)]


def test_files_of_sparks_are_loaded_and_made_a_table(acid, spark, hdfs):
    frame = spark.range(0, 10, 1, 2).selectExpr("CAST(id AS INT) AS id")
    for name in ("loaded", "made"):
        frame.write.orc(f"{hdfs}/{name}")
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql(f"LOAD DATA INPATH '{hdfs}/loaded' INTO TABLE t")
    acid.sql(f"CREATE TABLE made (id INT) LOCATION '{hdfs}/made'")
    for table in ("t", "made"):
        acid.sql(f"DELETE FROM {table} WHERE id > 2")
        assert rows(acid, f"SELECT id FROM {table}") == [(0,), (1,), (2,)]


@pytest.mark.parametrize("call", ["rename", "create_directory"])
def test_a_failing_name_node_leaves_the_table_as_it_was(acid, monkeypatch, call):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT) FROM range(5)")

    def fail(*args):
        raise OSError("the name node is in safe mode")

    with monkeypatch.context() as broken:
        broken.setattr(HdfsFileSystem, call, fail)
        with pytest.raises((OSError, WriteError)):
            acid.sql("UPDATE t SET id = id + 1")
    assert rows(acid, "SELECT id FROM t") == [(id,) for id in range(5)]
    acid.sql("UPDATE t SET id = id + 1")
    assert rows(acid, "SELECT id FROM t") == [(id,) for id in range(1, 6)]
