"""A stream of mixed changes into a fact table: AUTO CDC here, MERGE in ``foreachBatch`` elsewhere.

    python changes.py --engine delta_dv --scale 0.2 --work DIR --jars DIR

The table has five million rows in 30 partitions and 4 buckets. It gets a million changes in one
batch: 70 % updates, 20 % inserts, 10 % deletes. The keys do not tell the partition. A small batch
without deletes comes first, so that nothing is measured that a process does only once. AUTO CDC
does more than MERGE: it orders the records of a key, and keeps the order values of deleted keys.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from engines import registry
from workloads import Merge, Table

ROWS, CHANGES, SMALL = 5_000_000, 1_000_000, 1_000
TARGET = Table("target", {"id": "BIGINT", "v": "STRING", "n": "BIGINT", "day": "INT"}, "day", 4)
# The kind of each change is told by its last digit; its key is one of the table, or a new one.
KIND = "CASE WHEN i % 10 = 0 THEN 'D' WHEN i % 10 < 3 THEN 'I' ELSE 'U' END"
OLD = "pmod((i + {seed}) * 2654435761, {rows})"


def changes(spark, rows, count, seed):
    """So many changes of different keys."""
    key = f"CASE WHEN i % 10 IN (1, 2) THEN {rows + seed} + i ELSE {OLD} END"
    key = key.format(seed=seed, rows=rows)
    found = spark.range(count).selectExpr("id AS i").selectExpr(f"{key} AS id", f"{KIND} AS op")
    values = "md5(string(id + 1)) AS v", "id % 7 AS n", "int(id % 30) AS day"
    return found.dropDuplicates(["id"]).selectExpr("id", *values, "op", f"{seed} AS at")


def sink(engine):
    """What ``foreachBatch`` calls."""
    if engine.name == "acidsql":
        return engine.acid.auto_cdc(
            TARGET.name, keys="id", sequence_by="at", apply_as_deletes="op = 'D'",
            column_list=TARGET.names,
        )  # fmt: skip

    def merge(rows, _):
        rows.createOrReplaceTempView("changes")
        rows.sparkSession.sql(engine.merge_sql(TARGET, Merge("changes", op="op")))

    return merge


def main():
    engines = registry()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", required=True, choices=sorted(engines))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--jars", type=Path, required=True)
    args = parser.parse_args()
    engine = engines[args.engine](args.work.resolve(), args.jars.resolve())
    shutil.rmtree(engine.work, ignore_errors=True)
    spark = engine.start()
    rows, source = int(ROWS * args.scale), engine.work / "source"
    engine.create(TARGET)
    values = "md5(string(id)) AS v", "id % 7 AS n", "int(id % 30) AS day"
    spark.range(rows).selectExpr("id", *values).createOrReplaceTempView("loaded")
    engine.load(TARGET, "loaded")
    apply = sink(engine)
    for seed, count in enumerate((SMALL, int(CHANGES * args.scale))):
        records = changes(spark, rows, count, seed)
        records = records.where("op <> 'D'") if count == SMALL else records
        records.repartition(4).write.mode("append").parquet(str(source))
        stream = spark.readStream.schema(records.schema).parquet(str(source)).writeStream
        begin = time.perf_counter()
        query = stream.foreachBatch(apply).trigger(availableNow=True)
        query = query.option("checkpointLocation", str(engine.work / "checkpoint")).start()
        query.awaitTermination()
        seconds = time.perf_counter() - begin
        engine.refresh(TARGET.name)
        left = engine.sql(f"SELECT count(*), sum(n) FROM {engine.table(TARGET.name)}").first()
        print(
            f"{engine.name} on Spark {spark.version}: {count:,} changes of {rows:,} rows in "
            f"{seconds:.1f} s; then {left[0]:,} rows, checksum {left[1]}",
            flush=True,
        )
    spark.stop()
    shutil.rmtree(engine.work, ignore_errors=True)


if __name__ == "__main__":
    main()
