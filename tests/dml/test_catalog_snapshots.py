"""A transaction, or ``acid.snapshot()``, while others change names in the catalog.

``tests/txn/test_catalog_interleavings.py`` tries all orders of calls. Here are the statements.
"""

import pytest
from kit import fill, rows, table
from over_hive import OVER_HIVE, beside, needs

from acidsql.errors import CatalogError, SnapshotTooOldError, TxnError
from acidsql.statements.queries import table_rows

FIRST = [(1, "a", 1), (2, "b", 2)]


@pytest.fixture
def other(spark, acid):
    """A second session on the same tables."""
    with beside(acid, compactor="off") as session:
        yield session


@pytest.fixture
def tables(acid):
    """t has two partitions; u is another table with a row of its own."""
    fill(acid, "t (id INT, v STRING) PARTITIONED BY (p INT)", "1, 'a', 1", "2, 'b', 2")
    fill(acid, "u (id INT, v STRING) PARTITIONED BY (p INT)", "2, 'u', 1")
    fill(acid, "copy (id INT, v STRING, p INT)")


def swap(session):
    for name, new_name in (("t", "x"), ("u", "t"), ("x", "u")):
        session.sql(f"ALTER TABLE {name} RENAME TO {new_name}")


def too_old(session, *statements):
    for statement in statements:
        with pytest.raises(SnapshotTooOldError, match="ACID_NOT_ENOUGH_HISTORY"):
            session.sql(statement).collect()


WRITES = (
    "UPDATE t SET v = 'mine' WHERE id = 2",
    "DELETE FROM t WHERE id = 2",
    "MERGE INTO t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "INSERT INTO t VALUES (3, 'c', 3)",
    "INSERT INTO copy SELECT * FROM t",
    "TRUNCATE TABLE t",
)


def test_no_statement_takes_another_table_of_the_name_for_its_own(acid, other, tables):
    with acid.transaction() as mine:
        assert table(acid) == FIRST
        swap(other)
        too_old(acid, "SELECT * FROM t", "SELECT * FROM u", *WRITES)
        acid.sql("INSERT INTO copy VALUES (7, 'kept', 7)")
        assert mine.partitions() == {}
    assert table(other, "t") == [(2, "u", 1)]
    assert table(other, "u") == FIRST
    assert table(other, "copy") == [(7, "kept", 7)]


def test_nor_one_that_it_looks_at_for_the_first_time_after_its_snapshot(acid, other, tables):
    with acid.transaction():
        assert table(acid, "copy") == []
        other.sql("DROP TABLE t")
        too_old(acid, "SELECT * FROM t", *WRITES)
        fill(other, "t (id INT, v STRING) PARTITIONED BY (p INT)", "2, 'new', 1")
        too_old(acid, "SELECT * FROM t", *WRITES)
    assert table(acid) == [(2, "new", 1)]
    assert table(acid, "copy") == []


def test_a_dropped_partition_is_missed_by_those_statements_that_need_it(acid, other, tables):
    """Also if it exists again, with rows that are newer than the snapshot."""
    with acid.snapshot():
        other.sql("ALTER TABLE t DROP PARTITION (p = 1)")
        other.sql("INSERT INTO t VALUES (9, 'new', 1), (3, 'c', 3)")
        too_old(acid, "SELECT * FROM t", "SELECT count(*) FROM t WHERE id > 0")
        too_old(acid, "EXPLAIN SELECT * FROM t")
        with pytest.raises(SnapshotTooOldError, match=r"default\.t/p=1"):
            acid.table("t")
        with pytest.raises(SnapshotTooOldError):
            acid.files("t")
        assert rows(acid, "SELECT * FROM t WHERE p = 2") == [(2, "b", 2)]
        assert rows(acid, "SHOW PARTITIONS t") == [("p=1",), ("p=2",), ("p=3",)]
    assert table(acid) == [(2, "b", 2), (3, "c", 3), (9, "new", 1)]


def test_rows_that_are_read_to_be_written_elsewhere_are_all_there_or_none(acid, other, tables):
    with acid.transaction():
        assert rows(acid, "SELECT count(*) FROM t") == [(2,)]
        other.sql("ALTER TABLE t DROP PARTITION (p = 1)")
        too_old(acid, "INSERT INTO copy SELECT * FROM t")
        acid.sql("INSERT INTO copy SELECT * FROM t WHERE p = 2")
        acid.sql("INSERT INTO t VALUES (4, 'mine', 4)")
        assert rows(acid, "SELECT * FROM t WHERE p > 1") == [(2, "b", 2), (4, "mine", 4)]
    assert table(acid, "copy") == [(2, "b", 2)]
    assert table(acid) == [(2, "b", 2), (4, "mine", 4)]


def test_new_columns_come_with_the_next_transaction(acid, other, tables):
    with acid.transaction():
        assert table(acid) == FIRST
        other.sql("ALTER TABLE t ADD COLUMNS (w STRING)")
        too_old(acid, "SELECT * FROM t", *WRITES)
    assert table(acid) == [(1, "a", None, 1), (2, "b", None, 2)]


@needs("can_clean")
def test_what_snapshots_cannot_mind_they_do_not_see(acid, other, tables):
    with acid.transaction():
        assert table(acid) == FIRST
        other.sql("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')")
        other.sql("INSERT INTO t VALUES (3, 'c', 3)")
        other.sql("TRUNCATE TABLE t PARTITION (p = 1)")
        other.compact("t", wait=True)
        other.clean()
        assert table(acid) == FIRST


def test_a_dataframe_of_a_transaction_fails_by_name_when_its_table_is_dropped(acid, other, tables):
    with acid.transaction():
        frame = acid.sql("SELECT * FROM t")
        other.sql("DROP TABLE t")
        with pytest.raises(SnapshotTooOldError):
            frame.collect()


def test_so_does_one_of_files_that_python_tasks_read(acid, other, spark, tmp_path):
    spark.range(20, numPartitions=2).write.orc(f"{tmp_path}/plain")
    acid.sql(f"CREATE TABLE plain (id BIGINT) LOCATION '{tmp_path}/plain'")
    with acid.snapshot():
        frame = acid.table("plain")
        other.sql("DROP TABLE plain")
        for read in (frame.collect, frame.toArrow, lambda: list(frame.toLocalIterator())):
            with pytest.raises(SnapshotTooOldError, match="000000_0|000001_0"):
                read()


def test_a_transaction_that_others_abort_says_so(acid, other, tables):
    """Then the store has forgotten the history that it would need for an answer."""
    with pytest.raises(TxnError), acid.transaction() as mine:
        assert table(acid) == FIRST
        other.sql(f"ABORT TRANSACTIONS {mine.id}")
        other.sql("DROP TABLE t")
        # A Hive Metastore may have forgotten the aborted transaction.
        words = "TXN_ABORTED|TXN_NO_SUCH_TRANSACTION" if OVER_HIVE else "TXN_ABORTED"
        with pytest.raises(TxnError, match=words):
            acid.sql("SELECT * FROM t")


@needs("a memory for single reads")
def test_a_read_that_meets_a_partition_going_and_coming_again_says_so(
    acid, other, tables, monkeypatch
):
    """The directory exists before and after, but neither has all rows of the snapshot."""
    real = table_rows.read_rows

    def meets(*args, **options):
        other.sql("ALTER TABLE t DROP PARTITION (p = 1)")
        other.sql("INSERT INTO t VALUES (9, 'new', 1)")
        return real(*args, **options)

    monkeypatch.setattr(table_rows, "read_rows", meets)
    with pytest.raises(CatalogError, match="dropped meanwhile"):
        acid.table("t")
    monkeypatch.undo()
    assert table(acid) == [(2, "b", 2), (9, "new", 1)]


# ── leases ───────────────────────────────────────────────────────────────────────────────────


@needs("can_clean")
def test_clean_ends_the_sessions_own_old_leases_first(acid, tables, monkeypatch):
    """Otherwise they would hold back the cleaner until the next heartbeat."""
    acid.sql("INSERT INTO copy VALUES (1, 'a', 1)")
    acid.sql("INSERT INTO copy VALUES (2, 'b', 2)")
    assert acid.table("copy").count() == 2
    acid.compact("copy", wait=True)
    assert acid.clean().count() == 0
    leases = acid._runner._txns._leases
    now = leases._elapsed() + leases.timeout_ms / 1000
    monkeypatch.setattr(leases, "_elapsed", lambda: now)
    assert acid.clean().count() == 2


@needs("can_clean")
def test_so_does_the_compactor_service_of_a_session(acid, tables, monkeypatch):
    acid.sql("INSERT INTO copy VALUES (1, 'a', 1)")
    acid.sql("INSERT INTO copy VALUES (2, 'b', 2)")
    assert acid.table("copy").count() == 2
    acid.compact("copy", wait=True)
    leases, told = acid._runner._txns._leases, []
    now = leases._elapsed() + leases.timeout_ms / 1000
    monkeypatch.setattr(leases, "_elapsed", lambda: now)
    acid.run_compactor(once=True, tell=told.append)
    assert len([line for line in told if "obsolete" in line]) == 2
