"""WRITE_SET: what others committed since a transaction began, compared with what it changes.

The rules are in ``conflict_rules``. A rival that a snapshot does not see has committed after the
transaction began, since the snapshot was taken later: so its commit id, the highest number ever
issued at its commit, is at least the transaction's own number, and the index by table and commit
id finds it without reading the history.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, or_, select

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList
from acidsql.metastore import conflict_rules
from acidsql.metastore.conflict_rules import Change, Rival, rival_operations
from acidsql.metastore.embedded.schema import TXN_TO_WRITE_ID, TXNS, WRITE_SET
from acidsql.metastore.embedded.write_ids import of_table
from acidsql.metastore.interface import Operation, WriteConflict

WS, T2W, T = WRITE_SET.c, TXN_TO_WRITE_ID.c, TXNS.c


def find(
    connection: Connection, txn_id: int, snapshot: ValidTxnList, changed: Sequence[Change]
) -> list[WriteConflict]:
    """What others committed, unseen by the snapshot, that cannot be together with these changes."""
    if not changed:
        return []
    tables = {one.table_name for one in changed}
    operations = rival_operations(one.operation for one in changed)
    rows = _committed_since(connection, txn_id, tables, operations)
    return conflict_rules.conflicts(changed, _rivals(rows, snapshot))


def refuse(
    connection: Connection,
    txn_id: int,
    snapshot: ValidTxnList,
    changed: Sequence[Change],
    resolved: Collection[int],
) -> None:
    """Raise WriteConflictError if ``find`` finds a transaction that is not among ``resolved``."""
    found = find(connection, txn_id, snapshot, changed)
    left = [conflict for conflict in found if conflict.txn_id not in resolved]
    if left:
        raise conflict_rules.error(txn_id, left)


def _committed_since(
    connection: Connection,
    txn_id: int,
    tables: Collection[TableName],
    operations: Collection[Operation],
) -> Sequence[Row[Any]]:
    """Rows of WRITE_SET, each with its writer and with its write id if that is known."""
    same_write = and_(
        T2W.T2W_TXNID == WS.WS_TXNID,
        T2W.T2W_DATABASE == WS.WS_DATABASE,
        T2W.T2W_TABLE == WS.WS_TABLE,
    )
    found = (
        select(WRITE_SET, T2W.T2W_WRITEID, T.TXN_USER, T.TXN_HOST, T.TXN_AGENT_INFO)
        .outerjoin_from(WRITE_SET, TXN_TO_WRITE_ID, same_write)
        .outerjoin(TXNS, T.TXN_ID == WS.WS_TXNID)
        .where(
            or_(*(of_table(WRITE_SET, "WS", name) for name in tables)),
            WS.WS_COMMIT_ID >= txn_id,
            WS.WS_TXNID != txn_id,
            WS.WS_OPERATION_TYPE.in_(sorted(operation.value for operation in operations)),
        )
    )
    return connection.execute(found).all()


def _rivals(rows: Sequence[Row[Any]], snapshot: ValidTxnList) -> Iterator[Rival]:
    """The transactions of these rows that the snapshot does not see."""
    by_txn: dict[int, list[Row[Any]]] = {}
    for row in rows:
        by_txn.setdefault(row.WS_TXNID, []).append(row)
    for txn_id, theirs in by_txn.items():
        if not snapshot.is_valid(txn_id):
            who = theirs[0]
            yield Rival(
                txn_id,
                who.TXN_USER or "",
                who.TXN_HOST or "",
                who.TXN_AGENT_INFO or "",
                [_change(row) for row in theirs],
            )


def _change(row: Row[Any]) -> Change:
    return Change(
        row.WS_DATABASE,
        row.WS_TABLE,
        row.WS_PARTITION,
        Operation(row.WS_OPERATION_TYPE),
        row.T2W_WRITEID,
    )
