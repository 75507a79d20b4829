"""Compactions: Hive's worker over acidsql's directories, and acidsql's worker over Hive's."""

from __future__ import annotations

import pytest
from both import LONG

from acidsql.compaction.worker import Worker, WorkerResources
from acidsql.errors import WriteError
from acidsql.metastore.compaction_queue import CompactionState
from acidsql.storage.folding import compact as compacting
from acidsql.storage.folding.compact import CompactionRun
from acidsql.txn import TxnManager

IN_HIVE = "STORED AS ORC TBLPROPERTIES ('transactional'='true'"
INSERT_ONLY = ", 'transactional_properties'='insert_only'"
KINDS = {
    "plain": ("CREATE TABLE t (id INT, v INT)", ""),
    "bucketed": ("CREATE TABLE t (id INT, v INT) CLUSTERED BY (id) INTO 2 BUCKETS", ""),
    "insert-only": ("CREATE TABLE t (id INT, v INT)", INSERT_ONLY),
}


def directories(both, place="t"):
    found = (both.server.warehouse / f"{both.database}.db" / place).iterdir()
    return sorted(one.name for one in found if one.name[0] not in "._")


def entries(both, table="t"):
    found = both.acid.sql("SHOW COMPACTIONS").collect()
    return [one for one in found if (one.dbname, one.tabname) == (both.database, table)]


def changed_by_both(both, kind="plain"):
    """A table with rows, and with changes of both."""
    create, more = KINDS[kind]
    both.hive.sql(f"{create} {IN_HIVE}{more})")
    both.hive.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    both.acid.sql("INSERT INTO t VALUES (4, 4), (5, 5)")
    if not more:
        both.hive.sql("UPDATE t SET v = 20 WHERE id = 2")
        both.acid.sql("DELETE FROM t WHERE id IN (1, 4)")


def seen(both, kind="plain"):
    return both.rows("t") if kind == "insert-only" else both.rows_with_ids("t")


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("plain", "minor"),
        ("insert-only", "major"),
        pytest.param("plain", "major", marks=LONG),
        pytest.param("bucketed", "minor", marks=LONG),
        pytest.param("bucketed", "major", marks=LONG),
        pytest.param("insert-only", "minor", marks=LONG),
    ],
)
def test_acidsqls_worker_compacts_what_hive_wrote(both, kind, how):
    changed_by_both(both, kind)
    before = seen(both, kind)
    both.acid.sql(f"ALTER TABLE t COMPACT '{how}' AND WAIT")
    (entry,) = entries(both)
    assert entry.state == "ready for cleaning"
    assert any(f"_v{int(entry.txnid):07d}" in name for name in directories(both))
    assert seen(both, kind) == before
    both.hive.sql("INSERT INTO t VALUES (9, 9)")
    assert len(both.rows("t")) == len(before) + 1


@LONG
def test_hives_cleaner_deletes_what_acidsqls_worker_replaced(both):
    changed_by_both(both)
    both.acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    before = both.rows_with_ids("t")
    both.acid.close()  # its lease would hold the cleaner back
    both.acid = both.new_acid()
    both.acid.sql("INSERT INTO t VALUES (7, 7)")
    for _ in range(3):
        both.hive.sql("!cleaner")
    assert [one.state for one in entries(both)] == ["succeeded"]
    names = directories(both)
    assert len(names) == 2 and names[0].startswith("base_"), names
    assert len(both.rows_with_ids("t")) == len(before) + 1


@LONG
def test_hives_worker_compacts_while_a_transaction_of_acidsql_is_open(both):
    changed_by_both(both)
    other = both.new_acid()
    other.sql("BEGIN")
    other.sql("UPDATE t SET v = v + 1 WHERE id = 3")
    before = both.rows_with_ids("t")
    both.compact_by_hive("t", "major")
    assert both.rows_with_ids("t") == before
    other.sql("COMMIT")
    assert (3, 4) in both.rows("t")


def test_a_reader_keeps_its_snapshot_over_a_compaction_of_hive_and_its_cleaner(both):
    changed_by_both(both)
    reader = both.new_acid()
    reader.sql("BEGIN")
    before = sorted(map(tuple, reader.sql("SELECT * FROM t").collect()))
    both.acid.close()  # its lease would hold the cleaner back
    both.acid = both.new_acid()
    changed = both.acid.sql("UPDATE t SET v = 0 RETURNING old.v")
    both.compact_by_hive("t", "major")
    both.hive.sql("!cleaner")
    assert sorted(map(tuple, reader.sql("SELECT * FROM t").collect())) == before
    reader.sql("COMMIT")
    reader.close()
    both.hive.sql("INSERT INTO t VALUES (9, 9)")
    for _ in range(3):
        both.hive.sql("!cleaner")
    assert sorted(map(tuple, changed.collect())) == sorted((v,) for _, v in before)


@pytest.mark.parametrize("kind", ["plain", pytest.param("insert-only", marks=LONG)])
def test_hives_cleaner_deletes_what_a_dead_session_published(both, kind):
    """The server's records tell it where to look, and then it forgets them (T1)."""
    changed_by_both(both, kind)
    both.acid.sql("CREATE TABLE p (id INT) PARTITIONED BY (p INT)")
    before, known = both.rows("t"), directories(both)
    dying = both.new_acid()
    dying.sql("BEGIN")
    for statement in ("INSERT INTO t VALUES (7, 7)", "INSERT INTO p VALUES (1, 1), (2, 2)"):
        dying.sql(statement)
    if kind == "plain":
        dying.sql("DELETE FROM t")
    txn = dying._runner.transactions.current.id
    both.acid.sql(f"ABORT TRANSACTIONS {txn}")  # as the server does after a time-out
    assert directories(both) != known and directories(both, "p/p=1")
    both.server.query(f"UPDATE TXNS SET TXN_STARTED = 0 WHERE TXN_ID = {txn}")  # Hive waits 12 h
    both.hive.sql("!cleaner")
    recorded = f"SELECT TC_TABLE, TC_PARTITION FROM TXN_COMPONENTS WHERE TC_TXNID = {txn}"
    assert both.server.query(recorded) == []
    assert directories(both) == known
    assert directories(both, "p/p=1") == directories(both, "p/p=2") == []
    assert both.rows("t") == before and both.rows("p") == []


def worker_of(session):
    store = session.metastore
    txns = TxnManager(store, session._runner.settings, user="u", host="h")
    return Worker(session.spark, store, txns, "h-1", WorkerResources("tag")), txns


@pytest.mark.parametrize("how", ["minor", pytest.param("major", marks=LONG)])
def test_a_worker_that_dies_before_its_commit_changes_no_row(both, monkeypatch, how):
    """Its entry is queued again, and done by the next."""
    changed_by_both(both)
    before = both.rows_with_ids("t")
    both.hive.sql(f"ALTER TABLE t COMPACT '{how}'")
    dying = both.new_acid()
    worker, txns = worker_of(dying)
    real = CompactionRun.publish

    class Died(BaseException):
        pass

    def publish(self, still_ours):
        real(self, still_ours)
        raise Died

    monkeypatch.setattr(CompactionRun, "publish", publish)
    for name in ("mark_failed", "queue_again", "abort_txn"):
        monkeypatch.setattr(dying.metastore, name, lambda *_, **__: None)
    with pytest.raises(Died):
        worker.run_next()
    monkeypatch.undo()
    txns.close()
    assert [one.state for one in entries(both)] == ["working"]
    assert both.rows_with_ids("t") == before  # published, not committed
    (entry,) = entries(both)
    both.acid.sql(f"ABORT TRANSACTIONS {entry.txnid}")
    assert both.rows_with_ids("t") == before
    both.acid.sql(f"ALTER TABLE t COMPACT '{how}' AND WAIT")
    assert CompactionState.READY_FOR_CLEANING.shown in [one.state for one in entries(both)]
    assert both.rows_with_ids("t") == before


def test_an_entry_without_work_is_refused_and_one_that_fails_says_why(both, monkeypatch):
    both.acid.sql("CREATE TABLE t (id INT, v INT)")
    both.acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert [one.state for one in entries(both)] == ["refused"]
    both.acid.sql("INSERT INTO t VALUES (1, 1)")
    both.acid.sql("INSERT INTO t VALUES (2, 2)")

    def full(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(compacting, "fold_bucket", full)
    with pytest.raises(WriteError, match="disk"):
        both.acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    monkeypatch.undo()
    assert [one.state for one in entries(both)] == ["failed", "refused"]
    assert "the disk is full" in entries(both)[0].errormessage
    assert len(both.rows_with_ids("t")) == 2


@LONG
def test_a_session_compacts_what_it_wrote_only_if_it_is_told_to(both):
    for settings, expected in [({}, 0), ({"acidsql.hive.compactor": "session"}, 1)]:
        both.acid.sql("DROP TABLE IF EXISTS t")
        session = both.new_acid(**settings, **{"hive.compactor.delta.num.threshold": "2"})
        session.sql("CREATE TABLE t (id INT, v INT)")
        for number in range(4):
            session.sql(f"INSERT INTO t VALUES ({number}, 0)")
        session._runner._background._do_one_round()
        assert len(entries(both)) >= expected and bool(entries(both)) == bool(expected)
        assert len(both.rows_with_ids("t")) == 4
