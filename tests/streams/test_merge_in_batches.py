"""MERGE in ``foreachBatch``: a batch belongs to a Spark session of its own."""

from __future__ import annotations

import pytest
from over_hive import beside, needs
from pyspark.errors import PySparkException, StreamingQueryException

pytestmark = [pytest.mark.spark, needs("keeps_streams")]

MERGE = (
    "MERGE INTO t USING {batch} s ON t.id = s.id WHEN MATCHED AND s.v IS NULL THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


@pytest.fixture
def run(acid, spark, tmp_path):
    """Runs a function for ``foreachBatch`` over two batches, and the second one once more."""
    kind = "id INT, v STRING"
    for number, rows in enumerate([[(1, "a"), (2, "b")], [(2, None), (3, "c")]]):
        spark.createDataFrame(rows, kind).coalesce(1).write.json(f"{tmp_path}/in/d={number}")
    acid.sql("CREATE TABLE t (id INT, v STRING)")

    def run(write):
        again = []

        def each(batch, number):
            write(batch, number)
            write(batch, number)
            again.append(number)

        stream = spark.readStream.schema(f"{kind}, d INT").option("maxFilesPerTrigger", 1)
        query = stream.json(f"{tmp_path}/in").drop("d").writeStream.foreachBatch(each)
        query.option("checkpointLocation", f"{tmp_path}/c").trigger(availableNow=True)
        query.start().awaitTermination()
        return again

    return run


def test_a_session_on_the_batchs_own_spark_session_merges_each_batch_once(acid, run):
    merges = []

    def merge(batch, number):
        with (
            beside(acid, batch.sparkSession) as there,
            there.transaction(txn_app_id="orders", txn_version=number),
        ):
            counted = there.sql(MERGE, batch=batch).collect()
            merges.append(counted[0].num_affected_rows if counted else 0)

    assert run(merge) == [0, 1]
    assert sorted(map(tuple, acid.table("t").collect())) == [(1, "a"), (3, "c")]
    assert merges == [2, 0, 2, 0]


def test_a_session_on_another_spark_session_says_what_to_do(acid, run):
    with pytest.raises(PySparkException, match=r"acidsql\.connect\(df\.sparkSession"):
        run(lambda batch, number: acid.sql(MERGE, batch=batch))


def test_two_queries_that_merge_into_one_table_lose_and_double_no_batch(acid, spark, tmp_path):
    """Each query adds its batches to rows that the other one changes, too. A query whose batch met
    a conflict is started again, as a program would."""
    kind, ids, batches = "id INT, n INT", range(6), 2
    for number in range(batches):
        rows = spark.createDataFrame([(key, 10**number) for key in ids], kind).coalesce(1)
        rows.write.json(f"{tmp_path}/in/d={number}")
    acid.sql("CREATE TABLE t (id INT, n INT)")
    acid.sql("INSERT INTO t VALUES (0, 0), (1, 0), (2, 0)")
    add = (
        "MERGE INTO t USING {batch} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n + s.n "
        "WHEN NOT MATCHED THEN INSERT *"
    )

    def start(name):
        def merge(batch, number):
            with (
                beside(acid, batch.sparkSession) as there,
                there.transaction(txn_app_id=name, txn_version=number),
            ):
                there.sql(add, batch=batch)

        stream = spark.readStream.schema(f"{kind}, d INT").option("maxFilesPerTrigger", 1)
        writer = stream.json(f"{tmp_path}/in").drop("d").writeStream.foreachBatch(merge)
        writer = writer.option("checkpointLocation", f"{tmp_path}/{name}")
        return writer.trigger(availableNow=True).start()

    names = ["left", "right"]
    for _ in range(20):
        queries = {name: start(name) for name in names}
        names = []
        for name, query in queries.items():
            try:
                query.awaitTermination()
            except StreamingQueryException as error:
                assert "WRITE_CONFLICT" in str(error), error
                names.append(name)
        if not names:
            break
    assert names == []
    total = 2 * sum(10**number for number in range(batches))
    assert sorted(map(tuple, acid.table("t").collect())) == [(key, total) for key in ids]
