"""The answers to SHOW COMPACTIONS and ABORT COMPACTIONS as rows of texts, by pure functions.

Columns, names and renderings are Hive 4's, including the spelling ``hightestwriteid``. There are
three differences: the highest write id is shown, a compaction that never began has no start and
no duration, and ``hadoopjobid`` is what the worker does now.

Source: Hive ``ShowCompactionsOperation``, ``ShowCompactionsAnalyzer``,
``AbortCompactionFunction`` (4.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from acidsql.acid.table import TableName
from acidsql.metastore.compaction_queue import CompactionInfo, CompactionState
from acidsql.sql.statements import ShowCompactions

COMPACTIONS = ", ".join(
    f"{name} string"
    for name in (
        "compactionid", "dbname", "tabname", "partname", "type", "state", "workerhost", "workerid",
        "enqueuetime", "starttime", "duration", "hadoopjobid", "errormessage", "initiatorhost",
        "initiatorid", "poolname", "txnid", "nexttxnid", "committime", "hightestwriteid",
    )
)  # fmt: skip
ABORTED = "compactionid string, status string, message string"

_NULL = " --- "
_DEFAULT_POOL = "default"


def compaction_rows(
    compactions: Iterable[CompactionInfo],
    statement: ShowCompactions,
    *,
    table: TableName | None = None,
) -> list[tuple[str, ...]]:
    """The rows of SHOW COMPACTIONS.

    Args:
        compactions: All compactions, in the order of the answer without ORDER BY.
        statement: The statement, with filters, order and limit.
        table: The table that it names.
    """
    found = [
        one
        for one in compactions
        if _is_asked_for(one, statement) and (table is None or one.table == table)
    ]
    # Sort by the last column first: each sort is stable.
    for order in reversed(statement.order_by):
        found.sort(key=_sort_key(order.column), reverse=order.descending)
    end = None if statement.limit is None else statement.offset + statement.limit
    return [_row(one) for one in found[statement.offset : end]]


def aborted_rows(
    ids: Sequence[int], found: Mapping[int, CompactionState | None]
) -> list[tuple[str, str, str]]:
    """The rows of ABORT COMPACTIONS; ``found``: from ``CompactionQueue.abort_compactions``."""
    return [(str(number), *_outcome(found.get(number))) for number in dict.fromkeys(ids)]


def _outcome(state: CompactionState | None) -> tuple[str, str]:
    if state is CompactionState.INITIATED:
        return "Success", "Successfully aborted compaction"
    if state is None:
        return "Error", "No such compaction"
    return "Error", f"Only an initiated compaction can be aborted, and this one is: {state.shown}"


def _is_asked_for(one: CompactionInfo, statement: ShowCompactions) -> bool:
    database = statement.database and statement.database.parts[-1].lower()
    return (
        (statement.id is None or one.id == statement.id)
        and (database is None or one.table.database == database)
        and (statement.pool is None or _pool(one).lower() == statement.pool)
        and (statement.type is None or one.type is statement.type)
        and (statement.state is None or one.state is statement.state)
    )


def _row(one: CompactionInfo) -> tuple[str, ...]:
    return tuple(
        _NULL if value is None else str(value)
        for value in (
            one.id,
            one.table.database,
            one.table.shown,
            one.partition,
            one.type.name,
            one.state.shown,
            *_host_and_id(one.worker_id),
            one.enqueued_ms,
            one.started_ms,
            _duration(one),
            one.progress,
            one.message,
            *_host_and_id(one.initiator_id),
            _pool(one),
            # Hive's server always sets these three.
            one.txn_id or 0,
            one.next_txn_id or 0,
            one.committed_ms or 0,
            one.highest_write_id,
        )
    )


def _host_and_id(text: str | None) -> tuple[str | None, str | None]:
    """Split ``<host>-<id>``. The host may contain a ``-``, too."""
    if not text:
        return None, None
    host, dash, number = text.rpartition("-")
    return (host, number) if dash else (text, None)


def _pool(one: CompactionInfo) -> str:
    return one.pool or _DEFAULT_POOL


def _duration(one: CompactionInfo) -> int | None:
    if one.started_ms is None or one.ended_ms is None:
        return None
    return one.ended_ms - one.started_ms


Value = int | str | None

# The keys are the words of the grammar (``sql.compactions.ORDERED``).
ORDER_VALUES: dict[str, Callable[[CompactionInfo], Value]] = {
    "COMPACTIONID": lambda one: one.id,
    "DBNAME": lambda one: one.table.database,
    "TABNAME": lambda one: one.table.shown,
    "PARTNAME": lambda one: one.partition,
    "ENQUEUETIME": lambda one: one.enqueued_ms,
    "STARTTIME": lambda one: one.started_ms,
    "POOLNAME": _pool,
    "NEXTTXNID": lambda one: one.next_txn_id,
    "HADOOPJOBID": lambda one: one.progress,
    "WORKERHOST": lambda one: _host_and_id(one.worker_id)[0],
    "WORKERID": lambda one: _host_and_id(one.worker_id)[1],
    "DURATION": _duration,
    "TXNID": lambda one: one.txn_id,
    "COMMITTIME": lambda one: one.committed_ms,
    "HIGHESTWRITEID": lambda one: one.highest_write_id,
}


def _sort_key(column: str) -> Callable[[CompactionInfo], tuple[bool, int, str]]:
    """A sort key. NULL sorts after all values; a column has numbers only, or texts only."""
    value_of = ORDER_VALUES[column]

    def key(one: CompactionInfo) -> tuple[bool, int, str]:
        value = value_of(one)
        return (False, value, "") if isinstance(value, int) else (value is None, 0, value or "")

    return key
