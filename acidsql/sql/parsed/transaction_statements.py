"""The parsed statements about transactions and locks. Import them from ``statements``."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.parsed.parts import Name, PartitionItem
from acidsql.sql.text.tokens import Span


@dataclass(frozen=True, slots=True)
class ShowTransactions:
    """``SHOW TRANSACTIONS``."""


@dataclass(frozen=True, slots=True)
class ShowStreams:
    """``SHOW STREAMS``: the newest batch of each stream (Spark and Hive have no such statement)."""


@dataclass(frozen=True, slots=True)
class ShowLocks:
    """``SHOW LOCKS [t [PARTITION (…)] | DATABASE|SCHEMA d] [EXTENDED]``.

    Without a table and a database all locks are shown. ``extended`` changes nothing, as in Hive
    with transactions.
    """

    name: Name | None = None
    partition: tuple[PartitionItem, ...] = ()
    database: Name | None = None
    extended: bool = False


@dataclass(frozen=True, slots=True)
class AbortTransactions:
    """``ABORT TRANSACTIONS n n …``."""

    txn_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StartTransaction:
    """``START TRANSACTION [mode, …]`` and ``BEGIN [TRANSACTION|WORK] [mode, …]``."""

    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """``COMMIT [WORK|TRANSACTION] [AND NO CHAIN]``."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """``ROLLBACK [WORK|TRANSACTION] [AND NO CHAIN | TO [SAVEPOINT] s]``."""

    savepoint: Name | None = None


@dataclass(frozen=True, slots=True)
class Savepoint:
    """``SAVEPOINT s``."""

    name: Name


@dataclass(frozen=True, slots=True)
class ReleaseSavepoint:
    """``RELEASE [SAVEPOINT] s``."""

    name: Name


@dataclass(frozen=True, slots=True)
class LockTable:
    """``LOCK TABLE t [PARTITION (…)] SHARED|EXCLUSIVE``. ``span`` spans the whole statement."""

    name: Name
    partition: tuple[PartitionItem, ...]
    exclusive: bool
    span: Span


@dataclass(frozen=True, slots=True)
class LockDatabase:
    """``LOCK DATABASE|SCHEMA d SHARED|EXCLUSIVE``."""

    name: Name
    exclusive: bool


@dataclass(frozen=True, slots=True)
class UnlockTable:
    """``UNLOCK TABLE t [PARTITION (…)]``. ``span`` spans the whole statement."""

    name: Name
    partition: tuple[PartitionItem, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class UnlockDatabase:
    """``UNLOCK DATABASE|SCHEMA d``."""

    name: Name


@dataclass(frozen=True, slots=True)
class SetOption:
    """``SET name [= value]`` of a setting of acidsql. ``span`` spans name and value.

    ``value`` is None in ``SET name``, which shows the setting.
    """

    key: str
    value: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class ResetOption:
    """``RESET name`` of a setting of acidsql."""

    key: str
