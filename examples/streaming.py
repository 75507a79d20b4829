"""A stream of readings into an ACID table: each batch once, also after a crash.

    python examples/streaming.py [directory]

A directory of JSON files is the source, as in Spark's own examples. The query stops in the middle,
as if its process had been killed, and another one goes on.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import acidsql


def write_files(place: Path, first: int, last: int) -> None:
    """Write the readings of some minutes: one file, and so one batch, for each minute."""
    place.mkdir(parents=True, exist_ok=True)
    for minute in range(first, last):
        rows = [{"sensor": s, "minute": minute, "celsius": 20 + s + minute / 10} for s in range(3)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        path = place / f"{minute:04d}.json"
        path.write_text(text)
        os.utime(path, (minute, minute))  # Spark reads the oldest file first


def run(acid: acidsql.Session, place: Path) -> None:
    """Write all waiting readings: every reading into one table, the newest ones into another."""
    readings = (
        acid.spark.readStream.schema("sensor INT, minute INT, celsius DOUBLE")
        .option("maxFilesPerTrigger", 1)
        .json(str(place / "source"))
    )
    every = (
        acid.write_stream(readings)
        .option("checkpointLocation", str(place / "checkpoint-every"))
        .trigger(availableNow=True)
        .toTable("readings")
    )
    every.awaitTermination()
    newest = (
        readings.writeStream.foreachBatch(acid.sink("newest", mode="upsert", keys="sensor"))
        .option("checkpointLocation", str(place / "checkpoint-newest"))
        .trigger(availableNow=True)
        .start()
    )
    newest.awaitTermination()


def main(directory: str) -> list[tuple[int, int, int]]:
    """Run the example. Returns sensor, number of readings and newest minute."""
    place = Path(directory)
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    with acidsql.connect(spark, warehouse=str(place / "warehouse")) as acid:
        acid.sql("CREATE TABLE readings (sensor INT, minute INT, celsius DOUBLE)")
        acid.sql("CREATE TABLE newest (sensor INT, minute INT, celsius DOUBLE)")
        write_files(place / "source", 0, 3)
        run(acid, place)

        # A crash between COMMIT and Spark's own note: Spark runs the last batch again.
        ends = sorted((place / "checkpoint-every" / "commits").glob("[0-9]*"), key=_number)
        ends[-1].unlink()
        ends[-1].with_name(f".{ends[-1].name}.crc").unlink(missing_ok=True)

        write_files(place / "source", 3, 5)
        run(acid, place)
        acid.sql("SHOW STREAMS").show(truncate=False)
        found = acid.sql(
            "SELECT n.sensor, count(*), max(n.minute) FROM readings r JOIN newest n "
            "ON r.sensor = n.sensor GROUP BY n.sensor ORDER BY n.sensor"
        )
        return [tuple(row) for row in found.collect()]


def _number(path: Path) -> int:
    return int(path.name)


if __name__ == "__main__":
    print(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
