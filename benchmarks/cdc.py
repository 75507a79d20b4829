"""What changes cost: AUTO CDC against large tables, many tombstones, many tables, and replays.

    .venv/bin/python benchmarks/cdc.py [--scale 1.0] [PART …]

The parts are the functions from ``batches`` on; default: all. Each makes tables of its own. A
target has up to ten million rows, and gets up to a million changes; ``--scale`` makes both smaller
or larger. The background compactor is on. No test uses these figures.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from statistics import median

from local_spark import heap_mib, local_spark, resident_mib
from pyspark.sql import DataFrame

import acidsql

Found = Iterator[tuple[str, float]]  # what was measured, and seconds (or as it says)

COLUMNS = "id BIGINT, v STRING, n BIGINT"
# Keys that are spread over the whole table.
KEY = "pmod(xxhash64(id), {rows})"


class Bench:
    """A session, and the sizes of this run."""

    def __init__(self, acid: acidsql.Session, scale: float) -> None:
        self.acid, self._scale = acid, scale

    def size(self, full: int) -> int:
        """A size at this scale."""
        return max(10, round(full * self._scale))

    def table(self, name: str, rows: int, rest: str = "") -> None:
        """A table with the keys from 0 on."""
        self.acid.sql(f"CREATE TABLE {name} ({COLUMNS}) {rest}")
        source = f"SELECT id, md5(string(id)) AS v, id % 7 AS n FROM range({rows})"
        self.acid.sql(f"INSERT INTO {name} BY NAME SELECT * FROM ({source})")

    def records(self, count: int, key: str, at: int, op: str = "'u'") -> DataFrame:
        """Records with one order value and different keys."""
        values = f"md5(string(id + {at})) AS v, id % 7 AS n, {at} AS at, {op} AS op"
        rows = self.acid.spark.sql(f"SELECT {key} AS id, {values} FROM range({count})")
        return rows.dropDuplicates(["id"])

    def applier(self, name: str):
        """AUTO CDC into a table."""
        return self.acid.auto_cdc(
            name, keys="id", sequence_by="at", apply_as_deletes="op = 'd'",
            except_column_list=["at", "op"],
        )  # fmt: skip


def seconds(act: Callable[..., object], *given: object, **named: object) -> float:
    """How long one call takes."""
    begin = time.perf_counter()
    act(*given, **named)
    return time.perf_counter() - begin


def batches(bench: Bench) -> Found:
    """Changes in many batches, and the same number of them in one."""
    rows, changes, count = bench.size(5_000_000), bench.size(500_000), bench.size(60)
    bench.table("dimension", rows)
    cdc, key = bench.applier("dimension"), KEY.format(rows=rows)
    taken = [
        seconds(cdc.apply, bench.records(changes // count + 1, key, at))
        for at in range(1, count + 1)
    ]
    yield f"{count} batches, {changes:,} changes of {rows:,} rows", sum(taken)
    yield "the median of the first ten of them", median(taken[:10])
    yield "the median of the last ten of them", median(taken[-10:])
    yield "the same in one batch", seconds(cdc.apply, bench.records(changes, key, count + 1))


def mixed(bench: Bench) -> Found:
    """Updates, inserts and deletes; the keys do not tell the partition."""
    rows, changes = bench.size(5_000_000), bench.size(1_000_000)
    rest = "PARTITIONED BY (day INT) CLUSTERED BY (id) INTO 4 BUCKETS"
    bench.acid.sql(f"CREATE TABLE fact ({COLUMNS}) {rest}")
    bench.acid.sql(
        f"INSERT INTO fact SELECT id, md5(string(id)), id % 7, id % 30 FROM range({rows})"
    )
    op = "CASE WHEN id % 10 = 0 THEN 'd' ELSE 'u' END"
    key = f"CASE WHEN id % 10 < 2 THEN {rows} + id ELSE {KEY.format(rows=rows)} END"
    key = f"CASE WHEN id % 10 = 0 THEN {KEY.format(rows=rows)} ELSE {key} END"
    records = bench.records(changes, key, 1, op).selectExpr("*", "int(id % 30) AS day")
    cdc = bench.applier("fact")
    yield f"{changes:,} mixed changes of {rows:,} rows", seconds(cdc.apply, records)


def tombstones(bench: Bench) -> Found:
    """Deletes by key, without and with many deletes before."""
    deletes, before = bench.size(100_000), bench.size(1_000_000)
    for name, there in (("fresh", 10), ("old", before)):
        bench.table(name, 2 * deletes)
        cdc = bench.applier(name)
        cdc.apply(bench.records(there, f"{2 * deletes} + id", 1, "'d'"))
        records = bench.records(deletes, "id", 2, "'d'")
        yield f"{deletes:,} deletes, {there:,} before", seconds(cdc.apply, records)


def few(bench: Bench) -> Found:
    """The cost follows the changes, and not the table."""
    rows = bench.size(10_000_000)
    rest = "CLUSTERED BY (id) INTO 4 BUCKETS TBLPROPERTIES ('orc.bloom.filter.columns' = 'id')"
    bench.table("large", rows, rest)
    cdc, key = bench.applier("large"), KEY.format(rows=rows)
    updates, tens = list[float](), list[float]()
    for at in range(6):  # the first ones warm Spark up, and make the state table
        update = f"UPDATE large SET v = 'x' WHERE id = {rows // 2 + at}"
        updates.append(seconds(bench.acid.sql, update))
        tens.append(seconds(cdc.apply, bench.records(10, key, at)))
    yield f"UPDATE of one of {rows:,} rows, the median of five", median(updates[1:])
    yield "10 changes, the median of five between these", median(tens[1:])
    for at, full in enumerate((1_000, 100_000), start=6):
        changes = bench.size(full)
        yield f"{changes:,} changes", seconds(cdc.apply, bench.records(changes, key, at))


def load(bench: Bench) -> Found:
    """A first load against INSERT, and changes that overlap it."""
    rows = bench.size(5_000_000)
    source = bench.records(rows, "id", 1)
    bench.acid.sql(f"CREATE TABLE inserted ({COLUMNS})")
    insert = "INSERT INTO inserted BY NAME SELECT id, v, n FROM {source}"
    yield f"INSERT of {rows:,} rows", seconds(bench.acid.sql, insert, source=source)
    bench.acid.sql(f"CREATE TABLE newest ({COLUMNS})")
    of_keys = "SELECT id, max_by(struct(v, n), at) AS r FROM {source} GROUP BY id"
    insert = f"INSERT INTO newest BY NAME SELECT id, r.v, r.n FROM ({of_keys})"
    yield "INSERT of each key's newest row", seconds(bench.acid.sql, insert, source=source)
    bench.acid.sql(f"CREATE TABLE loaded ({COLUMNS})")
    cdc, key = bench.applier("loaded"), KEY.format(rows=rows)
    yield "first load of the same rows", seconds(cdc.apply, source)
    overlap = [bench.records(bench.size(1_000), key, at) for at in range(bench.size(200))]
    taken = [seconds(cdc.apply, records) for records in overlap]
    yield f"the median of {len(taken)} batches that overlap it", median(taken)


def together(bench: Bench) -> Found:
    """A batch for ten tables in one transaction, and its COMMIT, against those of one table."""
    store, spent = bench.acid.metastore, list[float]()
    commit = store.commit_txn

    def timed(*given: object, **named: object) -> None:
        spent.append(seconds(commit, *given, **named))

    store.commit_txn = timed
    for count in (1, 10):
        names = [f"of{count}_{i}" for i in range(count)]
        for name in names:
            bench.acid.sql(f"CREATE TABLE {name} ({COLUMNS})")
        several = bench.acid.auto_cdc([bench.applier(name) for name in names], by="name")
        name = f"concat('of{count}_', id % {count}) AS name"
        first, second = (
            bench.records(bench.size(10_000), "id", at).selectExpr("*", name) for at in (1, 2)
        )
        several.apply(first)  # makes the state tables
        yield f"a batch for {count} table{'s' * (count > 1)}", seconds(several.apply, second)
        yield "its COMMIT", spent[-1]
    store.commit_txn = commit


def replay(bench: Bench) -> Found:
    """Batches that were applied already."""
    bench.acid.sql(f"CREATE TABLE again ({COLUMNS})")
    cdc, count = bench.applier("again"), 100
    records = bench.records(10, "id", 1)
    cdc.apply(records, txn_app_id="replay", txn_version=count)
    taken = [
        seconds(cdc.apply, records, txn_app_id="replay", txn_version=at) for at in range(count)
    ]
    yield "a batch that was applied before", median(taken)


def memory(bench: Bench) -> Found:
    """What a stream's process needs after many batches, most of them applied before. In MiB."""
    bench.acid.sql(f"CREATE TABLE small ({COLUMNS})")
    cdc, count = bench.applier("small"), max(3, bench.size(200))
    for at in range(count):
        records = bench.records(100, "id", at)
        cdc.apply(records, txn_app_id="memory", txn_version=at)
        for before in range(max(0, at - 10), at):
            cdc.apply(records, txn_app_id="memory", txn_version=before)
        if at in (count // 3, count - 1):
            yield f"MiB of Python after {at + 1} batches", resident_mib()
            yield f"MiB of the JVM's heap after {at + 1} batches", heap_mib(bench.acid.spark)


PARTS = {
    part.__name__: part
    for part in (batches, mixed, tombstones, few, load, together, replay, memory)
}


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--scale", type=float, default=1.0)
    args = parser.parse_args()
    with (
        local_spark() as (spark, place),
        acidsql.connect(
            spark, warehouse=f"{place}/warehouse", settings={"acidsql.history.retention": "0s"}
        ) as acid,
    ):
        print("| part | measured | seconds, if it says no other unit |\n|---|---|---|")
        for name in args.parts or PARTS:
            for measured, taken in PARTS[name](Bench(acid, args.scale)):
                print(f"| {name} | {measured} | {taken:.3f} |", flush=True)


if __name__ == "__main__":
    main()
