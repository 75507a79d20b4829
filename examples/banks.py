"""Two banks' databases in SQLite, which log their changes: a world for ``replication.py``.

Triggers write each change of an account into the table ``changes``, in the same transaction. A
connector writes new entries of this log into files of JSON, in the form of Debezium.
"""

from __future__ import annotations

import json
import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

BANKS = ("north", "south")
CITIES = ("Bergen", "Lisbon", "Nantes", "Turin")
ACCOUNTS, MONEY = 50, 100  # each bank begins with so many accounts, and so much money in each

_ROW = "json_object('id', {0}.id, 'owner', {0}.owner, 'city', {0}.city, 'balance', {0}.balance)"
_OLD, _NEW = _ROW.format("old"), _ROW.format("new")
_SCHEMA = f"""
PRAGMA journal_mode = WAL;
CREATE TABLE accounts (id INTEGER PRIMARY KEY, owner TEXT, city TEXT, balance INT);
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, op TEXT, id INT, before TEXT, after TEXT,
    at REAL DEFAULT ((julianday('now') - 2440587.5) * 86400));
CREATE TRIGGER inserted AFTER INSERT ON accounts BEGIN
    INSERT INTO changes (op, id, after) VALUES ('c', new.id, {_NEW}); END;
CREATE TRIGGER updated AFTER UPDATE ON accounts WHEN {_OLD} <> {_NEW} BEGIN
    INSERT INTO changes (op, id, before, after) VALUES ('u', new.id, {_OLD}, {_NEW}); END;
CREATE TRIGGER deleted AFTER DELETE ON accounts BEGIN
    INSERT INTO changes (op, id, before) VALUES ('d', old.id, {_OLD}); END;
"""

Account = tuple[str, int, str, str, int]  # bank, id, owner, city, balance
Version = tuple[str, int, str, str, int, int, int | None]  # … its change, and the one that ends it


class Bank:
    """A database of accounts that logs its changes, and the connector that sends the log."""

    def __init__(self, place: Path, name: str) -> None:
        self.name, self.transactions, self._sent = name, 0, 0
        self._path, self._target = place / f"{name}.db", place / "changes"
        self._target.mkdir(parents=True, exist_ok=True)
        with self._database() as db:
            db.executescript(_SCHEMA)
            for number in range(ACCOUNTS):
                _open(db, f"owner {number}", MONEY)

    def transact(self) -> None:
        """Run one transaction. The bank's money stays the same."""
        kind = random.choices(("transfer", "open", "close", "change city"), (6, 1, 1, 2))[0]
        with self._database() as db:
            db.execute("BEGIN IMMEDIATE")
            drawn = "SELECT id, balance FROM accounts ORDER BY random() LIMIT 2"
            (one, balance), (other, _) = db.execute(drawn).fetchall()
            if kind == "transfer":
                _move(db, one, other, random.randint(1, 50))
            elif kind == "open":
                _move(db, one, _open(db, "somebody new", 0), random.randint(1, 50))
            elif kind == "close":
                _move(db, one, other, balance)
                db.execute("DELETE FROM accounts WHERE id = ?", [one])
            else:
                city = random.choice(CITIES)
                db.execute("UPDATE accounts SET city = ? WHERE id = ?", [city, one])
        self.transactions += 1

    def publish(self) -> None:
        """Write what is new in the log into a file, as a connector would: whole transactions.

        The file is renamed when it is complete. Spark reads no names that begin with a dot.
        """
        with self._database() as db:
            new = db.execute(
                "SELECT seq, op, before, after, at FROM changes WHERE seq > ? ORDER BY seq",
                [self._sent],
            ).fetchall()
        if not new:
            return
        self._sent = new[-1][0]
        name = f"{self.name}-{self._sent:09}.json"
        lines = [self._record(*entry) + "\n" for entry in new]
        (self._target / f".{name}").write_text("".join(lines))
        (self._target / f".{name}").rename(self._target / name)

    def _record(self, seq: int, op: str, before: str | None, after: str | None, at: float) -> str:
        return json.dumps({
            "op": op,
            "before": before and json.loads(before),
            "after": after and json.loads(after),
            "source": {"db": self.name, "table": "accounts", "seq": seq},
            "ts_ms": int(at * 1000),
        })  # fmt: skip

    def accounts(self) -> list[Account]:
        """The accounts now."""
        with self._database() as db:
            rows = db.execute("SELECT id, owner, city, balance FROM accounts ORDER BY id")
            return [(self.name, *row) for row in rows]

    def versions(self, seq: int) -> list[Version]:
        """All versions of all accounts until this change; an end of None is yet to come."""
        with self._database() as db:
            rows = db.execute(
                "SELECT after, seq, lead(seq) OVER (PARTITION BY id ORDER BY seq) FROM changes "
                "WHERE seq <= ? ORDER BY id, seq",
                [seq],
            ).fetchall()
        return [
            (self.name, *json.loads(after).values(), start, end)
            for after, start, end in rows
            if after is not None
        ]

    def first_after(self, seq: int) -> float | None:
        """When the first change after this one was made, as seconds since 1970."""
        with self._database() as db:
            return db.execute("SELECT min(at) FROM changes WHERE seq > ?", [seq]).fetchone()[0]

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """A connection, whose transaction is committed if nothing fails."""
        with closing(sqlite3.connect(self._path)) as db, db:
            yield db


def _open(db: sqlite3.Connection, owner: str, balance: int) -> int:
    row = [owner, random.choice(CITIES), balance]
    insert = "INSERT INTO accounts (owner, city, balance) VALUES (?, ?, ?)"
    return db.execute(insert, row).lastrowid or 0


def _move(db: sqlite3.Connection, source: int, target: int, amount: int) -> None:
    update = "UPDATE accounts SET balance = balance + ? WHERE id = ?"
    db.executemany(update, [(-amount, source), (amount, target)])


@contextmanager
def open_for_business(banks: list[Bank], rate: float) -> Iterator[None]:
    """In the block, both banks run so many transactions a second, and send their logs."""
    closing_time = threading.Event()

    def run(bank: Bank) -> None:
        while not closing_time.wait(1 / rate):
            bank.transact()
            if bank.transactions % max(1, int(rate / 2)) == 0:
                bank.publish()
        bank.publish()

    threads = [threading.Thread(target=run, args=[bank]) for bank in banks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        closing_time.set()
        for thread in threads:
            thread.join()
