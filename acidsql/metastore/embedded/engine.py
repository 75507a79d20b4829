"""Connections, store transactions and the store's clock, with what SQLite needs for each.

SQLite: one writer at a time. A store transaction that writes begins with ``BEGIN IMMEDIATE``, so
that it holds the write lock before its first read: that one lock stands for every mutex and
``SELECT … FOR UPDATE`` of Hive's TxnHandler (hive-transactions.md §1.4). Readers never wait for
it where the file is in WAL mode.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy import Connection, Engine, Table, create_engine, event, select, text, update
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from acidsql.errors import MetastoreError
from acidsql.metastore.embedded.upgrade import create_or_check

# julianday('now') counts whole milliseconds inside; ROUND undoes the division's last bit.
_SQLITE_NOW = text("SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)")
_FEW_MS = 20
_SQLITE_URL = re.compile(r"sqlite(\+pysqlite)?://(/(?P<path>[^?#]*))?")


def sqlite_url(path: str | os.PathLike[str]) -> str:
    """The URL of an SQLite file; any character may stand in the path."""
    return "sqlite:///" + quote(str(Path(path).absolute()))


class Store:
    """An opened database: hands out store transactions and tells the time.

    Args:
        url: SQLAlchemy's; for now only SQLite files.
        warehouse: Location of the database ``default``, used where the store is created.
        clock: Milliseconds since the epoch; None for the database's own clock.
        busy_timeout_ms: How long to wait for another process that is writing.

    Raises:
        MetastoreError: The store cannot be opened, or it is not ours.
    """

    def __init__(
        self,
        url: str,
        *,
        warehouse: str,
        clock: Callable[[], int] | None,
        busy_timeout_ms: int,
    ) -> None:
        self.name, self._clock, self._process = url, clock, os.getpid()
        self.engine = _open(url, busy_timeout_ms)
        try:
            with self.write() as connection:
                create_or_check(connection, warehouse)
        except BaseException:
            self.close()
            raise

    def read(self) -> AbstractContextManager[Connection]:
        """A store transaction that only reads: it sees one moment and waits for no writer."""
        return self._begin("BEGIN")

    def write(self) -> AbstractContextManager[Connection]:
        """A store transaction that may write: all of its changes happen, or none (I12)."""
        return self._begin("BEGIN IMMEDIATE")

    def now_ms(self, connection: Connection) -> int:
        """The store's time in milliseconds since the epoch: the only clock for time-outs."""
        if self._clock is not None:
            return self._clock()
        return int(connection.execute(_SQLITE_NOW).scalar_one())

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()

    def _begin(self, how: str) -> AbstractContextManager[Connection]:
        if os.getpid() != self._process:
            # An SQLite connection must not be used after a fork, not even to close it.
            self.engine.dispose(close=False)
            self._process = os.getpid()
        return _begin(self.engine, how, self.name)


@contextmanager
def _begin(engine: Engine, how: str, name: str) -> Iterator[Connection]:
    try:
        connection = engine.connect().execution_options(acidsql_begin=how)
        with connection, connection.begin():
            yield connection
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error)
        raise MetastoreError(
            f"The metastore {name} did not do it: {reason}.{_advice(reason)} Nothing was changed.",
            store=name,
            reason=reason,
        ) from error


def _advice(reason: str) -> str:
    if "unable to open" in reason:
        return " Does its directory exist, and may you write to it?"
    if "locked" in reason or "busy" in reason:
        return " Another process kept it for longer than acidsql.metastore.busy.timeout."
    if "not a database" in reason:
        return " The file is something else."
    return ""


def next_number(connection: Connection, counter: Table) -> int:
    """Take the next number of a one-row counter table (NEXT_TXN_ID and its like)."""
    (column,) = counter.columns
    # Updated before it is read, so that the row is locked where rows are (PostgreSQL, MySQL).
    connection.execute(update(counter).values({column: column + 1}))
    return int(connection.execute(select(column)).scalar_one()) - 1


def _open(url: str, busy_timeout_ms: int) -> Engine:
    sqlite = _SQLITE_URL.fullmatch(url)
    if not sqlite:
        raise MetastoreError(
            f"'{url}': only SQLite files can be a metastore for now (sqlite:////directory/file)",
            condition="UNSUPPORTED_METASTORE",
            sqlstate="0A000",
            store=url,
        )
    # Read by ourselves: SQLAlchemy 2.0 and 2.1 differ on what %20 in a path means.
    path = unquote(sqlite["path"] or "")
    if path in ("", ":memory:"):
        raise MetastoreError(
            f"'{url}' is in memory, where other processes cannot see it; name a file", store=url
        )
    engine = create_engine(
        URL.create("sqlite", database=path), connect_args={"timeout": busy_timeout_ms / 1000}
    )
    _use_sqlite(engine, busy_timeout_ms)
    return engine


def _use_sqlite(engine: Engine, busy_timeout_ms: int) -> None:
    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        # None: the sqlite3 module begins no transactions of its own; ``begin`` below does.
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        _use_wal(connection, busy_timeout_ms)
        connection.execute("PRAGMA synchronous = FULL")  # a commit survives a power cut

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        how = connection.get_execution_options().get("acidsql_begin", "BEGIN IMMEDIATE")
        connection.exec_driver_sql(how)


def _use_wal(connection: sqlite3.Connection, busy_timeout_ms: int) -> None:
    """Write-ahead logging where the file system allows it; else SQLite stays as it was.

    Changing the mode does not wait for others by itself, as other operations do.
    """
    deadline = time.monotonic() + busy_timeout_ms / 1000
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            if mode != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(_FEW_MS / 1000)
