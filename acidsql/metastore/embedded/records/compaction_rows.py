"""COMPACTION_QUEUE and COMPLETED_COMPACTIONS: reads and writes the row of one compaction.

An entry is in one of the two tables, and keeps its number. The queue also has the directories of
dropped tables (``cleanups``).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, insert, not_, select, update
from sqlalchemy import Table as SqlTable

from acidsql.acid.table import TableName
from acidsql.errors import TxnError
from acidsql.metastore import stringable_map
from acidsql.metastore.compaction_queue import (
    Compacted,
    CompactionInfo,
    CompactionRequest,
    CompactionState,
    CompactionType,
)
from acidsql.metastore.embedded.database.engine import next_number
from acidsql.metastore.embedded.database.schema import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    NEXT_COMPACTION_QUEUE_ID,
    NEXT_TXN_ID,
)
from acidsql.metastore.embedded.records import cleanups
from acidsql.metastore.embedded.records.write_ids import is_of_table

CQ = COMPACTION_QUEUE.c
_MESSAGE_LIMIT = 4000  # enough to read; a longer text may not fit into a packet of the server
_COMMON_COLUMNS = [
    column.name.removeprefix("CC_") for column in COMPLETED_COMPACTIONS.c if column.name != "CC_END"
]


def is_about(
    table: SqlTable, prefix: str, name: TableName, partition: str | None
) -> ColumnElement[bool]:
    """Make the condition that a row of a table, whose columns begin with ``prefix``, is about this
    partition of the table ``name``; None: about no partition, an unpartitioned table's."""
    column = table.c[f"{prefix}_PARTITION"]
    is_partition = column.is_(None) if partition is None else column == partition
    return and_(is_of_table(table, prefix, name), is_partition)


def cut_to_column(text: str, column: ColumnElement[Any]) -> str:
    """Return the text, cut to the length of the column; to 4000 characters if it has none."""
    return text[: getattr(column.type, "length", None) or _MESSAGE_LIMIT]


def pool_name(pool: str) -> str:
    """Return the name of a pool as it is stored and compared: in lower case, as in Hive, and cut to
    the column's length."""
    return cut_to_column(pool.lower(), CQ.CQ_POOL_NAME)


def append_message(message: str | None, more: str) -> str | None:
    """Return a message with ``more`` appended, unless it ends with ``more`` already; cut to 4000
    characters. None if both are empty."""
    if not message or not more:
        return message or cut_to_column(more, CQ.CQ_ERROR_MESSAGE) or None
    if message == more or message.endswith(f"; {more}"):
        return message
    return cut_to_column(f"{message}; {more}", CQ.CQ_ERROR_MESSAGE)


def new_entry_values(
    connection: Connection, prefix: str, request: CompactionRequest, message: str
) -> dict[str, Any]:
    """Use up the next number of an entry, and return the values of a new one: column with
    ``prefix`` → value. The caller adds state and times, and inserts the row. The requester, the
    pool (in lower case) and the message are cut to the columns' widths."""
    values = {
        "ID": next_number(connection, NEXT_COMPACTION_QUEUE_ID),
        "DATABASE": request.table.database,
        "TABLE": request.table.name,
        "PARTITION": request.partition,
        "TYPE": request.type.value,
        "TBLPROPERTIES": stringable_map.encode(request.properties) if request.properties else None,
        "INITIATOR_ID": cut_to_column(request.initiator_id, CQ.CQ_INITIATOR_ID),
        "ERROR_MESSAGE": cut_to_column(message, CQ.CQ_ERROR_MESSAGE) or None,
        "POOL_NAME": None if request.pool is None else pool_name(request.pool),
        "NUMBER_OF_BUCKETS": request.buckets,
        "ORDER_BY": request.order_by,
    }
    return {f"{prefix}_{name}": value for name, value in values.items()}


def info_of_row(row: Row[Any], prefix: str) -> CompactionInfo:
    """Make the CompactionInfo of a row of the queue (prefix "CQ") or of the history ("CC"); what
    only the other table has gets its default."""
    value = {name.removeprefix(f"{prefix}_"): value for name, value in row._mapping.items()}
    return CompactionInfo(
        id=value["ID"],
        table=TableName(value["DATABASE"], value["TABLE"]),
        partition=value["PARTITION"],
        type=CompactionType(value["TYPE"]),
        state=CompactionState(value["STATE"]),
        enqueued_ms=value["ENQUEUE_TIME"],
        started_ms=value["START"],
        ended_ms=value.get("END"),
        worker_id=value["WORKER_ID"],
        initiator_id=value["INITIATOR_ID"],
        txn_id=value["TXN_ID"],
        next_txn_id=value["NEXT_TXN_ID"],
        committed_ms=value["COMMIT_TIME"],
        highest_write_id=value["HIGHEST_WRITE_ID"],
        message=value["ERROR_MESSAGE"],
        pool=value["POOL_NAME"],
        properties=stringable_map.decode(value["TBLPROPERTIES"]),
        buckets=value["NUMBER_OF_BUCKETS"],
        order_by=value["ORDER_BY"],
        retry_retention_ms=value.get("RETRY_RETENTION", 0),
        progress=value.get("HADOOP_JOB_ID"),
    )


# ── one entry ────────────────────────────────────────────────────────────────────────────────


def working_entry(connection: Connection, compaction_id: int, txn_id: int) -> Row[Any] | None:
    """Return the queue's row of the entry if it is WORKING for this transaction; otherwise None."""
    is_working = (CQ.CQ_STATE == CompactionState.WORKING.value, CQ.CQ_TXN_ID == txn_id)
    return connection.execute(
        select(COMPACTION_QUEUE).where(CQ.CQ_ID == compaction_id, *is_working)
    ).first()


def cleanable_entry(connection: Connection, compaction_id: int) -> Row[Any] | None:
    """Return the queue's row of the entry if it is a compaction that is ready for cleaning;
    otherwise None."""
    return connection.execute(
        select(COMPACTION_QUEUE).where(CQ.CQ_ID == compaction_id, is_cleanable())
    ).first()


def is_cleanable() -> ColumnElement[bool]:
    """Make the condition that an entry of the queue is a compaction whose old files are still to be
    deleted."""
    return and_(
        CQ.CQ_STATE == CompactionState.READY_FOR_CLEANING.value, not_(cleanups.is_cleanup())
    )


def set_columns(connection: Connection, compaction_id: int, **values: object) -> None:
    """Set columns (name → value) of an entry of the queue."""
    connection.execute(update(COMPACTION_QUEUE).where(CQ.CQ_ID == compaction_id).values(**values))


def requeue(connection: Connection, compaction_id: int) -> None:
    """Make an entry of the queue INITIATED again, in its old place: its start, worker, transaction
    and progress are forgotten."""
    set_columns(
        connection,
        compaction_id,
        CQ_STATE=CompactionState.INITIATED.value,
        CQ_START=None,
        CQ_WORKER_ID=None,
        CQ_TXN_ID=None,
        CQ_HADOOP_JOB_ID=None,
    )


def end(
    connection: Connection,
    row: Row[Any],
    state: CompactionState,
    now_ms: int,
    message: str | None = None,
) -> None:
    """Move an entry of the queue (``row``) into the history, in a final state, with all columns
    that both have. A ``message``, which is cut, replaces the entry's own; None keeps it."""
    values = {f"CC_{name}": row._mapping[f"CQ_{name}"] for name in _COMMON_COLUMNS}
    values |= {"CC_STATE": state.value, "CC_END": now_ms}
    if message is not None:
        values["CC_ERROR_MESSAGE"] = cut_to_column(message, CQ.CQ_ERROR_MESSAGE)
    connection.execute(insert(COMPLETED_COMPACTIONS).values(values))
    connection.execute(delete(COMPACTION_QUEUE).where(CQ.CQ_ID == row.CQ_ID))


def mark_ready_for_cleaning(
    connection: Connection, txn_id: int, compacted: Compacted, now_ms: int
) -> None:
    """Make a compaction READY_FOR_CLEANING, with its result, in the store transaction that commits
    its transaction.

    Raises:
        TxnError: COMPACTION_LOST: the entry does not belong to this transaction any more.
    """
    row = working_entry(connection, compacted.id, txn_id)
    if row is None:
        raise TxnError(
            f"Compaction {compacted.id} is not transaction {txn_id}'s any more: it was given to "
            "another worker, or its table was dropped. Nothing was changed.",
            condition="COMPACTION_LOST",
            sqlstate="40001",
            compactionId=compacted.id,
            txnId=txn_id,
        )
    set_columns(
        connection,
        compacted.id,
        CQ_STATE=CompactionState.READY_FOR_CLEANING.value,
        # Transactions that begin from now on read the compacted files, not the old ones.
        CQ_NEXT_TXN_ID=connection.execute(select(NEXT_TXN_ID.c.NTXN_NEXT)).scalar_one(),
        CQ_COMMIT_TIME=now_ms,
        CQ_HIGHEST_WRITE_ID=compacted.highest_write_id,
        CQ_HADOOP_JOB_ID=None,
        CQ_ERROR_MESSAGE=append_message(row.CQ_ERROR_MESSAGE, compacted.message),
    )


# ── tables and partitions that come and go ───────────────────────────────────────────────────


def rename(connection: Connection, name: TableName, new_name: TableName) -> None:
    """Change a table's name in the rows of the compaction queue and its history. The queue's rows
    of directories of dropped tables (``cleanups``) keep the old name."""
    for table, prefix in _TABLES:
        connection.execute(
            update(table)
            .where(is_of_table(table, prefix, name), *_no_cleanup(table))
            .values({f"{prefix}_DATABASE": new_name.database, f"{prefix}_TABLE": new_name.name})
        )


def forget_table(connection: Connection, name: TableName) -> None:
    """Delete the compactions of a dropped table from the queue and the history, so that a new table
    of that name has no failures. The queue's directories of dropped tables (``cleanups``) stay.

    A worker that has one of these entries gets COMPACTION_LOST when it commits.
    """
    for table, prefix in _TABLES:
        connection.execute(
            delete(table).where(is_of_table(table, prefix, name), *_no_cleanup(table))
        )


def forget_partition(connection: Connection, name: TableName, partition: str) -> None:
    """Delete the compactions of a dropped partition from the queue and the history, and the
    partition's rows of COMPLETED_TXN_COMPONENTS."""
    for table, prefix in (*_TABLES, (COMPLETED_TXN_COMPONENTS, "CTC")):
        connection.execute(delete(table).where(is_about(table, prefix, name, partition)))


def _no_cleanup(table: SqlTable) -> list[ColumnElement[bool]]:
    """Return the conditions that leave out the directories of dropped tables: one for the queue,
    none for another table."""
    return [not_(cleanups.is_cleanup())] if table is COMPACTION_QUEUE else []


_TABLES = ((COMPACTION_QUEUE, "CQ"), (COMPLETED_COMPACTIONS, "CC"))
