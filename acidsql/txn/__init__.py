"""Transactions as a session uses them: open, lock, look, write, commit.

``manager`` (``TxnManager``, ``Txn``: the life of a transaction, drawn in its docstring) →
``locks`` (waiting for a lock, and saying for whom), ``heartbeat`` (the thread that says we live).
Knows the metastore by its Protocols only.
"""

from acidsql.txn.manager import Snapshot, Txn, TxnManager

__all__ = ["Snapshot", "Txn", "TxnManager"]
