"""Two writers: which one waits, which one fails, and what the error says."""

import threading

import pytest
from kit import fill, rows, table
from over_hive import beside, needs

import acidsql
from acidsql.errors import (
    LockTimeoutError,
    TransientTxnError,
    TxnAbortedError,
    WriteConflictError,
)
from acidsql.storage.writing.save import TableWrite

OPTIMISTIC = {"hive.txn.xlock.write": "false"}
BY_ROW = {"acidsql.conflict.detection": "row"}
IMPATIENT = {"hive.lock.numretries": "1", "hive.lock.sleep.between.retries": "1ms"}


@pytest.fixture
def connect(spark, acid):
    """Opens more sessions on the same tables."""
    made = []

    def one(**settings):
        made.append(beside(acid, settings=settings))
        return made[-1]

    yield one
    for session in made:
        session.close()


def test_a_writer_who_waited_succeeds_on_a_fresh_snapshot(acid, connect):
    fill(acid, "t (id INT, n INT)", "1, 0")
    other = connect()
    acid.sql("BEGIN")
    acid.sql("UPDATE t SET n = n + 1")
    waiter = threading.Thread(target=lambda: other.sql("UPDATE t SET n = n + 10"))
    waiter.start()
    while not [lock for lock in rows(acid, "SHOW LOCKS") if lock[4] == "WAITING"]:
        pass
    acid.sql("COMMIT")
    waiter.join()
    assert table(acid) == [(1, 11)]


@pytest.mark.parametrize(
    "settings",
    [{}, OPTIMISTIC, pytest.param(BY_ROW, marks=needs("conflicts_by_row"))],
    ids=["locks", "optimistic", "rows"],
)
def test_an_older_snapshot_loses(acid, connect, settings):
    fill(acid, "t (id INT, n INT)", "1, 0")
    late, early = connect(**settings), connect(**settings)
    late.sql("BEGIN")
    assert table(late) == [(1, 0)]
    early.sql("UPDATE t SET n = 5 WHERE id = 1")
    with pytest.raises(WriteConflictError) as caught:
        late.sql("UPDATE t SET n = n + 1")
        late.sql("COMMIT")
    error = caught.value
    assert isinstance(error, TransientTxnError) and error.getSqlState() == "40001"
    assert "default.t" in str(error)
    if late.in_transaction:
        late.sql("ROLLBACK")
    late.sql("UPDATE t SET n = n + 1")
    assert table(acid) == [(1, 6)]


@needs("who won a conflict")
def test_who_loses_is_told_to_whom(acid, connect):
    fill(acid, "t (id INT, n INT)", "1, 0")
    late, early = connect(), connect()
    late.sql("BEGIN")
    assert table(late) == [(1, 0)]
    early.sql("UPDATE t SET n = 5 WHERE id = 1")
    with pytest.raises(WriteConflictError, match="UPDATE t SET n = 5") as caught:
        late.sql("UPDATE t SET n = n + 1")
    assert caught.value.getMessageParameters()["winnerTxnId"] == str(early.last.txn_id)
    late.sql("ROLLBACK")


@needs("writers side by side")
def test_optimistic_writers_do_not_wait_and_the_first_to_commit_wins(acid, connect):
    fill(acid, "t (id INT, n INT) PARTITIONED BY (p STRING)", "1, 0, 'x'", "2, 0, 'y'")
    one, two = connect(**OPTIMISTIC, **IMPATIENT), connect(**OPTIMISTIC, **IMPATIENT)
    one.sql("BEGIN")
    two.sql("BEGIN")
    one.sql("UPDATE t SET n = n + 1 WHERE id = 1")
    two.sql("UPDATE t SET n = n + 10 WHERE id = 1")
    one.sql("COMMIT")
    with pytest.raises(WriteConflictError, match="t/p=x"):
        two.sql("COMMIT")
    assert not two.in_transaction
    one.sql("BEGIN")
    two.sql("BEGIN")
    one.sql("UPDATE t SET n = n + 1 WHERE id = 1")
    two.sql("UPDATE t SET n = n + 10 WHERE id = 2")
    one.sql("COMMIT")
    two.sql("COMMIT")
    assert table(acid) == [(1, 2, "x"), (2, 10, "y")], "other partitions do not conflict"


@needs("conflicts_by_row")
def test_by_row_only_common_rows_conflict(acid, connect):
    fill(acid, "t (id INT, n INT)", "1, 0", "2, 0", "3, 0")
    one, two = connect(**BY_ROW, **IMPATIENT), connect(**BY_ROW, **IMPATIENT)
    for statement, conflicts in (
        ("UPDATE t SET n = n + 10 WHERE id = 2", False),
        ("DELETE FROM t WHERE id = 2", False),
        ("UPDATE t SET n = n + 10 WHERE id <= 3", True),
        ("DELETE FROM t WHERE id = 1", True),
    ):
        one.sql("BEGIN")
        two.sql("BEGIN")
        one.sql("UPDATE t SET n = n + 1 WHERE id = 1")
        two.sql(statement)
        one.sql("COMMIT")
        if conflicts:
            with pytest.raises(WriteConflictError):
                two.sql("COMMIT")
        else:
            two.sql("COMMIT")
    assert table(acid) == [(1, 4), (3, 0)]


@needs("conflicts_by_row")
def test_by_row_a_merge_that_inserts_still_conflicts_as_a_whole(acid, connect):
    fill(acid, "t (id INT, n INT)", "1, 0")
    one, two = connect(**BY_ROW), connect(**BY_ROW, **IMPATIENT)
    merge = """MERGE INTO t USING (VALUES (9, 9)) AS s(id, n) ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET n = -1 WHEN NOT MATCHED THEN INSERT *"""
    one.sql("BEGIN")
    one.sql(merge)
    with pytest.raises(LockTimeoutError):
        two.sql(merge)
    one.sql("COMMIT")
    two.sql(merge)
    assert table(acid) == [(1, 0), (9, -1)]


@needs("conflicts_by_row")
def test_by_row_of_two_merges_that_insert_side_by_side_one_fails_at_its_commit(acid, connect):
    fill(acid, "t (id INT, n INT)", "1, 0", "2, 0")
    one, two = connect(**BY_ROW, **OPTIMISTIC), connect(**BY_ROW, **OPTIMISTIC)
    # They update different rows, so that only the inserts can conflict.
    merge = """MERGE INTO t USING (VALUES ({}, 5), (9, 9)) AS s(id, n) ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT *"""
    one.sql("BEGIN")
    one.sql(merge.format(1))
    two.sql(merge.format(2))
    with pytest.raises(WriteConflictError):
        one.sql("COMMIT")
    assert table(acid) == [(1, 0), (2, 5), (9, 9)]


@needs("writers side by side")
def test_retries_run_the_statement_again_on_a_fresh_snapshot(acid, connect, monkeypatch):
    fill(acid, "t (id INT, n INT)", "1, 0")
    one, two = connect(**OPTIMISTIC), connect(**OPTIMISTIC)
    publish = TableWrite.publish
    interrupted = []

    def publish_late(self):
        if not interrupted:
            interrupted.append(True)
            two.sql("UPDATE t SET n = n + 10")
        return publish(self)

    monkeypatch.setattr(TableWrite, "publish", publish_late)
    one.sql("UPDATE t SET n = n + 1", retries=1)
    assert table(acid) == [(1, 11)]
    interrupted.clear()
    with pytest.raises(WriteConflictError):
        one.sql("UPDATE t SET n = n + 1")
    assert table(acid) == [(1, 21)]


@needs("overwrites beside inserts")
def test_an_insert_that_an_overwrite_would_hide_fails(acid, connect):
    fill(acid, "t (id INT)", "1")
    one, two = connect(), connect()
    one.sql("BEGIN")
    one.sql("INSERT INTO t VALUES (2)")
    two.sql("TRUNCATE TABLE t")
    with pytest.raises(WriteConflictError, match="default.t"):
        one.sql("COMMIT")
    assert table(acid) == []


@needs("overwrites beside inserts")
def test_an_overwrite_that_would_hide_an_insert_fails(acid, connect):
    fill(acid, "t (id INT)")
    one, two = connect(), connect()
    one.sql("BEGIN")
    one.sql("INSERT INTO t VALUES (2)")
    two.sql("BEGIN")
    two.sql("INSERT OVERWRITE TABLE t SELECT id + 100 FROM t")
    one.sql("COMMIT")
    with pytest.raises(WriteConflictError, match="INSERT INTO t"):
        two.sql("COMMIT")
    assert table(acid) == [(2,)]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE t SET id = 2",
        pytest.param(
            "INSERT OVERWRITE TABLE t PARTITION (p = 'y') VALUES (1)",
            marks=needs("overwrites beside inserts"),
        ),
    ],
    ids=["update", "overwrite"],
)
def test_readers_and_inserters_never_wait_for_writers_of_rows(acid, connect, change):
    fill(acid, "t (id INT) PARTITIONED BY (p STRING)", "1, 'x'")
    fill(acid, "copy (id INT)")
    other = connect(**IMPATIENT)
    acid.sql("BEGIN")
    acid.sql(change)
    assert table(other) == [(1, "x")]
    other.sql("INSERT INTO copy SELECT id FROM t")
    other.sql("INSERT INTO t VALUES (3, 'z')")
    acid.sql("ROLLBACK")


def test_writers_of_different_partitions_do_not_wait(acid, connect):
    fill(acid, "t (id INT) PARTITIONED BY (p STRING, q INT)", "1, 'x', 1", "2, 'y', 1")
    other = connect(**IMPATIENT)
    acid.sql("BEGIN")
    acid.sql("UPDATE t SET id = 10 WHERE p = 'x' AND id > 0")
    other.sql("UPDATE t SET id = 20 WHERE t.p IN ('y', 'z') AND q BETWEEN 1 AND 2")
    with pytest.raises(LockTimeoutError, match="UPDATE t SET id = 10"):
        other.sql("UPDATE t SET id = 20 WHERE upper(p) = 'Y'")
    with pytest.raises(LockTimeoutError):
        other.sql("DELETE FROM t WHERE q = 1")
    acid.sql("COMMIT")
    assert table(acid) == [(10, "x", 1), (20, "y", 1)]


def test_a_deadlock_is_found_and_one_side_goes_on(acid, connect):
    fill(acid, "t (id INT)", "1")
    fill(acid, "u (id INT)", "1")
    one, two = (connect(**{"acidsql.lock.poll.interval": "50ms"}) for _ in range(2))
    ready, outcome = threading.Barrier(2), {}

    def run(session, first, second):
        try:
            with session.transaction() as transaction:
                session.sql(f"UPDATE {first} SET id = {transaction.id}")
                ready.wait()
                session.sql(f"UPDATE {second} SET id = {transaction.id}")
            outcome[transaction.id] = "committed"
        except TxnAbortedError as error:
            outcome[transaction.id] = str(error)

    threads = [
        threading.Thread(target=run, args=given) for given in ((one, "t", "u"), (two, "u", "t"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner, loser = sorted(outcome)
    assert outcome[winner] == "committed"
    assert "deadlock" in outcome[loser] and f"{winner}" in outcome[loser]
    assert table(acid) == table(acid, "u") == [(winner,)]


def test_lock_table_is_held_by_the_transaction(acid, connect):
    fill(acid, "t (id INT) PARTITIONED BY (p STRING)", "1, 'x'")
    other = connect(**IMPATIENT)
    acid.sql("BEGIN")
    acid.sql("LOCK TABLE t PARTITION (p = 'x') EXCLUSIVE")
    assert table(other) == [(1, "x")]
    other.sql("INSERT INTO t PARTITION (p = 'y') VALUES (2)")
    with pytest.raises(LockTimeoutError):
        other.sql("INSERT INTO t PARTITION (p = 'x') VALUES (2)")
    (lock,) = acid.sql("SHOW LOCKS t PARTITION (p = 'x')").collect()
    assert (lock.lock_state, lock.lock_type, lock.partition) == ("ACQUIRED", "EXCLUSIVE", "p=x")
    assert lock.agent_info.startswith("LOCK TABLE")
    acid.sql("COMMIT")
    other.sql("INSERT INTO t PARTITION (p = 'x') VALUES (2)")


def test_show_locks_has_hives_columns(acid, connect):
    fill(acid, "t (id INT)", "1")
    acid.sql("BEGIN")
    acid.sql("UPDATE t SET id = 2")
    frame = connect().sql("SHOW LOCKS t EXTENDED")
    assert frame.columns == [
        "lockid", "database", "table", "partition", "lock_state", "blocked_by", "lock_type",
        "transaction_id", "last_heartbeat", "acquired_at", "user", "hostname", "agent_info",
    ]  # fmt: skip
    assert ("t", "EXCL_WRITE") in {(row.table, row.lock_type) for row in frame.collect()}
    assert acid.sql("SHOW LOCKS DATABASE other").count() == 0
    acid.sql("ROLLBACK")
    assert acid.sql("SHOW LOCKS").count() == 0


def test_set_changes_a_setting_of_this_session(acid, connect):
    acid.sql("SET hive.txn.timeout = 77s")
    assert rows(acid, "SET hive.txn.timeout") == [("hive.txn.timeout", "77000ms")]
    assert rows(connect(), "SET hive.txn.timeout") == [("hive.txn.timeout", "300000ms")]
    acid.sql("RESET hive.txn.timeout")
    assert rows(acid, "SET hive.txn.timeout") == [("hive.txn.timeout", "300000ms")]
    with pytest.raises(acidsql.errors.SettingError, match="duration"):
        acid.sql("SET hive.txn.timeout = soon")
