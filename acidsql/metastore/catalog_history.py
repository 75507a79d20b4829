"""What a metastore tells an old snapshot about the catalog, which itself has no snapshots.

A transaction sees the rows of one moment, but the catalog of now. What others have changed in the
catalog since that moment is remembered, under the table's name, for as long as an open transaction
may ask for it. So a transaction can tell whether a name still means to it what it meant then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from acidsql.acid.table import TableName
from acidsql.acid.write_ids import ValidTxnList


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """A change of a table in the catalog that a snapshot does not see.

    Attributes:
        txn_id: The transaction that made it.
        partition: The directory of the partition that was dropped, ``p1=a/p2=1``. None: the name
            itself means something else since then. A table was made, dropped or renamed, or its
            columns were changed.
        user: Who made it.
        host: Of that session.
        agent_info: Its statement.
    """

    txn_id: int
    partition: str | None
    user: str = ""
    host: str = ""
    agent_info: str = ""


class CatalogHistory(Protocol):
    """The part of ``TxnStore`` that looks back at the catalog."""

    def catalog_changes(
        self, txn_id: int, snapshot: ValidTxnList, table: TableName
    ) -> list[CatalogChange]:
        """What others have changed of a name in the catalog that an open transaction's snapshot
        does not see, oldest first. *Read-only.*

        A partition that others have added is no change: the snapshot sees no row of theirs in it.
        Nor are properties. Raises TxnAbortedError, NoSuchTxnError: what a transaction that has
        ended could ask for is forgotten.
        """
