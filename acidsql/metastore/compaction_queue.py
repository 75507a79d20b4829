"""The metastore's Protocol for compactions: the queue, its history, and what needs a compaction.

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
      │           │ commit_txn, with ``Commit.compacted``, of the compaction's transaction
      │           ▼
      │    READY_FOR_CLEANING ──mark_compaction_cleaned──► SUCCEEDED
      │           │
      └ the queue ┘                                        the rest is history

A worker that takes an entry has an open transaction (COMPACTION) with a heartbeat. If that
transaction has ended while the entry is WORKING, no worker has the entry, and ``revoke`` queues it
again.

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
    """The value is the letter in COMPACTION_QUEUE.CQ_TYPE. A Hive Metastore has entries of more
    types in its queue: the cleaning after an aborted transaction, the optimization of an Iceberg
    table (Hive 4.2), and perhaps what later versions add. Only Hive works on those."""

    MAJOR = "a"
    MINOR = "i"
    REBALANCE = "r"
    ABORT_TXN_CLEANUP = "c"
    SMART_OPTIMIZE = "*"
    UNKNOWN = "?"


REQUESTABLE_TYPES = (CompactionType.MAJOR, CompactionType.MINOR, CompactionType.REBALANCE)


class CompactionState(Enum):
    """The value is the letter in CQ_STATE and CC_STATE."""

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
        """The state as SHOW COMPACTIONS shows it: ``ready for cleaning`` and the like."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """A request for a compaction.

    Attributes:
        table: The table to compact.
        partition: The partition's name, ``p1=a/p2=1``. None: an unpartitioned table.
        type: The type of compaction.
        initiator_id: The requester: ``<host>-<id>``, or ``<host>-manual`` for a user's statement.
        properties: WITH OVERWRITE TBLPROPERTIES.
        pool: The pool whose workers take the entry. None: workers without a pool take it.
        buckets: CLUSTERED INTO, for a rebalance.
        order_by: The text of ORDER BY, for a rebalance.
        why: The reason, as users read it.
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
        id: The number of the new entry or, if ``accepted`` is false, of the existing entry.
        state: That entry's state.
        accepted: True if the request was queued.
    """

    id: int
    state: CompactionState
    accepted: bool


@dataclass(frozen=True, slots=True)
class CompactionInfo:
    """An entry of the queue or of the history. Times are milliseconds, by the store's clock.

    Attributes:
        id: The entry's number.
        table: The table.
        partition: The partition's name. None for an unpartitioned table, and for the directory
            of a dropped table.
        type: The type of compaction.
        state: The entry's state.
        enqueued_ms: When the request was queued; None in rows of older versions.
        started_ms: When a worker took the entry.
        ended_ms: When the entry moved into the history.
        worker_id: ``<host>-<id>`` of the worker that has, or had, the entry.
        initiator_id: The requester.
        txn_id: The worker's transaction.
        next_txn_id: The next transaction's number at the compaction's commit. Older transactions
            may read the old files.
        committed_ms: When the compaction committed.
        highest_write_id: The highest write id that was compacted.
        message: Why the compaction failed, was refused or was not begun. Otherwise why it was
            queued and, after it has run, what it read and wrote.
        pool: The pool whose workers take the entry.
        properties: WITH OVERWRITE TBLPROPERTIES.
        buckets: CLUSTERED INTO.
        order_by: ORDER BY.
        retry_retention_ms: How long after a failure the cleaner waits before it tries again.
        progress: What the worker does now (``note_progress``). Of a worker of Hive's: its job.
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
    progress: str | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """A worker's result, for ``Commit.compacted``.

    Attributes:
        id: The entry's number.
        highest_write_id: The highest write id that was compacted.
        message: What was read and written, as users read it. It is appended to the reason for
            which the compaction was queued.
    """

    id: int
    highest_write_id: int
    message: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A table or partition that changed since its last compaction, or that has aborted data.

    Attributes:
        table: The table.
        partition: The partition's name. None: an unpartitioned table, or a change that named no
            partition.
        aborted_txns: How many aborted transactions have changed something there.
        oldest_abort_ms: How many milliseconds ago, by the store's clock, the oldest of those
            transactions began. None if there are none.
        quiet_ms: How many milliseconds ago the last change was committed. None: not known.
    """

    table: TableName
    partition: str | None
    aborted_txns: int = 0
    oldest_abort_ms: int | None = None
    quiet_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HistoryRetention:
    """The number of entries to keep in the history of each table or partition, and for how long.

    Attributes:
        succeeded: How many entries that succeeded.
        failed: How many entries that failed; at least as many as the initiator looks at to decide
            whether compactions fail too often.
        refused: How many entries that were refused.
        did_not_initiate: How many entries that were not begun or were aborted.
        timeout_ms: Entries that failed, were refused or were not begun are deleted after this
            time, if a compaction of the same type, or a major one, has succeeded since.
    """

    succeeded: int = 3
    failed: int = 3
    refused: int = 3
    did_not_initiate: int = 2
    timeout_ms: int = 7 * 86_400_000


class CompactionQueue(Protocol):
    """The queue of compactions, its history, and what might need a compaction.

    A compaction that wrote something ends with ``TxnStore.commit_txn`` and ``Commit.compacted``.
    """

    def compact(self, request: CompactionRequest) -> Enqueued:
        """Queue a request for a compaction; nothing is compacted here. *Idempotent*: if the same
        table or partition has an INITIATED or WORKING entry of any type, the request is not
        accepted, and the answer is that entry."""

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
        ``revoke`` queues an entry again whose transaction has ended.

        Workers without a pool (None) also take entries that were queued in any pool more than
        ``pool_timeout_ms`` ago. ``only`` names the only entry to take, of whatever pool; a Hive
        Metastore may give an older one of that pool, which must be done first. The entry becomes
        WORKING, with this worker and transaction. Raises TxnAbortedError, NoSuchTxnError.
        """

    def begin_compaction(self, compaction_id: int, txn_id: int, highest_write_id: int) -> None:
        """Note the highest write id that the worker is going to compact, before the worker writes
        anything. *Idempotent.* A metastore that learns it at COMMIT does nothing."""

    def note_progress(self, compaction_id: int, txn_id: int, progress: str) -> None:
        """Note what the worker does now, in at most 32 characters; the note goes when the entry is
        not WORKING any more. *Idempotent*: nothing happens if the entry is gone or belongs to
        another transaction now."""

    def has_work(self, *, pool: str | None = None, pool_timeout_ms: int | None = None) -> bool:
        """Whether ``take_next`` with this pool and time-out would find an entry. *Read-only.*"""

    def mark_failed(self, compaction_id: int, txn_id: int, message: str) -> None:
        """Move a WORKING entry of this transaction into the history as FAILED. *Idempotent*:
        nothing happens if the entry is gone or belongs to another transaction now."""

    def mark_refused(self, compaction_id: int, txn_id: int, message: str) -> None:
        """Move a WORKING entry of this transaction into the history as REFUSED: there was nothing
        to compact. *Idempotent*: nothing happens if the entry is gone or belongs to another
        transaction now."""

    def queue_again(self, compaction_id: int, txn_id: int) -> None:
        """Queue a WORKING entry of this transaction again, because its worker was stopped; a
        metastore that cannot do so marks it as REFUSED, and queues a copy under a new number.
        Nothing happens if the entry is gone or belongs to another transaction now. The transaction
        is not ended. *Idempotent.*"""

    def revoke(self, worker_timeout_ms: int) -> list[int]:
        """Queue again the WORKING entries whose transaction has ended, and those that were begun
        longer ago than the time-out; abort the transactions of the latter. Returns the numbers of
        all of these entries. *Idempotent.*"""

    def did_not_initiate(self, request: CompactionRequest, message: str) -> None:
        """Add a DID_NOT_INITIATE entry to the history: it says why a compaction was not queued.
        *Idempotent*: nothing is added if the newest entry of the table or partition says the
        same."""

    def abort_compactions(self, ids: Sequence[int]) -> dict[int, CompactionState | None]:
        """Take INITIATED entries out of the queue; they become ABORTED. *Idempotent.*

        Returns:
            The state of each entry before the call, by number; None if there is no such entry.
        """

    def compactions(self) -> list[CompactionInfo]:
        """Return all entries of the queue and the history, the most recent start, end or commit
        first, then in the order in which the entries were queued. *Read-only.*"""

    def ready_to_clean(self, retention_ms: int) -> list[CompactionInfo]:
        """Return the READY_FOR_CLEANING entries whose old files no open transaction, and no lease,
        can read: every open transaction began after the compaction had ended. *Read-only.*

        Left out are entries that ended less than ``retention_ms`` ago, entries whose last cleaning
        failed less than their ``retry_retention_ms`` ago, and directories of dropped tables
        (``pending_cleanups``). The order is by table, partition, and highest write id.
        """

    def mark_compaction_cleaned(self, compaction_id: int) -> None:
        """Move an entry whose old files the caller has deleted into the history as SUCCEEDED, and
        delete the rows of COMPLETED_TXN_COMPONENTS of its table or partition, up to its highest
        write id. *Idempotent.*"""

    def retry_cleaning_later(
        self, compaction_id: int, retention_ms: int, max_attempts: int, message: str
    ) -> None:
        """Note that cleaning failed. The cleaner tries again after ``retention_ms``, then after
        twice that time, and so on. After ``max_attempts`` failures the entry is FAILED.
        *Cannot-retry.*"""

    def candidates(self) -> list[Candidate]:
        """Return the tables and partitions that changed since their last compaction, or that have
        aborted data, sorted by name. *Read-only.*"""

    def aborted_write_ids(self, table: TableName) -> list[int]:
        """Return the write ids of aborted transactions that may still have data in a table,
        ascending. *Read-only.*"""

    def forget_aborted(self, table: TableName, write_ids: Sequence[int]) -> None:
        """Forget that these aborted write ids changed the table, because no file of them is left.
        The write ids stay invisible. *Idempotent.*"""

    def now_ms(self) -> int:
        """Return the time of the store's clock, in milliseconds since the epoch. All times of this
        class are measured by it. *Read-only.*"""

    def purge_compaction_history(self, keep: HistoryRetention) -> None:
        """Delete the entries of the history that ``keep`` does not keep. *Idempotent.*"""
