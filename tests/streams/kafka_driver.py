"""A driver that follows a topic of Kafka until it has all records, or dies where it is told to.

    python kafka_driver.py DIRECTORY BROKER [BATCH before|after]

With ``before``, it dies in this batch when it has written all files, before COMMIT; with ``after``,
after COMMIT, before Spark notes that the batch is done. It dies of SIGKILL, with its JVM.
"""

from __future__ import annotations

import os
import signal
import sys

from small_spark import small_spark

import acidsql
from acidsql.metastore.embedded import EmbeddedMetastore

TABLE = "CREATE TABLE IF NOT EXISTS customers (id INT, name STRING) PARTITIONED BY (city STRING)"
COLUMNS = "id INT, name STRING, city STRING"
BATCH = 60  # records


def main(directory: str, broker: str, number: str = "", moment: str = "") -> None:
    spark = small_spark(f"{directory}/spark", threads=2)
    with acidsql.connect(spark, warehouse=f"{directory}/warehouse", compactor="inline") as acid:
        acid.sql(TABLE)
        records = (
            spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker)
            .option("subscribe", "shop.public.customers").option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", BATCH).load()
        )  # fmt: skip
        changes = acid.changes_from("debezium", records, COLUMNS)
        cdc = acid.auto_cdc(
            "customers", keys="id", sequence_by="_sequence", apply_as_deletes="_op = 'delete'",
            column_list=["id", "name", "city"],
        )  # fmt: skip

        def apply(rows, batch):
            if str(batch) == number and moment == "before":
                EmbeddedMetastore.commit_txn = die
            cdc(rows, batch)
            if str(batch) == number:
                die()

        query = (
            changes.writeStream.foreachBatch(apply)
            .option("checkpointLocation", f"{directory}/checkpoint")
            .trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()


def die(*_, **__):
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
