"""Statements about the state of tables: compaction, checks, repair, statistics, history.

``compactions`` is ALTER TABLE … COMPACT and the session's own clean-up; ``compaction_rows`` are
the rows of SHOW COMPACTIONS. ``check`` and ``repair`` look for damaged files and mend what can be
mended. ``health`` measures tables, ``statistics`` is ANALYZE TABLE, ``history`` DESCRIBE HISTORY.

This package must not change rows: a compaction keeps what a snapshot shows. Read ``compactions``
first.
"""
