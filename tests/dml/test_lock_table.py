"""LOCK and UNLOCK outside of a transaction: the session holds the lock."""

from dataclasses import replace

import pytest
from kit import fill, rows, table
from over_hive import beside, needs

from acidsql.errors import AnalysisError, LockTimeoutError, TxnError, UnsupportedError

IMPATIENT = {"hive.lock.numretries": "1", "hive.lock.sleep.between.retries": "1ms"}


@pytest.fixture
def other(acid):
    session = beside(acid, settings=IMPATIENT)
    yield session
    session.close()


def held(session):
    found = session.sql("SHOW LOCKS").collect()
    return sorted(((row.table, row.partition, row.lock_type) for row in found), key=str)


def condition(session, text):
    with pytest.raises(TxnError) as caught:
        session.sql(text)
    return caught.value.condition


@needs("keeps_session_locks")
def test_a_session_goes_on_under_its_lock_and_others_wait_until_it_unlocks(acid, other):
    fill(acid, "t (id INT, n INT)", "1, 0")
    acid.sql("LOCK TABLE `T` EXCLUSIVE")
    with pytest.raises(LockTimeoutError, match="LOCK TABLE `T` EXCLUSIVE"):
        other.sql("INSERT INTO t VALUES (9, 9)")
    assert table(other) == [(1, 0)]  # a reader waits for nobody
    acid.sql("UPDATE t SET n = n + 1")
    acid.sql("BEGIN")
    acid.sql("LOCK TABLE t EXCLUSIVE")
    acid.sql("INSERT INTO t VALUES (2, 0)")
    assert condition(acid, "UNLOCK TABLE t") == "ACTIVE_SQL_TRANSACTION"
    acid.sql("ROLLBACK")
    acid.sql("ALTER TABLE t ADD COLUMNS (s STRING)")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    (lock,) = other.sql("SHOW LOCKS t").collect()
    assert (lock.lock_state, lock.lock_type) == ("ACQUIRED", "EXCLUSIVE")
    assert lock.agent_info == "LOCK TABLE `T` EXCLUSIVE"
    assert lock.transaction_id in {row.txnid for row in other.sql("SHOW TRANSACTIONS").collect()}
    acid.sql("UNLOCK TABLE t")
    other.sql("INSERT INTO t VALUES (9, 9, 'x')")
    assert condition(acid, "UNLOCK TABLE t") == "NO_SUCH_LOCK"
    assert table(acid) == [(1, 1, None), (9, 9, "x")]


@needs("keeps_session_locks")
def test_what_is_unlocked_is_what_was_named_and_what_is_in_it(acid, other):
    acid.sql(
        "CREATE TABLE t (id INT) PARTITIONED BY (p INT) TBLPROPERTIES ('transactional'='true')"
    )
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    for text in (
        "LOCK TABLE t SHARED",
        "LOCK TABLE t PARTITION (p = '01') EXCLUSIVE",
        "LOCK TABLE t PARTITION (p = 2) EXCLUSIVE",
        "LOCK DATABASE default SHARED",
    ):
        acid.sql(text)
    acid.sql("UNLOCK TABLE t PARTITION (p = 1)")
    assert [lock[:2] for lock in held(other) if lock[1]] == [("t", "p=2")]
    assert condition(acid, "UNLOCK TABLE t PARTITION (p = 1)") == "NO_SUCH_LOCK"
    assert condition(other, "UNLOCK TABLE t") == "NO_SUCH_LOCK"
    with pytest.raises(AnalysisError, match="nope"):
        acid.sql("UNLOCK TABLE t PARTITION (nope = 1)")
    acid.sql("DROP TABLE t")
    acid.sql("UNLOCK TABLE t")
    assert held(other) == [(None, None, "SHARED_READ")]
    acid.sql("UNLOCK SCHEMA default")
    assert held(other) == []


@needs("keeps_session_locks")
def test_a_session_that_compacts_by_itself_does_not_wait_for_itself_and_its_end_unlocks(acid):
    fill(acid, "t (id INT)", "1")
    settings = {"hive.compactor.delta.num.threshold": "1", **IMPATIENT}
    with beside(acid, compactor="inline", settings=settings) as session:
        session.sql("LOCK TABLE t EXCLUSIVE")
        session.sql("INSERT INTO t VALUES (2)")
        session.sql("INSERT INTO t VALUES (3)")
        assert {row.state for row in acid.sql("SHOW COMPACTIONS").collect()} == {"succeeded"}
        with pytest.raises(TxnError), session.snapshot():
            session.sql("LOCK TABLE t SHARED")
    acid.sql("DELETE FROM t WHERE id = 1")
    assert table(acid) == [(2,), (3,)]


@needs("keeps_session_locks")
def test_a_statement_fails_if_somebody_has_ended_the_locks_that_it_relies_on(acid, other):
    fill(acid, "t (id INT)", "1")
    acid.sql("LOCK TABLE t SHARED")
    (lock,) = acid.sql("SHOW LOCKS").collect()
    other.sql(f"ABORT TRANSACTIONS {lock.transaction_id}")
    assert condition(acid, "INSERT INTO t SELECT id + 1 FROM t") == "SESSION_LOCKS_LOST"
    assert rows(acid, "SELECT * FROM t") == [(1,)]
    assert condition(acid, "UNLOCK TABLE t") == "NO_SUCH_LOCK"


def test_where_a_session_would_wait_for_itself_lock_is_refused(acid, monkeypatch):
    fill(acid, "t (id INT)", "1")
    as_over_hive = replace(acid.metastore.abilities, keeps_session_locks=False)
    monkeypatch.setattr(type(acid.metastore), "abilities", as_over_hive)
    for name in ("TABLE t", "DATABASE default"):
        for text in (f"LOCK {name} SHARED", f"UNLOCK {name}"):
            with pytest.raises(UnsupportedError, match="say BEGIN first") as caught:
                acid.sql(text)
            assert caught.value.condition == "LOCK_REQUEST_UNSUPPORTED"
    assert held(acid) == []
    acid.sql("BEGIN")
    acid.sql("LOCK TABLE t SHARED")
    assert held(acid) == [("t", None, "SHARED_READ")]
    acid.sql("ROLLBACK")


@needs("keeps_session_locks")
def test_a_session_does_not_rename_a_table_away_from_its_lock(acid):
    fill(acid, "t (id INT)", "1")
    acid.sql("LOCK TABLE t SHARED")
    assert condition(acid, "ALTER TABLE t RENAME TO u") == "SESSION_HOLDS_LOCK"
    acid.sql("UNLOCK TABLE t")
    acid.sql("ALTER TABLE t RENAME TO u")
    assert table(acid, "u") == [(1,)]
