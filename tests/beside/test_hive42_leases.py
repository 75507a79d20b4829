"""Leases beside the cleaner of a Hive Metastore 4.2.0, which runs by itself."""

from __future__ import annotations

import time

import hive42_metastore
import pytest
from running_server import running_server

import acidsql

pytestmark = [pytest.mark.spark, pytest.mark.rare]

CLEANS = {
    "metastore.compactor.cleaner.on": "true",
    "metastore.compactor.cleaner.run.interval": "500ms",
}
PATIENCE_S = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    work = tmp_path_factory.mktemp("h42")
    yield from running_server(
        hive42_metastore.missing(),
        lambda: hive42_metastore.HiveMetastoreServer(work, settings=CLEANS),
    )


@pytest.fixture
def connect(spark, server):
    sessions = []

    def connect():
        sessions.append(acidsql.connect(spark, metastore=server.url, compactor="off"))
        return sessions[-1]

    yield connect
    for session in sessions:
        session.close()
    spark.catalog.setCurrentDatabase("default")


def fill(acid, name):
    acid.sql(f"CREATE TABLE {name} (id INT, v STRING)")
    for number in range(3):
        acid.sql(f"INSERT INTO {name} VALUES ({number}, 'v')")


def wait_until_cleaned(acid, name):
    """Wait until the cleaner has ended with all compactions of a table."""
    deadline = time.monotonic() + PATIENCE_S
    while any(
        row.state != "succeeded"
        for row in acid.sql("SHOW COMPACTIONS").collect()
        if row.tabname == name
    ):
        assert time.monotonic() < deadline, f"the cleaner has not cleaned {name}"
        time.sleep(0.3)


def test_what_a_session_still_reads_is_kept_and_all_else_is_cleaned(connect, server):
    writer, reader = connect(), connect()
    for name in ("kept", "cleaned"):
        fill(writer, name)
    frame = reader.table("kept")
    for name in ("kept", "cleaned"):
        writer.sql(f"ALTER TABLE {name} COMPACT 'major' AND WAIT")
    wait_until_cleaned(writer, "cleaned")
    time.sleep(3)  # the cleaner passes a few times more
    assert frame.count() == 3
    reader.close()
    writer.close()
    last = connect()
    wait_until_cleaned(last, "kept")
    directories = [path for path in (server.warehouse / "kept").iterdir() if path.name[0] != "."]
    assert [path.name[:12] for path in directories] == ["base_0000003"]


def test_a_transaction_reads_its_tables_as_they_were(connect):
    writer, reader = connect(), connect()
    for name in ("first", "second"):
        fill(writer, name)
    reader.sql("BEGIN")
    assert [reader.table(name).count() for name in ("first", "second")] == [3, 3]
    writer.sql("DELETE FROM first WHERE id = 1")
    for name in ("first", "second"):
        writer.sql(f"ALTER TABLE {name} COMPACT 'major' AND WAIT")
    time.sleep(3)
    assert [reader.table(name).count() for name in ("first", "second")] == [3, 3]
    reader.sql("COMMIT")
