"""ALTER TABLE … ADD PARTITION."""

from __future__ import annotations

import pytest
from kit import clean, directories, fill, refused, rows, table
from over_hive import beside, needs, on_a_disk

from acidsql.errors import AnalysisError, SnapshotTooOldError

MM = "TBLPROPERTIES ('transactional_properties'='insert_only')"


@pytest.fixture
def other(acid):
    with beside(acid, compactor="off") as session:
        yield session


@needs("can_work")
@pytest.mark.parametrize("kind", ["", MM], ids=["full-acid", "insert-only"])
def test_added_partitions_are_empty_whatever_their_values_are(acid, other, kind):
    fill(acid, f"t (id INT) PARTITIONED BY (p STRING, d DATE) {kind}", "1, 'x', DATE'2024-01-02'")
    acid.sql(
        "ALTER TABLE t ADD PARTITION (p = 'a/b=c', d = '2024-1-3') PARTITION (d = NULL, p = '')"
        " PARTITION (p = 'ü ''%', d = DATE'0001-01-01')"
    )
    added = [
        ("p=__HIVE_DEFAULT_PARTITION__/d=__HIVE_DEFAULT_PARTITION__",),
        ("p=a%2Fb%3Dc/d=2024-01-03",),
        ("p=x/d=2024-01-02",),
        ("p=ü %27%25/d=0001-01-01",),
    ]
    assert rows(acid, "SHOW PARTITIONS t") == added
    assert rows(acid, "SELECT id FROM t") == [(1,)]
    acid.sql("INSERT INTO t PARTITION (p = NULL, d = NULL) VALUES (2)")
    acid.sql("ALTER TABLE t PARTITION (p = 'a/b=c', d = '2024-01-03') COMPACT 'major' AND WAIT")
    clean(acid)
    assert rows(other, "SELECT id FROM t WHERE d IS NULL OR p = 'a/b=c'") == [(2,)]


@needs("can_work")
def test_arguments_stand_for_values_of_partitions(acid):
    fill(acid, "t (id INT) PARTITIONED BY (p INT, s STRING)", "1, 1, 'a'", "2, 2, 'b'")
    acid.sql(
        "ALTER TABLE t ADD PARTITION (p = ?, s = ?) PARTITION (s = ?, p = ?)", [3, "c", "d", 4]
    )
    added = [("p=3/s=c",), ("p=4/s=d",)]
    assert rows(acid, "SHOW PARTITIONS t") == [("p=1/s=a",), ("p=2/s=b",), *added]
    assert rows(acid, "SHOW PARTITIONS t PARTITION (p = :p)", {"p": "4"}) == added[1:]
    acid.sql("TRUNCATE TABLE t PARTITION (p = :p, s = :s)", {"s": "a", "p": 1})
    assert table(acid) == [(2, 2, "b")]
    acid.sql("ALTER TABLE t PARTITION (p = ?, s = 'b') COMPACT 'major' AND WAIT", [2])
    acid.sql("ALTER TABLE t DROP PARTITION (s = :s), PARTITION (p = :p)", {"s": "d", "p": 3})
    assert rows(acid, "SHOW PARTITIONS t") == [("p=1/s=a",), ("p=2/s=b",)]
    refused(acid, "ALTER TABLE t DROP PARTITION (p = :p)", "UNBOUND_SQL_PARAMETER", ":p")


def test_a_partition_that_exists_is_an_error_unless_if_not_exists_is_said(acid):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1")
    for specs, at in (
        ("PARTITION (p = 2) PARTITION (p = '01')", "p = '01'"),  # by its value
        ("PARTITION (p = 2) PARTITION (p = 1 + 1)", "p = 1 + 1"),  # twice
    ):
        refused(acid, f"ALTER TABLE t ADD {specs}", "PARTITIONS_ALREADY_EXIST", at)
        acid.sql(f"ALTER TABLE t ADD IF NOT EXISTS {specs}")
        assert rows(acid, "SHOW PARTITIONS t") == [("p=1",), ("p=2",)]
        acid.sql("ALTER TABLE t DROP PARTITION (p = 2)")
    last = acid.last
    acid.sql("ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 1)")
    assert acid.last is last  # nothing was to be done
    assert table(acid) == [(1, 1)]


def test_a_wrong_partition_to_add_is_refused_at_its_place(acid):
    fill(acid, "t (id INT) PARTITIONED BY (p INT, q STRING)")
    fill(acid, "u (id INT, p INT)")
    for statement, condition, at in (
        ("t ADD PARTITION (p = 1)", "NEED_PARTITION", "p = 1"),
        ("t ADD PARTITION (p = 1, q = 'x', r = 2)", "PARTITION_COLUMN_NOT_FOUND", "r = 2"),
        ("u ADD PARTITION (p = 1)", "PARTITION_COLUMN_NOT_FOUND", "p = 1"),
        ("t ADD PARTITION (p = 1, q = 'x') LOCATION '/x'", "UNSUPPORTED_FEATURE", "LOCATION"),
    ):
        refused(acid, f"ALTER TABLE {statement}", condition, at)


def test_a_partition_that_is_added_again_does_not_have_its_old_rows(acid, other):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1", "2, 2")
    acid.sql("ALTER TABLE t DROP PARTITION (p = 1)")
    other.sql("ALTER TABLE t ADD PARTITION (p = 1)")
    with pytest.raises(AnalysisError, match="has the partition p=1 already"):
        acid.sql("ALTER TABLE t ADD PARTITION (p = 1)")
    assert table(acid) == [(2, 2)]
    acid.sql("UPDATE t SET p = 1")
    assert table(other) == [(2, 1)]


@on_a_disk
@needs("a warehouse of its own")
def test_the_directory_of_an_empty_partition_outlives_a_session_that_clears_away(acid):
    """A session that dropped the partition deletes its directory late, if it is empty."""
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1")
    acid.sql("ALTER TABLE t ADD PARTITION (p = 2)")
    tables = acid._runner._wiring.tables
    tables._places.remove(acid._runner.resolve(("t",)), ["p=2"], [])
    assert any(name.startswith("p=2/") for name in directories(acid))
    assert table(acid) == [(1, 1)]


def test_an_older_snapshot_sees_no_row_of_an_added_partition(acid, other):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1")
    with acid.transaction():
        assert table(acid) == [(1, 1)]
        other.sql("ALTER TABLE t ADD PARTITION (p = 2)")
        other.sql("INSERT INTO t VALUES (2, 2)")
        assert table(acid) == [(1, 1)]
        other.sql("ALTER TABLE t DROP PARTITION (p = 1)")
        with pytest.raises(SnapshotTooOldError):
            table(acid)
    assert table(acid) == [(2, 2)]
