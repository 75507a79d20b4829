"""What acidsql asks of a metastore about compactions: the queue, its history, and what needs one.

::

               compact                               no_auto_compaction, too many failures
                  │                                                  │
                  ▼                                                  ▼
      ┌────── INITIATED ──abort_compactions──► ABORTED        DID_NOT_INITIATE
      │           │  ▲
      │  take_next│  │ revoke: its worker died
      │           ▼  │
      │        WORKING ──mark_failed──► FAILED    ──mark_refused──► REFUSED (nothing to do)
      │           │
      │           │ commit_txn(compacted=…), with the compaction's transaction
      │           ▼
      │    READY_FOR_CLEANING ──mark_compaction_cleaned──► SUCCEEDED
      │           │
      └ the queue ┘                                        the rest is history

A worker has a transaction (COMPACTION) with a heartbeat from the moment it takes an entry: an entry
whose transaction has ended is nobody's, and is queued again.

Source: Hive ``CompactionTxnHandler`` (3.1), ``CompactFunction``, ``FindNextCompactFunction``,
``ReadyToCleanHandler``, ``MarkCleanedFunction``, ``PurgeCompactionHistoryFunction`` (4.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from acidsql.acid.table import TableName


class CompactionType(Enum):
    """The value is the letter in COMPACTION_QUEUE.CQ_TYPE."""

    MAJOR = "a"
    MINOR = "i"
    REBALANCE = "r"


class CompactionState(Enum):
    """The value is the letter in CQ_STATE and CC_STATE; ``shown`` what SHOW COMPACTIONS says."""

    INITIATED = "i"
    WORKING = "w"
    READY_FOR_CLEANING = "r"
    SUCCEEDED = "s"
    FAILED = "f"
    REFUSED = "c"
    DID_NOT_INITIATE = "a"
    ABORTED = "x"

    @property
    def shown(self) -> str:
        """``ready for cleaning`` and the like."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """What is to be compacted, and who asks.

    Attributes:
        table: The table.
        partition: Its name, ``p1=a/p2=1``; None: an unpartitioned table.
        type: Which compaction.
        initiator_id: ``<host>-<id>``; of a person's request ``<host>-manual``.
        properties: WITH OVERWRITE TBLPROPERTIES.
        pool: Only workers of that pool take it; None: those of none.
        buckets: CLUSTERED INTO, of a rebalance.
        order_by: ORDER BY's text, of a rebalance.
        why: What a person is told of the reason.
    """

    table: TableName
    partition: str | None
    type: CompactionType
    initiator_id: str
    properties: Mapping[str, str] = field(default_factory=dict)
    pool: str | None = None
    buckets: int | None = None
    order_by: str | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The answer to ``compact``.

    Attributes:
        id: The entry's number; that of the one which is there already, if it was not accepted.
        state: That entry's state.
        accepted: It was queued.
    """

    id: int
    state: CompactionState
    accepted: bool


@dataclass(frozen=True, slots=True)
class CompactionInfo:
    """An entry of the queue or of the history; times in milliseconds, by the store's clock.

    Attributes:
        id: Its number.
        table: What is compacted.
        partition: Its name; None of an unpartitioned table, and of a dropped table's directory.
        type: Which compaction.
        state: How far it is.
        enqueued_ms: When it was queued; None in rows of older versions.
        started_ms: When a worker took it.
        ended_ms: When it became history.
        worker_id: ``<host>-<id>`` of who has it, or had it.
        initiator_id: Who asked.
        txn_id: The worker's transaction.
        next_txn_id: The next transaction's number when it was compacted: older ones may read the
            old files.
        committed_ms: When that was.
        highest_write_id: All up to it was compacted.
        message: Why it failed, was refused or not begun; else what it was queued for, and, when
            it has run, what it read and wrote.
        pool: Whose workers take it.
        properties: WITH OVERWRITE TBLPROPERTIES.
        buckets: CLUSTERED INTO.
        order_by: ORDER BY.
        retry_retention_ms: So long after its last failure the cleaner leaves it alone.
    """

    id: int
    table: TableName
    partition: str | None
    type: CompactionType
    state: CompactionState
    enqueued_ms: int | None = None
    started_ms: int | None = None
    ended_ms: int | None = None
    worker_id: str | None = None
    initiator_id: str | None = None
    txn_id: int | None = None
    next_txn_id: int | None = None
    committed_ms: int | None = None
    highest_write_id: int | None = None
    message: str | None = None
    pool: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    buckets: int | None = None
    order_by: str | None = None
    retry_retention_ms: int = 0


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a worker has done, for ``TxnStore.commit_txn``.

    Attributes:
        id: The entry's number.
        highest_write_id: All up to it was compacted.
        message: What was read and written, for a person; it follows why it was queued.
    """

    id: int
    highest_write_id: int
    message: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that was written to since it was compacted, or that holds aborted data.

    Attributes:
        table: The table.
        partition: None: an unpartitioned table, or a change that named no partition.
        aborted_txns: How many aborted transactions have changed something there.
        oldest_abort_ms: How long ago, by the store's clock, the oldest of them began; None
            without any.
        quiet_ms: How long ago the last change was committed; None: not known.
    """

    table: TableName
    partition: str | None
    aborted_txns: int = 0
    oldest_abort_ms: int | None = None
    quiet_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HistoryRetention:
    """How many entries of each state are kept for a table or partition, and how long.

    Attributes:
        succeeded: Those, and so on.
        failed: Never fewer than are looked at to stop after failures.
        refused: Those.
        did_not_initiate: Those; entries that were aborted count with them.
        timeout_ms: After it, what failed, was refused or not begun is forgotten, if one of the
            same type, or a major one, has succeeded since.
    """

    succeeded: int = 3
    failed: int = 3
    refused: int = 3
    did_not_initiate: int = 2
    timeout_ms: int = 7 * 86_400_000


class CompactionQueue(Protocol):
    """The queue of compactions, its history, and what might need one.

    The end of a compaction that did something is ``TxnStore.commit_txn`` with ``compacted``.
    """

    def compact(self, request: CompactionRequest) -> Enqueued:
        """Queue one. *Idempotent*, as it is not accepted where the same table or partition has an
        entry INITIATED or WORKING, whatever its type; the answer is then that entry."""

    def take_next(
        self,
        txn_id: int,
        worker_id: str,
        *,
        pool: str | None = None,
        pool_timeout_ms: int | None = None,
        only: int | None = None,
    ) -> CompactionInfo | None:
        """Take the oldest INITIATED entry of the pool; None if there is none. *Cannot-retry*, but
        what was taken by a transaction that ends is queued again.

        Workers of no pool (None) also take what was queued in any pool more than
        ``pool_timeout_ms`` ago. ``only``: that entry, of whatever pool, or none. The entry becomes
        WORKING, with this worker and transaction. Raises TxnAbortedError, NoSuchTxnError.
        """

    def has_work(self, *, pool: str | None = None, pool_timeout_ms: int | None = None) -> bool:
        """Whether ``take_next`` would find one. *Read-only.*"""

    def mark_failed(self, compaction_id: int, txn_id: int, message: str) -> None:
        """Put a WORKING entry of this transaction into the history as FAILED. *Idempotent*:
        nothing happens if it is not there, or somebody else's by now."""

    def mark_refused(self, compaction_id: int, txn_id: int, message: str) -> None:
        """The same as REFUSED: there was nothing to compact. *Idempotent.*"""

    def give_back(self, compaction_id: int, txn_id: int) -> None:
        """Queue a WORKING entry of this transaction again: it was stopped. *Idempotent.*"""

    def revoke(self, worker_timeout_ms: int) -> list[int]:
        """Queue WORKING entries again whose transaction has ended, and those that were begun
        longer ago than the time-out (their transaction is aborted); their numbers. *Idempotent.*"""

    def did_not_initiate(self, request: CompactionRequest, message: str) -> None:
        """Note in the history why something was not queued. *Idempotent*: the newest entry of the
        table or partition, if it says the same, is not repeated."""

    def abort_compactions(self, ids: Sequence[int]) -> dict[int, CompactionState | None]:
        """Take INITIATED entries out of the queue; they become ABORTED. *Idempotent.*

        Returns:
            For each number the state that it was found in; None: there is no such entry.
        """

    def compactions(self) -> list[CompactionInfo]:
        """The queue and the history: the latest of start, end and commit first; then by when they
        were queued. *Read-only.*"""

    def ready_to_clean(self, retention_ms: int) -> list[CompactionInfo]:
        """READY_FOR_CLEANING entries whose old files no open transaction can read, leases
        included: all that are open began after the compaction had ended. *Read-only.*

        Left out are those that ended less than ``retention_ms`` ago, those that could not be
        cleaned less than their ``retry_retention_ms`` ago, and directories of dropped tables
        (``pending_cleanups``).
        By table, partition, and highest write id.
        """

    def mark_compaction_cleaned(self, compaction_id: int) -> None:
        """Its files are gone: SUCCEEDED. Rows of COMPLETED_TXN_COMPONENTS of its table or
        partition up to its highest write id are forgotten. *Idempotent.*"""

    def retry_cleaning_later(
        self, compaction_id: int, retention_ms: int, max_attempts: int, message: str
    ) -> None:
        """Cleaning failed: try again after ``retention_ms``, then after twice as long, and so on;
        after so many attempts it is FAILED. *Cannot-retry.*"""

    def candidates(self) -> list[Candidate]:
        """What was changed since it was compacted, or has aborted data; by name. *Read-only.*"""

    def aborted_write_ids(self, table: TableName) -> list[int]:
        """Write ids of aborted transactions that may still have data in a table, ascending.
        *Read-only.*"""

    def forget_aborted(self, table: TableName, write_ids: Sequence[int]) -> None:
        """Nothing of these aborted write ids is left in the table: forget that they changed it.
        They stay invisible. *Idempotent.*"""

    def now_ms(self) -> int:
        """The store's clock, which all these times are of. *Read-only.*"""

    def purge_compaction_history(self, keep: HistoryRetention) -> None:
        """Forget old history. *Idempotent.*"""
