"""A driver that follows a directory of JSON files until it is killed.

    python killed_driver.py DIRECTORY append|changes metastore=URL|warehouse=PATH

The rows go into the table ``t``, which is there.
"""

from __future__ import annotations

import sys

from small_spark import small_spark

import acidsql


def main(directory: str, kind: str, where: str) -> None:
    spark = small_spark(f"{directory}/spark", threads=2)
    option, _, place = where.partition("=")
    # A Hive Metastore of a test has no workers.
    with acidsql.connect(
        spark, **{option: place}, compactor="inline", settings={"acidsql.hive.compactor": "session"}
    ) as acid:
        records = (
            spark.readStream.schema("id BIGINT, number BIGINT").option("maxFilesPerTrigger", 3)
            .json(f"{directory}/source")
        )  # fmt: skip
        if kind == "append":
            sink = acid.sink("t")
        else:
            sink = acid.auto_cdc("t", keys="id", sequence_by="number")
        query = (
            records.writeStream.foreachBatch(sink)
            .option("checkpointLocation", f"{directory}/checkpoint").start()
        )  # fmt: skip
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
