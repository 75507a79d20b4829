"""Two banks' databases, a copy and a history of them in ACID tables, and a stream that is killed.

    make run-replication                      or
    python examples/replication.py [--seconds N] [--kills N] [--rate N] [--directory DIR]

Three parts run at once, as they would on three machines:

- Two **banks** (``banks.py``) open and close accounts, and move money. A bank is an SQLite file.
  Its change log goes into files of JSON, in the form of Debezium.
- A **stream** in a process of its own applies them to two ACID tables: ``accounts`` is a copy,
  ``accounts_history`` has all versions of each row. The process is killed (SIGKILL) and restarted.
- A **reader** compares both tables with the banks all the while. What it sees must be what a bank
  had after one of its transactions, and no money may be missing.

Start reading at ``replicate``: that is all of the replication. The rest is a world to try it in.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from banks import ACCOUNTS, BANKS, MONEY, Bank, open_for_business
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.streaming import StreamingQuery

import acidsql

DIRECTORY = Path("build/replication")
PATIENCE = 300  # seconds without a change until the run is given up

# ── the stream ───────────────────────────────────────────────────────────────────────────────

COLUMNS = "id INT, owner STRING, city STRING, balance INT"

CREATE = """
CREATE TABLE accounts (bank STRING, id INT, owner STRING, balance INT)
PARTITIONED BY (city STRING);

CREATE TABLE accounts_history (bank STRING, id INT, owner STRING, city STRING, balance INT,
                               __START_AT BIGINT, __END_AT BIGINT)
"""


def replicate(acid: acidsql.Session, place: Path, **trigger: Any) -> StreamingQuery:
    """Follow the files of the connector. Each batch is one transaction of both tables.

    To follow a Kafka topic, read ``acid.spark.readStream.format("kafka")`` instead of files.
    """
    files = acid.spark.readStream.text(str(place / "changes"))
    place_in_log = "CAST(get_json_object(CAST(value AS STRING), '$.source.seq') AS BIGINT)"
    changes = acid.changes_from("debezium", files, COLUMNS, sequence=place_in_log)
    records = changes.select(
        "*",
        F.split_part("_table", F.lit("."), F.lit(1)).alias("bank"),  # north.accounts
        F.explode(F.array(F.lit("accounts"), F.lit("accounts_history"))).alias("target"),
    )
    rules = {
        "keys": ["bank", "id"],  # both banks have an account 1
        "sequence_by": "_sequence",
        "apply_as_deletes": "_op = 'delete'",
        "column_list": ["bank", "id", "owner", "city", "balance"],
    }
    copy = acid.auto_cdc("accounts", **rules)
    history = acid.auto_cdc("accounts_history", stored_as_scd_type=2, **rules)
    return (
        records.writeStream.foreachBatch(acid.auto_cdc([copy, history], by="target"))
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(**trigger)
        .start()
    )


# ── the process of the stream ────────────────────────────────────────────────────────────────


class StreamProcess:
    """A process that runs ``replicate``. It can be killed, and started again."""

    def __init__(self, place: Path) -> None:
        self._place, self._log = place, place / "stream.log"
        self.start()

    def start(self) -> None:
        """Start it. Its standard input ends when this process ends."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, __file__, "--stream", str(self._place)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """Kill it with its JVM, as a power cut would."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def check(self) -> None:
        """Raise SystemExit if it has ended by itself."""
        if self._process.poll() is not None:
            raise SystemExit(f"The stream has ended:\n{self._log.read_text()[-4000:]}")


def run_stream(place: Path) -> None:
    """Replicate until this process is killed, or the process that has started it has ended."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with acidsql.connect(start_spark(), warehouse=str(place / "warehouse")) as acid:
        replicate(acid, place, processingTime="1 second").awaitTermination()


def _end_with_parent() -> None:
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)


def start_spark() -> SparkSession:
    """A small Spark on this machine."""
    spark = (
        SparkSession.builder.master("local[2]").appName("replication")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )  # fmt: skip
    spark.sparkContext.setLogLevel("ERROR")
    return spark


# ── the reader ───────────────────────────────────────────────────────────────────────────────


@dataclass
class Sight:
    """What the reader has seen at one moment."""

    at: float  # seconds since 1970
    lag: float  # the age of the oldest change that is not in the tables, in seconds
    changes: int  # so many are


class Reader:
    """Compares the tables with the banks."""

    def __init__(self, acid: acidsql.Session, banks: list[Bank]) -> None:
        self._acid, self._banks = acid, banks
        self.sights: list[Sight] = []

    def look(self) -> Sight:
        """Compare one snapshot of both tables. Raises SystemExit if it is no state of the banks."""
        now = time.time()
        with self._acid.snapshot():
            copy, history = self._rows("accounts"), self._rows("accounts_history")
        changes, lag = 0, 0.0
        for bank in self._banks:
            accounts = [row for row in copy if row[0] == bank.name]
            versions = [row for row in history if row[0] == bank.name]
            newest = max((end or start for *_, start, end in versions), default=0)
            expected = bank.versions(newest)
            _compare("versions", versions, expected)
            _compare("accounts", accounts, [row[:5] for row in expected if row[-1] is None])
            if newest:
                _compare("money", sum(row[4] for row in accounts), ACCOUNTS * MONEY)
            waiting_since = bank.first_after(newest)
            changes, lag = changes + newest, max(lag, now - (waiting_since or now))
        self.sights.append(Sight(now, lag, changes))
        print(f"{now - self.sights[0].at:5.0f} s   {changes:6,} changes, equal   {lag:5.1f} s late")
        return self.sights[-1]

    def compare_with_now(self) -> None:
        """Compare the copy with what the banks themselves say, now that they are closed."""
        _compare("accounts", self._rows("accounts"), [a for b in self._banks for a in b.accounts()])

    def _rows(self, table: str) -> list[tuple[Any, ...]]:
        columns = "bank, id, owner, city, balance"
        if table == "accounts_history":
            columns += ", __START_AT, __END_AT"
        rows = self._acid.sql(f"SELECT {columns} FROM {table}").collect()
        return sorted((tuple(row) for row in rows), key=lambda row: (row[0], row[1], row[5:6]))


def _compare(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise SystemExit(f"The {what} differ.\nIn the table: {found}\nIn the bank:  {expected}")


# ── the run ──────────────────────────────────────────────────────────────────────────────────


@dataclass
class Result:
    """What happened."""

    sights: list[Sight]
    killed: list[float]  # when, as seconds since 1970
    transactions: int  # of the banks
    batches: int  # of the stream


def run(acid: acidsql.Session, place: Path, seconds: float, kills: int, rate: float) -> Result:
    """Run all three parts for so long, and then until the tables have all changes."""
    for statement in CREATE.split(";"):
        acid.sql(statement)
    banks = [Bank(place, name) for name in BANKS]
    for bank in banks:
        bank.publish()
    reader, killed = Reader(acid, banks), []
    stream = StreamProcess(place)
    try:
        _watch(reader, stream, _more_than(0))
        with open_for_business(banks, rate):
            for number in range(kills):
                seen = reader.sights[-1].changes
                _watch(reader, stream, _after(seconds / (kills + 1) * random.uniform(0.5, 1.5)))
                if number % 2:  # one may be killed before it has done anything, the next one not
                    _watch(reader, stream, _more_than(seen))
                stream.kill()
                killed.append(time.time())
                print("         killed; a new process goes on")
                stream.start()
            _watch(reader, stream, _after(seconds / (kills + 1)))
        _watch(reader, stream, lambda sight: sight.lag == 0)
    finally:
        stream.kill()
    reader.compare_with_now()
    (entry,) = acid.streams().collect()
    return Result(
        reader.sights, killed, sum(bank.transactions for bank in banks), entry.txnVersion + 1
    )


def _after(seconds: float) -> Callable[[Sight], bool]:
    end = time.time() + seconds
    return lambda sight: sight.at >= end


def _more_than(changes: int) -> Callable[[Sight], bool]:
    return lambda sight: sight.changes > changes


def _watch(reader: Reader, stream: StreamProcess, enough: Callable[[Sight], bool]) -> None:
    """Let the reader look until it has seen enough."""
    while not enough(reader.look()):
        stream.check()
        news = next(one.at for one in reader.sights if one.changes == reader.sights[-1].changes)
        if time.time() - news > PATIENCE:
            raise SystemExit(f"Nothing has come for {PATIENCE} s.")
        time.sleep(1)


def tell(result: Result, path: Path) -> None:
    """Print a summary, and draw the lag."""
    lags = sorted(one.lag for one in result.sights)
    print(
        f"\n{result.transactions:,} transactions of the banks, "
        f"{result.sights[-1].changes:,} changes, in {result.batches} batches; "
        f"the stream was killed {len(result.killed)} times.\n"
        f"{len(lags)} snapshots of both tables were compared with the banks, and all were equal.\n"
        f"Lag: median {statistics.median(lags):.1f} s, worst {lags[-1]:.1f} s. Picture: {path}"
    )
    path.write_text(picture(result.sights, result.killed))


def picture(sights: list[Sight], killed: list[float]) -> str:
    """The lag over time as SVG. A red line is a kill."""
    start, seconds = sights[0].at, sights[-1].at - sights[0].at
    worst = max(one.lag for one in sights) or 1

    def x(at: float) -> float:
        return 60 + 820 * (at - start) / seconds

    def y(lag: float) -> float:
        return 240 - 210 * lag / worst

    line = " ".join(f"{x(one.at):.1f},{y(one.lag):.1f}" for one in sights)
    parts = [
        f'<polyline points="60,240 {line} 880,240" fill="#cfe2f3" stroke="#1f77b4"/>',
        *(f'<path d="M{x(at):.1f} 20V240" stroke="#d62728"/>' for at in killed),
        *(
            f'<text x="{60 + 82 * i}" y="258" text-anchor="middle">{seconds * i / 10:.0f} s</text>'
            for i in range(11)
        ),
        *(
            f'<text x="52" y="{y(lag) + 4:.0f}" text-anchor="end">{lag:.1f} s</text>'
            for lag in (0, worst / 2, worst)
        ),
        '<text x="60" y="14">Age of the oldest change that a reader does not see; '
        '<tspan fill="#d62728">the stream is killed</tspan></text>',
    ]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 270" width="900" '
        f'font-family="sans-serif" font-size="12">{"".join(parts)}</svg>\n'
    )


def main(arguments: list[str] | None = None) -> Result | None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long the banks are open")
    parser.add_argument("--kills", type=int, default=2, help="how often the stream is killed")
    parser.add_argument("--rate", type=float, default=20, help="transactions a second, each bank")
    parser.add_argument("--directory", type=Path, help=f"default: {DIRECTORY}, made anew")
    parser.add_argument("--stream", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.stream is not None:
        run_stream(given.stream)
        return None
    place = (given.directory or DIRECTORY).resolve()
    if given.directory is None:
        shutil.rmtree(place, ignore_errors=True)
    warehouse = str(place / "warehouse")
    with acidsql.connect(start_spark(), warehouse=warehouse, compactor="off") as acid:
        result = run(acid, place, given.seconds, given.kills, given.rate)
    tell(result, place / "lag.svg")
    return result


if __name__ == "__main__":
    main()
