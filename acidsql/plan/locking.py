"""Which locks a statement takes: Hive 4's table (``AcidUtils.makeLockComponents``).

=====================  ============  =========
statement              target        operation
=====================  ============  =========
INSERT INTO            SHARED_READ   INSERT
UPDATE, MERGE          EXCL_WRITE    UPDATE
DELETE                 EXCL_WRITE    DELETE
INSERT OVERWRITE,      EXCLUSIVE     UPDATE
TRUNCATE
DROP, RENAME, ALTER    EXCLUSIVE     none
read by a statement    SHARED_READ   SELECT
=====================  ============  =========

A SELECT alone takes none: its snapshot and the files it reads stay as they are (I2).
"""

from __future__ import annotations

from collections.abc import Iterable

from acidsql.acid.table import TableName
from acidsql.metastore.interface import LockComponent, LockType, Operation
from acidsql.plan.event_query import EventQuery
from acidsql.sql.statements import Delete, Dml


def locks_of(
    statement: Dml, queries: Iterable[EventQuery], reads: Iterable[TableName]
) -> list[LockComponent]:
    """The locks of a statement that changes rows: its targets', then those of what it reads."""
    strongest = {name: read_lock(name) for name in reads}
    for query in queries:
        name = query.table.name
        wanted = _target(statement, query)
        held = strongest.get(name)
        if held is None or _STRENGTH[wanted.lock_type] >= _STRENGTH[held.lock_type]:
            strongest[name] = wanted
    return list(strongest.values())


def read_lock(name: TableName) -> LockComponent:
    """The lock of a table that a statement reads: it keeps the table from being dropped."""
    return LockComponent(LockType.SHARED_READ, name.database, name.name, operation=Operation.SELECT)


def exclusive(name: TableName) -> LockComponent:
    """The lock of a statement that changes what a table is."""
    return LockComponent(LockType.EXCLUSIVE, name.database, name.name)


def exclusive_database(name: str) -> LockComponent:
    """The lock of a statement that drops a database with all that is in it."""
    return LockComponent(LockType.EXCLUSIVE, name)


def overwriting(name: TableName) -> LockComponent:
    """The lock of a statement that replaces a table's rows."""
    return LockComponent(LockType.EXCLUSIVE, name.database, name.name, operation=Operation.UPDATE)


_STRENGTH = {
    LockType.SHARED_READ: 0,
    LockType.SHARED_WRITE: 1,
    LockType.EXCL_WRITE: 2,
    LockType.EXCLUSIVE: 3,
}


def _target(statement: Dml, query: EventQuery) -> LockComponent:
    name = query.table.name
    if query.overwrite:
        return overwriting(name)
    if not query.deletes:
        kind, operation = LockType.SHARED_READ, Operation.INSERT
    else:
        kind = LockType.EXCL_WRITE
        operation = Operation.DELETE if isinstance(statement, Delete) else Operation.UPDATE
    return LockComponent(kind, name.database, name.name, operation=operation)
