"""Transactions as a session uses them: open, lock, look, write, commit.

``manager`` (``TxnManager``: opens, snapshots) → ``txn`` (``Txn``: the life of a transaction, drawn
in its docstring) → ``locks`` (waiting for a lock, and saying for whom), ``heartbeat`` (the thread
that says we live), ``leases`` (what lazy DataFrames read is kept). Knows the metastore by its
Protocols only.
"""

from acidsql.txn.manager import TxnManager
from acidsql.txn.txn import Phase, Snapshot, Txn, abort_quietly, snapshot_of

__all__ = ["Phase", "Snapshot", "Txn", "TxnManager", "abort_quietly", "snapshot_of"]
