"""What acidsql asks of a metastore: Protocols for tables, for transactions, and (in
``compaction_queue``) for compactions.

Every implementation runs the same contract suite (``tests/metastore/contract.py``). Each method
says in one word how it may be retried, as Hive's ``TxnStore`` does with ``@RetrySemantics``:

* *read-only*: changes nothing;
* *idempotent*: calling it again gives the same state and answer;
* *cannot-retry*: a lost reply leaves the caller not knowing whether it happened.

Names of databases and tables are lower case. All methods raise ``MetastoreError`` where the
store cannot be reached.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from acidsql.acid.table import Column, Partition, Table, TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.metastore.catalog_history import CatalogHistory
from acidsql.metastore.compaction_queue import Compacted, CompactionQueue


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


class TxnState(Enum):
    """The value is the letter in TXNS.TXN_STATE."""

    OPEN = "o"
    ABORTED = "a"
    COMMITTED = "c"


class TxnType(Enum):
    """Hive 4's TXN_TYPE numbers."""

    DEFAULT = 0
    READ_ONLY = 2
    COMPACTION = 3


@dataclass(frozen=True, slots=True)
class LockComponent:
    """One thing to lock: a database (table None), a table (partition None) or a partition.

    Attributes:
        operation: What the transaction will do there; INSERT, UPDATE, DELETE and OVERWRITE are
            recorded in TXN_COMPONENTS, the others are not.
    """

    lock_type: LockType
    database: str
    table: str | None = None
    partition: str | None = None
    operation: Operation = Operation.NO_TXN


@dataclass(frozen=True, slots=True)
class LockInfo:
    """One row of SHOW LOCKS; times in milliseconds since the epoch by the store's clock."""

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


@dataclass(frozen=True, slots=True)
class LockResponse:
    """The answer to ``lock`` and ``check_lock``; ``blocked_by`` is what stands in the way."""

    lock_id: int
    state: LockState
    blocked_by: LockInfo | None = None


@dataclass(frozen=True, slots=True)
class WriteConflict:
    """A committed change that a transaction's snapshot does not see, to what it changes itself.

    Attributes:
        txn_id: The transaction that committed first.
        table: What both changed.
        partition: Its name, ``p1=a/p2=1``; None: the whole table, or an unpartitioned one.
        write_id: The winner's in that table; None if it has none.
        by_row: Both only updated or deleted rows there, so that their delete events tell
            whether they met at all.
        user: The winner's, as are the next two.
        host: Where it ran.
        agent_info: Its statement.
    """

    txn_id: int
    table: TableName
    partition: str | None
    write_id: int | None
    by_row: bool
    user: str
    host: str
    agent_info: str


@dataclass(frozen=True, slots=True)
class TxnInfo:
    """One row of SHOW TRANSACTIONS; times in milliseconds since the epoch, store's clock."""

    txn_id: int
    state: TxnState
    started_ms: int
    last_heartbeat_ms: int
    user: str
    host: str
    agent_info: str = ""
    meta_info: str = ""


@dataclass(frozen=True, slots=True)
class Database:
    """A database and the directory its tables lie in."""

    name: str
    location: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class PendingCleanup:
    """A directory of a dropped table that is still to be deleted (COMPACTION_QUEUE, state r)."""

    id: int
    table: TableName
    location: str


class Catalog(Protocol):
    """Databases, tables, partitions.

    A method that changes a table takes the transaction that holds the table's lock (``txn_id``),
    and in the same step makes sure that it is open still: a session that slept until others took
    its lock changes nothing (TxnAbortedError, NoSuchTxnError). None: nobody else is there.
    """

    def databases(self) -> list[Database]:
        """All databases, by name. *Read-only.*"""

    def get_database(self, name: str) -> Database | None:
        """One database, or None. *Read-only.*"""

    def create_database(self, database: Database) -> None:
        """Add it. *Cannot-retry.* Raises CatalogError SCHEMA_ALREADY_EXISTS (42P06)."""

    def drop_database(
        self, name: str, *, cascade: bool = False, txn_id: int | None = None
    ) -> list[PendingCleanup]:
        """Remove an empty one, or with ``cascade`` all of its tables too, in one step.
        *Cannot-retry.* Raises CatalogError SCHEMA_NOT_FOUND (42704) or SCHEMA_NOT_EMPTY (2BP01)."""

    def tables(self, database: str) -> list[str]:
        """Names of a database's tables, in order. *Read-only.*"""

    def get_table(self, name: TableName) -> Table | None:
        """One table, or None. *Read-only.*"""

    def create_table(
        self, table: Table, *, first_write_id: int = 1, txn_id: int | None = None
    ) -> None:
        """Add it. *Cannot-retry.*

        Write ids go on above those of a dropped table of the same name, and above
        ``first_write_id - 1``. Raises CatalogError TABLE_OR_VIEW_ALREADY_EXISTS (42P07),
        SCHEMA_NOT_FOUND (42704), or LOCATION_ALREADY_EXISTS (42710) where another table, or one
        whose directory is not cleaned up yet, has the same location.
        """

    def drop_table(self, name: TableName, *, txn_id: int | None = None) -> PendingCleanup:
        """Remove it, its partitions and queue its directory for deletion, in one step.
        *Cannot-retry.* Its write ids are remembered: those of a namesake begin above them.
        Raises CatalogError TABLE_OR_VIEW_NOT_FOUND (42P01)."""

    def rename_table(
        self, name: TableName, new_name: TableName, *, txn_id: int | None = None
    ) -> None:
        """Change the name everywhere, transactions' rows included; the directory stays.
        *Cannot-retry.* Raises as ``drop_table`` and ``create_table``."""

    def alter_table(
        self,
        name: TableName,
        *,
        columns: Sequence[Column] | None = None,
        bucket_columns: Sequence[str] | None = None,
        add_columns: Sequence[Column] = (),
        set_properties: Mapping[str, str] | None = None,
        unset_properties: Sequence[str] = (),
        txn_id: int | None = None,
    ) -> None:
        """Put data columns, and names of bucketing columns, in the place of those that are there;
        append columns; set properties, and forget properties: all in one step. *Cannot-retry.*
        Raises CatalogError if the table is missing, or would have a column twice
        (COLUMN_ALREADY_EXISTS, 42711)."""

    def partitions(self, name: TableName) -> list[Partition]:
        """All partitions, by values. *Read-only.*"""

    def pending_cleanups(self) -> list[PendingCleanup]:
        """Directories of dropped tables that are still to be deleted. *Read-only.*"""

    def queue_cleanup(
        self, name: TableName, location: str, *, txn_id: int | None = None
    ) -> PendingCleanup:
        """Queue the directory of a table that is only to be made, so that nothing is left if it
        never is (``commit_txn`` with ``cleaned``). *Cannot-retry.* Raises as ``create_table``."""

    def mark_cleaned(self, cleanup_id: int) -> None:
        """Take one from the queue. *Idempotent.*"""


class TxnStore(CatalogHistory, Protocol):
    """Transactions, locks, write ids: what Hive's ``TxnStore`` keeps."""

    def open_txn(
        self,
        *,
        user: str,
        host: str,
        agent_info: str = "",
        txn_type: TxnType = TxnType.DEFAULT,
        timeout_ms: int | None = None,
        max_open_txns: int | None = None,
    ) -> int:
        """Open one and return its number. *Cannot-retry.* It is dead after ``timeout_ms``
        milliseconds without a heartbeat; None: after what ``abort_timed_out`` is given. Raises
        TxnError TOO_MANY_OPEN_TXNS (53400) where ``max_open_txns`` are open already."""

    def heartbeat(self, txn_id: int) -> None:
        """Say that it is alive. *Idempotent.* Raises TxnAbortedError, NoSuchTxnError."""

    def lock(
        self, txn_id: int, components: Sequence[LockComponent], *, agent_info: str | None = None
    ) -> LockResponse:
        """Enqueue all components and try to acquire them, all or none. *Cannot-retry.*

        ``agent_info`` replaces what the transaction was opened with: it is the statement that
        others see who wait for this lock, or lose to this transaction.

        Compatibility as in Hive 4 (only earlier locks of other transactions block, waiting ones
        included). INSERT, UPDATE, DELETE and OVERWRITE components are recorded in
        TXN_COMPONENTS. Raises TxnAbortedError, NoSuchTxnError.
        """

    def check_lock(self, txn_id: int, lock_id: int) -> LockResponse:
        """Heartbeat, and try again to acquire a waiting lock. *Idempotent.*

        Where transactions wait for each other in a circle, the youngest of them is aborted: if it
        is this one, TxnAbortedError says so. Raises as ``lock``; TxnError NO_SUCH_LOCK if the lock
        is gone.
        """

    def unlock(self, txn_id: int, lock_id: int) -> None:
        """Give up a lock that is still waiting; one that is gone is passed over. *Idempotent.*
        Raises TxnError TXN_OPEN for an acquired one: it is held to the transaction's end."""

    def restore_components(self, txn_id: int, components: Sequence[LockComponent]) -> None:
        """Let TXN_COMPONENTS of a transaction be what these record, no more and no less: the rest
        belonged to statements that were undone. Its locks stay. *Idempotent.* Raises
        TxnAbortedError, NoSuchTxnError."""

    def write_conflicts(
        self,
        txn_id: int,
        snapshot: ValidTxnList,
        components: Sequence[LockComponent] | None = None,
    ) -> list[WriteConflict]:
        """What others committed, unseen by the snapshot, to what these components change; None:
        to what the transaction has recorded. By number. *Read-only.* The rules are in
        ``conflict_rules``."""

    def allocate_write_id(self, txn_id: int, table: TableName) -> int:
        """The transaction's write id in a table: one for each table. *Idempotent.* The write id
        is also filled into the transaction's TXN_COMPONENTS rows of that table. Raises
        TxnAbortedError, NoSuchTxnError."""

    def valid_txns(self, txn_id: int = 0) -> ValidTxnList:
        """A snapshot: which transactions are committed now. *Read-only.* The transaction's own
        number is left out of the exceptions."""

    def valid_write_ids(
        self, valid_txns: ValidTxnList, tables: Sequence[TableName]
    ) -> dict[TableName, ValidWriteIdList]:
        """The snapshot's write ids of each table. *Read-only.*"""

    def commit_txn(
        self,
        txn_id: int,
        *,
        snapshot: ValidTxnList | None = None,
        resolved: Collection[int] = (),
        add_partitions: Mapping[TableName, Sequence[Partition]] | None = None,
        drop_partitions: Mapping[TableName, Sequence[tuple[str | None, ...]]] | None = None,
        create_table: Table | None = None,
        first_write_id: int = 1,
        cleaned: int | None = None,
        compacted: Compacted | None = None,
    ) -> None:
        """Commit, releasing its locks, in one step (I12). *Idempotent* for a transaction that
        wrote.

        First committer wins: with a ``snapshot`` it raises WriteConflictError where
        ``write_conflicts`` finds a transaction that is not among ``resolved`` (those that the
        caller has compared row by row); the transaction is still open then.

        ``add_partitions`` are those that were written to: they become known to the catalog in
        the same step (those already known are passed over), and a table's components that name no
        partition are narrowed to them. ``drop_partitions`` become unknown; ``create_table`` comes
        into being with what the transaction wrote, and the pending clean-up ``cleaned`` is taken
        from the queue. ``compacted`` becomes READY_FOR_CLEANING; if it is not this transaction's
        any more, TxnError COMPACTION_LOST (40001), and the transaction is still open. Raises
        TxnAbortedError, NoSuchTxnError, and as ``create_table`` does.
        """

    def abort_txn(self, txn_id: int, reason: str = "") -> None:
        """Abort, releasing its locks. *Idempotent*: an aborted one stays so. Raises
        NoSuchTxnError for one that is committed or was never opened."""

    def txn_state(self, txn_id: int) -> TxnState | None:
        """What became of a transaction; None if the store does not know it (any more: see
        ``house_keep``). *Read-only.*"""

    def show_txns(self) -> list[TxnInfo]:
        """Open and aborted transactions, by number. *Read-only.*"""

    def show_locks(self) -> list[LockInfo]:
        """All locks: acquired before waiting, then by number. *Read-only.*"""

    def abort_timed_out(self, timeout_ms: int) -> list[int]:
        """Abort open transactions whose last heartbeat is older, by the store's clock, than the
        time-out they were opened with (``timeout_ms`` if with none); returns their numbers.
        *Idempotent.*"""

    def house_keep(self, timeout_ms: int, interval_ms: int, retention_ms: int) -> bool:
        """What Hive's AcidHouseKeeper does: abort the timed out (as ``abort_timed_out``), forget
        what no open transaction can ask for any more. *Idempotent.*

        Forgotten are WRITE_SET and TXN_TO_WRITE_ID rows that every open transaction sees as
        committed, and rows of ended transactions that are older than ``retention_ms`` and have no
        data that anybody must hide. Returns False, having done nothing, if somebody has done it
        less than ``interval_ms`` ago.
        """


class Metastore(Catalog, TxnStore, CompactionQueue, Protocol):
    """All of it, and how to let go of it."""

    def close(self) -> None:
        """Release connections. *Idempotent.*"""
