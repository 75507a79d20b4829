"""The meaning of statements: a bound statement becomes a query whose rows are events.

``rewrite`` turns INSERT, UPDATE, DELETE and MERGE into an ``EventQuery`` each, ``undo`` REVERT and
RESTORE. ``locking`` says which locks a statement takes. The rooms, from the bottom up:

===============  ================================================================================
values/          which value may go into which column; the user's positions in composed text
standins/        what a name in a query means, and the view that stands in for a table
rows/            INSERT, UPDATE and DELETE; RETURNING, new columns
merging/         MERGE
analysis/        Spark's analysis of composed text, and its errors in our words
cdc/             AUTO CDC: several queries
===============  ================================================================================

This package knows the language, and the columns that ``storage/`` wants. It must not know
transactions or files. Read ``rows/event_query`` and ``rows/update`` first.
"""
