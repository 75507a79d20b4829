"""Snapshots that last: lazy DataFrames, ``acid.snapshot()``, leases."""

import pytest
from kit import fill, rows, table
from over_hive import beside

from acidsql.errors import SnapshotTooOldError, TxnError


@pytest.fixture
def other(spark, acid):
    """A second session on the same tables."""
    with beside(acid) as session:
        yield session


def test_a_lazy_dataframe_keeps_showing_what_it_was_made_from(acid, other):
    fill(acid, "t (id INT, v STRING) PARTITIONED BY (p STRING)", "1, 'a', 'x'", "2, 'b', 'y'")
    frame, view = acid.table("t"), acid.sql("SELECT * FROM t WHERE id > 0")
    acid.sql("CREATE TEMP VIEW seen AS SELECT id FROM t")
    for change in (
        "UPDATE t SET v = 'new'",
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t VALUES (3, 'c', 'z')",
        "INSERT OVERWRITE TABLE t VALUES (4, 'd', 'x')",
        "TRUNCATE TABLE t",
    ):
        other.sql(change)
        assert sorted(frame.collect()) == sorted(view.collect()) == [(1, "a", "x"), (2, "b", "y")]
        assert rows(acid, "SELECT * FROM seen") == [(1,), (2,)]
    assert table(acid) == []
    acid.sql("DROP VIEW seen")


def test_reads_in_a_snapshot_see_one_moment_of_all_tables(acid, other):
    fill(acid, "t (id INT)", "1")
    fill(acid, "u (id INT)", "1")
    with acid.snapshot():
        other.sql("INSERT INTO t VALUES (2)")
        other.sql("INSERT INTO u VALUES (2)")
        assert table(acid) == table(acid, "u") == rows(acid, "SELECT * FROM t") == [(1,)]
        assert acid.table("u").count() == 1
    assert table(acid) == table(acid, "u") == [(1,), (2,)]


def test_nothing_is_changed_in_a_snapshot(acid):
    fill(acid, "t (id INT)", "1")
    with acid.snapshot():
        for statement in ("INSERT INTO t VALUES (2)", "DELETE FROM t", "DROP TABLE t", "BEGIN"):
            with pytest.raises(TxnError) as caught:
                acid.sql(statement)
            assert caught.value.getSqlState() == "25006"
        with pytest.raises(TxnError), acid.snapshot():
            pass
    acid.sql("INSERT INTO t VALUES (2)")
    with acid.transaction(), pytest.raises(TxnError), acid.snapshot():
        pass
    assert table(acid) == [(1,), (2,)]


def test_a_read_of_a_dropped_table_fails_by_name(acid, other):
    fill(acid, "t (id INT)", "1")
    frame = acid.table("t")
    other.sql("DROP TABLE t")
    with pytest.raises(SnapshotTooOldError, match="was dropped"):
        frame.collect()


def test_however_much_is_read_few_leases_are_open(acid, other):
    fill(acid, "t (id INT)", "1")
    for number in range(5):
        assert acid.table("t").count() == number + 1
        other.sql("INSERT INTO t VALUES (1)")
    open_ones = [row for row in rows(acid, "SHOW TRANSACTIONS") if row[1] == "OPEN"]
    assert len(open_ones) == 1
    acid.close()
    assert rows(other, "SHOW TRANSACTIONS") == []


def test_a_lease_ends_by_itself_and_a_new_read_takes_another(spark, acid):
    fill(acid, "t (id INT)", "1")
    short = {"acidsql.lease.timeout": "10ms"}
    with beside(acid, settings=short) as session:
        seen = set()
        for _ in range(3):
            table(session)
            seen |= {row[0] for row in rows(acid, "SHOW TRANSACTIONS")}
        assert len(seen) >= 2
        assert len(rows(acid, "SHOW TRANSACTIONS")) <= 2
