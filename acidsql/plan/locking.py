"""The locks that a statement takes, as in Hive 4 (``AcidUtils.makeLockComponents``).

=====================  ============  =========
statement              target        operation
=====================  ============  =========
INSERT INTO, LOAD DATA SHARED_READ   INSERT
UPDATE                 EXCL_WRITE    UPDATE
DELETE                 EXCL_WRITE    DELETE
MERGE                  EXCL_WRITE    UPDATE, and INSERT if it inserts
INSERT … REPLACE       EXCL_WRITE    UPDATE and INSERT
AUTO CDC               EXCL_WRITE    UPDATE and INSERT, also of the state table
RESTORE, REVERT        EXCL_WRITE    UPDATE and INSERT
INSERT OVERWRITE,      EXCL_WRITE    OVERWRITE
LOAD … OVERWRITE,
TRUNCATE
DROP, RENAME, ALTER    EXCLUSIVE     none
read by a statement    SHARED_READ   SELECT
=====================  ============  =========

The lock is on partitions if the statement names them (by PARTITION with values, or by terms of
the WHERE of UPDATE or DELETE that only partition columns decide) and they are no more than
``PARTITION_LOCKS_MAX``. Otherwise, and for every MERGE, the lock is on the table. COMMIT tells the
store which partitions really changed. A SELECT takes no lock: its snapshot and the files that it
reads stay as they are (I2).

With ``hive.txn.xlock.write=false``, UPDATE, DELETE, MERGE and INSERT … REPLACE take SHARED_WRITE
instead of EXCL_WRITE. With ``acidsql.conflict.detection=row``, so do UPDATE, DELETE, and MERGE
without INSERT.
With ``hive.txn.xlock.iow=true``, overwriting statements and TRUNCATE take EXCLUSIVE. A MERGE that
only inserts takes the lock of a MERGE that updates, as with Hive's ``hive.txn.xlock.mergeinsert``:
so two of them cannot both insert the same missing key. AUTO CDC, RESTORE and REVERT always take
EXCL_WRITE.

An event query is the query of a statement, whose rows are insert and delete events of its target.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from acidsql.acid.cdc import target_name
from acidsql.acid.paths import short_name
from acidsql.acid.table import TableName
from acidsql.metastore.interface import LockComponent, LockType, Operation
from acidsql.plan.rows.event_query import EventQuery
from acidsql.settings import Settings
from acidsql.sql.parsed.statements import (
    Action,
    AutoCdc,
    Delete,
    Dml,
    Insert,
    InsertAction,
    Merge,
    Undo,
)
from acidsql.storage.event_records import WriteMode

# The partitions that a query can change, as far as its text tells; None means any.
PossiblePartitions = Collection[str] | None
# For more partitions the whole table is locked: each lock is a row in the store, and is compared
# with all others. COMMIT still compares changes by partition.
PARTITION_LOCKS_MAX = 200


def statement_locks(
    statement: Dml | AutoCdc | Undo,
    targets: Iterable[tuple[EventQuery, PossiblePartitions]],
    reads: Iterable[TableName],
    settings: Settings,
) -> list[LockComponent]:
    """Return the locks of a statement that changes rows: those of `_target_locks` on each target,
    in order, then a `read_lock` for each of ``reads``. A table that is both gets both.

    ``targets``: each event query with the names of the partitions that it may touch; None: any.
    """
    locks = [
        lock
        for query, possible_partitions in targets
        for lock in _target_locks(statement, query, possible_partitions, settings)
    ]
    return [*locks, *map(read_lock, reads)]


def read_lock(name: TableName) -> LockComponent:
    """Return the SHARED_READ lock (operation SELECT) on a table that a statement reads. The table
    cannot be dropped meanwhile."""
    return LockComponent(LockType.SHARED_READ, name.database, name.name, operation=Operation.SELECT)


def reserve_lock(name: TableName) -> LockComponent:
    """Return the EXCL_WRITE lock that reserves a table for changes by a later statement of the
    transaction. Its operation is SELECT."""
    return LockComponent(LockType.EXCL_WRITE, name.database, name.name, operation=Operation.SELECT)


def exclusive_lock(name: TableName, operation: Operation = Operation.NO_TXN) -> LockComponent:
    """Return the EXCLUSIVE lock on a table, of a statement that creates, alters, renames or drops
    it."""
    return LockComponent(LockType.EXCLUSIVE, name.database, name.name, operation=operation)


def drop_locks(name: TableName) -> list[LockComponent]:
    """Return the EXCLUSIVE locks of a statement that drops or renames a table: first the table's.
    If its name ends like that of a table which AUTO CDC makes beside a target (state or pending
    table), the target's follows, because its properties may name the table (``acid.cdc``). No table
    is looked up, so the target need not exist."""
    target = target_name(name)
    return [exclusive_lock(table_name) for table_name in (name, target) if table_name is not None]


def database_lock(name: str) -> LockComponent:
    """Return the EXCLUSIVE lock of a statement that drops a database and all its tables."""
    return LockComponent(LockType.EXCLUSIVE, name)


def insert_locks(
    name: TableName, possible_partitions: PossiblePartitions = None
) -> list[LockComponent]:
    """Return the locks (SHARED_READ, INSERT) of a statement that adds rows to a table or to some
    partitions. If these are None (any) or more than `PARTITION_LOCKS_MAX`, the whole table is
    locked; for no partitions there is no lock."""
    return _components(name, LockType.SHARED_READ, [Operation.INSERT], possible_partitions)


def overwrite_locks(
    name: TableName, settings: Settings, possible_partitions: PossiblePartitions = None
) -> list[LockComponent]:
    """Return the locks (operation OVERWRITE) of a statement that replaces the rows of a table or of
    some partitions: EXCLUSIVE with ``hive.txn.xlock.iow``, else EXCL_WRITE. If the partitions are
    None (any) or more than `PARTITION_LOCKS_MAX`, the whole table is locked; for no partitions
    there is no lock."""
    kind = LockType.EXCLUSIVE if settings.xlock_iow else LockType.EXCL_WRITE
    return _components(name, kind, [Operation.OVERWRITE], possible_partitions)


def _components(
    name: TableName,
    lock_type: LockType,
    operations: Iterable[Operation],
    possible_partitions: PossiblePartitions,
) -> list[LockComponent]:
    """Return a lock component for each operation on each of the possible partitions. The component
    is on the whole table if the partitions are None (any) or more than `PARTITION_LOCKS_MAX`, and
    for a partition named "". For no partitions return []."""
    are_few = possible_partitions is not None and len(possible_partitions) <= PARTITION_LOCKS_MAX
    return [
        LockComponent(lock_type, name.database, name.name, partition or None, operation)
        for operation in operations
        for partition in (
            possible_partitions if possible_partitions is not None and are_few else [None]
        )
    ]


def _target_locks(
    statement: Dml | AutoCdc | Undo,
    query: EventQuery,
    possible_partitions: PossiblePartitions,
    settings: Settings,
) -> list[LockComponent]:
    """Return the locks on one target, by partition if these are known and few:

    INSERT OVERWRITE    those of `overwrite_locks`
    AUTO CDC, undo      EXCL_WRITE for INSERT, and again for UPDATE
    inserts alone       SHARED_READ for INSERT
    DELETE              `_change_lock_type` for DELETE
    UPDATE, MERGE       `_change_lock_type` for UPDATE; before it also for INSERT, if a MERGE has
    INSERT … REPLACE    an INSERT clause, and for INSERT … REPLACE
    """
    name = query.table.name
    if query.mode is WriteMode.OVERWRITE:
        return overwrite_locks(name, settings, possible_partitions)
    if isinstance(statement, AutoCdc | Undo):
        operations = [Operation.INSERT, Operation.UPDATE]
        return _components(name, LockType.EXCL_WRITE, operations, possible_partitions)
    inserts = isinstance(statement, Insert) or _has_merge_insert(statement)
    deletes = query.mode.has_deletes
    operations = [Operation.INSERT] if inserts or not deletes else []
    if deletes:
        operations.append(Operation.DELETE if isinstance(statement, Delete) else Operation.UPDATE)
    kind = _change_lock_type(inserts, settings) if deletes else LockType.SHARED_READ
    return _components(name, kind, operations, possible_partitions)


def _change_lock_type(is_merge_with_insert: bool, settings: Settings) -> LockType:
    """Return the lock type of a statement that changes rows: SHARED_WRITE with
    ``hive.txn.xlock.write=false``, or if conflicts are found by row and the statement is neither
    INSERT … REPLACE nor a MERGE with an INSERT clause (``is_merge_with_insert``); else
    EXCL_WRITE."""
    # Two MERGEs may both find a key missing and both insert it. Conflicts by row are found by
    # delete events, and an insert has none.
    if settings.xlock_write and (is_merge_with_insert or not settings.conflicts_by_row):
        return LockType.EXCL_WRITE
    return LockType.SHARED_WRITE


def _has_merge_insert(statement: Dml) -> bool:
    """Whether the statement is a MERGE with an INSERT clause."""
    return isinstance(statement, Merge) and any(
        isinstance(clause.action, InsertAction) or clause.action is Action.INSERT_ALL
        for clause in statement.clauses
    )


def load_locks(directory: str) -> list[LockComponent]:
    """Return the locks of a statement that takes a directory's files into a table: first an
    EXCLUSIVE one on the directory, then a SHARED_READ one on each directory above, from the
    innermost to the one below ``/``, so that no other statement takes one of them as a whole. A
    directory is locked as a table of the database ``(files)``, by the `short_name` of its path.

    Args:
        directory: The directory's real path.
    """
    locks = [LockComponent(LockType.EXCLUSIVE, "(files)", short_name(directory))]
    while (directory := directory.rpartition("/")[0]).strip("/"):
        locks.append(LockComponent(LockType.SHARED_READ, "(files)", short_name(directory)))
    return locks
