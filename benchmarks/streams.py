"""How soon streamed rows can be read, and how much work compactions have with them.

    .venv/bin/python benchmarks/streams.py [--rows 1000] [--seconds 180] [--partitions 8]
    .venv/bin/python benchmarks/streams.py --batches 8640 [--strategy hive] [--rows 200] [--base 0]
    .venv/bin/python benchmarks/streams.py --changes 1.0 [--seconds 600] [--trigger 5] [--base ROWS]

A thread writes a file of JSON lines each second; a streaming query writes them into a table; the
background compactor is on. Every second a query reads the greatest number that it sees. The output
is one row of a Markdown table: the delay of each second's rows (median, 99 %), and the greatest
number of directories that a reader opened.

With ``--batches``, a day of batches is written without pauses into a table of ``--base`` batches'
size, and each commit compacts if it has to. The output is the number of bytes that compactions
write for each byte that came, the greatest number of directories, and how long a scan takes at the
end against a scan of the compacted table.

With ``--changes``, three streams of AUTO CDC run at once in one process: 500,000 upserts and
1,000,000 mixed changes an hour, 100,000 deletes a day (times the number that is said), into tables
of ``--base`` rows. The output is the time from each file to the COMMIT of its changes, and the
memory of the process. Each four seconds a query reads one of the tables, and must see all changes
that were committed before.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from local_spark import heap_mib, local_spark, resident_mib
from pyspark.sql import DataFrame

import acidsql
from acidsql.acid.table import TableName
from acidsql.storage.folding.compact import CompactionRun


class Writer(threading.Thread):
    """Writes a file each second, with the rows of this second."""

    def __init__(
        self, place: Path, rows: Callable[[int], Iterator[dict[str, Any]]], seconds: int
    ) -> None:
        super().__init__(daemon=True)
        self.place, self.rows, self.seconds = place, rows, seconds
        self.written: dict[int, float] = {}

    def run(self) -> None:
        """Write all files, one second after the other."""
        begin = time.monotonic()
        for second in range(self.seconds):
            hidden = self.place / f".{second:06d}"
            hidden.write_text("\n".join(json.dumps(row) for row in self.rows(second)))
            os.rename(hidden, self.place / f"{second:06d}.json")
            self.written[second] = time.monotonic()
            time.sleep(max(0.0, begin + second + 1 - time.monotonic()))


def watch(acid: acidsql.Session, writer: Writer) -> tuple[dict[int, float], int]:
    """When each second's rows were seen first, and the greatest number of directories of a table or
    a partition."""
    seen: dict[int, float] = {}
    most, looks = 0, 0
    while len(seen) < writer.seconds:
        later = acid.sql(f"SELECT max(second) FROM t WHERE second >= {len(seen)}").collect()[0][0]
        now = time.monotonic()
        for second in range(len(seen), 0 if later is None else later + 1):
            seen[second] = now
        looks += 1
        if looks % 10 == 0:
            most = max(most, directories_at_most(acid))
        time.sleep(0.5)
    return seen, most


def fast_forward(acid: acidsql.Session, place: Path, args: argparse.Namespace) -> str:
    """Write batches one after the other. Returns a table of Markdown."""
    columns = ["value AS id", "md5(string(value)) AS v"]
    insert = f"INSERT INTO t SELECT {', '.join(columns)} FROM (SELECT id AS value FROM range({{}}))"
    acid.sql("CREATE TABLE t (id BIGINT, v STRING)")
    acid.sql(insert.format(args.rows))
    table = acid.metastore.find(TableName("default", "t"))
    came = args.batches * bytes_of(table.location)
    if args.base:
        acid.sql(insert.format(args.base * args.rows))
        acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
        acid.clean()
    sink, written, counts, ended = acid.sink("t"), list[int](), list[int](), threading.Event()
    publish = CompactionRun.publish

    def counted(work: CompactionRun, still_ours: Callable[[], None]) -> list[str]:
        written.append(work.written[1])
        return publish(work, still_ours)

    def each(rows: DataFrame, batch: int) -> None:
        sink(rows, batch)
        counts.append(len(directories_of(table.location)))
        if batch + 1 >= args.batches:
            ended.set()

    source = acid.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", args.rows)
    CompactionRun.publish = counted
    query = (
        source.load()
        .selectExpr(*columns)
        .writeStream.foreachBatch(each)
        .option("checkpointLocation", str(place / "checkpoint"))
        .start()
    )
    while query.isActive and not ended.wait(1):
        pass
    if (error := query.exception()) is not None:
        raise error
    query.stop()
    CompactionRun.publish = publish
    as_it_is = scan_s(acid)
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    slower = as_it_is / scan_s(acid)
    return (
        "| batches | base, in batches | bytes compacted per byte | directories at most | scan, "
        "against compacted |\n|---|---|---|---|---|\n"
        f"| {args.batches} | {args.base} | {sum(written) / came:.1f} | {max(counts)} | "
        f"{slower:.2f} |"
    )


def scan_s(acid: acidsql.Session) -> float:
    """The seconds of a scan of all columns, the best of five."""
    taken = []
    for _ in range(5):
        begin = time.perf_counter()
        acid.sql("SELECT sum(id), max(v) FROM t").collect()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def directories_of(place: str) -> list[str]:
    """The visible directories."""
    return [name for name in os.listdir(place) if name[0] not in "._"]


def directories_at_most(acid: acidsql.Session) -> int:
    """How many directories a reader opens, in the partition that has most."""
    visible = acid.files("t").where("state = 'visible'")
    counts = visible.select("partition", "directory").distinct().groupBy("partition").count()
    return max((row[1] for row in counts.collect()), default=0)


def bytes_of(place: str) -> int:
    """The bytes of all files below a directory."""
    return sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())


def latency(acid: acidsql.Session, place: Path, args: argparse.Namespace) -> str:
    """Write a file each second, and look. Returns a table of Markdown."""
    (place / "source").mkdir()
    columns, count = "second INT, id INT, v STRING", args.partitions
    rest = "PARTITIONED BY (p INT) CLUSTERED BY (id) INTO 4 BUCKETS" if count else ""
    acid.sql(f"CREATE TABLE t ({columns}) {rest}")
    source = acid.spark.readStream.schema(f"{columns}, p INT" if count else columns)
    query = (
        acid.write_stream(source.json(str(place / "source")))
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(processingTime=f"{args.trigger} seconds")
        .toTable("t")
    )
    readings = [
        {"id": i, "v": f"reading {i}"} | ({"p": i % count} if count else {})
        for i in range(args.rows)
    ]
    writer = Writer(
        place / "source", lambda at: ({"second": at} | row for row in readings), args.seconds
    )
    writer.start()
    seen, most = watch(acid, writer)
    query.stop()
    (found,) = acid.sql("SELECT count(*) FROM t").collect()[0]
    assert found == args.rows * args.seconds, found
    return (
        "| rows/s | seconds | p50 | p99 | directories at most |\n|---|---|---|---|---|\n"
        f"| {args.rows} | {args.seconds} | {delays_of(seen, writer, args.warm_up)} | {most} |"
    )


def delays_of(seen: dict[int, float], writer: Writer, warm_up: int) -> str:
    """How late the rows of a second were seen: the median, and 99 %."""
    counted = (second for second in seen if second >= warm_up)
    delays = sorted(seen[second] - writer.written[second] for second in counted)
    return f"{median(delays):.1f} s | {delays[int(len(delays) * 0.99)]:.1f} s"


@dataclass(frozen=True)
class Load:
    """Changes that come all the time. The rest are updates."""

    table: str
    a_second: float
    inserts: float = 0.0
    deletes: float = 0.0
    rest: str = ""

    def create(self, acid: acidsql.Session, base: int) -> None:
        """The table with the keys from 0 on."""
        day = ", id % 30" if self.rest else ""
        acid.sql(f"CREATE TABLE {self.table} (id BIGINT, second INT, v STRING) {self.rest}")
        acid.sql(f"INSERT INTO {self.table} SELECT id, -1, md5(string(id)){day} FROM range({base})")

    def rows(self, second: int, factor: float, base: int) -> Iterator[dict[str, Any]]:
        """The changes of a second. The one of key -1 tells a reader which second it sees."""
        yield self._change(-1, second, "u")
        begin, end = (int(at * self.a_second * factor) for at in (second, second + 1))
        for number, key in enumerate(random.sample(range(base), end - begin), start=begin):
            kind = random.random()
            if kind < self.deletes:
                yield self._change(key, second, "d")
            else:
                new = kind < self.deletes + self.inserts
                yield self._change(base + number if new else key, second, "u")

    def _change(self, key: int, second: int, op: str) -> dict[str, Any]:
        day = {"day": key % 30} if self.rest else {}
        return {"id": key, "second": second, "v": f"change {second}", "op": op} | day


EACH_LOOK_S = 4
LOADS = (
    Load("upserts", 500_000 / 3_600, inserts=0.2),
    Load("mixed", 1_000_000 / 3_600, 0.2, 0.1, "PARTITIONED BY (day INT)"),
    Load("deletes", 100_000 / 86_400, deletes=1.0),
)


def changes(acid: acidsql.Session, place: Path, args: argparse.Namespace) -> str:
    """Let all loads come at once, and look. Returns a table of Markdown."""
    streams = [CdcStream(acid, place, load, args) for load in LOADS]
    for stream in streams:
        stream.writer.start()
    looks, memory = look_around(acid, streams, args.seconds)
    for stream in streams:
        stream.query.processAllAvailable()
        stream.query.stop()
    found = ""
    for stream in streams:
        seen = stream.visible_since()
        for look in looks[stream.load.table]:
            assert look.second >= max((at for at in seen if seen[at] < look.began), default=-1)
        found += f"| {stream.load.table} | {delays_of(seen, stream.writer, args.warm_up)} |\n"
    return f"| stream | p50 | p99 |\n|---|---|---|\n{found}\n{memory}"


class CdcStream:
    """A stream of AUTO CDC, with its source and its target."""

    def __init__(
        self, acid: acidsql.Session, place: Path, load: Load, args: argparse.Namespace
    ) -> None:
        self.load, self.checkpoint = load, place / f"checkpoint-{load.table}"
        self.committed: dict[int, float] = {}
        load.create(acid, args.base)
        source = place / load.table
        source.mkdir()
        self.writer = Writer(
            source, lambda at: load.rows(at, args.changes, args.base), args.seconds
        )
        self.cdc = acid.auto_cdc(
            load.table, keys="id", sequence_by="second", apply_as_deletes="op = 'd'",
            except_column_list=["op"],
        )  # fmt: skip
        day = ", day INT" if load.rest else ""
        records = acid.spark.readStream.schema(f"id BIGINT, second INT, v STRING, op STRING{day}")
        self.query = (
            records.json(str(source)).writeStream.foreachBatch(self._write)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(processingTime=f"{args.trigger} seconds").start()
        )  # fmt: skip

    def _write(self, rows: DataFrame, batch: int) -> None:
        self.cdc(rows, batch)
        self.committed[batch] = time.monotonic()

    def visible_since(self) -> dict[int, float]:
        """When the batch with each second's file was committed. Spark's checkpoint has the files of
        each batch."""
        seen = {}
        for log in (self.checkpoint / "sources" / "0").iterdir():
            for line in log.read_text().splitlines()[1:] if log.name[0] != "." else ():
                file = json.loads(line)
                seen[int(Path(file["path"]).stem)] = self.committed[file["batchId"]]
        return seen


@dataclass(frozen=True)
class Look:
    """When a query began, and the second that it saw."""

    began: float
    second: int


def look_around(
    acid: acidsql.Session, streams: list[CdcStream], seconds: int
) -> tuple[dict[str, list[Look]], str]:
    """Look at one table after the other while changes come. Returns the looks, and what the process
    needed of memory after each third of the time."""
    looks: dict[str, list[Look]] = {stream.load.table: [] for stream in streams}
    begin, memory = time.monotonic(), list[str]()
    for third in (1, 2, 3):
        while (began := time.monotonic()) < begin + third * seconds / 3:
            table = min(looks, key=lambda name: len(looks[name]))
            newest = acid.sql(f"SELECT second FROM {table} WHERE id = -1").collect()
            looks[table].append(Look(began, newest[0][0] if newest else -1))
            time.sleep(EACH_LOOK_S)
        memory.append(
            f"after {time.monotonic() - begin:.0f} s: Python {resident_mib():.0f} MiB, "
            f"the JVM's heap {heap_mib(acid.spark):.0f} MiB"
        )
    return looks, "; ".join(memory)


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1000, help="in a second, or in a batch")
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--warm-up", type=int, default=60, help="the seconds that do not count")
    parser.add_argument("--partitions", type=int, default=0, help="of four buckets each")
    parser.add_argument("--trigger", type=int, default=5)
    parser.add_argument("--batches", type=int, help="write so many batches without pauses")
    parser.add_argument("--changes", type=float, help="so many times the loads of changes, at once")
    parser.add_argument(
        "--base", type=int, help="the table's size before: in batches (0), or in rows (1,000,000)"
    )
    parser.add_argument("--strategy", default="size_tiered")
    args = parser.parse_args()
    measure = fast_forward if args.batches else changes if args.changes else latency
    if args.base is None:
        args.base = 1_000_000 if args.changes else 0
    with (
        local_spark(spark_driver_memory="2g" if args.changes else "1g") as (spark, place),
        acidsql.connect(
            spark,
            warehouse=f"{place}/warehouse",
            compactor="inline" if args.batches else "background",
            settings={
                "acidsql.compactor.strategy": args.strategy,
                "acidsql.history.retention": "0s",
            },
        ) as acid,
    ):
        print(measure(acid, place, args))


if __name__ == "__main__":
    main()
