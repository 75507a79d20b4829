"""Runs each statement of a session, from its text to its result.

``runner`` tells one statement's way from the text to the commit: say, hold, do, keep. ``wiring``
makes the objects that run the statements of each kind. The rooms, from the bottom up:

===============  ================================================================================
context/         what statements share: the transaction, its snapshot, names, receipts
directories/     where tables lie: directories made, adopted, moved and removed
queries/         SELECT and all else that only Spark runs; EXPLAIN; what REVERT and RESTORE read
ddl/             tables, columns, constraints, views, databases; BEGIN, COMMIT, LOCK
maintenance/     compaction, checks, repair, health, statistics, history
dml/             INSERT, UPDATE, DELETE, MERGE, LOAD DATA: prepare, hold, write
show/            SHOW and DESCRIBE
cdc/             AUTO CDC, which takes the phases of ``dml/`` in several steps
===============  ================================================================================

This package knows every package below it. It must not know how results are shown to a person: that
is the task of ``terminal/``. Read ``runner`` first.
"""
