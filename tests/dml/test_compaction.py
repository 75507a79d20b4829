"""Compaction as a user sees it: by statement, automatic, and the files that are left."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from pathlib import Path

import pyorc
import pytest
from kit import clean, fill, ordered, rows
from over_hive import OVER_HIVE, beside, needs, on_a_disk

from acidsql.errors import AcidSqlError, AnalysisError, WriteConflictError, WriteError

pytestmark = needs("can_work")

KINDS = {
    "plain": "t (id INT, v STRING)",
    "bucketed": "t (id INT, v STRING) CLUSTERED BY (id) INTO 3 BUCKETS",
    "partitioned": "t (id INT, v STRING) PARTITIONED BY (p INT)",
    "insert_only": "t (id INT, v STRING) TBLPROPERTIES ('transactional_properties'='insert_only')",
}


def directories(acid, state="visible", name="t"):
    """A table's directories, without the number of the transaction that compacted (``_v``), which
    the names have over a Hive Metastore."""
    found = acid.files(name).where(f"state = '{state}'").select("partition", "directory").distinct()
    return sorted(re.sub(r"_v\d+$", "", "/".join(filter(None, row))) for row in found.collect())


def with_ids(acid, name="t"):
    return ordered(acid.table(name, row_id=True).collect())


def compact(acid, kind, name="t", partition=""):
    acid.sql(f"ALTER TABLE {name} {partition} COMPACT '{kind}' AND WAIT")
    return acid.last


def states(acid, name="t"):
    return [row.state for row in acid.sql(f"SHOW COMPACTIONS {name}").collect()]


@pytest.fixture
def other(spark, acid):
    with beside(acid, compactor="off") as session:
        yield session


@pytest.fixture
def t(acid):
    """A table after five statements: inserts, an update, a delete."""
    fill(acid, KINDS["plain"], "1, 'a'", "2, 'b'", "3, 'c'")
    acid.sql("INSERT INTO t VALUES (4, 'd')")
    acid.sql("UPDATE t SET v = 'changed' WHERE id IN (1, 4)")
    acid.sql("DELETE FROM t WHERE id = 2")
    acid.sql("INSERT INTO t SELECT 5, 'e'")
    return acid


# ── what is asked for ────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["in the driver", "by jobs"])
def way(acid, request):
    """The driver folds small files itself, or jobs do."""
    if request.param == "by jobs":
        acid.sql("SET acidsql.driver.max.rows = 0")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", ["minor", "major"])
@pytest.mark.parametrize("layout", ["plain", "bucketed", "partitioned"])
def test_rows_and_row_ids_stay_and_directories_become_few(acid, layout, kind):
    acid.sql(f"CREATE TABLE {KINDS[layout]}")
    p = ", 7" if layout == "partitioned" else ""
    for id in range(4):
        acid.sql(f"INSERT INTO t VALUES ({id}, 'a'{p}), ({id + 10}, 'b'{p})")
    acid.sql("UPDATE t SET v = 'new' WHERE id IN (1, 12)")
    acid.sql("DELETE FROM t WHERE id IN (3, 13)")
    before, where = with_ids(acid), "PARTITION (p = 7)" if p else ""
    receipt = compact(acid, kind, partition=where)
    assert "ready for cleaning" in str(receipt)
    assert with_ids(acid) == before
    prefix = "p=7/" if p else ""
    expected = {
        "major": ["base_0000006"],
        "minor": ["delete_delta_0000001_0000006", "delta_0000001_0000006"],
    }
    assert directories(acid) == [prefix + name for name in expected[kind]]
    # A compacted table can be changed, and compacted again.
    acid.sql("UPDATE t SET v = 'newer' WHERE id = 1")
    before = with_ids(acid)
    compact(acid, "major", partition=where)
    assert with_ids(acid) == before
    assert directories(acid) == [f"{prefix}base_0000007"]


@on_a_disk
def test_another_reader_finds_sorted_events_in_what_was_compacted(t):
    compact(t, "major")
    files = [row.path for row in t.files("t").where("kind = 'base'").collect()]
    found = []
    for path in files:
        with open(path, "rb") as file:
            events = list(pyorc.Reader(file))
        keys = [event[1:4] for event in events]
        assert keys == sorted(set(keys))
        assert {event[0] for event in events} == {0}
        assert all(event[1] == event[4] for event in events)
        found += [event[5] for event in events]
    assert ordered(found) == rows(t, "SELECT * FROM t")


def test_only_inserts_make_a_delta_without_delete_events(acid):
    fill(acid, KINDS["plain"], "1, 'a'")
    acid.sql("INSERT INTO t VALUES (2, 'b')")
    compact(acid, "minor")
    assert directories(acid) == ["delta_0000001_0000002"]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", ["minor", "major"])
def test_an_insert_only_table_gets_fewer_files(acid, kind):
    acid.sql(f"CREATE TABLE {KINDS['insert_only']}")
    for id in range(4):
        acid.sql(f"INSERT INTO t VALUES ({id}, 'a')")
    before = rows(acid, "SELECT * FROM t")
    compact(acid, kind)
    assert rows(acid, "SELECT * FROM t") == before
    # An older snapshot could not leave out single rows of plain files, so there is no minor
    # compaction.
    assert directories(acid) == ["base_0000004"]
    assert acid.files("t").where("state = 'visible'").count() == 1
    clean(acid)
    assert rows(acid, "SELECT * FROM t") == before


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_an_old_snapshot_of_an_insert_only_table_sees_no_more_than_before(acid, other, kind):
    acid.sql(f"CREATE TABLE {KINDS['insert_only']}")
    acid.sql("INSERT INTO t VALUES (1, 'a')")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (2, 'open')")
    other.sql("INSERT INTO t VALUES (3, 'c')")
    with other.snapshot():
        assert rows(other, "SELECT id FROM t") == [(1,), (3,)]
        acid.sql("COMMIT")
        compact(acid, kind)
        assert rows(other, "SELECT id FROM t") == [(1,), (3,)]
    assert rows(other, "SELECT id FROM t") == [(1,), (2,), (3,)]


def test_a_bucketed_insert_only_table_keeps_its_buckets(acid):
    acid.sql(
        "CREATE TABLE t (id INT) CLUSTERED BY (id) INTO 3 BUCKETS "
        "TBLPROPERTIES ('transactional_properties'='insert_only')"
    )
    for start in (0, 10, 20):
        acid.sql(f"INSERT INTO t SELECT INT(id) FROM range({start}, {start + 10})")
    by_bucket = "SELECT id FROM t WHERE id = {}"
    compact(acid, "major")
    assert rows(acid, "SELECT count(*) FROM t") == [(30,)]
    for id in range(0, 30, 7):
        assert rows(acid, by_bucket.format(id)) == [(id,)]


def test_files_from_before_the_table_was_transactional_and_loaded_ones_are_compacted(
    spark, acid, tmp_path
):
    place = str(tmp_path / "warehouse" / "old")
    spark.range(6).selectExpr("INT(id)", "string(id) AS v").coalesce(2).write.orc(place)
    for name in os.listdir(place):
        if not name.endswith(".orc"):
            os.remove(f"{place}/{name}")
    acid.sql(f"CREATE TABLE t (id INT, v STRING) LOCATION '{place}'")
    acid.sql("DELETE FROM t WHERE id = 3")
    spark.sql("SELECT 9 AS id, 'loaded' AS v").write.orc(str(tmp_path / "more"))
    acid.sql(f"LOAD DATA INPATH '{tmp_path / 'more'}' INTO TABLE t")
    before = with_ids(acid)
    compact(acid, "minor")
    assert with_ids(acid) == before
    compact(acid, "major")
    assert with_ids(acid) == before
    assert len(directories(acid)) == 1
    acid.close()
    with beside(acid, compactor="off") as fresh:
        clean(fresh)
        assert with_ids(fresh) == before
        if fresh.metastore.abilities.can_clean:
            assert fresh.files("t").where("state <> 'visible'").count() == 0


def test_columns_that_were_added_are_null_in_old_rows(acid):
    fill(acid, "t (id INT)", "1", "2")
    acid.sql("ALTER TABLE t ADD COLUMNS (v STRING, n BIGINT)")
    acid.sql("INSERT INTO t VALUES (3, 'x', 7)")
    acid.sql("ALTER TABLE t CHANGE COLUMN v w STRING")
    acid.sql("UPDATE t SET w = 'y' WHERE id = 2")
    before = with_ids(acid)
    compact(acid, "minor")
    assert with_ids(acid) == before
    compact(acid, "major")
    assert with_ids(acid) == before


@pytest.mark.usefixtures("way")
def test_every_type_comes_back_as_it_was(acid):
    acid.sql(
        "CREATE TABLE t (a TINYINT, b DECIMAL(20,3), c CHAR(5), d VARCHAR(5), e DATE, "
        "f TIMESTAMP, g BINARY, h ARRAY<STRUCT<x: INT, y: MAP<STRING, DOUBLE>>>, i BOOLEAN)"
    )
    full = (
        "1, 12.5, 'ab', 'cd', DATE'1500-01-01', TIMESTAMP_NTZ'1600-01-01 00:00:00.5', X'00FF', "
        "array(named_struct('x', 1, 'y', map('k', 0.5D)), NULL), true"
    )
    for values in (full, ", ".join(["NULL"] * 9), full.replace("1600", "2024")):
        acid.sql(f"INSERT INTO t SELECT {values}")
    before = with_ids(acid)
    compact(acid, "major")
    assert with_ids(acid) == before


def test_what_is_asked_for_is_seen_in_the_queue_and_can_be_aborted(t):
    asked = t.sql("ALTER TABLE t COMPACT 'major' POOL 'nobody'").first()
    (row,) = t.sql("SHOW COMPACTIONS").collect()
    assert (row.tabname, row.type, row.state, row.poolname) == ("t", "MAJOR", "initiated", "nobody")
    assert OVER_HIVE or row.errormessage == "asked for"
    queued = "It is queued: SHOW COMPACTIONS shows what becomes of it."
    assert tuple(asked) == (row.compactionid, None, "MAJOR", "initiated", queued)
    assert f"compaction {row.compactionid}: initiated: {queued}" in str(t.last)
    # The same request is not queued twice.
    again = t.sql("ALTER TABLE t COMPACT 'minor'").first()
    assert (again.compactionid, again.type, again.state) == asked[0:1] + asked[2:4]
    assert again.message.startswith("A major compaction was in the queue already")
    assert states(t) == ["initiated"]
    (answer,) = t.sql(f"ABORT COMPACTIONS {row.compactionid}").collect()
    assert answer.status == "Success"
    assert states(t) == ["aborted"]
    (answer,) = t.sql(f"ABORT COMPACTIONS {row.compactionid}").collect()
    assert answer.status == "Error" and "aborted" in answer.message


def test_nothing_to_merge_is_refused_and_said_so(acid, caplog):
    fill(acid, KINDS["plain"], "1, 'a'")
    row = acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT").first()
    reason = "There is nothing to compact: default.t is one directory, delta_0000001_0000001_0000."
    assert (row.state, row.message) == ("refused", reason)
    assert f"refused: {reason}" in str(acid.last)
    assert "refused: None of the compaction thresholds met" in caplog.text
    assert directories(acid) == ["delta_0000001_0000001_0000"]


@needs("can_clean")  # Hive tells the entry whose cleaning waits
def test_a_request_says_at_once_that_there_is_nothing_to_compact(t, other):
    compact(t, "major")
    clean(t)
    (base,) = {row.directory for row in t.files("t").where("state = 'visible'").collect()}
    row = t.sql("ALTER TABLE t COMPACT 'major' POOL 'nobody'").first()
    reason = f"There is nothing to compact: default.t is one directory, {base}."
    assert (row.state, row.message) == ("initiated", reason)
    t.sql(f"ABORT COMPACTIONS {row.compactionid}")
    other.sql("BEGIN")
    other.sql("INSERT INTO t VALUES (9, 'open')")
    t.sql("INSERT INTO t VALUES (10, 'above it')")
    row = t.sql("ALTER TABLE t COMPACT 'minor' POOL 'nobody'").first()
    assert "is open (SHOW TRANSACTIONS), default.t is one directory" in row.message
    other.sql("ROLLBACK")


def test_each_partition_has_a_row_in_the_result_of_a_compaction(acid):
    fill(acid, KINDS["partitioned"], "1, 'a', 1", "2, 'b', 2")
    acid.sql("INSERT INTO t VALUES (3, 'c', 1)")
    found = acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT").collect()
    assert [(row.partname, row.type, row.state) for row in found] == [
        ("p=1", "MAJOR", "ready for cleaning"), ("p=2", "MAJOR", "refused"),
    ]  # fmt: skip
    assert OVER_HIVE or "read 2 directories" in found[0].message
    assert "default.t/p=2 is one directory" in found[1].message


def test_a_partitioned_table_is_compacted_partition_by_partition(acid):
    fill(acid, KINDS["partitioned"], "1, 'a', 1", "2, 'b', 2")
    acid.sql("INSERT INTO t VALUES (3, 'c', 1), (4, 'd', 2)")
    with pytest.raises(AnalysisError, match="no such partition"):
        acid.sql("ALTER TABLE t PARTITION (p = 3) COMPACT 'major'")
    found = acid.compact("t", wait=True).collect()
    assert sorted((row.partname, row.state) for row in found) == [
        ("p=1", "ready for cleaning"), ("p=2", "ready for cleaning"),
    ]  # fmt: skip
    assert directories(acid) == ["p=1/base_0000002", "p=2/base_0000002"]


def test_without_partition_or_with_some_columns_all_of_the_partitions_are_compacted(acid):
    acid.sql("CREATE TABLE t (id INT) PARTITIONED BY (p INT, q STRING)")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")  # there is no partition yet
    for id in (1, 2):
        acid.sql(f"INSERT INTO t VALUES ({id}, 1, 'x'), ({id}, 1, NULL), ({id}, 2, 'a/b')")
    acid.sql("INSERT INTO t VALUES (3, 3, 'one delta')")
    plan = acid.sql("EXPLAIN ALTER TABLE t COMPACT 'major'").first()[0]
    assert plan.count("writes base_0000002") == 3 and plan.count("nothing to merge") == 1
    compact(acid, "major", partition="PARTITION (p = 1)")
    assert str(acid.last).count("ready for cleaning") == 2
    found = rows(acid, "SHOW COMPACTIONS t")
    assert sorted(row[3] for row in found) == ["p=1/q=__HIVE_DEFAULT_PARTITION__", "p=1/q=x"]
    acid.sql("ALTER TABLE t COMPACT 'minor' AND WAIT")
    assert "refused" in str(acid.last) and "ready for cleaning" in str(acid.last)
    assert {name for name in directories(acid) if "delta" in name} == {
        "p=2/q=a%2Fb/delta_0000001_0000002", "p=3/q=one delta/delta_0000003_0000003_0000",
    }  # fmt: skip


@on_a_disk
def test_if_one_of_the_partitions_cannot_be_compacted_the_others_are(acid):
    fill(acid, KINDS["partitioned"], "1, 'a', 1", "1, 'b', 2", "1, 'c', 3")
    acid.sql("INSERT INTO t VALUES (2, 'a', 1), (2, 'b', 2), (2, 'c', 3)")
    damaged = next(row.path for row in acid.files("t").where("partition = 'p=2'").collect())
    Path(damaged).write_bytes(b"no ORC" * 100)
    with pytest.raises(AcidSqlError, match="p=2"):
        acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    shown = acid.sql("SHOW COMPACTIONS t").select("partname", "state").collect()
    assert sorted(map(tuple, shown)) == [
        ("p=1", "ready for cleaning"), ("p=2", "failed"), ("p=3", "ready for cleaning"),
    ]  # fmt: skip


def test_explain_says_what_would_be_done_and_does_nothing(t):
    before = directories(t)
    plan = t.sql("EXPLAIN ALTER TABLE t COMPACT 'major'").first()[0]
    assert "writes base_0000005" in plan
    assert "drops, with the rows that they name: 3 delete events" in plan
    assert "reads 6 directories" in plan
    plan = t.sql("EXPLAIN ALTER TABLE t COMPACT 'minor'").first()[0]
    assert "writes delta_0000001_0000005, delete_delta_0000001_0000005" in plan
    assert directories(t) == before and states(t) == []


def test_a_transaction_must_be_over_first(t):
    t.sql("BEGIN")
    with pytest.raises(AcidSqlError, match="cannot be part of a transaction"):
        t.sql("ALTER TABLE t COMPACT 'major'")
    with pytest.raises(AcidSqlError, match="COMMIT or ROLLBACK"):
        t.compact("t")
    t.sql("ROLLBACK")


@on_a_disk
def test_table_properties_of_the_request_are_those_of_the_files(t):
    t.sql(
        "ALTER TABLE t COMPACT 'major' AND WAIT "
        "WITH OVERWRITE TBLPROPERTIES ('tblprops.orc.compress'='ZLIB')"
    )
    (path,) = {row.path for row in t.files("t").where("kind = 'base'").collect()}
    with open(path, "rb") as file:
        assert pyorc.Reader(file).compression is pyorc.CompressionKind.ZLIB


def test_hive_4s_names_are_used_where_they_are_asked_for(t):
    before = with_ids(t)
    if not OVER_HIVE:  # there all names are Hive's
        t.sql("SET acidsql.compactor.visibility.id = true")
    for kind in ("minor", "major"):
        compact(t, kind)
        assert with_ids(t) == before
        t.sql("INSERT INTO t VALUES (77, 'x')")
        before = with_ids(t)
        compacted = {row.directory for row in t.files("t").where("state = 'visible'").collect()}
        assert any("_v00" in name for name in compacted)


# ── readers, writers and the cleaner ─────────────────────────────────────────────────────────


def test_an_old_snapshot_keeps_its_files_and_its_rows(t, other):
    with other.snapshot():
        before = with_ids(other)
        t.sql("DELETE FROM t WHERE id = 3")
        compact(t, "minor")
        assert with_ids(other) == before
        t.sql("INSERT INTO t VALUES (6, 'f')")
        compact(t, "major")
        assert with_ids(other) == before
        assert not clean(t)
        assert with_ids(other) == before


@needs("can_clean")
def test_what_nobody_can_read_any_more_is_deleted(spark, acid, t):
    before = with_ids(t)
    compact(t, "major")
    # This session has read, so the files that its DataFrames may need are kept.
    assert t.clean().count() == 0
    t.close()
    with beside(acid, compactor="off") as fresh:
        removed = fresh.clean().collect()
        assert {row.kind for row in removed} == {"obsolete"}
        assert all(not os.path.exists(row.path) for row in removed)
        assert len(removed) == 6 and sum(row.bytes for row in removed) > 0
        assert with_ids(fresh) == before
        assert states(fresh) == ["succeeded"]
        found = fresh.files("t").select("state").distinct().collect()
        assert [row.state for row in found] == ["visible"]
        assert fresh.clean().count() == 0


def test_a_snapshot_whose_holder_has_died_fails_and_shows_no_wrong_rows(t, other):
    with other.snapshot():
        (lease,) = [
            row.txnid for row in t.sql("SHOW TRANSACTIONS").collect()
            if int(row.txnid) == other._runner.transactions._pinned_txn.id
        ]  # fmt: skip
        t.sql("DELETE FROM t WHERE id = 3")
        compact(t, "major")
        t.sql(f"ABORT TRANSACTIONS {lease}")
        with pytest.raises(AcidSqlError):
            with_ids(other)


def test_a_transaction_that_was_open_goes_on_and_deletes_what_was_compacted(t, other):
    other.sql("BEGIN")
    assert rows(other, "SELECT count(*) FROM t") == [(4,)]
    compact(t, "major")
    other.sql("DELETE FROM t WHERE id = 3")
    other.sql("INSERT INTO t VALUES (6, 'f')")
    assert rows(other, "SELECT id FROM t") == [(1,), (4,), (5,), (6,)]
    other.sql("COMMIT")
    assert rows(t, "SELECT id FROM t") == [(1,), (4,), (5,), (6,)]
    compact(t, "major")
    assert rows(t, "SELECT id FROM t") == [(1,), (4,), (5,), (6,)]


def test_what_is_open_is_not_taken_and_what_comes_after_waits(t, other):
    other.sql("BEGIN")
    other.sql("INSERT INTO t VALUES (6, 'open')")
    t.sql("INSERT INTO t VALUES (7, 'later')")
    plan = t.sql("EXPLAIN ALTER TABLE t COMPACT 'major'").first()[0]
    assert "up to write id 5: 6 is open" in plan
    compact(t, "major")
    assert directories(t) == ["base_0000005", "delta_0000007_0000007_0000"]
    other.sql("COMMIT")
    assert rows(t, "SELECT id FROM t") == [(1,), (3,), (4,), (5,), (6,), (7,)]


@needs("can_clean")
def test_what_aborted_transactions_have_left_is_deleted_and_forgotten(t, other):
    other.sql("BEGIN")
    other.sql("INSERT INTO t VALUES (6, 'never')")
    txn_id = other._runner.transactions.current.id
    t.sql(f"ABORT TRANSACTIONS {txn_id}")
    (left,) = directories(t, "aborted")
    assert left == "delta_0000006_0000006_0000"
    assert [row.kind for row in t.clean().collect()] == ["aborted"]
    assert directories(t, "aborted") == []
    assert t.metastore.aborted_write_ids(t._table("t").name) == []
    assert rows(t, "SELECT id FROM t") == [(1,), (3,), (4,), (5,)]


@on_a_disk
@needs("can_clean")
def test_hidden_directories_of_the_dead_and_dropped_tables_are_deleted(t):
    place = t._table("t").location
    os.makedirs(f"{place}/_tmp_compaction_1_dead")
    os.makedirs(f"{place}/_tmp_0000001_0000_dead")
    os.makedirs(f"{place}/_tmp_source_0000001_dead")
    os.makedirs(f"{place}/_mine")
    deleted = [os.path.basename(row.path).partition(".")[0] for row in t.clean().collect()]
    assert sorted(deleted) == [
        "_tmp_0000001_0000_dead", "_tmp_compaction_1_dead", "_tmp_source_0000001_dead",
    ]  # fmt: skip
    assert os.path.exists(f"{place}/_mine")


@pytest.mark.usefixtures("way")
@on_a_disk
def test_a_failure_is_told_and_changes_nothing(t):
    before = with_ids(t)
    (path, *_) = [row.path for row in t.files("t").where("kind = 'delta'").collect()]
    content = Path(path).read_bytes()
    Path(path).write_bytes(b"no ORC" * 100)
    with pytest.raises(AcidSqlError):
        compact(t, "major")
    (row,) = t.sql("SHOW COMPACTIONS t").collect()
    assert row.state == "failed" and row.errormessage != " --- "
    Path(path).write_bytes(content)
    assert with_ids(t) == before
    assert not [name for name in os.listdir(t._table("t").location) if name.startswith("_")]


# ── rebalance ────────────────────────────────────────────────────────────────────────────────


@needs("can_rebalance")
def test_a_rebalance_evens_the_buckets_out_and_keeps_the_rows(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("INSERT INTO t SELECT INT(id), 'a' FROM range(0, 30, 1, 1)")
    acid.sql("INSERT INTO t SELECT INT(id), 'b' FROM range(30, 33, 1, 3)")
    acid.sql("DELETE FROM t WHERE id % 10 = 0")
    before = rows(acid, "SELECT * FROM t")
    acid.sql("ALTER TABLE t COMPACT 'rebalance' CLUSTERED INTO 4 BUCKETS AND WAIT")
    assert rows(acid, "SELECT * FROM t") == before
    files = acid.files("t").where("state = 'visible'").collect()
    assert sorted((row.bucket, row.rows) for row in files) == [(0, 8), (1, 8), (2, 8), (3, 5)]
    ids = [row[0] for row in with_ids(acid)]
    assert sorted(id.rowid for id in ids) == list(range(29))
    acid.sql("DELETE FROM t WHERE id = 31")
    acid.sql("UPDATE t SET v = 'c' WHERE id < 5")
    assert rows(acid, "SELECT count(*) FROM t WHERE v = 'c'") == [(4,)]
    before = rows(acid, "SELECT * FROM t")
    acid.sql("ALTER TABLE t COMPACT 'rebalance' CLUSTERED INTO 2 BUCKETS AND WAIT ORDER BY id DESC")
    assert rows(acid, "SELECT * FROM t") == before
    by_row_id = sorted((row[0].rowid, row[1]) for row in with_ids(acid))
    assert [id for _, id in by_row_id] == sorted((id for _, id in by_row_id), reverse=True)


@needs("can_rebalance")
def test_a_table_that_is_one_base_is_rebalanced(acid, other):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t SELECT INT(id) FROM range(0, 30, 1, 1)")
    acid.sql("INSERT INTO t VALUES (30)")
    compact(acid, "major")
    assert directories(acid) == ["base_0000002"]
    other.sql("BEGIN")
    assert rows(other, "SELECT count(*), sum(id) FROM t") == [(31, 465)]
    for buckets in (4, 2):
        acid.sql(f"ALTER TABLE t COMPACT 'rebalance' CLUSTERED INTO {buckets} BUCKETS AND WAIT")
        assert rows(acid, "SELECT count(*), sum(id) FROM t") == [(31, 465)]
        files = acid.files("t").where("state = 'visible'").collect()
        assert sorted(row.bucket for row in files) == list(range(buckets))
        assert rows(other, "SELECT count(*), sum(id) FROM t") == [(31, 465)]
    assert directories(acid) == ["base_0000004"]
    with pytest.raises(WriteConflictError):
        other.sql("DELETE FROM t WHERE id = 3")
        other.sql("COMMIT")
    other.sql("ROLLBACK")
    acid.sql("UPDATE t SET id = 100 WHERE id = 3")
    assert rows(acid, "SELECT count(*), sum(id) FROM t") == [(31, 562)]


@needs("can_rebalance")
def test_a_rebalance_of_a_base_waits_for_who_has_the_next_write_id(acid, other):
    fill(acid, KINDS["plain"], "1, 'a'")
    acid.sql("INSERT INTO t VALUES (2, 'b')")
    compact(acid, "major")
    other.sql("BEGIN")
    other.sql("INSERT INTO t VALUES (3, 'c')")
    with pytest.raises(AcidSqlError, match="is open still"):
        acid.sql("ALTER TABLE t COMPACT 'rebalance' CLUSTERED INTO 2 BUCKETS AND WAIT")
    other.sql("COMMIT")
    acid.sql("ALTER TABLE t COMPACT 'rebalance' CLUSTERED INTO 2 BUCKETS AND WAIT")
    assert rows(acid, "SELECT id FROM t") == [(1,), (2,), (3,)]


@needs("can_rebalance")
def test_who_deletes_by_old_row_ids_loses_to_a_rebalance(t, other):
    other.sql("BEGIN")
    assert rows(other, "SELECT count(*) FROM t") == [(4,)]
    t.sql("ALTER TABLE t COMPACT 'rebalance' CLUSTERED INTO 2 BUCKETS AND WAIT")
    with pytest.raises(WriteConflictError):
        other.sql("DELETE FROM t WHERE id = 3")
        other.sql("COMMIT")
    assert rows(t, "SELECT id FROM t") == [(1,), (3,), (4,), (5,)]


@needs("can_rebalance")
@pytest.mark.parametrize("layout", ["bucketed", "insert_only"])
def test_only_full_acid_tables_without_buckets_are_rebalanced(acid, layout):
    fill(acid, KINDS[layout].replace(" TBLPROPERTIES", "\nTBLPROPERTIES"))
    acid.sql("INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(AcidSqlError, match="rebalance"):
        compact(acid, "rebalance")


# ── unasked ──────────────────────────────────────────────────────────────────────────────────


def connected(spark, acid, mode, **settings):
    chosen = {name.replace("_", "."): value for name, value in settings.items()}
    chosen["acidsql.hive.compactor"] = "session"  # over a Hive Metastore, Hive compacts unasked
    return beside(acid, compactor=mode, settings=chosen)


def test_inline_a_statement_compacts_what_it_made_necessary_and_says_why(spark, acid):
    with connected(spark, acid, "inline") as session:
        session.sql("CREATE TABLE t (id INT)")
        for id in range(10):
            session.sql(f"INSERT INTO t VALUES ({id})")
        assert "10 deltas, no base; below the thresholds" in str(session.last)
        session.sql("INSERT INTO t VALUES (10)")
        assert ": 11 deltas, more than 10, no base" in str(session.last)
        assert directories(session) == ["base_0000011"]
        session.sql("DELETE FROM t WHERE id < 5")
        assert "of the base's bytes, more than 10.0%" in str(session.last)
        assert rows(session, "SELECT count(*) FROM t") == [(6,)]


@needs("compactions of some deltas")
def test_small_changes_do_not_rewrite_a_large_delta_again_and_again(spark, acid):
    few = {"hive_compactor_delta_num_threshold": "4", "hive_compactor_delta_pct_threshold": "99"}
    with connected(spark, acid, "inline", **few) as session:
        session.sql("CREATE TABLE t (id INT, v STRING)")
        session.sql("INSERT INTO t VALUES (1, 'a')")
        session.sql("INSERT INTO t VALUES (2, 'b')")
        compact(session, "major")
        session.sql("INSERT INTO t SELECT id, md5(string(id)) FROM range(100, 3100)")
        model = {1: "a", 2: "b", **{id: hashlib.md5(b"%d" % id).hexdigest()
                                    for id in range(100, 3100)}}  # fmt: skip
        for id in range(3, 9):
            session.sql(f"INSERT INTO t VALUES ({id}, 'c')")
            session.sql(f"UPDATE t SET v = 'u{id}' WHERE id IN ({id - 1}, {100 * id})")
            session.sql(f"DELETE FROM t WHERE id IN ({id - 2}, {100 * id + 1})")
            model |= {id: "c", id - 1: f"u{id}", 100 * id: f"u{id}"}
            del model[id - 2]
            del model[100 * id + 1]
        assert dict(rows(session, "SELECT id, v FROM t")) == model
        assert "delta_0000003_0000003_0000" in directories(session)
        assert len(directories(session)) <= 8
        done = session.sql("SHOW COMPACTIONS t TYPE 'minor'").collect()
        assert len(done) == 3  # the history keeps so many
        told = r"takes the newest \d of \d directories, from .*; read"
        assert all(re.search(told, one.errormessage) for one in done)
        asked = "WITH OVERWRITE TBLPROPERTIES ('acidsql.compactor.strategy'='size_tiered')"
        plan = session.sql(f"EXPLAIN ALTER TABLE t COMPACT 'minor' {asked}").first()[0]
        assert "takes the newest" in plan
        assert "takes" not in session.sql("EXPLAIN ALTER TABLE t COMPACT 'minor'").first()[0]
        session.clean()
        compact(session, "major")
        assert dict(rows(session, "SELECT id, v FROM t")) == model


def test_in_the_background_it_happens_by_itself(spark, acid):
    with connected(spark, acid, "background", hive_compactor_delta_num_threshold="3") as session:
        session.sql("CREATE TABLE t (id INT) PARTITIONED BY (p INT)")
        for id in range(4):
            session.sql(f"INSERT INTO t VALUES ({id}, 1)")
        receipt = session.last
        _until(lambda: "p=1/base_0000004" in directories(acid))
        _until(lambda: any("4 deltas, more than 3" in line for line in receipt.compaction))
        assert rows(session, "SELECT count(*) FROM t") == [(4,)]
    acid.close()
    with beside(acid, compactor="off") as fresh:
        if fresh.metastore.abilities.can_clean:
            clean(fresh)
            assert directories(fresh, "obsolete") + directories(fresh, "history") == []
        assert rows(fresh, "SELECT id FROM t") == [(0,), (1,), (2,), (3,)]


def test_a_table_may_have_thresholds_of_its_own_or_be_left_alone(spark, acid):
    with connected(spark, acid, "inline") as session:
        session.sql(
            "CREATE TABLE t (id INT) TBLPROPERTIES "
            "('compactorthreshold.hive.compactor.delta.num.threshold'='2')"
        )
        for id in range(3):
            session.sql(f"INSERT INTO t VALUES ({id})")
        assert directories(session) == ["base_0000003"]
        session.sql("CREATE TABLE u (id INT) TBLPROPERTIES ('NO_AUTO_COMPACTION'='true')")
        for id in range(12):
            session.sql(f"INSERT INTO u VALUES ({id})")
        assert "NO_AUTO_COMPACTION is set" in str(session.last)
        assert len(directories(session, name="u")) == 12


def test_after_two_failures_it_is_not_tried_again_unasked(spark, acid, monkeypatch):
    from acidsql.storage.folding.compact import CompactionRun

    def fail(*_, **__):
        raise WriteError("the disk is full")

    for name in ("run_in_driver", "run"):
        monkeypatch.setattr(CompactionRun, name, fail)
    with connected(spark, acid, "inline", hive_compactor_delta_num_threshold="1") as session:
        session.sql("CREATE TABLE t (id INT)")
        for id in range(4):
            session.sql(f"INSERT INTO t VALUES ({id})")
        assert "the last 2 compactions failed" in str(session.last)
        told = [] if OVER_HIVE else ["did not initiate"]  # Hive's history takes no word of ours
        assert sorted(states(session)) == [*told, "failed", "failed"]
        monkeypatch.undo()
        compact(session, "major")
        session.sql("INSERT INTO t VALUES (9), (10)")
        assert rows(session, "SELECT count(*) FROM t") == [(6,)]


def test_who_wants_to_drop_the_table_does_not_wait_for_the_compactor(spark, acid, monkeypatch):
    from acidsql.storage.folding import compact as compacting

    begun, run = threading.Event(), compacting._run_fold_job

    def slowly(spark, folds, spec):
        begun.set()
        frame = spark.range(0, 1, 1, 1)
        frame.mapInArrow(_sleep, "id bigint").collect()
        return run(spark, folds, spec)

    monkeypatch.setattr(compacting, "_run_fold_job", slowly)
    chosen = {"hive_compactor_delta_num_threshold": "1", "acidsql_driver_max_rows": "0"}
    with connected(spark, acid, "background", **chosen) as session:
        session.sql("CREATE TABLE t (id INT)")
        session.sql("INSERT INTO t VALUES (1)")
        session.sql("INSERT INTO t VALUES (2)")
        assert begun.wait(20)
        started = time.monotonic()
        acid.sql("DROP TABLE t")
        assert time.monotonic() - started < 20


def _sleep(batches):
    import time

    time.sleep(40)
    yield from batches


def _until(condition, seconds=40):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.2)
