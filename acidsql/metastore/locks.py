"""What can be locked, how, and what the store says about a lock: values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from acidsql.acid.table import TableName


class LockType(Enum):
    """Hive 4's lock types; the value is the letter in HIVE_LOCKS.HL_LOCK_TYPE."""

    SHARED_READ = "r"
    SHARED_WRITE = "w"
    EXCL_WRITE = "x"
    EXCLUSIVE = "e"


class LockState(Enum):
    """The value is the letter in HIVE_LOCKS.HL_LOCK_STATE."""

    ACQUIRED = "a"
    WAITING = "w"


class Operation(Enum):
    """Hive's DataOperationType; the value is the letter in TXN_COMPONENTS, or '' for none.

    OVERWRITE (INSERT OVERWRITE, TRUNCATE) is ours: Hive calls it an update and locks inserts out.
    """

    SELECT = "s"
    INSERT = "i"
    UPDATE = "u"
    DELETE = "d"
    OVERWRITE = "o"
    NO_TXN = ""


@dataclass(frozen=True, slots=True)
class LockComponent:
    """One object to lock: a database (table None), a table (partition None) or a partition.

    Attributes:
        operation: What the transaction will do there. INSERT, UPDATE, DELETE and OVERWRITE are
            recorded in TXN_COMPONENTS; SELECT and NO_TXN are not.
    """

    lock_type: LockType
    database: str
    table: str | None = None
    partition: str | None = None
    operation: Operation = Operation.NO_TXN


@dataclass(frozen=True, slots=True)
class LockInfo:
    """One row of SHOW LOCKS. Times are milliseconds since the epoch, by the store's clock.

    Attributes:
        session: The transaction that holds the locks of the session whose statement this is. None:
            the session has none.
    """

    lock_id: int
    internal_id: int
    txn_id: int
    database: str
    table: str | None
    partition: str | None
    state: LockState
    lock_type: LockType
    acquired_at_ms: int | None
    user: str
    host: str
    agent_info: str
    blocked_by: tuple[int, int] | None = None
    session: int | None = None


@dataclass(frozen=True, slots=True)
class LockResponse:
    """The answer to ``lock`` and ``check_lock``; ``blocked_by`` is a lock that it waits for."""

    lock_id: int
    state: LockState
    blocked_by: LockInfo | None = None


def locks_on_table(name: TableName, locks: Iterable[LockInfo]) -> list[LockInfo]:
    """Return those of ``locks`` that are on a table or its partitions; not those on its
    database."""
    return [lock for lock in locks if (lock.database, lock.table) == (name.database, name.name)]
