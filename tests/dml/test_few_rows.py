"""``acidsql.driver.max.rows``: the driver writes a few changed rows, with the same result as a
job."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from kit import counts, fill, rows
from pyarrow import orc

from acidsql.errors import ConstraintError, MergeCardinalityError

ALL = (
    "CREATE TABLE t (id INT, s STRING, c CHAR(5), d DATE, ts TIMESTAMP, n DECIMAL(10, 2), "
    "b BINARY, a ARRAY<INT>, r STRUCT<x: INT, y: STRING>, f FLOAT, l ARRAY<STRUCT<k: STRING>>) "
)


@pytest.mark.parametrize(
    "layout", ["", "PARTITIONED BY (p STRING)", "CLUSTERED BY (id) INTO 3 BUCKETS"]
)
def test_few_rows_of_all_types_are_changed_without_a_writing_job(acid, spent, layout):
    acid.sql("SET acidsql.driver.max.rows = 10")
    acid.sql(ALL + layout)
    last = ", CAST(id % 2 AS STRING)" if "p STRING" in layout else ""
    acid.sql(
        "INSERT INTO t SELECT CAST(id AS INT), 'é', 'x', DATE'2024-02-29', "
        "TIMESTAMP_NTZ'2024-01-01 12:34:56.789', 1.50, X'00FF', array(1, NULL), "
        "named_struct('x', 1, 'y', 'z'), CAST(0.1 AS FLOAT), array(named_struct('k', 'ü'))"
        f"{last} FROM range(0, 20, 1, 3)"
    )
    before = spent.costs.write_jobs
    assert counts(acid, "UPDATE t SET s = concat(s, '!') WHERE id IN (3, 4, 11)") == (0, 3, 0)
    assert counts(acid, "DELETE FROM t WHERE id = 4 OR id > 17") == (0, 0, 3)
    assert counts(acid, "DELETE FROM t WHERE id = 1000") == (0, 0, 0)
    assert spent.costs.write_jobs == before
    found = rows(acid, "SELECT id, s, c, d, ts, n, b, a, r, f, l FROM t WHERE id IN (3, 4, 11)")
    rest = (
        "é!", "x    ", date(2024, 2, 29), datetime(2024, 1, 1, 12, 34, 56, 789000), Decimal("1.50"),
        bytearray(b"\x00\xff"), [1, None], (1, "z"), 0.10000000149011612, [("ü",)],
    )  # fmt: skip
    assert sorted(found) == [(3, *rest), (11, *rest)]
    assert rows(acid, "SELECT count(*), count(DISTINCT row__id) FROM t") == [(17, 17)]


def test_more_rows_are_written_by_a_job(acid, spent):
    acid.sql("SET acidsql.driver.max.rows = 2")
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t VALUES (1), (2), (3)")
    assert counts(acid, "UPDATE t SET id = id + 10 WHERE id > 0") == (0, 3, 0)
    assert spent.costs.write_jobs == 1
    assert rows(acid, "SELECT * FROM t") == [(11,), (12,), (13,)]


def test_ten_times_as_many_row_ids_are_few(acid, spent):
    acid.sql("SET acidsql.driver.max.rows = 2")
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql(f"INSERT INTO t VALUES {', '.join(f'({n})' for n in range(50))}")
    assert counts(acid, "DELETE FROM t WHERE id < 20") == (0, 0, 20)
    assert spent.costs.write_jobs == 0
    assert counts(acid, "DELETE FROM t WHERE id < 41") == (0, 0, 21)
    assert spent.costs.write_jobs == 1
    assert rows(acid, "SELECT min(id), count(*) FROM t") == [(41, 9)]


@pytest.mark.parametrize("limit", [0, 10, 1000])
@pytest.mark.classic
def test_a_small_query_is_inserted_by_the_driver(acid, spent, limit):
    acid.sql(f"SET acidsql.driver.max.rows = {limit}")
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT)")
    assert counts(acid, "INSERT INTO t SELECT id, 'a', id % 2 FROM range(0, 20, 1, 3)") == (
        20,
        0,
        0,
    )
    assert spent.costs.write_jobs == (limit < 1000)
    by_one = "INSERT INTO t SELECT id + 20, upper(v), 7 FROM t WHERE id < 5"
    assert counts(acid, by_one) == (5, 0, 0)
    assert spent.costs.write_jobs == {0: 2, 10: 1, 1000: 0}[limit]
    shown = "SELECT p, count(*), sum(id), max(v), count(DISTINCT row__id) FROM t GROUP BY p"
    assert rows(acid, shown) == [(0, 10, 90, "a", 10), (1, 10, 100, "a", 10), (7, 5, 110, "A", 5)]


def test_a_query_that_spark_takes_for_large_is_not_tried(acid, spent):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("INSERT INTO t SELECT id FROM range(0, 1000000, 1, 2) WHERE id % 500000 = 0")
    assert spent.costs.write_jobs == 1
    assert rows(acid, "SELECT * FROM t") == [(0,), (500000,)]


@pytest.mark.classic
def test_a_small_overwrite_is_written_by_the_driver(acid, spent):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1", "2, 2")
    acid.sql("INSERT OVERWRITE TABLE t PARTITION (p = 1) SELECT id * 10 FROM range(3)")
    acid.sql("INSERT OVERWRITE TABLE t PARTITION (p = 2) SELECT id FROM range(3) WHERE id > 3")
    assert spent.costs.write_jobs == 0
    assert rows(acid, "SELECT * FROM t") == [(0, 1), (10, 1), (20, 1)]


@pytest.mark.parametrize("limit", [0, 1000])
@pytest.mark.parametrize("layout", ["", "CLUSTERED BY (id) INTO 3 BUCKETS"])
@pytest.mark.classic
def test_a_merge_with_a_tiny_source_is_written_by_the_driver(acid, spent, layout, limit):
    acid.sql(f"SET acidsql.driver.max.rows = {limit}")
    acid.sql(f"CREATE TABLE t (id INT, v STRING) {layout}")
    acid.sql("INSERT INTO t SELECT id, 'old' FROM range(0, 100, 1, 3)")
    before = spent.costs.write_jobs
    merge = (
        "MERGE INTO t USING (SELECT id + 95 AS id FROM range({})) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 95 THEN DELETE WHEN MATCHED AND s.id < 98 "
        "THEN UPDATE SET v = 'new' WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'in')"
    )
    assert counts(acid, merge.format(8)) == (3, 2, 1)
    assert spent.costs.write_jobs - before == (limit == 0)
    shown = "SELECT v, min(id), max(id), count(DISTINCT row__id) FROM t GROUP BY v"
    assert rows(acid, shown) == [("in", 100, 102, 3), ("new", 96, 97, 2), ("old", 0, 99, 97)]
    with pytest.raises(MergeCardinalityError):
        acid.sql(merge.format("0, 8, 1, 2").replace("id + 95", "id % 4 + 95"))
    assert rows(acid, "SELECT count(*) FROM t") == [(102,)]


def test_a_merge_with_a_larger_source_is_written_by_a_job(acid, spent):
    fill(acid, "t (id INT)", "1", "2")
    acid.sql(
        "MERGE INTO t USING (SELECT * FROM range(100000)) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 1 THEN DELETE"
    )
    assert spent.costs.write_jobs == 1
    assert rows(acid, "SELECT * FROM t") == [(2,)]


def test_what_has_no_cheap_condition_is_left_to_a_job(acid, spent):
    fill(acid, "t (id INT)", "1", "2")
    assert counts(acid, "UPDATE t SET id = 3 WHERE id IN (SELECT max(id) FROM t)") == (0, 1, 0)
    assert counts(acid, "DELETE FROM t") == (0, 0, 2)
    assert spent.costs.write_jobs == 2


def test_no_rows_at_all_turn_it_off(acid, spent):
    acid.sql("SET acidsql.driver.max.rows = 0")
    fill(acid, "t (id INT)", "1", "2")
    assert counts(acid, "UPDATE t SET id = 3 WHERE id = 1") == (0, 1, 0)
    assert spent.costs.write_jobs == 1


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("STRING", "{}", "v"),
        ("ARRAY<STRING>", "array({})", "v[0]"),
        ("STRUCT<x: STRING>", "named_struct('x', {})", "v.x"),
    ],
)
def test_a_text_that_is_no_utf8_keeps_its_bytes(acid, spent, kind, value, text):
    """As a Python value it would have other characters."""
    value = value.format("CAST(X'61FF' AS STRING)")
    acid.sql(f"CREATE TABLE t (id INT, v {kind})")
    acid.sql(f"INSERT INTO t SELECT 1, {value}")
    acid.sql(f"INSERT INTO t VALUES (2, {value})")
    before = spent.costs.write_jobs
    assert counts(acid, "UPDATE t SET id = id + 10 WHERE id < 5") == (0, 2, 0)
    assert spent.costs.write_jobs == before
    assert rows(acid, f"SELECT id, hex({text}) FROM t") == [(11, "61FF"), (12, "61FF")]


def test_a_map_with_a_key_twice_keeps_both(acid, spent, tmp_path):
    """As a Python value it would have the key once only."""
    kinds = pa.schema([("id", pa.int32()), ("m", pa.map_(pa.string(), pa.int32()))])
    found = pa.table([[1, 2], [[("k", 1), ("k", 2)], None]], schema=kinds)
    orc.write_table(found, tmp_path / "twice.orc")
    acid.sql("CREATE TABLE t (id INT, m MAP<STRING, INT>)")
    acid.sql(f"LOAD DATA LOCAL INPATH '{tmp_path}/twice.orc' INTO TABLE t")
    acid.sql("UPDATE t SET id = 10 WHERE id = 1")
    assert spent.costs.write_jobs == 0
    shown = "SELECT id, transform(map_entries(m), e -> e.value) FROM t"
    assert rows(acid, shown) == [(10, [1, 2]), (2, None)]


def test_a_null_among_structs_without_nulls_is_written_by_a_job(acid, spent):
    acid.sql("CREATE TABLE t (a ARRAY<STRUCT<x: INT>>)")
    acid.sql("INSERT INTO t SELECT array(named_struct('x', 1), NULL)")
    assert acid.sql("SELECT a[0].x, a[1] IS NULL FROM t").collect() == [(1, True)]
    assert spent.costs.write_jobs == 1


@pytest.mark.classic
def test_days_that_python_does_not_know_are_written(acid, spent):
    acid.sql("CREATE TABLE t (id INT, d DATE)")
    acid.sql("INSERT INTO t SELECT 1, make_date(12024, 2, 29)")
    acid.sql("UPDATE t SET id = 2 WHERE id = 1")
    assert spent.costs.write_jobs == 0
    assert rows(acid, "SELECT id, string(d) FROM t") == [(2, "+12024-02-29")]


def test_long_values_are_not_brought_to_the_driver(acid, spent):
    acid.sql("SET acidsql.driver.max.rows = 1000")
    acid.sql("CREATE TABLE t (id INT, b BINARY, s STRING, a ARRAY<INT>)")
    acid.sql("INSERT INTO t SELECT CAST(id AS INT), X'00', 'a', array(1) FROM range(3)")
    before = spent.costs.write_jobs
    for value in (
        "b = CAST(repeat('x', 100000) AS BINARY)", "s = repeat('x', 100000)",
        "a = array_repeat(7, 100000)",
    ):  # fmt: skip
        assert counts(acid, f"UPDATE t SET {value} WHERE id = 1") == (0, 1, 0)
        assert counts(acid, f"UPDATE t SET {value} WHERE id = 1") == (0, 1, 0)
    assert spent.costs.write_jobs - before == 6
    assert counts(acid, "UPDATE t SET s = 'b' WHERE id = 2") == (0, 1, 0)
    assert spent.costs.write_jobs - before == 6
    shown = "SELECT id, length(b), length(s), size(a) FROM t"
    assert rows(acid, shown) == [(0, 1, 1, 1), (1, 100000, 100000, 100000), (2, 1, 1, 1)]


def test_what_is_found_may_be_more_than_spark_hands_to_the_driver(acid, spent, spark):
    """Each task finds up to the limit."""
    acid.sql("CREATE TABLE t (id INT, s STRING)")
    acid.sql(
        "INSERT INTO t SELECT CAST(id AS INT), sha2(string(id), 512) FROM range(0, 4000, 1, 2)"
    )
    before = spent.costs.write_jobs
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.driver.maxResultSize", "50k")
    try:
        assert counts(acid, "UPDATE t SET s = concat(s, '!') WHERE id % 5 = 0") == (0, 800, 0)
    finally:
        conf.remove("spark.driver.maxResultSize")
    assert spent.costs.write_jobs - before == 1
    assert rows(acid, "SELECT count(*), count_if(s LIKE '%!') FROM t") == [(4000, 800)]


def test_a_null_where_none_may_be_is_refused(acid, spent):
    fill(acid, "t (id INT NOT NULL, v STRING)", "1, 'a'", "2, 'b'")
    with pytest.raises(ConstraintError):
        acid.sql("UPDATE t SET id = nullif(id, 2) WHERE id > 0")
    assert spent.costs.write_jobs == 0
    assert rows(acid, "SELECT * FROM t") == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("limit", [0, 1000])
def test_an_error_in_a_value_changes_nothing(acid, spent, limit):
    acid.sql(f"SET acidsql.driver.max.rows = {limit}")
    fill(acid, "t (id INT, v INT)", "1, 1", "2, 0")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        acid.sql("UPDATE t SET v = 1 / v WHERE id > 0")
    assert rows(acid, "SELECT * FROM t") == [(1, 1), (2, 0)]
    assert spent.costs.write_jobs == (1 if limit == 0 else 0)
