"""ADD COLUMN … DEFAULT: old rows have NULL, as in Hive; WITH VALUES they have the DEFAULT."""

from __future__ import annotations

import pytest
from kit import fill, ordered, refused, rows, table
from over_hive import OVER_HIVE, needs
from pyspark.errors import PySparkException

from acidsql.errors import AcidSqlError, ConstraintError, UnsupportedError

pytestmark = pytest.mark.spark


def test_old_rows_have_null_in_an_added_column_and_the_receipt_says_so(acid):
    fill(acid, "t (id INT)", "1")
    acid.sql("ALTER TABLE t ADD COLUMNS (a INT DEFAULT 7, b INT, `c d` STRING DEFAULT 'x')")
    note = str(acid.last)
    assert "rows that are there show NULL in a, `c d`" in note and "SET a = DEFAULT" in note
    acid.sql("INSERT INTO t (id) VALUES (2)")
    assert table(acid) == ordered([(1, None, None, None), (2, 7, None, "x")])
    acid.sql("UPDATE t SET a = DEFAULT WHERE a IS NULL")
    assert table(acid) == ordered([(1, 7, None, None), (2, 7, None, "x")])
    acid.sql("ALTER TABLE t ADD COLUMN e INT")
    assert "NULL" not in str(acid.last)
    acid.sql("ALTER TABLE t ADD COLUMN f INT DEFAULT NULL")
    assert "NULL" not in str(acid.last)


@pytest.mark.parametrize("fast", ["true", "false"])
@needs("alters_in_commit")
def test_with_values_old_rows_get_the_default_in_the_same_transaction(acid, fast):
    acid.sql(f"SET acidsql.fast.paths = {fast}")
    acid.sql(
        "CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p STRING) CLUSTERED BY (id) "
        "INTO 2 BUCKETS"
    )
    acid.sql("INSERT INTO t VALUES (1, 'a', 'x'), (2, NULL, NULL)")
    acid.sql("INSERT INTO t VALUES (3, 'c', 'y')")
    acid.sql("DELETE FROM t WHERE id = 3")
    acid.sql("ALTER TABLE t ADD COLUMNS (`Zahl 1` DECIMAL(5, 2) DEFAULT 1.5 COMMENT 'c', "
             "s STRING NOT NULL DEFAULT concat('d', 'e')) WITH VALUES")  # fmt: skip
    assert [count.updated for count in acid.last.counts] == [2]
    found = [(*row[:2], str(row[2]), *row[3:]) for row in acid.table("t").collect()]
    assert ordered(found) == ordered([(1, "a", "1.50", "de", "x"), (2, None, "1.50", "de", None)])
    acid.sql("INSERT INTO t (id, p) VALUES (4, 'x')")
    assert rows(acid, "SELECT s, CAST(`Zahl 1` AS STRING) FROM t WHERE id = 4") == [("de", "1.50")]
    with pytest.raises(ConstraintError, match="NOT NULL"):
        acid.sql("UPDATE t SET s = NULL")
    described = {row.col_name: row.comment for row in acid.sql("DESCRIBE t").collect()}
    assert described["zahl 1"] == "c"
    newest = acid.sql("DESCRIBE HISTORY t").collect()[1]
    assert newest.operation == "ADD COLUMNS" and "WITH VALUES" in str(newest)


@needs("alters_in_commit")
def test_with_values_of_an_empty_table_and_of_one_column_without_brackets(acid):
    acid.sql("CREATE TABLE t (id INT)")
    acid.sql("ALTER TABLE t ADD COLUMN a INT NOT NULL DEFAULT 1 + 1 WITH VALUES")
    acid.sql("INSERT INTO t (id) VALUES (1)")
    assert table(acid) == [(1, 2)]


@needs("alters_in_commit")
def test_with_values_what_fails_leaves_the_table_as_it_was(acid):
    fill(acid, "t (id INT, CHECK (id < 9))", "1", "2")
    for columns in ("n INT NOT NULL DEFAULT nullif(1, 1)", "n INT DEFAULT CAST('x' AS INT)"):
        with pytest.raises((AcidSqlError, PySparkException)):  # the second one is Spark's own
            acid.sql(f"ALTER TABLE t ADD COLUMN {columns} WITH VALUES")
        assert table(acid) == [(1,), (2,)]
        assert [row.col_name for row in acid.sql("DESCRIBE t").collect()] == ["id"]


@needs("alters_in_commit")
def test_what_with_values_cannot_do_is_refused_by_name(acid):
    fill(acid, "t (id INT) PARTITIONED BY (p INT)", "1, 1")
    acid.sql("CREATE TABLE i (id INT) TBLPROPERTIES ('transactional_properties'='insert_only')")
    refused(
        acid, "ALTER TABLE t ADD COLUMN a INT WITH VALUES", "UNSUPPORTED_FEATURE", "WITH VALUES"
    )
    refused(acid, "ALTER TABLE t ADD COLUMNS (a INT DEFAULT 1, b INT) WITH VALUES",
            "UNSUPPORTED_FEATURE", "WITH VALUES")  # fmt: skip
    refused(acid, "ALTER TABLE i ADD COLUMN a INT DEFAULT 1 WITH VALUES", "UNSUPPORTED_FEATURE",
            "WITH VALUES")  # fmt: skip
    refused(acid, "ALTER TABLE t ADD COLUMN p INT DEFAULT 1 WITH VALUES", "COLUMN_ALREADY_EXISTS")
    refused(acid, "ALTER TABLE t ADD COLUMN a INT NOT NULL DEFAULT 1", "UNSUPPORTED_FEATURE",
            "a INT NOT NULL DEFAULT 1")  # fmt: skip
    with acid.transaction(), pytest.raises(AcidSqlError, match="OP_NOT_ALLOWED_IN_TXN"):
        acid.sql("ALTER TABLE t ADD COLUMN a INT DEFAULT 1 WITH VALUES")


@pytest.mark.skipif(not OVER_HIVE, reason="acidsql's own metastore changes columns in a COMMIT")
def test_a_hive_metastore_does_not_do_it_in_one_step(acid):
    fill(acid, "t (id INT)", "1")
    with pytest.raises(UnsupportedError, match="UPDATE"):
        acid.sql("ALTER TABLE t ADD COLUMN a INT DEFAULT 1 WITH VALUES")
