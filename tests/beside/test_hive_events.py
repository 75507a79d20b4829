"""What a program sees that asks the server for notifications."""

from __future__ import annotations

import hive_sql
import pytest
from both import LONG, Both

LISTENS = {
    "metastore.transactional.event.listeners": "hivesql.Events",
    "hms.dml.events": "true",
}


@pytest.fixture
def listened(spark, tmp_path_factory):
    """A server whose listener writes events down."""
    reason = hive_sql.missing()
    if reason is not None:
        pytest.skip(reason)
    server = hive_sql.Hive(tmp_path_factory.mktemp("listened"), settings=LISTENS)
    shared = Both(spark, server, "noted")
    yield shared
    shared.close()
    server.close()


def events(both, after=0):
    """Kind, table and message of the events, with their numbers."""
    found = both.server.query(
        "SELECT EVENT_ID, EVENT_TYPE, TBL_NAME, CAST(MESSAGE AS VARCHAR(2000)) "
        f"FROM NOTIFICATION_LOG WHERE EVENT_ID > {after} ORDER BY EVENT_ID"
    )
    return [(int(number), kind, table, said) for number, kind, table, said in found]


@LONG
def test_each_statement_leaves_its_events(listened):
    last = 0
    for statement, expected in [
        ("CREATE TABLE p (id INT) PARTITIONED BY (p INT)", ["CREATE_TABLE"]),
        (
            "INSERT INTO p VALUES (1, 1), (2, 2)",
            ["ALLOC_WRITE_ID", "ADD_PARTITION", "ACID_WRITE", "ACID_WRITE", "COMMIT_TXN"],
        ),
        ("UPDATE p SET id = 5 WHERE p = 1", ["ALLOC_WRITE_ID", "ACID_WRITE", "COMMIT_TXN"]),
        ("DELETE FROM p WHERE p = 1", ["ALLOC_WRITE_ID", "ACID_WRITE", "COMMIT_TXN"]),
        ("TRUNCATE TABLE p", ["ALLOC_WRITE_ID", "ACID_WRITE", "COMMIT_TXN"]),
        ("ALTER TABLE p DROP PARTITION (p = 1)", ["DROP_PARTITION"]),
        ("ALTER TABLE p ADD COLUMNS (v STRING)", ["ALTER_TABLE"]),
        ("DROP TABLE p", ["DROP_TABLE"]),
    ]:
        listened.acid.sql(statement)
        found = events(listened, last)
        last = found[-1][0]
        kinds = [kind for _, kind, *_ in found]
        rest = iter(kinds)
        assert all(one in rest for one in expected), (statement, kinds)  # in this order


@LONG
def test_the_files_of_a_commit_are_told_and_those_of_a_rollback_are_not(listened):
    listened.acid.sql("CREATE TABLE t (id INT)")
    before = events(listened)[-1][0]
    listened.acid.sql("BEGIN")
    listened.acid.sql("INSERT INTO t VALUES (1)")
    listened.acid.sql("ROLLBACK")
    kinds = [kind for _, kind, *_ in events(listened, before)]
    assert "ABORT_TXN" in kinds and "ACID_WRITE" not in kinds
    listened.acid.sql("INSERT INTO t VALUES (2)")
    (said,) = [said for _, kind, _, said in events(listened, before) if kind == "ACID_WRITE"]
    assert "/t/delta_0000002_0000002_0000/bucket_" in said and "file:/" in said
    assert listened.rows("t") == [(2,)]
