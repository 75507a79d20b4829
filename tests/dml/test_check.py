"""``acid.check`` over real tables, beside other sessions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kit import fill, rows
from over_hive import beside, needs

from acidsql.errors import SettingError, SnapshotTooOldError, TxnError

pytestmark = pytest.mark.spark


def checked(acid, name="t", level="rows"):
    """The condition of each finding, and the path below the table's directory."""
    place = f"{acid._table(name).location}/"
    found = acid.check(name, level=level).collect()
    return [(one.finding, one.path.removeprefix(place)) for one in found]


def test_sound_tables_of_all_kinds_have_no_findings(acid, tmp_path):
    fill(acid, "a (`Ä b.c` INT, v STRING) PARTITIONED BY (p STRING, q INT)",
         "1, 'x', 'ü €/%', 1", "2, NULL, NULL, NULL")  # fmt: skip
    acid.sql("INSERT INTO a VALUES (3, 'y', 'ü €/%', 2)")
    acid.sql("UPDATE a SET v = 'z', q = 7 WHERE `Ä b.c` = 1")
    acid.sql("ALTER TABLE a ADD PARTITION (p = 'empty', q = 1)")
    acid.sql("ALTER TABLE a DROP PARTITION (q = 2)")
    fill(acid, "b (id INT, c CHAR(3)) CLUSTERED BY (id, c) INTO 3 BUCKETS")
    acid.sql("INSERT INTO b SELECT id, concat('', id) FROM range(50)")
    acid.sql("DELETE FROM b WHERE id % 3 = 0")
    acid.sql("ALTER TABLE b ADD COLUMNS (later TIMESTAMP)")
    acid.sql("INSERT INTO b VALUES (NULL, NULL, TIMESTAMP'2020-01-01 00:00:00')")
    for name, stored in (("c", "ORC"), ("d", "PARQUET")):
        acid.sql(f"CREATE TABLE {name} (id INT, s STRUCT<x: DATE>) STORED AS {stored} "
                 "TBLPROPERTIES ('transactional_properties' = 'insert_only')")  # fmt: skip
        acid.sql(f"INSERT INTO {name} VALUES (1, named_struct('x', DATE'1000-01-01'))")
    names = ["a", "b", "c", "d", "e"]
    if acid.metastore.abilities.queues_cleanups:  # a Hive Metastore refuses other places
        place = str(tmp_path / "plain")
        acid.spark.range(9).coalesce(1).write.orc(place)
        acid.sql(f"CREATE TABLE e (id BIGINT) LOCATION '{place}'")
    else:
        acid.sql("CREATE TABLE e (id BIGINT)")
    acid.sql("DELETE FROM e WHERE id = 4")
    assert [one for name in names for one in checked(acid, name)] == []
    with pytest.raises(SettingError, match="level='all' is not one of files, rows"):
        acid.check("a", "all")


@needs("keeps_versions")
def test_a_file_that_is_missing_or_strange_contradicts_the_commit(acid):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1", "2, 2")
    acid.sql("INSERT INTO t VALUES (3, 1), (4, 2)")
    first, *_, last = (Path(one.path) for one in acid.files("t").collect())
    first.rename(first.parent / "bucket_00003")
    assert checked(acid, level="files") == []  # as many files and bytes as before
    (first.parent / "bucket_00003").unlink()
    shutil.copy(last, last.parent / "bucket_00007")
    found = sorted((one.finding, one.message) for one in acid.check("t").collect())
    assert [(name, text.partition(" files of ")[0]) for name, text in found] == [
        ("FILES_NOT_AS_COMMITTED", f"Write id {number} wrote 2") for number in (1, 2)
    ]
    assert "there are 1 of" in found[0][1] and "there are 3 of" in found[1][1]


@needs("keeps_versions")
def test_an_emptied_partition_contradicts_the_commit_even_if_another_one_was_overwritten(acid):
    acid.sql("CREATE TABLE t (id INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    acid.sql("DELETE FROM t WHERE p = 1")
    acid.compact("t", "p=1", kind="major", wait=True)  # a base without rows
    acid.sql("INSERT INTO t VALUES (3, 1), (4, 2)")
    acid.sql("INSERT OVERWRITE t PARTITION (p = 1) VALUES (5)")
    assert checked(acid, level="files") == []
    acid.clean()
    assert checked(acid, level="files") == []
    for one in acid.files("t").where("partition = 'p=2'").collect():
        shutil.rmtree(Path(one.path).parent)
    found = [one.message.partition(" files of ")[0] for one in acid.check("t").collect()]
    assert found == ["Write id 1 wrote 2", "Write id 3 wrote 2"]


@needs("can_work")
def test_compactions_leave_sound_tables(acid):
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'", "3, 'c'")
    acid.sql("UPDATE t SET v = 'A' WHERE id < 3")
    acid.sql("INSERT INTO t VALUES (4, 'd')")
    acid.sql("DELETE FROM t WHERE id = 1")
    for kind in ("minor", "major"):
        acid.compact("t", kind=kind, wait=True)
        assert checked(acid) == []
        acid.clean()
        assert checked(acid) == []
    acid.sql("DELETE FROM t WHERE id = 2")
    assert checked(acid) == []


def test_a_transaction_that_is_open_is_no_damage_and_sees_its_own(acid):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1")
    with beside(acid) as other, other.transaction() as txn:
        other.sql("INSERT INTO t VALUES (2, 1), (3, 5)")
        other.sql("DELETE FROM t WHERE id = 1")
        assert checked(acid) == []
        (damaged,) = other.files("t").where("partition = 'p=5'").collect()
        before = Path(damaged.path).read_bytes()
        Path(damaged.path).write_bytes(before[:-50])
        assert checked(acid) == []
        (found,) = other.check("t").collect()
        assert (found.severity, found.finding, found.path) == (
            "error", "UNREADABLE_FILE", damaged.path
        )  # fmt: skip
        txn.rollback()
    assert checked(acid) == []


def told(acid, name="t", **options):
    """What a repair says, by finding and path."""
    place = f"{acid._table(name).location}/"
    found = acid.repair(name, **options).collect()
    return {(one.finding, one.path.removeprefix(place)): one.advice for one in found}


@pytest.fixture
def disturbed(acid):
    """A table with partitions that are not as the catalog says, and things that nobody needs."""
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1", "2, 2", "3, 3")
    place = Path(acid._table("t").location)
    shutil.copytree(place / "p=1", place / "p=01")
    shutil.copytree(place / "p=1", place / "p=abc")
    (place / "p=7").symlink_to(place / "p=1")
    shutil.copytree(place / "p=1", place / "p=8")
    (place / "p=8" / "delta_0000001_0000001_0000").rename(
        place / "p=8" / "delta_0000900_0000900_0000"
    )
    shutil.copytree(place / "p=1", place / "p=9")
    acid.sql("INSERT OVERWRITE t PARTITION (p = 3) SELECT 0 WHERE false")
    shutil.copytree(place / "p=3" / "base_0000002", place / "p=10" / "base_0000002")
    shutil.rmtree(place / "p=2")
    (place / "_tmp_0000001_0000_dead").mkdir()
    return place


def test_a_repair_does_what_a_dry_run_says(acid, disturbed):
    late = disturbed / "p=1" / "delta_0000003_0000003_0000"
    with beside(acid) as other, other.transaction() as txn:
        other.sql("INSERT INTO t VALUES (4, 1)")
        (written,) = (disturbed / "p=1").glob("delta_0000003*")
        shutil.copytree(written, disturbed / "p=1" / "_kept")
        txn.rollback()
    (disturbed / "p=1" / "_kept").rename(late)  # a writer that did not know
    kept = "The partition {} left as it is: "
    expected = {
        ("LITTER", "_tmp_0000001_0000_dead"): "It {} deleted.",
        ("ABORTED_DIRECTORY", "p=1/delta_0000003_0000003_0000"): "It {} deleted.",
        ("PARTITION_WITHOUT_DIRECTORY", "p=2"): "The partition {} dropped from the catalog.",
        ("PARTITION_NOT_IN_CATALOG", "p=01"): kept
        + "the catalog has this partition, in another directory.",
        ("PARTITION_NOT_IN_CATALOG", "p=9"): "The partition {} added to the catalog.",
        ("PARTITION_NOT_IN_CATALOG", "p=7"): kept + "it is behind a link.",
        ("PARTITION_NOT_IN_CATALOG", "p=10"): kept
        + "it has no rows: perhaps a DROP PARTITION left it.",
        ("PARTITION_NOT_IN_CATALOG", "p=abc"): kept
        + "its name has a text that is no value of the column.",
    }
    abilities = acid.metastore.abilities
    if not abilities.can_clean:
        del expected["ABORTED_DIRECTORY", "p=1/delta_0000003_0000003_0000"]
    assert told(acid) == {key: text.format("would be") for key, text in expected.items()}
    assert late.exists()
    assert told(acid, dry_run=False) == {key: text.format("was") for key, text in expected.items()}
    assert rows(acid, "SELECT id, p FROM t") == [(1, 1), (1, 9)]
    left = {"PARTITION_NOT_IN_CATALOG", "WRITE_ID_NEVER_ALLOCATED"}
    assert {name for name, _ in checked(acid)} - {"ABORTED_DIRECTORY"} == left
    if abilities.keeps_versions:
        assert acid.history("t", 1).first().operation == "REPAIR TABLE"
        with pytest.raises(SnapshotTooOldError):
            acid.table("t", version=1)
    acid.sql("BEGIN")
    with pytest.raises(TxnError, match="repair inside of a transaction"):
        acid.repair("t")
    acid.sql("ROLLBACK")


def test_a_repair_drops_no_partition_of_a_file_system_that_is_not_mounted(acid):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1", "2, 2")
    place = Path(acid._table("t").location)
    away = place.rename(place.with_name("away"))
    place.mkdir()
    why = (
        "The partition was left as it is: all directories are missing, as if nothing were mounted."
    )
    assert set(told(acid, dry_run=False).values()) == {why}
    place.rmdir()
    away.rename(place)
    assert rows(acid, "SELECT id, p FROM t") == [(1, 1), (2, 2)]
    assert checked(acid) == []
