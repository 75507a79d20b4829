"""First committer wins: which changes of two transactions cannot both be, as pure functions.

The rule is exact snapshot isolation. A transaction that has committed is a rival only if our
snapshot does not see it: what it does see was there when we began to decide. Two changes meet only
on a common thing (``lock_rules.overlaps``: a change of the whole table meets that of each of its
partitions), and there only some operations are in each other's way:

==========  =============  ==========  ==========  =============
ours        their INSERT   … UPDATE    … DELETE    … OVERWRITE
==========  =============  ==========  ==========  =============
INSERT      –              –           –           if it hides
UPDATE      –              conflict    conflict    conflict
DELETE      –              conflict    conflict    conflict
OVERWRITE   if it hides    conflict    conflict    conflict
==========  =============  ==========  ==========  =============

Two INSERTs never meet, nor does an INSERT meet changes of older rows: both are kept. An OVERWRITE
replaces the rows that it saw, and an INSERT that it did not see should outlive it; but the base it
writes, ``base_N``, *hides* whatever has a write id up to N, seen or not. So one of an OVERWRITE and
an INSERT must give way where the OVERWRITE's write id is the higher one, whoever of the two is
committing. While we have no write id we have written nothing that could hide or be hidden, and the
question is asked again at COMMIT. If theirs is not known, the worst is supposed.

Hive's own rule (hive-transactions.md §3.1) differs twice: it asks whether the two overlapped in
time, not whether the one was seen; and an INSERT OVERWRITE counts as an UPDATE there, which keeps
INSERTs away by its lock.

Source: Hive ``CommitTxnFunction.checkForWriteConflict``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from acidsql.acid.table import TableName
from acidsql.errors import WriteConflictError
from acidsql.metastore.interface import Operation, WriteConflict
from acidsql.metastore.lock_rules import ByThing

# What a transaction does that others must know of: what TXN_COMPONENTS and WRITE_SET hold.
RECORDED = (Operation.INSERT, Operation.UPDATE, Operation.DELETE, Operation.OVERWRITE)
# Those that leave a delete event for each row that they change, and nothing else that meets.
BY_ROW = frozenset({Operation.UPDATE, Operation.DELETE})

_LONGEST_STATEMENT = 200  # characters of another's statement in a message


@dataclass(frozen=True, slots=True)
class Change:
    """What a transaction does to one thing: a row of TXN_COMPONENTS or of WRITE_SET.

    Attributes:
        database: Of the table.
        table: Its name.
        partition: Its name; None: any row of the table.
        operation: One of ``RECORDED``.
        write_id: The transaction's in the table; None: it has none yet, or it is not known.
    """

    database: str
    table: str
    partition: str | None
    operation: Operation
    write_id: int | None = None

    @property
    def table_name(self) -> TableName:
        """Database and table."""
        return TableName(self.database, self.table)


@dataclass(frozen=True, slots=True)
class Rival:
    """A transaction that has committed what we do not see; attributes as ``WriteConflict``'s."""

    txn_id: int
    user: str
    host: str
    agent_info: str
    changes: Sequence[Change]


class _Met(NamedTuple):
    """Where two changes meet: the narrower of the two things."""

    database: str
    table: str
    partition: str | None


def rival_operations(ours: Iterable[Operation]) -> frozenset[Operation]:
    """Which operations of rivals are worth looking at for a transaction that does ``ours``."""
    if set(ours) <= {Operation.INSERT}:
        return frozenset({Operation.OVERWRITE})
    # An INSERT that meets nothing itself still means that rows alone do not tell (``by_row``).
    return frozenset(RECORDED)


def is_conflict(ours: Change, theirs: Change) -> bool:
    """The table above, for two changes of a common thing; ``theirs`` is committed and unseen."""
    pair = (ours.operation, theirs.operation)
    if Operation.INSERT not in pair:
        return True
    if Operation.OVERWRITE not in pair or ours.write_id is None:
        return False
    if theirs.write_id is None:
        return True
    if ours.operation is Operation.OVERWRITE:
        return theirs.write_id < ours.write_id
    return ours.write_id < theirs.write_id


def conflicts(ours: Sequence[Change], rivals: Iterable[Rival]) -> list[WriteConflict]:
    """Each thing that a rival and we cannot both have changed, by the rival's number.

    Args:
        ours: What we change.
        rivals: What those did whom our snapshot does not see.
    """
    own = ByThing((change, change) for change in ours)
    by_number = sorted(rivals, key=lambda rival: rival.txn_id)
    return [found for rival in by_number for found in _conflicts_with(own, rival)]


def _conflicts_with(ours: ByThing[Change], rival: Rival) -> Iterator[WriteConflict]:
    theirs = ByThing((change, change) for change in rival.changes)
    met = {
        _Met(their.database, their.table, our.partition or their.partition): their.write_id
        for their in rival.changes
        for our in ours.overlapping(their)
        if is_conflict(our, their)
    }
    for thing in sorted(met, key=lambda thing: (*thing[:2], thing.partition or "")):
        there = (*ours.overlapping(thing), *theirs.overlapping(thing))
        yield WriteConflict(
            txn_id=rival.txn_id,
            table=TableName(thing.database, thing.table),
            partition=thing.partition,
            write_id=met[thing],
            by_row=all(change.operation in BY_ROW for change in there),
            user=rival.user,
            host=rival.host,
            agent_info=rival.agent_info,
        )


def error(txn_id: int, conflicts: Sequence[WriteConflict]) -> WriteConflictError:
    """What the loser is told: who was first, where, and what to do.

    Args:
        txn_id: The loser.
        conflicts: What stands in its way, at least one; the first is named.
    """
    first = conflicts[0]
    where = f"{first.table}/{first.partition}" if first.partition else str(first.table)
    doing = f" (statement: {brief(first.agent_info)})" if first.agent_info.strip() else ""
    made = WriteConflictError(
        f"Transaction {first.txn_id} of user {first.user} on host {first.host}{doing} committed a "
        f"change to {where} first, and transaction {txn_id}, which changes it too, does not see "
        f"it{_and_others(first, conflicts)}. ROLLBACK, and run it again on a fresh snapshot; "
        "retries=n does so.",
        txnId=txn_id,
        winnerTxnId=first.txn_id,
        table=first.table,
        partition=first.partition or "",
        winnerUser=first.user,
        winnerHost=first.host,
        winnerStatement=first.agent_info,
    )
    made.conflicts = tuple(conflicts)
    return made


def _and_others(first: WriteConflict, conflicts: Collection[WriteConflict]) -> str:
    count = len({one.txn_id for one in conflicts} - {first.txn_id})
    if count == 0:
        return ""
    return f" ({count} other transaction{'s' if count > 1 else ''} did so, too)"


def brief(statement: str) -> str:
    """A statement on one line, and no more of it than a message can bear."""
    line = " ".join(statement.split())
    return line if len(line) <= _LONGEST_STATEMENT else line[:_LONGEST_STATEMENT] + "…"
