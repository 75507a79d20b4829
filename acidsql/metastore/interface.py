"""The metastore's Protocol for transactions, and the Protocol of the whole metastore.

``catalog`` has tables, ``compaction_queue`` has compactions, ``locks`` has the values of locks.
This module also exports the classes of ``catalog`` and ``locks``.

Every implementation runs the same contract suite (``tests/metastore/contract.py``). Each method
says in one word how it may be retried, as Hive's ``TxnStore`` does with ``@RetrySemantics``:

* *read-only*: the method changes nothing.
* *idempotent*: a repeated call gives the same state and answer.
* *cannot-retry*: if the reply is lost, the caller does not know whether the change happened.

Names of databases and tables are lower case. All methods raise ``MetastoreError`` if the store
cannot be reached.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from acidsql.acid.table import Column, Partition, Table, TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.metastore.abilities import Abilities
from acidsql.metastore.catalog import Catalog as Catalog
from acidsql.metastore.catalog import Database as Database
from acidsql.metastore.catalog_history import CatalogHistory
from acidsql.metastore.compaction_queue import Compacted, CompactionQueue
from acidsql.metastore.locks import LockComponent as LockComponent
from acidsql.metastore.locks import LockInfo as LockInfo
from acidsql.metastore.locks import LockResponse as LockResponse
from acidsql.metastore.locks import LockState as LockState
from acidsql.metastore.locks import LockType as LockType
from acidsql.metastore.locks import Operation as Operation
from acidsql.metastore.streams import Batch, NextBatch, StreamLedger
from acidsql.metastore.versions import Change, VersionLog


@dataclass(frozen=True, slots=True)
class RowChange:
    """The change of the rows of a partition, or of an unpartitioned table, by a transaction.

    Attributes:
        rows: How many rows more there are; None: not known.
        is_all: There are no other rows: the transaction has overwritten them.
        directories: The directories that have the events of the change.
    """

    rows: int | None
    is_all: bool = False
    directories: tuple[str, ...] = ()

    def followed_by(self, later: RowChange) -> RowChange:
        """Return one change that stands for this one and then a later one of the same transaction.
        Its directories are those of both. If the later change overwrites (``is_all``), it has the
        later number of rows, otherwise the sum, or None if either is. It overwrites if either does.
        """
        directories = (*self.directories, *later.directories)
        if later.is_all:
            return replace(later, directories=directories)
        is_known = self.rows is not None and later.rows is not None
        rows = (self.rows or 0) + (later.rows or 0) if is_known else None
        return RowChange(rows, self.is_all, directories)

    def rows_after(self, before: int | None) -> int | None:
        """Return the number of rows after this change, if there were ``before`` rows. None in both
        means not known. The answer is also None if the number would be negative. An overwriting
        change (``is_all``) does not need ``before``."""
        if self.is_all or self.rows is None:
            return self.rows
        after = None if before is None else before + self.rows
        return None if after is None or after < 0 else after

    @property
    def reverted(self) -> RowChange:
        """The change that undoes this one: as many rows less, without directories. Its number of
        rows is None if this one's is not known, or this one overwrites."""
        return RowChange(None if self.is_all or self.rows is None else -self.rows)


# By table, then by the partition's name, "" if the table is unpartitioned.
RowChanges = Mapping[TableName, Mapping[str, RowChange]]


class TxnState(Enum):
    """The value is the letter in TXNS.TXN_STATE."""

    OPEN = "o"
    ABORTED = "a"
    COMMITTED = "c"


class TxnType(Enum):
    """Hive 4's TXN_TYPE numbers, and one of ours: a SESSION holds the locks that a session keeps
    beyond its transactions. It neither reads nor writes, so no snapshot, history or cleaner asks
    for it."""

    DEFAULT = 0
    READ_ONLY = 2
    COMPACTION = 3
    SESSION = 100


@dataclass(frozen=True, slots=True)
class WriteConflict:
    """A committed change that conflicts with a change of a transaction whose snapshot is older.

    Attributes:
        txn_id: The number of the transaction that committed first, the winner. None: the metastore
            does not tell; then user, host and statement are empty.
        table: The table that both changed.
        partition: The partition's name, ``p1=a/p2=1``. None: the whole table, or an
            unpartitioned table.
        write_id: The winner's write id in that table; None if it has none.
        by_row: Both only updated or deleted rows there, so a comparison of their delete events
            tells whether they changed a common row.
        user: The winner's user.
        host: The winner's host.
        agent_info: The winner's statement.
    """

    txn_id: int | None
    table: TableName
    partition: str | None
    write_id: int | None
    by_row: bool
    user: str = ""
    host: str = ""
    agent_info: str = ""


@dataclass(frozen=True, slots=True)
class TxnInfo:
    """One row of SHOW TRANSACTIONS. Times are as in ``LockInfo``.

    Attributes:
        is_session: It is a SESSION (see ``TxnType``).
    """

    txn_id: int
    state: TxnState
    started_ms: int
    last_heartbeat_ms: int
    user: str
    host: str
    agent_info: str = ""
    meta_info: str = ""
    is_session: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The changes in one step with the COMMIT of a transaction.

    Attributes:
        snapshot: The transaction's snapshot. First committer wins: a change of others that the
            snapshot does not see may be a conflict. None: COMMIT looks for no conflicts.
        resolved_txns: The numbers of transactions that are no conflicts, because the caller has
            compared their rows with the transaction's own rows.
        added_partitions: The partitions that the transaction wrote to. The catalog learns them
            (known ones are skipped), and components that name no partition are narrowed to them.
        dropped_partitions: The values of the partitions that the catalog forgets.
        created_table: The table that is made; None: no table.
        is_replacement: A table with the name of ``created_table`` is dropped first. See
            ``Abilities.replaces_tables``.
        first_write_id: The first write id of ``created_table``, as in ``Catalog.create_table``.
        cleanup_id: The number of the pending clean-up that leaves the queue, because its directory
            becomes the directory of ``created_table``. None: there is none.
        compacted: The compaction that becomes READY_FOR_CLEANING. None: the transaction is no
            compaction.
        row_changes: The changes of the numbers of rows, for metastores that keep statistics and
            notifications for others.
        batch: The batch that the ledger of streams learns. None: no batch.
        table_changes: The changes that the versions of the tables learn, in the order of the
            statements.
        new_columns: The columns that tables get instead of their data columns. The transaction has
            an EXCLUSIVE lock on these tables. See ``Abilities.alters_in_commit``.
    """

    snapshot: ValidTxnList | None = None
    resolved_txns: Collection[int] = ()
    added_partitions: Mapping[TableName, Sequence[Partition]] = field(default_factory=dict)
    dropped_partitions: Mapping[TableName, Sequence[tuple[str | None, ...]]] = field(
        default_factory=dict
    )
    created_table: Table | None = None
    is_replacement: bool = False
    first_write_id: int = 1
    cleanup_id: int | None = None
    compacted: Compacted | None = None
    row_changes: RowChanges = field(default_factory=dict)
    batch: NextBatch | None = None
    table_changes: Sequence[Change] = ()
    new_columns: Mapping[TableName, Sequence[Column]] = field(default_factory=dict)


PLAIN_COMMIT = Commit()  # nothing else changes, and nobody looks for conflicts


class TxnStore(CatalogHistory, Protocol):
    """Transactions, locks and write ids, as in Hive's ``TxnStore``."""

    @property
    def abilities(self) -> Abilities:
        """The abilities of this metastore."""

    def open_txn(
        self,
        *,
        user: str,
        host: str,
        agent_info: str = "",
        txn_type: TxnType = TxnType.DEFAULT,
        timeout_ms: int | None = None,
        max_open_txns: int | None = None,
        batch: Batch | None = None,
    ) -> int:
        """Open a transaction and return its number. *Cannot-retry.* The transaction times out
        after ``timeout_ms`` without a heartbeat; None: after the time that ``abort_timed_out`` is
        given. Raises TxnError TOO_MANY_OPEN_TXNS (53400) if ``max_open_txns`` are open already. A
        metastore that has limits of its own may ignore both. ``batch``: the batch of a stream that
        it works for, see ``end_other_runs``."""

    def renew(self, txn_id: int) -> int:
        """Return the number with which a transaction goes on: the same, or a newer one.
        *Cannot-retry.* The caller has the locks, and takes the snapshot right after this. A
        metastore that takes each commit since a transaction was opened as a conflict gives a newer
        number, if there was such a commit; then all methods know the transaction by this number
        alone."""

    def heartbeat(self, txn_id: int) -> None:
        """Note a sign of life of a transaction. *Idempotent.* Raises TxnAbortedError,
        NoSuchTxnError."""

    def lock(
        self,
        txn_id: int,
        components: Sequence[LockComponent],
        *,
        agent_info: str | None = None,
        session: int | None = None,
    ) -> LockResponse:
        """Enqueue all components and try to acquire them, all or none. *Cannot-retry.*

        ``agent_info`` replaces the ``agent_info`` of ``open_txn``. Transactions that wait for this
        lock, or lose a conflict with this transaction, see it as the statement.

        ``session`` is the SESSION transaction of the same session. This lock passes the locks of
        that transaction as if they were its own. Who waits for the session waits for this lock, too
        (see ``lock_rules``).

        Compatibility as in Hive 4: only earlier locks of other transactions block, acquired or
        waiting. INSERT, UPDATE, DELETE and OVERWRITE components are recorded in TXN_COMPONENTS.
        Raises TxnAbortedError, NoSuchTxnError.
        """

    def check_lock(self, txn_id: int, lock_id: int) -> LockResponse:
        """Note a heartbeat, and try again to acquire a waiting lock. *Idempotent.*

        If transactions wait for each other in a circle, the youngest of them is aborted. If that
        is this transaction, TxnAbortedError says so. Raises as ``lock``, and TxnError NO_SUCH_LOCK
        if the lock is gone.
        """

    def unlock(self, txn_id: int, lock_id: int) -> None:
        """Give up a lock that still waits; a lock that is gone is no error. *Idempotent.* Raises
        TxnError TXN_OPEN for an acquired lock: a transaction holds its locks until it ends, unless
        it is a SESSION."""

    def restore_components(self, txn_id: int, components: Sequence[LockComponent]) -> None:
        """Make a transaction's rows of TXN_COMPONENTS exactly the rows of these components, because
        its other statements were undone. The transaction's locks stay. *Idempotent.* Raises
        TxnAbortedError, NoSuchTxnError."""

    def write_conflicts(
        self,
        txn_id: int,
        snapshot: ValidTxnList,
        components: Sequence[LockComponent] | None = None,
    ) -> list[WriteConflict]:
        """Return the changes that others committed, that the snapshot does not see, and that
        conflict with ``components`` (None: with all that the transaction has recorded), in the
        order of the winners' numbers. *Read-only.* ``conflict_rules`` has the rules."""

    def allocate_write_id(self, txn_id: int, table: TableName) -> int:
        """Return the transaction's write id in a table; the first call allocates the table's next
        one. *Idempotent.* The write id is also written into the transaction's TXN_COMPONENTS rows
        of that table. Raises TxnAbortedError, NoSuchTxnError, and TxnError READ_ONLY_TRANSACTION
        (25006)."""

    def record_partitions(self, txn_id: int, table: TableName, partitions: Collection[str]) -> None:
        """Note the partitions that a statement is about to write to, before its first directory is
        published. *Idempotent.* So whoever cleans up after an aborted transaction knows where.
        ``allocate_write_id`` was called before. The only partition of an unpartitioned table is "".
        A metastore that knows without being told does nothing. Raises TxnAbortedError,
        NoSuchTxnError."""

    def valid_txns(self, txn_id: int = 0) -> ValidTxnList:
        """Take a snapshot: return which transactions are committed now. *Read-only.* The
        transaction ``txn_id`` sees its own writes: its number is not among the exceptions. 0: no
        transaction asks."""

    def valid_txns_under(self, lease: int) -> ValidTxnList | None:
        """Return which transactions are committed now, as ``valid_txns`` does, if the READ_ONLY
        transaction ``lease`` is open; None if it has ended. READ_ONLY transactions may be among the
        open ones. *Read-only.*"""

    def keep_files(self, txn_id: int, tables: Sequence[TableName]) -> None:
        """Keep the cleaner, until a transaction ends, from the files of these tables that a
        snapshot needs. *Idempotent.* Call this method before the snapshot is taken: files that are
        obsolete by then may go. A metastore whose cleaner waits for every open transaction does
        nothing. Raises TxnAbortedError, NoSuchTxnError."""

    def valid_write_ids(
        self, valid_txns: ValidTxnList, tables: Sequence[TableName]
    ) -> dict[TableName, ValidWriteIdList]:
        """Return the write ids of each of these tables that a snapshot with these transactions
        sees. *Read-only.*"""

    def commit_txn(self, txn_id: int, commit: Commit = PLAIN_COMMIT) -> None:
        """Commit and release the locks, in one step (I12). *Idempotent* for a transaction that
        wrote.

        All that ``commit`` names happens in the same step. After these errors the transaction is
        still open:

        * WriteConflictError: ``write_conflicts`` finds a transaction that is not in
          ``Commit.resolved_txns``. If the error says that it has ``ended``, the transaction is not
          open.
        * TxnError COMPACTION_LOST (40001): the entry of ``Commit.compacted`` does not belong to
          this transaction any more.
        * StreamError STREAM_TAKEN_OVER: the ledger's entry has changed since the session that made
          ``Commit.batch`` looked.

        Raises also TxnAbortedError, NoSuchTxnError, and as ``create_table`` does.
        """

    def abort_txn(self, txn_id: int, reason: str = "") -> None:
        """Abort a transaction, and release its locks. *Idempotent*: an aborted transaction stays
        aborted. ``reason``: why, in words for users; not every metastore keeps it. Raises
        NoSuchTxnError if the transaction is committed or unknown."""

    def txn_state(self, txn_id: int) -> TxnState | None:
        """Return the state of a transaction; None if the store never knew the transaction, or has
        forgotten it (see ``house_keep``). *Read-only.*"""

    def show_txns(self) -> list[TxnInfo]:
        """Return the open and aborted transactions, by number; no committed ones. *Read-only.*"""

    def show_locks(self) -> list[LockInfo]:
        """Return all locks, one LockInfo for each locked object: acquired ones first, then by
        number. *Read-only.*"""

    def abort_timed_out(self, timeout_ms: int) -> list[int]:
        """Abort open transactions whose last heartbeat is too old, and return their numbers. The
        store's clock decides. The limit is the time-out of ``open_txn``, or ``timeout_ms`` if that
        was None. *Idempotent.*"""

    def house_keep(self, timeout_ms: int, interval_ms: int, retention_ms: int) -> bool:
        """Do the work of Hive's AcidHouseKeeper: abort the transactions that have timed out (as
        ``abort_timed_out``), and delete rows that no open transaction can need. *Idempotent.*

        Deleted are WRITE_SET and TXN_TO_WRITE_ID rows that every open transaction sees as
        committed, and rows of ended transactions that are older than ``retention_ms`` and have no
        data that readers must hide. Returns False, and does nothing, if the last run of any
        session is less than ``interval_ms`` ago.
        """


class Metastore(Catalog, TxnStore, CompactionQueue, StreamLedger, VersionLog, Protocol):
    """The whole metastore."""

    @property
    def kind(self) -> str:
        """What it is, for a person: the kind of database or server, and its version. The text has
        no names of hosts or files. *Read-only.*"""

    def close(self) -> None:
        """Release connections. *Idempotent.*"""
