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
from acidsql.metastore.hive.notifications import LogReader
from acidsql.metastore.interface import LockComponent, LockType, Operation, RowChange, TxnType
from acidsql.metastore.lock_rules import strength

_EXCLUDING = (LockType.EXCL_WRITE, LockType.EXCLUSIVE)


@dataclass(slots=True)
class OwnTxn:
    """An open transaction of this session.

    Attributes:
        id: Its number, with which it writes.
        user: Its user.
        host: Its host.
        agent_info: Its statement.
        works_for: The run of a stream that it works for, in the words of ``locks``; or "".
        type: Its type.
        asked: The components of all locks that it has asked for, without undone statements.
        held: The components of the locks that were granted.
        waiting: The components of the locks that were not granted yet, by the lock's number.
        late: Those that it asked for after it had taken its snapshot.
        looked: It has taken its snapshot.
        several: It may have several statements.
        write_ids: Its write id in each table.
        recorded: What the server knows that it changes.
        touched: The partitions that it changes, by table and operation.
        told: Those of them that the server knows.
        counted: What was told the server about numbers of rows; None: perhaps that was told.
        counts_locked: The tables whose numbers of rows it has locked (see ``statistics``).
        places: Where each table lies, at the last look.
        log: What it has read of the server's notification log; None: it does not read it.
        holder: The number that holds its locks: the first one (see ``renewals``).
        before: What had committed before it got its number; None: that does not matter.
        seen: What each table was, and which partitions it had, when the transaction first asked
            for changes of the catalog. Not used if the server keeps a log.
    """

    id: int
    user: str
    host: str
    agent_info: str = ""
    works_for: str = ""
    type: TxnType = TxnType.DEFAULT
    asked: list[LockComponent] = field(default_factory=list)
    held: list[LockComponent] = field(default_factory=list)
    waiting: dict[int, list[LockComponent]] = field(default_factory=dict)
    late: list[LockComponent] = field(default_factory=list)
    looked: bool = False
    several: bool = False
    write_ids: dict[TableName, int] = field(default_factory=dict)
    recorded: set[tuple[TableName, Operation]] = field(default_factory=set)
    touched: dict[tuple[TableName, Operation], set[str]] = field(default_factory=dict)
    told: dict[tuple[TableName, Operation], set[str]] = field(default_factory=dict)
    counted: dict[TableName, Mapping[str, RowChange] | None] = field(default_factory=dict)
    counts_locked: set[TableName] = field(default_factory=set)
    places: dict[TableName, str] = field(default_factory=dict)
    log: LogReader | None = None
    holder: int = 0
    before: ValidTxnList | None = None
    seen: dict[TableName, tuple[object, frozenset[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.holder = self.holder or self.id

    def ask(self, components: Iterable[LockComponent]) -> None:
        """Note the components of a lock."""
        wanted = list(components)
        self.asked += wanted
        if self.looked:
            self.late += wanted

    def uncovered(self, components: Iterable[LockComponent]) -> list[LockComponent]:
        """Those components that no granted lock covers.

        A second request for a lock that is held would wait for others that wait for the first.
        """
        return [one for one in components if not any(_covers(held, one) for held in self.held)]

    @property
    def numbers(self) -> list[int]:
        """All its numbers, the one that holds the locks first."""
        return [self.holder] if self.holder == self.id else [self.holder, self.id]

    def must_look_again(self, lock_id: int) -> bool:
        """Whether Hive 3 may have granted a lock too early (see ``hive3``)."""
        return bool(self.held) or any(
            one.lock_type is LockType.EXCLUSIVE for one in self.waiting.get(lock_id, ())
        )

    def grant(self, lock_id: int) -> None:
        """Note that a lock was granted."""
        self.held += self.waiting.pop(lock_id, [])

    def look(self) -> None:
        """Note that the snapshot is taken: it sees what was committed before the locks so far."""
        self.looked, self.late = True, []

    def keep(self, components: Iterable[LockComponent]) -> None:
        """Forget the components of undone statements."""
        self.asked = list(components)

    def operations(self, table: TableName) -> list[Operation]:
        """How the transaction changes a table that it has a write id for. CREATE TABLE … AS SELECT
        locks the new table for no operation, and inserts."""
        asked = dict.fromkeys(one.operation for one in self.asked if _is_of(one, table))
        return [one for one in asked if one in RECORDED] or [Operation.INSERT]

    def late_operations(self, table: TableName) -> set[Operation]:
        """Those that the snapshot does not protect, because their lock came after it."""
        return {one.operation for one in self.late if _is_of(one, table)}.intersection(RECORDED)

    def shares(self, table: TableName) -> bool:
        """Whether some lock with which it changes the table lets others change it, too."""
        return any(
            _is_of(one, table) and one.operation in RECORDED and one.lock_type not in _EXCLUDING
            for one in self.asked
        )

    def partitions(self, table: TableName) -> set[str]:
        """The partitions that it changes."""
        return {name for (one, _), names in self.touched.items() if one == table for name in names}

    def has_told(self, table: TableName) -> bool:
        """Whether the server knows partitions of the table that it changes."""
        return any(names for (one, _), names in self.told.items() if one == table)

    @property
    def excludes(self) -> bool:
        """Whether no other transaction could change the rows that this one updates or deletes. An
        insert changes no row that was there."""
        return all(
            one.lock_type in _EXCLUDING
            for one in self.asked
            if one.operation in RECORDED and one.operation is not Operation.INSERT
        )


def _is_of(component: LockComponent, table: TableName) -> bool:
    return (component.database, component.table) == (table.database, table.name)


def _covers(held: LockComponent, wanted: LockComponent) -> bool:
    return (
        (held.database, held.table) == (wanted.database, wanted.table)
        and held.partition in (None, wanted.partition)
        and strength(held.lock_type) >= strength(wanted.lock_type)
    )
