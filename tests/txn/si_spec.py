"""The specification: the right answer to each store call of two transactions, and the right rows.

It is written from the documents (ARCHITECTURE.md, hive-transactions.md §3 and §4), apart from
acidsql's code. Rows are a dictionary, a snapshot is a copy of it, and a commit adds a transaction's
changes to it. That is snapshot isolation. If two transactions that do not see each other change the
same row, one change would be lost. So the second transaction fails at COMMIT.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from two_scripts import FIRST, STATEMENTS, Call, Key, Rows, Script, lock_type

from acidsql.errors import TxnAbortedError, WriteConflictError
from acidsql.metastore.interface import LockState, LockType, Operation

X, W = LockType.EXCL_WRITE, LockType.SHARED_WRITE
# The lock types of writers that block each other; here no statement waits for SHARED_READ.
CLASH = {(X, X), (X, W), (W, X)}
ONLY_ROWS = {Operation.UPDATE, Operation.DELETE}
strength = [LockType.SHARED_READ, W, X].index
# Calls whose answers do not depend on the other side.
NEUTRAL = {"sleep", "abort_timed_out", "unlock"}
Did = tuple[Operation, str | None]  # the changed partition; None: any partition of the table


def start() -> dict[Key, int]:
    """The rows before the first transaction."""
    return {event.row[0]: event.n for event in FIRST}


def apply(rows: Rows, changes: Mapping[Key, int | None]) -> dict[Key, int]:
    """The rows after some changes."""
    return {key: n for key, n in {**rows, **changes}.items() if n is not None}


def alone(script: Script, rows: Rows) -> dict[Key, int]:
    """The rows that a script leaves if no other transaction runs."""
    after = dict(rows)
    for name, place in zip(script.statements, script.places, strict=True):
        if name == "undo":
            after = dict(rows)
        elif name != "read":
            after = apply(after, STATEMENTS[name].change(place, script.who, after))
    return after


@dataclass
class Half:
    """What the specification knows of one side. Every value is immutable."""

    state: str = "open"
    opened: int = 0  # the order in which the transactions were opened
    statement: int = 0
    snapshot: tuple[tuple[Key, int], ...] | None = None
    sees_other: bool = False
    changes: tuple[tuple[Key, int | None], ...] = ()
    did: tuple[Did, ...] = ()
    new: tuple[Did, ...] = ()  # the state before the running statement
    asked: tuple[tuple[int, LockType, str | None], ...] = ()  # time, lock type, place
    waits: bool = False
    write_id: int | None = None
    differs: bool = False  # its COMMIT was refused, although it has changed other rows
    views: tuple[frozenset[tuple[Key, int]], ...] = ()

    def view(self) -> dict[Key, int]:
        """The rows that this side sees: its snapshot with its own changes."""
        return apply(dict(self.snapshot or ()), dict(self.changes))


class Spec:
    """Is told every call of both sides with its answer, in the order of the calls."""

    def __init__(self, scripts: tuple[Script, Script]) -> None:
        self.scripts, self.halves = scripts, (Half(), Half())
        self.rows = start()
        # A counter for events whose order matters: opening, lock requests, write ids.
        self.clock = 0

    def copy(self) -> Spec:
        """A second specification that has been told the same calls."""
        other = copy.copy(self)
        other.halves = (Half(**vars(self.halves[0])), Half(**vars(self.halves[1])))
        return other

    def key(self) -> object:
        """A key that is equal for specifications that will demand the same answers from now on."""
        halves = (tuple(vars(half).values()) for half in self.halves)
        return (*halves, frozenset(self.rows.items()))

    def hear(self, number: int, call: Call) -> None:
        """Note a store call of a side. Raises AssertionError if the answer is wrong."""
        name, answer = call
        me, other = self.halves[number], self.halves[1 - number]
        if name in NEUTRAL:
            return
        if me.state == "aborted":  # aborted by the other side, to end a deadlock
            expected = TxnAbortedError
        else:
            expected = getattr(self, f"_{name}")(self.scripts[number], me, other)
        found = _told(name, answer)
        who = self.scripts[number].who
        assert found == expected, f"{who}'s {name} is told {found}, not {expected}"

    def must_wait(self, number: int) -> bool:
        """Whether a side that waits for a lock must go on waiting."""
        me, other = self.halves[number], self.halves[1 - number]
        return me.state == "open" and _must_wait(me, other)

    # ── calls: each changes what is known, and returns what the answer must be ───────────────

    def _open_txn(self, script: Script, me: Half, other: Half) -> Any:
        me.opened = self._tick()

    def _lock(self, script: Script, me: Half, other: Half) -> Any:
        place = script.places[me.statement] if script.named else None
        name = script.statements[me.statement]
        me.new = tuple((operation, place) for operation in STATEMENTS[name].operations)
        me.did += me.new
        me.asked += ((self._tick(), lock_type(name, script.mode), place),)
        return self._granted(me, other)

    def _check_lock(self, script: Script, me: Half, other: Half) -> Any:
        if other.waits and _must_wait(me, other) and _must_wait(other, me):
            younger = max(me, other, key=lambda half: half.opened)
            _end(younger, "aborted")
            if younger is me:
                return TxnAbortedError
        return self._granted(me, other)

    def _valid_txns(self, script: Script, me: Half, other: Half) -> Any:
        assert me.snapshot is None, f"{script.who} looks a second time (I6)"
        me.snapshot, me.sees_other = tuple(self.rows.items()), other.state == "committed"

    def _valid_write_ids(self, script: Script, me: Half, other: Half) -> Any:
        me.views += (frozenset(me.view().items()),)
        if script.statements[me.statement] == "read":
            me.statement += 1

    def _write_conflicts(self, script: Script, me: Half, other: Half) -> Any:
        return bool(_meetings(me, other, me.new))

    def _allocate_write_id(self, script: Script, me: Half, other: Half) -> Any:
        statement = STATEMENTS[script.statements[me.statement]]
        changes = statement.change(script.places[me.statement], script.who, me.view())
        me.changes = tuple({**dict(me.changes), **changes}.items())
        if me.write_id is None:
            me.write_id = self._tick()
        me.statement += 1

    def _restore_components(self, script: Script, me: Half, other: Half) -> Any:
        me.changes, me.did = (), ()
        me.statement += 1

    def _commit_txn(self, script: Script, me: Half, other: Half) -> Any:
        if not script.named:  # from now on the partition is known
            places = sorted({key[0] for key, _ in me.changes})
            me.did = tuple((operation, place) for operation, _ in me.did for place in places)
        met = _meetings(me, other, me.did)
        if met and not me.differs:
            me.differs = script.mode == "by row" and not _same_rows(me, other, met)
            return WriteConflictError
        self.rows = apply(self.rows, dict(me.changes))
        _end(me, "committed")
        return None

    def _abort_txn(self, script: Script, me: Half, other: Half) -> Any:
        assert not me.differs, f"{script.who} gives up, though no row was changed by both"
        _end(me, "aborted")

    def _tick(self) -> int:
        self.clock += 1
        return self.clock

    @staticmethod
    def _granted(me: Half, other: Half) -> LockState:
        me.waits = _must_wait(me, other)
        return LockState.WAITING if me.waits else LockState.ACQUIRED


def _told(name: str, answer: Any) -> Any:
    """The part of an answer that says yes or no; None if it has no such part."""
    if isinstance(answer, Exception):
        return type(answer)
    if name in ("lock", "check_lock"):
        return answer.state
    return bool(answer) if name == "write_conflicts" else None


# ── rules ────────────────────────────────────────────────────────────────────────────────────


def _end(half: Half, state: str) -> None:
    half.state, half.asked, half.waits = state, (), False


def _must_wait(me: Half, other: Half) -> bool:
    """No lock overtakes: an earlier request of the other side counts, granted or not. But a side
    does not wait for a lock that it has already."""
    return any(
        (mine, theirs) in CLASH and _overlap(where, there)
        for number, (when, mine, where) in enumerate(me.asked)
        if not any(
            strength(had) >= strength(mine) and place in (None, where)
            for _, had, place in me.asked[:number]
        )
        for then, theirs, there in other.asked
        if then < when
    )


def _overlap(one: str | None, other: str | None) -> bool:
    return one == other or None in (one, other)


def _meetings(me: Half, other: Half, mine: tuple[Did, ...]) -> set[str | None]:
    """First committer wins: the changes of the other side that touch the same place and are not
    visible."""
    if me.snapshot is None or other.state != "committed" or me.sees_other:
        return set()
    return {
        where or there
        for one, where in mine
        for theirs, there in other.did
        if _overlap(where, there) and _cannot_both_be(one, me.write_id, theirs, other.write_id)
    }


def _cannot_both_be(
    mine: Operation, my_id: int | None, theirs: Operation, their_id: int | None
) -> bool:
    inserts = [operation is Operation.INSERT for operation in (mine, theirs)]
    if not any(inserts):
        return True
    if all(inserts) or Operation.OVERWRITE not in (mine, theirs) or my_id is None:
        return False
    assert their_id is not None
    # A base hides every row with a lower write id than its own.
    return my_id < their_id if inserts[0] else their_id < my_id


def _same_rows(me: Half, other: Half, met: set[str | None]) -> bool:
    """Whether a conflict by partition is also one by row. Only old rows can be compared."""
    for place in met:
        there = {
            operation
            for half in (me, other)
            for operation, where in half.did
            if _overlap(where, place)
        }
        if not there <= ONLY_ROWS:
            return True
    return bool(dict(me.changes).keys() & dict(other.changes).keys())
