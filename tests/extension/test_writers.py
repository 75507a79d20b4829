"""``writeTo``, ``mergeInto`` and the options of writers, for ACID tables."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from acidsql.errors import (
    AnalysisError,
    ConstraintError,
    SettingError,
    UnsupportedError,
)

ROWS = [(1, "a"), (2, "b"), (3, "c")]
COLUMNS = "id INT, name STRING"


@pytest.fixture
def extended(acid):
    acid.extend()
    return acid


@pytest.fixture
def table(extended):
    extended.create_table("t", COLUMNS)
    extended.insert_into("t", extended.spark.createDataFrame(ROWS, COLUMNS))
    return extended


def frame(spark, rows, columns=COLUMNS):
    return spark.createDataFrame(rows, columns)


def rows(session, table="t"):
    return sorted(tuple(row) for row in session.sql(f"SELECT * FROM {table}").collect())


def condition(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.value.getCondition()


def test_append_goes_by_name(table, spark):
    frame(spark, [("d", 4)], "name STRING, id INT").writeTo("default.t").append()
    assert rows(table) == [*ROWS, (4, "d")]


def test_overwrite_replaces_the_rows_of_the_condition_in_one_version(table, spark):
    versions = table.history("t").count()
    frame(spark, [(2, "new"), (9, "more")]).writeTo("t").overwrite(F.col("id").isin(2, 3, 9))
    assert rows(table) == [(1, "a"), (2, "new"), (9, "more")]
    assert table.history("t").count() == versions + 1


def test_overwrite_refuses_new_rows_outside_of_the_condition(table, spark):
    with pytest.raises(ConstraintError):
        frame(spark, [(7, "x")]).writeTo("t").overwrite(F.col("id") == 2)
    assert rows(table) == ROWS


def test_overwrite_of_all_rows(table, spark):
    frame(spark, [(7, "x")]).writeTo("t").overwrite(F.lit(True))
    assert rows(table) == [(7, "x")]


def test_overwrite_partitions_leaves_the_other_partitions(extended, spark):
    frame(spark, ROWS).writeTo("p").using("acidsql").partitionedBy("name").create()
    frame(spark, [(8, "a"), (9, "d")]).writeTo("p").overwritePartitions()
    assert rows(extended, "p") == [(2, "b"), (3, "c"), (8, "a"), (9, "d")]


def test_create_takes_partitions_and_properties(extended, spark):
    writer = frame(spark, ROWS).writeTo("p").using("AcidSQL").partitionedBy(F.col("name"))
    writer.tableProperty("a'b", "c").create()
    table = extended._table("p")
    assert [column.name for column in table.partition_columns] == ["name"]
    assert table.properties["a'b"] == "c"
    assert condition(writer.create) == "TABLE_OR_VIEW_ALREADY_EXISTS"


def test_create_or_replace_makes_and_replaces(extended, spark):
    for new_rows in (ROWS, ROWS[:1]):
        frame(spark, new_rows).writeTo("n").using("acidsql").createOrReplace()
        assert rows(extended, "n") == new_rows
    frame(spark, [(1,)], "k INT").writeTo("n").replace()
    assert rows(extended, "n") == [(1,)]


def test_replace_of_what_is_missing_is_an_error(extended, spark):
    writer = frame(spark, ROWS).writeTo("missing").using("acidsql")
    assert condition(writer.replace) == "TABLE_OR_VIEW_NOT_FOUND"
    assert not spark.catalog.tableExists("missing")


def test_another_format_for_an_acid_table_is_refused(table, spark):
    new = frame(spark, [(7, "x")])
    with pytest.raises(AnalysisError, match="is an ACID table, and format"):
        new.write.format("parquet").mode("overwrite").saveAsTable("t")
    with pytest.raises(AnalysisError, match="is an ACID table, and using"):
        new.writeTo("t").using("parquet").createOrReplace()
    assert rows(table) == ROWS


def test_without_a_format_the_setting_decides_about_new_tables(extended, spark):
    frame(spark, ROWS).write.saveAsTable("plain")
    extended.sql("SET acidsql.default.tables=true")
    try:
        frame(spark, ROWS).write.saveAsTable("ours")
        spark.sql("CREATE TABLE ours_too (a INT)")
        frame(spark, ROWS).write.mode("append").saveAsTable("plain")  # it exists: Spark's
        frame(spark, ROWS).writeTo("ours_three").create()
        assert spark.table("plain").count() == 6
        assert extended.metastore.tables("default") == ["ours", "ours_three", "ours_too"]
    finally:
        extended.sql("RESET acidsql.default.tables")
        spark.sql("DROP TABLE plain")


def test_options_of_a_writer(table, spark):
    new = frame(spark, [(4, "d", 1.5)], f"{COLUMNS}, size DOUBLE")
    new.write.option("mergeSchema", True).mode("append").saveAsTable("t")
    assert rows(table)[-1] == (4, "d", 1.5)
    replaced = frame(spark, [(4, "e", 2.5)], f"{COLUMNS}, size DOUBLE")
    replaced.write.mode("overwrite").option("replaceWhere", "id = 4").saveAsTable("t")
    assert rows(table)[-1] == (4, "e", 2.5)
    assert len(rows(table)) == 4


def overwritten(session, table, new, **options):
    new.write.mode("overwrite").options(**options).saveAsTable(table)
    return session.spark.table(table).columns, rows(session, table)


def test_an_overwrite_of_partitions_that_get_rows_leaves_the_table(extended, spark):
    frame(spark, ROWS).write.format("acidsql").partitionBy("name").saveAsTable("p")
    new = frame(spark, [(8, "a")])
    expected = [(2, "b"), (3, "c"), (8, "a")]
    dynamic = {"partitionOverwriteMode": "Dynamic"}
    assert overwritten(extended, "p", new, **dynamic) == (["id", "name"], expected)
    assert [column.name for column in extended._table("p").partition_columns] == ["name"]
    kept = {"overwriteSchema": "false"}
    assert overwritten(extended, "p", new, **kept) == (["id", "name"], [(8, "a")])
    assert [column.name for column in extended._table("p").partition_columns] == ["name"]


def test_an_overwrite_that_merges_schemas_keeps_the_columns_of_the_table(table, spark):
    new = frame(spark, [(8, 1.5)], "id INT, size DOUBLE")
    merged = (["id", "name", "size"], [(8, None, 1.5)])
    assert overwritten(table, "t", new, mergeSchema=True) == merged
    with pytest.raises(AnalysisError, match="mergeSchema"):
        overwritten(table, "t", new, overwriteSchema=False)
    assert (spark.table("t").columns, rows(table)) == merged
    both = {"overwriteSchema": True, "mergeSchema": True}
    assert overwritten(table, "t", new, **both) == (["id", "size"], [(8, 1.5)])


@pytest.mark.parametrize(
    ("error", "write"),
    [
        (SettingError, lambda w: w.mode("append").saveAsTable("t", replaceWhere="id = 1")),
        (SettingError, lambda w: w.option("replaceWhere", "id = 1").insertInto("t")),
        (SettingError, lambda w: w.option("partitionOverwriteMode", "all").insertInto("t", True)),
        (SettingError, lambda w: w.mode("append").option("mergeSchema", "yes").saveAsTable("t")),
        (SettingError, lambda w: w.mode("overwrite").saveAsTable(
            "t", overwriteSchema=True, replaceWhere="id = 1")),
        (UnsupportedError, lambda w: w.option("mergeSchema", True).insertInto("t")),
        (UnsupportedError, lambda w: w.option("overwriteSchema", True).insertInto("t", True)),
    ],
)  # fmt: skip
def test_an_option_that_would_be_lost_is_an_error(table, spark, error, write):
    with pytest.raises(error):
        write(frame(spark, [(7, "x")]).write)
    assert rows(table) == ROWS
    assert spark.table("t").columns == ["id", "name"]


@pytest.mark.parametrize(
    "write",
    [
        lambda new: new.write.option("path", "/x").mode("append").saveAsTable("t"),
        lambda new: new.write.option("compression", "zstd").insertInto("t"),
        lambda new: new.write.format("acidsql").saveAsTable("n", path="/x"),
        lambda new: new.writeTo("t").option("a", "b").append(),
        lambda new: new.write.mode("append").clusterBy("id").saveAsTable("t"),
        lambda new: new.write.format("acidsql").clusterBy("id").saveAsTable("n"),
        lambda new: new.writeTo("n").using("acidsql").partitionedBy(F.years("id")).create(),
    ],
)
def test_what_a_writer_cannot_keep_is_refused(table, spark, write):
    with pytest.raises(UnsupportedError):
        write(frame(spark, [(7, "x")]))
    assert rows(table) == ROWS
    assert not spark.catalog.tableExists("n")


def test_an_append_with_another_layout_is_an_error(extended, spark):
    frame(spark, ROWS).write.format("acidsql").bucketBy(2, "id").saveAsTable("b")
    frame(spark, ROWS).write.mode("append").bucketBy(2, "ID").saveAsTable("b")
    for writer in (
        frame(spark, ROWS).write.bucketBy(3, "id"),
        frame(spark, ROWS).write.bucketBy(2, "name"),
        frame(spark, ROWS).write.bucketBy(2, "id").sortBy("name"),
        frame(spark, ROWS).write.partitionBy("name"),
    ):
        with pytest.raises(AnalysisError):
            writer.mode("append").saveAsTable("b")
    assert rows(extended, "b") == sorted(ROWS * 2)


def test_an_order_needs_buckets(extended, spark):
    writer = frame(spark, ROWS).write.format("acidsql").sortBy("id")
    assert condition(lambda: writer.saveAsTable("n")) == "SORT_BY_WITHOUT_BUCKETING"


def test_merge_into_has_pysparks_builder(table, spark):
    news = frame(spark, [(2, "new"), (9, "more")]).alias("s")
    merge = news.mergeInto("t", F.expr("t.id = s.id"))
    merge.whenMatched().updateAll().whenNotMatched().insertAll().whenNotMatchedBySource(
        F.expr("t.id = 3")
    ).delete().merge()
    assert rows(table) == [(1, "a"), (2, "new"), (9, "more")]


def test_an_overwrite_may_read_its_own_table(table, spark):
    spark.table("t").where("id > 1").write.mode("overwrite").saveAsTable("t")
    assert rows(table) == ROWS[1:]
    spark.table("t").limit(1).write.insertInto("t", overwrite=True)
    assert len(rows(table)) == 1


def test_a_reader_shows_older_versions(table, spark):
    table.sql("DELETE FROM t WHERE id = 1")
    first = sorted(row.version for row in table.history("t").collect())[-2]
    assert spark.read.option("versionAsOf", first).table("t").count() == 3
    assert spark.read.options(versionAsOf=str(first)).table("default.t").count() == 3
    assert spark.read.table("t").count() == 2
    for wrong in ("newest", 1.9, True):
        with pytest.raises(SettingError, match="is no number of a version"):
            spark.read.option("versionAsOf", wrong).table("t")
    # Another format may have versions by name, and other options.
    assert spark.read.option("versionAsOf", "newest").format("parquet") is not None
    with pytest.raises(UnsupportedError, match="readchangefeed"):
        spark.read.option("readChangeFeed", True).table("t")


def test_a_reader_with_a_schema_reads_no_table(table, spark):
    with pytest.raises(AnalysisError, match="excludes schema"):
        spark.read.schema("id INT").table("t")


def test_a_failed_write_leaves_the_table_as_it_was(table, spark):
    bad = spark.sql("SELECT id, raise_error('no') AS name FROM range(2)")
    for write in (
        lambda: bad.write.mode("overwrite").saveAsTable("t"),
        lambda: bad.write.insertInto("t", overwrite=True),
        lambda: bad.writeTo("t").append(),
        lambda: bad.writeTo("t").createOrReplace(),
        lambda: bad.write.format("acidsql").saveAsTable("n"),
    ):
        with pytest.raises(Exception, match="no"):
            write()
    assert rows(table) == ROWS
    assert not spark.catalog.tableExists("n")


def test_writes_belong_to_the_open_transaction(table, spark):
    with pytest.raises(ZeroDivisionError), table.transaction():
        frame(spark, [(4, "d")]).write.insertInto("t")
        frame(spark, [(5, "e")]).writeTo("t").append()
        assert spark.table("t").count() == 5
        1 / 0  # noqa: B018
    assert rows(table) == ROWS
    spark.sql("BEGIN")
    spark.sql("DELETE FROM t")
    spark.sql("ROLLBACK")
    assert rows(table) == ROWS


def test_a_database_that_only_spark_has_gets_acid_tables(extended, spark):
    spark.sql("CREATE DATABASE only_spark")
    try:
        frame(spark, ROWS).write.format("acidsql").saveAsTable("only_spark.t")
        spark.sql("CREATE TABLE only_spark.u USING acidsql AS SELECT * FROM only_spark.t")
        assert rows(extended, "only_spark.u") == ROWS
        assert [table.name for table in spark.catalog.listTables("only_spark")] == ["t", "u"]
        assert condition(lambda: spark.sql("DROP DATABASE only_spark")) == "SCHEMA_NOT_EMPTY"
    finally:
        spark.sql("DROP DATABASE only_spark CASCADE")
    assert not spark.catalog.databaseExists("only_spark")


def test_the_catalog_drops_and_empties_tables(table, spark):
    if not hasattr(spark.catalog, "dropTable"):
        pytest.skip("This PySpark's catalog has no dropTable.")
    spark.catalog.truncateTable("t")
    assert rows(table) == []
    spark.catalog.dropTable("t")
    with pytest.raises(Exception, match="NOT_FOUND"):
        spark.catalog.getTable("t")
