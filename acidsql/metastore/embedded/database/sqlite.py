"""SQLite: a file on this machine, one writer at a time.

A store transaction that writes begins with ``BEGIN IMMEDIATE``, so it holds the write lock before
its first read. This lock replaces every mutex and ``SELECT … FOR UPDATE`` of Hive's TxnHandler
(hive-transactions.md §1.4). If the file is in WAL mode, readers never wait for the lock.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL

from acidsql.errors import MetastoreError
from acidsql.metastore.embedded.database.dialect import BUSY, Dialect

_FEW_MS = 20
_URL = re.compile(r"sqlite(\+pysqlite)?://(/(?P<path>[^?#]*))?")


def sqlite_url(path: str | os.PathLike[str]) -> str:
    """Return the URL ``sqlite:////…`` of an SQLite file; a relative path becomes absolute, and
    special characters are escaped. The file is not made."""
    return "sqlite:///" + quote(str(Path(path).absolute()))


def _open_sqlite(url: str, busy_timeout_ms: int) -> Engine:
    """Make the engine of an SQLite file; the first connection makes the file. Raise MetastoreError
    if the URL names no file, or a database in memory."""
    match = _URL.fullmatch(url)
    # Parsed here, because SQLAlchemy 2.0 and 2.1 read %20 in a path differently.
    path = unquote(match["path"] or "") if match else ""
    if path in ("", ":memory:"):
        raise MetastoreError(
            f"'{url}' names no file. Other processes could not see a metastore in memory: use "
            "sqlite:////directory/file.",
            store=url,
        )
    engine = create_engine(
        URL.create("sqlite", database=path), connect_args={"timeout": busy_timeout_ms / 1000}
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        """Set up a new connection: no transactions by itself, foreign keys, write-ahead log, safe
        commits."""
        # With None the sqlite3 module begins no transactions by itself.
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        _use_wal(connection, busy_timeout_ms)
        connection.execute("PRAGMA synchronous = FULL")  # a commit survives a power cut

    return engine


def _use_wal(connection: sqlite3.Connection, busy_timeout_ms: int) -> None:
    """Switch to write-ahead logging. While others lock the file, try again until the time-out, then
    raise OperationalError. Any other error is raised at once.

    SQLite's own time-out does not apply to a change of the mode. If the file system does not allow
    the mode, the old one stays.
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


SQLITE = Dialect(
    driver="pysqlite",
    open=_open_sqlite,
    read=("BEGIN",),
    write=("BEGIN IMMEDIATE",),
    upgrade=("BEGIN IMMEDIATE",),
    # julianday('now') has whole milliseconds; ROUND removes the division's error in the last bit.
    now="SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)",
    advice={
        "unable to open": "Does its directory exist, and may you write to it?",
        "locked": BUSY,
        "busy": BUSY,
        "not a database": "The file is something else, not an SQLite database.",
    },
)
