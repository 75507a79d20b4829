"""What all kinds of statements share: the session's transaction, snapshot and names.

``current_txn`` knows which transaction the statements run in, and whose snapshot its reads see;
``snapshot_catalog`` has the tables and partitions that this snapshot sees.
``unit_of_work`` is what a transaction's statements have published, and how to undo one of them.
``family`` is the base of the modules that run statements. ``partition_specs`` says which
partitions a statement means, ``result`` has counts and receipts.

This package must not know any one kind of statement. Read ``current_txn`` first.
"""
