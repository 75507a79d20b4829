"""Trino reads what acidsql writes, and acidsql what Trino inserts. `make test-trino` runs it."""

from __future__ import annotations

import os

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("ACIDSQL_TRINO" not in os.environ, reason="ACIDSQL_TRINO is not set"),
]
INSERT_ONLY = "'transactional'='true', 'transactional_properties'='insert_only'"

COLUMNS = (
    "k INT, t TINYINT, s SMALLINT, b BIGINT, f FLOAT, d DOUBLE, e DECIMAL(38,18), p DECIMAL(7,2), "
    "st STRING, c CHAR(5), v VARCHAR(7), bi BINARY, da DATE, ts TIMESTAMP, bo BOOLEAN, "
    "a ARRAY<INT>, m MAP<STRING,DOUBLE>, r STRUCT<x:INT,y:ARRAY<STRUCT<z:STRING>>>"
)
# FLOAT as DOUBLE: the clients of both show a FLOAT in ways of their own.
NAMES = "k, t, s, b, CAST(f AS DOUBLE) AS f, d, e, p, st, c, v, bi, da, ts, bo, a, m, r"
OURS = [
    "(1, 127, 32767, 9223372036854775807, FLOAT('NaN'), DOUBLE('NaN'), "
    "99999999999999999999.123456789012345678, 99999.99, 'übér 漢 🎉', 'ab', 'viervie', X'00FF10', "
    "DATE'9999-12-31', TIMESTAMP'2024-02-29 23:59:59.123456', true, array(1, 2, NULL), "
    "map('a', 1.5D, 'b', NULL), named_struct('x', 1, 'y', array(named_struct('z', 'q'), NULL)))",
    "(2, -128, -32768, -9223372036854775808, FLOAT('-Infinity'), DOUBLE('Infinity'), "
    "-99999999999999999999.123456789012345678, -0.01, '', '', '', X'', DATE'1582-10-04', "
    "TIMESTAMP'1969-12-31 23:59:58', false, array(), map(), named_struct('x', NULL, 'y', NULL))",
    "(3, 0, 0, 0, FLOAT('1e-45'), 4.9E-324D, 0.000000000000000001, 0, ' x ', 'é', '漢字', X'C3', "
    "DATE'0001-01-01', TIMESTAMP'0001-01-01 00:00:00', NULL, NULL, NULL, NULL)",
    f"(4{', NULL' * 17})",
]
THEIRS = [
    "(11, tinyint '127', smallint '32767', 9223372036854775807, real 'NaN', nan(), "
    "decimal '99999999999999999999.123456789012345678', 99999.99, 'übér 漢 🎉', 'ab', 'viervie', "
    "X'00FF10', date '9999-12-31', timestamp '2024-02-29 23:59:59.123456', true, "
    "array[1, 2, NULL], map(array['a', 'b'], array[1.5e0, NULL]), "
    "cast(row(1, array[row('q'), NULL]) AS row(x integer, y array(row(z varchar)))))",
    "(12, tinyint '-128', smallint '-32768', -9223372036854775808, -real 'Infinity', infinity(), "
    "decimal '-99999999999999999999.123456789012345678', -0.01, '', '', '', X'', "
    "date '1582-10-04', timestamp '1969-12-31 23:59:58', false, array[], map(), "
    "cast(row(NULL, NULL) AS row(x integer, y array(row(z varchar)))))",
    f"(14{', NULL' * 17})",
]


def test_values_of_all_types_are_the_same_for_both(beside_trino):
    acid, trino = beside_trino.acid, beside_trino.trino
    acid.sql(f"CREATE TABLE t ({COLUMNS})")
    acid.sql(f"INSERT INTO t VALUES {', '.join(OURS)}")
    query = f"SELECT {NAMES} FROM t"
    assert len(beside_trino.same_rows(query)) == 4
    for row in THEIRS:
        trino.sql(f"INSERT INTO t VALUES {row}")
    assert len(beside_trino.same_rows(query)) == 7
    acid.sql("UPDATE t SET s = 7 WHERE k IN (3, 4, 14)")
    acid.sql("DELETE FROM t WHERE k = 12")
    for kind in ("minor", "major"):
        acid.sql(f"ALTER TABLE t COMPACT '{kind}' AND WAIT")
        assert len(beside_trino.same_rows(query)) == 6
    for condition in (
        "t = 127", "b < 0", "e > 1", "st = ''", "st = 'übér 漢 🎉'", "c = 'ab'", "v = '漢字'",
        "da < DATE '1582-10-15'", "ts < TIMESTAMP '1970-01-01 00:00:00'", "bo", "s IS NULL",
        "p = -0.01", "bi = X'00FF10'",
    ):  # fmt: skip
        beside_trino.same_rows(f"SELECT k FROM t WHERE {condition}")


def test_fractions_of_a_second_before_1970_differ_by_one_second(beside_trino):
    """As the documentation says; a Trino that reads them as Hive does would end this sentence."""
    beside_trino.acid.sql("CREATE TABLE t (ts TIMESTAMP)")
    beside_trino.acid.sql("INSERT INTO t VALUES (TIMESTAMP'1960-01-01 00:00:00.000001')")
    ((ours,),) = beside_trino.acid.sql("SELECT string(ts) FROM t").collect()
    ((theirs,),) = beside_trino.trino.sql("SELECT CAST(ts AS varchar) FROM t")
    assert (ours, theirs[:26]) == ("1960-01-01 00:00:00.000001", "1959-12-31 23:59:59.000001")


def test_trino_shows_each_state_that_statements_of_acidsql_leave(beside_trino):
    acid = beside_trino.acid
    acid.sql("CREATE TABLE t (a INT, b STRING)")
    for statement in (
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL), (4, 'd')",
        "INSERT INTO t SELECT a + 10, upper(b) FROM t",
        "UPDATE t SET b = 'u' WHERE a % 2 = 0",
        "DELETE FROM t WHERE a = 3",
        "MERGE INTO t USING (VALUES (1, 'm'), (2, 'del'), (99, 'new')) x(a, b) ON t.a = x.a "
        "WHEN MATCHED AND x.b = 'del' THEN DELETE WHEN MATCHED THEN UPDATE SET b = x.b "
        "WHEN NOT MATCHED THEN INSERT *",
        "ALTER TABLE t COMPACT 'minor' AND WAIT",
        "UPDATE t SET b = 'v' WHERE a = 1",
        "ALTER TABLE t COMPACT 'major' AND WAIT",
        "DELETE FROM t WHERE a = 11",
        "INSERT OVERWRITE TABLE t SELECT a, b FROM t WHERE a < 10",
        "INSERT INTO t VALUES (7, 'x')",
        "DELETE FROM t",
        "INSERT INTO t VALUES (8, 'y')",
        "TRUNCATE TABLE t",
        "INSERT INTO t VALUES (9, 'z')",
    ):
        acid.sql(statement)
        beside_trino.rows("t")
    assert beside_trino.rows("t") == [(9, "z")]


def test_transactions_are_visible_to_trino_when_they_have_committed(beside_trino):
    acid, trino = beside_trino.acid, beside_trino.trino
    acid.sql("CREATE TABLE t (a INT, b INT)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    acid.sql("BEGIN")
    acid.sql("INSERT INTO t VALUES (4, 4)")
    acid.sql("UPDATE t SET b = 40 WHERE a IN (4, 1)")
    acid.sql("DELETE FROM t WHERE a = 2")
    assert sorted(trino.sql("SELECT * FROM t")) == [(1, 1), (2, 2), (3, 3)]
    acid.sql("COMMIT")
    assert beside_trino.rows("t") == [(1, 40), (3, 3), (4, 40)]
    acid.sql("BEGIN")
    acid.sql("DELETE FROM t")
    acid.sql("ROLLBACK")
    assert beside_trino.rows("t") == [(1, 40), (3, 3), (4, 40)]


def test_partitions_of_odd_names_and_types(beside_trino):
    acid, trino = beside_trino.acid, beside_trino.trino
    acid.sql("CREATE TABLE t (a INT, b STRING) PARTITIONED BY (d STRING)")
    acid.sql(
        "INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'odd/na:me=%25 ''q''é'), (3, 'c', NULL), "
        "(4, 'd', ' '), (5, 'e', 'x'), (6, 'f', '*?#[]^')"
    )
    beside_trino.rows("t")
    for condition in ("= 'x'", "IS NULL", "= ' '", "LIKE 'odd%'", "= '*?#[]^'", "<> 'x'"):
        beside_trino.same_rows(f"SELECT a, d FROM t WHERE d {condition}")
    acid.sql("UPDATE t SET d = 'y' WHERE a = 1")
    acid.sql("INSERT OVERWRITE TABLE t PARTITION (d = 'y') VALUES (11, 'o')")
    acid.sql("ALTER TABLE t PARTITION (d = 'x') COMPACT 'major' AND WAIT")
    trino.sql("INSERT INTO t VALUES (20, 't', 'x'), (21, 't', 'new one'), (22, 't', NULL)")
    assert len(beside_trino.rows("t")) == 9
    acid.sql("UPDATE t SET b = 'u' WHERE a > 4")
    assert len(beside_trino.rows("t")) == 9
    acid.sql("CREATE TABLE p (a INT) PARTITIONED BY (d DATE, n INT, e DECIMAL(5,2), bo BOOLEAN)")
    acid.sql(
        "INSERT INTO p VALUES (1, DATE'1500-01-01', -5, 1.50, true), (2, NULL, NULL, NULL, NULL)"
    )
    assert len(beside_trino.rows("p")) == 2


def test_buckets_are_the_same_for_both(beside_trino):
    acid, trino = beside_trino.acid, beside_trino.trino
    acid.sql("CREATE TABLE t (a INT, b STRING) CLUSTERED BY (a) INTO 4 BUCKETS")
    acid.sql("INSERT INTO t SELECT INT(id), concat('v', id) FROM range(40)")
    trino.sql("INSERT INTO t VALUES (200, 't'), (201, 't'), (202, 't'), (203, 't')")
    acid.sql("UPDATE t SET b = 'u' WHERE a % 5 = 0 OR a = 201")
    acid.sql("UPDATE t SET a = a + 100 WHERE a = 11")
    buckets = "SELECT a, CAST(row__id.bucketid AS BIGINT) >> 16 & 4095 FROM t"
    for kind in ("minor", "major"):
        acid.sql(f"ALTER TABLE t COMPACT '{kind}' AND WAIT")
        assert len(beside_trino.rows_of_all("t")) == 44
        beside_trino.same_rows(buckets, 'SELECT a, "$bucket" FROM t')
        for a in (0, 7, 39, 40, 111, 201):
            beside_trino.same_rows(f"SELECT a, b FROM t WHERE a = {a}")


def test_columns_that_were_added_renamed_and_widened(beside_trino):
    acid, trino = beside_trino.acid, beside_trino.trino
    acid.sql("CREATE TABLE t (a INT, b STRING)")
    acid.sql("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    acid.sql("ALTER TABLE t ADD COLUMNS (c INT, d STRUCT<e:INT>)")
    acid.sql("INSERT INTO t VALUES (3, 'z', 3, named_struct('e', 1))")
    acid.sql("UPDATE t SET c = 1 WHERE a = 1")
    acid.sql("ALTER TABLE t CHANGE COLUMN b bb STRING")
    acid.sql("ALTER TABLE t CHANGE COLUMN a a BIGINT")
    assert len(beside_trino.rows("t")) == 3
    beside_trino.same_rows("SELECT a FROM t WHERE bb = 'x'")
    trino.sql("INSERT INTO t VALUES (4, 'w', NULL, NULL)")
    acid.sql("UPDATE t SET bb = 'new' WHERE a IN (2, 4)")
    assert len(beside_trino.rows("t")) == 4
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert len(beside_trino.rows("t")) == 4


# ── insert-only tables ───────────────────────────────────────────────────────────────────────

CLOCKS = [
    "2024-01-01 00:00:00.123456", "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999",
    "1893-03-31 23:00:00", "1500-02-28 01:02:03.000001", "0001-01-01 00:00:00",
]  # fmt: skip


@pytest.mark.parametrize("file_format", ["ORC", "PARQUET"])
def test_insert_only_tables_grow_by_turns(beside_trino, file_format):
    acid, trino = beside_trino.acid, beside_trino.trino
    acid.sql(
        "CREATE TABLE t (a INT, b STRING, e DECIMAL(20,5), da DATE) "
        f"STORED AS {file_format} TBLPROPERTIES ({INSERT_ONLY})"
    )
    acid.sql("INSERT INTO t VALUES (1, 'a', 1.5, DATE'1500-01-01'), (2, NULL, -0.00001, NULL)")
    trino.sql("INSERT INTO t VALUES (3, 't', 1, date '1500-01-01'), (4, NULL, NULL, NULL)")
    assert len(beside_trino.rows("t")) == 4
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    trino.sql("INSERT INTO t VALUES (5, 'u', 1, date '2020-01-01')")
    assert len(beside_trino.rows("t")) == 5
    acid.sql("INSERT OVERWRITE TABLE t SELECT * FROM t WHERE a > 1")
    assert len(beside_trino.rows("t")) == 4


def test_timestamps_of_trinos_parquet_files_are_read(beside_trino):
    """Trino writes INT96."""
    acid, trino = beside_trino.acid, beside_trino.trino
    acid.sql(
        f"CREATE TABLE t (k INT, ts TIMESTAMP) STORED AS PARQUET TBLPROPERTIES ({INSERT_ONLY})"
    )
    values = ", ".join(f"({k}, timestamp '{clock}')" for k, clock in enumerate(CLOCKS))
    trino.sql(f"INSERT INTO t VALUES {values}, (99, NULL)")
    expected = [*enumerate(CLOCKS), (99, None)]
    query = "SELECT k, string(ts) FROM t ORDER BY k"
    assert list(map(tuple, acid.sql(query).collect())) == expected
    acid.sql("INSERT INTO t VALUES (100, TIMESTAMP'1500-02-28 01:02:03.000001')")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    expected.append((100, "1500-02-28 01:02:03.000001"))
    assert list(map(tuple, acid.sql(query).collect())) == expected
    beside_trino.same_rows(
        "SELECT k, date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSSSSS') FROM t",
        "SELECT k, CAST(CAST(ts AS timestamp(6)) AS varchar) FROM t",
    )


# ── files without events ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("overwrite", ["", "OVERWRITE "])
def test_files_of_load_data_are_read_after_the_statement_that_the_receipt_names(
    beside_trino, spark, tmp_path, overwrite
):
    import trino.exceptions

    acid = beside_trino.acid
    place = f"{tmp_path}/load"
    rows = spark.range(6).selectExpr("CAST(id AS INT) AS a", "concat('o', id) AS b")
    rows.repartition(2).write.orc(place)
    acid.sql("CREATE TABLE t (a INT, b STRING)")
    acid.sql(f"LOAD DATA INPATH '{place}' {overwrite}INTO TABLE t")
    note = acid.last.notes[-1]
    assert note.startswith("Trino reads the table after ")
    with pytest.raises(trino.exceptions.TrinoExternalError, match="should have 6 columns"):
        beside_trino.trino.sql("SELECT * FROM t")
    acid.sql(
        f"{note.removeprefix('Trino reads the table after ')}{'' if overwrite else ' AND WAIT'}"
    )
    assert len(beside_trino.rows_of_all("t")) == 6


def test_a_table_of_trinos_that_becomes_acid(beside_trino):
    acid, trino = beside_trino.acid, beside_trino.trino
    trino.sql(
        "CREATE TABLE t WITH (format = 'ORC') AS SELECT a, CAST(b AS varchar) AS b "
        "FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c')) x(a, b)"
    )
    acid.sql("ALTER TABLE t CONVERT TO ACID")
    acid.sql("INSERT INTO t VALUES (5, 'e')")
    acid.sql("UPDATE t SET b = 'u' WHERE a = 2")
    acid.sql("DELETE FROM t WHERE a = 3")
    expected = [(1, "a"), (2, "u"), (5, "e")]
    assert sorted(map(tuple, acid.table("t").collect())) == expected
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert beside_trino.rows_of_all("t") == expected
