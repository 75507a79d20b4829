"""Where INSERT is Hive's and not Delta Lake's: as the documentation says."""

from __future__ import annotations

import pytest
from kit import fill, ordered, refused, rows, table

from acidsql.errors import AnalysisError

pytestmark = pytest.mark.spark


def test_an_insert_by_position_has_the_partition_columns_last(acid):
    acid.sql("CREATE TABLE t (p INT, id INT) PARTITIONED BY (p)")
    acid.sql("INSERT INTO t VALUES (1, 20)")
    acid.sql("INSERT INTO t SELECT 2 AS p, 30 AS id")
    acid.sql("INSERT INTO t BY NAME SELECT 40 AS p, 3 AS id")
    acid.sql("INSERT INTO t (p, id) VALUES (50, 4)")
    assert table(acid) == ordered([(1, 20), (2, 30), (3, 40), (4, 50)])
    assert rows(acid, "SELECT p FROM t WHERE id = 2") == [(30,)]


@pytest.mark.parametrize("setting", ["true", "false"])
def test_a_column_without_a_default_that_an_insert_leaves_out_is_null(acid, conf, setting):
    conf("spark.sql.defaultColumn.useNullsForMissingDefaultValues", setting)
    acid.sql("CREATE TABLE t (a INT, b INT DEFAULT 5, c INT)")
    acid.sql("INSERT INTO t (a) VALUES (1)")
    acid.sql("INSERT INTO t BY NAME SELECT 2 AS a")
    acid.sql("MERGE INTO t USING (SELECT 3 AS a) s ON t.a = s.a "
             "WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)")  # fmt: skip
    assert table(acid) == ordered([(1, 5, None), (2, 5, None), (3, 5, None)])
    for source in ("VALUES (1, 2)", "SELECT 1"):
        with pytest.raises(AnalysisError, match="NOT_ENOUGH_DATA_COLUMNS"):
            acid.sql(f"INSERT INTO t {source}")


def test_generated_and_identity_columns_are_refused_by_name(acid):
    acid.sql("CREATE TABLE t (a INT)")
    for text in ("ALWAYS AS (a + 1)", "ALWAYS AS IDENTITY", "BY DEFAULT AS IDENTITY"):
        for statement in (
            "CREATE TABLE u (a INT, b BIGINT {})",
            "ALTER TABLE t ADD COLUMN b INT {}",
        ):
            sql = statement.format(f"GENERATED {text}")
            refused(acid, sql, "UNSUPPORTED_FEATURE", "GENERATED")


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_an_overwrite_without_partition_replaces_the_partitions_that_get_rows(acid, conf, mode):
    conf("spark.sql.sources.partitionOverwriteMode", mode)
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1", "2, 2", "3, 2")
    for target in ("t", "t PARTITION (p)"):
        acid.sql(f"INSERT OVERWRITE {target} SELECT 9, 2")
        assert table(acid) == [(1, 1), (9, 2)]
    acid.sql("INSERT OVERWRITE t SELECT * FROM t WHERE false")
    assert table(acid) == [(1, 1), (9, 2)]
    with acid.transaction():
        acid.sql("DELETE FROM t")
        acid.sql("INSERT INTO t VALUES (5, 5)")
    assert table(acid) == [(5, 5)]
