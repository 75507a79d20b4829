"""Every fast path, on and off: how much time it saves.

    .venv/bin/python benchmarks/fast_paths.py [--rows 2000000] [--only bits,partners] [--rounds 5]

A patch of one function switches a fast path off. The statements run with and without it in turn, in
one process, after a warm-up. The printed table is that of ARCHITECTURE.md: the seconds with and
without the fast path, and the part of the time that it saves.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any
from unittest import mock

from local_spark import local_spark

import acidsql
from acidsql.acid.values.predicate import ANYTHING
from acidsql.statements import runner
from acidsql.statements.queries import filler, statement_demands
from acidsql.storage.reading import scan
from acidsql.storage.writing import job, save

SMALL = 1000  # rows of the small table


def nothing(*_: Any, **__: Any) -> None:
    """Replaces a function: it finds nothing."""


def whole(self: Any, query: Any, views: Any, statement_text: Any) -> Any:
    """``Filler.events`` without the query of MERGE's partners."""
    return filler.Events(filler.query_rows(self._spark, query.query, views, statement_text))


def plain_order(names: Any) -> Any:
    """``_grouping_sort_key`` without the hash."""
    return [job.F.col(name) for name in names]


# name → the patch, and the statements that should become faster by the fast path
PATHS: dict[str, tuple[list[tuple[Any, str, Any]], list[str]]] = {
    "plain literals": ([(runner.Runner, "_literal_rules", nothing)], ["insert 1", "insert 1000"]),
    "literal rows": (
        [(runner.Runner, "_literal_rules", nothing), (save, "collect_rows", nothing)],
        ["insert 1", "insert 1000"],
    ),
    "few rows": ([(save, "collect_events_if_few", nothing)], ["update 1", "delete 1", "merge 1"]),
    "point search": ([(scan, "_candidates", nothing)], ["big update 1", "big delete 1"]),
    "deletion bits": (
        [(scan, "deletion_vectors", nothing)],
        ["scan", "small scan", "changed upsert"],
    ),
    "partners": (
        [(filler.Filler, "events", whole)],
        ["big merge", "big upsert", "upsert 2 keys", "merge 1"],
    ),
    "source partitions": (
        [(statement_demands, "source_predicate", lambda *_: ANYTHING)],
        ["merge partitions"],
    ),
    "data skipping": (
        [(statement_demands.StatementDemands, "_plan_demands", {})],
        ["range scan"],
    ),
    "sort by a hash": ([(job, "_grouping_sort_key", plain_order)], ["insert partitions"]),
    "bucket sql": ([(job, "bucket_sql", nothing)], ["insert buckets", "small insert buckets"]),
    "unmeasured": ([(job, "unmeasured_batches", nothing)], ["insert select", "big upsert"]),
    "keys alone": ([(job, "repeatable_query", nothing)], ["delete 5 %"]),
}


@contextmanager
def without(path: str) -> Iterator[None]:
    """Run the block without a fast path."""
    with ExitStack() as stack:
        for place, name, other in PATHS[path][0]:
            stack.enter_context(mock.patch.object(place, name, other))
        yield


# Statements that need their table as it was at the beginning.
_FRESH = {
    "big merge": "merged",
    "big upsert": "merged",
    "changed upsert": "merged",
    "upsert 2 keys": "merged",
    "delete 5 %": "keyed",
}


class Statements:
    """The statements, and the tables that they need."""

    def __init__(self, acid: acidsql.Session, rows: int) -> None:
        self.acid, self.rows, self.number = acid, rows, 0
        sql = acid.sql
        sql("CREATE TABLE small (id INT, v STRING)")
        sql(f"INSERT INTO small SELECT CAST(id AS INT), 'v' FROM range({SMALL})")
        columns = "id BIGINT, k INT, v STRING, n DOUBLE"
        select = (
            f"SELECT id, CAST(id % 1000 AS INT), md5(CAST(id AS STRING)), id / 3 "
            f"FROM range(0, {rows}, 1, 4)"
        )
        self.select = select
        for name, more in (
            ("big", ""), ("deleted", ""), ("target", ""), ("merged", ""), ("keyed", ""),
            ("target_b", "CLUSTERED BY (id) INTO 4 BUCKETS"),
        ):  # fmt: skip
            sql(f"CREATE TABLE {name} ({columns}) {more}")
        for name in ("big", "deleted", "merged", "keyed"):
            sql(f"INSERT INTO {name} {select}")
        sql("DELETE FROM deleted WHERE id % 10 = 3")
        sql("CREATE TABLE parts (id BIGINT, v STRING) PARTITIONED BY (p INT)")
        parts = f"SELECT id, concat('v', id % 77), CAST(id % 10 AS INT) FROM range({rows})"
        sql(f"INSERT INTO parts {parts}")
        sql("CREATE TABLE parts_target (id BIGINT, v STRING) PARTITIONED BY (p INT)")
        self.parts = parts
        spark = acid.spark
        spark.sql(select).write.parquet(f"{acid.warehouse}/fresh")
        spark.read.parquet(f"{acid.warehouse}/fresh").createOrReplaceTempView("fresh")
        many = rows // 20
        spark.range(many).selectExpr(
            "id * 20 AS id", "CAST(id * 20 % 1000 AS INT) AS k", "'m' AS v", "CAST(1 AS DOUBLE) n"
        ).write.parquet(f"{acid.warehouse}/source")
        spark.read.parquet(f"{acid.warehouse}/source").createOrReplaceTempView("source")
        spark.read.parquet(f"{acid.warehouse}/source").where("id < 2000").selectExpr(
            "id", "v", "CAST(id % 2 AS INT) AS p"
        ).write.parquet(f"{acid.warehouse}/two")
        spark.read.parquet(f"{acid.warehouse}/two").createOrReplaceTempView("two")

    def run(self, name: str) -> float:
        """Run a statement, and return its seconds."""
        self.number += 1
        if name in _FRESH:
            self.acid.sql(f"INSERT OVERWRITE {_FRESH[name]} SELECT * FROM fresh")
        if name == "changed upsert":
            self.acid.sql("DELETE FROM merged WHERE id % 10 = 3")
        action = self._actions()[name]
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    def _actions(self) -> dict[str, Callable[[], Any]]:
        acid, n = self.acid, self.number
        sql = acid.sql
        values = ", ".join(f"({i}, 'v')" for i in range(1000))
        when = "WHEN MATCHED THEN UPDATE SET v = s.v"

        insert = "WHEN NOT MATCHED THEN INSERT *"
        upsert = f"MERGE INTO merged t USING source s ON t.id = s.id {when} {insert}"

        def told(query: str) -> Callable[[], Any]:
            return lambda: sql(query).write.format("noop").mode("overwrite").save()

        return {
            "insert 1": lambda: sql(f"INSERT INTO small VALUES ({n}, 'w')"),
            "insert 1000": lambda: sql(f"INSERT INTO small VALUES {values}"),
            "update 1": lambda: sql(f"UPDATE small SET v = 'u{n}' WHERE id = {n}"),
            "delete 1": lambda: sql(f"DELETE FROM small WHERE id = {SMALL - n}"),
            "merge 1": lambda: sql(
                f"MERGE INTO small t USING (SELECT {n} AS id, 'x' AS v) s ON t.id = s.id {when} "
                "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
            ),
            "small scan": told("SELECT * FROM small"),
            "big update 1": lambda: sql(f"UPDATE big SET v = 'u' WHERE id = {n * 7}"),
            "big delete 1": lambda: sql(f"DELETE FROM big WHERE id = {n * 7 + 1}"),
            "delete 5 %": lambda: sql(f"DELETE FROM keyed WHERE k = {n} OR k BETWEEN 900 AND 949"),
            "scan": told("SELECT * FROM deleted"),
            "range scan": told("SELECT * FROM deleted WHERE id BETWEEN 1000 AND 2000"),
            "big merge": lambda: sql(f"MERGE INTO merged t USING source s ON t.id = s.id {when}"),
            "big upsert": lambda: sql(upsert),
            "changed upsert": lambda: sql(upsert),
            "upsert 2 keys": lambda: sql(
                f"MERGE INTO merged t USING source s ON t.id = s.id AND t.k = s.k {when} {insert}"
            ),
            "merge partitions": lambda: sql(
                f"MERGE INTO parts t USING two s ON t.id = s.id AND t.p = s.p {when}"
            ),
            "insert partitions": lambda: sql(f"INSERT OVERWRITE parts_target {self.parts}"),
            "insert select": lambda: sql(f"INSERT OVERWRITE target {self.select}"),
            "insert buckets": lambda: sql(f"INSERT OVERWRITE target_b {self.select}"),
            "small insert buckets": lambda: sql(
                f"INSERT INTO target_b SELECT id, 1, 'v', 2.0 FROM range({n}, {n} + 1)"
            ),
        }


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    settings = {"spark_sql_shuffle_partitions": "4", "spark_sql_session_timeZone": "UTC"}
    with (
        local_spark(**settings) as (spark, place),
        acidsql.connect(spark, warehouse=f"{place}/warehouse", compactor="off") as acid,
    ):
        statements = Statements(acid, args.rows)
        chosen = args.only.split(",") if args.only else list(PATHS)
        print("| fast path | statement | with | without | saved |\n|---|---|---|---|---|")
        for path in chosen:
            for name in PATHS[path][1]:
                print(_row(statements, path, name, args.rounds), flush=True)


def _row(statements: Statements, path: str, name: str, rounds: int) -> str:
    on, off = [], []
    for _ in range(rounds + 1):
        on.append(statements.run(name))
        with without(path):
            off.append(statements.run(name))
    fast, slow = median(on[1:]), median(off[1:])
    return f"| {path} | {name} | {fast:.2f} | {slow:.2f} | {1 - fast / slow:.0%} |"


if __name__ == "__main__":
    main()
