"""What differs between the databases that a metastore can be kept in.

All else is SQLAlchemy's. The values of ``Dialect`` are in ``sqlite``, ``postgresql`` and ``mysql``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import Engine

BUSY = "Another process kept it for longer than acidsql.metastore.busy.timeout."


@dataclass(frozen=True, slots=True)
class Dialect:
    """One kind of database. Statements are in its own SQL.

    Attributes:
        driver: The one driver that is used, by SQLAlchemy's name.
        open: A URL and ``acidsql.metastore.busy.timeout`` in milliseconds → connections.
        read: What begins a store transaction that only reads, and sees one moment.
        write: What begins one that writes, and lets others that write wait.
        upgrade: What begins the one that creates or changes the schema, and lets others wait.
        now: Asks for the milliseconds since the epoch.
        advice: A part of the database's error message → what a person can do about it.
        extra: The optional dependency of acidsql that brings the driver.

    Of the statements in ``read``, ``write`` and ``upgrade`` one that returns rows is a lock: it
    must return something true.
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
    """How long a server waits for the next word of a client that has begun a store transaction.

    A client that hangs is thrown out while those who wait for it still have time left.
    """
    return max(1000, busy_timeout_ms // 2)
