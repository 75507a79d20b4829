"""NULL in a partition column, also of type string: written and read as in Spark's own tables.

The empty text has the same directory, in Hive and in Spark, so it is NULL, too. (In a directory's
name Spark pads a CHAR, Hive does not. So the empty text of a CHAR is NULL here, but not in Spark.)
"""

from __future__ import annotations

import pytest
from kit import counts, ordered, rows, table
from over_hive import needs

import acidsql
from acidsql.storage.reading import read as reading

COLUMNS = "id INT, s STRING, c CHAR(3), v VARCHAR(5), n INT"
VALUES = """(1, 'a', 'b', 'c', 1), (2, NULL, NULL, NULL, NULL), (3, '', 'e', '', 3),
    (4, 'a', NULL, 'c', NULL), (5, NULL, 'b', '', 1),
    (6, '__HIVE_DEFAULT_PARTITION__', 'x', 'y', 6), (7, 'NULL', 'nul', 'null', 7),
    (8, ' ', 'l', ' ', 8)"""
QUERIES = [
    "SELECT * FROM {t}",
    "SELECT id FROM {t} WHERE s IS NULL",
    "SELECT id FROM {t} WHERE s IS NOT NULL AND v IS NULL",
    "SELECT id FROM {t} WHERE s <> 'a'",
    "SELECT id FROM {t} WHERE NOT (s = 'a' AND n = 1)",
    "SELECT id FROM {t} WHERE s <=> NULL OR v <=> ''",
    "SELECT id FROM {t} WHERE s = '' OR s = '__HIVE_DEFAULT_PARTITION__'",
    "SELECT id FROM {t} WHERE s IN ('a', '', NULL)",
    "SELECT id FROM {t} WHERE coalesce(s, 'none') = 'none'",
    "SELECT id FROM {t} WHERE c IS NULL",
    "SELECT s, count(s), count(*), min(v), max(c) FROM {t} GROUP BY s",
    "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.s = b.s AND a.n <=> b.n",
    "SELECT id FROM {t} WHERE s NOT IN (SELECT v FROM {t} WHERE v IS NOT NULL)",
]


@pytest.fixture
def sparks(spark):
    """A table of Spark's with the same rows, and the same setting for overwrites."""
    spark.sql("DROP TABLE IF EXISTS nulls_of_spark")
    by = "PARTITIONED BY (s, c, v, n)"
    spark.sql(f"CREATE TABLE nulls_of_spark ({COLUMNS}) USING parquet {by}")
    spark.sql(f"INSERT INTO nulls_of_spark VALUES {VALUES}")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    yield spark
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    spark.sql("DROP TABLE nulls_of_spark")


MM = "TBLPROPERTIES ('transactional_properties'='insert_only')"


@pytest.mark.parametrize("kind", ["", MM], ids=["full", "insert-only"])
def test_null_is_what_a_table_of_sparks_shows(acid, sparks, monkeypatch, kind):
    # Only the partitions that a condition leaves are read.
    monkeypatch.setattr(reading, "MANY_PARTITIONS", 0)
    acid.sql(f"CREATE TABLE t (id INT) PARTITIONED BY ({COLUMNS.removeprefix('id INT, ')}) {kind}")
    acid.sql(f"INSERT INTO t VALUES {VALUES}")
    for query in QUERIES:
        expected = ordered(sparks.sql(query.format(t="nulls_of_spark")).collect())
        assert rows(acid, query.format(t="t")) == expected, query
    more = "SELECT 9 AS id, CAST('' AS STRING) s, 'b' c, '' v, 1 n "
    more += "UNION ALL SELECT 10, 'a', 'd', 'c', NULL"
    acid.sql(f"INSERT OVERWRITE t {more}")
    sparks.sql(f"INSERT OVERWRITE nulls_of_spark {more}")
    assert table(acid) == ordered(sparks.table("nulls_of_spark").collect())


@needs("can_work")
def test_statements_find_null_in_a_string_partition_column(acid, tmp_path):
    acid.sql("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p STRING)")
    acid.sql("INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', ''), (3, 'c', 'x')")
    assert counts(acid, "UPDATE t SET v = 'n' WHERE p IS NULL") == (0, 2, 0)
    assert counts(acid, "UPDATE t SET v = 'z' WHERE p <> 'y'") == (0, 1, 0)
    assert counts(acid, "DELETE FROM t WHERE p IS NULL AND id = 1") == (0, 0, 1)
    merge = """MERGE INTO t USING (VALUES (2, CAST(NULL AS STRING)), (3, 'x')) AS s(id, p)
        ON t.id = s.id AND t.p {} s.p WHEN MATCHED THEN UPDATE SET v = '{}'
        WHEN NOT MATCHED THEN INSERT VALUES (s.id + 10, 'new', s.p)"""
    assert counts(acid, merge.format("<=>", "m")) == (0, 2, 0)
    assert counts(acid, merge.format("=", "e")) == (1, 1, 0)
    assert table(acid) == [(12, "new", None), (2, "m", None), (3, "e", "x")]
    for kind in ("minor", "major"):
        acid.sql(f"ALTER TABLE t PARTITION (p = NULL) COMPACT '{kind}' AND WAIT")
        assert table(acid) == [(12, "new", None), (2, "m", None), (3, "e", "x")]
    [path] = {row.path.split("/p=")[0] for row in acid.files("t").collect()}
    found = acidsql.read(acid.spark, path, "id int, v string", "p string").where("p IS NULL")
    assert ordered(row[1:] for row in found.collect()) == [(12, "new", None), (2, "m", None)]
    acid.sql("INSERT OVERWRITE t SELECT 7, 'o', CAST(NULL AS STRING)")
    assert table(acid) == [(3, "e", "x"), (7, "o", None)]
    acid.sql("TRUNCATE TABLE t PARTITION (p = '')")
    acid.sql("ALTER TABLE t DROP PARTITION (p = NULL)")
    assert rows(acid, "SHOW PARTITIONS t") == [("p=x",)]
