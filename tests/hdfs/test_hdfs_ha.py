"""Tables on an HDFS with two name nodes, of which only Spark's configuration knows."""

from __future__ import annotations

import threading
import time

import pytest
from mini_hdfs import MiniHdfs, missing
from running_server import running_server

import acidsql
from acidsql.storage.files.filesystem import filesystem_for
from acidsql.storage.files.hdfs import HdfsFileSystem
from acidsql.storage.files.options.store_options import settings_here
from acidsql.storage.spark.session.store_conf import hand_over_store_settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def ha(tmp_path_factory):
    work = tmp_path_factory.mktemp("ha")
    yield from running_server(missing(), lambda: MiniHdfs(work, has_standby=True))


@pytest.fixture
def acid(spark, ha, tmp_path):
    conf = spark._jsc.hadoopConfiguration()
    settings = {name: value for name, value in ha.settings.items() if name != "fs.defaultFS"}
    for name, value in settings.items():
        conf.set(name, value)
    with acidsql.connect(
        spark, warehouse=f"{ha.root}/{tmp_path.name}", metastore=f"sqlite:///{tmp_path}/m.db",
        compactor="off",
    ) as session:  # fmt: skip
        assert settings.items() <= settings_here().items()
        session.sql("CREATE TABLE t (id INT, name STRING) PARTITIONED BY (p INT)")
        session.sql("INSERT INTO t SELECT CAST(id AS INT), 'a', CAST(id % 2 AS INT) FROM range(10)")
        yield session
    for name in settings:
        conf.unset(name)
    hand_over_store_settings(spark)


def names(acid):
    return {row.id: row.name for row in acid.sql("SELECT id, name FROM t").collect()}


OLD = dict.fromkeys(range(10), "a")
UPDATE = "UPDATE t SET name = 'b' WHERE id < 5"
NEW = OLD | dict.fromkeys(range(5), "b")


def test_workers_know_the_name_nodes_that_only_spark_knows(acid, spark):
    spark.range(20_000, numPartitions=2).createOrReplaceTempView("many")  # too many for the driver
    acid.sql("INSERT INTO t SELECT CAST(id + 100 AS INT), uuid(), 0 FROM many")
    assert len(names(acid)) == 20_010


@pytest.mark.parametrize("moment", [1, 2, 3])
def test_the_other_name_node_takes_over_in_the_middle_of_a_publish(acid, ha, monkeypatch, moment):
    """Before the n-th rename. The statement goes on with the other name node."""
    rename, calls = HdfsFileSystem.rename, []

    def fail_over(self, *paths):
        calls.append(paths)
        if len(calls) == moment:
            ha.run("failover")
        rename(self, *paths)

    monkeypatch.setattr(HdfsFileSystem, "rename", fail_over)
    acid.sql(UPDATE)
    assert len(calls) >= moment
    assert names(acid) == NEW


def test_a_statement_waits_while_no_name_node_is_active(acid, ha):
    ha.run("standby")
    waiting = threading.Timer(4, lambda: ha.run("activate 1"))
    waiting.start()
    began = time.monotonic()
    acid.sql(UPDATE)
    assert time.monotonic() - began > 3
    waiting.join()
    assert names(acid) == NEW


def test_a_name_node_dies(acid, ha):
    ha.run("kill")
    acid.sql(UPDATE)
    assert names(acid) == NEW
    files = filesystem_for(acid.warehouse)
    left = [entry.name for entry in files.list(f"{acid.warehouse}/t/p=0")]
    assert [name for name in left if name.startswith("_")] == []
