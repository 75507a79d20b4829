"""What several parts of the store read and write, a table of the database each.

``write_ids`` hands them out, ``changes`` and ``conflicts`` keep what transactions have written,
``cleanups`` and ``compaction_rows`` are the compactor's queue, ``versions`` and
``catalog_history`` the history, ``streams`` the ledger.

This package must not open a transaction of the database: its callers do. Read ``write_ids`` first.
"""
