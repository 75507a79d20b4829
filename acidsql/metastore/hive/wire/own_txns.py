"""What a session must remember of its own open transactions, because the server does not tell.

acidsql locks first, then looks, then allocates a write id. The server notes what a transaction
changes when a lock is requested, with the write id that the transaction has *then*. So locks are
requested as if the transaction only read (``SELECT``), and what it changes is told to the server
after the write id is allocated, right before the first directory is published. The partitions are
told at COMMIT.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList
from acidsql.metastore.conflict_rules import RECORDED
from acidsql.metastore.hive.wire.notifications import LogReader
from acidsql.metastore.interface import LockComponent, LockType, Operation, RowChange, TxnType
from acidsql.metastore.lock_rules import strength

_EXCLUDING = (LockType.EXCL_WRITE, LockType.EXCLUSIVE)


@dataclass(slots=True)
class OwnTxn:
    """An open transaction of this session.

    Attributes:
        id: The transaction's number, with which it writes.
        user: The user.
        host: The host.
        agent_info: The statement, as SHOW LOCKS shows it.
        works_for: The run of a stream that the transaction works for, in the words of ``locks``;
            or "".
        type: The type of the transaction.
        requested_locks: The components of all requested locks, without those of undone statements.
        granted_locks: The components of the granted locks.
        waiting_locks: The components of the locks that are not granted yet, by the lock's number.
        locks_after_snapshot: The components that were requested after the snapshot was taken.
        has_snapshot: The snapshot was taken.
        may_have_several_statements: The transaction is not that of a single statement.
        write_ids: The write id in each table.
        recorded_operations: The changes that the server has recorded, by table.
        changed_partitions: The changed partitions, by table and operation.
        reported_partitions: The changed partitions that the server knows, by table and operation.
        reported_row_counts: Row counts that the server has. None: a call failed, so the server may
            or may not have them.
        counts_locked: The tables whose row counts are locked (see ``statistics``).
        places: The location of each table, when it was last read.
        kept_tables: The tables whose files the server's cleaner keeps for the transaction.
        log: The reader of the server's notification log; None: the log is not read.
        holder: The number that holds the locks: the first one (see ``numbers``).
        before: What had committed before the transaction got its number; None: not needed.
        first_looks: The identity and the partitions of each table, when the transaction first asked
            for changes of the catalog. Empty if the server keeps a log.
    """

    id: int
    user: str
    host: str
    agent_info: str = ""
    works_for: str = ""
    type: TxnType = TxnType.DEFAULT
    requested_locks: list[LockComponent] = field(default_factory=list)
    granted_locks: list[LockComponent] = field(default_factory=list)
    waiting_locks: dict[int, list[LockComponent]] = field(default_factory=dict)
    locks_after_snapshot: list[LockComponent] = field(default_factory=list)
    has_snapshot: bool = False
    may_have_several_statements: bool = False
    write_ids: dict[TableName, int] = field(default_factory=dict)
    recorded_operations: set[tuple[TableName, Operation]] = field(default_factory=set)
    changed_partitions: dict[tuple[TableName, Operation], set[str]] = field(default_factory=dict)
    reported_partitions: dict[tuple[TableName, Operation], set[str]] = field(default_factory=dict)
    reported_row_counts: dict[TableName, Mapping[str, RowChange] | None] = field(
        default_factory=dict
    )
    counts_locked: set[TableName] = field(default_factory=set)
    places: dict[TableName, str] = field(default_factory=dict)
    kept_tables: set[TableName] = field(default_factory=set)
    log: LogReader | None = None
    holder: int = 0
    before: ValidTxnList | None = None
    first_looks: dict[TableName, tuple[object, frozenset[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.holder = self.holder or self.id

    def note_components(self, components: Iterable[LockComponent]) -> None:
        """Note the components of a requested lock, and whether it came after the snapshot."""
        requested = list(components)
        self.requested_locks += requested
        if self.has_snapshot:
            self.locks_after_snapshot += requested

    def uncovered_components(self, components: Iterable[LockComponent]) -> list[LockComponent]:
        """Return the components that no granted lock covers.

        A second request for a lock that is held would wait for others that wait for the first.
        """
        return [
            component
            for component in components
            if not any(_covers(held, component) for held in self.granted_locks)
        ]

    @property
    def numbers(self) -> list[int]:
        """All its numbers, the one that holds the locks first."""
        return [self.holder] if self.holder == self.id else [self.holder, self.id]

    def must_look_again(self, lock_id: int) -> bool:
        """Whether Hive 3's answer for a requested lock cannot be trusted, so that the caller must
        compare the lock with all locks: the transaction already holds granted locks, or the
        requested lock is EXCLUSIVE."""
        return bool(self.granted_locks) or any(
            component.lock_type is LockType.EXCLUSIVE
            for component in self.waiting_locks.get(lock_id, ())
        )

    def grant(self, lock_id: int) -> None:
        """Note that a lock was granted."""
        self.granted_locks += self.waiting_locks.pop(lock_id, [])

    def note_snapshot(self) -> None:
        """Note that the snapshot is taken: it sees what was committed before the locks so far."""
        self.has_snapshot, self.locks_after_snapshot = True, []

    def keep(self, components: Iterable[LockComponent]) -> None:
        """Forget the components of undone statements."""
        self.requested_locks = list(components)

    def operations(self, table: TableName) -> list[Operation]:
        """Return how the transaction changes a table that it has a write id for, each operation
        once. INSERT if no lock tells: CREATE TABLE … AS SELECT locks the new table for no
        operation."""
        operations = dict.fromkeys(
            component.operation
            for component in self.requested_locks
            if _is_on_table(component, table)
        )
        return [operation for operation in operations if operation in RECORDED] or [
            Operation.INSERT
        ]

    def late_operations(self, table: TableName) -> set[Operation]:
        """Return the changes of a table that the snapshot does not protect, because their lock came
        after it."""
        return {
            component.operation
            for component in self.locks_after_snapshot
            if _is_on_table(component, table)
        }.intersection(RECORDED)

    def shares(self, table: TableName) -> bool:
        """Whether some lock with which the transaction changes the table lets others change it,
        too."""
        return any(
            _is_on_table(component, table)
            and component.operation in RECORDED
            and component.lock_type not in _EXCLUDING
            for component in self.requested_locks
        )

    def partitions(self, table: TableName) -> set[str]:
        """Return the names of the partitions of a table that the transaction changes."""
        return {
            name
            for (changed_table, _), names in self.changed_partitions.items()
            if changed_table == table
            for name in names
        }

    def has_reported(self, table: TableName) -> bool:
        """Whether the server knows partitions of the table that the transaction changes."""
        return any(
            names
            for (told_table, _), names in self.reported_partitions.items()
            if told_table == table
        )

    @property
    def excludes(self) -> bool:
        """Whether no other transaction could change the rows that this one updates, deletes or
        overwrites. Inserts do not count, because they change no row that was there."""
        return all(
            component.lock_type in _EXCLUDING
            for component in self.requested_locks
            if component.operation in RECORDED and component.operation is not Operation.INSERT
        )


def _is_on_table(component: LockComponent, table: TableName) -> bool:
    return (component.database, component.table) == (table.database, table.name)


def _covers(held: LockComponent, requested: LockComponent) -> bool:
    """Whether a held lock makes a requested one needless: the same table, the same or all
    partitions, as strong a type."""
    return (
        (held.database, held.table) == (requested.database, requested.table)
        and held.partition in (None, requested.partition)
        and strength(held.lock_type) >= strength(requested.lock_type)
    )
