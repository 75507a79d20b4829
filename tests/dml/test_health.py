"""``acid.health`` over real tables, compared with ``acid.files`` and with the rows themselves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kit import fill
from over_hive import beside, needs

from acidsql.errors import CatalogError, SettingError

pytestmark = pytest.mark.spark


def health(acid, *args):
    """The rows of ``acid.health``, by partition."""
    return {one.partition: one for one in acid.health(*args).collect()}


def agrees(acid, name, columns):
    """Compare with the rows that are read, and with the files that are listed."""
    rows = {tuple(r[:-1]): r["count"] for r in acid.table(name).groupBy(*columns).count().collect()}
    found = health(acid, name)
    assert sorted(one.rows for one in found.values() if one.rows) == sorted(rows.values())
    files = acid.files(name).where("kind <> 'litter'")
    for state, field in (("= 'visible'", "live_bytes"), ("<> 'visible'", "obsolete_bytes")):
        totals = files.where(f"state {state}").groupBy("partition").sum("bytes").collect()
        assert {p: one[field] for p, one in found.items() if one[field]} == dict(map(tuple, totals))
    return found


def test_rows_and_bytes_are_those_of_the_files_that_readers_read(acid):
    fill(acid, "t (`Ä b.c` INT, v STRING) PARTITIONED BY (p STRING, q INT)",
         "1, 'x', 'ü €/%', 1", "2, NULL, NULL, NULL", "3, 'z', 'ü €/%', 1")  # fmt: skip
    acid.sql("UPDATE t SET v = 'z' WHERE `Ä b.c` = 1")
    acid.sql("INSERT OVERWRITE t PARTITION (p = 'o', q = 7) SELECT 5, 'a'")
    acid.sql("INSERT OVERWRITE t PARTITION (p = 'o', q = 7) SELECT 6, 'b'")
    acid.sql("ALTER TABLE t ADD PARTITION (p = 'empty', q = 1)")
    found = agrees(acid, "t", ["p", "q"])
    changed = found["p=ü €%2F%25/q=1"]
    assert (changed.rows, changed.deleted_rows) == (2, 1)
    assert (changed.deltas, changed.delete_deltas) == (2, 1)
    assert (changed.files, changed.small_files, changed.delta_share) == (3, 3, 1.0)
    assert changed.deleted_share == 1 / 3
    overwritten, empty = found["p=o/q=7"], found["p=empty/q=1"]
    assert (overwritten.bases, overwritten.delta_share) == (1, 0.0)
    assert overwritten.obsolete_bytes > 0
    if acid.metastore.abilities.can_initiate:  # it knows the partitions by the same names
        assert (changed.next, changed.why) == (None, "3 deltas, no base; below the thresholds")
        assert (overwritten.next, overwritten.why) == ("major", "a base that another has replaced")
    assert (empty.rows, empty.deltas, empty.deleted_share, empty.problem) == (0, 1, None, None)
    assert list(health(acid, "t", "p=o/q=7")) == ["p=o/q=7"]
    with pytest.raises(CatalogError, match="has no partition 'p=o'"):
        acid.health("t", "p=o")
    with pytest.raises(SettingError, match="of which table"):
        acid.health(partition="p=o/q=7")
    with pytest.raises(CatalogError, match="no ACID table 'nobody'"):
        acid.health("nobody")


def test_insert_only_tables_and_originals_are_counted_as_they_are_read(acid):
    for stored in ("ORC", "PARQUET"):
        fill(acid, f"m{stored} (id INT) STORED AS {stored} "
             "TBLPROPERTIES ('transactional_properties' = 'insert_only')")  # fmt: skip
        acid.sql(f"INSERT INTO m{stored} VALUES (1), (NULL)")
        acid.sql(f"INSERT INTO m{stored} VALUES (3)")
        (one,) = agrees(acid, f"m{stored}", []).values()
        assert (one.rows, one.deltas, one.deleted_rows) == (3, 2, 0)
    place = Path(acid._table("mORC").location)
    shutil.copy(next(place.glob("delta_*/0*")), place / "000000_0")  # no reader takes this one
    assert health(acid, "mORC")[""].rows == 3


@needs("a warehouse of its own")
def test_a_whole_warehouse_has_a_row_for_each_table_also_for_a_broken_one(acid):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1", "2, 2")
    fill(acid, "gone (id INT)", "1")
    acid.sql("CREATE DATABASE d2")
    fill(acid, "d2.u (id INT)")
    shutil.rmtree(acid._table("gone").location)
    place = next(Path(acid._table("t").location).glob("p=2/delta*/bucket*"))
    place.write_bytes(b"damaged")
    found = {one.table: one for one in acid.health().collect()}
    assert list(found) == ["d2.u", "default.gone", "default.t"]
    assert (found["d2.u"].rows, found["d2.u"].partition) == (0, None)
    assert found["default.gone"].rows is None and "is missing" in found["default.gone"].problem
    assert found["default.t"].rows is None and str(place) in found["default.t"].problem
    assert found["default.t"].files == 2
    assert acid.health().where("rows = 0").toPandas()["table"].tolist() == ["d2.u"]
    assert "default.t: " in repr(acid.health()) and "<svg" in acid.health()._repr_html_()


def test_an_open_transaction_sees_its_own_rows_and_is_told_to_others(acid):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1")
    with beside(acid) as other, other.transaction() as txn:
        other.sql("INSERT INTO t VALUES (2, 1), (3, 5)")
        assert {p: one.rows for p, one in health(other, "t").items()} == {"p=1": 2, "p=5": 1}
        theirs = health(acid, "t")
        assert {p: one.rows for p, one in theirs.items()} == {"p=1": 1}
        assert theirs["p=1"].oldest_txn == txn.id
        txn.rollback()


@needs("can_initiate")
def test_aborted_write_ids_in_the_range_of_our_minor_compaction_leave_the_rows_known(acid):
    fill(acid, "t (a INT)", "1", "2")
    with acid.transaction() as txn:
        acid.sql("DELETE FROM t WHERE a = 1")
        acid.sql("INSERT INTO t VALUES (8), (9)")
        txn.rollback()
    acid.sql("DELETE FROM t WHERE a = 2")
    acid.sql("INSERT INTO t VALUES (3)")
    acid.sql("ALTER TABLE t COMPACT 'minor' AND WAIT")
    (one,) = agrees(acid, "t", []).values()
    assert (one.rows, one.deleted_rows, one.deltas, one.problem) == (2, 1, 1, None)
