"""Changes of the catalog that open transactions may not see: rows of WRITE_SET.

They are in WRITE_SET, as are changes of rows, because a transaction asks the same question about
both: which changes came from transactions that my snapshot does not see? They have letters of their
own. The store transaction that changes the catalog also notes the change, under the number of the
transaction that holds the table's EXCLUSIVE lock. So the changes of one name are in the order of
their transactions.

A change of the catalog stays even if its transaction is aborted afterwards. So a snapshot sees the
changes of all transactions that had ended before it, whether they committed or aborted. A snapshot
may also be taken after a change, but before the end of the change's transaction. Then the change
counts as unseen: the reader gets an error that was not necessary, but never misses a change.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, insert, select

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList
from acidsql.metastore.catalog_history import CatalogChange
from acidsql.metastore.embedded.database.schema import NEXT_TXN_ID, TXNS, WRITE_SET
from acidsql.metastore.embedded.records.write_ids import is_of_table

_TABLE, _PARTITION = "t", "p"  # none of ``Operation``'s letters

WS, T = WRITE_SET.c, TXNS.c


def is_catalog_change() -> ColumnElement[bool]:
    """Make the condition that a row of WRITE_SET is a change of the catalog."""
    return WS.WS_OPERATION_TYPE.in_([_TABLE, _PARTITION])


def note(
    connection: Connection, txn_id: int | None, name: TableName, partition: str | None = None
) -> None:
    """Insert a change of the catalog into WRITE_SET, so that transactions with older snapshots find
    it.

    Args:
        connection: The connection of the store transaction that makes the change.
        txn_id: The transaction that makes the change. None: no other session uses the store, so
            nothing is noted.
        name: The table.
        partition: The partition that was dropped. None: the name means something else now.
    """
    if txn_id is None:
        return
    highest = connection.execute(select(NEXT_TXN_ID.c.NTXN_NEXT)).scalar_one() - 1
    connection.execute(
        insert(WRITE_SET).values(
            WS_DATABASE=name.database,
            WS_TABLE=name.name,
            WS_PARTITION=partition,
            WS_TXNID=txn_id,
            WS_COMMIT_ID=highest,
            WS_OPERATION_TYPE=_TABLE if partition is None else _PARTITION,
        )
    )


def find(
    connection: Connection, txn_id: int, snapshot: ValidTxnList, name: TableName
) -> list[CatalogChange]:
    """Return the changes of the catalog that others made to a name and that a snapshot does not
    see, oldest first. The partition is None if the name means something else now; user, host and
    statement are "" if the transaction is forgotten.

    A change that the snapshot does not see came after the transaction began. So the change's commit
    id, the highest transaction number at that time, is at least the transaction's own number.
    """
    query = (
        select(WS.WS_TXNID, WS.WS_PARTITION, T.TXN_USER, T.TXN_HOST, T.TXN_AGENT_INFO)
        .outerjoin_from(WRITE_SET, TXNS, T.TXN_ID == WS.WS_TXNID)
        .where(
            is_of_table(WRITE_SET, "WS", name),
            WS.WS_COMMIT_ID >= txn_id,
            WS.WS_TXNID != txn_id,
            is_catalog_change(),
        )
        .order_by(WS.WS_COMMIT_ID, WS.WS_TXNID)
    )
    return [
        CatalogChange(
            row.WS_TXNID,
            row.WS_PARTITION,
            row.TXN_USER or "",
            row.TXN_HOST or "",
            row.TXN_AGENT_INFO or "",
        )
        for row in connection.execute(query)
        if row.WS_TXNID > snapshot.high_water_mark or row.WS_TXNID in snapshot.open
    ]
