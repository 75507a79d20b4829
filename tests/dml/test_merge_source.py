"""MERGE reads a source twice only if the source gives the same rows both times."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from kit import ordered, rows

from acidsql.acid.table import ORC, Column, Table, TableName
from acidsql.errors import TransientTxnError
from acidsql.storage.reading.insert_only import PlainFiles, read_inserts_only
from acidsql.storage.spark import repeatable as repeatable_module
from acidsql.storage.spark.repeatable import Repeatable, repeatable_query
from acidsql.storage.spark.session import zones
from acidsql.storage.spark.session.jvm import changed_conf
from acidsql.storage.writing.save import TableWrite

pytestmark = pytest.mark.usefixtures("by_jobs")

MERGE = (
    "MERGE INTO t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
)


@pytest.fixture
def t(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), 'old' FROM range(1, 1001)")
    return acid


@pytest.fixture
def files(spark, tmp_path):
    path = str(tmp_path / "source")
    spark.sql("SELECT CAST(id AS INT) AS id, 'new' AS v FROM range(1000, 1002)").write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("files")
    yield path
    spark.catalog.dropTempView("files")


def plan_of(acid, source):
    return acid.sql(f"EXPLAIN {MERGE.format(source=source)}").first()[0]


@pytest.mark.classic
def test_of_a_target_only_rows_with_a_partner_are_joined(t, files):
    assert "LeftSemi" in plan_of(t, "files")
    t.sql(MERGE.format(source="files"))
    assert rows(t, "SELECT * FROM t WHERE id >= 999") == ordered(
        [(999, "old"), (1000, "new"), (1001, "new")]
    )


BOTH = "t.a = s.a AND t.b = s.b"
CASE = "CASE WHEN t.a = 2 AND s.b = 1 THEN false ELSE true END"


@pytest.mark.parametrize(
    ("own", "others", "on"),
    [
        ("BIGINT INT", "BIGINT INT", BOTH),
        ("SMALLINT BIGINT", "SMALLINT BIGINT", BOTH),
        ("BIGINT INT", "BIGINT INT", f"{BOTH} AND t.v LIKE 'o%' AND ({CASE})"),
        ("BIGINT INT", "BIGINT INT", f"{BOTH} AND {CASE}"),
        ("BIGINT INT", "BIGINT INT", f"{BOTH} AND t.b = s.a"),
        ("BIGINT INT", "BIGINT INT", f"{BOTH} OR t.a = -1"),
        ("BIGINT INT", "INT INT", BOTH),
        ("INT INT", "INT INT", BOTH),
        ("STRING BIGINT", "STRING BIGINT", BOTH),
    ],
)
@pytest.mark.classic
def test_partners_are_the_same_as_of_a_join(spark, acid, own, others, on):
    def merged(threshold):
        acid.sql("DROP TABLE IF EXISTS t")
        acid.sql("CREATE TABLE t (a {}, b {}, v STRING)".format(*own.split()))
        acid.sql(
            "INSERT INTO t SELECT CAST(a AS {}), CAST(b AS {}), 'old' FROM VALUES (1, 1), (1, 2), "
            "(2, 1), (NULL, 1), (1, NULL), (NULL, NULL), (3, 3) AS x(a, b)".format(*own.split())
        )
        source = (
            "(SELECT CAST(a AS {}) AS a, CAST(b AS {}) AS b FROM VALUES (1, 2), (2, 1), (NULL, 1), "
            "(NULL, NULL), (1, NULL), (3, 3), (4, 4) AS x(a, b))".format(*others.split())
        )
        merge = f"MERGE INTO t USING {source} s ON {on} WHEN MATCHED THEN UPDATE SET v = 'new'"
        merge += " WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b, 'more')"
        with changed_conf(spark, {"spark.sql.autoBroadcastJoinThreshold": threshold}):
            plan = acid.sql(f"EXPLAIN {merge}").first()[0]
            acid.sql(merge)
        return "LeftSemi" in plan, rows(acid, "SELECT * FROM t")

    is_reduced, found = merged("10MB")
    assert is_reduced
    assert merged("-1") == (False, found)


def test_columns_are_joined_under_the_names_that_they_have(acid, spark):
    acid.sql("CREATE TABLE t (id INT, k BIGINT, v STRING)")
    acid.sql("INSERT INTO t VALUES (1, 1, 'a'), (99, 1, 'b')")
    with changed_conf(spark, {"spark.sql.caseSensitive": "true"}):
        acid.sql(
            "MERGE INTO t USING (SELECT 99 AS id, 1 AS Id, 1L AS k, 'new' AS v) s "
            "ON t.id = s.Id AND t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v"
        )
        acid.sql(
            "MERGE INTO t USING (SELECT 99 AS Id, 1L AS K, 'more' AS v) s "
            "ON t.id = s.Id AND t.k = s.K WHEN MATCHED THEN UPDATE SET v = s.v"
        )
    assert rows(acid, "SELECT * FROM t") == [(1, 1, "new"), (99, 1, "more")]


def test_a_column_of_the_source_in_another_case_prunes_no_partition(acid, spark):
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT)")
    acid.sql(f"INSERT INTO t VALUES {', '.join(f'({p}, 0, {p})' for p in range(9))}")
    with changed_conf(spark, {"spark.sql.caseSensitive": "true"}):
        acid.sql(
            "MERGE INTO t USING (SELECT 5 AS k, 1 AS P) s ON t.id = k AND P = 1 "
            "WHEN MATCHED THEN UPDATE SET v = 'new' WHEN NOT MATCHED THEN INSERT VALUES (k, 'x', 1)"
        )
    assert rows(acid, "SELECT * FROM t WHERE v <> '0'") == [(5, "new", 5)]


def test_a_condition_inside_of_case_prunes_no_partition(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), 'x', CAST(id AS INT) FROM range(0, 40, 1, 1)")
    acid.sql(
        "MERGE INTO t USING (SELECT CAST(id AS INT) AS k, 3 AS q FROM range(0, 40)) s "
        "ON CASE WHEN t.id > 0 AND t.p = s.q AND t.v = 'x' THEN false ELSE t.id = s.k END "
        "WHEN MATCHED THEN UPDATE SET v = 'm'"
    )
    assert rows(acid, "SELECT id FROM t WHERE v = 'x'") == [(3,)]


@pytest.mark.classic
def test_literals_are_the_same_every_time(t):
    source = "(SELECT 1000 AS id, 'new' AS v UNION ALL VALUES (1001, 'new'))"
    assert "LeftSemi" in plan_of(t, source)
    t.sql(MERGE.format(source=source))
    assert rows(t, "SELECT * FROM t WHERE v = 'new'") == [(1000, "new"), (1001, "new")]


@pytest.mark.classic
def test_an_acid_table_is_a_source_that_may_be_read_twice(t):
    t.sql("CREATE TABLE u (id INT, v STRING)")
    t.sql("INSERT INTO u VALUES (1, 'new'), (0, 'new')")
    t.sql("DELETE FROM u WHERE id = 0")
    assert "LeftSemi" in plan_of(t, "u")
    t.sql(MERGE.format(source="u"))
    assert rows(t, "SELECT * FROM t WHERE v = 'new'") == [(1, "new")]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM files LIMIT 1",
        "SELECT id, first(v) AS v FROM files GROUP BY id",
        "SELECT CAST(id + rand() * 0 AS INT) AS id, v FROM files",
        "SELECT * FROM files WHERE id > (SELECT min(id) FROM files LIMIT 1)",
        "SELECT id, v FROM (SELECT *, row_number() OVER (ORDER BY v) n FROM files) WHERE n = 1",
        "SELECT same(id) AS id, v FROM files",
    ],
)
def test_what_could_give_other_rows_the_second_time_is_read_once(spark, t, files, query):
    # The function is declared to be deterministic, which may be wrong.
    spark.udf.register("same", lambda number: number, "int")
    try:
        assert "LeftSemi" not in plan_of(t, f"({query})")
        t.sql(MERGE.format(source=f"({query})"))
    finally:
        spark.sql("DROP TEMPORARY FUNCTION same")
    assert rows(t, "SELECT count(*) - count(DISTINCT id) FROM t") == [(0,)]


def test_where_not_matched_by_source_matters_the_whole_target_is_joined(t, files):
    statement = "MERGE INTO t USING files s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE"
    assert "LeftSemi" not in t.sql(f"EXPLAIN {statement}").first()[0]
    t.sql(statement)
    assert rows(t, "SELECT * FROM t") == [(1000, "old")]


def test_a_session_that_sends_nothing_to_all_tasks_is_obeyed(spark, t, files):
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        assert "LeftSemi" not in plan_of(t, "files")
        t.sql(MERGE.format(source="files"))
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert rows(t, "SELECT * FROM t WHERE v = 'new'") == [(1000, "new"), (1001, "new")]


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        (MERGE.format(source="files"), (1001, 1001, 2)),
        # Spark may also be wrong about the size of a table without a hint to broadcast it.
        ("DELETE FROM t WHERE EXISTS (SELECT * FROM files f WHERE f.id = t.id)", (999, 999, 0)),
    ],
)
def test_where_a_table_proves_too_large_to_send_none_is_sent(spark, t, files, statement, left):
    with changed_conf(spark, {"spark.sql.maxBroadcastTableSize": "1"}):
        assert "Broadcast" in t.sql(f"EXPLAIN {statement}").first()[0]
        t.sql(statement)
        with pytest.raises(Exception, match="broadcast the table"):
            spark.sql("SELECT /*+ BROADCAST(f) */ * FROM files f JOIN files USING (id)").collect()
    counts = "SELECT count(*), count(DISTINCT id), count_if(v = 'new') FROM t"
    assert rows(t, counts) == [left]


@pytest.mark.classic
def test_a_source_that_would_fill_the_drivers_memory_is_not_sent(t, files, monkeypatch):
    assert "LeftSemi" in plan_of(t, "files")
    monkeypatch.setattr(repeatable_module, "heap_bytes", lambda spark: 2**15)
    assert "LeftSemi" not in plan_of(t, "files")


@pytest.mark.classic
def test_a_source_that_others_change_meanwhile_fails_and_changes_nothing(t, files, monkeypatch):
    write = TableWrite.events

    def change_after(self, *args, **options):
        write(self, *args, **options)
        for name in os.listdir(files):
            if name.endswith(".parquet"):
                os.utime(f"{files}/{name}", (1, 1))

    monkeypatch.setattr(TableWrite, "events", change_after)
    with pytest.raises(TransientTxnError, match="was changed while"):
        t.sql(MERGE.format(source="files"))
    monkeypatch.undo()
    assert rows(t, "SELECT count(*), count(DISTINCT v) FROM t") == [(1000, 1)]


def test_a_delete_only_merge_reads_no_columns_but_those_of_on(t, files):
    statement = "MERGE INTO t USING files s ON t.id = s.id WHEN MATCHED THEN DELETE"
    plan = t.sql(f"EXPLAIN {statement}").first()[0]
    assert "row#" in plan and ".v AS" not in plan
    t.sql(statement)
    assert rows(t, "SELECT count(*), max(id) FROM t") == [(999, 999)]


@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO t USING files s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING files s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v",
        "DELETE FROM t WHERE id IN (SELECT id FROM files)",
        "UPDATE t SET v = 'new' WHERE id IN (SELECT id FROM files)",
    ],
)
@pytest.mark.classic
def test_no_row_id_is_made_of_rows_without_a_partner(t, files, statement):
    plan = t.sql(f"EXPLAIN {statement}").first()[0]
    assert "LeftSemi" in plan and "named_struct(writeid" not in plan
    t.sql(statement)
    assert rows(t, "SELECT count(*) FROM t WHERE v = 'old'") == [(999,)]


@pytest.mark.classic
def test_files_are_known_by_their_sizes_and_times(spark, files):
    found = repeatable_query(spark.table("files"))
    assert found is not None
    assert sorted(stamp[0].rpartition("/")[2] for stamp in found.stamps) == sorted(
        name for name in os.listdir(files) if name.endswith(".parquet") and os.path.getsize(
            f"{files}/{name}")
    )  # fmt: skip
    found.refuse_changed(spark)


@pytest.mark.classic
def test_files_that_are_never_changed_are_not_looked_at_again(spark):
    gone = Repeatable(0, [("file:/warehouse/t/delta_1_1/bucket_0", "1", "1")])
    gone.refuse_changed(spark, but_below="/warehouse/t")
    for elsewhere in (None, "/warehouse/t/delta_1", "/t"):
        with pytest.raises(TransientTxnError, match="was changed while"):
            gone.refuse_changed(spark, but_below=elsewhere)


@pytest.mark.classic
def test_files_that_python_tasks_read_may_change_if_they_are_not_an_acid_tables(spark, monkeypatch):
    """Nobody notes their sizes and times."""
    monkeypatch.setattr(zones, "zone_offset_micros", lambda spark: None)
    table = Table(TableName("db", "t"), "/w/t", (Column("at", "timestamp"),))
    files = PlainFiles(table, {"": ["/w/t/000000_0"]}, ORC)
    assert repeatable_query(read_inserts_only(spark, files)) is not None
    others_files = replace(files, any_writer=True)
    assert repeatable_query(read_inserts_only(spark, others_files)) is None
