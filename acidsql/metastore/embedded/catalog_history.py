"""Changes of the catalog that open transactions may not see: rows of WRITE_SET.

They lie beside what transactions have written, because a snapshot asks the same question of both:
what was committed by somebody whom it does not see? They have letters of their own. A change is
noted in the store transaction that makes it, under the number of the transaction that holds the
table's EXCLUSIVE lock. So the changes of one name follow one another as their transactions do.

A change stays even if its transaction is aborted afterwards. So a snapshot sees the changes of all
transactions that had ended by then, in whatever way. One that was taken after a change, but before
the end of its transaction, takes the change for unseen, and so its reader is told too much, never
too little.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, insert, select

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList
from acidsql.metastore.catalog_history import CatalogChange
from acidsql.metastore.embedded.schema import NEXT_TXN_ID, TXNS, WRITE_SET
from acidsql.metastore.embedded.write_ids import of_table

_TABLE, _PARTITION = "t", "p"  # none of ``Operation``'s letters

WS, T = WRITE_SET.c, TXNS.c


def is_catalog_change() -> ColumnElement[bool]:
    """The condition that a row of WRITE_SET is one of these."""
    return WS.WS_OPERATION_TYPE.in_([_TABLE, _PARTITION])


def note(
    connection: Connection, txn_id: int | None, name: TableName, partition: str | None = None
) -> None:
    """Remember a change.

    Args:
        connection: In the store transaction that makes it.
        txn_id: The transaction that makes it; None: nobody else is there, and nobody will ask.
        name: The table.
        partition: The one that is gone; None: the name means something else.
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
    """See ``CatalogHistory.catalog_changes``.

    A change that the snapshot does not see came after the transaction had begun, so the highest
    number that was issued by then is at least the transaction's own.
    """
    found = (
        select(WS.WS_TXNID, WS.WS_PARTITION, T.TXN_USER, T.TXN_HOST, T.TXN_AGENT_INFO)
        .outerjoin_from(WRITE_SET, TXNS, T.TXN_ID == WS.WS_TXNID)
        .where(
            of_table(WRITE_SET, "WS", name),
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
        for row in connection.execute(found)
        if row.WS_TXNID > snapshot.high_water_mark or row.WS_TXNID in snapshot.open
    ]
