"""What the change feed of the last of many versions costs, beside a one-row UPDATE.

    .venv/bin/python benchmarks/history.py [--rows 5000000] [--versions 1000]

The table is loaded by one INSERT. Most versions then insert one row, and the last ones update one
row each. So the last version has a delete event, whose row is in the first directory. The feed need
only read that version's files, and the file that holds the row. Measured are a table with a
directory for each version, and the same after a major compaction. No test uses these figures.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from local_spark import local_spark
from rich.console import Console
from rich.table import Table

import acidsql

ROUNDS = 7  # the first two are not counted


def measure(acid: Any, rows: int) -> dict[str, list[float]]:
    """Seconds of each UPDATE, and of the feed of its version."""
    found: dict[str, list[float]] = {"UPDATE": [], "feed": [], "feed by key": []}

    def timed(what: str, act: Callable[[], object]) -> Any:
        start = time.perf_counter()
        done = act()
        found[what].append(time.perf_counter() - start)
        return done

    for number in range(ROUNDS):
        key = rows * (number + 1) // (ROUNDS + 1)
        timed("UPDATE", lambda key=key: acid.sql(f"UPDATE t SET v = v + 1 WHERE id = {key}"))
        last = acid.last.counts[0].write_id
        changes = timed("feed", lambda last=last: acid.changes("t", last, last).collect())
        assert sorted(one._change_type for one in changes) == ["delete", "insert"]
        timed("feed by key", lambda last=last: acid.changes("t", last, keys=["id"]).collect())
    return found


def show(title: str, found: dict[str, list[float]], files: int) -> None:
    """Print the median seconds, and how many times as long as an UPDATE each takes."""
    seconds = {what: median(taken[2:]) for what, taken in found.items()}
    table = Table(title, "seconds", "× an UPDATE")
    for what, taken in seconds.items():
        table.add_row(what, f"{taken:.3f}", f"{taken / seconds['UPDATE']:.2f}")
    Console().print(table, f"{files:,} files in the table")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--versions", type=int, default=1000)
    options = parser.parse_args(arguments)
    with (
        local_spark() as (spark, place),
        acidsql.connect(spark, warehouse=f"{place}/warehouse", compactor="off") as acid,
    ):
        acid.sql("CREATE TABLE t (id BIGINT, v INT, name STRING)")
        acid.sql(f"INSERT INTO t SELECT id, id % 100, uuid() FROM range({options.rows})")
        for number in range(options.versions - 1 - ROUNDS):
            acid.sql(f"INSERT INTO t VALUES ({options.rows + number}, 1, 'new')")
        found = measure(acid, options.rows)
        title = f"{options.rows:,} rows, {options.versions:,} versions"
        show(title, found, acid.files("t").count())
        acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
        show(f"{title}, compacted", measure(acid, options.rows), acid.files("t").count())


if __name__ == "__main__":
    main()
