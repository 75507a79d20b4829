"""What a statement sees: the transactions and write ids that are valid for it (I6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList, ValidWriteIdList
from acidsql.metastore.interface import TxnStore


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The transactions and write ids that a statement sees.

    Attributes:
        valid_txns: The committed transactions.
        write_ids: The visible write ids of each table.
        held_by: The open transaction, or lease, that keeps this snapshot's files from the cleaner.
    """

    valid_txns: ValidTxnList
    write_ids: Mapping[TableName, ValidWriteIdList] = field(default_factory=dict)
    held_by: int | None = None


def snapshot_of(
    store: TxnStore, valid: ValidTxnList, tables: Sequence[TableName], held_by: int | None = None
) -> Snapshot:
    """Make the snapshot in which the transactions ``valid`` have committed: ask the store for the
    write ids that are visible then in these tables."""
    return Snapshot(valid, store.valid_write_ids(valid, tables), held_by)
