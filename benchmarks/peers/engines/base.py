"""What every engine does; the defaults render plain SQL."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar


class Engine:
    name = ""  # set in each class that can be run
    jars: tuple = ()  # file-name globs in the jars directory
    conf: ClassVar[dict] = {}  # extra Spark configuration
    can = frozenset({"insert", "update", "delete", "merge", "optimize"})
    catalog = ""  # "catalog.schema." prefix of table names
    assign_keys = False  # whether UPDATE SET in a MERGE names the keys too

    def __init__(self, work: Path, jars: Path):
        self.work = Path(work) / self.name
        self.jar_files = [str(p) for glob in self.jars for p in sorted(Path(jars).glob(glob))]
        missing = [glob for glob in self.jars if not any(Path(jars).glob(glob))]
        if missing:
            raise SystemExit(f"{self.name}: no {missing} in {jars} (see fetch_jars.sh)")
        self.spark = None

    # -- session

    def spark_conf(self):
        return {
            "spark.master": "local[2]",
            "spark.driver.memory": "8g",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.adaptive.enabled": "true",
            "spark.sql.session.timeZone": "UTC",
            "spark.local.dir": str(self.work / "spark-local"),
            "spark.sql.warehouse.dir": str(self.work / "warehouse"),
            "spark.jars": ",".join(self.jar_files),
            **self.conf,
        }

    def start(self):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName(f"bench-{self.name}")
        for key, value in self.spark_conf().items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")
        return self.spark

    def sql(self, text):
        return self.spark.sql(text)

    # -- tables

    def table(self, name):
        return f"{self.catalog}{name}"

    def refresh(self, name):
        """Forget what the session has cached of a table: a stream, which has a session of its own,
        has changed the table."""

    def path(self, name):
        return self.work / "warehouse" / name

    def ddl(self, table):
        raise NotImplementedError

    def columns_sql(self, table):
        return ", ".join(f"{name} {kind}" for name, kind in table.columns.items())

    def create(self, table):
        self.drop(table)
        self.sql(self.ddl(table))

    def drop(self, table):
        self.sql(f"DROP TABLE IF EXISTS {self.table(table.name)}")
        shutil.rmtree(self.path(table.name), ignore_errors=True)

    def files(self, table):
        """path -> (size, mtime) of everything below the table's directory."""
        found = {}
        for p in self.path(table.name).rglob("*"):
            if p.is_file() and p.suffix != ".crc":
                stat = p.stat()
                found[str(p)] = (stat.st_size, stat.st_mtime_ns)
        return found

    def live_bytes(self, table):
        """Bytes of the current version only; None where nothing tells."""
        return None

    # -- row-level operations

    def insert_select(self, table, view):
        self.sql(
            f"INSERT INTO {self.table(table.name)} SELECT {', '.join(table.names)} FROM {view}"
        )

    load = insert_select

    def insert_values(self, table, values):
        self.sql(f"INSERT INTO {self.table(table.name)} VALUES {values}")

    def append(self, table, frame):
        frame.writeTo(self.table(table.name)).append()

    def update(self, table, assignments, where):
        sets = ", ".join(f"{c} = {e}" for c, e in assignments.items())
        self.sql(f"UPDATE {self.table(table.name)} SET {sets} WHERE {where}")

    def delete(self, table, where):
        self.sql(f"DELETE FROM {self.table(table.name)} WHERE {where}")

    def delete_keys(self, table, view):
        self.delete(table, f"id IN (SELECT id FROM {view})")

    def merge(self, table, merge):
        self.sql(self.merge_sql(table, merge))

    def merge_sql(self, table, merge):
        on = " AND ".join(f"t.{k} = s.{k}" for k in merge.keys)
        if merge.prune:
            on += f" AND t.{merge.prune}"
        update = ", ".join(
            f"{c} = s.{c}" for c in table.names if self.assign_keys or c not in merge.keys
        )
        insert = (
            f"INSERT ({', '.join(table.names)}) VALUES ({', '.join('s.' + c for c in table.names)})"
        )
        when = {kind: f"AND s.{merge.op} = '{kind}'" if merge.op else "" for kind in "UDI"}
        delete = f"WHEN MATCHED {when['D']} THEN DELETE " if merge.op else ""
        return (
            f"MERGE INTO {self.table(table.name)} t USING {merge.source} s ON {on} {delete}"
            f"WHEN MATCHED {when['U']} THEN UPDATE SET {update} "
            f"WHEN NOT MATCHED {when['I']} THEN {insert}"
        )

    def optimize(self, table):
        raise NotImplementedError
