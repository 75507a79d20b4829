"""ALTER TABLE … PARTITION … RENAME TO PARTITION."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from over_hive import beside, needs
from pyarrow import orc

from acidsql.acid.table import TableName
from acidsql.errors import AcidSqlError, TableChangedError
from acidsql.txn import TxnManager

pytestmark = pytest.mark.spark


def rows(acid, table="t"):
    return sorted(tuple(row) for row in acid.sql(f"SELECT * FROM {table}").collect())


def partitions(acid):
    return [row.partition for row in acid.sql("SHOW PARTITIONS t").collect()]


@pytest.fixture
def t(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT, q STRING)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'x'), (3, 'c', 2, 'x')")
    acid.sql("UPDATE t SET v = 'B' WHERE id = 2")
    return acid


def test_the_rows_are_in_the_new_partition_and_the_old_one_is_gone(t):
    t.sql("ALTER TABLE t PARTITION (q = 'x', p = 1) RENAME TO PARTITION (p = :new, q = NULL)",
          {"new": 7})  # fmt: skip
    assert t.last.counts[-1].updated == 2 and "2 updated" in str(t.last)
    assert rows(t) == [(1, "a", 7, None), (2, "B", 7, None), (3, "c", 2, "x")]
    assert len(partitions(t)) == 2 and "p=1/q=x" not in partitions(t)
    place = Path(t.metastore.find(TableName("default", "t")).location)
    assert not (place / "p=1").exists()
    if t.metastore.abilities.keeps_versions:
        versions = [row.version for row in t.history("t").collect()]
        assert len(set(versions)) == len(versions)
        newest = t.history("t", 1).first()
        assert (newest.operation, newest.numUpdatedRows) == ("RENAME PARTITION", 2)
        assert newest.partitions == 2
    t.sql("INSERT INTO t VALUES (4, 'd', 1, 'x')")
    assert rows(t) == [(1, "a", 7, None), (2, "B", 7, None), (3, "c", 2, "x"), (4, "d", 1, "x")]
    t.sql("ALTER TABLE t PARTITION (p = 7, q = NULL) RENAME TO PARTITION (p = 8, q = 'a=b/c')")
    assert (1, "a", 8, "a=b/c") in rows(t)
    assert t.check("t", level="rows").collect() == []


def test_a_partition_without_rows_is_renamed(t):
    t.sql("ALTER TABLE t ADD PARTITION (p = 9, q = 'y')")
    t.sql("ALTER TABLE t PARTITION (p = 9, q = 'y') RENAME TO PARTITION (p = 9, q = 'z')")
    assert partitions(t) == ["p=1/q=x", "p=2/q=x", "p=9/q=z"]


@pytest.mark.parametrize(
    ("old", "new", "condition"),
    [
        ("p = 5, q = 'x'", "p = 6, q = 'x'", "PARTITIONS_NOT_FOUND"),
        ("p = 1, q = 'x'", "p = 2, q = 'x'", "PARTITIONS_ALREADY_EXIST"),
        ("p = 1, q = 'x'", "p = 1, q = 'x'", "PARTITIONS_ALREADY_EXIST"),
        ("p = 1", "p = 2", "NEED_PARTITION"),
        ("p = 1, q = 'x'", "p = 'seven', q = 'x'", "CAST_INVALID_INPUT"),
    ],
    ids=["no such", "taken", "itself", "not whole", "no number"],
)
def test_what_is_refused_changes_nothing(t, old, new, condition):
    before = rows(t)
    with pytest.raises(AcidSqlError) as caught:
        t.sql(f"ALTER TABLE t PARTITION ({old}) RENAME TO PARTITION ({new})")
    assert caught.value.condition == condition
    assert rows(t) == before and partitions(t) == ["p=1/q=x", "p=2/q=x"]


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("TINYINT", "-1", "127"), ("BIGINT", "1", "9223372036854775807"),
        ("DECIMAL(5,2)", "1.50", "-0.25"), ("DATE", "DATE'2024-01-31'", "'1900-01-01'"),
        ("BOOLEAN", "true", "false"), ("VARCHAR(4)", "'ab '", "'é%'"),
        ("STRING", "' 1'", "'{}''$'"),
    ],
    ids=lambda one: one if one[:1].isupper() else "",
)  # fmt: skip
def test_all_rows_move_whatever_the_type(acid, kind, old, new):
    acid.sql(f"CREATE TABLE k (id INT) PARTITIONED BY (p {kind})")
    acid.sql(f"INSERT INTO k VALUES (1, {old}), (2, {old}), (3, NULL)")
    acid.sql(f"ALTER TABLE k PARTITION (p = {old}) RENAME TO PARTITION (p = {new})")
    moved = acid.sql(
        f"SELECT id FROM k WHERE p = CAST({new} AS {kind.replace('VARCHAR(4)', 'STRING')})"
    )
    assert sorted(row.id for row in moved.collect()) == [1, 2]
    acid.sql(f"ALTER TABLE k PARTITION (p = NULL) RENAME TO PARTITION (p = {old})")
    assert sorted(row.id for row in acid.sql("SELECT id FROM k").collect()) == [1, 2, 3]
    assert acid.sql("SELECT id FROM k WHERE p IS NULL").collect() == []


@needs("tables anywhere")
def test_all_directories_of_one_value_are_renamed(acid, tmp_path):
    for number, name in enumerate(("p=1", "p=01")):
        (tmp_path / "found" / name).mkdir(parents=True)
        rows_there = pa.table({"id": pa.array([number], "int32")})
        orc.write_table(rows_there, tmp_path / "found" / name / "000000_0")
    acid.sql(f"CREATE TABLE k (id INT) PARTITIONED BY (p INT) LOCATION '{tmp_path / 'found'}'")
    assert len(acid.sql("SHOW PARTITIONS k").collect()) == 2
    acid.sql("ALTER TABLE k PARTITION (p = 1) RENAME TO PARTITION (p = 2)")
    assert rows(acid, "k") == [(0, 2), (1, 2)]
    assert [row.partition for row in acid.sql("SHOW PARTITIONS k").collect()] == ["p=2"]


@pytest.mark.parametrize("kind", ["CHAR(4)", "TIMESTAMP", "DOUBLE"])
def test_a_column_whose_values_have_several_texts_is_refused(acid, kind):
    acid.sql(f"CREATE TABLE k (id INT) PARTITIONED BY (p {kind})")
    with pytest.raises(AcidSqlError, match="UPDATE moves its rows"):
        acid.sql("ALTER TABLE k PARTITION (p = NULL) RENAME TO PARTITION (p = '1')")


def test_a_transaction_refuses_it(t):
    t.sql("BEGIN")
    with pytest.raises(AcidSqlError, match="cannot be part of a transaction"):
        t.sql("ALTER TABLE t PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 7, q = 'x')")
    t.sql("ROLLBACK")


def test_a_row_that_would_break_a_constraint_keeps_the_partition(t):
    t.sql("CREATE TABLE c (id INT, CHECK (p < 5)) PARTITIONED BY (p INT)")
    t.sql("INSERT INTO c VALUES (1, 1)")
    with pytest.raises(AcidSqlError, match="p < 5"):
        t.sql("ALTER TABLE c PARTITION (p = 1) RENAME TO PARTITION (p = 7)")
    assert rows(t, "c") == [(1, 1)]


@needs("remembers_changes")
def test_a_read_whose_snapshot_is_older_than_the_rename_looks_again(t, monkeypatch):
    """The snapshot has the rows in the old partition, the catalog only the new one."""
    renames = ["ALTER TABLE t PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 7, q = 'x')"]
    take_snapshot = TxnManager.snapshot

    def take_snapshot_before_a_rename(manager, tables):
        snapshot = take_snapshot(manager, tables)
        while renames:
            other.sql(renames.pop())
        return snapshot

    with beside(t) as other:
        monkeypatch.setattr(TxnManager, "snapshot", take_snapshot_before_a_rename)
        assert rows(t) == [(1, "a", 7, "x"), (2, "B", 7, "x"), (3, "c", 2, "x")]
        renames.append(
            "ALTER TABLE t PARTITION (p = 7, q = 'x') RENAME TO PARTITION (p = 8, q = 'x')"
        )
        with pytest.raises(TableChangedError, match="Read it again"):
            t.table("t")


def test_who_writes_to_the_old_partition_meanwhile_is_waited_for(t):
    with beside(t) as other:
        t.sql("SET hive.lock.numretries = 1")
        other.sql("BEGIN")
        other.sql("INSERT INTO t VALUES (9, 'z', 1, 'x')")
        with pytest.raises(AcidSqlError) as caught:
            t.sql("ALTER TABLE t PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 7, q = 'x')")
        assert caught.value.condition == "LOCK_ACQUIRE_TIMEDOUT"
        other.sql("COMMIT")
        t.sql("ALTER TABLE t PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 7, q = 'x')")
    assert [row for row in rows(t) if row[2] == 7] == [
        (1, "a", 7, "x"), (2, "B", 7, "x"), (9, "z", 7, "x"),
    ]  # fmt: skip
