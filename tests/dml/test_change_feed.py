"""The changes of tables. Random histories are in ``test_time_travel``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kit import fill, refused, rows
from over_hive import beside, needs
from pyspark.errors import PySparkException

from acidsql.errors import (
    CatalogError,
    SnapshotTooOldError,
    UnsupportedError,
    VersionNotFoundError,
)
from acidsql.storage.reading.events import partners

pytestmark = [pytest.mark.spark, needs("keeps_versions")]


def shown(changes: Any) -> list[tuple[Any, ...]]:
    """Version, kind and row of each change, in this order."""
    return sorted(
        (one._commit_version, one._change_type, *one[: len(one) - 5]) for one in changes.collect()
    )


@pytest.fixture
def t(acid):
    """A table after an insert (1), an update (2), and a transaction of three statements (3)."""
    fill(acid, "t (id INT, v STRING)", "1, 'a'", "2, 'b'", "3, 'c'")
    acid.sql("UPDATE t SET v = 'x' WHERE id = 1")
    with acid.transaction():
        acid.sql("INSERT INTO t VALUES (9, 'never seen')")
        acid.sql("UPDATE t SET v = 'seen' WHERE id = 9")
        acid.sql("DELETE FROM t WHERE id = 2")
    return acid


def test_each_version_shows_what_it_changed(t):
    assert shown(t.changes("t", 1)) == [
        (1, "insert", 1, "a"), (1, "insert", 2, "b"), (1, "insert", 3, "c"),
        (2, "delete", 1, "a"), (2, "insert", 1, "x"),
        (3, "delete", 2, "b"), (3, "insert", 9, "seen"),
    ]  # fmt: skip
    # Of the transaction alone: no other directory makes its own deletions be looked for.
    assert shown(t.changes("t", 3, 3)) == [(3, "delete", 2, "b"), (3, "insert", 9, "seen")]
    found = t.changes("t", 2, 2)
    assert found.columns == [
        "id", "v", "_change_type", "_commit_version", "_commit_timestamp", "_txn_id", "row__id",
    ]  # fmt: skip
    (told,) = t.history("t").where("version = 2").collect()
    known = {(one._commit_timestamp, one._txn_id) for one in found.collect()}
    assert known == {(told.timestamp, told.txnId)}
    gone = t.table("t", row_id=True, version=1).where("id = 1").first()
    assert found.where("_change_type = 'delete'").first().row__id == gone.row__id


def test_keys_make_pairs_of_deletions_and_insertions(t):
    pairs = [(2, "update_postimage", 1, "x"), (2, "update_preimage", 1, "a")]
    assert shown(t.changes("t", 2, 2, keys=["ID"])) == pairs
    t.sql("ALTER TABLE t SET TBLPROPERTIES ('acidsql.key' = 'id')")
    assert shown(t.changes("t", 2, 2)) == pairs
    assert shown(t.changes("t", 2, 2, keys=[])) == [(2, "delete", 1, "a"), (2, "insert", 1, "x")]
    with pytest.raises(CatalogError, match="no column 'nope'"):
        t.changes("t", 1, keys=["nope"])
    assert shown(t.changes("t", 2, 2, keys="id")) == shown(t.changes("t", 2, 2, keys=["id"]))
    t.sql("INSERT INTO t VALUES (3, 'again'), (NULL, 'n'), (NULL, 'm')")
    t.sql("UPDATE t SET v = 'y' WHERE id = 3")
    assert {one._change_type for one in t.changes("t", 4, 4).collect()} == {"insert"}
    with pytest.raises(PySparkException, match="two rows of one version have the same key"):
        t.changes("t", 5, 5).collect()


def test_net_changes_are_what_is_different_in_the_end(t):
    t.sql("UPDATE t SET v = 'xx' WHERE id = 1")
    t.sql("DELETE FROM t WHERE id = 9")
    assert shown(t.changes("t", 2, net=True)) == [
        (2, "delete", 1, "a"), (3, "delete", 2, "b"), (4, "insert", 1, "xx"),
    ]  # fmt: skip
    assert shown(t.changes("t", 2, net=True, keys=["id"])) == [
        (2, "update_preimage", 1, "a"), (3, "delete", 2, "b"), (4, "update_postimage", 1, "xx"),
    ]  # fmt: skip


VALUES = {  # by type: a value, another one, and the first one again
    "INT": ("1", "2", "1"),
    "STRING": ("NULL", "'x'", "NULL"),
    "DOUBLE": ("double('NaN')", "1D", "double('NaN')"),
    "FLOAT": ("0F", "1F", "-0F"),
    "BINARY": ("X'00FF'", "X'00'", "X'00FF'"),
    "DECIMAL(5,2)": ("1.10", "1.2", "1.1"),
    "CHAR(3)": ("'a'", "'b'", "'a '"),
    "TIMESTAMP": ("TIMESTAMP'2024-01-01 01:02:03.000001'", "NULL",
                  "TIMESTAMP'2024-01-01 01:02:03.000001'"),
    "ARRAY<STRUCT<f: INT, m: MAP<STRING, INT>>>": (
        "array(named_struct('f', 1, 'm', map('a', 1, 'b', 2)), NULL)", "array()",
        "array(named_struct('f', 1, 'm', map('b', 2, 'a', 1)), NULL)"),
    "MAP<INT, ARRAY<DOUBLE>>": (
        "map(1, array(0D, NULL), 2, NULL)", "map(1, array(0D))",
        "map(2, NULL, 1, array(-0D, NULL))"),
}  # fmt: skip


@pytest.mark.parametrize("by", ["", "PARTITIONED BY (p STRING)"])
def test_a_row_that_is_as_it_was_is_no_net_change(acid, by):
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(VALUES))
    more = ", CAST(NULL AS STRING)" if by else ""
    acid.sql(f"CREATE TABLE t (id INT, {columns}) {by}")
    literals = [", ".join(values) for values in zip(*VALUES.values(), strict=True)]
    ids = "(SELECT id FROM VALUES (1), (2), (2), (3) AS i (id))"
    acid.sql(f"INSERT INTO t SELECT id, {literals[0]}{more} FROM {ids}")
    for values in literals[1:]:  # each time, all rows are written anew
        acid.sql(f"INSERT OVERWRITE t SELECT id, {values}{more} FROM {ids}")
    assert acid.changes("t", 2, net=True).collect() == []
    acid.sql("DELETE FROM t WHERE id > 1")
    acid.sql(f"INSERT INTO t SELECT 2, {literals[0]}{more}")
    acid.sql(f"INSERT INTO t SELECT 4, {literals[1]}{more}")
    # Only one of the two equal rows came back.
    assert [(kind, number) for _, kind, number, *_ in shown(acid.changes("t", 2, net=True))] == [
        ("delete", 2), ("delete", 3), ("insert", 4),
    ]  # fmt: skip
    keyed = acid.changes("t", 1, net=True, keys=["id"]).where("id <> 3")
    assert {(row._change_type, row.id) for row in keyed.collect()} == {
        ("insert", 1), ("insert", 2), ("insert", 4),
    }  # fmt: skip


def test_an_overwrite_deletes_all_rows_and_a_truncate_too(t):
    t.sql("INSERT OVERWRITE t VALUES (5, 'o')")
    t.sql("INSERT INTO t VALUES (6, 'p')")
    t.sql("TRUNCATE TABLE t")
    last = [
        (4, "delete", 1, "x"), (4, "delete", 3, "c"), (4, "delete", 9, "seen"),
        (4, "insert", 5, "o"), (5, "insert", 6, "p"), (6, "delete", 5, "o"), (6, "delete", 6, "p"),
    ]  # fmt: skip
    assert shown(t.changes("t", 4)) == last
    assert shown(t.changes("t", 3)) == [(3, "delete", 2, "b"), (3, "insert", 9, "seen"), *last]
    assert shown(t.changes("t", 5, 6, net=True)) == [(6, "delete", 5, "o")]


def test_a_query_joins_and_copies_changes(t):
    t.sql("CREATE TABLE gone (id INT, at BIGINT)")
    t.sql(
        "INSERT INTO gone SELECT id, _commit_version FROM table_changes('default.t', :first) c "
        "WHERE c._change_type = 'delete' AND id NOT IN (SELECT id FROM t)",
        {"first": 1},
    )
    assert rows(t, "SELECT * FROM gone") == [(2, 3)]
    t.sql(
        "MERGE INTO gone USING (SELECT * FROM table_changes('t', 2, 2) "
        "WHERE _change_type = 'insert') s ON gone.id = s.id "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.row__id.writeid)"
    )
    assert rows(t, "SELECT * FROM gone") == [(1, 2), (2, 3)]
    assert rows(t, "SELECT count(*) FROM table_changes('t', 1) JOIN t USING (id)") == [(5,)]
    times = "SELECT a.id FROM table_changes('t', ?, ?) a, t TIMESTAMP AS OF ? b WHERE a.id = ?"
    now = datetime.now(UTC)
    assert t.sql(times, [2, 2, now, 1]).count() == 2 * 3
    assert "HashAggregate" in t.sql("EXPLAIN SELECT count(*) FROM table_changes('t', 1)").first()[0]
    t.sql("CREATE TEMPORARY VIEW recent AS SELECT id FROM table_changes('t', 3)")
    assert rows(t, "SELECT * FROM recent") == [(2,), (9,)]
    t.spark.catalog.dropTempView("recent")


def test_times_are_those_of_commits_which_may_have_another_order(acid):
    fill(acid, "t (id INT)", "0")
    with beside(acid, compactor="off") as other:
        other.sql("BEGIN")
        other.sql("INSERT INTO t VALUES (2)")
        acid.sql("INSERT INTO t VALUES (3)")
        acid.sql("DELETE FROM t WHERE id = 0")
        other.sql("COMMIT")
    late = acid.history("t").where("version = 2").first().timestamp
    before = (late - timedelta(milliseconds=1)).isoformat()
    deleted = acid.history("t").where("version = 4").first().timestamp
    assert shown(acid.changes("t", late)) == [(2, "insert", 2)]
    assert (2, "insert", 2) not in shown(acid.changes("t", deleted, before))
    said = f"table_changes('t', TIMESTAMP'{late.isoformat(sep=' ')}')"
    assert rows(acid, f"SELECT id FROM {said}") == [(2,)]


def test_a_transaction_sees_its_own_changes_before_it_commits(t):
    with t.transaction():
        t.sql("DELETE FROM t WHERE id = 3")
        (own,) = t.changes("t", 4).collect()
        assert (own.id, own._change_type, own._commit_version) == (3, "delete", 4)
        assert (own._commit_timestamp, own._txn_id) == (None, None)


def test_only_files_that_may_have_a_change_are_read(acid, monkeypatch):
    """All other files are spoilt, so nobody can have opened one of them."""
    acid.sql("CREATE TABLE t (id INT, v STRING) CLUSTERED BY (id) INTO 4 BUCKETS")
    for start in (0, 100, 200):
        acid.sql(f"INSERT INTO t SELECT INT(id), 'v' FROM range({start}, {start + 100})")
    acid.sql("UPDATE t SET v = 'w' WHERE id = 107")
    acid.sql("UPDATE t SET v = 'w' WHERE id = 7")
    files = [path.rsplit("/", 2)[1:] for path in acid.changes("t", 5).inputFiles()]
    read = {"delta_0000001_0000001_0000", "delta_0000005_0000005_0001"}
    assert {directory for directory, _ in files} == read
    (bucket,) = {bucket for _, bucket in files}
    wanted = [(5, "delete", 7, "v"), (5, "insert", 7, "w")]
    spoilt = 0
    for path in Path(acid.warehouse, "t").rglob("bucket_*"):
        if path.name != bucket or path.parent.name.removeprefix("delete_")[6:13] not in (
            "0000001", "0000005",
        ):  # fmt: skip
            path.write_bytes(bytes(path.stat().st_size))
            spoilt += 1
    assert spoilt >= 12
    assert shown(acid.changes("t", 5)) == wanted
    monkeypatch.setattr(partners, "FEW_BYTES", -1)  # then Spark reads the delete events, too
    assert len(acid.changes("t", 5).inputFiles()) == 3
    assert shown(acid.changes("t", 5)) == wanted


def test_a_snapshot_of_a_time_shows_the_changes_until_then(t):
    third = t.history("t").where("version = 3").first().txnId
    t.sql("DELETE FROM t WHERE id = 1")
    with t.snapshot(txn_id=third):
        assert shown(t.changes("t", 2)) == shown(t.changes("t", 2, 3))
        with pytest.raises(VersionNotFoundError):
            t.changes("t", 4)
    assert (4, "delete", 1, "x") in shown(t.changes("t", 2))


def test_files_without_events_have_changes_too(acid, tmp_path):
    """Rows of LOAD DATA and of a converted table have no row ids in their files."""
    spark = acid.spark
    for name, ids in (("old", [1, 2]), ("new", [3, 4])):
        spark.createDataFrame([(id,) for id in ids], "id INT").coalesce(1).write.orc(
            str(tmp_path / name)
        )
    acid.sql(f"CREATE TABLE t (id INT) LOCATION '{tmp_path}/old'")
    start = acid.history("t").first().version + 1
    acid.sql(f"LOAD DATA INPATH '{tmp_path}/new' INTO TABLE t")
    acid.sql("DELETE FROM t WHERE id IN (1, 4)")
    kinds = [found[1:] for found in shown(acid.changes("t", start))]
    assert kinds == [("insert", 3), ("insert", 4), ("delete", 1), ("delete", 4)]


def test_a_deleted_row_of_a_compacted_converted_table_is_shown(acid, tmp_path):
    """Hive's number of a base with nothing but files of before the conversion is below 0."""
    acid.spark.createDataFrame([(1,), (2,)], "id INT").coalesce(1).write.orc(str(tmp_path / "old"))
    acid.sql(f"CREATE TABLE t (id INT) LOCATION '{tmp_path}/old'")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert (tmp_path / "old" / "base_-9223372036854775808").exists()
    acid.sql("DELETE FROM t WHERE id = 1")
    deleted = acid.last.counts[0].write_id
    assert shown(acid.changes("t", deleted)) == [(deleted, "delete", 1)]


def test_changes_cannot_be_followed_across_a_rebalance(t):
    t.sql("ALTER TABLE t COMPACT 'rebalance' CLUSTERED INTO 2 BUCKETS AND WAIT")
    t.sql("DELETE FROM t WHERE id = 3")
    first = t.last.counts[0].write_id
    assert first == 5  # the rebalance has a write id of its own
    assert shown(t.changes("t", first)) == [(first, "delete", 3, "c")]
    assert shown(t.changes("t", 2, 2)) == [(2, "delete", 1, "a"), (2, "insert", 1, "x")]
    with pytest.raises(SnapshotTooOldError, match="rebalance"):
        t.changes("t", 3)


def test_wrong_ranges_and_tables_are_refused_with_a_reason(t):
    for range_, why in {
        (0,): "the versions 1 to 3",
        (4,): "the versions 1 to 3",
        (3, 2): "begins after its end",
        (1, 4): "no version 4",
        ("1999-01-01",): "Nothing is known",
        ("2999-01-01",): "after now",
        ("yesterday?",): "no time",
    }.items():
        with pytest.raises(VersionNotFoundError, match=why):
            t.changes("t", *range_)
    t.sql("CREATE TABLE plain (id INT) TBLPROPERTIES ('transactional_properties'='insert_only')")
    t.sql("INSERT INTO plain VALUES (1)")
    with pytest.raises(UnsupportedError, match="insert-only"):
        t.changes("plain", 1)
    t.sql("CREATE TABLE odd (id INT, _Change_Type STRING)")
    with pytest.raises(UnsupportedError, match="'_change_type'"):
        t.changes("odd", 1)
    for call, condition, at in [
        ("table_changes('t')", "PARSE_SYNTAX_ERROR", "table_changes('t')"),
        ("table_changes('t', 1, 2, 3)", "PARSE_SYNTAX_ERROR", None),
        ("table_changes(t, 1)", "PARSE_SYNTAX_ERROR", "t"),
        ("table_changes('nowhere', 1)", "TABLE_OR_VIEW_NOT_FOUND", "'nowhere'"),
        ("table_changes('t', 'never')", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR", "'never'"),
        ("table_changes('t', nope)", "UNRESOLVED_COLUMN", "nope"),
    ]:
        refused(t, f"SELECT * FROM {call}", condition, at)
    t.sql("DROP TABLE t")
    t.sql("CREATE TABLE t (id INT)")
    with pytest.raises((VersionNotFoundError, SnapshotTooOldError)):
        t.changes("t", 2)


def test_the_version_that_made_a_table_shows_its_rows(acid):
    def inserted(version, **options):
        return shown(acid.changes("t", version, version, **options))

    acid.sql("CREATE TABLE t AS SELECT * FROM VALUES (1, 'a'), (2, 'b') AS s (id, v)")
    made = [(1, "insert", 1, "a"), (1, "insert", 2, "b")]
    assert inserted(1) == inserted(1, net=True) == made
    assert rows(acid, "SELECT id, _txn_id FROM table_changes('t', 1)") == [
        (1, acid.last.txn_id), (2, acid.last.txn_id),
    ]  # fmt: skip
    acid.sql("UPDATE t SET v = 'c' WHERE id = 1")
    assert inserted(1) == made
    assert shown(acid.changes("t", acid.history("t").tail(1)[0].timestamp)) == shown(
        acid.changes("t", 1)
    )
    assert shown(acid.changes("t", 1, keys=["id"])) == [
        *made, (2, "update_postimage", 1, "c"), (2, "update_preimage", 1, "a"),
    ]  # fmt: skip
    assert shown(acid.changes("t", 1, net=True)) == [
        (1, "insert", 2, "b"), (2, "insert", 1, "c"),
    ]  # fmt: skip
    acid.sql("CREATE OR REPLACE TABLE t PARTITIONED BY (v) AS SELECT 3 AS id, 'c' AS v")
    (replaced,) = [row.version for row in acid.history("t").collect()]
    assert inserted(replaced) == [(replaced, "insert", 3, "c")]
    for read in (lambda: acid.changes("t", replaced - 1), lambda: acid.table("t", version=2)):
        with pytest.raises(SnapshotTooOldError):
            read()
    acid.sql("DELETE FROM t")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert inserted(replaced) == [(replaced, "insert", 3, "c")]
    acid.sql("DROP TABLE t")
    acid.sql("CREATE TABLE t (id INT)")
    (empty,) = [row.version for row in acid.history("t").collect()]
    assert inserted(empty) == []


def test_the_version_that_took_files_into_a_table_shows_their_rows(acid, tmp_path):
    plain = acid.spark.createDataFrame([(1,), (2,)], "id INT").coalesce(1)
    plain.write.orc(str(tmp_path / "plain"))
    acid.sql(f"CREATE TABLE t (id INT) LOCATION '{tmp_path / 'plain'}'")
    (made,) = [row.version for row in acid.history("t").collect() if row.operation]
    expected = [(made, "insert", 1), (made, "insert", 2)]
    assert shown(acid.changes("t", made)) == expected
    acid.sql("DELETE FROM t WHERE id = 1")
    assert shown(acid.changes("t", made)) == [*expected, (made + 1, "delete", 1)]
    assert shown(acid.changes("t", made, net=True)) == [(made, "insert", 2)]
    acid.sql("CREATE TABLE loaded (id INT)")
    plain.write.orc(str(tmp_path / "new"))
    acid.sql(f"LOAD DATA INPATH '{tmp_path / 'new'}' INTO TABLE loaded")
    assert shown(acid.changes("loaded", 1)) == [(1, "insert", 1), (1, "insert", 2)]
