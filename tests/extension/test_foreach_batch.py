"""foreachBatch: the batch's session is a copy of the extended one, and its calls are refused."""

from __future__ import annotations

import shutil

import pytest
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import acidsql
from acidsql.errors import UnsupportedError

pytestmark = pytest.mark.classic
COLUMNS = "id INT, name STRING"
ROWS = [(1, "a"), (2, "b")]


@pytest.fixture
def table(acid, spark, tmp_path):
    acid.create_table("t", COLUMNS)
    acid.insert_into("t", spark.createDataFrame(ROWS, COLUMNS))
    spark.createDataFrame(ROWS, COLUMNS).coalesce(1).write.parquet(str(tmp_path / "source"))
    acid.extend()
    return acid


def run(spark, tmp_path, function):
    """Run a function for the one batch of a stream, and return its result or raise its error."""
    outcomes = []

    def noted(batch, batch_id):
        try:
            outcomes.append(function(batch, batch_id))
        except Exception as error:
            outcomes.append(error)

    source = spark.readStream.schema(COLUMNS).parquet(str(tmp_path / "source"))
    checkpoint = str(tmp_path / f"checkpoint{len(list(tmp_path.iterdir()))}")
    writer = source.writeStream.option("checkpointLocation", checkpoint)
    writer.foreachBatch(noted).trigger(availableNow=True).start().awaitTermination()
    (outcome,) = outcomes
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def rows(session):
    return sorted(tuple(row) for row in session.sql("SELECT * FROM t").collect())


def test_calls_about_acid_tables_in_a_batch_are_refused_by_name(table, spark, tmp_path):
    def refusals(batch, _):
        batch.createOrReplaceTempView("batch")
        session, merged = batch.sparkSession, "MERGE INTO t USING batch b ON t.id = b.id"
        calls = [
            lambda: batch.write.insertInto("t"),
            lambda: batch.write.mode("append").saveAsTable("t"),
            lambda: batch.write.mode("append").saveAsTable("spark_catalog.default.t"),
            lambda: batch.write.format("acidsql").saveAsTable("n"),
            lambda: batch.writeTo("t").append(),
            lambda: batch.writeTo("t").createOrReplace(),
            lambda: batch.mergeInto("t", F.expr("t.id = id")),
            lambda: session.sql(f"{merged} WHEN MATCHED THEN DELETE"),
            lambda: session.sql("CREATE TABLE IF NOT EXISTS t (a INT) USING parquet"),
            lambda: session.sql("SELECT * FROM t"),
            lambda: session.table("t"),
            lambda: session.read.table("default.t"),
            lambda: session.catalog.tableExists("t"),
        ]
        conditions = []
        for call in calls:
            with pytest.raises(UnsupportedError, match="acid.sink") as caught:
                call()
            conditions.append(caught.value.getCondition())
        return conditions

    conditions = run(spark, tmp_path, refusals)
    assert conditions == ["UNSUPPORTED_FEATURE.FOREACH_BATCH"] * 13
    table.extend(False)
    assert not spark.catalog.tableExists("t")
    assert not spark.catalog.tableExists("n")
    table.extend()
    assert rows(table) == ROWS


def test_calls_about_other_tables_in_a_batch_are_sparks(table, spark, tmp_path):
    def write(batch, _):
        session = batch.sparkSession
        batch.write.saveAsTable("batched")
        batch.write.insertInto("batched")
        batch.createOrReplaceTempView("batch")
        names = {row.tableName for row in session.sql("SHOW TABLES").collect()}
        session.sql("SHOW DATABASES").collect()
        count = session.sql("SELECT * FROM batched JOIN batch USING (id)").count()
        return names, count, session.catalog.tableExists("batched"), spark.table("t").count()

    try:
        assert run(spark, tmp_path, write) == ({"batched", "batch"}, 4, True, 2)
        assert spark.catalog.tableExists("batched")
    finally:
        spark.sql("DROP TABLE batched")


def test_a_batch_may_extend_its_own_session(table, spark, tmp_path):
    def write(batch, _):
        with acidsql.connect(
            batch.sparkSession, warehouse=table.warehouse, metastore=table.metastore.url,
            compactor="off", extend=True,
        ):  # fmt: skip
            batch.selectExpr("id + 10 AS id", "name").write.insertInto("t")
            return batch.sparkSession.table("t").count()

    assert run(spark, tmp_path, write) == 4
    assert rows(table) == [*ROWS, (11, "a"), (12, "b")]


def test_a_sink_is_a_function_for_batches_of_an_extended_session(table, spark, tmp_path):
    source = spark.readStream.schema(COLUMNS).parquet(str(tmp_path / "source"))
    for _ in range(2):  # the second query runs the batch again
        query = (
            source.writeStream.option("checkpointLocation", str(tmp_path / "sink"))
            .foreachBatch(table.sink("t", txn_app_id="app"))
            .trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        shutil.rmtree(tmp_path / "sink" / "commits")
        assert rows(table) == sorted(ROWS * 2)


def test_a_batch_of_a_closed_session_is_sparks(table, spark, tmp_path):
    own = vars(type(spark))["sql"].__wrapped__

    def look(batch, _):
        table.extend(False)
        return batch.sparkSession.catalog.tableExists("t")

    assert run(spark, tmp_path, look) is False
    assert vars(type(spark))["sql"] is own
