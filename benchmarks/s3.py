"""Requests to an object store, and seconds with a slow one, beside Delta Lake and Iceberg.

    python benchmarks/s3.py [--jars build/bench/jars] [--ms 30] [--partitions 100]

``make bench`` runs it, with a Python that has moto and PySpark 4.1: the peers' jars are for Spark
4.1. The store is moto in a process of its own, which counts requests. In a second round it answers
each of them ``--ms`` milliseconds late. The numbers of requests are exact; the seconds show only
what these cost.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from object_store import ObjectStore, Rule

ENGINES = ("acidsql", "delta", "iceberg")
ROWS = 20_000
STEPS = {
    "load": "INSERT INTO {t} SELECT id, CAST(id % {n} AS INT) AS p, 'v' AS v FROM range({rows})",
    "INSERT 1 row": "INSERT INTO {t} VALUES (-1, 0, 'new')",
    "UPDATE 1 row": "UPDATE {t} SET v = 'u' WHERE id = 7 AND p = 7",
    "DELETE 1 row": "DELETE FROM {t} WHERE id = 8 AND p = 8",
    "MERGE 1 row": "MERGE INTO {t} t USING (SELECT 9L AS id, 9 AS p, 'm' AS v) s ON t.id = s.id "
    "AND t.p = s.p AND t.p = 9 WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, s.p, s.v)",
    "SELECT 1 partition": "SELECT count(*), min(v) FROM {t} WHERE p = 7",
    "SELECT all": "SELECT count(*), min(v) FROM {t}",
}


def main() -> None:
    """Run each engine in a process of its own, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jars", default="build/bench/jars", help="what fetch_jars.sh fetches")
    parser.add_argument("--ms", type=int, default=30)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--engine", choices=ENGINES)
    args = parser.parse_args()
    if args.engine:
        measure(args)
        return
    print("| engine | step | requests | LIST | GET | HEAD | PUT | COPY | seconds |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for engine in ENGINES:
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--engine", engine], check=True)


def measure(args: Any) -> None:
    """Print the rows of one engine."""
    store = ObjectStore()
    try:
        spark = session(args, store)
        counted = run(spark, args, store, store.new_bucket())
        slow = Rule("slow", times=10**9, seconds=args.ms / 1000)
        with store.failing(slow):
            timed = run(spark, args, store, store.new_bucket())
    finally:
        store.close()
    for step, (counts, _) in counted.items():
        kinds = " | ".join(str(counts[kind]) for kind in ("LIST", "GET", "HEAD", "PUT", "COPY"))
        total = sum(counts.values())
        print(f"| {args.engine} | {step} | {total} | {kinds} | {timed[step][1]:.1f} |", flush=True)


def run(
    spark: Any, args: Any, store: ObjectStore, bucket: str
) -> dict[str, tuple[Counter[str], float]]:
    """The requests and seconds of each step, in a new bucket."""
    table, sql, close = begin(spark, args, bucket)
    found = {}
    for step, text in STEPS.items():
        store.mark()
        start = time.perf_counter()
        sql(text.format(t=table, n=args.partitions, rows=ROWS)).collect()
        found[step] = store.counts(), time.perf_counter() - start
    close()
    return found


def begin(spark: Any, args: Any, bucket: str) -> tuple[str, Any, Any]:
    """A new table: its name, what runs SQL, and what ends it."""
    columns, name = "(id BIGINT, p INT, v STRING)", bucket.replace("-", "_")
    if args.engine == "acidsql":
        import acidsql

        metastore = f"sqlite:///{tempfile.mkdtemp()}/metastore.db"
        acid = acidsql.connect(
            spark, warehouse=f"s3a://{bucket}/w", metastore=metastore, compactor="off"
        )
        acid.sql("CREATE TABLE t (id BIGINT, v STRING) PARTITIONED BY (p INT)")
        return "t", lambda text: acid.sql(by_name(text)), acid.close
    if args.engine == "delta":
        spark.sql(
            f"CREATE TABLE {name} {columns} USING delta PARTITIONED BY (p) TBLPROPERTIES "
            f"('delta.enableDeletionVectors' = 'true') LOCATION 's3a://{bucket}/w/t'"
        )
        return name, spark.sql, lambda: None
    spark.conf.set("spark.sql.catalog.ice_" + name, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"spark.sql.catalog.ice_{name}.type", "hadoop")
    spark.conf.set(f"spark.sql.catalog.ice_{name}.warehouse", f"s3a://{bucket}/w")
    table = f"ice_{name}.db.t"
    modes = ", ".join(
        f"'write.{op}.mode' = 'merge-on-read'" for op in ("delete", "update", "merge")
    )
    spark.sql(
        f"CREATE TABLE {table} {columns} USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '3', {modes})"
    )
    return table, spark.sql, lambda: None


def by_name(text: str) -> str:
    """A partitioned table of Hive's has its partition columns last."""
    return text.replace("INSERT INTO t SELECT", "INSERT INTO t (id, p, v) SELECT").replace(
        "INSERT INTO t VALUES", "INSERT INTO t (id, p, v) VALUES"
    )


def session(args: Any, store: ObjectStore) -> Any:
    """A Spark with S3A, and with the engine's jars."""
    from pyspark.sql import SparkSession

    jars = [jar for name in ("s3a", args.engine) for jar in (Path(args.jars) / name).glob("*.jar")]
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(map(str, jars)))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", tempfile.mkdtemp())
    )
    for name, value in store.hadoop.items():
        builder = builder.config(f"spark.hadoop.{name}", value)
    if args.engine == "delta":
        builder = builder.config(
            "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
        ).config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    if args.engine == "iceberg":
        builder = builder.config(
            "spark.sql.extensions",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


if __name__ == "__main__":
    main()
