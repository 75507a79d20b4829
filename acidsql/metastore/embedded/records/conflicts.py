"""Compares a transaction's changes with others' commits since it began, which are in WRITE_SET.

``conflict_rules`` has the rules. A rival that the snapshot does not see committed after the
transaction began, because the transaction took its snapshot later than that. A rival's commit id is
the highest transaction number at its commit, so it is at least the transaction's own number. The
index by table and commit id therefore finds rivals without a scan of all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, or_, select

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList
from acidsql.metastore import conflict_rules
from acidsql.metastore.conflict_rules import RecordedChange, Rival, rival_operations
from acidsql.metastore.embedded.database.schema import TXN_TO_WRITE_ID, TXNS, WRITE_SET
from acidsql.metastore.embedded.records.write_ids import is_of_table
from acidsql.metastore.interface import Operation, WriteConflict

WS, T2W, T = WRITE_SET.c, TXN_TO_WRITE_ID.c, TXNS.c


def find(
    connection: Connection, txn_id: int, snapshot: ValidTxnList, changed: Sequence[RecordedChange]
) -> list[WriteConflict]:
    """Return the conflicts of these changes with others' commits that the snapshot does not see, in
    the order of the others' numbers."""
    if not changed:
        return []
    tables = {change.table_name for change in changed}
    operations = rival_operations(change.operation for change in changed)
    rows = _committed_since(connection, txn_id, tables, operations)
    return conflict_rules.find_conflicts(changed, _rivals(rows, snapshot))


def refuse(
    connection: Connection,
    txn_id: int,
    snapshot: ValidTxnList,
    changed: Sequence[RecordedChange],
    resolved: Collection[int],
) -> None:
    """Raise WriteConflictError if changes conflict with others' commits that the snapshot does not
    see, except those of the transactions in ``resolved``."""
    conflicts = find(connection, txn_id, snapshot, changed)
    unresolved = [conflict for conflict in conflicts if conflict.txn_id not in resolved]
    if unresolved:
        raise conflict_rules.conflict_error(txn_id, unresolved)


def _committed_since(
    connection: Connection,
    txn_id: int,
    tables: Collection[TableName],
    operations: Collection[Operation],
) -> Sequence[Row[Any]]:
    """Return the rows of WRITE_SET that others have committed since this transaction began, in
    these tables and by these operations, each with its transaction and, if known, its write id.
    Some may be visible to the snapshot."""
    same_write = and_(
        T2W.T2W_TXNID == WS.WS_TXNID,
        T2W.T2W_DATABASE == WS.WS_DATABASE,
        T2W.T2W_TABLE == WS.WS_TABLE,
    )
    query = (
        select(WRITE_SET, T2W.T2W_WRITEID, T.TXN_USER, T.TXN_HOST, T.TXN_AGENT_INFO)
        .outerjoin_from(WRITE_SET, TXN_TO_WRITE_ID, same_write)
        .outerjoin(TXNS, T.TXN_ID == WS.WS_TXNID)
        .where(
            or_(*(is_of_table(WRITE_SET, "WS", name) for name in tables)),
            WS.WS_COMMIT_ID >= txn_id,
            WS.WS_TXNID != txn_id,
            WS.WS_OPERATION_TYPE.in_(sorted(operation.value for operation in operations)),
        )
    )
    return connection.execute(query).all()


def _rivals(rows: Sequence[Row[Any]], snapshot: ValidTxnList) -> Iterator[Rival]:
    """Yield each transaction that the snapshot does not see, once, with all of its changes among
    these rows. They are rows of WRITE_SET, joined with TXNS and TXN_TO_WRITE_ID
    (``_committed_since``)."""
    by_txn: dict[int, list[Row[Any]]] = {}
    for row in rows:
        by_txn.setdefault(row.WS_TXNID, []).append(row)
    for txn_id, rows_of_txn in by_txn.items():
        if not snapshot.is_valid(txn_id):
            txn_row = rows_of_txn[0]
            yield Rival(
                txn_id,
                txn_row.TXN_USER or "",
                txn_row.TXN_HOST or "",
                txn_row.TXN_AGENT_INFO or "",
                [_change_of_row(row) for row in rows_of_txn],
            )


def _change_of_row(row: Row[Any]) -> RecordedChange:
    """Make the change of a row of WRITE_SET that is joined with TXN_TO_WRITE_ID, which has its
    write id."""
    return RecordedChange(
        row.WS_DATABASE,
        row.WS_TABLE,
        row.WS_PARTITION,
        Operation(row.WS_OPERATION_TYPE),
        row.T2W_WRITEID,
    )
