"""Turns the answers to COMPACT, SHOW COMPACTIONS and ABORT COMPACTIONS into rows of texts.

Columns, names and renderings are Hive 4's, including the spelling ``hightestwriteid``. There are
three differences: the highest write id is shown, a compaction that never began has no start and
no duration, and ``hadoopjobid`` is what the worker does now.

Source: Hive ``ShowCompactionsOperation``, ``ShowCompactionsAnalyzer``,
``AbortCompactionFunction`` (4.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from acidsql.acid.table import TableName
from acidsql.metastore.compaction_queue import (
    CompactionInfo,
    CompactionState,
    CompactionType,
    Enqueued,
)
from acidsql.sql.parsed.statements import ShowCompactions

COMPACTIONS = ", ".join(
    f"{name} string"
    for name in (
        "compactionid", "dbname", "tabname", "partname", "type", "state", "workerhost", "workerid",
        "enqueuetime", "starttime", "duration", "hadoopjobid", "errormessage", "initiatorhost",
        "initiatorid", "poolname", "txnid", "nexttxnid", "committime", "hightestwriteid",
    )
)  # fmt: skip
REQUESTED = "compactionid string, partname string, type string, state string, message string"
ABORTED = "compactionid string, status string, message string"

UNFINISHED = (CompactionState.INITIATED, CompactionState.WORKING)  # a worker has it, or will
_NULL = " --- "
_DEFAULT_POOL = "default"


def compaction_rows(
    compactions: Iterable[CompactionInfo],
    statement: ShowCompactions,
    *,
    table: TableName | None = None,
) -> list[tuple[str, ...]]:
    """Return the rows of SHOW COMPACTIONS: filtered, ordered and limited, all values as texts.

    Args:
        compactions: All compactions, in the order of the answer without ORDER BY.
        statement: The statement, with filters, order and limit. Its PARTITION clause is not looked
            at.
        table: The table that the statement names; None: any.
    """
    selected = [
        compaction
        for compaction in compactions
        if _is_selected(compaction, statement) and (table is None or compaction.table == table)
    ]
    # Sort by the last column first: each sort is stable.
    for order in reversed(statement.order_by):
        selected.sort(key=_sort_key(order.column), reverse=order.descending)
    end = None if statement.limit is None else statement.offset + statement.limit
    return [_compaction_texts(compaction) for compaction in selected[statement.offset : end]]


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What has become of a request for a compaction.

    Attributes:
        partition: The partition to compact; None for an unpartitioned table.
        answer: The store's answer to the request.
        entry: The request's entry now, or the entry that was in the queue before; None if the store
            has forgotten it.
        reason: Why there is nothing to compact; "" if there is something, or if nobody has looked.
    """

    partition: str | None
    answer: Enqueued
    entry: CompactionInfo | None
    reason: str = ""

    @property
    def state(self) -> str:
        """The entry's state, as SHOW COMPACTIONS shows it; the state at the request if the entry is
        forgotten."""
        return (self.answer.state if self.entry is None else self.entry.state).shown

    @property
    def message(self) -> str:
        """Sentences for the user about the outcome."""
        entry = self.entry
        if entry is None:
            return "It is forgotten: its table was dropped, or no history is kept."
        if not self.answer.accepted and entry.state in UNFINISHED:
            return (
                f"A {entry.type.name.lower()} compaction was in the queue already, so this request "
                "is not queued again."
            )
        if entry.state is CompactionState.INITIATED:
            return self.reason or "It is queued: SHOW COMPACTIONS shows what becomes of it."
        return self.reason or entry.message or ""

    def __str__(self) -> str:
        return f"compaction {self.answer.id}: {self.state}: {self.message}".rstrip(": ")


def requested_rows(
    outcomes: Iterable[RequestOutcome], kind: CompactionType
) -> list[tuple[str | None, ...]]:
    """Return the rows of ALTER TABLE … COMPACT, one for each partition. ``kind``: the type that was
    asked for, for entries that are forgotten."""
    return [
        (
            str(outcome.answer.id),
            outcome.partition,
            (kind if outcome.entry is None else outcome.entry.type).name,
            outcome.state,
            outcome.message,
        )
        for outcome in outcomes
    ]


def aborted_rows(
    ids: Sequence[int], states: Mapping[int, CompactionState | None]
) -> list[tuple[str, str, str]]:
    """Return the rows of ABORT COMPACTIONS, one for each different id: id, status and message. The
    compactions were aborted before; nothing is aborted here.

    ``states``: the state that each compaction had before, by id; None: there is no such compaction.
    """
    return [(str(number), *_abort_outcome(states.get(number))) for number in dict.fromkeys(ids)]


def _abort_outcome(state: CompactionState | None) -> tuple[str, str]:
    """Return the status and message, in Hive's words, of the attempt to abort a compaction that had
    this state. It succeeds only if the compaction had not begun. None: there is no such
    compaction."""
    if state is CompactionState.INITIATED:
        return "Success", "Successfully aborted compaction"
    if state is None:
        return "Error", "No such compaction"
    return (
        "Error",
        f"Only an initiated compaction can be aborted, and this one is: {state.shown}",
    )


def _is_selected(compaction: CompactionInfo, statement: ShowCompactions) -> bool:
    """Whether SHOW COMPACTIONS shows a compaction: by id, database, pool, type and state. The table
    and partition are not compared."""
    database = statement.database and statement.database.parts[-1].lower()
    return (
        (statement.id is None or compaction.id == statement.id)
        and (database is None or compaction.table.database == database)
        and (statement.pool is None or _pool(compaction).lower() == statement.pool)
        and (statement.type is None or compaction.type is statement.type)
        and (statement.state is None or compaction.state is statement.state)
    )


def _compaction_texts(compaction: CompactionInfo) -> tuple[str, ...]:
    """Return a compaction as the texts of a row of SHOW COMPACTIONS; `` --- `` for NULL, but 0 for
    transactions and a commit time that it does not have."""
    return tuple(
        _NULL if value is None else str(value)
        for value in (
            compaction.id,
            compaction.table.database,
            compaction.table.shown,
            compaction.partition,
            compaction.type.name,
            compaction.state.shown,
            *_host_and_id(compaction.worker_id),
            compaction.enqueued_ms,
            compaction.started_ms,
            _duration(compaction),
            compaction.progress,
            compaction.message,
            *_host_and_id(compaction.initiator_id),
            _pool(compaction),
            # Hive's server always sets these three.
            compaction.txn_id or 0,
            compaction.next_txn_id or 0,
            compaction.committed_ms or 0,
            compaction.highest_write_id,
        )
    )


def _host_and_id(text: str | None) -> tuple[str | None, str | None]:
    """Split ``<host>-<id>`` at the last ``-``. Without ``-``, the id is None; both are None for no
    text."""
    if not text:
        return None, None
    host, dash, number = text.rpartition("-")
    return (host, number) if dash else (text, None)


def _pool(compaction: CompactionInfo) -> str:
    return compaction.pool or _DEFAULT_POOL


def _duration(compaction: CompactionInfo) -> int | None:
    """Return how long a compaction ran, in milliseconds; None if it has not begun or not ended."""
    if compaction.started_ms is None or compaction.ended_ms is None:
        return None
    return compaction.ended_ms - compaction.started_ms


_SortValue = int | str | None

# The keys are the words of the grammar (``sql.compactions.ORDERED``).
ORDER_VALUES: dict[str, Callable[[CompactionInfo], _SortValue]] = {
    "COMPACTIONID": lambda compaction: compaction.id,
    "DBNAME": lambda compaction: compaction.table.database,
    "TABNAME": lambda compaction: compaction.table.shown,
    "PARTNAME": lambda compaction: compaction.partition,
    "ENQUEUETIME": lambda compaction: compaction.enqueued_ms,
    "STARTTIME": lambda compaction: compaction.started_ms,
    "POOLNAME": _pool,
    "NEXTTXNID": lambda compaction: compaction.next_txn_id,
    "HADOOPJOBID": lambda compaction: compaction.progress,
    "WORKERHOST": lambda compaction: _host_and_id(compaction.worker_id)[0],
    "WORKERID": lambda compaction: _host_and_id(compaction.worker_id)[1],
    "DURATION": _duration,
    "TXNID": lambda compaction: compaction.txn_id,
    "COMMITTIME": lambda compaction: compaction.committed_ms,
    "HIGHESTWRITEID": lambda compaction: compaction.highest_write_id,
}


def _sort_key(column: str) -> Callable[[CompactionInfo], tuple[bool, int, str]]:
    """Return the function that gives a compaction's sort key, for ORDER BY this column of SHOW
    COMPACTIONS.

    NULL sorts after all values. All values of a column are numbers, or all are texts.
    """
    value_of = ORDER_VALUES[column]

    def key(compaction: CompactionInfo) -> tuple[bool, int, str]:
        value = value_of(compaction)
        return (False, value, "") if isinstance(value, int) else (value is None, 0, value or "")

    return key
