"""How soon streamed rows can be read, and how much work compactions have with them.

    .venv/bin/python benchmarks/streams.py [--rows 1000] [--seconds 120] [--trigger 5]
    .venv/bin/python benchmarks/streams.py --batches 8640 [--strategy hive] [--rows 200] [--base 0]

A thread writes a file of JSON lines each second; a streaming query writes them into a table; the
background compactor is on. Every second a query reads the greatest number that it sees. The output
is one row of a Markdown table: the delay of each second's rows (median, 99 %), and the number of
directories at the end and at most.

With ``--batches``, a day of batches is written without pauses into a table of ``--base`` batches'
size, and each commit compacts if it has to. The output is the number of bytes that compactions
write for each byte that came, the greatest number of directories, and how long a scan takes at the
end against a scan of the compacted table.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from pathlib import Path
from statistics import median

from local_spark import local_spark
from pyspark.sql import DataFrame

import acidsql
from acidsql.acid.table import TableName
from acidsql.storage.folding.compact import Compacting


class Writer(threading.Thread):
    """Writes a file each second: ``rows`` lines with the second's number."""

    def __init__(self, place: Path, rows: int, seconds: int) -> None:
        super().__init__(daemon=True)
        self.place, self.rows, self.seconds = place, rows, seconds
        self.written: dict[int, float] = {}

    def run(self) -> None:
        """Write all files, one second after the other."""
        begin = time.monotonic()
        for second in range(self.seconds):
            lines = (
                json.dumps({"second": second, "id": i, "v": f"reading {i}"})
                for i in range(self.rows)
            )
            hidden = self.place / f".{second:06d}"
            hidden.write_text("\n".join(lines))
            os.rename(hidden, self.place / f"{second:06d}.json")
            self.written[second] = time.monotonic()
            time.sleep(max(0.0, begin + second + 1 - time.monotonic()))


def watch(acid: acidsql.Session, writer: Writer) -> tuple[dict[int, float], int]:
    """When each second's rows were seen first, and the greatest number of directories."""
    seen: dict[int, float] = {}
    most = 0
    while len(seen) < writer.seconds:
        newest = acid.sql("SELECT max(second) FROM t").collect()[0][0]
        now = time.monotonic()
        for second in range(-1 if newest is None else newest + 1):
            seen.setdefault(second, now)
        table = acid.metastore.find(TableName("default", "t"))
        most = max(most, len(directories_of(table.location)))
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
    run = Compacting.run

    def counted(work: Compacting, *more: object) -> None:
        run(work, *more)
        written.append(work.written[1])

    def each(rows: DataFrame, batch: int) -> None:
        sink(rows, batch)
        counts.append(len(directories_of(table.location)))
        if batch + 1 >= args.batches:
            ended.set()

    source = acid.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", args.rows)
    Compacting.run = counted
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
    Compacting.run = run
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


def bytes_of(place: str) -> int:
    """The bytes of all files below a directory."""
    return sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())


def latency(acid: acidsql.Session, place: Path, args: argparse.Namespace) -> str:
    """Write a file each second, and look. Returns a table of Markdown."""
    (place / "source").mkdir()
    acid.sql("CREATE TABLE t (second INT, id INT, v STRING)")
    source = acid.spark.readStream.schema("second INT, id INT, v STRING")
    query = (
        acid.write_stream(source.json(str(place / "source")))
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(processingTime=f"{args.trigger} seconds")
        .toTable("t")
    )
    writer = Writer(place / "source", args.rows, args.seconds)
    writer.start()
    seen, most = watch(acid, writer)
    query.stop()
    delays = sorted(seen[second] - writer.written[second] for second in seen)
    count = acid.sql("SELECT count(*) FROM t").collect()[0][0]
    assert count == args.rows * args.seconds, count
    late = delays[int(len(delays) * 0.99)]
    return (
        "| rows/s | seconds | p50 | p99 | directories at most |\n|---|---|---|---|---|\n"
        f"| {args.rows} | {args.seconds} | {median(delays):.1f} s | {late:.1f} s | {most} |"
    )


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1000, help="in a second, or in a batch")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--trigger", type=int, default=5)
    parser.add_argument("--batches", type=int, help="write so many batches without pauses")
    parser.add_argument("--base", type=int, default=0, help="the table's size before, in batches")
    parser.add_argument("--strategy", default="size_tiered")
    args = parser.parse_args()
    measure = fast_forward if args.batches else latency
    with (
        local_spark(spark_driver_memory="1g") as (spark, place),
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
