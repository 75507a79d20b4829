"""MERGE as a query of events.

``merge`` composes it, ``pairs`` joins target and source, ``partners`` narrows the target to the
rows that the source may meet.

This package must not know how a query is run. Read ``merge`` first.
"""
