"""Scripts of statements that run through ``Transaction``, one store call at a time. Rows are data.

To stop a script before a call, an exception leaves it. To go on, it runs again from its start with
the answers that it had. So there are no threads and no sleeping, and a state is the store's
contents and the answers of each side. Waiting for a lock is a call named ``sleep``.

A statement appends its *events* to a list. The write ids of a snapshot decide which of them it
sees, as with files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from acidsql.acid.table import Column, Table, TableName
from acidsql.acid.write_ids import ValidWriteIdList
from acidsql.errors import AcidSqlError, TransientTxnError
from acidsql.metastore.interface import LockComponent, LockType, Operation, WriteConflict
from acidsql.settings import Settings
from acidsql.statements.context.unit_of_work import Transaction
from acidsql.storage.writing.publish import PublishedWrite
from acidsql.txn import Txn
from acidsql.txn.heartbeat import Heartbeat
from acidsql.txn.locks import LockWaiter

T = TableName("default", "t")
TABLE = Table(
    T, "/nowhere/t", (Column("k", "string"), Column("n", "int")),
    partition_columns=(Column("p", "string"),),
)  # fmt: skip
Key = tuple[str, str]  # partition, key
RowId = tuple[int, int]  # write id, number
Rows = Mapping[Key, int]
SETTINGS = {
    False: Settings(),
    True: Settings.of({"acidsql.conflict.detection": "row"}),
}
NO_HEARTBEAT = Heartbeat(None, 10**9)  # type: ignore[arg-type] - it watches nobody


# ── statements ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Statement:
    """The effect of a statement on a partition.

    Attributes:
        operations: The operations that it records.
        change: (partition, name of the script, visible rows) → new values by row; None: deleted.
    """

    operations: tuple[Operation, ...]
    change: Callable[[str, str, Rows], dict[Key, int | None]]


def _of(place: str, rows: Rows, *keys: str) -> dict[Key, int]:
    """The rows of a partition, or only those with these keys."""
    return {key: n for key, n in rows.items() if key[0] == place and (not keys or key[1] in keys)}


def _plus_one(*keys: str) -> Statement:
    return Statement(
        (Operation.UPDATE,),
        lambda place, _, rows: {key: n + 1 for key, n in _of(place, rows, *keys).items()},
    )


STATEMENTS = {
    "insert": Statement((Operation.INSERT,), lambda place, who, _: {(place, who): 1}),
    "update": _plus_one(),
    "update 1": _plus_one("1"),
    "update 2": _plus_one("2"),
    "delete": Statement(
        (Operation.DELETE,),
        lambda place, _, rows: dict.fromkeys(_of(place, rows, "1")),
    ),
    "merge": Statement(  # WHEN MATCHED UPDATE, WHEN NOT MATCHED INSERT, of one key
        (Operation.INSERT, Operation.UPDATE),
        lambda place, _, rows: {(place, "9"): rows.get((place, "9"), 0) + 1},
    ),
    "overwrite": Statement(  # with SELECT n * 10 … WHERE key <> '2'
        (Operation.OVERWRITE,),
        lambda place, _, rows: {
            key: None if key[1] == "2" else n * 10 for key, n in _of(place, rows).items()
        },
    ),
}


# The result depends on rows that others may change; snapshot isolation does not watch such rows.
STATEMENTS["insert sum"] = Statement(
    (Operation.INSERT,), lambda place, who, rows: {(place, who): sum(rows.values())}
)


def lock_type(statement: str, mode: str) -> LockType:
    """The lock table of ``acidsql.plan.locking``."""
    if statement.startswith("insert"):
        return LockType.SHARED_READ
    by_itself = {"overwrite"} if mode == "optimistic" else {"overwrite", "merge"}
    if statement in by_itself or mode == "pessimistic":
        return LockType.EXCL_WRITE
    return LockType.SHARED_WRITE


# ── events ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Event:
    """An inserted or deleted row; or a base, which hides rows with the same or a lower write id; or
    a row in a base."""

    kind: str  # insert, delete, base, in base
    write_id: int
    row: tuple[Key, RowId]
    n: int = 0


Live = dict[tuple[Key, RowId], int]
FIRST = tuple(
    Event("insert", 0, ((place, key), (0, number)), n)
    for place in "pq"
    for number, (key, n) in enumerate({"1": 1, "2": 2}.items())
)


def live(events: Iterable[Event], valid: ValidWriteIdList) -> Live:
    """I1 on data: the visible rows. Write id 0 belongs to rows from before the first
    transaction."""
    seen = [one for one in events if one.write_id == 0 or valid.is_valid(one.write_id)]
    gone = {one.row for one in seen if one.kind == "delete"}
    base = {"p": -1, "q": -1}
    for one in seen:
        if one.kind == "base":
            place = one.row[0][0]
            base[place] = max(base[place], one.write_id)
    return {
        one.row: one.n
        for one in seen
        if one.row not in gone
        and (
            (one.kind == "insert" and one.write_id > base[one.row[0][0]])
            or (one.kind == "in base" and one.write_id == base[one.row[0][0]])
        )
    }


def as_rows(found: Live) -> dict[Key, int]:
    """Rows by key. Raises AssertionError if two rows have one key: an update was lost."""
    rows: dict[Key, int] = {}
    for (key, row_id), n in found.items():
        assert key not in rows, f"lost update: there are two rows {key}, one with row id {row_id}"
        rows[key] = n
    return rows


# ── one side ─────────────────────────────────────────────────────────────────────────────────


class Pause(BaseException):
    """The script has come to a call that it must not make yet."""


Call = tuple[str, Any]  # the call's name, and the answer


@dataclass
class Line:
    """Stands between a script and the store: gives the known answers, then makes one real call."""

    store: Any
    answers: tuple[Any, ...]
    made: Call | None = None
    next: str | None = None
    _given: int = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._call, name)

    def renew(self, txn_id: int) -> int:
        """No step: this store keeps numbers."""
        return txn_id

    def record_partitions(self, *_: Any) -> None:
        """No step: this store need not be told."""

    def keep_files(self, *_: Any) -> None:
        """No step: nobody cleans."""

    def _call(self, name: str, *args: Any, **keywords: Any) -> Any:
        if self._given < len(self.answers):
            answer = self.answers[self._given]
        elif self.made is not None:
            # A call that only cleans up after an exception is not the next one.
            self.next = self.next or name
            raise Pause
        else:
            answer = self._make(name, args, keywords)
            self.made = (name, answer)
        self._given += 1
        if isinstance(answer, AcidSqlError):
            raise answer.with_traceback(None)
        return answer

    def _make(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if name == "sleep":
            return None
        try:
            return getattr(self.store, name)(*args, **keywords)
        except AcidSqlError as error:
            return error


@dataclass
class Writing:
    """Replaces acidsql's ``TableWrite``: no file is written."""

    place: str
    directories: tuple[str, ...] = ()

    @property
    def partitions(self) -> set[str]:
        return {f"p={self.place}"}

    def publish(self) -> PublishedWrite:
        return PublishedWrite(partitions=(f"p={self.place}",))


@dataclass
class Side:
    """The present state of one transaction.

    Attributes:
        made: The last call and its answer.
        next: The call that it makes next; None: the script has ended.
        events: The events that it has written.
        views: The rows that each of its statements saw.
        end: How it ended.
    """

    made: Call = ("", None)
    next: str | None = None
    events: list[Event] = field(default_factory=list)
    views: list[dict[Key, int]] = field(default_factory=list)
    end: str | None = None


@dataclass(frozen=True)
class Script:
    """A transaction to run.

    Attributes:
        who: The script's name; also the key of the row that it inserts.
        statements: Names in ``STATEMENTS``; "read"; "undo": undo all statements before it.
        places: The partition of each statement.
        named: True: locks are on the partition. False: they are on the whole table.
        mode: pessimistic, optimistic, or by row.
    """

    who: str
    statements: tuple[str, ...]
    places: tuple[str, ...]
    named: bool
    mode: str

    def components(self, number: int) -> list[LockComponent]:
        """The locks of a statement."""
        name, place = self.statements[number], self.places[number]
        kind, partition = lock_type(name, self.mode), f"p={place}" if self.named else None
        return [
            LockComponent(kind, T.database, T.name, partition, operation)
            for operation in STATEMENTS[name].operations
        ]

    def step(self, store: Any, answers: tuple[Any, ...], others: Iterable[Event]) -> Side:
        """Run the script with these answers, make one more call, and stop before the next.

        Args:
            store: The store for the new call.
            answers: The answers to the calls before it.
            others: The events of the other side so far, visible or not.
        """
        line, side = Line(store, answers), Side()
        with suppress(Pause):
            side.end = _Run(self, line, side, list(others)).end()
        assert line.made is not None
        side.made, side.next = line.made, line.next
        return side


@dataclass
class _Run:
    """A running script."""

    script: Script
    line: Line
    side: Side
    others: list[Event]

    def end(self) -> str:
        """Run the whole script, and return how it ended."""
        by_row = self.script.mode == "by row"
        txn_id = self.line.open_txn(user="u", host="h")
        waiter = LockWaiter(self.line, SETTINGS[by_row], self.line.sleep, lambda: 0.0)  # type: ignore[arg-type]
        txn = Txn(txn_id, self.line, NO_HEARTBEAT, waiter)  # type: ignore[arg-type]
        transaction = Transaction(txn, is_block=True)
        try:
            for number in range(len(self.script.statements)):
                self._statement(number, transaction)
            transaction.commit(self._same_rows if by_row else None)
        except TransientTxnError as error:
            txn.abort()
            return error.condition
        return "committed"

    def _statement(self, number: int, transaction: Transaction) -> None:
        name, place = self.script.statements[number], self.script.places[number]
        if number == 0:
            transaction.savepoint("first")
        if name == "undo":
            transaction.rollback("first")
            self.side.events.clear()
            return
        if name == "read":
            self._look(transaction)
            return
        with transaction.statement("UPDATE", "") as work:
            transaction.txn.lock(self.script.components(number))
            found = self._look(transaction)
            write_id = transaction.txn.write_id(T)
            changes = STATEMENTS[name].change(place, self.script.who, as_rows(found))
            first = len(self.side.events)
            self.side.events += _events(name, place, changes, found, write_id, first)
            if first < len(self.side.events):
                work.publish(TABLE, Writing(place))  # type: ignore[arg-type]

    def _look(self, transaction: Transaction) -> Live:
        snapshot = transaction.txn.snapshot([T])
        found = live([*FIRST, *self.others, *self.side.events], snapshot.write_ids[T])
        self.side.views.append(as_rows(found))
        return found

    def _same_rows(self, conflict: WriteConflict, _: object) -> bool:
        ours, theirs = (
            {event.row for event in events if event.kind == "delete"}
            for events in (self.side.events, self.others)
        )
        return bool(ours & theirs)


def _events(
    name: str, place: str, changes: Mapping[Key, int | None], found: Live, write_id: int, first: int
) -> Iterator[Event]:
    """The events of a statement: for each changed key, the old row is deleted and the new one
    inserted."""
    comes = "insert"
    if name == "overwrite":
        comes = "in base"
        yield Event("base", write_id, ((place, ""), (write_id, -1)))
    else:
        for row in found:
            if row[0] in changes:
                yield Event("delete", write_id, row)
    for number, (key, n) in enumerate(changes.items(), first):
        if n is not None:
            yield Event(comes, write_id, (key, (write_id, number)), n)
