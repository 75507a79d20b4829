"""INSERT, UPDATE and DELETE as queries of events.

``event_query`` is the result: a query whose rows are events, and what its writer must know.
``insert``, ``update``, ``delete`` and ``replace`` compose it; ``returning`` adds the rows to show,
``evolution`` new columns. ``targets`` finds the table that a statement changes.

This package must not know how a query is run. Read ``event_query`` and ``update`` first.
"""
