"""How soon streamed rows can be read: from a new file to a row that a query sees.

    .venv/bin/python benchmarks/streams.py [--rows 1000] [--seconds 120] [--trigger 5]

A thread writes a file of JSON lines each second; a streaming query writes them into a table; the
background compactor is on. Every second a query reads the greatest number that it sees. The output
is one row of a Markdown table: the delay of each second's rows (median, 99 %), and the number of
directories at the end and at most.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

import acidsql
from acidsql.acid.table import TableName


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
        table = acid.metastore.get_table(TableName("default", "t"))
        names = [name for name in os.listdir(table.location) if name[0] not in "._"]
        most = max(most, len(names))
        time.sleep(0.5)
    return seen, most


def main() -> None:
    """Measure, and print a row in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--trigger", type=int, default=5)
    args = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="acidsql-streams-"))
    (place / "source").mkdir()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        with acidsql.connect(spark, warehouse=str(place / "warehouse")) as acid:
            acid.sql("CREATE TABLE t (second INT, id INT, v STRING)")
            source = spark.readStream.schema("second INT, id INT, v STRING")
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
            print("| rows/s | seconds | p50 | p99 | directories at most |\n|---|---|---|---|---|")
            print(
                f"| {args.rows} | {args.seconds} | {median(delays):.1f} s | {late:.1f} s | {most} |"
            )
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
