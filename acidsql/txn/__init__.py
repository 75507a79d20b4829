"""Transactions as a session uses them: open, lock, take a snapshot, write, commit.

* ``manager``: ``TxnManager`` opens transactions and takes snapshots.
* ``txn``: ``Txn`` is one transaction. The module's docstring draws its life.
* ``snapshot``: ``Snapshot`` is what a statement sees.
* ``locks``: waits for a lock, and reports which transaction holds it.
* ``waits``: says from time to time whom a statement waits for.
* ``session_locks``: the locks that a session holds beyond its transactions.
* ``heartbeat``: the thread that tells the metastore that our transactions are alive.
* ``leases``: keep the files that lazy DataFrames read.

This package knows the metastore by its Protocols only.

This package must not know statements, files or Spark. Read ``txn`` first.
"""

from acidsql.txn.locks import NO_WAIT_SETTINGS
from acidsql.txn.manager import TxnManager
from acidsql.txn.session_locks import BorrowedLocks, SessionLocks
from acidsql.txn.snapshot import Snapshot, snapshot_of
from acidsql.txn.txn import Phase, Txn, abort_quietly

__all__ = [
    "NO_WAIT_SETTINGS", "BorrowedLocks", "Phase", "SessionLocks", "Snapshot", "Txn", "TxnManager",
    "abort_quietly", "snapshot_of",
]  # fmt: skip
