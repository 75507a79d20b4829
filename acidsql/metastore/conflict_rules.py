"""First committer wins: which changes of two transactions conflict, as pure functions.

The rule is exact snapshot isolation. A committed transaction is a *rival* of ours only if our
snapshot does not see it. Two changes conflict only if they are about a common thing
(``lock_rules.overlaps``: a change of the whole table overlaps a change of each of its
partitions), and only for some pairs of operations:

==========  =============  ==========  ==========  =============
ours        their INSERT   … UPDATE    … DELETE    … OVERWRITE
==========  =============  ==========  ==========  =============
INSERT      –              –           –           if it hides
UPDATE      –              conflict    conflict    conflict
DELETE      –              conflict    conflict    conflict
OVERWRITE   if it hides    conflict    conflict    conflict
==========  =============  ==========  ==========  =============

Two INSERTs never conflict, and an INSERT never conflicts with an UPDATE or DELETE of older rows:
both changes are kept. An OVERWRITE replaces the rows that its snapshot sees, and rows of an unseen
INSERT should stay. But the OVERWRITE's directory ``base_N`` *hides* every write id up to N, seen or
not. So an OVERWRITE and an INSERT conflict if the OVERWRITE has the higher write id, whichever of
the two commits last. While our transaction has no write id, it has written nothing that could hide
other rows or be hidden; COMMIT asks again. If the rival's write id is unknown, the pair conflicts.

Hive's own rule (hive-transactions.md §3.1) differs in two points. Hive asks whether the two
transactions overlapped in time, not whether one's snapshot sees the other. And Hive treats an
INSERT OVERWRITE as an UPDATE, whose lock makes INSERTs wait.

Source: Hive ``CommitTxnFunction.checkForWriteConflict``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from acidsql.acid.table import TableName
from acidsql.errors import WriteConflictError
from acidsql.metastore.interface import Operation, WriteConflict
from acidsql.metastore.lock_rules import LocksByObject

# The operations that TXN_COMPONENTS and WRITE_SET record.
RECORDED = (Operation.INSERT, Operation.UPDATE, Operation.DELETE, Operation.OVERWRITE)
# Operations that can conflict only by their delete events, one for each row that they change.
BY_ROW = frozenset({Operation.UPDATE, Operation.DELETE})

_LONGEST_STATEMENT = 200  # characters of another's statement in a message


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """The change of one object by a transaction: a row of TXN_COMPONENTS or of WRITE_SET.

    Attributes:
        database: The table's database.
        table: The table's name.
        partition: The partition's name. None: any row of the table.
        operation: One of ``RECORDED``.
        write_id: The transaction's write id in the table. None: there is none yet, or it is
            not known.
    """

    database: str
    table: str
    partition: str | None
    operation: Operation
    write_id: int | None = None

    @property
    def table_name(self) -> TableName:
        """Database and table as a TableName."""
        return TableName(self.database, self.table)


@dataclass(frozen=True, slots=True)
class Rival:
    """A committed transaction that our snapshot does not see; attributes as ``WriteConflict``'s."""

    txn_id: int
    user: str
    host: str
    agent_info: str
    changes: Sequence[RecordedChange]


class _CommonObject(NamedTuple):
    """The table or partition that two changes have in common: the narrower of their objects."""

    database: str
    table: str
    partition: str | None


def rival_operations(own_operations: Iterable[Operation]) -> frozenset[Operation]:
    """Return the operations of rivals (committed transactions that our snapshot does not see) that
    can matter to a transaction with these operations: OVERWRITE alone if it only inserts or does
    nothing, otherwise all of ``RECORDED``, as INSERTs decide ``by_row``."""
    if set(own_operations) <= {Operation.INSERT}:
        return frozenset({Operation.OVERWRITE})
    # A rival's INSERT may not conflict by itself, but it makes ``by_row`` false.
    return frozenset(RECORDED)


def is_conflict(own_change: RecordedChange, rival_change: RecordedChange) -> bool:
    """Whether two changes of a common object conflict. Two INSERTs, and an INSERT and an UPDATE or
    DELETE, do not. An OVERWRITE and an INSERT conflict only if our write id is known, and the
    OVERWRITE has the higher one or the rival's is unknown. All other pairs conflict."""
    pair = (own_change.operation, rival_change.operation)
    if Operation.INSERT not in pair:
        return True
    if Operation.OVERWRITE not in pair or own_change.write_id is None:
        return False
    if rival_change.write_id is None:
        return True
    if own_change.operation is Operation.OVERWRITE:
        return rival_change.write_id < own_change.write_id
    return own_change.write_id < rival_change.write_id


def find_conflicts(
    own_changes: Sequence[RecordedChange], rivals: Iterable[Rival]
) -> list[WriteConflict]:
    """Return the conflicts of our changes with the rivals', in the order of the rivals' numbers:
    one for each rival and table or partition that both changed.

    Args:
        own_changes: Our transaction's changes.
        rivals: The rivals with their changes.
    """
    own = LocksByObject((change, change) for change in own_changes)
    by_number = sorted(rivals, key=lambda rival: rival.txn_id)
    return [conflict for rival in by_number for conflict in _conflicts_with(own, rival)]


def _conflicts_with(
    own_changes: LocksByObject[RecordedChange], rival: Rival
) -> Iterator[WriteConflict]:
    """Yield the conflicts with one rival, by database, table and partition: one for each table or
    partition that two conflicting changes have in common, the narrower of both. ``by_row`` is true
    if both sides only update or delete there; changes that do not conflict count here, too."""
    changes_of_rival = LocksByObject((change, change) for change in rival.changes)
    write_ids_by_place = {
        _CommonObject(their.database, their.table, our.partition or their.partition): their.write_id
        for their in rival.changes
        for our in own_changes.overlapping(their)
        if is_conflict(our, their)
    }
    for conflict_place in sorted(
        write_ids_by_place,
        key=lambda conflict_place: (*conflict_place[:2], conflict_place.partition or ""),
    ):
        changes_there = (
            *own_changes.overlapping(conflict_place),
            *changes_of_rival.overlapping(conflict_place),
        )
        yield WriteConflict(
            txn_id=rival.txn_id,
            table=TableName(conflict_place.database, conflict_place.table),
            partition=conflict_place.partition,
            write_id=write_ids_by_place[conflict_place],
            by_row=all(change.operation in BY_ROW for change in changes_there),
            user=rival.user,
            host=rival.host,
            agent_info=rival.agent_info,
        )


def conflict_error(txn_id: int, conflicts: Sequence[WriteConflict]) -> WriteConflictError:
    """Make the error for the transaction that lost: which transaction was first, where, and advice.
    Numbers, table, partition, and the winner's user, host and statement are message parameters, ""
    where nothing is known. ``ended`` stays False.

    Args:
        txn_id: The transaction that lost.
        conflicts: Its conflicts, at least one. The message describes the first, and tells how many
            other transactions there are; the error's ``conflicts`` has all.
    """
    first = conflicts[0]
    where = f"{first.table}/{first.partition}" if first.partition else str(first.table)
    write_conflict = WriteConflictError(
        f"{author_text(first)} committed a change to {where} first, and transaction {txn_id}, "
        f"which changes it too, does not see it{_other_winners_text(first, conflicts)}. "
        "ROLLBACK, and run it again on a fresh snapshot; retries=n does so.",
        txnId=txn_id,
        winnerTxnId="" if first.txn_id is None else first.txn_id,
        table=first.table,
        partition=first.partition or "",
        winnerUser=first.user,
        winnerHost=first.host,
        winnerStatement=first.agent_info,
    )
    write_conflict.conflicts = tuple(conflicts)
    return write_conflict


def _other_winners_text(first: WriteConflict, conflicts: Collection[WriteConflict]) -> str:
    """Return " (2 other transactions did so, too)", or "" if all conflicts are with one
    transaction."""
    count = len({conflict.txn_id for conflict in conflicts} - {first.txn_id})
    if count == 0:
        return ""
    return f" ({count} other transaction{'s' if count > 1 else ''} did so, too)"


class _Author(Protocol):
    """A transaction, with its user, its host and its statement (``agent_info``)."""

    @property
    def txn_id(self) -> int | None: ...

    @property
    def user(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def agent_info(self) -> str: ...


def author_text(author: _Author) -> str:
    """Return "Transaction 7 of user ann on host h1 (statement: …)", for an error message.

    The statement is put on one line and cut to 200 characters, or left out if it is empty. "Another
    program" if ``txn_id`` is None, because the metastore does not tell.
    """
    if author.txn_id is None:
        return "Another program"
    doing = (
        f" (statement: {short_statement(author.agent_info)})" if author.agent_info.strip() else ""
    )
    return f"Transaction {author.txn_id} of user {author.user} on host {author.host}{doing}"


def short_statement(statement: str) -> str:
    """Return a statement on one line, with single blanks, and cut to its first 200 characters and …
    if it is longer. White space alone gives ""."""
    line = " ".join(statement.split())
    return line if len(line) <= _LONGEST_STATEMENT else line[:_LONGEST_STATEMENT] + "…"
