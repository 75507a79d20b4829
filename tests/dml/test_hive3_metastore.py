"""Statements over a real Hive Metastore 3.1.3: rows, and what the server's own database says."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

import pyarrow as pa
from click.testing import CliRunner
from kit import rows
from kit_hive import asks, done_changes, open_changes, own_database
from pyarrow import orc

import acidsql
from acidsql.acid.table import TableName
from acidsql.errors import (
    ConstraintError,
    TxnAbortedError,
    UnsupportedError,
    WriteConflictError,
)
from acidsql.metastore.hive.wire.idl import hive
from acidsql.terminal.cli import main


@pytest.fixture
def connect(spark, hive3_metastore):
    """Open sessions on the server, in a database of the test's own."""
    yield from own_database(spark, hive3_metastore)


@pytest.fixture
def acid(connect):
    return connect()


@pytest.fixture
def ask(hive3_metastore, connect):
    return asks(hive3_metastore, connect)


def nothing_is_left(connect, ask):
    """No lock, no open change, and no open transaction but leases."""
    own = [txn for one in connect.opened for txn in one.metastore.parts.server.own_txns.values()]
    leases = {txn.id for txn in own if txn.type.name == "READ_ONLY"}
    assert ask("SELECT HL_TABLE, HL_TXNID FROM HIVE_LOCKS") == []
    assert open_changes(ask) == []
    found = ask("SELECT TXN_ID FROM TXNS WHERE TXN_STATE = 'o'")
    assert {int(one) for (one,) in found} <= leases


@pytest.fixture(autouse=True)
def _forget(hive3_metastore):
    """Leases of sessions of earlier tests, and what they have aborted."""
    for table in ("TXN_COMPONENTS", "HIVE_LOCKS", "TXNS"):
        hive3_metastore.query(f"DELETE FROM {table}")


# ── statements ───────────────────────────────────────────────────────────────────────────────


def test_rows_are_inserted_changed_deleted_and_merged(acid, connect, ask):
    acid.sql("CREATE TABLE t (id INT NOT NULL CHECK (id <> 5), name STRING DEFAULT 'x')")
    acid.sql("INSERT INTO t VALUES (1, 'it''s'), (2, 'b\\\\c')")
    nothing_is_left(connect, ask)
    acid.sql("INSERT INTO t (id) VALUES (3)")
    acid.sql("UPDATE t SET name = 'z\\'' WHERE id = 1")
    nothing_is_left(connect, ask)
    acid.sql("DELETE FROM t WHERE id = 2")
    nothing_is_left(connect, ask)
    acid.sql(
        "MERGE INTO t USING (SELECT 3 id, 'm' name UNION ALL SELECT 9, 'n') s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
    )
    acid.sql("TRUNCATE TABLE t")
    acid.sql("INSERT OVERWRITE t SELECT 7, 'seven'")
    nothing_is_left(connect, ask)
    assert rows(acid, "SELECT id, name FROM t") == [(7, "seven")]
    assert done_changes(ask) == [
        ["t", None, str(number), changes]
        for number, changes in enumerate("NNYYYYY", start=1)
    ]  # fmt: skip
    for id_ in ("NULL", 5):
        with pytest.raises(ConstraintError):
            acid.sql(f"INSERT INTO t VALUES ({id_}, 'a')")
    nothing_is_left(connect, ask)


def test_rows_of_a_merge_are_right(acid):
    acid.sql("CREATE TABLE t (id INT, name STRING)")
    acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    acid.sql(
        "MERGE INTO t USING (SELECT 2 id UNION ALL SELECT 3 UNION ALL SELECT 4) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'u' "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'n')"
    )
    assert rows(acid, "SELECT * FROM t") == [(1, "a"), (3, "u"), (4, "n")]


def test_partitions_are_made_recorded_overwritten_and_dropped(acid, connect, ask):
    acid.sql("CREATE TABLE p (id INT, v STRING) PARTITIONED BY (p INT, q STRING)")
    acid.sql("INSERT INTO p VALUES (1, 'a', 1, 'A''b'), (2, 'b', 2, NULL), (3, 'c', 3, 'x/y=z')")
    acid.sql("UPDATE p SET v = 'u' WHERE p = 1")
    acid.sql("INSERT OVERWRITE p PARTITION (p = 3, q = 'x/y=z') VALUES (7, 'seven')")
    assert rows(acid, "SELECT * FROM p") == [
        (1, "u", 1, "A'b"), (2, "b", 2, None), (7, "seven", 3, "x/y=z")
    ]  # fmt: skip
    null = "__HIVE_DEFAULT_PARTITION__"
    assert sorted(done_changes(ask), key=lambda one: (one[2], one[1])) == [
        ["p", "p=1/q=A%27b", "1", "N"], ["p", f"p=2/q={null}", "1", "N"],
        ["p", "p=3/q=x%2Fy%3Dz", "1", "N"], ["p", "p=1/q=A%27b", "2", "Y"],
        ["p", "p=3/q=x%2Fy%3Dz", "3", "Y"],
    ]  # fmt: skip
    acid.sql("ALTER TABLE p DROP PARTITION (p = 2)")
    assert rows(acid, "SHOW PARTITIONS p") == [("p=1/q=A%27b",), ("p=3/q=x%2Fy%3Dz",)]
    acid.sql("ALTER TABLE p ADD COLUMNS (w STRING)")
    acid.sql("INSERT INTO p VALUES (4, 'd', 'w', 1, 'A''b')")
    assert rows(acid, "SELECT id, w FROM p WHERE p = 1") == [(1, None), (4, "w")]
    acid.sql("ALTER TABLE p ADD PARTITION (p = 5, q = 'new')")
    acid.sql("ALTER TABLE p PARTITION (p = 1, q = 'A''b') RENAME TO PARTITION (p = 6, q = NULL)")
    acid.sql("TRUNCATE TABLE p PARTITION (p = 3)")
    assert [name for (name,) in rows(acid, "SHOW PARTITIONS p")] == [
        "p=3/q=x%2Fy%3Dz", "p=5/q=new", f"p=6/q={null}"
    ]  # fmt: skip
    assert rows(acid, "SELECT id, p, q FROM p") == [(1, 6, None), (4, 6, None)]
    nothing_is_left(connect, ask)


def test_an_insert_only_table_and_a_bucketed_one(acid, connect, ask):
    acid.sql("CREATE TABLE i (a INT) TBLPROPERTIES ('transactional_properties'='insert_only')")
    acid.sql("INSERT INTO i VALUES (1)")
    acid.sql("INSERT OVERWRITE i VALUES (2), (3)")
    acid.sql("CREATE TABLE b (a INT) CLUSTERED BY (a) INTO 2 BUCKETS")
    acid.sql("INSERT INTO b SELECT id FROM range(10)")
    acid.sql("DELETE FROM b WHERE a < 5")
    assert rows(acid, "SELECT * FROM i") == [(2,), (3,)]
    assert rows(acid, "SELECT count(*) FROM b") == [(5,)]
    with pytest.raises(UnsupportedError, match="somebody has written to it"):
        acid.sql("ALTER TABLE i SET TBLPROPERTIES ('transactional_properties'='default')")
    assert rows(acid, "SELECT * FROM i") == [(2,), (3,)]
    nothing_is_left(connect, ask)


def test_tables_are_copied_altered_renamed_and_dropped(acid, connect, ask):
    acid.sql("CREATE TABLE t AS SELECT 1 a, 'x' b")
    acid.sql("ALTER TABLE t ADD COLUMNS (c STRING)")
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('k'='v')")
    acid.sql("ALTER TABLE t ALTER COLUMN c SET DEFAULT 'q'")
    acid.sql("ALTER TABLE t CHANGE COLUMN a d BIGINT")
    acid.sql("ALTER TABLE t RENAME TO u")
    acid.sql("INSERT INTO u (d, b) VALUES (2, 'y')")
    assert rows(acid, "SELECT * FROM u") == [(1, "x", None), (2, "y", "q")]
    assert dict(map(tuple, acid.sql("SHOW TBLPROPERTIES u").collect()))["k"] == "v"
    acid.sql("CREATE VIEW w AS SELECT d FROM u WHERE c IS NULL")
    assert rows(acid, "SELECT * FROM w") == [(1,)]
    acid.sql("DROP VIEW w")
    acid.sql("DROP TABLE u")
    assert rows(acid, "SHOW TABLES") == []
    acid.sql("CREATE TABLE u (a INT)")
    assert rows(acid, "SELECT * FROM u") == []
    nothing_is_left(connect, ask)


def test_a_plain_table_becomes_an_acid_table_and_files_are_loaded(acid, connect, hive3_metastore):
    acid.sql("CREATE TABLE t (a INT)")
    store = acid.metastore
    plain = store.parts.raw_tables.need(TableName(connect.database, "t"))
    plain.tableName, plain.parameters = "plain", {}
    plain.sd.location = f"file://{hive3_metastore.warehouse}/{connect.database}.db/plain"
    store.parts.server.call("create_table_req", hive.CreateTableRequest(table=plain))
    place = Path(plain.sd.location.removeprefix("file://"))
    orc.write_table(pa.table({"a": pa.array([1, 2], "int32")}), place / "part-0.orc")
    acid.sql("ALTER TABLE plain CONVERT TO ACID")
    acid.sql("UPDATE plain SET a = 5 WHERE a = 1")
    assert acid.last.write_ids == {f"{connect.database}.plain": 10_000_001}
    (place.parent / "new").mkdir()
    orc.write_table(pa.table({"a": pa.array([7], "int32")}), place.parent / "new" / "x.orc")
    acid.sql(f"LOAD DATA INPATH '{place.parent / 'new'}' INTO TABLE plain")
    assert rows(acid, "SELECT * FROM plain") == [(2,), (5,), (7,)]


def test_the_number_of_rows_stays_right(acid, ask):
    """Hive answers ``count(*)`` from it."""
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1), (2), (3)")
    acid.sql("DELETE FROM t WHERE a = 1")
    assert ask(
        "SELECT PARAM_KEY, CAST(PARAM_VALUE AS VARCHAR(100)) FROM TABLE_PARAMS JOIN TBLS ON "
        "TABLE_PARAMS.TBL_ID = TBLS.TBL_ID JOIN DBS ON TBLS.DB_ID = DBS.DB_ID WHERE NAME = $db AND "
        "PARAM_KEY IN ('numRows', 'COLUMN_STATS_ACCURATE', 'totalSize', 'DO_NOT_UPDATE_STATS')"
    ) == [["numRows", "2"]]


def test_files_are_in_a_compression_that_hive_3_reads(acid, connect):
    """By default, those of acidsql are in ZSTD, which Hive 3 does not read."""
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("CREATE TABLE c AS SELECT id a FROM range(100)")
    acid.sql("CREATE TABLE l (a INT) TBLPROPERTIES ('orc.compress'='SNAPPY')")
    acid.sql("INSERT INTO l SELECT id FROM range(100)")
    found = {name: _compressions(acid, TableName(connect.database, name)) for name in "tcl"}
    assert found == {"t": {"ZLIB"}, "c": {"ZLIB"}, "l": {"SNAPPY"}}


def _compressions(acid, name):
    files = Path(acid.metastore.find(name).location).rglob("bucket_?????")
    return {orc.ORCFile(str(file)).compression for file in files}


# ── transactions ─────────────────────────────────────────────────────────────────────────────


def test_a_transaction_sees_itself_and_can_be_undone(acid, connect, ask):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("SAVEPOINT s")
    acid.sql("INSERT INTO t VALUES (2)")
    acid.sql("ROLLBACK TO s")
    acid.sql("UPDATE t SET a = a + 10")
    assert rows(acid, "SELECT * FROM t") == [(11,)]
    assert rows(connect(), "SELECT * FROM t") == []
    acid.sql("COMMIT")
    nothing_is_left(connect, ask)
    acid.sql("BEGIN")
    acid.sql("DELETE FROM t")
    acid.sql("ROLLBACK")
    assert open_changes(ask) == [["t", None, "d", "2"]]
    assert ask("SELECT HL_TXNID FROM HIVE_LOCKS") == []
    assert rows(acid, "SELECT * FROM t") == [(11,)]


def test_who_waited_for_a_lock_loses_nothing_and_does_not_lose(acid, connect, ask):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    other, failed = connect(), []
    update = f"UPDATE {connect.database}.t SET a = a * 10"

    def run():
        try:
            other.sql(update)
        except BaseException as error:
            failed.append(error)

    acid.sql("BEGIN")
    acid.sql("UPDATE t SET a = 2")
    thread = threading.Thread(target=run)
    thread.start()
    _wait_for_a_waiter(acid)
    acid.sql("COMMIT")
    thread.join(300)
    assert failed == [] and rows(acid, "SELECT * FROM t") == [(20,)]
    assert ask("SELECT HL_TXNID FROM HIVE_LOCKS") == []


def _wait_for_a_waiter(acid):
    for _ in range(500):
        if any(row.lock_state == "WAITING" for row in acid.sql("SHOW LOCKS").collect()):
            return
    raise AssertionError("nobody waits")


@pytest.mark.parametrize("renews", [True, False])
def test_a_change_before_the_snapshot_is_no_conflict(acid, connect, ask, renews, monkeypatch):
    """The server alone would take it for one."""
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    if not renews:
        monkeypatch.setattr(acid.metastore, "renew", lambda txn_id: txn_id)
    acid.sql("BEGIN")
    connect().sql("UPDATE t SET a = 2")
    acid.sql("UPDATE t SET a = a * 10")
    if renews:
        acid.sql("COMMIT")
        nothing_is_left(connect, ask)
    else:
        with pytest.raises(WriteConflictError):
            acid.sql("COMMIT")
    assert rows(acid, "SELECT * FROM t") == [(20 if renews else 2,)]


def test_the_first_to_commit_wins(acid, connect, ask):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    other = connect()
    acid.sql("BEGIN")
    rows(acid, "SELECT * FROM t")
    other.sql("UPDATE t SET a = 2")
    with pytest.raises(WriteConflictError):
        acid.sql("UPDATE t SET a = 3")
    acid.sql("ROLLBACK")
    assert rows(acid, "SELECT * FROM t") == [(2,)]
    nothing_is_left(connect, ask)


def test_an_overwrite_after_an_insert_of_the_same_transaction(acid, connect, ask):
    """The server would let it wait for its own newer number."""
    acid.sql("CREATE TABLE t (a INT)")
    other = connect()
    acid.sql("BEGIN")
    other.sql("INSERT INTO t VALUES (1)")
    acid.sql("INSERT INTO t VALUES (2)")
    acid.sql("INSERT OVERWRITE t VALUES (3)")
    acid.sql("COMMIT")
    assert rows(acid, "SELECT * FROM t") == [(3,)]
    assert ask("SELECT HL_TXNID FROM HIVE_LOCKS") == []


def test_a_transaction_whose_locks_were_ended_commits_nothing(acid, connect, ask):
    acid.sql("CREATE TABLE t (a INT)")
    other = connect()
    acid.sql("BEGIN")
    other.sql("INSERT INTO t VALUES (1)")
    first = acid._runner.transactions.current.id
    acid.sql("INSERT INTO t VALUES (2)")
    assert acid._runner.transactions.current.id > first
    other.sql(f"ABORT TRANSACTIONS {first}")
    with pytest.raises(TxnAbortedError):
        acid.sql("COMMIT")
    assert rows(acid, "SELECT * FROM t") == [(1,)]
    assert ask("SELECT HL_TXNID FROM HIVE_LOCKS") == []


# ── compactions, moves, the check ────────────────────────────────────────────────────────────


def test_a_compaction_is_asked_for_and_hive_does_it(acid, ask):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("ALTER TABLE t COMPACT 'major'")
    (shown,) = acid.sql("SHOW COMPACTIONS").collect()
    assert (shown["state"], shown["type"]) == ("initiated", "MAJOR")
    assert ask("SELECT CQ_TABLE, CQ_STATE, CQ_TYPE FROM COMPACTION_QUEUE") == [["t", "i", "a"]]
    for refused in (
        "ALTER TABLE t COMPACT 'rebalance'",
        "ALTER TABLE t COMPACT 'major' POOL 'mine'",
        f"ABORT COMPACTIONS {shown[0]}",
    ):
        with pytest.raises(UnsupportedError):
            acid.sql(refused)
    with pytest.raises(UnsupportedError, match="Only Hive compacts"):
        acid.run_compactor(once=True)
    ask("DELETE FROM COMPACTION_QUEUE")
    assert acid.clean().collect() == []  # only what dead sessions left


def test_a_table_moves_there_and_back_unless_hive_3_cannot_read_its_files(
    spark, connect, hive3_metastore
):
    place = hive3_metastore.warehouse / f"own_{connect.database}"
    name, url = f"{connect.database}.moved", hive3_metastore.url
    with acidsql.connect(spark, warehouse=str(place), compactor="off") as own:
        own.sql("CREATE TABLE default.m (a INT)")
        own.sql("INSERT INTO default.m VALUES (1), (2)")
        with pytest.raises(UnsupportedError, match="ZSTD"):
            own.export_to_hive("default.m", metastore=url, name=name)
        own.sql("ALTER TABLE default.m SET TBLPROPERTIES ('orc.compress'='ZLIB')")
        own.sql("INSERT OVERWRITE default.m SELECT * FROM default.m")
        own.sql("INSERT INTO default.m VALUES (3)")
        own.sql("SET acidsql.compactor.visibility.id = true")  # Hive 3 does not read such names
        own.compact("default.m", wait=True)
        own.export_to_hive("default.m", metastore=url, name=name)
        with acidsql.connect(spark, metastore=url) as there:
            there.sql(f"UPDATE {name} SET a = 5 WHERE a = 1")
            assert rows(there, f"SELECT * FROM {name}") == [(2,), (3,), (5,)]
            names = [one.parent.name for one in (place / "m").rglob("bucket_?????")]
            assert "base_0000003" in names and not any("_v" in one for one in names)
        own.import_from_hive(name, metastore=url, name="default.m")
        own.sql("DELETE FROM default.m WHERE a = 2")
        assert rows(own, "SELECT * FROM default.m") == [(3,), (5,)]
        own.sql("DROP TABLE default.m")


def test_the_check_says_what_hive_3_lacks(acid, hive3_metastore, connect):
    acid.sql("CREATE TABLE t (a INT)")
    done = CliRunner().invoke(
        main, ["hive-check", "--metastore", hive3_metastore.url, "--database", connect.database]
    )
    said = " ".join(done.output.split())
    assert done.exit_code == 1, said  # the tests' server has no compactor
    for words in (
        "3.", "full ACID", "no: sessions compact", "yes: files are such that Hive 3",
        "no: DataFrames keep their files", "yes: transactions of several statements notice",
        "else locks of a dead program, and old files, stay",
    ):  # fmt: skip
        assert words in said, said
