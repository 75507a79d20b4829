"""Statements over a real Hive Metastore: rows, and what the server's own database says.

Numbers like T4 are those of the traps that the store avoids; each test says its trap in words.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("thrift", reason="pip install 'acidsql[hive]'")

import hive_version
from kit_hive import asks, done_changes, open_changes, own_database

import acidsql
from acidsql.acid.table import TableName
from acidsql.errors import (
    CatalogError,
    LockTimeoutError,
    MetastoreError,
    SettingError,
    SnapshotTooOldError,
    TxnAbortedError,
    UnsupportedError,
    WriteConflictError,
)
from acidsql.metastore.hive.wire.client import Client
from acidsql.metastore.hive.wire.idl import hive
from acidsql.metastore.interface import LockComponent, LockState, LockType, Operation


@pytest.fixture
def connect(spark, hive_metastore):
    """Open sessions on the server, in a database of the test's own."""
    yield from own_database(spark, hive_metastore)


@pytest.fixture
def acid(connect):
    return connect()


@pytest.fixture
def ask(hive_metastore, connect):
    return asks(hive_metastore, connect)


@pytest.fixture
def calls(monkeypatch):
    """The calls of the test's own thread, not those that keep transactions alive."""
    made, real, own = [], Client.call, threading.current_thread()

    def call(self, name, *values, **options):
        if threading.current_thread() is own:
            made.append(name)
        return real(self, name, *values, **options)

    monkeypatch.setattr(Client, "call", call)
    return made


def rows(acid, sql):
    return sorted(map(tuple, acid.sql(sql).collect()))


# ── statements ───────────────────────────────────────────────────────────────────────────────


def test_rows_are_inserted_changed_deleted_and_merged(acid):
    acid.sql("CREATE TABLE t (id INT NOT NULL, name STRING DEFAULT 'x', d DECIMAL(10,2))")
    acid.sql("INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', 2.5)")
    acid.sql("INSERT INTO t (id) VALUES (3)")
    acid.sql("UPDATE t SET name = 'z' WHERE id = 1")
    acid.sql("DELETE FROM t WHERE id = 2")
    acid.sql(
        "MERGE INTO t USING (SELECT 3 id, 'm' name UNION ALL SELECT 9, 'n') s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
    )
    assert rows(acid, "SELECT id, name FROM t") == [(1, "z"), (3, "m"), (9, "n")]
    with pytest.raises(acidsql.errors.ConstraintError):
        acid.sql("INSERT INTO t VALUES (NULL, 'a', 1)")


def test_partitions_are_made_listed_overwritten_and_dropped(acid, ask):
    acid.sql("CREATE TABLE p (id INT, v STRING) PARTITIONED BY (p INT, q STRING)")
    acid.sql("INSERT INTO p VALUES (1, 'a', 1, 'A b'), (2, 'b', 2, NULL), (3, 'c', 3, 'x/y=z')")
    acid.sql("UPDATE p SET v = 'u' WHERE p = 1")
    acid.sql("INSERT OVERWRITE p PARTITION (p = 3, q = 'x/y=z') VALUES (7, 'seven')")
    assert rows(acid, "SELECT * FROM p") == [
        (1, "u", 1, "A b"), (2, "b", 2, None), (7, "seven", 3, "x/y=z")
    ]  # fmt: skip
    acid.sql("ALTER TABLE p DROP PARTITION (p = 2)")
    assert rows(acid, "SHOW PARTITIONS p") == [("p=1/q=A b",), ("p=3/q=x%2Fy%3Dz",)]
    acid.sql("INSERT INTO p VALUES (4, 'd', 2, NULL)")
    assert rows(acid, "SELECT id FROM p WHERE p = 2") == [(4,)]
    acid.sql("DROP TABLE p")
    acid.sql("CREATE TABLE p (id INT) PARTITIONED BY (p INT)")
    assert rows(acid, "SELECT * FROM p") == []


def test_an_insert_only_table_and_a_bucketed_one(acid):
    acid.sql("CREATE TABLE i (a INT) TBLPROPERTIES ('transactional_properties'='insert_only')")
    acid.sql("INSERT INTO i VALUES (1)")
    acid.sql("INSERT OVERWRITE i VALUES (2), (3)")
    acid.sql("CREATE TABLE b (a INT) CLUSTERED BY (a) INTO 2 BUCKETS")
    acid.sql("INSERT INTO b SELECT id FROM range(10)")
    acid.sql("DELETE FROM b WHERE a < 5")
    assert rows(acid, "SELECT * FROM i") == [(2,), (3,)]
    assert rows(acid, "SELECT count(*) FROM b") == [(5,)]
    assert "CLUSTERED BY (`a`) INTO 2 BUCKETS" in rows(acid, "SHOW CREATE TABLE b")[0][0]


def test_a_transaction_of_several_statements_sees_itself_and_can_be_undone(acid, connect):
    acid.sql("CREATE TABLE t (a INT)")
    other = connect()
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("SAVEPOINT s")
    acid.sql("INSERT INTO t VALUES (2)")
    acid.sql("ROLLBACK TO s")
    acid.sql("UPDATE t SET a = a + 10")
    assert rows(acid, "SELECT * FROM t") == [(11,)]
    assert rows(other, "SELECT * FROM t") == []
    acid.sql("COMMIT")
    assert rows(other, "SELECT * FROM t") == [(11,)]
    acid.sql("BEGIN")
    acid.sql("DELETE FROM t")
    acid.sql("ROLLBACK")
    assert rows(other, "SELECT * FROM t") == [(11,)]


def test_tables_are_copied_altered_renamed_emptied_and_dropped(acid, hive_metastore):
    acid.sql("CREATE TABLE t AS SELECT 1 a, 'x' b")
    acid.sql("ALTER TABLE t ADD COLUMNS (c STRING)")
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('k'='v')")
    acid.sql("ALTER TABLE t RENAME TO u")
    assert rows(acid, "SELECT * FROM u") == [(1, "x", None)]
    assert dict(map(tuple, acid.sql("SHOW TBLPROPERTIES u").collect()))["k"] == "v"
    acid.sql("TRUNCATE TABLE u")
    assert rows(acid, "SELECT * FROM u") == []
    acid.sql("DROP TABLE u")
    assert rows(acid, "SHOW TABLES") == []


def test_columns_that_are_added_reach_partitions_that_exist(acid):
    acid.sql("CREATE TABLE p (a INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO p VALUES (1, 1)")
    acid.sql("ALTER TABLE p ADD COLUMNS (b STRING)")
    acid.sql("INSERT INTO p VALUES (2, 'x', 1)")
    assert rows(acid, "SELECT a, b FROM p") == [(1, None), (2, "x")]
    acid.sql("UPDATE p SET b = 'y' WHERE a = 1")
    assert rows(acid, "SELECT a, b FROM p") == [(1, "y"), (2, "x")]


def test_not_null_and_default_are_kept_for_partition_columns_too(acid):
    acid.sql("CREATE TABLE p (a INT DEFAULT 7) PARTITIONED BY (p STRING NOT NULL)")
    with pytest.raises(acidsql.errors.ConstraintError):
        acid.sql("INSERT INTO p VALUES (1, NULL)")
    acid.sql("INSERT INTO p (p) VALUES ('x')")
    assert rows(acid, "SELECT * FROM p") == [(7, "x")]


def test_constraints_that_others_change_hold_for_the_next_statement(acid, connect):
    """They are asked for under the lock, once for each statement."""
    acid.sql("CREATE TABLE t (a INT, b INT)")
    acid.sql("INSERT INTO t VALUES (1, 1)")
    other = connect()
    other.sql("ALTER TABLE t ALTER COLUMN b SET DEFAULT 7")
    acid.sql("INSERT INTO t (a) VALUES (2)")
    other.sql("ALTER TABLE t ALTER COLUMN b DROP DEFAULT")
    acid.sql("INSERT INTO t (a) VALUES (3)")
    acid.sql("DELETE FROM t WHERE a = 3")
    _require(acid, connect.database, "t", "a")
    with pytest.raises(acidsql.errors.ConstraintError):
        acid.sql("INSERT INTO t VALUES (NULL, 4)")
    other.sql("ALTER TABLE t ALTER COLUMN a DROP NOT NULL")
    acid.sql("INSERT INTO t (b) VALUES (5)")
    assert rows(acid, "SELECT * FROM t WHERE b IS NOT NULL AND a IS NOT NULL") == [(1, 1), (2, 7)]
    assert rows(acid, "SELECT count(*) FROM t") == [(3,)]


def _require(acid, database, table, column):
    """As Hive's ALTER TABLE … ADD CONSTRAINT … NOT NULL."""
    constraint = hive.SQLNotNullConstraint(
        catName="hive", table_db=database, table_name=table, column_name=column,
        enable_cstr=True, validate_cstr=False, rely_cstr=True,
    )  # fmt: skip
    request = hive.AddNotNullConstraintRequest(notNullConstraintCols=[constraint])
    acid.metastore.parts.server.call("add_not_null_constraint", request)


def test_a_check_is_a_constraint_of_the_server(acid, connect):
    acid.sql("CREATE TABLE t (a INT CHECK (a > 0), b INT, CONSTRAINT Both CHECK (a < b))")
    with connect() as other:
        other.sql("INSERT INTO t VALUES (1, 2), (NULL, 1)")
        for values, name in {"(0, 1)": "t_chk_1", "(3, 2)": "both"}.items():
            with pytest.raises(acidsql.errors.ConstraintError, match=f"'{name}'"):
                other.sql(f"INSERT INTO t VALUES {values}")
    assert rows(acid, "SELECT coalesce(a, 0), b FROM t") == [(0, 1), (1, 2)]
    about = hive.CheckConstraintsRequest(catName="hive", db_name=connect.database, tbl_name="t")
    kept = acid.metastore.parts.server.call("get_check_constraints", about).checkConstraints
    assert {(one.dc_name, one.check_expression, one.enable_cstr) for one in kept} == {
        ("t_chk_1", "a > 0", True), ("both", "a < b", True)
    }  # fmt: skip
    acid.sql("ALTER TABLE t DROP CONSTRAINT both")
    with pytest.raises(acidsql.errors.ConstraintError, match="1 row.s. of .* b < 2 is false"):
        acid.sql("ALTER TABLE t ADD CONSTRAINT low CHECK (b < 2)")
    acid.sql("ALTER TABLE t ADD CONSTRAINT off CHECK (b < 2) DISABLE NOVALIDATE")
    acid.sql("ALTER TABLE t ADD CONSTRAINT low CHECK (b < 9)")
    acid.sql("INSERT INTO t VALUES (5, 4)")
    shown = rows(acid, "SHOW CREATE TABLE t")[0][0]
    assert "`low` CHECK (b < 9)" in shown and "`off` CHECK (b < 2) DISABLE NOVALIDATE" in shown
    for refused in ("ADD PRIMARY KEY (a)", "CHANGE COLUMN b c INT", "ADD COLUMNS (c INT)"):
        with pytest.raises(acidsql.errors.UnsupportedError):
            acid.sql(f"ALTER TABLE t {refused}")


@pytest.mark.parametrize("by", ["", " PARTITIONED BY (p INT NOT NULL)"], ids=["whole", "parts"])
def test_not_null_and_default_outlive_a_change_of_columns(acid, by):
    """The server forgets the constraints of a table whose columns change."""
    acid.sql(f"CREATE TABLE t (a INT NOT NULL, b INT DEFAULT 7){by}")
    acid.sql("ALTER TABLE t ADD COLUMNS (c STRING)")
    acid.sql("ALTER TABLE t CHANGE COLUMN b d BIGINT")
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('k' = 'v')")
    shown = rows(acid, "SHOW CREATE TABLE t")[0][0]
    assert "a` INT NOT NULL" in shown and "DEFAULT 7" in shown
    assert ("p` INT NOT NULL" in shown) is bool(by)


# ── what the server records ──────────────────────────────────────────────────────────────────


def test_t1_what_was_aborted_stays_recorded_with_its_write_id(acid, ask):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("CREATE TABLE p (a INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO p VALUES (1, 1)")
    acid.sql("DELETE FROM t")
    acid.sql("INSERT INTO t VALUES (5)")
    acid.sql("ROLLBACK")
    assert open_changes(ask) == [
        ["p", None, "i", "1"], ["t", None, "d", "2"], ["t", None, "i", "2"]
    ]  # fmt: skip
    assert rows(acid, "SELECT * FROM t") == [(1,)]
    assert rows(acid, "SELECT * FROM p") == []


def test_t2_who_waited_for_a_lock_has_the_higher_write_id(acid, connect, ask):
    """Hive ignores a delete event whose write id is lower than that of its row."""
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    other = connect()
    acid.sql("BEGIN")
    acid.sql("UPDATE t SET a = 2")
    thread = threading.Thread(
        target=other.sql, args=(f"UPDATE {connect.database}.t SET a = a * 10",)
    )
    thread.start()
    _wait_for_a_waiter(acid)
    acid.sql("COMMIT")
    thread.join(300)
    assert rows(acid, "SELECT * FROM t") == [(20,)]  # and the waiter did not lose


def test_who_waited_with_a_shared_lock_loses_no_update(acid, connect):
    """The server, which compares times, may take the change that it waited for as a conflict: then
    the statement runs again."""
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    other, failed = connect(**{"hive.txn.xlock.write": "false"}), []

    def update():
        try:
            other.sql(f"UPDATE {connect.database}.t SET a = a * 10", retries=3)
        except BaseException as error:
            failed.append(error)

    acid.sql("BEGIN")
    acid.sql("UPDATE t SET a = 2")
    thread = threading.Thread(target=update)
    thread.start()
    _wait_for_a_waiter(acid)
    acid.sql("COMMIT")
    thread.join(120)
    assert failed == [] and rows(acid, "SELECT * FROM t") == [(20,)]


def test_t3_a_lock_that_others_wait_for_is_not_asked_for_again(acid, connect):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    other = connect()
    acid.sql("BEGIN")
    acid.sql("UPDATE t SET a = 2")
    thread = threading.Thread(target=other.sql, args=(f"DROP TABLE {connect.database}.t",))
    thread.start()
    _wait_for_a_waiter(acid)
    acid.sql("UPDATE t SET a = 3")
    acid.sql("INSERT INTO t VALUES (4)")  # its record would wait behind DROP, too
    assert rows(acid, "SELECT * FROM t") == [(3,), (4,)]
    acid.sql("COMMIT")
    thread.join(300)
    assert rows(acid, "SHOW TABLES") == []


def test_an_insert_that_a_truncate_of_hives_would_hide_loses(acid, connect):
    """The two do not wait for each other, and an INSERT that reads nothing has no snapshot."""
    acid.sql("CREATE TABLE t (a INT)")
    name, store = TableName(connect.database, "t"), acid.metastore

    def begin(lock_type, operation):
        txn = store.open_txn(user="ann", host="h")
        store.lock(txn, [LockComponent(lock_type, name.database, name.name, None, operation)])
        return txn, store.allocate_write_id(txn, name)

    hidden, _ = begin(LockType.SHARED_READ, Operation.INSERT)
    truncate, base = begin(LockType.EXCL_WRITE, Operation.UPDATE)
    above, _ = begin(LockType.SHARED_READ, Operation.INSERT)
    for txn in (hidden, above):
        store.record_partitions(txn, name, [""])
    Path(acid._table("t").location, f"base_{base:07}").mkdir()
    store.commit_txn(truncate)
    store.commit_txn(above)
    with pytest.raises(WriteConflictError):
        store.commit_txn(hidden)
    store.abort_txn(hidden)


def test_who_cannot_lock_the_numbers_of_rows_at_once_waits_at_commit(acid, connect, ask, calls):
    acid.sql("CREATE TABLE t (a INT)")
    name, other = TableName(connect.database, "t"), connect().metastore
    holder = other.open_txn(user="ann", host="h")
    counts = LockComponent(LockType.EXCL_WRITE, connect.database, "(rows of t)")
    other.lock(holder, [counts])
    ends = threading.Timer(0.5, other.commit_txn, (holder,))

    def publish(*arguments):
        record(*arguments)
        ends.start()

    record, acid.metastore.record_partitions = acid.metastore.record_partitions, publish
    calls.clear()
    acid.sql("INSERT INTO t VALUES (1), (2)")
    assert calls.count("lock") == 3 and "unlock" in calls and "check_lock" in calls
    assert acid.metastore.parts.raw_tables.need(name).parameters["numRows"] == "2"
    assert acid.sql("SHOW LOCKS").collect() == []
    assert len(done_changes(ask)) == 1


def test_a_commit_that_was_aborted_takes_its_own_rows_back_and_nobody_elses(
    acid, connect, monkeypatch
):
    """Its locks are gone by then, so that another session may be changing the number of rows."""
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    other, store = connect(), acid.metastore
    insert = threading.Thread(
        target=other.sql, args=(f"INSERT INTO {connect.database}.t VALUES (2), (3)",)
    )
    real, own, aborted = Client.call, threading.current_thread(), []

    def call(self, name, *values, **options):
        if threading.current_thread() is own:
            if name == "commit_txn" and not aborted:
                aborted.append(values[0].txnid)
                real(self, "abort_txn", hive.AbortTxnRequest(txnid=aborted[0]))
            if name == "alter_table_req" and aborted and insert.ident is None:
                insert.start()  # in between what was read and what is written
                while insert.is_alive() and not any(
                    one.state is LockState.WAITING for one in store.show_locks()
                ):
                    pass
        return real(self, name, *values, **options)

    monkeypatch.setattr(Client, "call", call)
    with pytest.raises(TxnAbortedError):
        acid.sql("INSERT INTO t SELECT id FROM range(10)")
    insert.join(300)
    table = store.parts.raw_tables.need(TableName(connect.database, "t"))
    assert len(rows(acid, "SELECT * FROM t")) == 3 and table.parameters["numRows"] == "3"


def _wait_for_a_waiter(acid):
    for _ in range(200):
        if any(row.lock_state == "WAITING" for row in acid.sql("SHOW LOCKS").collect()):
            return
    raise AssertionError("nobody waits")


@pytest.mark.parametrize(
    "change", ["INSERT INTO t VALUES (2, 1)", "DELETE FROM t", "TRUNCATE TABLE t"]
)
def test_t4_statistics_are_no_longer_called_right(acid, ask, change):
    """Hive answers ``count(*)`` from statistics that are called right."""
    acid.sql("CREATE TABLE t (a INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t VALUES (1, 1)")
    _call_statistics_right(ask)
    marks = (
        "SELECT PARAM_VALUE FROM {0} JOIN DBS ON TBLS.DB_ID = DBS.DB_ID "
        "WHERE NAME = $db AND PARAM_KEY = 'COLUMN_STATS_ACCURATE'"
    )
    tables = marks.format("TABLE_PARAMS JOIN TBLS ON TABLE_PARAMS.TBL_ID = TBLS.TBL_ID")
    partitions = marks.format(
        "PARTITION_PARAMS JOIN PARTITIONS ON PARTITION_PARAMS.PART_ID = PARTITIONS.PART_ID "
        "JOIN TBLS ON PARTITIONS.TBL_ID = TBLS.TBL_ID"
    )
    assert len(ask(tables)) == len(ask(partitions)) == 1
    acid.sql(change)
    assert ask(tables) == ask(partitions) == []


def _call_statistics_right(ask):
    """As Hive does after an INSERT of its own."""
    right = """'{"BASIC_STATS":"true"}'"""
    tables = "SELECT TBL_ID FROM TBLS JOIN DBS ON TBLS.DB_ID = DBS.DB_ID WHERE NAME = $db"
    ask(
        "INSERT INTO TABLE_PARAMS (TBL_ID, PARAM_KEY, PARAM_VALUE) "
        f"SELECT TBL_ID, 'COLUMN_STATS_ACCURATE', CAST({right} AS CLOB) FROM ({tables}) X"
    )
    ask(
        "INSERT INTO PARTITION_PARAMS (PART_ID, PARAM_KEY, PARAM_VALUE) "
        f"SELECT PART_ID, 'COLUMN_STATS_ACCURATE', {right} FROM PARTITIONS "
        f"WHERE TBL_ID IN ({tables})"
    )


# ── conflicts and waiting ────────────────────────────────────────────────────────────────────


def test_t5_with_shared_locks_the_first_committer_wins(acid, connect):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    one, two = (connect(**{"hive.txn.xlock.write": "false"}) for _ in "ab")
    for session in (one, two):
        session.sql("BEGIN")
        session.sql("UPDATE t SET a = a + 1")
    one.sql("COMMIT")
    with pytest.raises(WriteConflictError):
        two.sql("COMMIT")
    assert not two.in_transaction
    assert rows(acid, "SELECT * FROM t") == [(2,)]


@pytest.mark.parametrize(
    ("theirs", "ours", "conflict"),
    [
        ("UPDATE t SET a = 5", "UPDATE t SET a = 6", True),
        ("DELETE FROM t", "UPDATE t SET a = 6", True),
        ("INSERT INTO t VALUES (5, 1)", "UPDATE t SET a = 6", False),
        ("INSERT INTO t VALUES (5, 1)", "INSERT INTO t VALUES (6, 1)", False),
        ("UPDATE t SET a = 5 WHERE p = 2", "UPDATE t SET a = 6 WHERE p = 1", False),
        ("INSERT INTO t VALUES (5, 1)", "INSERT OVERWRITE t PARTITION (p = 1) VALUES (6)", True),
        ("TRUNCATE TABLE t PARTITION (p = 1)", "UPDATE t SET a = 6 WHERE p = 1", True),
        ("TRUNCATE TABLE t PARTITION (p = 1)", "INSERT INTO t VALUES (6, 1)", False),
    ],
)
def test_a_longer_transaction_conflicts_with_what_its_snapshot_does_not_see(
    acid, connect, theirs, ours, conflict
):
    acid.sql("CREATE TABLE t (a INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    other = connect()
    acid.sql("BEGIN")
    rows(acid, "SELECT * FROM t")
    other.sql(theirs)
    if conflict:
        with pytest.raises(WriteConflictError, match="Another program"):
            acid.sql(ours)
            acid.sql("COMMIT")
    else:
        acid.sql(ours)
        acid.sql("COMMIT")


def test_a_lock_that_is_not_granted_names_its_holder(acid, connect):
    acid.sql("CREATE TABLE t (a INT)")
    hasty = connect(**{"hive.lock.numretries": "1"})
    acid.sql("BEGIN")
    acid.sql("DELETE FROM t")
    with pytest.raises(LockTimeoutError, match="DELETE FROM t"):
        hasty.sql("DELETE FROM t")
    acid.sql("ROLLBACK")


def test_a_transaction_that_others_aborted_publishes_nothing(acid, connect, ask):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (1)")
    number = acid._runner.transactions.current.id
    connect().sql(f"ABORT TRANSACTIONS {number}")
    with pytest.raises(TxnAbortedError):
        acid.sql("COMMIT")
    assert rows(acid, "SELECT * FROM t") == []


@pytest.mark.parametrize("logs_changes", [True, False])
@pytest.mark.parametrize("table", ["t", "u"])
def test_a_transaction_that_the_server_ended_reads_nothing_newer_than_its_snapshot(
    acid, connect, ask, table, logs_changes
):
    """The server forgets then which write ids the snapshot does not see, and counts them as
    committed: those of a table that the transaction has read, and those of any other."""
    acid.metastore.parts.server.features = replace(
        acid.metastore.features, logs_changes=logs_changes
    )
    other = connect()
    for name in "tu":
        acid.sql(f"CREATE TABLE {name} (a INT)")
        acid.sql(f"INSERT INTO {name} VALUES (1)")

    def end_and_forget(number):
        other.sql(f"ABORT TRANSACTIONS {number}")
        for name in "tu":
            other.sql(f"INSERT INTO {name} VALUES (2)")
        ask("DELETE FROM TXN_TO_WRITE_ID WHERE T2W_DATABASE = $db")

    acid.sql("BEGIN")
    assert rows(acid, "SELECT * FROM t") == [(1,)]
    end_and_forget(acid._runner.transactions.current.id)
    with pytest.raises(TxnAbortedError):
        rows(acid, f"SELECT * FROM {table}")
    acid.sql("ROLLBACK")
    with acid.snapshot():
        assert rows(acid, "SELECT * FROM t") == [(1,), (2,)]
        end_and_forget(acid._runner.transactions.snapshot_txn.id)
        with pytest.raises(TxnAbortedError):
            rows(acid, f"SELECT * FROM {table}")


# ── other traps ──────────────────────────────────────────────────────────────────────────────


def test_t6_a_long_statement_with_any_letters_gets_its_locks(acid):
    acid.sql("CREATE TABLE t (a STRING)")
    acid.sql(f"INSERT INTO t VALUES ('{'größe 🐘' * 100}')")
    assert rows(acid, "SELECT count(*) FROM t") == [(1,)]


def test_t12_tables_lie_in_the_managed_directory_of_their_database(acid, connect, hive_metastore):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    assert (hive_metastore.warehouse / f"{connect.database}.db" / "t").is_dir()
    assert acid.warehouse == str(hive_metastore.warehouse)
    with pytest.raises(CatalogError, match="managed"):
        acid.sql("CREATE TABLE u (a INT) LOCATION '/elsewhere/u'")


def test_t13_a_renamed_table_is_written_where_it_lies_now(acid, connect, hive_metastore):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("ALTER TABLE t RENAME TO u")
    acid.sql("INSERT INTO u VALUES (2)")
    assert rows(acid, "SELECT * FROM u") == [(1,), (2,)]
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (3)")
    assert rows(acid, "SELECT * FROM t") == [(3,)]


def test_t14_a_compaction_of_nothing_is_not_asked_for(acid):
    acid.sql("CREATE TABLE p (a INT) PARTITIONED BY (p INT)")
    with pytest.raises(CatalogError):
        acid.compact(f"{acid.spark.catalog.currentDatabase()}.p", "p=9")
    acid.sql("ALTER TABLE p COMPACT 'major'")  # of all partitions: there are none
    acid.sql("INSERT INTO p VALUES (1, 1)")
    acid.sql("ALTER TABLE p PARTITION (p = 1) COMPACT 'minor'")
    (entry,) = [one for one in acid.sql("SHOW COMPACTIONS").collect() if one.tabname == "p"]
    assert (entry.partname, entry.type, entry.state) == ("p=1", "MINOR", "initiated")
    again = acid.compact(f"{acid.spark.catalog.currentDatabase()}.p", "p=1").collect()
    assert [one.compactionid for one in again] == [entry.compactionid]
    acid.sql(f"ABORT COMPACTIONS {entry.compactionid}")
    (entry,) = [one for one in acid.sql("SHOW COMPACTIONS").collect() if one.tabname == "p"]
    assert entry.state == "aborted"


def test_t17_what_a_table_is_stays(acid):
    acid.sql("CREATE TABLE t (a INT)")
    with pytest.raises(acidsql.errors.AcidSqlError):
        acid.sql("ALTER TABLE t SET TBLPROPERTIES ('transactional'='false')")


def test_a_table_that_was_replaced_is_not_read_in_an_old_snapshot(acid, connect):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    other = connect()
    acid.sql("BEGIN")
    assert rows(acid, "SELECT * FROM t") == [(1,)]
    other.sql("DROP TABLE t")
    other.sql("CREATE TABLE t (a INT)")
    with pytest.raises(SnapshotTooOldError, match="Another program"):
        acid.sql("SELECT * FROM t").collect()
    acid.sql("ROLLBACK")
    assert rows(acid, "SELECT * FROM t") == []


def test_a_partition_elsewhere_is_refused_by_name(acid, connect):
    acid.sql("CREATE TABLE p (a INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO p VALUES (1, 1)")
    store = acid.metastore
    (raw,) = store.parts.server.call("get_partitions", connect.database, "p", -1)
    raw.values, raw.sd.location = ["2"], raw.sd.location.replace("/p/p=1", "/q/p=2")
    request = hive.AddPartitionsRequest(
        dbName=connect.database, tblName="p", parts=[raw], ifNotExists=True
    )
    store.parts.server.call("add_partitions_req", request)
    with pytest.raises(UnsupportedError, match="p=2"):
        rows(acid, "SELECT * FROM p")


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("hdfs://127.0.0.1:1/t", "libhdfs|127.0.0.1:1"),  # Hadoop's client is not set up here
        ("oss://bucket/t", "object store"),
        ("file:/nowhere/t", "'/nowhere/t' (is gone|of .* cannot be seen)"),
    ],
    ids=["hdfs", "oss", "file"],
)
def test_a_directory_that_cannot_be_reached_is_an_error_that_says_so(
    acid, connect, hive_metastore, location, says
):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    place = f"file:{hive_metastore.warehouse}/{connect.database}.db/t"
    move = "UPDATE SDS SET LOCATION = '{}' WHERE LOCATION = '{}'"
    hive_metastore.query(move.format(location, place))
    try:
        for statement in ("SELECT * FROM t", "DELETE FROM t", "INSERT INTO t VALUES (2)"):
            with pytest.raises(acidsql.errors.AcidSqlError, match=says):
                acid.sql(statement).collect()
    finally:
        hive_metastore.query(move.format(place, location))
    assert rows(acid, "SELECT * FROM t") == [(1,)]


def test_what_this_metastore_cannot_do_is_refused_by_name(spark, acid, hive_metastore):
    with pytest.raises(SettingError, match="detection=row"):
        acid.sql("SET acidsql.conflict.detection=row")
    with pytest.raises(SettingError, match="detection=row"):
        acidsql.connect(
            spark,
            metastore=hive_metastore.url,
            settings={"acidsql.conflict.detection": "row"},
        )
    with pytest.raises(SettingError, match="leave out warehouse"):
        acidsql.connect(spark, metastore=hive_metastore.url, warehouse="/tmp/w")


def test_a_commit_whose_reply_is_lost_is_sent_again(acid, monkeypatch):
    acid.sql("CREATE TABLE t (a INT)")
    real, lost = Client.call, []

    def call(self, name, *values, **options):
        answer = real(self, name, *values, **options)
        if name == "commit_txn" and not lost:
            lost.append(name)
            raise MetastoreError("the reply is lost")
        return answer

    monkeypatch.setattr(Client, "call", call)
    acid.sql("INSERT INTO t VALUES (1)")
    assert lost and rows(acid, "SELECT * FROM t") == [(1,)]


# ── costs ────────────────────────────────────────────────────────────────────────────────────


# Whoever makes a table looks in each database for tables in its place. Other tests make databases.
OF_EACH_DATABASE = ("get_tables_by_type", "get_table_objects_by_name_req")
# The most calls of each statement, without those. One more is a fraction of a statement's time.
counts_calls = pytest.mark.skipif(
    hive_version.IS_42, reason="over Hive 4.2 a reader also registers each table that it reads"
)
MOST_CALLS = {
    "INSERT INTO t VALUES (2)": 10,
    "INSERT INTO t SELECT 3": 10,
    "INSERT INTO p VALUES (2, 1)": 14,
    "INSERT INTO p VALUES (2, 2)": 14,  # a new partition
    "INSERT INTO t SELECT a FROM p": 18,
    "INSERT OVERWRITE p PARTITION (p = 2) VALUES (7)": 16,
    "SELECT * FROM t": 4,
    "SELECT count(*) FROM t JOIN p ON t.a = p.a": 8,
    "UPDATE t SET a = 4 WHERE a = 1": 12,
    "UPDATE p SET a = 4 WHERE p = 1": 20,
    "DELETE FROM t WHERE a = 4": 13,
    "MERGE INTO t USING (SELECT 9 AS b) ON a = b WHEN MATCHED THEN UPDATE SET a = 8 "
    "WHEN NOT MATCHED THEN INSERT VALUES (9)": 13,
    "TRUNCATE TABLE t": 11,
    "CREATE TABLE u (a INT)": 12,
    "CREATE TABLE w AS SELECT * FROM p": 25,
    "ALTER TABLE u ADD COLUMNS (b INT)": 13,
    "ALTER TABLE u RENAME TO v": 10,  # they look for tables of AUTO CDC beside this one
    "ALTER TABLE p DROP PARTITION (p = 2)": 18,
    "ALTER TABLE p ADD PARTITION (p = 2)": 21,
    "DROP TABLE v": 10,
    "BEGIN": 2,
    "INSERT INTO t VALUES (5)": 10,
    "UPDATE t SET a = 6 WHERE a = 5": 17,
    "SELECT a FROM t": 7,
    "DELETE FROM t WHERE a = 0": 14,
    "COMMIT": 7,
}


@counts_calls
def test_each_kind_of_statement_makes_few_calls(acid, calls):
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("CREATE TABLE p (a INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("INSERT INTO p VALUES (1, 1)")
    rows(acid, "SELECT * FROM t")  # takes a lease
    found = {}
    for statement in MOST_CALLS:
        calls.clear()
        acid.sql(statement).collect()
        assert acid.in_transaction or LAST_ENTRY not in calls or statement == "COMMIT"
        found[statement] = sum(call not in OF_EACH_DATABASE for call in calls)
    assert {one: made for one, made in found.items() if made > MOST_CALLS[one]} == {}


LAST_ENTRY = "get_current_notificationEventId"


@counts_calls
def test_only_a_transaction_of_several_statements_reads_the_notification_log(acid, connect, calls):
    """Right before its snapshot, and then at each look at a table: if there is nothing new, that is
    one call, and one that asks whether the transaction is open."""
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("BEGIN")
    for _ in range(2):
        calls.clear()
        rows(acid, "SELECT * FROM t")
        assert calls.count(LAST_ENTRY) == 2
        assert len(calls) <= 8 and "get_next_notification" not in calls
    acid.sql("COMMIT")
