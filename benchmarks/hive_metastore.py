"""What a statement of one row costs over a Hive Metastore, beside acidsql's own, and beside Hive.

    .venv/bin/python benchmarks/hive_metastore.py [--rounds 15]

It starts a Hive 4.0.1 with its metastore, as the tests do (Maven fetches it). The same statements
run in turns: in acidsql over its own metastore (SQLite), in acidsql over the Hive Metastore, and in
Hive's SQL. Each has a table of its own with the same rows, and none is compacted. No test uses
these figures.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

import acidsql
from acidsql.metastore.hive.wire.client import Client

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import hive_sql
from small_spark import small_spark

OWN, OVER_HIVE, HIVE = "acidsql, own metastore", "acidsql, Hive Metastore", "Hive"
ROWS = 1000
TABLES = {OWN: "bench.t", OVER_HIVE: "bench.t", HIVE: "bench.of_hive"}
# With {t}, the table, and {n}, the number of the round.
STATEMENTS = {
    "INSERT of one row": "INSERT INTO {t} VALUES ({n}, 1)",
    "UPDATE of one row": "UPDATE {t} SET v = v + 1 WHERE id = {n}",
    "DELETE of one row": "DELETE FROM {t} WHERE id = {n}",
    "SELECT of one row": "SELECT * FROM {t} WHERE id = {n}",
}
Act = Callable[[str], object]


def prepare(sessions: dict[str, Act]) -> None:
    """Make the tables, each with the same rows."""
    numbers = ", ".join(f"({number}, 0)" for number in range(ROWS))
    in_hive = " STORED AS ORC TBLPROPERTIES ('transactional'='true')"
    for who, act in sessions.items():
        if who != HIVE:  # both use one metastore
            act("CREATE DATABASE bench")
        act(f"CREATE TABLE {TABLES[who]} (id INT, v INT){in_hive if who == HIVE else ''}")
        act(f"INSERT INTO {TABLES[who]} VALUES {numbers}")


def in_turns(sessions: dict[str, Act], statement: str, rounds: int) -> dict[str, float]:
    """The median seconds of a statement by session; the first round is not counted."""
    taken: dict[str, list[float]] = {who: [] for who in sessions}
    for number in range(rounds + 1):
        for who, act in sessions.items():
            new = ROWS + number if statement.startswith("INSERT") else number
            start = time.perf_counter()
            act(statement.format(t=TABLES[who], n=new))
            taken[who].append(time.perf_counter() - start)
    return {who: median(seconds[1:]) for who, seconds in taken.items()}


def calls_of(act: Act, statement: str) -> str:
    """The calls of a statement, and the milliseconds that they take together."""
    real, made, start = Client.call, Counter[str](), time.perf_counter()
    waited = 0.0

    def call(self: Client, name: str, *values: Any, **options: Any) -> Any:
        nonlocal waited
        start = time.perf_counter()
        try:
            return real(self, name, *values, **options)
        finally:
            made[name] += 1
            waited += time.perf_counter() - start

    Client.call = call  # type: ignore[method-assign]
    try:
        act(statement.format(t=TABLES[OVER_HIVE], n=ROWS // 2))
    finally:
        Client.call = real  # type: ignore[method-assign]
    whole = time.perf_counter() - start
    return f"{made.total()} calls take {waited * 1000:.0f} of {whole * 1000:.0f} ms"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args(arguments)
    reason = hive_sql.missing()
    if reason is not None:
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as place:
        spark = small_spark(f"{place}/spark", threads=2, memory="2g")
        (work := Path(place, "hive")).mkdir()
        server = hive_sql.Hive(work)
        hive = server.session()
        own = acidsql.connect(spark, warehouse=f"{place}/own", compactor="off")
        over = acidsql.connect(spark, metastore=server.url)
        try:
            measure(
                {
                    OWN: lambda text: own.sql(text).collect(),
                    OVER_HIVE: lambda text: over.sql(text).collect(),
                    HIVE: hive.sql,
                },
                options.rounds,
            )
        finally:
            own.close()
            over.close()
            hive.close()
            server.close()
            spark.stop()


def measure(sessions: dict[str, Act], rounds: int) -> None:
    """Measure all statements."""
    console, found = Console(), Table(title=f"Seconds, median of {rounds}")
    for heading in ("", *sessions, "Hive Metastore : own", "Hive : acidsql over its metastore"):
        found.add_column(heading, justify="right")
    prepare(sessions)
    for kind, statement in STATEMENTS.items():
        taken = in_turns(sessions, statement, rounds)
        found.add_row(
            kind,
            *(f"{taken[who]:.3f}" for who in sessions),
            f"{taken[OVER_HIVE] / taken[OWN]:.2f}",
            f"{taken[HIVE] / taken[OVER_HIVE]:.1f}",
        )
        console.print(f"{kind}: {calls_of(sessions[OVER_HIVE], statement)}")
    console.print(found)


if __name__ == "__main__":
    main()
