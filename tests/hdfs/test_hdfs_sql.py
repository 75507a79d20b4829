"""Tables on a real HDFS."""

from __future__ import annotations

import base64
import os

import pyarrow.fs as pafs
import pytest

import acidsql
from acidsql.errors import CatalogError, SettingError, UnsupportedError, WriteError
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.hdfs import HdfsFileSystem, _connect
from acidsql.storage.spark.session.store_conf import hand_over_store_settings

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
@pytest.mark.parametrize("is_done", [False, True], ids=["refused", "reply lost"])
def test_a_failing_name_node_leaves_the_table_as_it_was(acid, monkeypatch, call, is_done):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT) FROM range(5)")
    perform = getattr(HdfsFileSystem, call)

    def fail(*args):
        if is_done:
            perform(*args)
        raise OSError("the name node is in safe mode")

    with monkeypatch.context() as broken:
        broken.setattr(HdfsFileSystem, call, fail)
        with pytest.raises((OSError, WriteError)):
            acid.sql("UPDATE t SET id = id + 1")
    assert rows(acid, "SELECT id FROM t") == [(id,) for id in range(5)]
    acid.sql("UPDATE t SET id = id + 1")
    assert rows(acid, "SELECT id FROM t") == [(id,) for id in range(1, 6)]


def test_in_safe_mode_a_change_fails_and_a_query_does_not(acid, mini_hdfs, hdfs):
    acid.sql("CREATE TABLE dropped (id INT)")
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    mini_hdfs.run("safe")
    try:
        with pytest.raises(WriteError, match="SafeModeException"):
            acid.sql("INSERT INTO t VALUES (2)")
        assert rows(acid, "SELECT id FROM t") == [(1,)]
        acid.sql("DROP TABLE dropped")
    finally:
        mini_hdfs.run("unsafe")
    files = filesystem_for(hdfs)
    assert files.exists(f"{hdfs}/warehouse/dropped")
    acid.clean()
    assert not files.exists(f"{hdfs}/warehouse/dropped")
    acid.sql("INSERT INTO t VALUES (3)")
    assert rows(acid, "SELECT id FROM t") == [(1,), (3,)]


@pytest.fixture
def default_fs(spark, mini_hdfs):
    """Hadoop's configuration in Spark says that paths without a scheme are on HDFS."""
    conf = spark._jsc.hadoopConfiguration()
    conf.set("fs.defaultFS", mini_hdfs.root)
    yield mini_hdfs.root
    conf.set("fs.defaultFS", "file:///")
    hand_over_store_settings(spark)


def test_a_path_without_a_scheme_is_where_spark_looks_for_it(
    spark, default_fs, hdfs, tmp_path, monkeypatch
):
    inside = hdfs.removeprefix(default_fs)
    spark.range(3).selectExpr("CAST(id AS INT) AS id").write.orc(f"{inside}/in")
    with acidsql.connect(
        spark, warehouse=f"{inside}/w", metastore=f"sqlite:///{tmp_path}/m.db", compactor="off"
    ) as acid:
        assert acid.warehouse == f"{hdfs}/w"
        acid.sql(f"CREATE TABLE t (id INT) LOCATION '{inside}/t'")
        acid.sql(f"LOAD DATA INPATH '{inside}/in' INTO TABLE t")
        acid.sql("DELETE FROM t WHERE id = 1")
        assert rows(acid, "SELECT id FROM t") == [(0,), (2,)]
        assert not os.path.exists(inside)
        found = acidsql.read(spark, f"{inside}/t").collect()
        assert sorted(row.id for row in found) == [0, 2]
        acid.sql(f"CREATE DATABASE d LOCATION '{inside}/d.db'")
        acid.sql("CREATE TABLE d.u (id INT)")
        assert filesystem_for(hdfs).list(f"{hdfs}/d.db")[0].name == "u"
        with pytest.raises(CatalogError, match=r"'here' is relative.*fs\.defaultFS"):
            acid.sql("CREATE TABLE r (id INT) LOCATION 'here'")
        acid.sql(f"CREATE TABLE l (id INT) LOCATION 'file:{tmp_path}/l'")
        assert os.path.isdir(tmp_path / "l")
    with pytest.raises(SettingError, match=r"pass metastore="):
        acidsql.connect(spark, warehouse=f"{inside}/other")


def test_a_table_directly_below_the_root(acid, mini_hdfs, hdfs):
    location = f"{mini_hdfs.root}/{hdfs.rpartition('/')[2]}-t"
    acid.sql(f"CREATE TABLE t (id INT) LOCATION '{location}'")
    acid.sql("INSERT INTO t VALUES (1)")
    assert rows(acid, "SELECT id FROM t") == [(1,)]
    acid.sql("DROP TABLE t")
    assert not filesystem_for(location).exists(location)


def test_the_directory_of_a_dropped_table_stays_if_it_has_snapshots(
    acid, mini_hdfs, hdfs, spark, caplog
):
    """HDFS refuses to delete it."""
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    inside = f"{hdfs.removeprefix(mini_hdfs.root)}/warehouse/t"
    mini_hdfs.run(f"snapshot {inside} s")
    acid.sql("DROP TABLE t")
    assert acid.sql("SHOW TABLES").collect() == []
    files = filesystem_for(hdfs)
    assert "has snapshots" in caplog.text and f"{hdfs}/warehouse/t" in caplog.text
    assert files.list(f"{hdfs}/warehouse/t") == []
    assert acid.metastore.pending_cleanups() == []
    old_table = acidsql.read(spark, f"{hdfs}/warehouse/t/.snapshot/s")
    assert [row.id for row in old_table.collect()] == [1]
    acid.sql("CREATE TABLE t (id INT, name STRING)")
    acid.sql("INSERT INTO t VALUES (2, 'b')")
    assert rows(acid, "SELECT * FROM t") == [(2, "b")]
    mini_hdfs.run(f"forget {inside} s")
    acid.sql("DROP TABLE t")
    assert not files.exists(f"{hdfs}/warehouse/t")


def test_few_requests_go_to_the_name_node(acid, mini_hdfs, hdfs, monkeypatch):
    """This process is a user of its own there, so that Spark's requests do not count."""
    mini_hdfs.run(f"own {hdfs.removeprefix(mini_hdfs.root)}/warehouse counted counted 777")
    monkeypatch.setenv("HADOOP_USER_NAME", "counted")
    _connect.cache_clear()
    try:
        acid.sql("CREATE TABLE t (id INT, name STRING)")
        counts = {}
        for name, statement in (
            ("INSERT", "INSERT INTO t VALUES (1, 'a'), (2, 'b')"),
            ("UPDATE", "UPDATE t SET name = 'c' WHERE id = 1"),
            ("SELECT", "SELECT * FROM t"),
            ("DROP", "DROP TABLE t"),
        ):
            with mini_hdfs.counted_calls("counted") as calls:
                acid.sql(statement).collect()
            counts[name] = calls.total()
        assert counts["INSERT"] <= 11 and counts["UPDATE"] <= 25
        assert counts["SELECT"] <= 3 + 6  # three directories
        assert counts["DROP"] <= 10
    finally:
        _connect.cache_clear()


def test_rows_that_a_writer_has_not_closed_yet_are_not_left_out(acid, mini_hdfs, hdfs):
    """Hive's streaming flushes a file and notes its length beside it, and keeps both open. The
    client without a JVM sees neither."""
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("INSERT INTO t VALUES (2)")
    files, table = filesystem_for(hdfs), f"{hdfs}/warehouse/t"
    delta = max(entry.path for entry in files.list(table) if entry.name.startswith("delta"))
    with files.open_input(f"{delta}/bucket_00000") as file:
        data = file.read()
    inside = delta.removeprefix(mini_hdfs.root)
    lengths = base64.b64encode(len(data).to_bytes(8, "big")).decode()
    mini_hdfs.run(f"open {inside}/bucket_00000 {base64.b64encode(data).decode()}")
    mini_hdfs.run(f"open {inside}/bucket_00000_flush_length {lengths}")
    try:
        with pytest.raises(UnsupportedError, match="a writer has it open") as error:
            acid.sql("SELECT * FROM t").collect()
        assert error.value.condition == "UNSUPPORTED_FEATURE.OPEN_FILE_OF_HDFS"
    finally:
        for name in ("bucket_00000", "bucket_00000_flush_length"):
            mini_hdfs.run(f"close {inside}/{name}")
    assert rows(acid, "SELECT id FROM t") == [(1,), (2,)]


def test_what_arrows_client_cannot_promise_is_said(spark, tmp_path, monkeypatch, caplog):
    """It syncs no file. (Arrow's local file system stands for HDFS here.)"""
    (tmp_path / "w").mkdir()
    local = pafs.LocalFileSystem()
    monkeypatch.setattr(pafs, "HadoopFileSystem", lambda *_, **__: local)
    try:
        with acidsql.connect(
            spark, warehouse=f"hdfs://arrow:8020{tmp_path}/w", compactor="off",
            metastore=f"sqlite:///{tmp_path}/m.db", settings={"acidsql.hdfs.client": "arrow"},
        ):  # fmt: skip
            assert "cannot let HDFS sync" in caplog.text
    finally:
        spark.conf.unset("spark.acidsql.hdfs.client")
        hand_over_store_settings(spark)
