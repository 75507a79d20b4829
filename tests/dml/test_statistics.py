"""ANALYZE TABLE: numbers of one snapshot, as Spark counts them in a table of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kit import refused, rows
from over_hive import beside, needs

from acidsql.errors import AcidSqlError, LockTimeoutError, TxnAbortedError, UnsupportedError

TYPES = (
    "`a.b` INT, `größe` STRING, l BIGINT, d DECIMAL(10,2), e DECIMAL(30,2), x DOUBLE, t BOOLEAN, "
    "`when` DATE, bin BINARY, v VARCHAR(9), allnull STRING, `array` ARRAY<INT>"
)
VALUES = (
    "SELECT CAST(id AS INT), concat('ä', id % 3), id * 1000, id / 4, -id, id / 8, id % 2 = 0, "
    "date_add(DATE'2024-02-28', CAST(id AS INT)), CAST('xyz' AS BINARY), repeat('v', 1 + id % 4), "
    "CAST(NULL AS STRING), array(1), CAST(id % 2 AS INT) FROM range(1, 21) "
    "UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 7"
)
IMPATIENT = {"hive.lock.numretries": "1", "hive.lock.sleep.between.retries": "1ms"}
COUNTED = ["a.b", "größe", "l", "d", "e", "x", "t", "when", "bin", "v", "allnull", "p"]


@pytest.fixture
def spark_table(spark: Any) -> Iterator[str]:
    """Spark's own table with the same rows, counted by Spark."""
    spark.sql("DROP TABLE IF EXISTS counted")
    spark.sql(f"CREATE TABLE counted ({TYPES}, p INT) USING parquet PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO counted {VALUES}")
    names = ", ".join(f"`{one}`" for one in COUNTED)
    spark.sql(f"ANALYZE TABLE counted COMPUTE STATISTICS FOR COLUMNS {names}")
    yield "counted"
    spark.sql("DROP TABLE counted")


def facts(frame: Any) -> dict[str, str]:
    return {row[0]: row[1] for row in frame.collect()}


def of_table(acid: Any, table: str = "t") -> dict[str, str]:
    found = facts(acid.sql(f"DESCRIBE EXTENDED {table}"))
    return {key: value for key, value in found.items() if key.startswith("Statistics")}


def of_column(acid: Any, column: str) -> dict[str, str]:
    return facts(acid.sql(f"DESCRIBE EXTENDED t `{column}`"))


def test_columns_are_counted_as_spark_counts_them(acid: Any, spark: Any, spark_table: str) -> None:
    acid.sql(f"CREATE TABLE t ({TYPES}) PARTITIONED BY (p INT)")
    acid.sql(f"INSERT INTO t {VALUES}")
    acid.sql("INSERT INTO t SELECT * FROM t WHERE l > 5000")
    acid.sql("DELETE FROM t WHERE row__id.writeid = 2")
    acid.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    assert "21 rows" in str(acid.last)
    for column in COUNTED:
        ours = of_column(acid, column)
        theirs = facts(spark.sql(f"DESCRIBE EXTENDED counted `{column}`"))
        theirs.pop("histogram", None)
        assert ours.pop("statistics_of").startswith("version 3, counted at 20"), column
        assert ours == theirs, column
    assert set(of_column(acid, "array").values()) == {"array", "array<int>", "NULL"}
    before = {column: of_column(acid, column)["max"] for column in "ld"}
    acid.sql("ALTER TABLE t RENAME COLUMN l TO m")
    acid.sql("ALTER TABLE t RENAME COLUMN d TO l")
    acid.sql("ALTER TABLE t ADD COLUMNS (n INT)")
    acid.sql("ALTER TABLE t ALTER COLUMN e TYPE DECIMAL(32,2)")
    assert of_column(acid, "m")["max"] == before["l"], "statistics follow the column's new name"
    assert of_column(acid, "l")["max"] == before["d"]
    assert of_column(acid, "e")["max"] == "NULL", "another type"
    assert of_column(acid, "p")["max"] == "7"
    error = refused(acid, "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS p, `array`",
                    "UNSUPPORTED_FEATURE", "`array`")  # fmt: skip
    assert "ARRAY<INT>" in str(error)
    refused(acid, "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS no", "COLUMN_NOT_FOUND", "no")
    with pytest.raises(AcidSqlError, match="There is no column 'no'"):
        acid.sql("DESCRIBE t no")


def test_the_numbers_of_a_table_say_which_version_they_are_of(acid: Any) -> None:
    acid.sql("CREATE TABLE t (a INT) TBLPROPERTIES ('k' = 'v')")
    acid.sql("INSERT INTO t VALUES (1), (2)")
    properties = rows(acid, "SHOW TBLPROPERTIES t")
    assert of_table(acid) == {}
    acid.sql("ANALYZE TABLE t COMPUTE STATISTICS")
    files = [one.bytes for one in acid.files("t").collect()]
    found = of_table(acid)
    assert found["Statistics"] == f"{sum(files)} bytes, 2 rows"
    assert found["Statistics Of"].startswith("version 1, counted at ")
    assert found["Statistics Of"].endswith(" UTC, 1 file")
    acid.sql("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN")
    assert of_table(acid)["Statistics"] == found["Statistics"], "the rows are of this version"
    acid.sql("DELETE FROM t WHERE a = 1")
    assert of_table(acid)["Statistics"] == found["Statistics"], "shown with its version"
    acid.sql("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN")
    files = [one.bytes for one in acid.files("t").collect()]
    found = of_table(acid)
    assert found["Statistics"] == f"{sum(files)} bytes" and len(files) == 2
    assert found["Statistics Of"].startswith("version 2, ")
    acid.sql("ANALYZE TABLES COMPUTE STATISTICS")
    assert "default.t: 1 rows" in str(acid.last)
    assert of_table(acid)["Statistics"] == f"{sum(files)} bytes, 1 rows"
    assert rows(acid, "SHOW TBLPROPERTIES t") == properties
    assert "statistics" not in rows(acid, "SHOW CREATE TABLE t")[0][0]
    refused(acid, "ALTER TABLE t SET TBLPROPERTIES ('acidsql.statistics.rows' = '{}')",
            "INVALID_PROPERTY_KEY")  # fmt: skip
    acid.sql("CREATE TABLE copy LIKE t")
    acid.sql("ALTER TABLE t RENAME TO u")
    assert of_table(acid, "copy") == {}
    assert of_table(acid, "u")["Statistics"].endswith("1 rows")


@needs("replaces_tables")
def test_nobody_drops_a_table_while_it_is_counted_and_writers_do_not_wait(
    acid: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    acid.sql("CREATE TABLE t (a INT)")
    acid.sql("INSERT INTO t VALUES (1)")
    keep, refusals = type(acid.metastore).keep_statistics, []

    def meanwhile(self: Any, *args: Any, **keywords: Any) -> None:
        with beside(acid, compactor="off", settings=IMPATIENT) as other:
            other.sql("INSERT INTO t VALUES (2)")
            for ddl in ("DROP TABLE t", "CREATE OR REPLACE TABLE t (b INT)"):
                with pytest.raises(LockTimeoutError, match="ANALYZE TABLE t") as caught:
                    other.sql(ddl)
                refusals.append(caught.value)
        keep(self, *args, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(type(acid.metastore), "keep_statistics", meanwhile)
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS")
    assert of_table(acid)["Statistics"].endswith(" 1 rows") and len(refusals) == 2

    def aborted(self: Any, *args: Any, **keywords: Any) -> None:
        self.abort_txn(keywords["txn_id"])
        keep(self, *args, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(type(acid.metastore), "keep_statistics", aborted)
        with pytest.raises(TxnAbortedError):
            acid.sql("ANALYZE TABLE t COMPUTE STATISTICS")
    assert of_table(acid)["Statistics"].endswith(" 1 rows"), "without its lock it notes nothing"
    acid.sql("CREATE OR REPLACE TABLE t (a INT)")
    assert of_table(acid) == {}, "it is another table"
    acid.sql("BEGIN")
    with pytest.raises(UnsupportedError, match="ANALYZE TABLE cannot be part of a transaction"):
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS")
    acid.sql("ROLLBACK")
