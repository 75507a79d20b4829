"""What a statement costs as a table and its metastore grow.

    .venv/bin/python benchmarks/growth.py [--partitions 100,1000,10000] [--deltas 1,10] [--url URL]

A big table is simulated: its partitions and directories are real, but all of its files are hard
links to one small file. So the measured time is that of catalog, listing and planning. The other
parts are real: INSERT into new partitions, deleted rows, open transactions, sessions that commit at
once. For each part it prints seconds, and the cost of one more. No test uses these figures.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from local_spark import local_spark
from rich.console import Console
from rich.table import Table

import acidsql
from acidsql.acid.table import Partition, TableName
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import Commit, LockComponent, LockType, Operation
from acidsql.settings import Settings
from acidsql.txn import TxnManager

CONSOLE = Console()
WRITERS = (1, 4, 16, 64)
PER_WRITER = 25


def seconds(act: Callable[[], object], rounds: int = 3) -> float:
    """The median time; the first round is not counted."""
    taken = []
    for _ in range(rounds + 1):
        gc.collect()
        start = time.perf_counter()
        act()
        taken.append(time.perf_counter() - start)
    return median(taken[1:])


def show(title: str, unit: str, rows: Sequence[tuple[int, dict[str, float]]]) -> None:
    """Print seconds by size, and what one more unit costs between the two largest sizes."""
    table = Table(unit, *rows[0][1], title=title)
    for size, found in rows:
        table.add_row(f"{size:,}", *(f"{value:.3f} s" for value in found.values()))
    for (small, before), (large, after) in list(pairwise(rows))[-1:]:
        slopes = ((after[name] - before[name]) / (large - small) for name in after)
        table.add_row("one more", *(f"{slope * 1e6:,.1f} µs" for slope in slopes))
    CONSOLE.print(table)


def grow(acid: Any, name: str, partitions: int, deltas: int) -> None:
    """Make a table with hard links to the file of its first partition."""
    acid.sql(f"CREATE TABLE {name} (id BIGINT, v INT) PARTITIONED BY (p INT)")
    acid.sql(f"INSERT INTO {name} PARTITION (p = 0) VALUES (1, 1)")
    table = acid.metastore.find(TableName("default", name))
    place = Path(table.location.removeprefix("file:"))
    (first,) = (place / "p=0").iterdir()
    files = list(first.iterdir())
    manager = TxnManager(acid.metastore, Settings(), user="bench", host="here")
    for number in range(1, deltas + 1):
        linked = files
        with manager.open(agent_info="simulated") as txn:
            write_id = txn.write_id(table.name)
            for p in range(1, partitions):
                to = place / f"p={p}" / f"delta_{write_id:07}_{write_id:07}_0000"
                to.mkdir(parents=True)
                for file in linked:
                    # A file can have some 65,000 links: each write id gets a copy of its own.
                    (shutil.copy if p == 1 else os.link)(file, to / file.name)
                if p == 1:
                    linked = [to / file.name for file in files]
            txn.commit()
        if number == 1:
            add(acid.metastore, table, place, partitions)
    manager.close()


def add(store: Any, table: Any, place: Path, partitions: int) -> None:
    """Enter the partitions into the catalog."""
    txn = store.open_txn(user="bench", host="here")
    new = [Partition((str(p),), f"{place}/p={p}") for p in range(1, partitions)]
    store.commit_txn(txn, Commit(added_partitions={table.name: new}))


def of_partitions(acid: Any, sizes: Sequence[int], deltas: int) -> None:
    """Planning, EXPLAIN, one partition, one new row."""
    rows = []
    for size in sizes:
        name = f"t{size}_{deltas}"
        grow(acid, name, size, deltas)
        asked = f"SELECT count(*), sum(v) FROM {name}"
        one = f"SELECT * FROM {name} WHERE p = {size // 2}"
        found = {
            "plan SELECT": seconds(lambda: acid.sql(asked)),  # noqa: B023
            "EXPLAIN": seconds(lambda: acid.sql(f"EXPLAIN {asked}").collect()),  # noqa: B023
            "SELECT of one": seconds(lambda: acid.sql(one).collect()),  # noqa: B023
            "INSERT into one": seconds(
                lambda: acid.sql(f"INSERT INTO {name} PARTITION (p = 1) VALUES (1, 1)")  # noqa: B023
            ),
            "UPDATE in one": seconds(
                lambda: acid.sql(f"UPDATE {name} SET v = v + 1 WHERE p = 0")  # noqa: B023
            ),
        }
        rows.append((size, found))
        acid.sql(f"DROP TABLE {name}")
        acid.clean()
    show(f"Partitions of {deltas} directories each (simulated)", "partitions", rows)


def of_all_partitions(acid: Any, sizes: Sequence[int], deltas: str) -> None:
    """The same for each number of directories in a partition."""
    for number in deltas.split(","):
        of_partitions(acid, sizes, int(number))


def of_new_partitions(acid: Any, sizes: Sequence[int]) -> None:
    """One INSERT that makes many partitions."""
    rows = []
    acid.sql(f"SET hive.exec.max.dynamic.partitions={max(sizes)}")
    for size in sizes:
        acid.sql("CREATE TABLE wide (id BIGINT) PARTITIONED BY (p INT)")
        start = time.perf_counter()
        acid.sql(f"INSERT INTO wide SELECT id, CAST(id AS INT) FROM range({size})")
        rows.append((size, {"INSERT": time.perf_counter() - start}))
        acid.sql("DROP TABLE wide")
    show("One INSERT into new partitions", "partitions", rows)


def of_deletes(acid: Any, count: int = 2_000_000) -> None:
    """A scan of a table of which ever more rows are deleted."""
    acid.sql("CREATE TABLE d (id BIGINT, v INT)")
    acid.sql(f"INSERT INTO d SELECT id, CAST(id % 1000 AS INT) FROM range({count})")
    rows, gone = [], 0
    for part in (0, 1, 10, 100, 400):
        if part:
            acid.sql(f"DELETE FROM d WHERE pmod(xxhash64(id), 1000) < {part}")
            gone = count - acid.sql("SELECT count(*) FROM d").first()[0]
        rows.append((gone, {"scan": seconds(lambda: acid.sql("SELECT sum(v) FROM d").collect())}))
    show(f"Deleted rows, of {count:,}", "deleted", rows)
    acid.sql("DROP TABLE d")


def of_statements(acid: Any, times: int = 300) -> None:
    """Small statements one after another: the last ones beside the first ones, and memory."""
    acid.sql("CREATE TABLE s (id BIGINT, v INT)")
    taken: list[float] = []
    for number in range(times):
        start = time.perf_counter()
        acid.sql(f"INSERT INTO s VALUES ({number}, 1)")
        acid.sql(f"SELECT v FROM s WHERE id = {number}").collect()
        taken.append(time.perf_counter() - start)
    tenth = times // 10
    first, last = median(taken[tenth : 2 * tenth]), median(taken[-tenth:])
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    CONSOLE.print(
        f"INSERT and SELECT, {times} times, with compaction: {first:.3f} s at first, "
        f"{last:.3f} s at last; Python's peak {kib >> 10} MiB"
    )
    acid.sql("DROP TABLE s")


LOCK = LockComponent(LockType.SHARED_READ, "default", "t", None, Operation.INSERT)


def of_open_transactions(url: str) -> None:
    """The store's part of an INSERT beside many open transactions."""
    rows = []
    with _store(url) as store:
        manager = TxnManager(store, Settings(), user="bench", host="here")
        is_open = 0
        for size in (0, 100, 1000, 10_000):
            for _ in range(size - is_open):
                store.open_txn(user="bench", host="elsewhere")
            is_open = size
            rows.append((size, {"transaction": seconds(lambda: commit_one(manager), 20)}))
        manager.close()
    show("Open transactions of others", "open", rows)


def of_writers(url: str) -> None:
    """Threads with a session each commit at once."""
    table = Table("writers", "commits per s", "slowest, s", title="Sessions that commit at once")
    for writers in WRITERS:
        taken: list[float] = []
        with ExitStack() as stores, tempfile.TemporaryDirectory() as place:
            own = url or sqlite_url(Path(place, "own.db"))
            # A store for each writer, as each session has one.
            managers = [
                TxnManager(stores.enter_context(_store(own)), Settings(), user="bench", host=str(n))
                for n in range(writers)
            ]

            def work(manager: TxnManager, taken: list[float] = taken) -> None:
                for _ in range(PER_WRITER):
                    start = time.perf_counter()
                    commit_one(manager)
                    taken.append(time.perf_counter() - start)

            threads = [threading.Thread(target=work, args=(one,)) for one in managers]
            start = time.perf_counter()
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            per_s = len(taken) / (time.perf_counter() - start)
            for manager in managers:
                manager.close()
        table.add_row(str(writers), f"{per_s:,.0f}", f"{max(taken):.2f}")
    CONSOLE.print(table)


def commit_one(manager: TxnManager) -> None:
    """The store calls of a small INSERT."""
    name = TableName("default", "t")
    with manager.open(agent_info="INSERT INTO t VALUES (1)") as txn:
        txn.lock([LOCK])
        txn.snapshot([name])
        txn.write_id(name)
        txn.commit()


@contextmanager
def _store(url: str) -> Iterator[EmbeddedMetastore]:
    with tempfile.TemporaryDirectory() as place:
        store = EmbeddedMetastore(url or sqlite_url(Path(place, "own.db")), warehouse="/warehouse")
        yield store
        store.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", default="100,1000,10000")
    parser.add_argument("--deltas", default="1,10")
    parser.add_argument("--url", default="", help="an empty database for the store's parts")
    parser.add_argument("--only", default="", help="parts, with commas between them")
    options = parser.parse_args(arguments)
    sizes = [int(size) for size in options.partitions.split(",")]
    with (
        local_spark() as (spark, place),
        acidsql.connect(
            spark,
            warehouse=f"{place}/warehouse",
            settings={"acidsql.history.retention": "0s"},
        ) as acid,
    ):
        acid.sql("CREATE TABLE warm (id BIGINT) PARTITIONED BY (p INT)")
        acid.sql("INSERT INTO warm SELECT id, 1 FROM range(1000)")
        parts: dict[str, Callable[[], None]] = {
            "new": lambda: of_new_partitions(acid, sizes),
            "partitions": lambda: of_all_partitions(acid, sizes, options.deltas),
            "deletes": lambda: of_deletes(acid),
            "statements": lambda: of_statements(acid),
            "open": lambda: of_open_transactions(options.url),
            "writers": lambda: of_writers(options.url),
        }
        for name, measure in parts.items():
            if not options.only or name in options.only.split(","):
                measure()


if __name__ == "__main__":
    main()
