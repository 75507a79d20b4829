"""Directories of dropped tables: entries of COMPACTION_QUEUE that have a location.

As in Hive 4's soft delete, such an entry is *ready for cleaning* from the start, and its
location is a property in the text form of Hive's ``StringableMap``.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from acidsql.acid.table import TableName
from acidsql.metastore.embedded.engine import next_number
from acidsql.metastore.embedded.schema import (
    COMPACTION_QUEUE,
    MAJOR,
    NEXT_COMPACTION_QUEUE_ID,
    READY_FOR_CLEANING,
)
from acidsql.metastore.interface import PendingCleanup

CQ = COMPACTION_QUEUE.c
_BEFORE_LOCATION = "1:8:location"  # one entry; a key of eight characters; then the value


def enqueue(connection: Connection, name: TableName, location: str, now_ms: int) -> PendingCleanup:
    """Queue a directory for deletion."""
    number = next_number(connection, NEXT_COMPACTION_QUEUE_ID)
    connection.execute(
        insert(COMPACTION_QUEUE).values(
            CQ_ID=number,
            CQ_DATABASE=name.database,
            CQ_TABLE=name.name,
            CQ_STATE=READY_FOR_CLEANING,
            CQ_TYPE=MAJOR,
            CQ_TBLPROPERTIES=f"{_BEFORE_LOCATION}{len(location)}:{location}",
            CQ_ENQUEUE_TIME=now_ms,
        )
    )
    return PendingCleanup(number, name, location)


def pending(connection: Connection) -> list[PendingCleanup]:
    """What is queued, oldest first."""
    found = (
        select(CQ.CQ_ID, CQ.CQ_DATABASE, CQ.CQ_TABLE, CQ.CQ_TBLPROPERTIES)
        .where(CQ.CQ_STATE == READY_FOR_CLEANING, CQ.CQ_TBLPROPERTIES.startswith(_BEFORE_LOCATION))
        .order_by(CQ.CQ_ID)
    )
    return [
        PendingCleanup(number, TableName(database, table), _location(properties))
        for number, database, table, properties in connection.execute(found)
    ]


def remove(connection: Connection, cleanup_id: int) -> None:
    """Take one from the queue; one that is gone is passed over."""
    connection.execute(delete(COMPACTION_QUEUE).where(CQ.CQ_ID == cleanup_id))


def _location(properties: str) -> str:
    _, _, location = properties.removeprefix(_BEFORE_LOCATION).partition(":")
    return location
