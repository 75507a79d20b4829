"""``acid.check`` over real tables, beside other sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit import fill
from over_hive import beside, needs

from acidsql.errors import SettingError

pytestmark = pytest.mark.spark


def checked(acid, name="t", level="rows"):
    """The condition of each finding, and the path below the table's directory."""
    place = f"{acid.metastore.get_table(acid._table(name).name).location}/"
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
