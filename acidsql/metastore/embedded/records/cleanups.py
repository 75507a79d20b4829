"""Directories of dropped tables: entries of COMPACTION_QUEUE that have a location.

As in Hive 4's soft delete, such an entry is *ready for cleaning* from the start, and its location
is a property. CQ_NEXT_TXN_ID is NULL, because no compaction has ended. This tells the entry from a
compaction: a compaction that somebody requested with a property ``location`` deletes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select

from acidsql.acid.table import TableName
from acidsql.metastore import stringable_map
from acidsql.metastore.compaction_queue import CompactionState, CompactionType
from acidsql.metastore.embedded.database.engine import next_number
from acidsql.metastore.embedded.database.schema import COMPACTION_QUEUE, NEXT_COMPACTION_QUEUE_ID
from acidsql.metastore.owners import PendingCleanup

CQ = COMPACTION_QUEUE.c
_LOCATION, _UNTIL = "location", "until"


def is_cleanup() -> ColumnElement[bool]:
    """Make the condition that an entry of the queue is a directory to delete."""
    return and_(
        CQ.CQ_STATE == CompactionState.READY_FOR_CLEANING.value, CQ.CQ_NEXT_TXN_ID.is_(None)
    )


def enqueue(
    connection: Connection, name: TableName, location: str, now_ms: int, until: int = 0
) -> PendingCleanup:
    """Insert a directory that is to be deleted into the compaction queue, and return the entry.
    ``until``: it stays until all transactions up to this number have ended; 0: it may be deleted
    now."""
    number = next_number(connection, NEXT_COMPACTION_QUEUE_ID)
    properties = {_LOCATION: location} | ({_UNTIL: str(until)} if until else {})
    connection.execute(
        insert(COMPACTION_QUEUE).values(
            CQ_ID=number,
            CQ_DATABASE=name.database,
            CQ_TABLE=name.name,
            CQ_STATE=CompactionState.READY_FOR_CLEANING.value,
            CQ_TYPE=CompactionType.MAJOR.value,
            CQ_TBLPROPERTIES=stringable_map.encode(properties),
            CQ_ENQUEUE_TIME=now_ms,
        )
    )
    return PendingCleanup(number, name, location, until)


def pending(connection: Connection) -> list[PendingCleanup]:
    """Return the queued directories, oldest first."""
    query = select(CQ.CQ_ID, CQ.CQ_DATABASE, CQ.CQ_TABLE, CQ.CQ_TBLPROPERTIES)
    rows = connection.execute(query.where(is_cleanup()).order_by(CQ.CQ_ID))
    return [
        _pending(number, TableName(database, table), stringable_map.decode(properties))
        for number, database, table, properties in rows
    ]


def _pending(number: int, table: TableName, properties: Mapping[str, str]) -> PendingCleanup:
    """Make the PendingCleanup of an entry of the queue."""
    return PendingCleanup(number, table, properties[_LOCATION], int(properties.get(_UNTIL, 0)))


def remove(connection: Connection, cleanup_id: int) -> None:
    """Take a directory from the queue; an entry that is gone is no error."""
    connection.execute(delete(COMPACTION_QUEUE).where(CQ.CQ_ID == cleanup_id, is_cleanup()))
