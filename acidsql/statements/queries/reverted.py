"""Whether a transaction was reverted already.

The row ids of deleted rows do not tell this, because rows that a revert brought back have new row
ids. But each version of a table has the id of the transaction that the version reverted, if any.
"""

from __future__ import annotations

from collections.abc import Iterable

from acidsql.acid.table import TableName
from acidsql.errors import TxnError
from acidsql.metastore.versions import Change, Version


def refuse_reverted(
    txn_id: int,
    table: TableName,
    versions: Iterable[Version],
    own_id: int,
    own_changes: Iterable[Change],
) -> None:
    """Refuse to revert a transaction that was reverted in a table already, unless its revert was
    itself reverted.

    Args:
        txn_id: The transaction.
        table: A table that the transaction changed.
        versions: The versions of the table.
        own_id: The current transaction, which is to revert ``txn_id``.
        own_changes: The changes that the current transaction has made so far, in any table.

    Raises:
        TxnError: REVERT_CONFLICT: the transaction was reverted.
    """
    changes = [(version.txn_id, version.change) for version in versions]
    changes += [(own_id, change) for change in own_changes if change.table == table]
    reverts_by_txn: dict[int, list[int]] = {}
    for reverting_id, change in changes:
        # A transaction can revert only older ones, so there is no circle.
        if change.reverted is not None and change.reverted < reverting_id:
            reverts_by_txn.setdefault(change.reverted, []).append(reverting_id)

    def effective_revert(reverted_id: int) -> int | None:
        """Return a transaction that reverted this one and was not itself reverted; or None."""
        reverting_ids = (
            reverting_id
            for reverting_id in reverts_by_txn.get(reverted_id, ())
            if effective_revert(reverting_id) is None
        )
        return next(reverting_ids, None)

    last_revert = effective_revert(txn_id)
    if last_revert is None:
        return
    raise TxnError(
        f"Transaction {txn_id} was reverted already in {table}, by transaction {last_revert}. A "
        f"second revert would double rows. REVERT TRANSACTION {last_revert} brings its changes "
        "back.",
        condition="REVERT_CONFLICT",
        sqlstate="40001",
        table=table,
    )
