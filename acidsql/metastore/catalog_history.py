"""Changes of the catalog since a snapshot was taken.

The catalog has no snapshots: a transaction sees the rows of one moment, but the catalog of now. So
the metastore remembers each change of the catalog, under the table's name, while an open
transaction may ask for it. A transaction asks whether a name still means what it meant when the
snapshot was taken.
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
        txn_id: The transaction that made it. None: the metastore does not tell; then user, host
            and statement are empty.
        partition: The directory of the partition that was dropped, ``p1=a/p2=1``. None: the
            table's name means something else now, because a table was made, dropped or renamed,
            or its columns were changed.
        user: The transaction's user.
        host: The transaction's host.
        agent_info: The transaction's statement.
    """

    txn_id: int | None
    partition: str | None
    user: str = ""
    host: str = ""
    agent_info: str = ""


class CatalogHistory(Protocol):
    """The part of ``TxnStore`` that looks back at the catalog."""

    def watch_catalog(self, txn_id: int) -> None:
        """Let the metastore remember the catalog as it is now, for later calls of
        ``catalog_changes``. *Idempotent.* A transaction of several statements calls this right
        before it takes its snapshot. A metastore that always remembers does nothing."""

    def catalog_changes(
        self, txn_id: int, snapshot: ValidTxnList, table: TableName
    ) -> list[CatalogChange]:
        """Return the changes that others have made to a name in the catalog, and that the snapshot
        of an open transaction does not see, oldest first. *Read-only.*

        A new partition is no such change, because the snapshot sees no row in it. Neither is a
        change of properties. Raises TxnAbortedError, NoSuchTxnError: the metastore may have
        forgotten the changes since the snapshot of a transaction that has ended.
        """
