"""A name that an ACID table has: nothing of Spark's gets it, and each spelling of it is found."""

from __future__ import annotations

import pytest

from acidsql.errors import CatalogError, UnsupportedError

ROWS = [(1, "a"), (2, "b"), (3, "c")]
COLUMNS = "id INT, name STRING"


@pytest.fixture
def table(acid, spark):
    acid.create_table("t", COLUMNS)
    acid.insert_into("t", spark.createDataFrame(ROWS, COLUMNS))
    spark.sql("CREATE TABLE plain (id INT) USING parquet")
    acid.extend()
    yield acid
    acid.extend(False)
    for name in ("plain", "t"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def rows(session, table="default.t"):
    return sorted(tuple(row) for row in session.sql(f"SELECT * FROM {table}").collect())


def is_sparks(session, name):
    """Whether Spark itself has a table of a name."""
    session.extend(False)
    try:
        return session.spark.catalog.tableExists(name)
    finally:
        session.extend()


MAKING = [
    "CREATE TABLE t (a INT) USING parquet",
    "CREATE OR REPLACE TABLE t (a INT) USING parquet",
    "CREATE TABLE spark_catalog.default.t (a INT) USING parquet",
    "CREATE TABLE t USING parquet AS SELECT 1 AS a",
    "CREATE TABLE t LIKE plain",
    "CREATE VIEW t AS SELECT * FROM plain",
    "ALTER TABLE plain RENAME TO t",
    "ALTER TABLE default.plain RENAME TO t",
]


@pytest.mark.parametrize("view_hides", [False, True])
@pytest.mark.parametrize("text", MAKING)
def test_no_statement_makes_a_table_of_sparks_that_an_acid_table_hides(
    table, spark, text, view_hides
):
    if view_hides:
        spark.range(1).createOrReplaceTempView("t")
    for run in (spark.sql, table.sql):
        with pytest.raises(CatalogError) as caught:
            run(text)
        assert caught.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    spark.catalog.dropTempView("t")
    assert not is_sparks(table, "default.t")
    assert rows(table) == ROWS


@pytest.mark.parametrize("view_hides", [False, True])
def test_if_not_exists_makes_no_table_of_sparks_beside_an_acid_table(table, spark, view_hides):
    if view_hides:
        spark.range(1).createOrReplaceTempView("t")
    for run in (spark.sql, table.sql):
        run("CREATE TABLE IF NOT EXISTS t (a INT) USING parquet")
        run("CREATE TABLE IF NOT EXISTS t USING parquet AS SELECT 1 AS a")
        run("CREATE TABLE IF NOT EXISTS t LIKE plain")
    spark.catalog.dropTempView("t")
    assert not is_sparks(table, "default.t")
    assert rows(table) == ROWS


def test_other_names_are_free(table, spark):
    spark.sql("CREATE TABLE u LIKE plain")
    spark.sql("ALTER TABLE u RENAME TO w")
    spark.sql("CREATE DATABASE d")
    try:
        spark.sql("CREATE TABLE d.t USING parquet AS SELECT 1 AS a")
        spark.sql("ALTER TABLE d.t RENAME TO t2")
        spark.sql("ALTER TABLE d.t2 RENAME TO t")
        assert is_sparks(table, "d.t")
        assert is_sparks(table, "w")
    finally:
        spark.sql("DROP DATABASE d CASCADE")
        spark.sql("DROP TABLE w")


def test_the_catalog_makes_no_table_of_sparks_that_an_acid_table_hides(table, spark):
    schema = spark.table("t").schema
    with pytest.raises(CatalogError, match="There is an ACID table default.t already"):
        spark.catalog.createTable("t", source="parquet", schema=schema)
    with pytest.raises(UnsupportedError, match="create_table"):
        spark.catalog.createTable("n", source="acidsql", schema=schema)
    spark.catalog.createTable("n", source="parquet", schema=schema)
    assert is_sparks(table, "n")
    assert not is_sparks(table, "t")
    spark.sql("DROP TABLE n")


def test_a_stream_makes_no_table_of_sparks_that_an_acid_table_hides(table, spark, tmp_path):
    stream = spark.readStream.format("rate").load().selectExpr("1 AS id", "'x' AS name")

    def writer(name):
        writer = stream.writeStream.option("checkpointLocation", str(tmp_path / name))
        return writer.trigger(availableNow=True)

    for name in ("t", "spark_catalog.default.t"):
        with pytest.raises(UnsupportedError, match="acid.write_stream"):
            writer("a").toTable(name)
    with pytest.raises(UnsupportedError, match="acid.write_stream"):
        writer("b").format("acidsql").toTable("n")
    assert not is_sparks(table, "t")
    query = writer("c").toTable("streamed")
    query.awaitTermination()
    assert is_sparks(table, "streamed")
    spark.sql("DROP TABLE streamed")


def test_a_view_names_its_tables_without_sparks_catalog(table, spark):
    spark.sql("CREATE VIEW spark_catalog.default.v AS SELECT id FROM spark_catalog.default.t")
    assert rows(table, "v") == [(1,), (2,), (3,)]
    assert "spark_catalog" not in spark.sql("SHOW CREATE TABLE v").first()[0]


def test_statements_take_full_names(table, spark):
    full = "spark_catalog.default.t"
    spark.sql(f"UPDATE {full} SET name = 'z' WHERE id = 3")
    spark.sql(f"DELETE FROM {full} AS x WHERE x.id = 2")
    spark.sql(f"MERGE INTO {full} USING (SELECT 4 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN "
              "INSERT (id) VALUES (s.id)")  # fmt: skip
    assert rows(table, full) == [(1, "a"), (3, "z"), (4, None)]
    spark.sql("ALTER TABLE spark_catalog.default.t RENAME TO spark_catalog.default.u")
    assert spark.catalog.tableExists("spark_catalog.default.u")
    spark.sql("DROP TABLE spark_catalog.default.u")
    assert not spark.catalog.tableExists("u")
    with pytest.raises(Exception, match="REQUIRES_SINGLE_PART_NAMESPACE"):
        spark.sql("SELECT * FROM other_catalog.default.t").collect()


def test_the_newer_calls_of_the_catalog_know_acid_tables(table, spark):
    catalog = spark.catalog
    if not hasattr(type(catalog).__mro__[-2], "listViews"):
        pytest.skip("This PySpark's catalog has no such calls.")
    spark.sql("CREATE VIEW v AS SELECT * FROM t")
    assert [view.name for view in catalog.listViews()] == ["v"]
    assert [view.name for view in catalog.listViews("default", "x*")] == []
    catalog.dropView("v")
    assert catalog.listViews("default") == []
    assert catalog.getTableProperties("t")["transactional"] == "true"
    assert catalog.getCreateTableString("t").startswith("CREATE TABLE `default`.`t`")
    catalog.analyzeTable("t")
    spark.sql("CREATE TABLE p PARTITIONED BY (name) AS SELECT * FROM t")
    partitions = [entry.partition for entry in catalog.listPartitions("p")]
    assert partitions == ["name=a", "name=b", "name=c"]


def test_the_catalog_lists_and_drops_databases_of_both_catalogs(table, spark):
    database = type(table.metastore.get_database("default"))
    table.metastore.create_database(database("hidden", f"{table.warehouse}/hidden.db"))
    names = [entry.name for entry in spark.catalog.listDatabases()]
    assert names == sorted(names)
    assert "hidden" in names
    assert [entry.name for entry in spark.catalog.listDatabases("hid*")] == ["hidden"]
    if not hasattr(type(spark.catalog).__mro__[-2], "dropDatabase"):
        pytest.skip("This PySpark's catalog drops no databases.")
    spark.sql("CREATE TABLE hidden.t USING acidsql AS SELECT 1 AS one")
    with pytest.raises(CatalogError, match="is not empty"):
        spark.catalog.dropDatabase("hidden")
    spark.catalog.dropDatabase("hidden", cascade=True)
    assert table.metastore.get_database("hidden") is None
    assert not spark.catalog.databaseExists("hidden")


@pytest.mark.classic
def test_in_another_catalog_no_name_is_acidsqls(table, spark):
    other = "spark.sql.catalog.names"
    settings = {
        other: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        f"{other}.url": "jdbc:derby:memory:names;create=true",
        f"{other}.driver": "org.apache.derby.jdbc.EmbeddedDriver",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        spark.catalog.setCurrentCatalog("names")
        assert spark.catalog.databaseExists("spark_catalog.default")
        assert not spark.catalog.tableExists("default.t")
        assert spark.catalog.tableExists("spark_catalog.default.t")
        assert spark.sql("SELECT * FROM spark_catalog.default.t").count() == 3
        spark.sql("INSERT INTO spark_catalog.default.t VALUES (4, 'd')")
        assert "default" not in [entry.name for entry in spark.catalog.listDatabases()]
    finally:
        spark.catalog.setCurrentCatalog("spark_catalog")
        for name in settings:
            spark.conf.unset(name)
    assert rows(table) == [*ROWS, (4, "d")]


def test_without_extend_acid_sql_guards_the_name_too(acid, spark):
    acid.create_table("t", COLUMNS)
    with pytest.raises(CatalogError, match="There is an ACID table default.t already"):
        acid.sql("CREATE TABLE t (a INT) USING parquet")
    acid.sql("CREATE TABLE IF NOT EXISTS t (a INT) USING parquet")
    assert not spark.catalog.tableExists("t")


def test_a_note_about_an_extended_session_does_not_advise_to_extend_it(table, spark):
    with pytest.raises(Exception, match="NOT_FOUND") as caught:
        spark.sql("SELECT * FROM IDENTIFIER('t')").collect()
    (note,) = caught.value.__notes__
    assert "acidsql has `t`" in note
    assert "connect(spark, extend=True)" not in note
