"""Whether a transaction was reverted already.

The row ids of its deleted rows do not tell: rows that came back have new ones. The versions do,
which have the number of the transaction that was reverted.
"""

from __future__ import annotations

from collections.abc import Iterable

from acidsql.acid.table import TableName
from acidsql.errors import TxnError
from acidsql.metastore.versions import Change, Version


def refuse_reverted(
    txn_id: int, table: TableName, versions: Iterable[Version], own_id: int, own: Iterable[Change]
) -> None:
    """Check that a transaction was not reverted, or that its revert was reverted.

    Args:
        txn_id: The transaction.
        table: A table that it changed.
        versions: The versions of the table.
        own_id: The transaction that is to revert it.
        own: What this transaction has changed so far.

    Raises:
        TxnError: REVERT_CONFLICT: it was reverted.
    """
    done = [(one.txn_id, one.change) for one in versions]
    done += [(own_id, change) for change in own if change.table == table]
    reverts: dict[int, list[int]] = {}
    for by, change in done:
        # A transaction can revert only older ones: no circle.
        if change.reverted is not None and change.reverted < by:
            reverts.setdefault(change.reverted, []).append(by)

    def reverting(number: int) -> int | None:
        found = (by for by in reverts.get(number, ()) if reverting(by) is None)
        return next(found, None)

    last = reverting(txn_id)
    if last is None:
        return
    raise TxnError(
        f"Transaction {txn_id} was reverted already in {table}, by transaction {last}. A second "
        f"revert would double rows. REVERT TRANSACTION {last} brings its changes back.",
        condition="REVERT_CONFLICT",
        sqlstate="40001",
        table=table,
    )
