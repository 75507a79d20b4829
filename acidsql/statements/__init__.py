"""Runs each statement of a session, from its text to its result.

Read ``runner`` first: it tells one statement's way from the text to the commit. ``plan/`` rewrites
a statement that changes rows, and ``storage/`` writes its events. Every other kind of statement has
a module here.

==================  ==========================================================================
runner              one statement, start to finish: say, hold, do, keep
prepare, hold,      the phases *say*, *hold* and *do* of a statement that changes rows; ``write``
write               also publishes
auto_cdc            AUTO CDC, which does this in several steps; ``cdc_records`` judges the records,
                    ``tombstones`` forgets old deletes
family              what the modules below share: the session's context, ``@runs``
reader              SELECT and everything else that only Spark runs; the rows of stand-ins
current_txn         which transaction the session's statements run in, and what its reads see
unit_of_work        what a transaction's statements have published, and how to undo one of them
partition_specs     which partitions a statement means
tables, create      CREATE, ALTER, DROP, TRUNCATE TABLE, databases, USE; AUTO CDC: ``state_tables``
columns             ALTER TABLE … COLUMNS
load                LOAD DATA
transactions        BEGIN, COMMIT, SAVEPOINT, LOCK, UNLOCK, SET, ABORT TRANSACTIONS
compactions         ALTER TABLE … COMPACT, and the session's own clean-up
shows, explain      SHOW, DESCRIBE, EXPLAIN
places              where tables lie: directories made, adopted and removed
spark_databases     the databases of Spark's catalog beside ours
result              counts, receipts
==================  ==========================================================================

This package knows every package below it. It must not know how results are shown to a person: that
is the task of ``session``, ``magic`` and ``cli``.
"""
