"""A Hive Metastore whose warehouse is on an object store. Only ``make test-s3`` runs it."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

import pyspark
import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

import hive_metastore as servers
import s3a_jars
from kit import rows
from over_hive import ON_S3

import acidsql

pytestmark = pytest.mark.skipif(not ON_S3, reason="runs in make test-s3")


@pytest.fixture
def store(spark, s3, s3a, tmp_path):
    """A session on such a server, which has S3A and the Hadoop of PySpark."""
    if servers.missing() is not None:
        pytest.skip(servers.missing())
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "core-site.xml").write_text(
        "<configuration>"
        + "".join(
            f"<property><name>{name}</name><value>{escape(value)}</value></property>"
            for name, value in s3.hadoop.items()
        )
        + "</configuration>"
    )
    hadoop = Path(pyspark.__file__).with_name("jars").glob("hadoop-client-*.jar")
    server = servers.HiveMetastoreServer(
        tmp_path / "hms",
        settings={"metastore.warehouse.dir": f"{s3a}/warehouse"},
        before=[tmp_path / "site", *hadoop, Path(s3a_jars.class_path())],
    )
    with acidsql.connect(spark, metastore=server.url) as session:
        yield session
    server.close()


def test_tables_there_are_changed_renamed_compacted_and_dropped(store, s3, bucket):
    store.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT)")
    store.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    store.sql(
        "MERGE INTO t USING (VALUES (1), (9)) s(id) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT VALUES (9, 'n', 3)"
    )
    store.sql("BEGIN")
    store.sql("INSERT INTO t VALUES (5, 'x', 5)")
    store.sql("UPDATE t SET v = 'y' WHERE id = 5")
    store.sql("COMMIT")
    store.sql("BEGIN")
    store.sql("DELETE FROM t")
    store.sql("ROLLBACK")
    there = [(1, "m", 1), (2, "b", 2), (5, "y", 5), (9, "n", 3)]
    assert rows(store, "SELECT * FROM t") == there
    store.sql("CREATE TABLE c AS SELECT * FROM t")
    store.sql("ALTER TABLE c RENAME TO d")  # the server copies the files
    store.sql("DELETE FROM d WHERE id = 1")
    assert rows(store, "SELECT * FROM d") == there[1:]
    store.sql("ALTER TABLE t PARTITION (p = 1) RENAME TO PARTITION (p = 8)")
    store.compact("t", wait=True)
    assert rows(store, "SELECT * FROM t") == sorted([(1, "m", 8), *there[1:]])
    store.sql("DROP TABLE t")
    store.sql("DROP TABLE d")
    assert [key for key in s3.keys(bucket) if not key.endswith("/")] == []
