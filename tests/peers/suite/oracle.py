"""Asks Delta Lake and Iceberg, and keeps their answers.

    python tests/peers/suite/oracle.py JARS            compares the answers with the recorded ones
    python tests/peers/suite/oracle.py JARS --record   writes them
    … --new                                            only cases that have no recorded answer
    … --only TEXT                                      only cases with this text in their names

It needs PySpark 4.1, because Delta Lake and Iceberg stop there (``make test-peers``).
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from suite import recording
from suite.case import Case, Table
from suite.runs import prepared, result, surroundings
from suite.topics import cases_of, topics

CHECKSUMS = "spark.databricks.delta.allFilesInCrc.verificationMode"
JAVA_OPTIONS = (
    "-Duser.timezone=UTC -XX:+UseSerialGC -XX:MetaspaceSize=512m -XX:ReservedCodeCacheSize=512m"
)


def session(jars: Path, work: Path) -> Any:
    """A Spark session with Delta Lake as its catalog, and Iceberg as the catalog ``ice``."""
    from pyspark.sql import SparkSession

    class_path = [*jars.glob("delta/*.jar"), *jars.glob("iceberg/*.jar")]
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", ",".join(map(str, class_path)))
        .config("spark.driver.extraJavaOptions", JAVA_OPTIONS)
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(work / "plain"))
        .config(
            "spark.sql.extensions",
            "io.delta.sql.DeltaSparkSessionExtension,"
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        )
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.databricks.delta.stats.collect", "false")
        .config("spark.databricks.delta.merge.materializeSource", "none")
        .config("spark.databricks.delta.history.metricsEnabled", "false")
        .config("spark.databricks.delta.incremental.commit.verify", "false")
        .config("spark.databricks.delta.incremental.commit.forceVerifyInTests", "false")
        .config(f"{CHECKSUMS}.enabled", "false")
        .config(f"{CHECKSUMS}.forceOnNonUTC.enabled", "false")
        .config("spark.sql.lightweightPlanChangeValidation", "false")
        # Each statement is another one, and tables are tiny: to make classes takes the longest.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.buffer.pageSize", "1m")
        .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.ice.type", "hadoop")
        .config("spark.sql.catalog.ice.warehouse", str(work / "ice"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


class Oracle:
    """Delta Lake and Iceberg in one Spark session.

    A table of Delta Lake is made once, and copied for each case: this takes a third of the time.
    """

    def __init__(self, spark: Any, work: Path) -> None:
        self.spark, self.work = spark, work
        self._made: dict[str, Path] = {}
        self._numbers = itertools.count()
        spark.sql("CREATE DATABASE made")

    def ask(self, case: Case) -> dict[str, Any]:
        """The answer of the case's oracle, in a database of the case's own."""
        self._forget()
        catalog = "ice" if case.oracle == "iceberg" else "spark_catalog"
        number, sql = next(self._numbers), self.spark.sql
        sql(f"CREATE DATABASE {catalog}.case_{number}")
        sql(f"USE {catalog}.case_{number}")
        with surroundings(self.spark, case):
            for table in case.tables:
                if case.oracle == "delta":
                    self._copy(table, self.work / f"case_{number}", "table_changes" in str(case))
                else:
                    self._make(table, "iceberg")
            fill = prepared(sql, case, self._version)
            return result(
                lambda: [sql(fill(text)) for text in case.peer_statements][-1],
                lambda: sql(fill(case.peer_query or case.shown)),
            )

    def _forget(self) -> None:
        """Delta Lake keeps the states of all tables: a thousand of them fill the memory."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        self.spark.catalog.clearCache()

    def _version(self, table: Table) -> int:
        return int(self.spark.sql(f"DESCRIBE HISTORY {table.name} LIMIT 1").first()["version"])

    def _copy(self, table: Table, place: Path, has_feed: bool) -> None:
        key = repr((table, has_feed))
        if key not in self._made:
            name = f"made.t{len(self._made)}"
            self._make(table, "delta", name, has_feed)
            self._made[key] = self.work / "plain" / "made.db" / name.split(".")[1]
        shutil.copytree(self._made[key], place / table.name)
        self.spark.sql(f"CREATE TABLE {table.name} USING delta LOCATION '{place / table.name}'")

    def _make(self, table: Table, kind: str, name: str = "", has_feed: bool = False) -> None:
        name = name or table.name
        text = f"CREATE TABLE {name} ({table.peer_columns()}) USING {kind}"
        if table.partitioned:
            text += f" PARTITIONED BY ({table.partition_names()})"
        if has_feed:
            text += " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        elif kind == "delta" and " DEFAULT " in table.columns.upper():
            text += " TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
        self.spark.sql(text)
        for rule, test in table.checks:
            self.spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT {rule} CHECK ({test})")
        if table.rows:
            self.spark.sql(f"INSERT INTO {name} VALUES {table.rows}")


def main() -> int:
    """Record, or compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("jars", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("topics", nargs="*")
    options = parser.parse_intermixed_args()
    failures = 0
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as work:
        spark = session(options.jars, Path(work))
        oracle = Oracle(spark, Path(work))
        for topic in options.topics or topics():
            failures += _ask_topic(oracle, topic, options)
        spark.stop()
    return 1 if failures else 0


def _ask_topic(oracle: Oracle, topic: str, options: argparse.Namespace) -> int:
    recorded, answers, failures = recording.load(topic), {}, 0
    for case in cases_of(topic):
        old = recorded.get(case.name)
        if options.only not in case.name or (
            options.new and old is not None and old["of"] == case.digest()
        ):
            if old is not None:
                answers[case.name] = old
            continue
        try:
            answers[case.name] = {"of": case.digest(), **oracle.ask(case)}
        except Exception:
            print(f"FAILED {topic}: {case.name}\n{traceback.format_exc(limit=0)[:1500]}")
            failures += 1
            continue
        if options.record and len(answers) % 20 == 0:
            recording.save(topic, {**recorded, **answers})
        if not options.record and answers[case.name] != old:
            print(f"DIFFERS {topic}: {case.name}\n  {old}\n  {answers[case.name]}")
            failures += 1
    if not options.record and set(recorded) - set(answers):
        print(f"LEFT OVER {topic}: {sorted(set(recorded) - set(answers))}")
        failures += 1
    if options.record:
        recording.save(topic, answers)
    print(f"{topic}: {len(answers)} answers", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(main())
