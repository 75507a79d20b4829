"""TXN_COMPONENTS: what a transaction changes; at its end COMPLETED_TXN_COMPONENTS and WRITE_SET.

``lock`` records the changes before the rows are known, so mostly for whole tables. The commit knows
the partitions that were written to, and narrows the changes to them.

Source: Hive ``EnqueueLockFunction``, ``CommitTxnFunction``, ``AddDynamicPartitionsCommand``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, delete, insert, select

from acidsql.acid.layout import partition_name
from acidsql.acid.table import Partition, TableName
from acidsql.metastore.conflict_rules import RECORDED, RecordedChange
from acidsql.metastore.embedded.database.schema import (
    COMPLETED_TXN_COMPONENTS,
    DBS,
    NEXT_TXN_ID,
    PARTITION_KEYS,
    TBLS,
    TXN_COMPONENTS,
    WRITE_SET,
)
from acidsql.metastore.embedded.records import write_ids
from acidsql.metastore.interface import LockComponent, Operation

TC = TXN_COMPONENTS.c
_CHANGES_OLD_ROWS = frozenset({Operation.UPDATE, Operation.DELETE, Operation.OVERWRITE})


def recorded_changes(connection: Connection, txn_id: int) -> list[RecordedChange]:
    """Return the changes of tables that the transaction has recorded, with its write ids."""
    query = select(
        TC.TC_DATABASE, TC.TC_TABLE, TC.TC_PARTITION, TC.TC_OPERATION_TYPE, TC.TC_WRITEID
    ).where(TC.TC_TXNID == txn_id, TC.TC_TABLE.is_not(None))
    return [
        RecordedChange(database, table, partition, Operation(letter), write_id)
        for database, table, partition, letter, write_id in connection.execute(query)
    ]


def component_changes(
    connection: Connection, txn_id: int, components: Iterable[LockComponent]
) -> list[RecordedChange]:
    """Return the changes of these components, each once, with the transaction's write ids (None
    where it has none yet). Nothing is recorded. SELECT, NO_TXN and whole databases are no
    changes."""
    return _changes_with_write_ids(connection, txn_id, _recordable_changes(components))


def record_changes(
    connection: Connection, txn_id: int, components: Iterable[LockComponent]
) -> None:
    """Record the changes of these components, except those that are recorded already. SELECT,
    NO_TXN and whole databases are no changes."""
    recordable = _recordable_changes(components)
    if recordable:
        earlier_changes = recorded_changes(connection, txn_id)
        without_write_ids = {
            dataclasses.replace(change, write_id=None) for change in earlier_changes
        }
        new = [change for change in recordable if change not in without_write_ids]
        _insert_changes(connection, txn_id, _changes_with_write_ids(connection, txn_id, new))


def replace_recorded(
    connection: Connection, txn_id: int, components: Iterable[LockComponent]
) -> None:
    """Replace all changes that the transaction has recorded by those of these components."""
    _forget_changes(connection, txn_id)
    _insert_changes(connection, txn_id, component_changes(connection, txn_id, components))


def _recordable_changes(components: Iterable[LockComponent]) -> list[RecordedChange]:
    """Return the changes of these components, each once, without write ids; not SELECT, NO_TXN and
    whole databases."""
    changes = (
        RecordedChange(
            component.database, component.table, component.partition, component.operation
        )
        for component in components
        if component.operation in RECORDED and component.table is not None
    )
    return list(dict.fromkeys(changes))


def _changes_with_write_ids(
    connection: Connection, txn_id: int, changed: Iterable[RecordedChange]
) -> list[RecordedChange]:
    """Return the changes with the transaction's write id in each table; None where it has none
    yet."""
    write_ids_by_table: dict[TableName, int | None] = {}
    completed = []
    for change in changed:
        name = change.table_name
        if name not in write_ids_by_table:
            write_ids_by_table[name] = write_ids.find(connection, txn_id, name)
        completed.append(dataclasses.replace(change, write_id=write_ids_by_table[name]))
    return completed


def narrow_to_partitions(
    connection: Connection,
    changed: Iterable[RecordedChange],
    written: Mapping[TableName, Sequence[Partition]],
) -> list[RecordedChange]:
    """Return the changes, each once. A change of a whole table in ``written`` becomes one change
    for each partition that ``written`` has of the table, so none if it has none; all others stay as
    they are."""
    narrowed_changes: list[RecordedChange] = []
    names: dict[TableName, list[str]] = {}
    for change in changed:
        name = change.table_name
        if change.partition is not None or name not in written:
            narrowed_changes.append(change)
            continue
        if name not in names:
            names[name] = _partition_names(connection, name, written[name])
        narrowed_changes += [
            dataclasses.replace(change, partition=partition) for partition in names[name]
        ]
    return list(dict.fromkeys(narrowed_changes))


def complete(connection: Connection, txn_id: int, changed: Sequence[RecordedChange]) -> None:
    """Replace a committing transaction's rows of TXN_COMPONENTS by rows for the compactor
    (COMPLETED_TXN_COMPONENTS) and for the conflict checks of others (WRITE_SET), which have
    ``changed``. Without changes nothing is inserted."""
    if changed:  # after narrowing there may be none: the statement wrote to no partition
        _note_completed(connection, txn_id, changed)
        _note_write_set(connection, txn_id, changed)
    _forget_changes(connection, txn_id)


def _note_completed(connection: Connection, txn_id: int, changed: Sequence[RecordedChange]) -> None:
    """Insert the changes into COMPLETED_TXN_COMPONENTS, for the compactor, one row for each table
    or partition. All have the same flag: whether any of them updated, deleted or overwrote rows."""
    # One flag for the whole transaction, as in Hive.
    flag = "Y" if any(change.operation in _CHANGES_OLD_ROWS for change in changed) else "N"
    places = dict.fromkeys(
        (change.database, change.table, change.partition, change.write_id) for change in changed
    )
    connection.execute(
        insert(COMPLETED_TXN_COMPONENTS),
        [
            {
                "CTC_TXNID": txn_id,
                "CTC_DATABASE": database,
                "CTC_TABLE": table,
                "CTC_PARTITION": partition,
                "CTC_WRITEID": write_id,
                "CTC_UPDATE_DELETE": flag,
            }
            for database, table, partition, write_id in places
        ],
    )


def _note_write_set(connection: Connection, txn_id: int, changed: Sequence[RecordedChange]) -> None:
    """Insert the changes into WRITE_SET, for the conflict checks of others. The commit id of all is
    the highest transaction number so far."""
    # The highest transaction number so far. A transaction with a number up to it may not see this
    # commit; a transaction with a higher number sees it.
    commit_id = connection.execute(select(NEXT_TXN_ID.c.NTXN_NEXT)).scalar_one() - 1
    rows = [
        {
            "WS_DATABASE": change.database,
            "WS_TABLE": change.table,
            "WS_PARTITION": change.partition,
            "WS_TXNID": txn_id,
            "WS_COMMIT_ID": commit_id,
            "WS_OPERATION_TYPE": change.operation.value,
        }
        for change in changed
    ]
    connection.execute(insert(WRITE_SET), rows)


def _partition_names(
    connection: Connection, name: TableName, partitions: Sequence[Partition]
) -> list[str]:
    """Return the names ``p1=a/p2=1`` of these partitions, in the same order; the columns' names are
    read from the catalog."""
    keys = (
        select(PARTITION_KEYS.c.PKEY_NAME)
        .join_from(PARTITION_KEYS, TBLS)
        .join(DBS)
        .where(DBS.c.NAME == name.database, TBLS.c.TBL_NAME == name.name)
        .order_by(PARTITION_KEYS.c.INTEGER_IDX)
    )
    columns = connection.execute(keys).scalars().all()
    return [partition_name(columns, partition.values) for partition in partitions]


def _insert_changes(connection: Connection, txn_id: int, changed: Sequence[RecordedChange]) -> None:
    """Insert changes into TXN_COMPONENTS, as changes of the transaction ``txn_id``. Without changes
    do nothing."""
    rows = [
        {
            "TC_TXNID": txn_id,
            "TC_DATABASE": change.database,
            "TC_TABLE": change.table,
            "TC_PARTITION": change.partition,
            "TC_OPERATION_TYPE": change.operation.value,
            "TC_WRITEID": change.write_id,
        }
        for change in changed
    ]
    if rows:
        connection.execute(insert(TXN_COMPONENTS), rows)


def _forget_changes(connection: Connection, txn_id: int) -> None:
    """Delete all rows of the transaction in TXN_COMPONENTS."""
    connection.execute(delete(TXN_COMPONENTS).where(TC.TC_TXNID == txn_id))
