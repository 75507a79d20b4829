"""A driver that follows a directory of JSON files until it is killed.

    python killed_driver.py DIRECTORY append|changes

The rows go into the table ``t``.
"""

from __future__ import annotations

import sys

from small_spark import small_spark

import acidsql

TABLE = "CREATE TABLE IF NOT EXISTS t (id BIGINT, number BIGINT)"


def main(directory: str, kind: str) -> None:
    spark = small_spark(f"{directory}/spark", threads=2)
    with acidsql.connect(spark, warehouse=f"{directory}/warehouse", compactor="inline") as acid:
        acid.sql(TABLE)
        records = (
            spark.readStream.schema("id BIGINT, number BIGINT").option("maxFilesPerTrigger", 3)
            .json(f"{directory}/source")
        )  # fmt: skip
        applied = acid.auto_cdc("t", keys="id", sequence_by="number")
        sink = acid.sink("t") if kind == "append" else applied
        query = (
            records.writeStream.foreachBatch(sink)
            .option("checkpointLocation", f"{directory}/checkpoint").start()
        )  # fmt: skip
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
