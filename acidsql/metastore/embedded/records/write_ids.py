"""Write ids: one for each table and transaction, never used twice under one table name.

A write id is visible if its transaction has committed or if it has no row in TXN_TO_WRITE_ID. It is
hidden if its transaction is open or aborted. So the rows of aborted transactions are kept for ever,
those of committed transactions only until all snapshots see them (``housekeeping``).

**Names that are used again.** A writer may not know that its transaction was aborted. It may then
publish its directory late, perhaps into the directory of a new table of the same name. And a
cleaner that slept may delete, by name, a directory of the new table. Therefore a name keeps its
counter when its table is dropped or renamed. So does the place of a dropped table: the next table
in this place, whatever its name, gets the counter (``leave_write_ids``, ``take_over_write_ids``).
When a name gets a new table, the write ids that never committed move to DROPPED_WRITE_IDS. A table
of that name hides those of them that are below its TBLS.FIRST_WRITE_ID. That is the value of the
counter when the table was created, so no write id of the table itself is below it. (A table that
adopts an existing directory has FIRST_WRITE_ID 1, because all write ids in the directory are its
own.)

Source: Hive ``AllocateTableWriteIdsFunction``, ``GetValidWriteIdsForTableFunction``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    delete,
    insert,
    select,
    union,
    update,
)
from sqlalchemy import Table as SqlTable

from acidsql.acid.paths import normal, short_name
from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.metastore.embedded.database.schema import (
    DBS,
    DROPPED_WRITE_IDS,
    NEXT_WRITE_ID,
    TBLS,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
)
from acidsql.metastore.interface import TxnState

T2W, NWI, DWI, TC = (
    TXN_TO_WRITE_ID.c,
    NEXT_WRITE_ID.c,
    DROPPED_WRITE_IDS.c,
    TXN_COMPONENTS.c,
)


_PLACES = "(place)"  # stands for a database


def is_of_table(table: SqlTable, prefix: str, name: TableName) -> ColumnElement[bool]:
    """Make the condition that a row of an SQL table, whose columns begin with ``prefix``, is about
    the table ``name``."""
    return and_(
        table.c[f"{prefix}_DATABASE"] == name.database, table.c[f"{prefix}_TABLE"] == name.name
    )


def _is_of_bound_table(table: SqlTable, prefix: str) -> ColumnElement[bool]:
    """Make the condition that a row is of the table in the parameters ``database`` and ``name``,
    for queries that are built only once.

    Each statement asks for write ids, and building the query takes longer than running it.
    """
    return and_(
        table.c[f"{prefix}_DATABASE"] == bindparam("database"),
        table.c[f"{prefix}_TABLE"] == bindparam("name"),
    )


def _table_parameters(name: TableName, **parameters: int) -> dict[str, str | int]:
    """Return the parameters for ``_is_of_bound_table``, and more of them."""
    return {"database": name.database, "name": name.name, **parameters}


_NEXT = select(NWI.NWI_NEXT).where(_is_of_bound_table(NEXT_WRITE_ID, "NWI"))

# A write id that a snapshot does not see belongs to a young transaction, or to one that is aborted
# by now. This is a UNION, because an OR of both conditions would read every row of the table.
_OF_TABLE = select(T2W.T2W_WRITEID, T2W.T2W_TXNID).where(_is_of_bound_table(TXN_TO_WRITE_ID, "T2W"))
_UNSURE = union(
    _OF_TABLE.where(T2W.T2W_TXNID >= bindparam("oldest")),
    _OF_TABLE.where(
        T2W.T2W_TXNID.in_(select(TXNS.c.TXN_ID).where(TXNS.c.TXN_STATE == TxnState.ABORTED.value))
    ),
)

# Write ids of earlier tables of this name that the present table must hide.
_DROPPED = select(DWI.DWI_WRITEID).where(
    _is_of_bound_table(DROPPED_WRITE_IDS, "DWI"),
    DWI.DWI_WRITEID
    < select(TBLS.c.FIRST_WRITE_ID)
    .join(DBS)
    .where(DBS.c.NAME == bindparam("database"), TBLS.c.TBL_NAME == bindparam("name"))
    .scalar_subquery(),
)


def allocate(connection: Connection, txn_id: int, name: TableName) -> int:
    """Return the transaction's write id in the table. The first call uses up the table's next one,
    and writes it into the transaction's rows of TXN_COMPONENTS; later calls return the same."""
    existing = find(connection, txn_id, name)
    if existing is not None:
        return existing
    write_id = next_write_id(connection, name)
    _set_next_write_id(connection, name, write_id + 1)
    connection.execute(
        insert(TXN_TO_WRITE_ID).values(
            T2W_TXNID=txn_id,
            T2W_DATABASE=name.database,
            T2W_TABLE=name.name,
            T2W_WRITEID=write_id,
        )
    )
    connection.execute(
        update(TXN_COMPONENTS)
        .where(TC.TC_TXNID == txn_id, is_of_table(TXN_COMPONENTS, "TC", name))
        .values(TC_WRITEID=write_id)
    )
    return write_id


def find(connection: Connection, txn_id: int, name: TableName) -> int | None:
    """Return the transaction's write id in the table; None if it has none."""
    return connection.execute(
        select(T2W.T2W_WRITEID).where(
            T2W.T2W_TXNID == txn_id, is_of_table(TXN_TO_WRITE_ID, "T2W", name)
        )
    ).scalar()


def next_write_id(connection: Connection, name: TableName) -> int:
    """Return the write id that the next transaction will get in the table; it is not used up."""
    next_id = connection.execute(_NEXT, _table_parameters(name)).scalar()
    return 1 if next_id is None else int(next_id)


def valid_write_ids(
    connection: Connection, snapshot: ValidTxnList, name: TableName
) -> ValidWriteIdList:
    """Return the write ids of the table that the snapshot sees (hive-transactions.md §2.4), also
    those of its own transaction. Write ids of earlier tables of the name that never committed count
    as aborted."""
    last = next_write_id(connection, name) - 1
    unsure = _unseen_write_ids(connection, snapshot, name)
    mark = _high_water_mark(last, unsure, snapshot)
    aborted, open_ids = set(connection.execute(_DROPPED, _table_parameters(name)).scalars()), []
    aborted_txns = set(snapshot.aborted)
    for write_id, txn_id in sorted(unsure.items()):
        if write_id > mark:
            continue
        if txn_id in aborted_txns:
            aborted.add(write_id)
        elif not snapshot.is_valid(txn_id):
            open_ids.append(write_id)
    return ValidWriteIdList(mark, tuple(open_ids), tuple(sorted(aborted)), table=str(name))


def _unseen_write_ids(
    connection: Connection, snapshot: ValidTxnList, name: TableName
) -> dict[int, int]:
    """Return all write ids of a table that the snapshot possibly does not see (write id →
    transaction): those of aborted transactions, and of all from the lowest open one of the snapshot
    on."""
    oldest = min(snapshot.min_open, snapshot.high_water_mark + 1)
    rows = connection.execute(_UNSURE, _table_parameters(name, oldest=oldest))
    return {row.T2W_WRITEID: row.T2W_TXNID for row in rows}


def _high_water_mark(last: int, unsure: Mapping[int, int], snapshot: ValidTxnList) -> int:
    """Return the highest write id, from ``last`` downwards, whose transaction did not begin after
    the snapshot. ``unsure``: write id → transaction.

    Hive asks for the highest write id of a transaction that began before the snapshot. Both are
    the same number while all rows exist. But Hive's number would be too low after the housekeeper
    has deleted rows of such transactions.
    """
    while last in unsure and unsure[last] > snapshot.high_water_mark:
        last -= 1
    return last


# ── names that come and go ───────────────────────────────────────────────────────────────────


def begin_table(
    connection: Connection, name: TableName, first_write_id: int, txn_id: int | None = None
) -> int:
    """Prepare a name for a new table: hide what earlier tables of the name have left, and let write
    ids begin at ``first_write_id`` or above theirs.

    Return the new table's FIRST_WRITE_ID, below which it hides their write ids that never
    committed: the write id of ``txn_id`` if that has one; 1 for an adopted directory, as all write
    ids there are its own; otherwise its next write id.

    Args:
        connection: The connection of a store transaction that writes.
        name: The new table's name.
        first_write_id: 1, or the number after the highest write id of an adopted directory.
        txn_id: The transaction that has already written the new table's first rows.
    """
    own = None if txn_id is None else find(connection, txn_id, name)
    _retire_name(connection, name, own)
    if own is not None:
        return own
    next_id = max(next_write_id(connection, name), first_write_id)
    _set_next_write_id(connection, name, next_id)
    return 1 if first_write_id > 1 else next_id


def rename(connection: Connection, name: TableName, new_name: TableName) -> None:
    """Move the write ids of a table to a name that may have belonged to another table before.

    The table keeps its directory, and so its write ids. The old name keeps its counter and its
    write ids that never committed, because a later table may get both the name and the directory.
    """
    _retire_name(connection, new_name)
    _remember_dropped(connection, name)
    _remember_hidden(connection, new_name, _hidden_write_ids(connection, name))
    next_id = max(next_write_id(connection, name), next_write_id(connection, new_name))
    _set_next_write_id(connection, new_name, next_id)
    connection.execute(
        update(TXN_TO_WRITE_ID)
        .where(is_of_table(TXN_TO_WRITE_ID, "T2W", name))
        .values(T2W_DATABASE=new_name.database, T2W_TABLE=new_name.name)
    )


def _retire_name(connection: Connection, name: TableName, kept_write_id: int | None = None) -> None:
    """Delete the rows of TXN_TO_WRITE_ID that a dropped table has left under a name, except that of
    ``kept_write_id``. Write ids of open and aborted transactions are remembered, so that later
    tables of the name hide them."""
    _remember_dropped(connection, name, kept_write_id)
    is_of_name = [is_of_table(TXN_TO_WRITE_ID, "T2W", name)]
    if kept_write_id is not None:
        is_of_name.append(T2W.T2W_WRITEID != kept_write_id)
    connection.execute(delete(TXN_TO_WRITE_ID).where(*is_of_name))


def leave_write_ids(connection: Connection, name: TableName, location: str) -> None:
    """Copy the next write id of a dropped table, and the write ids that later tables must hide, to
    its location, for the next table there."""
    _hand_on_write_ids(connection, name, _name_of_place(location))


def take_over_write_ids(connection: Connection, name: TableName, location: str) -> None:
    """Let the write ids of a new table begin above those of dropped tables at its location or in a
    directory above it, and hide those of them that never committed."""
    places = [_name_of_place(location)]
    while location := location.rpartition("/")[0]:
        places.append(_name_of_place(location))
    query = select(NWI.NWI_TABLE).where(
        NWI.NWI_DATABASE == _PLACES, NWI.NWI_TABLE.in_([place.name for place in places])
    )
    known_places = set(connection.execute(query).scalars())
    for place in places:
        if place.name in known_places:
            _hand_on_write_ids(connection, place, name)


def _name_of_place(location: str) -> TableName:
    """Return the name under which a location has its next write id and hidden write ids. No table
    has this name."""
    return TableName(_PLACES, short_name(normal(location)))


def _hand_on_write_ids(connection: Connection, name: TableName, heir: TableName) -> None:
    """Let the name ``heir`` hide what ``name`` hides, and the write ids of ``name`` that never
    committed. The next write id of ``heir`` becomes the higher one of both. ``name`` keeps all of
    its own."""
    _remember_hidden(
        connection,
        heir,
        [*_hidden_write_ids(connection, name), *_uncommitted_write_ids(connection, name)],
    )
    next_id = max(next_write_id(connection, name), next_write_id(connection, heir))
    _set_next_write_id(connection, heir, next_id)


def _remember_dropped(
    connection: Connection, name: TableName, kept_write_id: int | None = None
) -> None:
    """Let later tables of a name hide the write ids, except ``kept_write_id``, that open and
    aborted transactions have under it."""
    _remember_hidden(connection, name, _uncommitted_write_ids(connection, name, kept_write_id))


def _uncommitted_write_ids(
    connection: Connection, name: TableName, kept_write_id: int | None = None
) -> Sequence[int]:
    """Return the write ids, except ``kept_write_id``, that open and aborted transactions have under
    a name."""
    uncommitted = (
        select(T2W.T2W_WRITEID)
        .join_from(TXN_TO_WRITE_ID, TXNS, T2W.T2W_TXNID == TXNS.c.TXN_ID)
        .where(
            is_of_table(TXN_TO_WRITE_ID, "T2W", name), TXNS.c.TXN_STATE != TxnState.COMMITTED.value
        )
    )
    if kept_write_id is not None:
        uncommitted = uncommitted.where(T2W.T2W_WRITEID != kept_write_id)
    return connection.execute(uncommitted).scalars().all()


def _hidden_write_ids(connection: Connection, name: TableName) -> Sequence[int]:
    """Read the write ids of earlier tables that later tables of a name must hide."""
    query = select(DWI.DWI_WRITEID).where(is_of_table(DROPPED_WRITE_IDS, "DWI", name))
    return connection.execute(query).scalars().all()


def _remember_hidden(connection: Connection, name: TableName, write_ids: Sequence[int]) -> None:
    """Insert write ids that later tables of a name must hide; known ones are skipped."""
    new = [
        {"DWI_DATABASE": name.database, "DWI_TABLE": name.name, "DWI_WRITEID": write_id}
        for write_id in sorted(set(write_ids) - set(_hidden_write_ids(connection, name)))
    ]
    if new:
        connection.execute(insert(DROPPED_WRITE_IDS), new)


def _set_next_write_id(connection: Connection, name: TableName, next_id: int) -> None:
    """Set the next write id of a name in NEXT_WRITE_ID, also if it has none yet."""
    condition = is_of_table(NEXT_WRITE_ID, "NWI", name)
    changed = connection.execute(update(NEXT_WRITE_ID).where(condition).values(NWI_NEXT=next_id))
    if changed.rowcount == 0:
        connection.execute(
            insert(NEXT_WRITE_ID).values(
                NWI_DATABASE=name.database, NWI_TABLE=name.name, NWI_NEXT=next_id
            )
        )
