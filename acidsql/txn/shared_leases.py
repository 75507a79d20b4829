"""Leases of readers that have no session, as a data source that Spark starts for each query.

Nobody tells such a reader when its query ends, and no process of its own lives as long as the
query. So a lease is an open READ_ONLY transaction without a heartbeat, which the store's time-out
ends. Later queries of the same user on the same host share it while it is young (see ``leases``).
"""

from __future__ import annotations

import getpass
import socket
from contextlib import suppress

from acidsql.acid.table import TableName
from acidsql.errors import SnapshotTooOldError, TxnError
from acidsql.metastore.catalog_history import CatalogChange
from acidsql.metastore.interface import Metastore, TxnInfo, TxnState, TxnType
from acidsql.settings import Settings
from acidsql.txn.leases import PARTS
from acidsql.txn.snapshot import Snapshot, snapshot_of


def snapshot_under_shared_lease(
    store: Metastore, settings: Settings, table: TableName, agent_info: str
) -> Snapshot:
    """Return what is committed now in a table. The cleaner keeps the snapshot's files for at least
    nine tenths of ``acidsql.lease.timeout`` or, over a Hive Metastore, of its
    ``hive.txn.timeout``.

    Args:
        store: The metastore.
        settings: Limits and time-outs.
        table: The table.
        agent_info: Names the kind of reader, whose queries share a lease. SHOW TRANSACTIONS shows
            it.

    Raises:
        TxnError: TOO_MANY_OPEN_TXNS: ``hive.max.open.txns`` are open already.
        MetastoreError: The store did not answer.
    """
    user, host = getpass.getuser(), socket.gethostname()
    timeout_ms = store.abilities.txn_timeout_ms or settings.lease_timeout_ms
    oldest_ms = store.now_ms() - timeout_ms // PARTS

    def is_young(txn: TxnInfo) -> bool:
        """Whether a transaction is an open lease of such readers that may serve one more."""
        is_shared = (txn.user, txn.host, txn.agent_info) == (user, host, agent_info)
        return is_shared and txn.state is TxnState.OPEN and txn.started_ms > oldest_ms

    for txn in filter(is_young, store.show_txns()):
        try:
            store.keep_files(txn.txn_id, [table])
        except TxnError:  # it has ended
            continue
        if (valid_txns := store.valid_txns_under(txn.txn_id)) is not None:
            return snapshot_of(store, valid_txns, [table], txn.txn_id)
    lease = store.open_txn(
        user=user, host=host, agent_info=agent_info, txn_type=TxnType.READ_ONLY,
        timeout_ms=timeout_ms, max_open_txns=settings.max_open_txns,
    )  # fmt: skip
    store.keep_files(lease, [table])
    return snapshot_of(store, store.valid_txns(), [table], lease)


def is_lease_open(store: Metastore, snapshot: Snapshot) -> bool:
    """Whether the snapshot's lease is open in the store now."""
    lease = snapshot.held_by
    return lease is not None and store.txn_state(lease) is TxnState.OPEN


def changes_under_lease(
    store: Metastore, snapshot: Snapshot, table: TableName
) -> list[CatalogChange]:
    """Return the changes that others have made to a table's name in the catalog since a snapshot of
    ``snapshot_under_shared_lease``; none if the metastore does not remember them.

    Raises:
        SnapshotTooOldError: The lease has ended, so the store may have forgotten such changes, and
            the cleaner may have deleted files.
    """
    changes: list[CatalogChange] = []
    with suppress(TxnError):  # the lease has ended, which is_lease_open tells, too
        if store.abilities.remembers_changes and snapshot.held_by is not None:
            changes = store.catalog_changes(snapshot.held_by, snapshot.valid_txns, table)
    if not is_lease_open(store, snapshot):
        raise SnapshotTooOldError(
            f"{table} was loaded so long ago that its lease has ended (acidsql.lease.timeout; over "
            "a Hive Metastore, hive.txn.timeout). Load the DataFrame again, or make the view "
            "again, and query it before the lease ends.",
            table=table,
        )
    return changes
