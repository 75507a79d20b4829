"""INSERT: where rows go, which rows are replaced, and what a statement costs."""

from __future__ import annotations

import time

import pytest
from kit import counts, directories, fill, refused, row_ids_are_unique, rows, table
from over_hive import on_a_disk

from acidsql.errors import AcidSqlError, UnsupportedError

pytestmark = pytest.mark.usefixtures("by_jobs")

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@pytest.fixture
def p(acid):
    """A table with two partition columns."""
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (a INT, b STRING)")
    return acid


@on_a_disk
def test_static_dynamic_and_mixed_partitions(p):
    assert counts(p, "INSERT INTO t PARTITION (a = 1, b = 'x') VALUES (1, 'v')") == (1, 0, 0)
    assert counts(p, "INSERT INTO t PARTITION (a, b) VALUES (2, 'v', 2, 'y')") == (1, 0, 0)
    assert counts(p, "INSERT INTO t PARTITION (a = '3', b) SELECT 3, 'v', 'z'") == (1, 0, 0)
    assert counts(p, "INSERT INTO t PARTITION (b = 'w', a) SELECT 4, 'v', 4") == (1, 0, 0)
    assert counts(p, "INSERT INTO t (b, a, id) VALUES ('u', 5, 5)") == (1, 0, 0)
    assert counts(p, "INSERT INTO t PARTITION (a = 2 + 4, b = concat('x', 'y')) (id) VALUES (6)"
                  ) == (1, 0, 0)  # fmt: skip
    assert table(p) == [
        (1, "v", 1, "x"), (2, "v", 2, "y"), (3, "v", 3, "z"), (4, "v", 4, "w"),
        (5, None, 5, "u"), (6, None, 6, "xy"),
    ]  # fmt: skip
    assert {"a=1/b=x", "a=2/b=y", "a=5/b=u"} <= set(directories(p))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("NULL", None), ("''", None), ("'a/b=c%d'", "a/b=c%d"), ("'ä ö+&?'", "ä ö+&?"),
        ("'%2F'", "%2F"), ("'..'", ".."), ("'{1}*[x]'", "{1}*[x]"), ("' lead'", " lead"),
        ("'it''s \"q\"'".replace("''", "\\'"), 'it\'s "q"'), ("'x\\ny'", "x\ny"),
    ],
)  # fmt: skip
def test_any_text_is_a_partition_value(p, value, shown):
    p.sql(f"INSERT INTO t PARTITION (a = 1, b = {value}) VALUES (1, 'static')")
    p.sql(f"INSERT INTO t VALUES (2, 'values', 1, {value})")
    p.sql(f"INSERT INTO t SELECT 3, 'select', 1, {value} UNION ALL SELECT 4, 'x', NULL, {value}")
    p.sql("UPDATE t SET v = 'updated' WHERE id = 2")
    assert table(p) == [
        (1, "static", 1, shown), (2, "updated", 1, shown), (3, "select", 1, shown),
        (4, "x", None, shown),
    ]  # fmt: skip
    assert len(rows(p, "SHOW PARTITIONS t")) == 2
    # A column without a value in PARTITION (…) may have any value.
    assert len(rows(p, "SHOW PARTITIONS t PARTITION (a)")) == 2
    assert rows(p, "SHOW LOCKS t PARTITION (a)") == []
    row_ids_are_unique(p, "t", ("a", "b"))


def test_null_and_the_empty_text_share_one_bucket_file(acid):
    acid.sql("CREATE TABLE t (id INT, v INT) PARTITIONED BY (p STRING) "
             "CLUSTERED BY (v) INTO 2 BUCKETS")  # fmt: skip
    acid.sql("INSERT INTO t SELECT id, 1, CASE id % 3 WHEN 0 THEN '' WHEN 1 THEN NULL "
             f"ELSE '{HIVE_NULL}' END FROM range(9)")  # fmt: skip
    assert {row[2] for row in table(acid)} == {None}
    acid.sql("MERGE INTO t USING (SELECT id + 5 AS id, CAST(NULL AS STRING) p FROM range(9)) s "
             "ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = t.id + 100 "
             "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1, s.p)")  # fmt: skip
    assert len(table(acid)) == 14


def test_a_char_partition_is_one_partition_however_it_is_padded(acid):
    acid.sql("CREATE TABLE t (id INT) PARTITIONED BY (p CHAR(3))")
    acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'a ')")
    acid.sql("INSERT INTO t PARTITION (p = 'a  ') VALUES (3)")
    acid.sql("UPDATE t SET id = id + 10 WHERE p = 'a  '")
    assert table(acid) == [(11, "a  "), (12, "a  "), (13, "a  ")]
    assert [tuple(row) for row in acid.sql("SHOW PARTITIONS t").collect()] == [("p=a",)]


@on_a_disk
def test_overwrite_replaces_what_it_says_and_nothing_else(p):
    p.sql("INSERT INTO t VALUES (1, 'v', 1, 'x'), (2, 'v', 1, 'y'), (3, 'v', 2, 'x')")
    assert counts(p, "INSERT OVERWRITE t PARTITION (a = 1, b = 'x') VALUES (4, 'o')") == (1, 0, 0)
    assert [row[0] for row in table(p)] == [2, 3, 4]
    assert counts(p, "INSERT OVERWRITE t SELECT 5, 'o', 2, 'x'") == (1, 0, 0)
    assert [row[0] for row in table(p)] == [2, 4, 5]
    p.sql("INSERT OVERWRITE TABLE t PARTITION (a = 1, b) SELECT id + 10, v, b FROM t WHERE id = 2")
    assert [row[0] for row in table(p)] == [12, 4, 5]
    p.sql("INSERT OVERWRITE t PARTITION (a = 2, b = 'x') SELECT id, v FROM t WHERE false")
    assert [row[0] for row in table(p)] == [12, 4]
    assert any(name.endswith("base_0000002") for name in directories(p))
    p.sql("INSERT OVERWRITE t SELECT * FROM t WHERE false")
    assert [row[0] for row in table(p)] == [12, 4]


@pytest.mark.parametrize("buckets", ["", "CLUSTERED BY (id) INTO 4 BUCKETS"])
def test_overwrite_of_a_whole_table_also_with_no_rows(acid, buckets):
    acid.sql(f"CREATE TABLE t (id INT, v STRING) {buckets}")
    acid.sql("INSERT INTO t SELECT id, 'v' FROM range(9)")
    acid.sql("INSERT OVERWRITE t SELECT id * 10, v FROM t WHERE id < 3")
    assert [row[0] for row in table(acid)] == [0, 10, 20]
    acid.sql("UPDATE t SET v = 'u' WHERE id = 10")
    row = acid.sql("INSERT OVERWRITE t SELECT * FROM t WHERE false").collect()[0]
    assert table(acid) == []
    assert row.write_id is not None  # a base without rows is a change
    assert counts(acid, "INSERT INTO t VALUES (1, 'new')") == (1, 0, 0)
    assert table(acid) == [(1, "new")]


def test_columns_by_list_and_by_name(acid):
    acid.sql("CREATE TABLE t (a INT, b STRING DEFAULT 'd') PARTITIONED BY (p INT)")
    acid.sql("INSERT INTO t (p, A) VALUES (1, 2)")
    acid.sql("INSERT INTO t BY NAME SELECT 3 AS p, 'n' AS B, 4 AS a")
    acid.sql("INSERT INTO t BY NAME SELECT 5 AS p, 6 AS a")
    acid.sql("INSERT INTO t (a) SELECT 7")
    acid.sql(
        "MERGE INTO t USING (SELECT 8 AS i) ON a = i WHEN NOT MATCHED THEN INSERT (a) VALUES (i)"
    )
    expected = [(2, "d", 1), (4, "n", 3), (6, "d", 5), (7, "d", None), (8, "d", None)]
    assert table(acid) == expected
    acid.sql("INSERT OVERWRITE t (a) VALUES (9)")  # the partition of NULL
    assert table(acid) == [*expected[:3], (9, "d", None)]
    refused(acid, "INSERT INTO t BY NAME SELECT 1 AS nope, 2 AS p", "INCOMPATIBLE_DATA_FOR_TABLE")
    refused(acid, "INSERT INTO t (a, a) VALUES (1, 2)", "DUPLICATE_ASSIGNMENTS", "a")
    refused(acid, "INSERT INTO t (a, nope) VALUES (1, 2)", "UNRESOLVED_COLUMN", "nope")
    refused(acid, "INSERT INTO t VALUES (1, 'x')", "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH")
    refused(acid, "INSERT INTO t VALUES (1, 'x', 2), (1, 'x', 2, 3)", "INVALID_INLINE_TABLE")
    refused(acid, "INSERT INTO t SELECT 1, 'x', 2, 3", "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY")
    refused(acid, "INSERT INTO t PARTITION (nope = 1) VALUES (1, 'x')", "PARTITION_COLUMN_NOT")
    refused(acid, "INSERT INTO t PARTITION (p = 1, p = 2) VALUES (1, 'x')", "DUPLICATE_KEY")
    refused(acid, "INSERT INTO t PARTITION (p = 1) (p, a) VALUES (1, 1)", "", "p")
    refused(acid, "INSERT INTO t VALUES (1, nope, 2)", "")
    inner = "INSERT INTO t VALUES (1, concat(DEFAULT, 'x'), 2)"
    assert "a whole value" in str(refused(acid, inner, "UNRESOLVED_COLUMN", "DEFAULT"))
    with pytest.raises(AcidSqlError, match="is no INT"):
        acid.sql("INSERT INTO t PARTITION (p = 'one') VALUES (1, 'x')")


def test_a_multi_insert_reads_one_evaluation_of_its_source(acid):
    acid.sql("CREATE TABLE low (id INT, r DOUBLE)")
    acid.sql("CREATE TABLE high (id INT, r DOUBLE) PARTITIONED BY (p INT)")
    done = acid.sql("""
        FROM (SELECT id, rand() AS r FROM range(100)) s
        INSERT INTO low SELECT id, r WHERE r < 0.5
        INSERT INTO high PARTITION (p = 1) SELECT id, r WHERE r >= 0.5
        INSERT INTO high SELECT s.id, s.r, 2 WHERE s.r < 0.5""").collect()
    low, high = table(acid, "low"), table(acid, "high")
    assert [row.num_inserted_rows for row in done] == [len(low), 100 - len(low), len(low)]
    assert sorted(row[0] for row in low + [r for r in high if r[2] == 1]) == list(range(100))
    assert sorted(low) == sorted(row[:2] for row in high if row[2] == 2)
    assert 0 < len(low) < 100
    assert not [name for name in directories(acid, "low") if "_tmp" in name]


def test_a_multi_insert_overwrites_partitions_in_one_scan(acid):
    fill(acid, "s (id INT, day STRING)", "1, 'a'", "2, 'b'", "3, NULL", "4, 'a/b'")
    fill(acid, "t (id INT) PARTITIONED BY (d STRING)", "10, 'a'", "20, 'b'", "30, NULL", "40, 'z'")
    acid.sql(
        "FROM s INSERT OVERWRITE t PARTITION (d = 'a') SELECT id WHERE day = 'a' "
        "INSERT OVERWRITE t PARTITION (d = 'b') SELECT id WHERE day = 'nope' "
        "INSERT OVERWRITE t PARTITION (d) SELECT id, day WHERE day IS NULL OR day = 'a/b' "
        "INSERT INTO t PARTITION (d = 'z') SELECT id WHERE id = 2"
    )
    expected = [(1, "a"), (2, "z"), (3, None), (4, "a/b"), (40, "z")]
    assert table(acid) == expected
    first = "FROM s INSERT OVERWRITE t PARTITION (d = 'a') SELECT id"
    for second in (
        "OVERWRITE t PARTITION (d = lower('A')) SELECT id",
        "OVERWRITE t PARTITION (d) SELECT id, 'a'",
        "INTO t PARTITION (d) SELECT id, 'a'",
    ):
        with pytest.raises(UnsupportedError, match="t/d=a, and INSERT OVERWRITE is one") as error:
            acid.sql(f"{first} INSERT {second}")
        assert error.value.condition == "UNSUPPORTED_FEATURE.OVERWRITE_BESIDE_INSERT"
    assert table(acid) == expected
    acid.sql("CREATE TABLE u (id INT)")
    refused(acid, "FROM s INSERT OVERWRITE u SELECT id INSERT INTO u SELECT id", "UNSUPPORTED", "u")


def test_a_multi_insert_of_any_source(acid):
    fill(acid, "s (id INT, v STRING)", "1, 'a'", "2, 'b'")
    acid.sql("CREATE TABLE t (id INT, v STRING)")
    acid.sql("FROM s INSERT INTO t SELECT * WHERE id = 1 INSERT INTO t SELECT s.id, s.v")
    acid.sql("WITH c AS (SELECT id, NULL AS v FROM s) FROM c "
             "INSERT INTO t SELECT id, v INSERT INTO t SELECT max(id), 'max'")  # fmt: skip
    acid.sql("FROM default.s AS x INSERT OVERWRITE s SELECT x.id + 10, v INSERT INTO t SELECT 9, v")
    assert table(acid, "s") == [(11, "a"), (12, "b")]
    assert sorted(row[0] for row in table(acid)) == [1, 1, 1, 2, 2, 2, 9, 9]
    if acid.metastore.abilities.keeps_versions:
        inserted = [row.numInsertedRows for row in acid.history("t").collect()]
        assert inserted == [2, 3, 3, 0], "one row for each statement"


def test_values_start_no_spark_job(spark, p):
    context = spark.sparkContext
    for group, statement, jobs in (
        ("one", "INSERT INTO t VALUES (1, 'v', 1, 'x')", False),
        ("many", "INSERT INTO t (id, a, b) VALUES (1, 1, 'x'), (2, 1 + 1, upper('y'))", False),
        ("select", "INSERT INTO t SELECT id, 'v', 1, 'x' FROM range(2)", True),
    ):
        context.setJobGroup(f"acidsql-{group}", group)
        try:
            p.sql(statement)
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
        found = context.statusTracker().getJobIdsForGroup(f"acidsql-{group}")
        assert bool(found) is jobs, statement


def test_ten_thousand_rows_of_values_are_quick(acid):
    acid.sql("CREATE TABLE t (id INT, v STRING, d DECIMAL(10,2))")
    text = ", ".join(f"({i}, 'it is {i}', {i}.5)" for i in range(10_000))
    start = time.monotonic()
    assert counts(acid, f"INSERT INTO t VALUES {text}") == (10_000, 0, 0)
    assert time.monotonic() - start < 60  # some 5 s on a quiet machine
    assert rows(acid, "SELECT count(*), sum(id), min(v) FROM t") == [
        (10_000, 49_995_000, "it is 0")]  # fmt: skip


def test_rows_of_a_bucketed_table_lie_in_the_bucket_that_hive_looks_in(acid):
    import pyarrow as pa

    from acidsql.storage.writing.buckets.bucketing import bucket_ids

    acid.sql("CREATE TABLE t (id INT, v STRING) CLUSTERED BY (id) INTO 4 BUCKETS")
    acid.sql("INSERT INTO t SELECT id, 'v' FROM range(40)")
    acid.sql("INSERT INTO t VALUES (NULL, 'null'), (77, 'x')")
    acid.sql("UPDATE t SET v = 'u' WHERE id % 2 = 0")
    found = acid.sql("SELECT (row__id.bucketid >> 16) & 4095, id FROM t").collect()
    ids = pa.array([row[1] for row in found], pa.int32())
    assert [row[0] for row in found] == bucket_ids([ids], ["int"], 4, 2).tolist()
    assert len(found) == 42
    row_ids_are_unique(acid, "t")
