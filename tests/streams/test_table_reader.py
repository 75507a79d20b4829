"""``spark.read.format("acidsql")``: the rows of one snapshot, as ``acid.table`` shows them.

Most tests ask the reader as Spark asks it, without a query, because a query takes seconds to start.
"""

from __future__ import annotations

import datetime as dt
import pickle
import random
from functools import partial

import pytest
from over_hive import beside, needs

import pyspark_acidsql
from acidsql.acid.table import TableName
from acidsql.api.session import _source_defaults
from acidsql.errors import (
    SettingError,
    SnapshotTooOldError,
    TableChangedError,
    VersionNotFoundError,
)
from acidsql.streams.source import table_reader
from acidsql.streams.source.batch_options import batch_options
from acidsql.streams.source.table_reader import TableReader

pytestmark = [pytest.mark.spark, needs("keeps_versions")]

ALL_TYPES = """
    b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f32 FLOAT, f64 DOUBLE,
    dec DECIMAL(20, 4), t STRING, vc VARCHAR(5), c CHAR(5), bin BINARY, day DATE, at TIMESTAMP,
    list ARRAY<INT>, dict MAP<STRING, INT>, rec STRUCT<x: INT, y: STRING>"""
VALUES = """
    true, 1Y, 2S, 3, 4L, 1.5F, 2.5D, 12.3456, 'ä', 'var', 'ch', X'00FF', DATE'1969-12-31',
    TIMESTAMP_NTZ'1900-01-01 00:00:00.000001', array(1, NULL), map('k', 1),
    named_struct('x', 1, 'y', NULL)"""


def loaded(acid, **options):
    """A function that makes readers as Spark makes them for each place where a query names the
    DataFrame: the snapshot was taken when the DataFrame was loaded."""
    options = batch_options({"table": "t", **options})
    open_store = partial(pyspark_acidsql._open_metastore, {"warehouse": acid.warehouse})
    taken = pickle.dumps(TableReader(open_store, options).take_snapshot())
    return lambda: TableReader(open_store, options, pickle.loads(taken))


def reader_of(acid, **options):
    return loaded(acid, **options)()


def rows_of_splits(reader, splits):
    """The rows that tasks read in other processes."""
    reader, splits = pickle.loads(pickle.dumps((reader, splits)))
    batches = [batch for split in splits for batch in reader.read(split)]
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def rows(acid, **options):
    reader = reader_of(acid, **options)
    return sorted(rows_of_splits(reader, reader.partitions()), key=repr)


def rows_of_table(acid, **moment):
    return sorted(map(tuple, acid.table("t", **moment).collect()), key=repr)


def leases(acid):
    """The open leases of the format's queries."""
    return [
        txn.txn_id
        for txn in acid.metastore.show_txns()
        if "spark.read.format" in txn.agent_info and txn.state.name == "OPEN"
    ]


def abort_leases(acid):
    acid.sql(f"ABORT TRANSACTIONS {' '.join(map(str, leases(acid)))}")


@pytest.fixture
def frame(acid):
    """A function that returns the DataFrame of a table, as a user gets it."""

    def read(**options):
        return acid.spark.read.format("acidsql").options(**{"table": "t", **options}).load()

    return read


@pytest.mark.classic
def test_a_session_names_the_warehouse_for_frames_and_views_of_pure_sql(acid, frame):
    acid.sql(f"CREATE TABLE t ({ALL_TYPES}) PARTITIONED BY (p DATE, q STRING)")
    acid.sql(f"INSERT INTO t SELECT {VALUES}, DATE'2024-02-29', 'x/ y'")
    acid.sql("INSERT INTO t (i32) VALUES (7), (8)")
    acid.sql("DELETE FROM t WHERE i32 = 8")
    assert sorted(frame().collect(), key=repr) == sorted(acid.table("t").collect(), key=repr)
    spark = acid.spark
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW v USING acidsql OPTIONS (table 'default.t')")
    try:
        assert spark.sql("SELECT i32 FROM v WHERE p IS NULL").collect() == [(7,)]
        acid.sql("INSERT INTO t (i32) VALUES (9)")
        assert spark.sql("SELECT count(*) FROM v").collect() == [(2,)]  # as when it was made
        assert frame().count() == 3
    finally:
        spark.catalog.dropTempView("v")


@pytest.mark.classic
def test_a_setting_of_sparks_about_filters_changes_no_rows(acid, frame):
    """Spark keeps the plan of a source's first query, with the filters that it pushed into it."""
    acid.sql("CREATE TABLE t (id INT) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t SELECT id, id % 3 FROM range(30)")
    name = "spark.sql.python.filterPushdown.enabled"
    acid.spark.conf.set(name, "true")
    try:
        rows_of_all = frame()
        assert rows_of_all.where("p = 1").count() == 10
        assert rows_of_all.count() == 30
        assert frame().where("p = 2 AND id > 15").count() == 5
    finally:
        acid.spark.conf.unset(name)


@pytest.mark.classic
def test_errors_name_the_right_call(acid, frame):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("CREATE VIEW seen AS SELECT * FROM t")
    for options, message in [
        ({"table": "tt"}, r"There is no table 'default.tt'. Did you mean `t`\?"),
        ({"table": "seen"}, r"acid\.table\('default\.seen'\)"),
        ({"colums": "id"}, "has no option 'colums'"),
        ({"startingVersion": "1", "version": "1"}, "A stream of a table has no option 'version'"),
        ({"columns": "idd"}, "has no column 'idd'. Did you mean `id`?"),
        ({"columns": " , "}, "names no column"),
        ({"columns": "id, ID"}, "names 'id' twice"),
        ({"snapshot": "default.seen:3:3::"}, "is one of default.seen, not of default.t"),
        ({"version": "one"}, "version='one' is no version"),
        ({"version": "1", "timestampAsOf": "2024-01-01T00:00:00Z"}, "Set one of version and"),
        ({"version": "1", "versionAsOf": "1"}, "are one option"),
        ({"timestamp": "2024-01-01"}, "no time with an offset"),
        ({"path": "/no/such/place"}, "with a path has no option 'table'"),
        ({"metastore": "mysql://u:secret@h/d"}, "ACIDSQL_METASTORE"),
        ({"metastore": "mysql://u:/#?secret@h/d"}, "ACIDSQL_METASTORE"),
        ({"metastore": "mysql://u@h/d?passwd=secret"}, "ACIDSQL_METASTORE"),
    ]:
        with pytest.raises(Exception, match=message.replace("?", r"\?", 0)) as caught:
            frame(**options)
        assert "secret" not in str(caught.value)
    with pytest.raises(Exception, match="acid.insert_into"):
        frame().write.format("acidsql").mode("append").option("table", "t").save()
    for mode in ("error", "ignore"):
        with pytest.raises(Exception, match="mode") as caught:
            frame().write.format("acidsql").mode(mode).option("table", "t").save()
        assert any("acid.insert_into" in note for note in caught.value.__notes__)
    with pytest.raises(Exception, match=r"Leave out \.schema"):
        acid.spark.read.schema("id INT").format("acidsql").option("table", "t").load().collect()


def test_partitions_deletes_buckets_and_compactions_show_the_rows_of_the_table(acid):
    acid.sql(
        "CREATE TABLE t (id BIGINT, v INT) PARTITIONED BY (p STRING) "
        "CLUSTERED BY (id) INTO 3 BUCKETS"
    )
    assert rows(acid) == []
    acid.sql("INSERT INTO t SELECT id, id, nullif(concat('p', id % 3), 'p2') FROM range(3000)")
    acid.sql("UPDATE t SET v = -v WHERE id % 10 = 3")
    acid.sql("DELETE FROM t WHERE id % 10 = 4")
    assert rows(acid) == rows_of_table(acid)
    acid.sql("ALTER TABLE t COMPACT 'minor' AND WAIT")
    acid.sql("DELETE FROM t WHERE id % 10 = 5")
    assert rows(acid) == rows_of_table(acid)
    acid.sql("ALTER TABLE t PARTITION (p = 'p0') COMPACT 'major' AND WAIT")
    acid.sql("ALTER TABLE t DROP PARTITION (p = 'p1')")
    assert rows(acid) == rows_of_table(acid)


def test_random_changes_in_and_after_transactions(acid):
    acid.sql("CREATE TABLE t (id INT, v INT)")
    chance = random.Random(9)
    for turn in range(6):
        acid.sql(f"INSERT INTO t VALUES ({turn}, 0), ({turn + 100}, 1)")
        acid.sql(f"DELETE FROM t WHERE id = {chance.randrange(turn + 1)}")
        with beside(acid, compactor="off") as other:
            other.sql("BEGIN")
            other.sql("INSERT INTO t VALUES (999, 9)")
            assert rows(acid) == rows_of_table(acid)  # nothing of an open transaction
            other.sql(chance.choice(["COMMIT", "ROLLBACK"]))
        assert rows(acid) == rows_of_table(acid)


def test_insert_only_tables(acid):
    acid.sql(
        "CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT) "
        "TBLPROPERTIES ('transactional_properties'='insert_only')"
    )
    acid.sql("INSERT INTO t VALUES (1, 'a', 1), (2, NULL, NULL)")
    assert rows(acid) == rows_of_table(acid)


def test_insert_only_tables_in_parquet(acid):
    acid.sql(
        "CREATE TABLE t (id INT, c CHAR(3), at TIMESTAMP, day DATE, tags ARRAY<DECIMAL(9, 2)>) "
        "PARTITIONED BY (p INT) STORED AS PARQUET "
        "TBLPROPERTIES ('transactional_properties'='insert_only')"
    )
    acid.sql(
        "INSERT INTO t VALUES (1, 'a', TIMESTAMP_NTZ'1500-01-01 00:00:00', DATE'1500-01-01', "
        "array(1.25, NULL), 1), (2, NULL, NULL, NULL, NULL, NULL)"
    )
    acid.sql("ALTER TABLE t ADD COLUMNS (v INT)")
    acid.sql("INSERT INTO t (id, v, p) VALUES (3, 30, 1)")
    assert rows(acid) == rows_of_table(acid)
    assert rows(acid, columns="v,p,c") == [(30, 1, None), (None, 1, "a  "), (None, None, None)]


def test_the_option_columns_chooses_them_in_its_order(acid):
    acid.sql("CREATE TABLE t (a INT, b STRING, c CHAR(3)) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t VALUES (1, 'x', 'c', 5), (2, 'y', NULL, NULL)")
    assert rows(acid, columns="p, C,a") == [(5, "c  ", 1), (None, None, 2)]


def test_older_versions_times_and_snapshots(acid):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    moment = dt.datetime.fromtimestamp(acid.metastore.now_ms() / 1000, dt.UTC).isoformat()
    acid.sql("INSERT INTO t VALUES (2)")
    acid.sql("DELETE FROM t WHERE id = 1")
    assert rows(acid, version="1") == rows(acid, versionAsOf="1") == [(1,)]
    assert rows(acid, version="2") == [(1,), (2,)]
    assert rows(acid, timestamp=moment) == [(1,)]
    assert (
        rows(acid, snapshot="default.t:3:2:2:") == []
    )  # 2 was open: neither of its rows, and 1 is deleted
    with beside(acid, compactor="off") as other, other.transaction():
        other.sql("INSERT INTO t VALUES (9)")
        # A snapshot's text never shows what is not committed.
        assert rows(acid, snapshot="default.t:99:99::") == rows(acid) == [(2,)]
    with pytest.raises(VersionNotFoundError, match="the newest one is"):
        rows(acid, version="99")
    abort_leases(acid)
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    acid.clean()
    with pytest.raises(SnapshotTooOldError, match="oldest version that can be read"):
        rows(acid, version="1")


def test_a_lease_keeps_the_files_of_a_planned_query(acid):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("INSERT INTO t VALUES (2)")
    reader = reader_of(acid)
    splits = reader.partitions()
    with beside(acid, compactor="off") as other:
        other.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
        other.sql("INSERT OVERWRITE t VALUES (7)")
        other.clean()
    assert sorted(rows_of_splits(reader, splits)) == [(1,), (2,)]
    assert rows(acid) == [(7,)]


def test_queries_share_a_young_lease_that_is_open(acid):
    acid.sql("CREATE TABLE t (id INT)")
    rows(acid)
    (lease,) = leases(acid)
    rows(acid)
    assert leases(acid) == [lease]
    abort_leases(acid)
    rows(acid)
    assert len(leases(acid)) == 1 and leases(acid) != [lease]


TABLE = [
    "CREATE TABLE t (id INT) PARTITIONED BY (p INT)",
    "INSERT INTO t VALUES (1, 1), (2, 2)",
]
CHANGES = {
    "drops a partition": ["ALTER TABLE t DROP PARTITION (p = 1)"],
    "renames a partition": ["ALTER TABLE t PARTITION (p = 1) RENAME TO PARTITION (p = 3)"],
    "fills a partition anew": [
        "ALTER TABLE t DROP PARTITION (p = 1)", "INSERT INTO t VALUES (5, 1), (6, 2)",
    ],
    "makes the table again": [
        "DROP TABLE t", "CREATE TABLE t (id INT) PARTITIONED BY (p INT)",
        "INSERT INTO t VALUES (7, 1)",
    ],
    "puts another table in its place": [
        "ALTER TABLE t RENAME TO was", "CREATE TABLE t (id INT) PARTITIONED BY (p INT)",
        "INSERT INTO t VALUES (8, 1)",
    ],
    "adds a column": ["ALTER TABLE t ADD COLUMNS (v INT)"],
}  # fmt: skip


def run_all(session, statements):
    for statement in statements:
        session.sql(statement)


@pytest.mark.parametrize("change", CHANGES)
def test_what_others_change_while_the_snapshot_is_taken_is_shown_as_a_whole(
    acid, monkeypatch, change
):
    run_all(acid, TABLE)
    statements = list(CHANGES[change])
    take_snapshot = table_reader.snapshot_under_shared_lease

    def take_snapshot_before_a_change(*arguments):
        snapshot = take_snapshot(*arguments)
        while statements:
            acid.sql(statements.pop(0))
        return snapshot

    monkeypatch.setattr(table_reader, "snapshot_under_shared_lease", take_snapshot_before_a_change)
    assert rows(acid) == rows_of_table(acid)


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_changed_since_it_was_loaded_is_refused(acid, change):
    run_all(acid, TABLE)
    reader = reader_of(acid)
    run_all(acid, CHANGES[change])
    with pytest.raises(TableChangedError, match=r"default\.t.* since it was loaded\. Load the"):
        reader.partitions()


def test_changes_of_rows_and_properties_since_a_table_was_loaded_are_not_seen(acid):
    run_all(acid, TABLE)
    reader = reader_of(acid)
    run_all(acid, ["INSERT INTO t VALUES (3, 3)", "DELETE FROM t WHERE id = 1"])
    run_all(acid, ["ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')", "TRUNCATE TABLE t"])
    assert sorted(rows_of_splits(reader, reader.partitions())) == [(1, 1), (2, 2)]


def test_all_places_of_a_query_show_one_moment(acid):
    """Spark plans a source for each of them, at once, in processes of their own."""
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    make_reader = loaded(acid)
    first = make_reader()
    rows_of_first = rows_of_splits(first, first.partitions())
    acid.sql("INSERT INTO t VALUES (2)")
    second = make_reader()
    assert rows_of_splits(second, second.partitions()) == rows_of_first == [(1,)]


@pytest.mark.classic
def test_a_frame_shows_the_rows_of_the_moment_when_it_was_loaded(acid, frame):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    loaded_before = frame()
    acid.sql("INSERT INTO t VALUES (2)")
    assert loaded_before.alias("a").join(loaded_before.alias("b"), "id").collect() == [(1,)]
    assert frame().count() == 2


def test_a_table_whose_lease_has_ended_is_refused(acid):
    acid.sql("CREATE TABLE t (id INT)")
    reader = reader_of(acid)
    abort_leases(acid)
    with pytest.raises(SnapshotTooOldError, match="its lease has ended"):
        reader.partitions()


@pytest.mark.classic
def test_tables_without_files_have_no_rows(acid, frame):
    """Spark gives an empty plan a task of its own."""
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("CREATE TABLE parts (id INT) PARTITIONED BY (p INT)")
    assert frame().collect() == frame(table="parts").collect() == []
    acid.sql("INSERT INTO t VALUES (1)")
    assert frame(version="0").collect() == []


@pytest.mark.classic
def test_a_char_is_compared_as_in_a_query(acid, frame):
    acid.sql("CREATE TABLE t (id INT, c CHAR(5))")
    acid.sql("INSERT INTO t VALUES (1, 'ab'), (2, 'ab   '), (3, 'abc')")
    for condition in ("c = 'ab'", "c IN ('ab', 'x')", "c < 'abc'"):
        expected = sorted(acid.table("t").where(condition).collect())
        assert sorted(frame().where(condition).collect()) == expected
        assert len(expected) == 2


def test_the_sqlite_file_of_the_warehouse_is_not_taken_for_a_metastore_with_a_password(acid):
    for url in ("postgresql://u:secret@h/d", "postgresql://u:/#?secret@h/d"):
        source = pyspark_acidsql.DefaultSource({"table": "t"})
        source.defaults = _source_defaults(acid.warehouse, url)
        assert "secret" not in str(source.defaults)
        with pytest.raises(SettingError, match="Set the environment variable ACIDSQL_METASTORE"):
            source.schema()


def test_a_misspelt_warehouse_is_not_made(acid, tmp_path):
    with pytest.raises(SettingError, match="There is no metastore in the warehouse"):
        pyspark_acidsql._open_metastore({"warehouse": str(tmp_path / "misspelt")})
    assert not (tmp_path / "misspelt").exists()


def test_the_name_of_a_table_may_be_in_backticks_and_upper_case():
    for text in ("T", "`t`", "default.`T`", "`default`.t"):
        assert batch_options({"table": text}).table == TableName("default", "t")
    for text in ("", "a.b.c", "t u", "`t", "default."):
        with pytest.raises(SettingError, match="is not database"):
            batch_options({"table": text})


def test_a_setting_of_the_process_names_the_warehouse(acid, monkeypatch):
    acid.sql("CREATE TABLE t (id INT)")
    with pytest.raises(SettingError, match="ACIDSQL_WAREHOUSE"):
        pyspark_acidsql._open_metastore({})
    monkeypatch.setenv("ACIDSQL_WAREHOUSE", acid.warehouse)
    store = pyspark_acidsql._open_metastore({})
    try:
        assert [name.name for name in [store.find(batch_options({"table": "t"}).table).name]] == [
            "t"
        ]
    finally:
        store.close()
