"""Locks of a Hive Metastore, and the conflicts that the server does not see.

``locks`` asks for locks and waits, ``numbers`` keeps them alive, ``conflicts`` compares what
transactions have written.

This package must not know the catalog. Read ``locks`` first.
"""
