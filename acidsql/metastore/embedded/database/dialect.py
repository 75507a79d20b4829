"""The differences between the kinds of database for a metastore that SQLAlchemy does not hide.

``sqlite``, ``postgresql`` and ``mysql`` have the values of ``Dialect``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import Engine

BUSY = "Another process held its lock for longer than acidsql.metastore.busy.timeout."


@dataclass(frozen=True, slots=True)
class Dialect:
    """One kind of database. Statements are in its own SQL.

    Attributes:
        driver: The driver, by SQLAlchemy's name.
        open: A URL and ``acidsql.metastore.busy.timeout`` in milliseconds → SQLAlchemy's engine.
        read: Statements that begin a store transaction that only reads, and sees one moment.
        write: Statements that begin a store transaction that writes. Other writers wait.
        upgrade: Statements that begin a store transaction that creates or changes the schema.
            Other such transactions wait.
        now: A query for the milliseconds since the epoch.
        advice: A part of the database's error message → what the user can do about the error.
        extra: The optional dependency of acidsql that installs the driver.

    A statement in ``read``, ``write`` or ``upgrade`` that returns rows takes a lock. Its first
    value must be true; otherwise the lock was not granted.
    """

    driver: str
    open: Callable[[str, int], Engine]
    read: tuple[str, ...]
    write: tuple[str, ...]
    upgrade: tuple[str, ...]
    now: str
    advice: Mapping[str, str]
    extra: str | None = None


def idle_timeout_ms(busy_timeout_ms: int) -> int:
    """Return how many milliseconds a server is to wait for the next statement of a client in a
    store transaction: half of ``busy_timeout_ms``, but at least 1000.

    The server disconnects a client that hangs, before the clients that wait for it time out.
    """
    return max(1000, busy_timeout_ms // 2)
