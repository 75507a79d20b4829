"""BEGIN … COMMIT: several statements, one transaction."""

import threading

import pytest
from kit import calls_of, directories, fill, ordered, rows, table
from over_hive import beside, needs, on_a_disk

import acidsql
from acidsql.errors import (
    AcidSqlError,
    SnapshotTooOldError,
    TxnAbortedError,
    TxnError,
    UnsupportedError,
    WriteError,
)
from acidsql.storage.files.filesystem import FileSystem, wrap_filesystems


@pytest.fixture
def other(spark, acid):
    """A second session on the same tables."""
    with beside(acid) as session:
        yield session


def test_all_statements_of_a_transaction_happen_with_its_commit(acid, other):
    fill(acid, "t (id INT, v STRING)", "1, 'a'")
    fill(acid, "u (id INT) PARTITIONED BY (p STRING)")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (2, 'b'), (3, 'c')")
    acid.sql("UPDATE t SET v = 'new' WHERE id <= 2")
    acid.sql("DELETE FROM t WHERE id = 3")
    acid.sql("INSERT INTO u PARTITION (p = 'x') SELECT id FROM t")
    acid.sql("MERGE INTO u USING t ON u.id = t.id + 1 WHEN MATCHED THEN UPDATE SET id = 20")
    mine = table(acid), table(acid, "u")
    before = table(other), table(other, "u")
    acid.sql("COMMIT")
    assert mine == ([(1, "new"), (2, "new")], [(1, "x"), (20, "x")])
    assert before == ([(1, "a")], [])
    assert (table(other), table(other, "u")) == mine
    assert rows(other, "SHOW PARTITIONS u") == [("p=x",)]
    assert acid.last.txn_id is not None and len(acid.last.counts) == 5


def test_a_rolled_back_transaction_leaves_nothing(acid, other):
    fill(acid, "t (id INT, v STRING)", "1, 'a'")
    before = directories(acid)
    acid.sql("START TRANSACTION")
    acid.sql("INSERT INTO t VALUES (2, 'b')")
    acid.sql("UPDATE t SET v = 'new'")
    acid.sql("ROLLBACK WORK")
    assert table(acid) == table(other) == [(1, "a")]
    assert directories(acid) == before
    acid.sql("INSERT INTO t VALUES (3, 'c')")
    assert table(other) == [(1, "a"), (3, "c")]


def test_the_first_statement_takes_the_snapshot_and_not_begin(acid, other):
    fill(acid, "t (id INT)", "1")
    fill(acid, "u (id INT)", "1")
    acid.sql("BEGIN")
    other.sql("INSERT INTO t VALUES (2)")
    assert table(acid) == [(1,), (2,)]
    other.sql("INSERT INTO u VALUES (2)")
    assert table(acid, "u") == [(1,)], "the snapshot is of all tables, and of the first statement"
    acid.sql("COMMIT")
    assert table(acid, "u") == [(1,), (2,)]


def test_a_row_that_is_inserted_updated_and_deleted_comes_out_right(acid, other):
    fill(acid, "t (id INT, v STRING)", "0, 'old'")
    with acid.transaction() as transaction:
        acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        acid.sql("UPDATE t SET v = concat(v, '!') WHERE id IN (0, 1, 2)")
        acid.sql("UPDATE t SET v = concat(v, '?') WHERE id IN (0, 1)")
        acid.sql("DELETE FROM t WHERE id = 2")
        acid.sql("INSERT INTO t VALUES (2, 'again')")
        expected = [(0, "old!?"), (1, "a!?"), (2, "again"), (3, "c")]
        assert table(acid) == expected
        assert transaction.id > 0
    assert table(other) == expected
    acid.sql("DELETE FROM t WHERE id IN (0, 2)")
    assert table(other) == [(1, "a!?"), (3, "c")]


def test_a_failed_statement_is_undone_and_the_transaction_goes_on(acid, other):
    fill(acid, "t (id INT NOT NULL, v STRING)", "1, 'a'")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (2, 'b')")
    with pytest.raises(acidsql.errors.ConstraintError):
        acid.sql("UPDATE t SET id = NULL WHERE id = 1")
    with pytest.raises(acidsql.errors.SqlError):
        acid.sql("UPDATE t SET nothing = 1")
    acid.sql("UPDATE t SET v = 'z' WHERE id = 2")
    acid.sql("COMMIT")
    assert table(other) == [(1, "a"), (2, "z")]


@on_a_disk
def test_rollback_to_a_savepoint_undoes_what_came_after_it(acid, other):
    fill(acid, "t (id INT)", "1")
    acid.sql("BEGIN TRANSACTION")
    acid.sql("INSERT INTO t VALUES (2)")
    acid.sql("SAVEPOINT a")
    acid.sql("DELETE FROM t WHERE id = 1")
    acid.sql("SAVEPOINT b")
    acid.sql("INSERT INTO t VALUES (3)")
    acid.sql("ROLLBACK TO SAVEPOINT B")
    assert table(acid) == [(2,)]
    acid.sql("INSERT INTO t VALUES (4)")
    acid.sql("ROLLBACK TO a")
    assert table(acid) == [(1,), (2,)]
    with pytest.raises(TxnError, match="no savepoint 'b'"):
        acid.sql("ROLLBACK TO b")
    acid.sql("INSERT INTO t VALUES (5)")
    acid.sql("COMMIT")
    assert table(other) == [(1,), (2,), (5,)]
    names = directories(acid)
    assert [n for n in names if "_0000002_0000002" in n] == [
        "delta_0000002_0000002_0000", "delta_0000002_0000002_0005",
    ], "statement ids are not used again"  # fmt: skip


def test_what_was_undone_locks_but_does_not_conflict(acid, other):
    fill(acid, "t (id INT) PARTITIONED BY (p STRING)", "1, 'x'")
    with acid.transaction() as transaction:
        transaction.savepoint("before")
        acid.sql("UPDATE t SET id = 2 WHERE p = 'x'")
        assert {lock.lock_type for lock in rows_of_locks(other)} == {"SHARED_READ", "EXCL_WRITE"}
        transaction.rollback("before")
        assert {lock.lock_type for lock in rows_of_locks(other)} == {"SHARED_READ", "EXCL_WRITE"}
    with acid.transaction():
        table(acid)
        acid.sql("INSERT INTO t VALUES (5, 'y')")
        other.sql("UPDATE t SET id = 3 WHERE p = 'x'")
    assert table(acid) == [(3, "x"), (5, "y")]


def rows_of_locks(session):
    return session.sql("SHOW LOCKS").collect()


def test_a_block_commits_at_its_end_and_rolls_back_at_an_exception(acid, other):
    fill(acid, "t (id INT)", "1")
    with acid.transaction():
        acid.sql("INSERT INTO t VALUES (2)")
        assert table(other) == [(1,)]
    with pytest.raises(ZeroDivisionError), acid.transaction():
        acid.sql("DELETE FROM t")
        raise ZeroDivisionError
    with acid.transaction() as transaction:
        acid.sql("DELETE FROM t")
        transaction.rollback()
        with pytest.raises(TxnAbortedError):
            acid.sql("INSERT INTO t VALUES (3)")
    assert table(acid) == table(other) == [(1,), (2,)]
    assert not acid.in_transaction


def test_a_transaction_that_others_abort_reads_nothing_newer_than_its_snapshot(acid, other):
    """The store may have forgotten then what the snapshot does not see."""
    fill(acid, "t (id INT)", "1")
    fill(acid, "u (id INT)", "1")
    acid.sql("BEGIN")
    assert table(acid) == [(1,)]
    for row in other.sql("SHOW TRANSACTIONS").collect():
        if row.state == "OPEN":
            other.sql(f"ABORT TRANSACTIONS {row.txnid}")
    for name in "tu":
        other.sql(f"INSERT INTO {name} VALUES (2)")
    other.metastore.house_keep(timeout_ms=10**9, interval_ms=0, retention_ms=10**9)
    for name in "tu":
        with pytest.raises(TxnError):  # a Hive Metastore may have forgotten how it ended
            table(acid, name)
    acid.sql("ROLLBACK")
    assert table(acid) == table(acid, "u") == [(1,), (2,)]


def test_the_result_of_abort_transactions_says_of_each_what_became_of_it(acid, other):
    fill(acid, "t (id INT)", "1")
    committed = acid.last.txn_id
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (2)")
    mine = acid.last.txn_id
    found = other.sql(f"ABORT TRANSACTIONS {mine} {committed} 987654 {mine}").collect()
    acid.sql("ROLLBACK")
    assert [(row.txnid, row.status) for row in found] == [
        (str(mine), "Success"), (str(committed), "Error"), ("987654", "Error"),
    ]  # fmt: skip
    assert found[0].message == f"Transaction {mine} is aborted."
    assert all(row.txnid in row.message for row in found)
    assert found[2].message in str(other.last) and found[0].message not in str(other.last)


def test_set_shows_the_setting_as_it_is_then_as_sparks_does(acid):
    row = acid.sql("SET hive.txn.timeout = 2min").first()
    assert row.asDict() == {"key": "hive.txn.timeout", "value": "120000ms"}
    assert acid.sql("SET hive.txn.timeout").first() == row


@needs("reasons of aborts")
def test_a_block_whose_transaction_others_abort_fails(acid, other):
    fill(acid, "t (id INT)", "1")
    with pytest.raises(TxnAbortedError, match="ABORT TRANSACTIONS"), acid.transaction() as mine:
        acid.sql("INSERT INTO t VALUES (2)")
        other.sql(f"ABORT TRANSACTIONS {mine.id}")
    assert table(acid) == [(1,)]
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (2)")
    for row in other.sql("SHOW TRANSACTIONS").collect():
        if row.state == "OPEN":
            other.sql(f"ABORT TRANSACTIONS {row.txnid}")
    for statement in ("INSERT INTO t VALUES (3)", "SELECT * FROM t"):
        with pytest.raises(TxnAbortedError):
            acid.sql(statement)
    acid.sql("ROLLBACK")
    assert table(acid) == table(other) == [(1,)]


@pytest.mark.parametrize(
    "statement, name",
    [
        ("CREATE TABLE v (a INT)", "CREATE TABLE"),
        ("CREATE TABLE v AS SELECT * FROM t", "CREATE TABLE"),
        ("DROP TABLE t", "DROP TABLE"),
        ("ALTER TABLE t RENAME TO v", "RENAME TABLE"),
        ("ALTER TABLE t ADD COLUMNS (c INT)", "ADD COLUMNS"),
        ("ALTER TABLE t DROP PARTITION (p = 'x')", "DROP PARTITIONS"),
        ("CREATE DATABASE d", "CREATE DATABASE"),
        ("CREATE TABLE s USING parquet AS SELECT 1 AS a", "CREATE TABLE"),
    ],
)
def test_ddl_inside_is_refused_by_name(acid, statement, name):
    fill(acid, "t (id INT) PARTITIONED BY (p STRING)", "1, 'x'")
    with acid.transaction():
        acid.sql("INSERT INTO t VALUES (2, 'x')")
        with pytest.raises(UnsupportedError, match=f"{name} cannot be part of a transaction"):
            acid.sql(statement)
    assert table(acid) == [(1, "x"), (2, "x")]


def test_transaction_statements_out_of_place_are_refused(acid):
    fill(acid, "t (id INT)")
    for statement in ("COMMIT", "ROLLBACK", "SAVEPOINT a", "ROLLBACK TO a", "RELEASE SAVEPOINT a"):
        with pytest.raises(TxnError, match="no open transaction") as caught:
            acid.sql(statement)
        assert caught.value.getSqlState() == "25P01"
    acid.sql("BEGIN")
    for again in ("BEGIN", "START TRANSACTION"):
        with pytest.raises(TxnError, match="is open") as caught:
            acid.sql(again)
        assert caught.value.getSqlState() == "25001"
    with pytest.raises(TxnError), acid.transaction():
        pass
    acid.sql("COMMIT")
    with acid.transaction():
        for statement in ("COMMIT", "ROLLBACK"):
            with pytest.raises(TxnError, match="the block's end commits"):
                acid.sql(statement)


def test_another_thread_may_not_join(acid):
    fill(acid, "t (id INT)", "1")
    errors = []

    def intrude():
        for act in (lambda: acid.sql("DELETE FROM t"), lambda: acid.table("t")):
            try:
                act()
            except TxnError as error:
                errors.append(error.condition)

    with acid.transaction():
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
    assert errors == ["TRANSACTION_OF_ANOTHER_THREAD"] * 2
    assert table(acid) == [(1,)]


def test_read_only_transactions_only_read(acid, other):
    fill(acid, "t (id INT)", "1")
    acid.sql("START TRANSACTION READ ONLY")
    assert table(acid) == [(1,)]
    other.sql("INSERT INTO t VALUES (2)")
    for statement in ("DELETE FROM t", "DROP TABLE t", "TRUNCATE TABLE t"):
        with pytest.raises(TxnError) as caught:
            acid.sql(statement)
        assert caught.value.getSqlState() == "25006"
    assert table(acid) == [(1,)]
    acid.sql("COMMIT")
    assert table(acid) == [(1,), (2,)]


@pytest.mark.parametrize("overwrite", ["INSERT OVERWRITE TABLE t VALUES (7)", "TRUNCATE TABLE t"])
def test_a_change_after_an_overwrite_is_refused_and_one_before_it_works(acid, other, overwrite):
    fill(acid, "t (id INT)", "1", "2")
    left = [(7,)] if "INSERT" in overwrite else []
    with acid.transaction():
        acid.sql("INSERT INTO t VALUES (3)")
        acid.sql("DELETE FROM t WHERE id = 1")
        acid.sql(overwrite)
        assert table(acid) == left
        for change in ("INSERT INTO t VALUES (4)", "DELETE FROM t WHERE id > 0", overwrite):
            if change.startswith("DELETE") and not left:
                continue  # it finds nothing to delete
            with pytest.raises(UnsupportedError, match="has overwritten default.t"):
                acid.sql(change)
        assert table(acid) == left
    assert table(other) == left
    acid.sql("INSERT INTO t VALUES (5)")
    assert table(other) == [(5,), *left]


def test_only_the_overwritten_partitions_are_closed_to_changes(acid, other):
    fill(acid, "t (id INT) PARTITIONED BY (p STRING)", "1, 'x'", "2, 'y'")
    with acid.transaction():
        acid.sql("INSERT OVERWRITE TABLE t PARTITION (p = 'x') VALUES (10)")
        acid.sql("UPDATE t SET id = id + 1 WHERE p = 'y'")
        for change in (
            "INSERT INTO t VALUES (3, 'x')",
            "UPDATE t SET id = 0",
            "TRUNCATE TABLE t PARTITION (p = 'x')",
        ):
            with pytest.raises(UnsupportedError, match="t/p=x"):
                acid.sql(change)
    assert table(other) == [(10, "x"), (3, "y")]


INSERT_ONLY = "TBLPROPERTIES ('transactional_properties' = 'insert_only')"


@pytest.mark.parametrize("layout", ["", "PARTITIONED BY (p STRING)", INSERT_ONLY])
def test_no_statement_gets_the_directory_of_an_undone_one_that_a_frame_may_read(acid, layout):
    """Each statement has directories of its own, but the overwrites of a transaction share one."""
    into = "t PARTITION (p = 'x')" if "PARTITIONED" in layout else "t"
    fill(acid, f"t (id INT) {layout}")
    acid.sql(f"INSERT INTO {into} VALUES (1)")
    acid.sql("BEGIN")
    acid.sql("SAVEPOINT s")
    for again in ("INSERT INTO {} VALUES ({})", "INSERT OVERWRITE {} VALUES ({})"):
        acid.sql(again.format(into, 2))
        acid.sql("ROLLBACK TO s")
        acid.sql(again.format(into, 3))  # nobody has read the undone one
        lazy = acid.sql("SELECT id FROM t")
        expected = [(3,)] if "OVERWRITE" in again else [(1,), (3,)]
        assert ordered(lazy.collect()) == expected
        acid.sql("ROLLBACK TO s")
        if "OVERWRITE" in again:
            for statement in (again.format(into, 4), f"TRUNCATE TABLE {into}"):
                with pytest.raises(UnsupportedError, match="DataFrame that was made since"):
                    acid.sql(statement)
        acid.sql(f"INSERT INTO {into} VALUES (5)")
        assert rows(acid, "SELECT id FROM t") == [(1,), (5,)]
        with pytest.raises(SnapshotTooOldError):
            lazy.collect()
        acid.sql("ROLLBACK TO s")
    acid.sql(f"INSERT INTO {into} VALUES (6)")
    acid.sql("COMMIT")
    assert rows(acid, "SELECT id FROM t") == [(1,), (6,)]


def test_an_undone_overwrite_that_returned_its_rows_leaves_its_directory_to_them(acid):
    fill(acid, "t (id INT)", "1")
    acid.sql("BEGIN")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        acid.sql("INSERT OVERWRITE t SELECT 1 DIV (id - 1) FROM t")
    acid.sql("SAVEPOINT s")
    returned = acid.sql("INSERT OVERWRITE t VALUES (2) RETURNING id")
    acid.sql("ROLLBACK TO s")
    with pytest.raises(UnsupportedError, match="DataFrame that was made since"):
        acid.sql("INSERT OVERWRITE t VALUES (3)")
    with pytest.raises(SnapshotTooOldError):
        returned.collect()
    acid.sql("ROLLBACK")
    acid.sql("INSERT OVERWRITE t VALUES (4)")
    assert table(acid) == [(4,)]


class _Undeletable(FileSystem):
    """A file system on which published directories cannot be deleted while ``broken``."""

    broken = False

    def __init__(self, inner):
        self._inner = inner

    def __getattribute__(self, name):
        own = ("_inner", "delete_directory", "__class__", "broken")
        return object.__getattribute__(self, name) if name in own else getattr(self._inner, name)

    def delete_directory(self, path):
        if type(self).broken and "/_tmp" not in path:
            raise PermissionError(13, "no", path)
        self._inner.delete_directory(path)


def test_what_cannot_be_undone_must_be_rolled_back(acid, other):
    fill(acid, "t (id INT)", "1")
    with wrap_filesystems(_Undeletable):
        acid.sql("BEGIN")
        acid.sql("SAVEPOINT s")
        acid.sql("INSERT INTO t VALUES (2)")
        _Undeletable.broken = True
        try:
            with pytest.raises(WriteError):
                acid.sql("ROLLBACK TO s")
        finally:
            _Undeletable.broken = False
        for statement in ("INSERT INTO t VALUES (3)", "COMMIT"):
            with pytest.raises(TxnError, match="can only be rolled back") as caught:
                acid.sql(statement)
            assert caught.value.getSqlState() == "25P02"
        if acid.in_transaction:
            acid.sql("ROLLBACK")
    assert table(acid) == table(other) == [(1,)]


def test_a_dataframe_of_a_rolled_back_transaction_fails_by_name(acid):
    fill(acid, "t (id INT)", "1")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (2)")
    lazy, derived = acid.sql("SELECT * FROM t"), acid.table("t").where("id > 0")
    acid.sql("ROLLBACK")
    for frame in (lazy, derived):
        for act in (frame.collect, frame.toPandas, frame.count, frame.show):
            with pytest.raises(SnapshotTooOldError, match="rolled back"):
                act()


@on_a_disk
def test_closing_a_session_rolls_back(spark, acid):
    fill(acid, "t (id INT)", "1")
    with beside(acid) as session:
        session.sql("BEGIN")
        session.sql("DELETE FROM t")
    assert table(acid) == [(1,)]
    assert acid.sql("SHOW LOCKS").count() == 0


WRONG = (
    "DELETE FROM t WHERE nope = 1",
    "DELETE FROM t WHERE id",
    "DELETE FROM t WHERE count(*) > 1",
    "DELETE FROM t WHERE id IN (SELECT nope FROM t)",
    "UPDATE t SET v = 'x' WHERE nope = 1",
    "UPDATE t SET v = nope",
    "UPDATE t SET nope = 1",
    "MERGE INTO t USING t AS s ON t.id = s.nope WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED AND s.nope THEN DELETE",
    "MERGE INTO t USING t AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.nope)",
    "MERGE INTO t USING nope AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "INSERT INTO t SELECT nope, 1, 1 FROM t",
    "INSERT INTO t VALUES (nope, 'x', 1)",
    "INSERT INTO t VALUES (1, 'x', 1, 1)",
    "INSERT INTO t (nope) VALUES (1)",
    "INSERT OVERWRITE t PARTITION (nope = 1) SELECT id, v FROM t",
    "FROM t INSERT INTO t SELECT id, v, p INSERT INTO t SELECT nope, v, p",
    "CREATE TABLE w AS SELECT nope FROM t",
    "TRUNCATE TABLE t PARTITION (nope = 1)",
    "TRUNCATE TABLE t PARTITION (p = 'x')",
    "ALTER TABLE t DROP PARTITION (nope = 1)",
    "ALTER TABLE t DROP PARTITION (p = 'x')",
    "ALTER TABLE t ADD PARTITION (nope = 1)",
    "ALTER TABLE t ADD PARTITION (p = 'x')",
    "ALTER TABLE t ADD COLUMNS (v INT)",
    "ALTER TABLE t RENAME COLUMN nope TO w",
    "ALTER TABLE t CHANGE COLUMN id id STRUCT<a: INT>",
    "ALTER TABLE t COMPACT 'nope'",
    "ALTER TABLE t PARTITION (nope = 1) COMPACT 'major'",
    "LOCK TABLE t PARTITION (nope = 1) SHARED",
    "LOAD DATA INPATH '/nowhere/at/all' INTO TABLE t PARTITION (nope = 1)",
    "LOAD DATA INPATH '/nowhere/at/all' INTO TABLE t PARTITION (p = 'x')",
)


def test_a_wrong_statement_opens_no_transaction(acid, monkeypatch):
    fill(acid, "t (id INT, v STRING) PARTITIONED BY (p INT)", "1, 'a', 1")
    opened = calls_of(monkeypatch, acid.metastore, "open_txn")
    opening = []
    for statement in WRONG:
        with pytest.raises(AcidSqlError):
            acid.sql(statement)
        opening += [statement] if opened else []
        opened.clear()
    assert opening == []
