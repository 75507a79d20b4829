"""An ACID database is a database of Spark's, too: one name means the same in both catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kit import fill, rows, table
from over_hive import needs
from pyspark.errors import AnalysisException

import acidsql
from acidsql.errors import AcidSqlError, AnalysisError, CatalogError


@pytest.fixture(autouse=True)
def _no_databases_are_left(spark: Any) -> Iterator[None]:
    yield
    spark.catalog.setCurrentDatabase("default")
    for database in spark.catalog.listDatabases():
        if database.name != "default":
            spark.sql(f"DROP DATABASE IF EXISTS `{database.name}` CASCADE")
    spark.sql("DROP TABLE IF EXISTS default.plain")


def sparks_tables(spark: Any, database: str) -> list[str]:
    return [one.name for one in spark.catalog.listTables(database) if not one.isTemporary]


def test_a_table_of_sparks_is_made_in_the_current_database(spark, acid):
    acid.sql("CREATE DATABASE x")
    acid.sql("USE x")
    acid.sql("CREATE TABLE plain USING parquet AS SELECT 1 AS id")
    fill(acid, "ours (id INT)", "2")
    assert sparks_tables(spark, "x") == ["plain"]
    assert sparks_tables(spark, "default") == []
    assert rows(acid, "SELECT current_database()") == [("x",)]
    assert rows(acid, "SELECT * FROM plain, ours") == [(1, 2)]
    assert rows(acid, "SELECT * FROM x.plain, x.ours") == [(1, 2)]
    acid.sql("USE default")
    with pytest.raises(AnalysisError, match="TABLE_OR_VIEW_NOT_FOUND"):
        acid.sql("SELECT * FROM ours, plain")


def test_a_database_is_described_as_spark_describes_its_own(spark, acid):
    said = "COMMENT 'it''s' WITH DBPROPERTIES ('a'='1', 'B'='`x.ü', 'd.e'='')"
    acid.sql(f"CREATE DATABASE x {said}")
    spark.sql(f"CREATE DATABASE sparks {said}")
    for _ in range(2):
        described = dict(acid.sql("DESCRIBE DATABASE EXTENDED X").collect())
        expected = dict(spark.sql("DESCRIBE DATABASE EXTENDED sparks").collect())
        assert described.pop("Location") == acid.metastore.get_database("x").location
        assert described | {"Namespace Name": "sparks"} == {
            key: value for key, value in expected.items() if key not in ("Location", "Owner")
        }
        for name in ("spark_catalog.X", "sparks"):
            acid.sql(f"ALTER SCHEMA {name} SET DBPROPERTIES ('a'='2', c.d=3)")
            acid.sql(f"ALTER DATABASE {name} UNSET DBPROPERTIES ('d.e', 'unknown')")
    assert "Properties" not in dict(acid.sql("DESC DATABASE x").collect())
    assert acid.sql("SHOW TABLES IN x").count() == 0
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        acid.sql("ALTER DATABASE nope SET DBPROPERTIES ('a'='2')")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE x.plain (id INT) USING parquet",
        "CREATE TABLE X.plain USING parquet AS SELECT id FROM x.ours",
        "ALTER DATABASE x SET DBPROPERTIES ('a'='b')",
        "DESCRIBE DATABASE x",
        "USE x",
        "USE spark_catalog.x",
        "CREATE DATABASE IF NOT EXISTS x",
    ],
)
def test_a_database_of_another_session_is_there_for_spark(spark, acid, statement):
    """Spark's in-memory catalog begins without the databases that a metastore remembers."""
    acid.sql("CREATE DATABASE x")
    fill(acid, "x.ours (id INT)", "1")
    spark.sql("DROP DATABASE x")  # the state that a new process would find
    assert rows(acid, "SELECT * FROM x.ours") == [(1,)]
    acid.sql(statement)
    assert spark.catalog.databaseExists("x")
    assert rows(acid, "SELECT * FROM x.ours") == [(1,)]


def test_a_database_of_sparks_becomes_ours(spark, acid):
    spark.sql("CREATE DATABASE x")
    spark.sql("CREATE TABLE x.plain USING parquet AS SELECT 1 AS id")
    acid.sql("USE x")
    with pytest.raises(CatalogError, match="SCHEMA_NOT_FOUND"):
        acid.sql("CREATE TABLE ours (id INT)")
    acid.sql("CREATE DATABASE IF NOT EXISTS x")
    fill(acid, "ours (id INT)", "2")
    assert rows(acid, "SELECT * FROM plain, ours") == [(1, 2)]


def test_names_follow_the_database_that_spark_was_told_of(spark, acid):
    acid.sql("CREATE DATABASE x")
    fill(acid, "x.t (id INT)", "1")
    fill(acid, "t (id INT)", "2")
    spark.catalog.setCurrentDatabase("x")
    assert table(acid) == [(1,)]
    acid.sql("USE DATABASE default")
    assert table(acid) == [(2,)]


def test_drop_takes_both(spark, acid):
    acid.sql("CREATE DATABASE x")
    acid.sql("DROP DATABASE x")
    assert not spark.catalog.databaseExists("x")
    acid.sql("CREATE DATABASE x")
    fill(acid, "x.ours (id INT)", "1")
    acid.sql("CREATE TABLE x.plain (id INT) USING parquet")
    with pytest.raises(CatalogError, match="SCHEMA_NOT_EMPTY"):
        acid.sql("DROP DATABASE x")
    acid.sql("DROP TABLE x.ours")
    with pytest.raises(CatalogError, match=r"SCHEMA_NOT_EMPTY.*'plain' of Spark's"):
        acid.sql("DROP DATABASE x")
    assert acid.metastore.get_database("x") is not None
    acid.sql("DROP DATABASE x CASCADE")
    assert not spark.catalog.databaseExists("x")
    assert acid.metastore.get_database("x") is None
    acid.sql("DROP DATABASE IF EXISTS x")
    with pytest.raises(AcidSqlError, match="SCHEMA_NOT_FOUND"):
        acid.sql("DROP DATABASE x")


def test_a_database_that_only_spark_has_is_dropped(spark, acid):
    spark.sql("CREATE DATABASE x")
    acid.sql("DROP DATABASE x")
    assert not spark.catalog.databaseExists("x")


def test_sparks_drop_leaves_acid_rows_alone(spark, tmp_path):
    """In one warehouse, which is the default, both would name the directory x.db."""
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    store = f"sqlite:///{tmp_path}/metastore.db"
    with acidsql.connect(spark, warehouse=warehouse, metastore=store, compactor="off") as acid:
        for first in ("acid", "spark"):
            if first == "spark":
                spark.sql("CREATE DATABASE x")
            acid.sql("CREATE DATABASE x")
            fill(acid, "x.ours (id INT)", "1")
            spark.sql("DROP DATABASE x CASCADE")
            assert rows(acid, "SELECT * FROM x.ours") == [(1,)]
            acid.sql("DROP DATABASE x CASCADE")


@needs("old directories")
def test_a_drop_that_would_delete_a_table_of_another_database_is_refused(spark, acid):
    place = Path(acid.warehouse) / "x.db"
    acid.sql(f"CREATE DATABASE x LOCATION '{place}'")
    spark.sql("DROP DATABASE x")
    spark.sql(f"CREATE DATABASE x LOCATION '{place}'")
    fill(acid, "x.t (id INT)", "1")
    acid.sql("ALTER TABLE x.t RENAME TO default.moved")
    with pytest.raises(CatalogError, match=r"SCHEMA_NOT_EMPTY.*default\.moved lies there"):
        acid.sql("DROP DATABASE x CASCADE")
    assert table(acid, "moved") == [(1,)]


def test_a_name_that_spark_refuses_is_refused_before_anything_is_made(acid):
    with pytest.raises(AnalysisError, match="INVALID_SCHEMA_OR_RELATION_NAME"):
        acid.sql("CREATE DATABASE `a-b`")
    assert [one.name for one in acid.metastore.databases()] == ["default"]


def test_a_namespace_of_another_catalog_is_sparks(acid):
    for statement in ("CREATE DATABASE nowhere.x", "USE nowhere.x", "DROP DATABASE nowhere.x"):
        with pytest.raises(AnalysisException, match="nowhere"):
            acid.sql(statement)
    assert [one.name for one in acid.metastore.databases()] == ["default"]
    with pytest.raises(AnalysisException, match="nowhere"):
        acid.sql("SHOW TABLES IN nowhere.default")


@pytest.fixture
def other(spark, acid, conf):
    """Another catalog of Spark's, with a table t in its namespace D, beside the ACID table d.t."""
    of = "spark.sql.catalog.other"
    conf(f"{of}.url", f"jdbc:derby:memory:{uuid4().hex};create=true")
    conf(f"{of}.driver", "org.apache.derby.jdbc.EmbeddedDriver")
    conf(of, "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS other.`d`")  # Spark keeps the catalog afterwards
    for name in ("t", "theirs"):
        spark.sql(f"DROP TABLE IF EXISTS other.`d`.{name}")
        spark.sql(f"CREATE TABLE other.`d`.{name} (id INT)")
    acid.sql("CREATE DATABASE d")
    fill(acid, "d.t (id INT)", "1")
    yield acid
    spark.catalog.setCurrentCatalog("spark_catalog")


@pytest.mark.parametrize("use", ["USE other.`d`", "SET CATALOG other", "USE other"])
def test_in_another_catalog_no_name_is_ours(spark, other, use):
    assert rows(other, "SHOW TABLES IN other.`d`")[0][:2] == ("d", "t")
    other.sql(use)
    if use != "USE other.`d`":
        other.sql("USE d")
    assert rows(other, "SELECT current_catalog(), current_schema()") == [("other", "d")]
    assert rows(other, "SELECT * FROM t") == rows(other, "SELECT * FROM d.t") == []
    assert len(rows(other, "SHOW TABLES")) == len(rows(other, "SHOW TABLES IN d")) == 2
    other.sql("INSERT INTO t VALUES (5), (6)")
    assert table(other) == table(other, "d.t") == [(5,), (6,)]
    for statement, condition in (
        ("DELETE FROM d.nope WHERE id = 1", "TABLE_OR_VIEW_NOT_FOUND"),
        ("CREATE TABLE mine (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')",
         "REQUIRES_SINGLE_PART_NAMESPACE"),
        ("SHOW LOCKS DATABASE d", "SCHEMA_NOT_FOUND"),
        ("SHOW COMPACTIONS DATABASE other.d", "SCHEMA_NOT_FOUND"),
    ):  # fmt: skip
        with pytest.raises((AnalysisException, AcidSqlError), match=condition):
            other.sql(statement)
    other.sql("USE spark_catalog")
    other.sql("USE d")
    assert table(other) == [(1,)]


def test_a_database_of_ours_keeps_its_location(spark, acid, tmp_path):
    acid.sql("CREATE DATABASE x")
    before = rows(acid, "DESCRIBE DATABASE x")
    for what in ("DATABASE x", "SCHEMA spark_catalog.X", "NAMESPACE `x`"):
        with pytest.raises(AcidSqlError, match="DATABASE_LOCATION"):
            acid.sql(f"ALTER {what} SET LOCATION '{tmp_path}/there'")
    assert rows(acid, "DESCRIBE DATABASE x") == before
    spark.sql("CREATE DATABASE theirs")
    acid.sql(f"ALTER DATABASE theirs SET LOCATION '{tmp_path}/there'")
    assert str(tmp_path) in str(rows(acid, "DESCRIBE DATABASE theirs"))
