"""The costs of the metastore: transactions per second, and whether a long history makes them
slower.

    python benchmarks/metastore.py [URL …]       default: a new SQLite file

For each store it prints: store operations per second; then the time of a short transaction (open,
lock, snapshot, write id, commit) in a new store, and after 10,000 committed transactions, as a
ratio. The new and the old store are measured in turn, because machines are noisy. No test uses
these numbers; the tests count SQL statements.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from acidsql.acid.table import TableName
from acidsql.metastore.embedded import EmbeddedMetastore, sqlite_url
from acidsql.metastore.interface import LockComponent, LockType, Operation
from acidsql.settings import Settings
from acidsql.txn import TxnManager

NAME = TableName("default", "t")
LOCK = LockComponent(LockType.EXCL_WRITE, "default", "t", None, Operation.UPDATE)
HISTORY = 10_000
ROUNDS, PER_ROUND = 15, 20


def transaction(txns: TxnManager) -> None:
    """The store calls of a small UPDATE."""
    with txns.open(agent_info="UPDATE t SET a = 1") as txn:
        txn.lock([LOCK])
        txn.snapshot([NAME])
        txn.write_id(NAME)
        txn.commit()


def seconds(act: Callable[[], object], times: int) -> float:
    """The average seconds of one call."""
    start = time.perf_counter()
    for _ in range(times):
        act()
    return (time.perf_counter() - start) / times


def measure(fresh_url: str, old_url: str, history: int) -> dict[str, float]:
    """Measure one kind of store."""
    stores = [EmbeddedMetastore(url, warehouse="/warehouse") for url in (fresh_url, old_url)]
    fresh, old = (TxnManager(store, Settings(), user="bench", host="here") for store in stores)
    for _ in range(history):
        transaction(old)
    pairs = []
    for _ in range(ROUNDS):
        pairs.append(
            (
                seconds(lambda: transaction(fresh), PER_ROUND),
                seconds(lambda: transaction(old), PER_ROUND),
            )
        )
    found = {
        "new store, ms": statistics.median(one for one, _ in pairs) * 1000,
        f"after {history:,}, ms": statistics.median(two for _, two in pairs) * 1000,
        "ratio": statistics.median(two / one for one, two in pairs),
        "reads per s": 1 / seconds(lambda: stores[0].valid_txns(), 300),
        "writes per s": 1 / seconds(lambda: _write(stores[0]), 300),
    }
    for manager, store in zip((fresh, old), stores, strict=True):
        manager.close()
        store.close()
    return found


def _write(store: EmbeddedMetastore) -> None:
    store.abort_txn(store.open_txn(user="bench", host="here"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("urls", nargs="*", help="two empty databases for each store: NEW,OLD")
    parser.add_argument("--history", type=int, default=HISTORY)
    options = parser.parse_args(arguments)
    table = Table(title="A short transaction in the metastore")
    with tempfile.TemporaryDirectory() as place:
        files = ",".join(sqlite_url(Path(place, name)) for name in ("new.db", "old.db"))
        for number, urls in enumerate(options.urls or [files]):
            found = measure(*urls.split(","), options.history)
            if number == 0:
                for heading in ("store", *found):
                    table.add_column(heading, justify="right")
            kind = urls.partition(":")[0]
            table.add_row(kind, *(f"{value:,.2f}" for value in found.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
